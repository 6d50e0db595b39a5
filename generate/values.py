"""The possible values of a key in the words of the manual, from the key's schema."""

import json
import re
from collections.abc import Mapping
from typing import Any

from genericdp.core.reading.schema import as_written
from genericdp.core.reading.table import Key

#: Definitions of the schema that are tables.
_TABLES = ("node", "mount", "prestart")
_SIMPLE = {"boolean": "true or false", "integer": "whole number", "string": "string"}


def form(schema: Mapping[str, Any]) -> str:
    """`"node", "usb_device" or property`, `duration`, `template or list of templates`."""
    if "anyOf" in schema:
        return _either([form(each) for each in schema["anyOf"]])
    if "enum" in schema:
        return _either([f'"{each}"' for each in schema["enum"]])
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return "table" if name in _TABLES else name
    if "maximum" in schema:
        return f"number from {schema['minimum']} to {schema['maximum']:,}"
    if schema["type"] == "array":
        return f"list of {_plural(form(schema['items']))}"
    if schema["type"] == "object":
        (inner,) = schema["patternProperties"].values()
        return f"table of {_plural(form(inner))}"
    return _SIMPLE[schema["type"]]


def default(key: Key) -> str:
    """The default in TOML, or "" if there is none."""
    written = None if key.required else as_written(key.default)
    return "" if written is None else json.dumps(written)


def _either(forms: list[str]) -> str:
    words = [word for each in forms for word in re.split(", | or ", each)]
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _plural(word: str) -> str:
    return {"property": "properties", "match": "matches"}.get(word, f"{word}s")
