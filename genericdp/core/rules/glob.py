r"""Globs: `alternatives_of(text)` are those of one, as regular expressions.

The rules of this file:

* Globs are those of udev: `*`, `?`, `[a-z]`, `[!a-z]`, `[[:digit:]]`; a backslash takes the next character as
  it is, also in `[…]`; `|` separates alternatives (udev(7), PATTERNS). As in fnmatch(3) without flags, `*`
  crosses slashes. An empty range, an unknown class, and a class as the end of a range are refused.
* A device chooses the value, so the time to match one grows with its length and no faster. Between two `*`,
  the first place that fits is as good as any later one, so an atomic group keeps `re` from trying others.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from genericdp.core.words import listing, nearest

#: Without any of these, a glob is a text.
_SPECIAL = re.compile(r"[*?\[\\|]")


#: The classes of characters, as in the C locale, in which udev runs.
_CLASSES: Mapping[str, str] = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}

_CLASS = re.compile(r"\[:(\w*):\]")


class BadGlobError(ValueError):
    """The text is not a glob; the message tells the operator why.

    hint  what to write instead, or ""
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Alternative:
    """One alternative of a glob.

    source     as a regular expression
    literal    the only value that it holds for, or None
    beginning  what every value begins with that it holds for
    """

    source: str
    literal: str | None
    beginning: str


def alternatives_of(text: str) -> list[Alternative]:
    """The alternatives of a glob, in order. Most are plain text, which is read fast. Raises BadGlobError."""
    if _SPECIAL.search(text) is None:
        return [Alternative(re.escape(text), text, text)]
    return [_alternative(part) for part in split_alternatives(text)]


def split_alternatives(text: str) -> list[str]:
    """Split a glob at `|`, but not behind a backslash and not inside `[…]`. Raises BadGlobError."""
    parts, current, index = [], "", 0
    while index < len(text):
        char = text[index]
        if char == "\\":
            current += text[index : index + 2]
            index += 2
        elif char == "[":
            _, end = _set(text, index)
            current += text[index:end]
            index = end
        elif char == "|":
            parts.append(current)
            current = ""
            index += 1
        else:
            current += char
            index += 1
    return [*parts, current]


def _alternative(text: str) -> Alternative:
    chunks, literal, index = [""], "", 0  # chunks: what stands between the stars
    beginning: str | None = None
    while index < len(text):
        char = text[index]
        if char in "*?[" and beginning is None:
            beginning = literal
        if char == "*":
            chunks.append("")
        elif char == "?":
            chunks[-1] += "."
        elif char == "[":
            source, end = _set(text, index)
            chunks[-1] += source
            index = end - 1
        else:
            if char == "\\":
                index += 1
                if index == len(text):
                    raise BadGlobError("nothing follows the backslash")
                char = text[index]
            chunks[-1] += re.escape(char)
            literal += char
        index += 1
    first, *others = chunks
    start = literal if beginning is None else beginning
    if not others:
        return Alternative(first, literal if first == re.escape(literal) else None, start)
    between = "".join(f"(?>.*?{chunk})" for chunk in others[:-1] if chunk)
    return Alternative(f"{first}{between}.*{others[-1]}", None, start)


def _set(text: str, start: int) -> tuple[str, int]:
    """The `[…]` that opens at `start`, as a regular expression, and where it ends."""
    index = start + 1
    negated = text.startswith(("!", "^"), index)
    first = index = index + negated
    source = ""
    # A `]` in first place is a member.
    while index == first or not text.startswith("]", index):
        named = _CLASS.match(text, index)
        if named is not None:
            source += _class(named)
            index = named.end()
            continue
        least, index = _member(text, index)
        source += re.escape(least)
        if text.startswith("-", index) and not text.startswith("]", index + 1):
            ends_in_a_class = _CLASS.match(text, index + 1) is not None
            most, index = _member(text, index + 1)
            if least > most or ends_in_a_class:
                raise BadGlobError(f"'{least}-{most}' is not a range of characters")
            source += f"-{re.escape(most)}"
    return f"[{'^' if negated else ''}{source}]", index + 1


def _class(named: re.Match[str]) -> str:
    name = named[1].lower()  # some values are compared in capitals, and their globs turned into these
    if name not in _CLASSES:
        hint = nearest(name, _CLASSES) or f"the classes are {listing(_CLASSES)}"
        raise BadGlobError(f"'{named[0]}' is not a class of characters", hint)
    return _CLASSES[name]


def _member(text: str, index: int) -> tuple[str, int]:
    """The character of a `[…]` that is written at `index`, and where the next one is."""
    if text.startswith(("[.", "[="), index):
        message = f"'{text[index : index + 2]}' is not supported in '[…]'"
        raise BadGlobError(message, "write only the characters themselves; put '[' last")
    if text.startswith("\\", index):
        index += 1
    if index >= len(text):
        raise BadGlobError("'[' without ']'")
    return text[index], index + 1
