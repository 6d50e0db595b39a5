"""A value in a file that an operator wrote, and the mistakes found in it.

The rules of this file:

* Reading a value either gives something in which nothing can be wrong or raises `Mistake`.
* Whoever reads a table or a list catches the mistakes of its parts, so that all of them are found
  in one run, and a misspelt key is not also a missing one.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import tomli

from genericdp.core.reading.positions import Path, Positions, find
from genericdp.errors import Location, Problem

T = TypeVar("T")


class Mistake(Exception):  # noqa: N818  (it is the operator's word, not an error of ours)
    """Something wrong with a value, or with its key (`on_key`)."""

    def __init__(self, at: "At", message: str, hint: str = "", *, on_key: bool = False) -> None:
        super().__init__(message)
        self.at = at
        self.message = message
        self.hint = hint
        self.on_key = on_key


@dataclass(slots=True)
class Source:
    """One file's text, where things stand in it, and the problems found so far."""

    file: str
    text: str
    positions: Positions
    problems: list[Problem] = field(default_factory=list)

    def location(self, path: Path, *, on_key: bool = False) -> Location:
        """Where a value (or its key) stands; for what is not written, where its table begins."""
        first, second = self.positions.values, self.positions.keys
        if on_key:
            first, second = second, first
        while path:
            span = first.get(path) or second.get(path)
            if span is not None:
                return Location(self.file, span.line, span.column, span.length)
            path = path[:-1]
        return Location(self.file, 1)

    def note(self, mistake: Mistake) -> None:
        location = self.location(mistake.at.path, on_key=mistake.on_key)
        self.problems.append(
            Problem(location, mistake.message, mistake.hint, line_of(self.text, location.line))
        )


def line_of(text: str, number: int) -> str:
    """A line of a text, counted from 1, without its end; "" when there is none."""
    lines = text.split("\n")
    return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class At:
    """A value of a file and where it is."""

    source: Source
    path: Path
    value: Any

    def child(self, key: str | int) -> "At":
        return At(self.source, (*self.path, key), self.value[key])

    def children(self) -> Iterable["At"]:
        """The elements of an array."""
        return (self.child(index) for index in range(len(self.value)))

    @property
    def key(self) -> str:
        """The key that the value belongs to, for messages: `product` for `product[1]` too."""
        return next((part for part in reversed(self.path) if isinstance(part, str)), "")

    def attempt(self, read: Callable[["At"], T]) -> T | None:
        """What `read` makes of it, or None after noting the mistake."""
        try:
            return read(self)
        except Mistake as mistake:
            self.source.note(mistake)
            return None


@dataclass(frozen=True, slots=True)
class Key:
    """A key that may stand in a table: how it is read, its default, what it is for.

    schema is the JSON Schema of what may be written. A required key has no default.
    """

    name: str
    read: Callable[[At], Any]
    doc: str
    schema: Mapping[str, Any]
    default: Any = None
    required: bool = False


def read_table(at: At, keys: Iterable[Key], what: str) -> dict[str, Any] | None:
    """The values of a table by key, defaults filled in; None when something is wrong with it.

    Raises Mistake when it is no table.
    """
    if not isinstance(at.value, dict):
        raise Mistake(at, f"'{at.key}' must be a table, not {kind_of(at.value)}")
    known = {key.name: key for key in keys}
    before = len(at.source.problems)
    values: dict[str, Any] = {}
    for name in at.value:
        child = at.child(name)
        key = known.get(name)
        if key is None:
            hint = nearest(name, known) or f"the keys are {listing(known)}"
            at.source.note(Mistake(child, f"unknown key '{name}' in {what}", hint, on_key=True))
        else:
            values[name] = child.attempt(key.read)
    misspelt = len(at.source.problems) > before
    for name, key in known.items():
        if name in at.value:
            continue
        if key.required and not misspelt:
            at.source.note(Mistake(at, f"{what} has no '{name}'", key.doc, on_key=True))
        values[name] = key.default
    return None if len(at.source.problems) > before else values


def read_list(at: At, read: Callable[[At], T | None]) -> tuple[T, ...]:
    """The elements of an array; those with mistakes are noted and left out. Raises Mistake."""
    if not isinstance(at.value, list):
        raise Mistake(at, f"'{at.key}' must be a list, not {kind_of(at.value)}")
    read_ones = [child.attempt(read) for child in at.children()]
    return tuple(each for each in read_ones if each is not None)


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean …?`, or "" when nothing is near."""
    known = list(known)
    part = next((each for each in known if word in each.split("_")), None)
    if part is not None:
        return f"did you mean '{part}'?"
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean '{found[0]}'?" if found else ""


def listing(words: Iterable[str]) -> str:
    """`'a', 'b' and 'c'`."""
    quoted = [f"'{word}'" for word in words]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}" if len(quoted) > 1 else "".join(quoted)


def kind_of(value: Any) -> str:
    """What a TOML value is, in words."""
    match value:
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string '{value}'"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"


_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_TOO_LARGE = "not TOML: a whole number has up to 64 bits"
#: What int() does not read (sys.int_info.default_max_str_digits).
_LONG_NUMBER = re.compile(r"[0-9_]{4301,}")
_UNQUOTED = re.compile(
    r"(?:=\s*\[?|,)\s*(?P<word>0[0-9A-Fa-f]+|[0-9]+[A-Za-z_][\w.*-]*|[A-Za-z_][\w.*-]*)\s*(?:[,\]}#]|$)"
)
_TOML_WORDS = ("true", "false", "inf", "nan")


def parse_toml(file: str, text: str) -> tuple[At | None, tuple[Problem, ...]]:
    """The document of a TOML text, or the one problem why it is none."""
    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        return None, (_syntax_problem(file, text, str(error)),)
    except ValueError:  # Python reads no decimal number of so many digits
        return None, (_number_problem(file, text),)
    at = At(Source(file, text, find(text)), (), document)
    for number in _beyond_64_bits(at):
        at.source.note(Mistake(number, _TOO_LARGE))
    return (None if at.source.problems else at), tuple(at.source.problems)


def _beyond_64_bits(at: At) -> Iterator[At]:
    """The numbers that are none of TOML's, though tomli reads them."""
    if isinstance(at.value, int) and not -(1 << 63) <= at.value < 1 << 63:
        yield at
    elif isinstance(at.value, dict | list):
        for key in at.value if isinstance(at.value, dict) else range(len(at.value)):
            yield from _beyond_64_bits(at.child(key))


def _number_problem(file: str, text: str) -> Problem:
    found = _LONG_NUMBER.search(text)
    before = text[: found.start()] if found else ""
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    return Problem(Location(file, line, column), _TOO_LARGE)


def _syntax_problem(file: str, text: str, message: str) -> Problem:
    # tomli 2.0 has the position in its text alone, so the text it is for every version.
    found = _POSITION.search(message)
    lines = text.split("\n")
    if found and found.group(1):
        line, column = int(found.group(1)), int(found.group(2))
    else:
        line = max((number for number, each in enumerate(lines, 1) if each.strip()), default=1)
        column = len(lines[line - 1].rstrip()) + 1
    source = line_of(text, line)
    # What most often makes a line no TOML is an id without quotes; the reader's own words about it
    # ("unclosed inline table") lead astray.
    for unquoted in _UNQUOTED.finditer(source):
        word = unquoted.group("word")
        if word not in _TOML_WORDS:
            place = Location(file, line, unquoted.start("word") + 1, len(word))
            return Problem(place, f"not TOML: '{word}' is not in quotes", f'write "{word}"', source)
    words = _POSITION.sub("", message)
    return Problem(Location(file, line, column), f"not TOML: {words[:1].lower()}{words[1:]}", "", source)
