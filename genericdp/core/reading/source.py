"""A value in a file that an operator wrote, and the mistakes found in it.

The rules of this file:

* Reading a value either gives something in which nothing can be wrong or raises `Mistake`.
* The reader of a table or a list catches the mistakes of its parts, so that one run finds all of them,
  and a misspelt key is not also a missing one.
* A message and a hint that repeat a very long value leave out its middle.
* Nobody corrects more than MISTAKES_LIMIT mistakes at once: then reading ends, and says so.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from genericdp.core.reading.positions import Path, Positions
from genericdp.errors import Location, Problem

T = TypeVar("T")

#: So many mistakes are reported of one file.
MISTAKES_LIMIT = 100

#: So many parts the regular expressions of one file have, with their repetitions written out. They are read
#: in a fraction of a second.
PARTS_LIMIT = 100_000

#: How many characters of a very long message or hint are shown at each end.
_ENDS = 400


class Mistake(Exception):  # noqa: N818  (the mistake is the operator's, not a defect)
    """Something wrong with a value, or with its key (`on_key`)."""

    def __init__(self, at: "At", message: str, hint: str = "", *, on_key: bool = False) -> None:
        super().__init__(message)
        self.at = at
        self.message = message
        self.hint = hint
        self.on_key = on_key


class TooManyMistakesError(Exception):
    """The file has more than MISTAKES_LIMIT mistakes. The problems are noted in its source."""


class Lines:
    """The lines of a text. It is split once, when the first of them is asked for.

    A line is the same string each time: each mistake in it keeps one.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _all(self) -> list[str]:
        return [line.rstrip("\r") for line in self._text.split("\n")]

    def at(self, number: int) -> str:
        """A line, counted from 1, without its end; "" for a line that does not exist."""
        return self._all[number - 1] if 0 < number <= len(self._all) else ""

    @property
    def last(self) -> int:
        """The number of the last line that is not blank; 1 if all are."""
        return max((number for number, each in enumerate(self._all, 1) if each.strip()), default=1)


@dataclass(slots=True)
class Source:
    """The lines of one file, the places of what is in them, and the problems found so far.

    parts  how many parts the regular expressions have that were read so far
    """

    file: str
    lines: Lines
    positions: Positions
    problems: list[Problem] = field(default_factory=list)
    parts: int = 0

    def location(self, path: Path, *, on_key: bool = False) -> Location:
        """Where a value (or its key) is; for something that is not written, where its table begins."""
        place = self.positions.place
        while path:
            span = place(path, of_key=on_key) or place(path, of_key=not on_key)
            if span is not None:
                return Location(self.file, span.line, span.column, span.length)
            path = path[:-1]
        return Location(self.file, 1)

    def note(self, mistake: Mistake) -> None:
        """Add a mistake to the problems. Raises TooManyMistakesError for the one after MISTAKES_LIMIT."""
        self.add(self.location(mistake.at.path, on_key=mistake.on_key), mistake.message, mistake.hint)

    def add(self, location: Location, message: str, hint: str) -> None:
        """Add a problem, as `note` does."""
        if len(self.problems) == MISTAKES_LIMIT:
            self.problems.append(too_many(location))
            raise TooManyMistakesError
        source = self.lines.at(location.line)
        self.problems.append(Problem(location, _brief(message), _brief(hint), source))

    def in_order(self) -> tuple[Problem, ...]:
        """The problems in the order of the lines; last, that there are too many."""
        found, rest = self.problems[:MISTAKES_LIMIT], self.problems[MISTAKES_LIMIT:]
        return (*sorted(found, key=lambda problem: problem.location), *rest)


def _brief(words: str) -> str:
    return words if len(words) <= 2 * _ENDS else f"{words[:_ENDS]}…{words[-_ENDS:]}"


def too_many(location: Location) -> Problem:
    """The problem of a file that has more than MISTAKES_LIMIT mistakes: where the next one is."""
    return Problem(
        location,
        f"the file has more than {MISTAKES_LIMIT} mistakes",
        "correct the others first; the rest of the file has not been checked",
    )


@dataclass(frozen=True, slots=True)
class At:
    """A value in a file, with its place."""

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

    @property
    def header(self) -> str:
        """How the header of this table is written, with {} for its name: `[[resource.{}]]`; {} for a key."""
        place = self.source.location(self.path, on_key=True)
        written = self.source.lines.at(place.line)[place.column - 1 :]
        opening = written[: len(written) - len(written.lstrip("["))][:2]
        if not opening:
            return "{}"
        names = [part for part in self.path[:-1] if isinstance(part, str)]
        return f"{opening}{'.'.join([*names, '{}'])}{']' * len(opening)}"

    def attempt(self, read: Callable[["At"], T]) -> T | None:
        """What `read` returns, or None after noting its mistake."""
        try:
            return read(self)
        except Mistake as mistake:
            self.source.note(mistake)
            return None
