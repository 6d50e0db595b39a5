"""A value in a file that an operator wrote, and the mistakes found in it.

The rules of this file:

* Reading a value either gives something in which nothing can be wrong or raises `Mistake`.
* The reader of a table or a list catches the mistakes of its parts, so that one run finds all of them,
  and a misspelt key is not also a missing one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from genericdp.core.reading.positions import Path, Positions
from genericdp.errors import Location, Problem

T = TypeVar("T")


class Mistake(Exception):  # noqa: N818  (the mistake is the operator's, not a defect)
    """Something wrong with a value, or with its key (`on_key`)."""

    def __init__(self, at: "At", message: str, hint: str = "", *, on_key: bool = False) -> None:
        super().__init__(message)
        self.at = at
        self.message = message
        self.hint = hint
        self.on_key = on_key


@dataclass(slots=True)
class Source:
    """The text of one file, the places of what is in it, and the problems found so far."""

    file: str
    text: str
    positions: Positions
    problems: list[Problem] = field(default_factory=list)

    def location(self, path: Path, *, on_key: bool = False) -> Location:
        """Where a value (or its key) is; for something that is not written, where its table begins."""
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
    """A line of a text, counted from 1, without its end; "" for a line that does not exist."""
    lines = text.split("\n")
    return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else ""


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

    def attempt(self, read: Callable[["At"], T]) -> T | None:
        """What `read` returns, or None after noting its mistake."""
        try:
            return read(self)
        except Mistake as mistake:
            self.source.note(mistake)
            return None
