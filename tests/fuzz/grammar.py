"""Rule files and settings as an operator, a careless one or an enemy may write them.

The rules of this file:

* What may be written is read from the JSON Schemas, which follow from the declared keys. So a new key is
  written, too, with values of its kind, as soon as it is declared.
* A document is mostly right: one that is wrong everywhere shows only the first mistake of each table.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import tomli
from hypothesis import strategies as st

from genericdp.core.reading.kind import Schema
from genericdp.core.reading.schema import rules_schema, settings_schema
from tests.properties.test_laws_of_the_saved_memory import places
from tests.scenes.texts import LARGE, TOO_DEEP

_DATA = Path(__file__).resolve().parents[1] / "data" / "rules"

#: Values that are good for one key and wrong for others.
_WRITTEN = (_DATA / "values.txt").read_text(encoding="utf-8").replace("\n", "  ").strip().split("  ")
KNOWN: list[Any] = [tomli.loads(f"a = {each}")["a"] for each in _WRITTEN]
_KNOWN_TEXTS = [each for each in KNOWN if isinstance(each, str)]

#: Whole files of the corpus. (Not all are UTF-8.)
CORPUS = [path.read_bytes().decode("utf-8", "replace") for path in sorted(_DATA.rglob("*.toml"))]

#: Text that is in no way polite.
ODD_TEXTS = [
    "",
    " ",
    "\0",
    "\x1b[2J\x1b]0;owned\x07",
    "\r\n::error::x",
    "\u202e\u2066",
    "\ufeff",
    "\U000e0041",
    "e\u0301" * 40,
    "ﷺ" * 100,
    "../../etc/passwd",
    "%s%n{0}{x!r}",
    "$(reboot)`reboot`",
    "*a" * 60 + "b",
    "(a+)+b",
    "((a|b)*c?){9}",
    "[" * 200,
    "{" * 200,
    "|" * 500,
    "\\",
    "9" * 400,
    "a" * 5000,
    "DEVNAME",
    "/dev/sda",
    "/dev/mem",
]
#: Whatever UTF-8 can say.
_CHARACTERS = st.characters(exclude_categories=["Cs"])
odd_texts = st.sampled_from(ODD_TEXTS) | st.text(_CHARACTERS, max_size=8)
odd_values = st.recursive(
    st.one_of(
        odd_texts,
        st.sampled_from(KNOWN),
        st.booleans(),
        st.integers(-(1 << 70), 1 << 70),
        st.floats(),
    ),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(odd_texts, some, max_size=3),
    max_leaves=5,
)


class Grammar:
    """Values that a schema accepts, or nearly: of the parts of an `allOf`, one is satisfied."""

    def __init__(self, schema: Schema) -> None:
        definitions = schema.get("definitions", {})
        self._defined = {name: self._later(each) for name, each in definitions.items()}
        self.documents = self._values(schema)

    def _later(self, schema: Schema) -> st.SearchStrategy[Any]:
        return st.deferred(lambda: self._values(schema))

    def _values(self, schema: Schema) -> st.SearchStrategy[Any]:
        match schema:
            case {"$ref": reference}:
                return self._defined[reference.rpartition("/")[2]]
            case {"allOf": parts} | {"anyOf": parts}:
                return st.one_of([self._values(part) for part in parts])
            case {"enum": words}:
                return st.sampled_from(words)
            case {"pattern": form}:
                invented = st.from_regex(form, alphabet=_CHARACTERS, fullmatch=form.endswith("$"))
                known = [each for each in _KNOWN_TEXTS if re.search(form, each)]
                return st.sampled_from(known) | st.sampled_from(known) | invented if known else invented
            case {"type": "string"}:
                return odd_texts | st.sampled_from(_KNOWN_TEXTS)
            case {"type": "boolean"}:
                return st.booleans()
            case {"type": "integer"}:
                return st.integers(schema["minimum"], schema["maximum"])
            case {"type": "number"}:
                return st.integers() | st.floats()
            case {"type": "array"}:
                return st.lists(self._values(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
            case {"type": "object"}:
                return self._tables(schema)
        raise NotImplementedError(f"a schema of a new form: {schema}")

    def _tables(self, schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
        """Tables with all keys that are required and a few of the others."""
        known = {name: self._values(each) for name, each in schema.get("properties", {}).items()}
        required = {name: known[name] for name in schema.get("required", ())}
        others = [st.tuples(st.just(name), values) for name, values in known.items() if name not in required]
        others += [
            st.tuples(st.from_regex(form, fullmatch=True), self._values(each))
            for form, each in schema.get("patternProperties", {}).items()
        ]
        if not others:
            return st.fixed_dictionaries(required)
        few = st.lists(
            st.one_of(others),
            min_size=schema.get("minProperties", 0),
            max_size=min(3, schema.get("maxProperties", 3)),
        ).map(dict)
        return st.tuples(st.fixed_dictionaries(required), few).map(lambda both: both[0] | both[1])


@st.composite
def _changed(draw: st.DrawFn, documents: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    """Documents with a mistake or two: another value, or a key that does not belong there."""
    # What a strategy has given may be a part of others that it gives.
    document = deepcopy(draw(documents))
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 2]))):
        *above, last = draw(st.sampled_from(places(document)[1:] or [("a",)]))
        room: Any = document
        for key in above:
            room = room[key]
        if isinstance(room, dict) and draw(st.booleans()):
            room[draw(odd_texts | st.sampled_from(_KEYS))] = room.pop(last, 1)
        else:
            room[last] = deepcopy(draw(odd_values))
    return document


def _keys_of(schema: Any) -> set[str]:
    """All keys that a schema declares anywhere."""
    if isinstance(schema, list):
        return {name for each in schema for name in _keys_of(each)}
    if not isinstance(schema, dict):
        return set()
    return {*schema.get("properties", ())} | {name for each in schema.values() for name in _keys_of(each)}


_KEYS = sorted(_keys_of(rules_schema()) | _keys_of(settings_schema()))


class Writer:
    """Writes a document as TOML, each time in another of the forms that mean the same."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def document(self, tables: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
        """A table with headers for the tables in it, or inline."""
        lines, below = [], []
        for key, value in tables.items():
            name = ".".join(map(self.key, (*path, key)))
            if isinstance(value, dict) and self._chance.random() < 0.5:
                below.append(f"[{name}]\n{self.document(value, (*path, key))}")
            elif value and isinstance(value, list) and all(isinstance(each, dict) for each in value):
                below += [f"[[{name}]]\n{self.document(each, (*path, key))}" for each in value]
            else:
                lines.append(
                    f"{self.key(key)}{self._space()}={self._space()}{self.value(value)}{self._end()}"
                )
        return "".join((*lines, *below))

    def key(self, key: str) -> str:
        return key if re.fullmatch("[A-Za-z0-9_-]+", key) else self._string(key, many_lines=False)

    def value(self, value: Any) -> str:
        """A value on one line, except for strings of several lines."""
        match value:
            case bool():
                return "true" if value else "false"
            case int():
                return hex(value) if value >= 0 and self._chance.random() < 0.1 else str(value)
            case str():
                return self._string(value, many_lines=self._chance.random() < 0.1)
            case list():
                return f"[{', '.join(map(self.value, value))}]"
            case dict():
                pairs = (f"{self.key(key)} = {self.value(each)}" for key, each in value.items())
                return f"{{ {', '.join(pairs)} }}"
            case _:
                return str(value)  # a float, a date

    def _string(self, text: str, *, many_lines: bool) -> str:
        if "'" not in text and text.isprintable() and not many_lines and self._chance.random() < 0.5:
            return f"'{text}'"
        escaped = "".join(
            char if char.isprintable() and char not in '"\\' else f"\\U{ord(char):08x}" for char in text
        )
        return f'"""\n{escaped}"""' if many_lines else f'"{escaped}"'

    def _space(self) -> str:
        return self._chance.choice([" ", " ", "", "\t", "   "])

    def _end(self) -> str:
        return self._chance.choice(["\n", "\n", "\n", "\r\n", " # why\n", "\n\n"])


@st.composite
def _written(draw: st.DrawFn, documents: st.SearchStrategy[dict[str, Any]]) -> str:
    return Writer(draw(st.randoms(use_true_random=False))).document(draw(documents))


#: What is put into a text where it does not belong.
_JUNK = [
    "\n",
    '"',
    "'",
    '"""',
    "[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "#",
    "\\",
    "\r",
    "\0",
    "\ufeff",
    "é",
    "[[a]]",
]


@st.composite
def _damaged(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """Texts with something cut out, put in, or repeated up to some thousand times."""
    text = draw(texts)
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 0, 0, 1, 2]))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        times = draw(st.integers(1, 4000))
        put_in = draw(st.sampled_from(["", text[start:end] * times, *_JUNK]) | odd_texts)
        text = text[:start] + put_in + text[end:]
    return text[: 1 << 18]


def _files(schema: Schema) -> st.SearchStrategy[str]:
    large = {**LARGE, **TOO_DEEP}
    written = _damaged(_written(_changed(Grammar(schema).documents)))
    return st.one_of(
        written,
        written,
        written,
        _damaged(st.sampled_from(CORPUS)),
        st.builds(
            lambda what, size: large[what](size), st.sampled_from(sorted(large)), st.integers(1, 40_000)
        ),
    )


#: Texts of rule files, and of `genericdp.toml`.
rule_files = _files({**rules_schema(), "required": ["resource"]})
settings_files = _files(settings_schema())
