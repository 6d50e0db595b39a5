"""Which values match a pattern; globs are compared with fnmatch(3), which udev uses."""

import ctypes
import random
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from genericdp.core.rules import pattern
from genericdp.core.rules.pattern import BadPatternError
from genericdp.core.words import listing
from tests.scenes.work import FACTOR, IN_PROPORTION, growth, peak

LIBC = ctypes.CDLL(None)

#: Of a shorter value, the processor learns which branches are taken, and is several times as fast.
LONG = 32_000


def fnmatch(glob: str, value: str) -> bool:
    return bool(LIBC.fnmatch(glob.encode(), value.encode(), 0) == 0)


@pytest.mark.parametrize(
    ("glob", "holds", "fails"),
    [
        ("tty", ["tty"], ["ttyS0", "", None]),
        ("tty*", ["tty", "tty/x"], ["xtty", None]),
        ("tty?", ["tty0"], ["tty", "tty10"]),
        ("tty[0-9]", ["tty5"], ["ttyS"]),
        ("tty[!0-9]", ["ttyS"], ["tty5"]),
        ("a|b*", ["a", "b", "bc"], ["ab", "c"]),
        ("a|", ["a", ""], ["b", None]),
        ("[a|]x", ["|x", "ax"], ["a"]),
        (r"a\|b", ["a|b"], ["a", "b"]),
        (r"a\*", ["a*"], ["ab"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[+--]", ["+", ",", "-"], ["*", "."]),
        ("[a-b-d]", ["a", "b", "-", "d"], ["c"]),
        ("[a&&~~||b]", ["a", "&", "~", "|", "b"], ["c"]),
        (r"[a\]\-\\b]", ["a", "]", "-", "\\", "b"], ["c"]),
        (r"[!\]]|[a-\c]x", ["a", "bx"], ["]", "\\x"]),
        ("tty[[:digit:]]*", ["tty1", "tty10"], ["ttyS0", "tty:", "ttyd]"]),
        ("[![:alpha:]_]|[[:digit:]-]|x[]|[:space:]]", ["1", "-", "x]", "x|", "x "], ["a", "_", "xs"]),
        ("[[:d]", ["[", ":", "d"], ["]"]),
        ("*", [""], [None]),
    ],
)
def test_a_glob_is_udevs(glob: str, holds: list[str | None], fails: list[str | None]) -> None:
    compiled = pattern.glob(glob)
    assert [value for value in holds if not compiled.holds(value)] == []
    assert [value for value in fails if compiled.holds(value)] == []


@pytest.mark.parametrize(
    ("least", "most", "holds", "fails"),
    [
        (
            5000,
            None,
            ["5000", "5001", " 5000\n", "0x1388", "+5000", "5000.0", "9" * 32],
            ["4999", "-5000", "0x1387"],
        ),
        (None, 85000, ["85000", "-1", "0", "-0x1"], ["85001", "85000.5", "9" * 33]),
        (0.5, 1, ["0.5", "1", "01"], ["0.4", "1.1"]),
        (-5, -3, ["-5", "-3.5"], ["-6", "3"]),
    ],
)
def test_a_bound_is_compared_with_numbers(
    least: float | None, most: float | None, holds: list[str], fails: list[str]
) -> None:
    bound = pattern.between(least, most)
    assert [value for value in holds if not bound.holds(value)] == []
    assert [value for value in fails if bound.holds(value)] == []


@pytest.mark.parametrize("bounds", [(0, None), (None, 0), (-1e9, 1e9)])
@pytest.mark.parametrize(
    "value",
    [None, "", " ", "-", "x", "1x", "1 2", "0x", "1e3", "inf", "nan", "1_000", "²", "٣", "1.", ".5", "dead"],
)
def test_what_is_no_number_is_within_no_bounds(
    bounds: tuple[float | None, float | None], value: str | None
) -> None:
    assert not pattern.between(*bounds).holds(value)
    assert pattern.negation(pattern.between(*bounds)).holds(value)


def test_a_hex_id_is_a_number_without_0x() -> None:
    bound = pattern.between(0x6001, 0x6015, hex_id=True)
    assert [value for value in ("6001", "0x6015", "6010") if not bound.holds(value)] == []
    assert [value for value in ("6016", "24577", "600g", "", None) if bound.holds(value)] == []


def test_bounds_are_shown_in_words() -> None:
    assert pattern.between(5000, None).text == "at least 5000"
    assert pattern.between(None, 0.5).text == "at most 0.5"
    assert pattern.between(1, 2).text == "at least 1 and at most 2"


@given(st.integers(), st.none() | st.integers(), st.none() | st.integers())
def test_every_number_is_where_it_is(number: int, least: int | None, most: int | None) -> None:
    assume(abs(number) < 10**32)
    within = (least is None or number >= least) and (most is None or number <= most)
    bound = pattern.between(least, most)
    assert bound.holds(str(number)) is bound.holds(f"{number:#x}") is within


CLASSES = [
    *("alnum", "alpha", "blank", "cntrl", "digit", "graph"),
    *("lower", "print", "punct", "space", "upper", "xdigit"),
]


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_members_that_it_has_in_the_c_library(name: str) -> None:
    for glob in (f"[[:{name}:]]", f"[![:{name}:]]"):
        compiled = pattern.glob(glob)
        values = [chr(code) for code in range(1, 128)]
        assert [each for each in values if compiled.holds(each)] == [
            each for each in values if fnmatch(glob, each)
        ]


def test_the_case_of_a_class_does_not_matter_where_case_does_not() -> None:
    for glob in ("0[[:UPPER:]]", "0[[:lower:]]"):
        assert pattern.glob(glob, fold=str.lower).holds("0A")
        assert pattern.glob(glob, fold=str.upper).holds("0a")


_PIECES = st.sampled_from(["[", "[!", "]", "-", "\\", "*", "?", ":", "a", "b", "1", "[:digit:]", "[:alpha:]"])


@given(st.lists(_PIECES, max_size=8).map("".join), st.text("ab1-]![:\\", max_size=5))
def test_a_glob_agrees_with_the_c_library(glob: str, value: str) -> None:
    try:
        compiled = pattern.glob(glob)
    except BadPatternError:
        assume(False)
    # An empty or backward range matches nothing in C and is refused here.
    assert compiled.holds(value) == fnmatch(glob, value)


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=12))
def test_a_glob_with_many_stars_agrees_with_the_c_library(glob: str, value: str) -> None:
    assert pattern.glob(glob).holds(value) == fnmatch(glob, value)


@pytest.mark.parametrize(
    ("glob", "value"),
    [
        ("*a*a*a*a*a*b", "a"),
        ("*-*-*-*-if00-port0", "a-"),
        ("*a?*a?*a?*a?*b|*[!b]*[!b]*[!b]*[!b]*b", "a"),
        ("*a*a????????????????????????????????????????b", "ab"),
        ("*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "a"),
        ("a*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab|*?????????????????????b|*****b", "a"),
    ],
)
def test_the_time_to_match_a_glob_grows_in_proportion_to_the_value(glob: str, value: str) -> None:
    compiled = pattern.glob(glob)
    assert growth(lambda size: compiled.holds(value * size), LONG) < IN_PROPORTION


@pytest.mark.parametrize("seed", range(30))
def test_the_time_to_match_any_glob_grows_in_proportion_to_the_value(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311  (not for secrets)
    compiled = pattern.glob("".join(draw.choices("aab?[*****", k=20)).replace("[", "[ab]") + "c")
    value = "".join(draw.choices("ab", k=FACTOR * LONG))
    assert growth(lambda size: compiled.holds(value[:size]), LONG) < IN_PROPORTION


@pytest.mark.parametrize(
    ("glob", "message"),
    [
        ("a[b", "bad glob: '[' without ']'"),
        ("a\\", "bad glob: nothing follows the backslash"),
        ("[\\", "bad glob: '[' without ']'"),
        ("[a-", "bad glob: '[' without ']'"),
        ("[[:digit:]", "bad glob: '[' without ']'"),
        ("[?--]", "bad glob: '?--' is not a range of characters"),
        ("[z-a]", "bad glob: 'z-a' is not a range of characters"),
        ("a" * 4097, "a pattern has at most 4096 characters, not 4097"),
    ],
)
def test_a_bad_glob_is_refused_with_the_reason(glob: str, message: str) -> None:
    with pytest.raises(BadPatternError) as caught:
        pattern.glob(glob)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("glob", "message", "hint"),
    [
        ("[[:digits:]]", "bad glob: '[:digits:]' is not a class of characters", "did you mean 'digit'?"),
        (
            "[a[:d:]]",
            "bad glob: '[:d:]' is not a class of characters",
            f"the classes are {listing(CLASSES)}",
        ),
        ("[+-[:digit:]]", "bad glob: '+-[' is not a range of characters", ""),
        (
            "[a[=b=]]",
            "bad glob: '[=' is not supported in '[…]'",
            "write only the characters themselves; put '[' last",
        ),
        (
            "[[.-.]a]",
            "bad glob: '[.' is not supported in '[…]'",
            "write only the characters themselves; put '[' last",
        ),
    ],
)
def test_a_class_that_is_not_known_or_not_supported_is_refused(glob: str, message: str, hint: str) -> None:
    with pytest.raises(BadPatternError) as caught:
        pattern.glob(glob)
    assert (str(caught.value), caught.value.hint) == (message, hint)


def test_a_glob_may_be_as_long_as_a_value() -> None:
    assert pattern.glob("a" * 4095 + "*").holds("a" * 4096)
    assert pattern.glob("*a" * 2048).holds("a" * 4096)
    assert not pattern.glob("*a" * 2048).holds("a" * 2047)
    assert pattern.glob("|".join(["ab"] * 1365)).literals == frozenset({"ab"})


def test_only_literal_alternatives_are_known_beforehand() -> None:
    assert pattern.glob("a|b").literals == frozenset("ab")
    assert pattern.glob("a|b*").literals is None
    assert pattern.any_of((pattern.glob("a"), pattern.glob("b"))).literals == frozenset("ab")
    mixed = pattern.any_of((pattern.glob("a"), pattern.glob("b*")))
    assert (mixed.literals, mixed.beginnings) == (None, ("a", "b"))
    assert [mixed.holds(value) for value in ("a", "b", "bc", "c", None)] == [True, True, True, False, False]


def test_an_alternative_with_many_stars_stands_beside_others() -> None:
    mixed = pattern.glob("AB|c*|*d*E*", fold=lambda value: value.lower().replace("e", "E"))
    assert [value for value in ["ab", "AB", "C", "cx", "dE", "xdxExx"] if not mixed.holds(value)] == []
    assert [value for value in ["a", "xc", "d", "Ed", None] if mixed.holds(value)] == []


def test_folding_makes_spellings_equal() -> None:
    folded = pattern.glob("0BDA|12*", fold=str.lower)
    assert folded.holds("0bda")
    assert folded.holds("0BDA")
    assert folded.holds("12ff")
    assert not folded.holds(None)
    literal = pattern.glob("AB", fold=str.lower)
    assert literal.holds("ab")
    assert not literal.holds(None)


def test_a_regular_expression_must_match_the_whole_value() -> None:
    vcs = pattern.regex("/dev/vcs[0-9]+")
    assert vcs.holds("/dev/vcs20")
    assert not vcs.holds("/dev/vcsa20")
    assert not vcs.holds("x/dev/vcs20")
    assert not vcs.holds(None)


def test_a_bad_regular_expression_is_refused_with_the_reason() -> None:
    with pytest.raises(BadPatternError) as caught:
        pattern.regex("[")
    assert str(caught.value) == "bad regular expression: unterminated character set at position 0"
    with pytest.raises(BadPatternError) as caught:
        pattern.regex("[a" + "b" * 4095 + "]")
    assert str(caught.value) == "a pattern has at most 4096 characters, not 4098"
    assert caught.value.hint == 'a list of patterns may be longer: ["…", "…"]'
    with pytest.raises(BadPatternError) as caught:
        pattern.regex("^a$b")
    assert str(caught.value) == "bad regular expression: '$' at position 2 is not at an end of the expression"
    assert caught.value.hint == "leave it out: the expression must match the whole value anyway"


def test_a_negation_holds_for_what_is_not_there() -> None:
    other = pattern.negation(pattern.glob("tty"))
    assert other.holds(None)
    assert other.holds("usb")
    assert not other.holds("tty")
    assert other.text == "not 'tty'"


def test_existence_is_about_being_there() -> None:
    assert pattern.exists(True).holds("")
    assert not pattern.exists(True).holds(None)
    assert pattern.exists(False).holds(None)
    assert not pattern.exists(False).holds("")


def test_any_of_one_is_that_one() -> None:
    one = pattern.glob("a")
    assert pattern.any_of((one,)) is one


def test_any_of_several_holds_when_one_does() -> None:
    several = pattern.any_of((pattern.glob("a*"), pattern.exists(False)))
    assert several.holds("ab")
    assert several.holds(None)
    assert not several.holds("b")
    assert several.text == "'a*' or absent"


@given(st.text("ab*?|", max_size=12))
def test_patterns_of_the_same_text_are_equal(text: str) -> None:
    assert pattern.glob(text) == pattern.glob(text)


def nested(depth: int) -> list[pattern.Pattern]:
    """Every pattern that is nested so deeply, of a few simple ones."""
    simple = [
        pattern.exactly("A"),
        pattern.exactly("B"),
        pattern.exactly("A' or 'B"),
        pattern.exists(True),
        pattern.between(1, None),
        pattern.between(1, 5),
    ]
    found = simple
    for _ in range(depth):
        found = [
            *simple,
            *map(pattern.negation, found),
            *(pattern.any_of(pair) for pair in product(found[:40], repeat=2)),
        ]
    return found


def test_patterns_that_are_shown_as_the_same_text_mean_the_same() -> None:
    """Only that text is compared to see whether an edit changed a rule."""
    meanings: dict[str, set[tuple[bool, ...]]] = {}
    for each in nested(3):
        held = tuple(each.holds(value) for value in (None, "A", "B", "C", "A' or 'B", "0", "3", "7"))
        meanings.setdefault(each.text, set()).add(held)
    assert {text: found for text, found in meanings.items() if len(found) > 1} == {}


def test_a_negation_of_several_is_shown_with_parentheses() -> None:
    both = pattern.any_of((pattern.exactly("A"), pattern.exactly("B")))
    assert pattern.negation(both).text == "not ('A' or 'B')"
    assert pattern.negation(pattern.between(1, 5)).text == "not (at least 1 and at most 5)"
    assert pattern.exactly("it's").text == r"'it\'s'"


def test_any_of_many_texts_needs_little_more_memory_than_these() -> None:
    assert peak(lambda: pattern.any_of(pattern.glob(f"A{n}") for n in range(10_000))) < 10_000 * 400


def test_the_time_for_a_list_of_patterns_grows_in_proportion_to_it() -> None:
    patterns = tuple(pattern.glob(f"/dev/x{number}") for number in range(FACTOR * 4000))
    assert growth(lambda size: pattern.any_of(patterns[:size]), 4000) < IN_PROPORTION
    assert pattern.any_of(patterns[:2]).beginnings == ("/dev/x0", "/dev/x1")
