"""Values that are one string, number or boolean: texts, durations, words of a closed set, paths.

Each reader turns a value (`source.At`) into something in which nothing can be wrong, or raises
`Mistake` with what to write instead.
"""

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from genericdp.core.reading.kind import Kind, Schema, definition
from genericdp.core.reading.source import At, Mistake
from genericdp.core.rules.name import PROPERTY_NAME
from genericdp.core.words import kind_of, listing, nearest

E = TypeVar("E", bound=StrEnum)

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: The schemas that the kinds below refer to.
DEFINITIONS: Mapping[str, Schema] = {
    "duration": {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)$"},
    "property": {"type": "string", "pattern": f"^{PROPERTY_NAME.pattern}$"},
}


def text(at: At) -> str:
    """A string that is not empty."""
    if not isinstance(at.value, str):
        hint = f'write "{at.value}"' if is_number(at.value) else ""
        raise Mistake(at, f"'{at.key}' must be a string, not {kind_of(at.value)}", hint)
    if not at.value:
        raise Mistake(at, f"'{at.key}' must not be empty")
    return at.value


TEXT = Kind(text, {"type": "string", "minLength": 1})


#: What other languages write for the boolean.
_BOOLEAN_WORDS = {"true": ("true", "yes", "on", "1"), "false": ("false", "no", "off", "0")}


def boolean(at: At) -> bool:
    if not isinstance(at.value, bool):
        word = next((word for word, words in _BOOLEAN_WORDS.items() if str(at.value).lower() in words), "")
        hint = f"write {word}" if word else ""
        raise Mistake(at, f"'{at.key}' must be true or false, not {kind_of(at.value)}", hint)
    return at.value


BOOLEAN = Kind(boolean, {"type": "boolean"})


def whole_number(smallest: int, largest: int) -> Kind[int]:
    """Whole numbers within bounds."""

    def read(at: At) -> int:
        if not isinstance(at.value, int) or isinstance(at.value, bool):
            digits = isinstance(at.value, str) and re.fullmatch("[1-9][0-9]*", at.value)
            hint = f"write {at.value}" if digits else f"write a number, for example {max(smallest, 10)}"
            raise Mistake(at, f"'{at.key}' must be a whole number, not {kind_of(at.value)}", hint)
        if not smallest <= at.value <= largest:
            raise Mistake(at, f"'{at.key}' must be from {smallest} to {largest}, not {at.value}")
        return at.value

    return Kind(read, {"type": "integer", "minimum": smallest, "maximum": largest})


def number(at: At) -> float:
    """A whole number or a decimal fraction."""
    if not is_number(at.value):
        numeric = isinstance(at.value, str) and re.fullmatch("-?[1-9][0-9]*|0x[0-9A-Fa-f]+", at.value)
        raise Mistake(
            at,
            f"'{at.key}' must be a number, not {kind_of(at.value)}",
            f"write {at.value}" if numeric else "write a number, for example 5000 or 0x1388",
        )
    value: float = at.value
    if not math.isfinite(value):
        raise Mistake(at, f"'{at.key}' must be a finite number, not {value}")
    return value


def duration(shortest_s: float, longest_s: float) -> Kind[float]:
    """Durations like "500ms", "10s", "5m", "1h", "7d", in seconds, within bounds."""

    def read(at: At) -> float:
        if not isinstance(at.value, str):
            hint = f'write "{at.value}s"' if is_number(at.value) else ""
            raise Mistake(at, f"'{at.key}' must be a duration such as \"10s\", not {kind_of(at.value)}", hint)
        found = _DURATION.fullmatch(at.value)
        if found is None:
            raise Mistake(at, f"'{at.value}' is not a duration", 'write "500ms", "10s", "5m", "1h" or "7d"')
        seconds = float(found.group(1)) * _SECONDS[found.group(2)]
        if not shortest_s <= seconds <= longest_s:
            bounds = f'from "{_as_written(shortest_s)}" to "{_as_written(longest_s)}"'
            raise Mistake(at, f"'{at.key}' must be {bounds}, not \"{at.value}\"")
        return seconds

    return Kind(read, definition("duration"))


def _as_written(seconds: float) -> str:
    """A duration as a file would have it, in the largest unit of which it is a whole number."""
    whole = [(size, unit) for unit, size in _SECONDS.items() if seconds >= size and not seconds % size]
    size, unit = max(whole) if seconds >= 1 else (0.001, "ms") if seconds else (1.0, "s")
    return f"{seconds / size:g}{unit}"


def one_of(*words: str) -> Kind[str]:
    """One word of a closed set."""

    def read(at: At) -> str:
        word = text(at)
        if word not in words:
            message = f"'{at.key}' must be {listing(words, 'or')}, not '{word}'"
            raise Mistake(at, message, nearest(word, words))
        return word

    return Kind(read, {"enum": list(words)})


def member_of(enum: type[E]) -> Kind[E]:
    """A member of an enum, written as its value."""
    word = one_of(*enum)
    return Kind(lambda at: enum(word.read(at)), word.schema)


def absolute_path(at: At) -> str:
    """An absolute path of the host, without `..` and in its shortest form."""
    path = text(at)
    if not path.startswith("/"):
        raise Mistake(at, f"'{at.key}' must be an absolute path, not '{path}'", "begin it with '/'")
    if ".." in path.split("/"):
        raise Mistake(at, f"'{at.key}' must not contain '..'")
    if "\0" in path:
        raise Mistake(at, f"'{at.key}' must not contain a null character")
    return "/" + "/".join(name for name in path.split("/") if name not in ("", "."))


ABSOLUTE_PATH = Kind(absolute_path, {"type": "string", "pattern": "^/"})


def property_name(at: At) -> str:
    """The name of a udev property."""
    name = text(at)
    if PROPERTY_NAME.fullmatch(name) is None:
        raise Mistake(at, f"'{name}' is not the name of a udev property", in_capitals(name))
    return name


PROPERTY = Kind(property_name, definition("property"))


def in_capitals(name: str, shown: str = "{}") -> str:
    """The hint for the name of a udev property that is not in capitals; "" for anything else."""
    if PROPERTY_NAME.fullmatch(name.upper()) is None:
        return ""
    return f"udev properties are in capitals: '{shown.format(name.upper())}'"


def is_number(value: object) -> bool:
    """Whether it is a TOML number: for hints about missing quotes."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _permissions(at: At) -> str:
    """A non-empty subset of "rwm", in that order (runc refuses an empty one, drops other letters)."""
    letters = text(at) if at.value != "" else ""
    if not letters:
        raise Mistake(
            at, "'permissions' must not be empty", "'r' read, 'w' write, 'm' mknod; the default is \"rw\""
        )
    wrong = [letter for letter in letters if letter not in "rwm"]
    if wrong:
        raise Mistake(
            at, f"'{wrong[0]}' is not a permission", "'r' read, 'w' write, 'm' mknod, for example \"rw\""
        )
    return "".join(letter for letter in "rwm" if letter in letters)


PERMISSIONS = Kind(_permissions, {"type": "string", "pattern": "^[rwm]+$"})
