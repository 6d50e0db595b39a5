"""A table of a file, key by key.

The rules of this file:

* A key is declared with `keys_of` for the dataclass that the table becomes, so that a key cannot be
  declared and then forgotten. The field's default is the key's; a key whose field has none is required.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from genericdp.core.reading.kind import Kind, Schema
from genericdp.core.reading.source import At, Mistake
from genericdp.core.words import kind_of, listing, nearest


@dataclass(frozen=True, slots=True)
class Key:
    """A key that may stand in a table: what may be written, and what it is for.

    field is where the value arrives; "" when it has the key's name. `keys_of` adds the default that the
    field has, or that the key is required.
    """

    name: str
    kind: Kind[Any]
    doc: str
    field: str = ""
    default: Any = None
    required: bool = False

    @property
    def schema(self) -> Schema:
        return self.kind.schema


def keys_of(of: type, *keys: Key) -> tuple[Key, ...]:
    """The keys whose values arrive in fields of the dataclass `of`.

    Raises TypeError for a key without a field, because `check` would accept it and it would do nothing,
    and for two keys with one field, because one of them would do nothing.
    """
    fields = {field.name: field for field in dataclasses.fields(of)}
    bound = tuple(_bound(key, of.__name__, fields) for key in keys)
    first: dict[str, str] = {}
    for key in bound:
        other = first.setdefault(key.field, key.name)
        if other != key.name:
            raise TypeError(
                f"the keys '{other}' and '{key.name}' have the same field '{key.field}' of {of.__name__}"
            )
    return bound


def _bound(key: Key, of: str, fields: dict[str, dataclasses.Field[Any]]) -> Key:
    name = key.field or key.name
    if name not in fields:
        raise TypeError(f"{of} has no field '{name}' for the value of the key '{key.name}'")
    default, factory = fields[name].default, fields[name].default_factory
    if factory is not dataclasses.MISSING:
        default = factory()
    if default is dataclasses.MISSING:
        return dataclasses.replace(key, field=name, required=True)
    return dataclasses.replace(key, field=name, default=default)


def read_table(
    at: At, keys: Iterable[Key], what: str, elsewhere: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any] | None:
    """What is written in a table, by field; None after noting mistakes in it.

    elsewhere  keys of another table -> what that table is called

    Raises Mistake for anything but a table.
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
            place = elsewhere.get(name)
            hint = (
                f"it belongs in a {place} table"
                if place
                else nearest(name, known, shown=child.header) or f"the keys are {listing(known)}"
            )
            at.source.note(Mistake(child, f"unknown key '{name}' in {what}", hint, on_key=True))
        else:
            values[key.field or key.name] = child.attempt(key.kind.read)
    if len(at.source.problems) == before:  # a misspelt key is not also a missing one
        for key in known.values():
            if key.required and key.name not in at.value:
                at.source.note(Mistake(at, f"{what} has no '{key.name}'", key.doc, on_key=True))
    return None if len(at.source.problems) > before else values
