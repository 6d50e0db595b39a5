"""The position of every key and value of a TOML text, so that an error can point at it.

The rules of this file:

* tomli decides what is TOML, but keeps no positions. The scanner looks for them first. Where a text is not
  TOML, it stops, and tomli says what is wrong.
* What is nested too deeply is refused here, before tomli sees it: for a dotted key, tomli 2.0 takes memory
  with the square of its length.
* Time and memory grow with the length of the text and no faster. So no expression here repeats a group.
* A text of 1 MiB has half a million places, and few are ever asked for. So they are numbers in arrays.
"""

import re
from array import array
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass

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


class Positions:
    """The places of all keys and values of one text, by path.

    The headers of an array of tables are keys: `("resource", 0)` is the first `[[resource]]`, and so is
    `("resource",)`, the array itself.

    Each path is a numbered node of a tree. Node 0 is the document; others come after the one they are in.
    """

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._lines = array("I", [0])
        self._lines.extend(match.end() for match in re.finditer("\n", text))
        self._names: dict[str, int] = {}
        # Of each node: what contains it, with its name or index there; where its key is; where its value is.
        self._links, self._keys, self._values = array("Q", [0]), array("Q", [0]), array("Q", [0])
        self._found_last: dict[int, int] = {}

    def place(self, path: Path, *, of_key: bool) -> Span | None:
        """Where the value at a path is, or the last key of the path; None if the text has no such place.

        An index has no key unless it is that of a header; what is only part of headers has neither.
        """
        node = 0
        with suppress(ValueError):
            for part in path:
                node = self._child(node, part)
            if place := (self._keys if of_key else self._values)[node]:
                return self.span(place >> 32, place & 0xFFFFFFFF)
        return None

    def add(self, parent: int, part: str | int) -> int:
        """A new node in this one."""
        self._links.append(self._link(parent, part))
        self._keys.append(0)
        self._values.append(0)
        return len(self._links) - 1

    def mark(self, node: int, start: int, end: int, *, is_key: bool = False) -> None:
        """Say between which offsets a value or a key is. The first of several places counts."""
        places = self._keys if is_key else self._values
        places[node] = places[node] or start << 32 | end

    def span(self, start: int, end: int) -> Span:
        """What is between two offsets, as far as it is on the first line."""
        line = bisect_right(self._lines, start) - 1
        line_end = self._lines[line + 1] - 1 if line + 1 < len(self._lines) else self._length
        stop = min(end, line_end)
        return Span(line + 1, start - self._lines[line] + 1, max(1, stop - start))

    def _link(self, parent: int, part: str | int) -> int:
        number = 2 * part if isinstance(part, int) else 2 * self._names.setdefault(part, len(self._names)) + 1
        return parent << 32 | number

    def _child(self, parent: int, part: str | int) -> int:
        """The number of a child node. Raises ValueError if the text has no such place."""
        link = self._link(parent, part)
        # Places are asked for in their order: to begin at the parent each time would take long.
        try:
            found = self._links.index(link, self._found_last.get(parent, parent))
        except ValueError:
            found = self._links.index(link, parent)
        self._found_last[parent] = found
        return found


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
        self.found = Positions(text)
        #: What headers and dotted keys go through: a node and a name in it -> the node of that name.
        self.tables: dict[tuple[int, str], int] = {}
        #: An array of tables -> how many it has so far, and the node of the last one.
        self.elements: dict[int, tuple[int, int]] = {}

    def scan(self) -> None:
        table, depth = 0, 0
        while self._skip_blank():
            if self.text[self.at] == "[":
                table, depth = self._header()
            else:
                self._pair(table, depth)

    def _header(self) -> tuple[int, int]:
        """The node of the table that a header begins, and its depth."""
        start = self.at
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        node, depth = 0, 0
        *tables, (last, _, _) = self._names(0)
        for name, _, _ in tables:
            node, depth = self._table(node, name), depth + 1
            if node in self.elements:
                (_, node), depth = self.elements[node], depth + 1
        node, depth = self._table(node, last), depth + 1
        self._expect("]]" if is_array else "]")
        if is_array:
            self.found.mark(node, start, self.at, is_key=True)
            count, _ = self.elements.get(node, (0, node))
            self.elements[node] = count + 1, self.found.add(node, count)
            (_, node), depth = self.elements[node], depth + 1
        if depth > DEPTH_LIMIT:
            raise TooDeepError(self.found.span(start, start + 1))
        self.found.mark(node, start, self.at, is_key=True)
        return node, depth

    def _pair(self, table: int, depth: int) -> None:
        *tables, (last, start, end) = self._names(depth)
        for name, *place in tables:
            table = self._table(table, name)
            self.found.mark(table, *place, is_key=True)
        node = self.found.add(table, last)
        self.found.mark(node, start, end, is_key=True)
        self._expect("=")
        self._value(node, depth + len(tables) + 1)

    def _table(self, parent: int, name: str) -> int:
        """The node of this name, new if there is none yet."""
        if (parent, name) not in self.tables:
            self.tables[parent, name] = self.found.add(parent, name)
        return self.tables[parent, name]

    def _names(self, depth: int) -> list[tuple[str, int, int]]:
        """The names of a dotted key at this depth, with their offsets. Stops behind the last name."""
        names: list[tuple[str, int, int]] = []
        while True:
            self._skip(_SPACE)
            start = self.at
            if depth + len(names) == DEPTH_LIMIT:
                raise TooDeepError(self.found.span(start, start + 1))
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

    def _value(self, node: int, depth: int) -> None:
        self._skip_blank()
        start = self.at
        if depth > DEPTH_LIMIT:
            raise TooDeepError(self.found.span(start, start + 1))
        if self._string():
            pass
        elif self.text.startswith("[", start):
            self._array(node, depth)
        elif self.text.startswith("{", start):
            self._inline_table(node, depth)
        else:
            scalar = _SCALAR.match(self.text, start)
            if scalar is None:
                raise _NotTomlError
            # Not all of Python's white space: what begins a scalar has to be passed.
            self.at = start + len(scalar.group().rstrip(" \t\r"))
        self.found.mark(node, start, self.at)

    def _array(self, node: int, depth: int) -> None:
        self.at += 1
        index = 0
        while not self._closed_by("]"):
            self._value(self.found.add(node, index), depth + 1)
            index += 1

    def _inline_table(self, node: int, depth: int) -> None:
        self.at += 1
        while not self._closed_by("}"):
            self._pair(node, depth)

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


def _unescaped(quoted: str) -> str:
    """The name that a basic string stands for."""
    try:
        return next(iter(tomli.loads(f"{quoted} = 0")))
    except tomli.TOMLDecodeError:
        raise _NotTomlError from None
