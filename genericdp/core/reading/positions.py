"""The position of every key and value of a TOML text, so that an error can point at it.

The rules of this file:

* tomli decides what is TOML, but keeps no positions. The scanner looks for them first. Where a text is not
  TOML, it stops, and tomli says what is wrong.
* What is nested too deeply is refused here, before tomli sees it: for a dotted key, tomli 2.0 takes memory
  with the square of its length.
* Time and memory grow with the length of the text and no faster. So no expression here repeats a group.
"""

import re
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field

import tomli

#: Where something is in the parsed document: keys, and indexes of arrays.
Path = tuple[str | int, ...]

#: The longest path: so many keys and indexes lead to a value.
DEPTH_LIMIT = 32

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"[ \t\r\n]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]\}#\n]+")

#: How a string begins -> what to look for: its end, and what could be mistaken for it.
_STRING_ENDS = {
    '"""': re.compile(r'\\.|"""("{0,2})', re.DOTALL),
    "'''": re.compile(r"'''('{0,2})"),
    '"': re.compile(r'\\.|"|\n'),
    "'": re.compile(r"'|\n"),
}


@dataclass(frozen=True, slots=True)
class Span:
    """Line and column from 1; `length` characters on that line."""

    line: int
    column: int
    length: int


class TooDeepError(Exception):
    """Something is nested deeper than DEPTH_LIMIT; `span` is where."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span


class _NotTomlError(Exception):
    """The scanner cannot go on."""


@dataclass(frozen=True, slots=True)
class Positions:
    """The places of all keys and values of one text, by path.

    The headers of an array of tables are keys: `("resource", 0)` is the first `[[resource]]`, and so is
    `("resource",)`, the array itself.
    """

    keys: dict[Path, Span] = field(default_factory=dict)
    values: dict[Path, Span] = field(default_factory=dict)


def find(text: str) -> Positions:
    """The positions in a text; in one that is not TOML, those before the mistake. Raises TooDeepError."""
    scanner = _Scanner(text)
    with suppress(_NotTomlError):
        scanner.scan()
    return scanner.found


class _Scanner:
    def __init__(self, text: str) -> None:
        # tomli reads CRLF as LF; columns do not change, because CR ends its line.
        self.text = text
        self.at = 0
        self.found = Positions()
        self.tables: dict[Path, int] = {}
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def scan(self) -> None:
        prefix: Path = ()
        while self._skip_blank():
            if self.text[self.at] == "[":
                prefix = self._header()
            else:
                self._pair(prefix)

    def _header(self) -> Path:
        start = self.at
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        path: Path = ()
        names = self._names(0)
        for index, (name, _, _) in enumerate(names):
            path = (*path, name)
            if index < len(names) - 1 and path in self.tables:
                path = (*path, self.tables[path])
        self._expect("]]" if is_array else "]")
        if is_array:
            self.found.keys.setdefault(path, self._span(start, self.at))
            self.tables[path] = self.tables.get(path, -1) + 1
            path = (*path, self.tables[path])
        self._check_depth(path, start)
        self.found.keys[path] = self._span(start, self.at)
        return path

    def _pair(self, prefix: Path) -> None:
        path = prefix
        for name, start, end in self._names(len(prefix)):
            path = (*path, name)
            self.found.keys.setdefault(path, self._span(start, end))
        self._expect("=")
        self._value(path)

    def _names(self, depth: int) -> list[tuple[str, int, int]]:
        """The names of a dotted key at this depth, with their offsets. Stops behind the last name."""
        names: list[tuple[str, int, int]] = []
        while True:
            self._skip(_SPACE)
            start = self.at
            if depth + len(names) == DEPTH_LIMIT:
                raise TooDeepError(self._span(start, start + 1))
            names.append((self._name(), start, self.at))
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return names
            self.at += 1

    def _name(self) -> str:
        start = self.at
        if self._string():
            quoted = self.text[start : self.at]
            if quoted.startswith(("'''", '"""')):
                raise _NotTomlError
            return _unescaped(quoted) if "\\" in quoted and quoted[0] == '"' else quoted[1:-1]
        self._skip(_BARE_KEY)
        if self.at == start:
            raise _NotTomlError
        return self.text[start : self.at]

    def _value(self, path: Path) -> None:
        self._skip_blank()
        start = self.at
        self._check_depth(path, start)
        if self._string():
            pass
        elif self.text.startswith("[", start):
            self._array(path)
        elif self.text.startswith("{", start):
            self._inline_table(path)
        else:
            scalar = _SCALAR.match(self.text, start)
            if scalar is None:
                raise _NotTomlError
            # Not all of Python's white space: what begins a scalar has to be passed.
            self.at = start + len(scalar.group().rstrip(" \t\r"))
        self.found.values[path] = self._span(start, self.at)

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        while not self._closed_by("]"):
            self._value((*path, index))
            index += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while not self._closed_by("}"):
            self._pair(path)

    def _closed_by(self, bracket: str) -> bool:
        """Whether the bracket comes next, or else an element. Skips commas, and the bracket."""
        while self._skip_blank() and self.text[self.at] == ",":
            self.at += 1
        if not self.text.startswith(bracket, self.at):
            return False
        self.at += 1
        return True

    def _string(self) -> bool:
        """Whether a string begins here; skips it."""
        start = self.text[self.at : self.at + 3]
        if start not in ('"""', "'''"):
            start = start[:1]
        ends = _STRING_ENDS.get(start)
        if ends is None:
            return False
        for found in ends.finditer(self.text, self.at + len(start)):
            if found.group().startswith(start):
                self.at = found.end()
                return True
            if found.group() == "\n":
                break
        raise _NotTomlError

    def _skip(self, what: re.Pattern[str]) -> None:
        found = what.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _skip_blank(self) -> bool:
        """Skip white space, line ends and comments. Whether anything follows."""
        self._skip(_BLANK)
        while self.text.startswith("#", self.at):
            end = self.text.find("\n", self.at)
            self.at = end if end >= 0 else len(self.text)
            self._skip(_BLANK)
        return self.at < len(self.text)

    def _expect(self, what: str) -> None:
        if not self.text.startswith(what, self.at):
            raise _NotTomlError
        self.at += len(what)

    def _check_depth(self, path: Path, at: int) -> None:
        if len(path) > DEPTH_LIMIT:
            raise TooDeepError(self._span(at, at + 1))

    def _span(self, start: int, end: int) -> Span:
        line = bisect_right(self.lines, start) - 1
        line_end = self.lines[line + 1] - 1 if line + 1 < len(self.lines) else len(self.text)
        stop = min(end, line_end)
        return Span(line + 1, start - self.lines[line] + 1, max(1, stop - start))


def _unescaped(quoted: str) -> str:
    """The name that a basic string stands for."""
    try:
        return next(iter(tomli.loads(f"{quoted} = 0")))
    except tomli.TOMLDecodeError:
        raise _NotTomlError from None
