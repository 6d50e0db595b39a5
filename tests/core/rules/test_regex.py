"""Regular expressions: they mean what they mean to `re`, and no value takes long."""

import re
import tracemalloc
import warnings

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from genericdp.core.rules.expression import SUPPORTED, BadExpressionError
from genericdp.core.rules.regex import PARTS_LIMIT, Regex
from tests.scenes.work import IN_PROPORTION, growth, lines_run

CHARACTERS = st.sampled_from(
    [
        *("a", "b", "é", "0", " ", "-", "]", "{", "}", ".", r"\d", r"\W", r"\s", r"\.", r"\\", r"\n"),
        *(r"\x61", r"\u00e9", r"\141", r"\0", r"\N{DIGIT ZERO}"),
        *("[ab]", "[^a]", "[]a]", "[^]a-]", r"[\]\d]", "[[a]"),
    ]
)
REPETITIONS = st.sampled_from(
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1,2}", "{,2}", "{1,}", "{,}", "{2}?", "{}", "{a}"]
)
GROUPS = st.sampled_from(["({})", "(?:{})", "(?P<name>{})"])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(str.__add__, inner, inner),
        st.builds("{}|{}".format, inner, inner | st.just("")),
        st.builds(
            lambda group, part, repetition: group.format(part) + repetition, GROUPS, inner, REPETITIONS
        ),
        st.builds(str.__add__, CHARACTERS, REPETITIONS),
    )


EXPRESSIONS = st.builds(
    lambda beginning, middle, end: beginning + middle + end,
    st.sampled_from(["", "", "^", r"\A"]),
    st.recursive(CHARACTERS, larger, max_leaves=8),
    st.sampled_from(["", "", "$", r"\Z"]),
)
VALUES = st.text("aab0é -]{}.\\\n", max_size=8)


@given(EXPRESSIONS, st.lists(VALUES, min_size=1, max_size=4))
def test_an_expression_means_what_it_means_to_python(text: str, values: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pythons = re.compile(text, re.DOTALL)
        except re.error:
            assume(False)
        regex = Regex(text)
        for value in values:
            # Twice: what was worked out for the first value is kept for the next.
            expected = pythons.fullmatch(value) is not None
            assert [regex.matches(value), regex.matches(value)] == [expected, expected]


@given(EXPRESSIONS, st.text("ab", max_size=300))
def test_a_match_takes_steps_in_proportion_to_the_value_and_the_expression(text: str, value: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            regex = Regex(text)
        except BadExpressionError:
            assume(False)
    assert lines_run(lambda: regex.matches(value)) <= 12 * (len(value) + 1) * (len(text) + 1)


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+b",
        "(a|a)*b",
        "(a*)*b",
        "(.*a){12}b",
        "(a|aa)+b",
        "(.*)(.*)(.*)(.*)b",
        "a?" * 60 + "a" * 60 + "b",
    ],
)
def test_an_expression_that_python_tries_for_ages_is_matched_in_one_pass(text: str) -> None:
    regex = Regex(text)
    assert lines_run(lambda: regex.matches("a" * 4096)) <= 4096 * 40
    assert not regex.matches("a" * 4096)
    assert regex.matches("a" * 4096 + "b") is (text[0] == "(")


@pytest.mark.parametrize("text", [".*a.{400}", "(.*a.{20}){15}"])
def test_values_that_lead_to_a_new_state_with_each_character_take_time_in_proportion(text: str) -> None:
    """Every character leads to another set of places: nothing that is kept is of use."""
    number, value = 1, ""
    while len(value) < 8 * 500:
        number = number * 69069 % 2**32
        value += "ab"[number >> 24 & 1]
    assert growth(lambda size: Regex(text).matches(value[:size]), 500) < IN_PROPORTION


def test_what_is_kept_of_the_values_stays_small() -> None:
    regex = Regex(r"\w+-(.*a.{9}|\d{3}).*")
    regex.matches("x-b")
    tracemalloc.start()
    for number in range(30_000):
        regex.matches(f"é{chr(0x4E00 + number % 20_000)}-{number:b}".translate({48: "a", 49: "b"}))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000


SYNTAX = [
    ("a[", "unterminated character set at position 1"),
    ("(a", "missing ), unterminated subpattern at position 0"),
    ("a{99999999999999999999}", "the repetition number is too large"),
    ("(" * 5000 + "a" + ")" * 5000, "its groups are nested too deeply"),
]
UNSUPPORTED = [
    (r"(a)\1", r"'\1' at position 3"),
    (r"(?P<x>a)(?P=x)", "'(?P=' at position 8"),
    ("a(?=b)b", "'(?=' at position 1"),
    ("a(?!b).", "'(?!' at position 1"),
    ("a(?<=a)b", "'(?<=' at position 1"),
    ("a(?<!b)b", "'(?<!' at position 1"),
    ("(?i)a", "'(?i' at position 0"),
    ("(?i:a)", "'(?i' at position 0"),
    ("(?>a)", "'(?>' at position 0"),
    ("(?#a)", "'(?#' at position 0"),
    ("(a)?(?(1)b|c)", "'(?(' at position 4"),
    ("a*+", "'*+' at position 1"),
    ("a{2}+", "'{2}+' at position 1"),
    (r"a\b", r"'\b' at position 1"),
    (r"a\Bb", r"'\B' at position 1"),
]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [(text, message, "") for text, message in SYNTAX]
    + [(text, f"{what} is not supported", SUPPORTED) for text, what in UNSUPPORTED]
    + [
        (
            text,
            f"{what} is not at an end of the expression",
            "leave it out: the expression must match the whole value anyway",
        )
        for text, what in [
            ("a^b", "'^' at position 1"),
            ("(a$)b", "'$' at position 2"),
            ("(^a)", "'^' at position 1"),
        ]
    ]
    + [
        (
            text,
            "with its repetitions written out it has more than 500 parts",
            "repeat with '*' or '+', or write a list of expressions",
        )
        for text in ["a{501}", "((a{100}){100}){100}", "(a?){99999}", "((){99999}){99999}", "a" * 501]
    ],
    ids=lambda text: text[:20],
)
def test_an_expression_that_cannot_be_used_is_refused_with_the_reason(
    text: str, message: str, hint: str
) -> None:
    with pytest.raises(BadExpressionError) as caught:
        Regex(text)
    assert (str(caught.value), caught.value.hint) == (message, hint)


@pytest.mark.parametrize("text", ["a{499}", "a" * 499, "(a|b)" * 99, "^a|b$", r"\Aa\Z", "a$$"])
def test_an_expression_within_the_limits_is_read(text: str) -> None:
    assert PARTS_LIMIT == 500
    Regex(text)
