"""What a condition wants of a value, compiled: `Pattern.holds(value)`.

The rules of this file:

* Patterns are compiled when the rule file is parsed, so that matching cannot fail and is cheap.
* A device chooses its values, so the time to match one grows with its length and no faster: see `glob` and
  `regex`.
* Two patterns are equal if they are shown as the same text; the compiled form is not compared. So what means
  something else is shown as another text.
* A property that is missing matches no glob, no regular expression and no bound, so `not` holds for it.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from genericdp.core.rules.expression import BadExpressionError
from genericdp.core.rules.glob import BadGlobError, alternatives_of
from genericdp.core.rules.regex import Regex

Test = Callable[[str | None], bool]

#: The longest glob and the longest regular expression. A snapshot keeps no longer value of a device.
LENGTH_LIMIT = 4096

#: A longer number than any that the kernel has is none.
_NUMBER = re.compile(r"([+-]?)(?:0[xX]([0-9A-Fa-f]{1,32})|([0-9]{1,32}(?:\.[0-9]{1,32})?))")
_HEX_NUMBER = re.compile(r"(?:0[xX])?[0-9A-Fa-f]{1,32}")


class BadPatternError(ValueError):
    """The text is not a pattern; the message tells the operator why.

    hint  what to write instead, or ""
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a condition wants of a value.

    text        how it is shown
    is_compound `not` before the text would not refer to all of it
    literals    the only values that it can hold for, so that rules can be indexed by them; None: unknown
    beginnings  every value that it holds for begins with one of these; None: it may hold for any value
    parts       those of a regular expression, with its repetitions written out
    """

    text: str
    holds: Test = field(compare=False, repr=False)
    is_compound: bool = field(default=False, compare=False, repr=False, kw_only=True)
    literals: frozenset[str] | None = field(default=None, compare=False, repr=False)
    beginnings: tuple[str, ...] | None = field(default=None, compare=False, repr=False)
    parts: int = field(default=0, compare=False, repr=False)


def glob(text: str, *, fold: Callable[[str], str] | None = None) -> Pattern:
    """A glob with `|` alternatives. `fold` normalises the values and the literals (hex ids); what is not
    a literal must be written in the form that `fold` gives, in which case does not matter.

    Raises BadPatternError for a bad `[…]` or a backslash at the end.
    """
    _check_length(text)
    folded = fold or (lambda value: value)
    try:
        alternatives = alternatives_of(text)
    except BadGlobError as error:
        raise BadPatternError(f"bad glob: {error}", error.hint) from None
    literals = [each.literal for each in alternatives if each.literal is not None]
    beginnings = tuple(each.beginning for each in alternatives) if fold is None else None
    if len(literals) == len(alternatives):
        wanted = frozenset(folded(literal) for literal in literals)
        if fold is None:
            return Pattern(repr_text(text), lambda value: value in wanted, wanted, beginnings)
        return Pattern(repr_text(text), lambda value: value is not None and folded(value) in wanted)
    union = re.compile(
        "|".join(
            each.source if each.literal is None else re.escape(folded(each.literal)) for each in alternatives
        ),
        re.DOTALL if fold is None else re.DOTALL | re.IGNORECASE,
    )
    return Pattern(
        repr_text(text),
        lambda value: value is not None and union.fullmatch(folded(value)) is not None,
        beginnings=beginnings,
    )


def regex(text: str) -> Pattern:
    """A regular expression that must match the whole value. Raises BadPatternError."""
    _check_length(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about later Pythons are no use to an operator
            compiled = Regex(text)
    except BadExpressionError as error:
        raise BadPatternError(f"bad regular expression: {error}", error.hint) from None
    return Pattern(
        f"regex {text!r}",
        lambda value: value is not None and compiled.matches(value),
        beginnings=(compiled.beginning,),
        parts=compiled.parts,
    )


def _check_length(text: str) -> None:
    if len(text) > LENGTH_LIMIT:
        message = f"a pattern has at most {LENGTH_LIMIT} characters, not {len(text)}"
        raise BadPatternError(message, 'a list of patterns may be longer: ["…", "…"]')


def exactly(text: str) -> Pattern:
    """Holds for this value, whatever its characters mean in a glob."""
    return Pattern(repr_text(text), lambda value: value == text, frozenset({text}), (text,))


def exists(wanted: bool) -> Pattern:
    """Holds when there is a value (or, with False, when there is none)."""
    return Pattern("exists" if wanted else "absent", lambda value: (value is not None) is wanted)


def negation(pattern: Pattern) -> Pattern:
    """Holds when the pattern does not, and so for a missing value (like `!=` in udev's rules)."""
    inner = pattern.holds
    text = f"({pattern.text})" if pattern.is_compound else pattern.text
    return Pattern(f"not {text}", lambda value: not inner(value))


def between(least: float | None, most: float | None, *, hex_id: bool = False) -> Pattern:
    """Holds for a text that is a number, decimal or hex with `0x`, within these bounds; one may be None.

    hex_id  the text is hex without `0x`, too
    """
    number_of = _hex_number if hex_id else _number

    def holds(value: str | None) -> bool:
        number = None if value is None else number_of(value.strip())
        return number is not None and (least is None or number >= least) and (most is None or number <= most)

    bounds = {"at least": least, "at most": most}
    words = [f"{word} {bound}" for word, bound in bounds.items() if bound is not None]
    return Pattern(" and ".join(words), holds, is_compound=len(words) > 1)


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, in_hex, decimal = found.groups()
    number = int(in_hex, 16) if in_hex else float(decimal) if "." in decimal else int(decimal)
    return -number if sign == "-" else number


def _hex_number(text: str) -> float | None:
    return int(text, 16) if _HEX_NUMBER.fullmatch(text) else None


def any_of(patterns: Iterable[Pattern]) -> Pattern:
    """Holds when one of the patterns does; at least one is needed. Each is looked at once, in order.

    Those with literals need not be kept: a list may have very many.
    """
    texts: list[str] = []
    beginnings: list[str] | None = []
    wanted: set[str] = set()
    tests: list[Test] = []
    pattern = None
    for pattern in patterns:
        texts.append(pattern.text)
        if pattern.literals is None:
            tests.append(pattern.holds)
        else:
            wanted |= pattern.literals
        if beginnings is not None and pattern.beginnings is not None:
            beginnings += pattern.beginnings
        else:
            beginnings = None
    if len(texts) == 1 and pattern is not None:
        return pattern
    text, literals = " or ".join(texts), frozenset(wanted)
    known = None if beginnings is None else tuple(beginnings)
    if not tests:
        return Pattern(text, lambda value: value in literals, literals, known, is_compound=True)

    def holds(value: str | None) -> bool:
        return value in literals or any(test(value) for test in tests)

    return Pattern(text, holds, beginnings=known, is_compound=True)


def repr_text(text: str) -> str:
    """The pattern in quotes, as messages and `explain` show it."""
    escaped = text.replace("'", r"\'")
    return f"'{escaped}'"


def hex_id(value: str, digits: int) -> str:
    """A hex id in its one form: lower case, no 0x, leading zeros."""
    return value.strip().lower().removeprefix("0x").zfill(digits)
