"""Texts with `{fields}` in rule files: container paths, envs, mounts, annotations, CDI names.

The rules of this file:

* A template is parsed with the rule file. Expanding it can fail only for a missing property.
* Every value passes through the cleaner of the place where it goes (`hostile`), so that no device can
  leave a directory or break a line, whatever it calls itself.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from genericdp.core.rules.name import PROPERTY_NAME

#: The fields besides udev properties, and what each becomes.
FIELDS: Mapping[str, str] = {
    "devname": "the name of the node below /dev",
    "index": "0, 1, … over the devices of one container",
    "id": "the id of the device",
    "link": "the path of the node's stable link",
    "gid": "the number of the group that owns the node",
    "sysname": "the kernel's name of what the nodes have in common, or of the node itself",
}

#: Fields that are always there and made of trusted or already cleaned parts; two of them may contain slashes.
_CLEAN_FIELDS = frozenset({"devname", "index", "id", "link"})

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FIELD = re.compile(r"([A-Za-z_][A-Za-z0-9_.:-]*)(?:\|(.*))?", re.DOTALL)


class BadTemplateError(ValueError):
    """The text is not a template. `field` is the name of the unknown field, or "" for a lonely brace."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class MissingPropertyError(LookupError):
    """The device lacks a property that the template names without a default."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class Field:
    """A `{name}` or `{name|default}`; with the default None, the property is required."""

    name: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: literal texts and fields in turn. `text` is what the operator wrote."""

    text: str
    parts: tuple[str | Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its fields, in order."""
        return tuple(part for part in self.parts if isinstance(part, Field))

    @property
    def beginning(self) -> str:
        """What it begins with, whatever the values of its fields."""
        first = self.parts[0] if self.parts else ""
        return "" if isinstance(first, Field) else first

    @property
    def names_properties(self) -> bool:
        """Whether it has a value that a device may have chosen."""
        return any(field.name not in FIELDS for field in self.fields)

    def expand(
        self, rows: int, column: Callable[[str], Sequence[str]], clean: Callable[[str], str]
    ) -> list[str]:
        """The text for each of so many rows, with every field replaced. Raises MissingPropertyError.

        `column` returns the values of a field, one for each row, "" where there is none. Expanding row by
        row would take four times as long, and a pod may wait for thousands of rows.
        """
        columns = [
            repeat(part, rows) if isinstance(part, str) else _texts(part, column(part.name), clean)
            for part in self.parts
        ]
        return list(map("".join, zip(repeat("", rows), *columns, strict=True)))


def _texts(field: Field, values: Sequence[str], clean: Callable[[str], str]) -> Sequence[str]:
    if field.name in _CLEAN_FIELDS:
        return values
    if field.default is None and not all(values):
        raise MissingPropertyError(field.name)
    return [clean(value or field.default or "") for value in values]


def parse(text: str) -> Template:
    """A template from its text. `{{` and `}}` are literal braces. Raises BadTemplateError."""
    parts: list[str | Field] = []
    literal, at = "", 0
    for token in _TOKEN.finditer(text):
        literal += text[at : token.start()]
        at = token.end()
        word = token.group(0)
        if word in ("{{", "}}"):
            literal += word[0]
        elif token.group(1) is None:
            raise BadTemplateError(f"unmatched '{word}'; write '{word}{word}' for the character")
        else:
            if literal:
                parts.append(literal)
            literal = ""
            parts.append(_parse_field(token.group(1)))
    literal += text[at:]
    if literal:
        parts.append(literal)
    return Template(text, tuple(parts))


def _parse_field(text: str) -> Field:
    found = _FIELD.fullmatch(text)
    if found is None:
        raise BadTemplateError(f"unknown template field '{{{text}}}'", text)
    name, default = found.group(1), found.group(2)
    if name not in FIELDS and PROPERTY_NAME.fullmatch(name) is None:
        raise BadTemplateError(f"unknown template field '{{{name}}}'", name)
    return Field(name, default)
