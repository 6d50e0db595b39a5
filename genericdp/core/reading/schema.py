"""Rule files and settings as JSON Schema, for editors that complete and check while one types.

The rules of this file:

* It only collects what is declared beside the readers: the keys of each table, and what may be written.
* The schema accepts whatever the parser accepts. The reverse is impossible: a schema cannot see that a
  glob is not closed or that two nodes have one name.
* It uses only what draft 4 and draft 7 have in common, because editors know one or the other. No `$ref`
  has a neighbour, and no pattern looks ahead.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from genericdp.core.reading import scalars, template
from genericdp.core.reading.kind import Schema, definition, list_schema
from genericdp.core.reading.match import (
    HEX_ATTRIBUTES,
    HEX_PROPERTIES,
    HEX_USB,
    MATCHERS,
    PROPERTY_DOCS,
    UDEV_WORDS,
    USB_DOCS,
)
from genericdp.core.reading.pattern import BOUNDS, FORM_DOCS
from genericdp.core.reading.resource import MOUNT_KEYS, NODE_KEYS, PRESTART_KEYS, RESOURCE_KEYS
from genericdp.core.reading.settings import SETTINGS_KEYS
from genericdp.core.reading.table import Key
from genericdp.core.rules.grouping import Nearest
from genericdp.core.rules.name import PROPERTY_NAME
from genericdp.core.rules.template import Template

_DRAFT = "http://json-schema.org/draft-07/schema#"
_HEX = r"(0[xX])?[0-9A-Fa-f*?\[\]!-]+"
_UNITS = (("d", 86400.0), ("h", 3600.0), ("m", 60.0), ("s", 1.0))


def rules_schema() -> Schema:
    """The schema of a rule file."""
    return {
        "$schema": _DRAFT,
        "title": "a rule file of genericdp",
        "description": "Which udev devices belong to which resource, see genericdp-rules(5)",
        "type": "object",
        "properties": {
            "resource": {
                "description": "the resources that pods can request",
                "type": "array",
                "items": definition("resource"),
            }
        },
        "additionalProperties": False,
        "definitions": {
            "resource": table(RESOURCE_KEYS),
            "node": table(NODE_KEYS),
            "mount": table(MOUNT_KEYS),
            "prestart": table(PRESTART_KEYS),
            "match": {"anyOf": [definition("conditions"), list_schema(definition("conditions"), minItems=1)]},
            **scalars.DEFINITIONS,
            **template.DEFINITIONS,
            "conditions": _conditions(),
            "usb": _usb(),
            "value": _value("value", {"type": "string"}),
            "hex": _value("hex", {"type": "string", "pattern": rf"^{_HEX}(\|{_HEX})*$"}),
        },
    }


def settings_schema() -> Schema:
    """The schema of `genericdp.toml`."""
    return {
        "$schema": _DRAFT,
        "title": "the settings of genericdp",
        "description": "How the daemon is configured, see genericdp.toml(5)",
        **table(SETTINGS_KEYS),
        "definitions": {"duration": scalars.DEFINITIONS["duration"]},
    }


def table(keys: Iterable[Key]) -> Schema:
    """The schema of a table with these keys."""
    schema: Schema = {
        "type": "object",
        "properties": {key.name: _property(key) for key in keys},
        "additionalProperties": False,
    }
    required = [key.name for key in keys if key.required]
    return {**schema, "required": required} if required else schema


def as_written(default: Any) -> str | bool | int | None:
    """A default as an operator would write it; None for a default that cannot be written."""
    match default:
        case bool():
            return default
        case float():
            return _duration(default)
        case str():
            return str(default) or None
        case (Template(text=text),):
            return text
        case Nearest(word=word):
            return word or None
        case _:
            return None


def _duration(seconds: float) -> str:
    for unit, length in _UNITS:
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds * 1000:g}ms"


def _property(key: Key) -> Schema:
    schema = _described(key.doc, key.schema)
    default = None if key.required else as_written(key.default)
    return schema if default is None else {**schema, "default": default}


def _described(doc: str, schema: Mapping[str, Any]) -> Schema:
    return {"description": doc, **({"allOf": [schema]} if "$ref" in schema else schema)}


def _conditions() -> Schema:
    known = {name: _described(doc, _wanted(name, HEX_PROPERTIES)) for name, doc in PROPERTY_DOCS.items()}
    attributes = {f"ATTR{{{name}}}": definition("hex") for name in HEX_ATTRIBUTES}
    others = {name: definition("hex") for name in HEX_PROPERTIES if name not in known}
    return {
        "type": "object",
        "minProperties": 1,
        # As properties that nothing satisfies, editors would offer them.
        "not": {"anyOf": [{"required": [word]} for word in UDEV_WORDS]},
        "properties": {
            **known,
            **others,
            **attributes,
            **{matcher.name: _property(matcher) for matcher in MATCHERS},
        },
        "patternProperties": {
            f"^{PROPERTY_NAME.pattern}$": definition("value"),
            r"^ATTR\{[^{}]+\}$": definition("value"),
        },
        "additionalProperties": False,
    }


def _usb() -> Schema:
    return {
        "type": "object",
        "minProperties": 1,
        "properties": {name: _described(doc, _wanted(name, HEX_USB)) for name, doc in USB_DOCS.items()},
        "additionalProperties": False,
    }


def _wanted(name: str, hex_ids: Mapping[str, int]) -> Schema:
    return definition("hex" if name in hex_ids else "value")


def _value(name: str, text: Schema) -> Schema:
    """What a condition wants of a value: a string, a list of alternatives, or one of the forms."""
    alone = {
        "not": definition(name),
        "regex": {"type": "string", "minLength": 1},
        "exists": {"type": "boolean"},
    }
    bounds = {form: {"type": "number"} for form in BOUNDS}
    return {
        "anyOf": [
            text,
            list_schema(definition(name), minItems=1),
            _forms(alone, most=1),
            _forms(bounds, most=len(bounds)),
        ]
    }


def _forms(forms: Mapping[str, Schema], most: int) -> Schema:
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": most,
        "properties": {form: _described(FORM_DOCS[form], schema) for form, schema in forms.items()},
        "additionalProperties": False,
    }
