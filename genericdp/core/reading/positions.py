"""The position of every key and value of a TOML text, so that an error can point at it.

tomli decides what is TOML, but keeps no positions. This scanner walks a text that tomli has accepted;
because the text is valid, the scanner only has to find where each thing begins and ends.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field

import tomli

#: Where something is in the parsed document: keys, and indexes of arrays.
Path = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2}(?!"))'
    r"|'''.*?'''(?:'{0,2}(?!'))"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]\}#\n]*")


@dataclass(frozen=True, slots=True)
class Span:
    """Line and column from 1; `length` characters on that line."""

    line: int
    column: int
    length: int


@dataclass(frozen=True, slots=True)
class Positions:
    """The places of all keys and values of one text, by path.

    The headers of an array of tables are keys: `("resource", 0)` is the first `[[resource]]`.
    """

    keys: dict[Path, Span] = field(default_factory=dict)
    values: dict[Path, Span] = field(default_factory=dict)


def find(text: str) -> Positions:
    """The positions in a text that tomli accepts."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        # tomli reads CRLF as LF; columns do not change, because CR ends its line.
        self.text = text
        self.at = 0
        self.found = Positions()
        self.tables: dict[Path, int] = {}
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def scan(self) -> Positions:
        prefix: Path = ()
        while self._skip(_BLANK) < len(self.text):
            if self.text[self.at] == "[":
                prefix = self._header()
            else:
                self._pair(prefix)
        return self.found

    def _header(self) -> Path:
        start = self.at
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        path: Path = ()
        names = self._names()
        for index, (name, _, _) in enumerate(names):
            path = (*path, name)
            if index < len(names) - 1 and path in self.tables:
                path = (*path, self.tables[path])
        self.at = self.text.index("]", self.at) + (2 if is_array else 1)
        if is_array:
            self.tables[path] = self.tables.get(path, -1) + 1
            path = (*path, self.tables[path])
        self.found.keys[path] = self._span(start, self.at)
        return path

    def _pair(self, prefix: Path) -> None:
        path = prefix
        for name, start, end in self._names():
            path = (*path, name)
            self.found.keys.setdefault(path, self._span(start, end))
        self.at = self.text.index("=", self.at) + 1
        self._value(path)

    def _names(self) -> list[tuple[str, int, int]]:
        """The names of a dotted key with their offsets. Stops behind the last name."""
        names: list[tuple[str, int, int]] = []
        while True:
            self._skip(_SPACE)
            start = self.at
            found = _STRING.match(self.text, start) or _BARE_KEY.match(self.text, start)
            if found is None:  # pragma: no cover  (the text is valid)
                raise AssertionError(f"no key at offset {start}")
            raw = found.group()
            name = next(iter(tomli.loads(f"{raw} = 0"))) if raw[0] in "\"'" else raw
            names.append((name, start, found.end()))
            self.at = found.end()
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return names
            self.at += 1

    def _value(self, path: Path) -> None:
        self._skip(_BLANK)
        start = self.at
        string = _STRING.match(self.text, start)
        if string is not None:
            self.at = string.end()
        elif self.text[start] == "[":
            self._array(path)
        elif self.text[start] == "{":
            self._inline_table(path)
        else:
            scalar = _SCALAR.match(self.text, start)
            self.at = start + len(scalar.group().rstrip()) if scalar else start
        self.found.values[path] = self._span(start, self.at)

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while self.text[self._skip(_BLANK)] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._value((*path, index))
            index += 1
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while self.text[self._skip(_BLANK)] != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._pair(path)
        self.at += 1

    def _skip(self, what: re.Pattern[str]) -> int:
        found = what.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def _span(self, start: int, end: int) -> Span:
        line = bisect_right(self.lines, start) - 1
        line_end = self.text.find("\n", start)
        stop = min(end, line_end if line_end >= 0 else len(self.text))
        return Span(line + 1, start - self.lines[line] + 1, max(1, stop - start))
