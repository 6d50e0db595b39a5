"""A kind of value: the function that reads it, with the JSON Schema of what may be written.

The rules of this file:

* A reader and its schema belong together. They are paired once, where the reader is, and every key of
  that kind uses the pair.
* The schema accepts whatever the reader accepts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from genericdp.core.reading.source import At, Mistake
from genericdp.core.words import kind_of

T = TypeVar("T")

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """`read` turns one value into something in which nothing can be wrong, or raises Mistake."""

    read: Callable[[At], T]
    schema: Schema


def definition(name: str) -> Schema:
    """A reference to a definition of the schema. Its name is what the manual calls such a value."""
    return {"$ref": f"#/definitions/{name}"}


def read_list(at: At, read: Callable[[At], T | None], hint: str = "") -> tuple[T, ...]:
    """The elements of an array; those with mistakes are noted and left out. Raises Mistake.

    hint  what to write, for anything but an array
    """
    if not isinstance(at.value, list):
        raise Mistake(at, f"'{at.key}' must be a list, not {kind_of(at.value)}", hint)
    elements = [child.attempt(read) for child in at.children()]
    return tuple(each for each in elements if each is not None)


def read_non_empty_list(at: At, read: Callable[[At], T | None]) -> tuple[T, ...]:
    """The same for an array that needs an element. Raises Mistake."""
    if at.value == []:
        raise Mistake(at, f"'{at.key}' must not be an empty list")
    return read_list(at, read)


def list_schema(element: Schema, **more: Any) -> Schema:
    """The schema of an array of such elements."""
    return {"type": "array", "items": element, **more}


def one_or_more(kind: Kind[T]) -> Kind[tuple[T, ...]]:
    """One value of this kind, or a list of them that is not empty."""

    def read(at: At) -> tuple[T, ...]:
        return read_non_empty_list(at, kind.read) if isinstance(at.value, list) else (kind.read(at),)

    return Kind(read, {"anyOf": [kind.schema, list_schema(kind.schema, minItems=1)]})
