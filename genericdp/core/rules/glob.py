r"""Globs: `alternatives_of(text)` are those of one, as regular expressions.

The rules of this file:

* Globs are those of udev: `*`, `?`, `[a-z]`, `[!a-z]`; a backslash takes the next character as it is;
  `|` separates alternatives (udev(7), PATTERNS). As in fnmatch(3) without flags, `*` crosses slashes.
* A device chooses the value, so the time to match one grows with its length and no faster. Between two `*`,
  the first place that fits is as good as any later one, so an atomic group keeps `re` from trying others.
"""

import re
from dataclasses import dataclass

#: Without any of these, a glob is a text.
_SPECIAL = re.compile(r"[*?\[\\|]")


class BadGlobError(ValueError):
    """The text is not a glob; the message tells the operator why."""


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
    """Those of a glob, in order. Most are a text, which is soon read. Raises BadGlobError."""
    if _SPECIAL.search(text) is None:
        return [Alternative(re.escape(text), text, text)]
    return [_alternative(part) for part in _split_alternatives(text)]


def _split_alternatives(text: str) -> list[str]:
    """Split at `|`, but not behind a backslash and not inside `[…]`."""
    parts, current, index = [], "", 0
    while index < len(text):
        char = text[index]
        if char == "\\":
            current += text[index : index + 2]
            index += 2
        elif char == "[":
            end = _class_end(text, index)
            current += text[index : end + 1]
            index = end + 1
        elif char == "|":
            parts.append(current)
            current = ""
            index += 1
        else:
            current += char
            index += 1
    return [*parts, current]


def _class_end(text: str, start: int) -> int:
    """The index where the `[…]` that opens at `start` closes. A `]` in first place is a member."""
    index = start + 1
    if text[index : index + 1] in ("!", "^"):
        index += 1
    if text[index : index + 1] == "]":
        index += 1
    end = text.find("]", index)
    if end < 0:
        raise BadGlobError("'[' without ']'")
    return end


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
            end = _class_end(text, index)
            chunks[-1] += _class_source(text[index + 1 : end])
            index = end
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


def _class_source(members: str) -> str:
    negated = members[:1] in ("!", "^")
    members = members[1:] if negated else members
    source, index = "", 0
    while index < len(members):
        first = last = members[index]
        if members[index + 1 : index + 2] == "-" and index + 2 < len(members):
            last = members[index + 2]
            index += 2
        if first > last:
            raise BadGlobError(f"'[{members}]' is not a set of characters")
        source += re.escape(first) if first == last else f"{re.escape(first)}-{re.escape(last)}"
        index += 1
    return f"[{'^' if negated else ''}{source}]"
