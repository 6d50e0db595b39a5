r"""The syntax of regular expressions: from a text to a tree of parts.

The rules of this file:

* Python's `re` decides what is a regular expression and explains mistakes. This parser walks a text that
  `re` accepts, and refuses what cannot be matched in one pass: look-around, back references, atomic
  groups. It also refuses flags, of which nobody needs many.
* The whole value must match. So `^` and `$` are accepted where they change nothing, and nowhere else.
* A set of characters keeps its source text: `[a-z]`, `\d`, `.` and `x` mean what `re` makes of them.
"""

import re
from dataclasses import dataclass

#: One character, or a set of which one character is taken.
_CHARACTERS = re.compile(
    r"\[\^?\]?(?:[^\]\\]|\\.)*\]"
    r"|\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]*\}|0[0-7]{0,2}|[1-3][0-7]{2}|[^1-9AbBzZ])"
    r"|[^\\()|^$]",
    re.DOTALL,
)
_GROUP = re.compile(r"\((?:\?:|\?P<[^>]*>|(?!\?))")
_REPEAT = re.compile(
    r"(?:(?P<sign>[*+?])|\{(?=[0-9,])(?P<least>[0-9]*)(?P<comma>,?)(?P<most>[0-9]*)\})"
    r"(?P<lazy>\??)(?P<possessive>\+?)"
)
_BEGINNING = re.compile(r"(?:\^|\\A)*")
_END = re.compile(r"(?:\$|\\Z)+(?=\||\Z)")
#: What is refused, to quote it: `(?=`, `(?P=`, `\1`, `\b`.
_REFUSED = re.compile(r"\(\?(?:P?[=!>]|<[=!]|P?.)?|\\.|.", re.DOTALL)

#: A set of one character that stands for itself, perhaps behind a backslash.
_ONE = re.compile(r"(?P<plain>[^.\\\[])|\\(?P<escaped>[^A-Za-z0-9])", re.DOTALL)

_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}

SUPPORTED = (
    r"write it with characters, '.', '\d', '\w', '\s', '[…]', '(…)', '|', '*', '+', '?' and '{m,n}' only"
)


class BadExpressionError(ValueError):
    """The text is not a regular expression, or one that cannot be matched in one pass.

    hint  what to write instead, or ""
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set; `source` is the set as a regular expression."""

    source: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts that follow one another."""

    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several parts."""

    options: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part `least` to `most` times; None: any number of times."""

    part: "Part"
    least: int
    most: int | None


Part = Characters | Sequence | Choice | Repeat


def parse(text: str) -> Part:
    """The parts of a regular expression. Raises BadExpressionError."""
    try:
        re.compile(text, re.DOTALL)
        return _Parser(text).choice(outermost=True)
    except (re.error, OverflowError) as error:
        raise BadExpressionError(str(error)) from None
    except RecursionError:
        raise BadExpressionError("its groups are nested too deeply") from None


def beginning(part: Part) -> str:
    """What every value begins with that matches a part."""
    return _beginning(part)[0]


def _beginning(part: Part) -> tuple[str, bool]:
    """What every match of a part begins with, and whether that is all of it."""
    match part:
        case Characters(source=source):
            found = _ONE.fullmatch(source)
            return ("", False) if found is None else (found["plain"] or found["escaped"], True)
        case Sequence(parts=parts):
            text = ""
            for each in parts:
                more, is_all = _beginning(each)
                text += more
                if not is_all:
                    return text, False
            return text, True
        case Choice(options=options):
            first, *others = (_beginning(each)[0] for each in options)
            length = 0
            while length < len(first) and all(each.startswith(first[: length + 1]) for each in others):
                length += 1
            return first[:length], False
        case Repeat(part=repeated, least=least):
            return (_beginning(repeated)[0], False) if least else ("", False)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def choice(self, *, outermost: bool = False) -> Part:
        """Up to the `)` that closes the group, or up to the end."""
        options = [self._sequence(outermost)]
        while self._text.startswith("|", self._at):
            self._at += 1
            options.append(self._sequence(outermost))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, outermost: bool) -> Part:
        parts: list[Part] = []
        if outermost:
            self._take(_BEGINNING)
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if outermost and self._take(_END):
                break
            parts.append(self._repeated())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self) -> Part:
        part = self._single()
        start = self._at
        found = self._take(_REPEAT)
        if found is None:
            return part
        if found["possessive"]:
            raise self._refused(start, found.group())
        if found["sign"]:
            least, most = _SIGNS[found["sign"]]
            return Repeat(part, least, most)
        least = int(found["least"] or 0)
        if found["comma"]:
            return Repeat(part, least, int(found["most"]) if found["most"] else None)
        return Repeat(part, least, least)

    def _single(self) -> Part:
        start = self._at
        if self._take(_GROUP):
            part = self.choice()
            self._at += 1
            return part
        found = self._take(_CHARACTERS)
        if found is not None:
            return Characters(found.group())
        refused = _REFUSED.match(self._text, start)
        raise self._refused(start, refused.group() if refused else "")

    def _take(self, what: re.Pattern[str]) -> re.Match[str] | None:
        found = what.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _refused(self, at: int, what: str) -> BadExpressionError:
        if what in ("^", "$", "\\A", "\\Z", "\\z"):
            return BadExpressionError(
                f"'{what}' at position {at} is not at an end of the expression",
                "leave it out: the expression must match the whole value anyway",
            )
        return BadExpressionError(f"'{what}' at position {at} is not supported", SUPPORTED)
