"""Every key and value that tomli finds has a position, nothing else has one, and it points at the text."""

import sys
from contextlib import suppress
from random import Random
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.reading.positions import Path, Positions, Span, TooDeepError, find

KEYS = st.from_regex(r"[a-z][a-z0-9_-]{0,4}", fullmatch=True) | st.sampled_from(
    ['"a b"', "'q.r'", '"\\u0041"']
)
SCALARS = st.sampled_from(
    ["1", "-2.5", "true", "2026-11-21", '"x"', "'y'", '"a\\"b"', '"""m\nn"""', "'''p\nq'''", '"#no"', '""']
)
SPACE = st.sampled_from(["", " ", "  "])


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> str:
    kind: str = draw(st.sampled_from(("scalar", "scalar", "array", "table") if depth else ("scalar",)))
    if kind == "scalar":
        return draw(SCALARS)
    if kind == "array":
        parts: list[str] = draw(st.lists(values(depth=depth - 1), max_size=3))
        glue = draw(st.sampled_from([", ", ",\n  ", ", # note ]\n"]))
        trailing = draw(st.booleans())
        return "[" + glue.join(parts) + ("," if parts and trailing else "") + "]"
    keys = draw(st.lists(KEYS, max_size=3, unique_by=unquoted))
    return "{ " + ", ".join(f"{key} = {draw(values(depth=depth - 1))}" for key in keys) + " }"


def unquoted(key: str) -> str:
    return next(iter(tomli.loads(f"{key} = 0")))


@st.composite
def documents(draw: st.DrawFn) -> str:
    lines: list[str] = []
    for key in draw(st.lists(KEYS, max_size=3, unique_by=unquoted)):
        dotted = f".{draw(KEYS)}" if draw(st.booleans()) else ""
        lines.append(f"{draw(SPACE)}{key}{dotted}{draw(SPACE)}={draw(SPACE)}{draw(values())} # a note")
    for name in ("res", "res", "other"):
        if draw(st.booleans()):
            lines.append(f"[[t-{name}]]")
            lines += [
                f"{key} = {draw(values())}" for key in draw(st.lists(KEYS, max_size=2, unique_by=unquoted))
            ]
            if draw(st.booleans()):
                lines += [f"[[t-{name}.zz-node]]", f"p = {draw(values())}"]
            if draw(st.booleans()):
                lines += [f"[t-{name}.zz-table]", "", "# nothing", f"p = {draw(SCALARS)}"]
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


def paths_of(value: Any, path: Path = ()) -> set[Path]:
    if isinstance(value, dict):
        return {(*path, key) for key in value} | {
            each for key, child in value.items() for each in paths_of(child, (*path, key))
        }
    if isinstance(value, list):
        return {(*path, index) for index in range(len(value))} | {
            each for index, child in enumerate(value) for each in paths_of(child, (*path, index))
        }
    return set()


def keys_in(found: Positions, paths: set[Path]) -> dict[Path, Span]:
    return {path: span for path in paths if (span := found.place(path, of_key=True)) is not None}


def values_in(found: Positions, paths: set[Path]) -> dict[Path, Span]:
    return {path: span for path in paths if (span := found.place(path, of_key=False)) is not None}


def value_at(document: Any, path: Path) -> Any:
    for part in path:
        document = document[part]
    return document


@given(documents())
def test_every_key_and_value_has_its_place(text: str) -> None:
    document, found = tomli.loads(text), find(text)
    paths = paths_of(document)
    assert {*keys_in(found, paths), *values_in(found, paths)} == paths
    others = {(*path, part) for path in (*paths, ()) for part in ("a", "unknown", "\x00", 0, 1, 2, 3)} - paths
    assert {*keys_in(found, others), *values_in(found, others)} == set()


@given(documents(), st.randoms(use_true_random=False))
def test_a_place_does_not_depend_on_what_was_asked_before(text: str, random: Random) -> None:
    paths = sorted(paths_of(tomli.loads(text)), key=repr)
    found = find(text)
    in_order = [find(text).place(path, of_key=True) for path in paths]
    again = random.sample(range(len(paths)), len(paths))
    assert [found.place(paths[each], of_key=True) for each in again] == [in_order[each] for each in again]


@given(documents(), st.integers(0, 200), st.text("[]{}=.,#'\"\\\n\r a1é", max_size=4), st.integers(0, 4))
def test_a_text_that_is_not_toml_is_scanned_to_its_end_or_to_the_mistake(
    text: str, at: int, inserted: str, removed: int
) -> None:
    text = text[:at] + inserted + text[at + removed :]
    found = find(text)
    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError:
        return
    paths = paths_of(document)
    keys, values = keys_in(found, paths), values_in(found, paths)
    for span in (*keys.values(), *values.values()):
        assert 0 < span.line <= text.count("\n") + 1
    # What tables are in, and arrays of them, need not be in the text themselves.
    for path in paths - {*keys} - {*values}:
        assert isinstance(value_at(document, path), dict | list)


@given(documents())
def test_the_place_of_a_value_shows_its_text(text: str) -> None:
    document, lines = tomli.loads(text), text.split("\n")
    for path, span in values_in(find(text), paths_of(document)).items():
        shown = lines[span.line - 1][span.column - 1 : span.column - 1 + span.length]
        value = value_at(document, path)
        if isinstance(value, dict | list) or "'''" in shown or '"""' in shown:
            assert shown[0] in "[{'\""
        else:
            assert tomli.loads(f"v = {shown}")["v"] == value


@given(documents())
def test_the_place_of_a_key_shows_its_name(text: str) -> None:
    document, lines = tomli.loads(text), text.split("\n")
    for path, span in keys_in(find(text), paths_of(document)).items():
        shown = lines[span.line - 1][span.column - 1 : span.column - 1 + span.length]
        if shown[0] != "[":
            assert unquoted(shown) == path[-1]


def test_lines_may_end_as_on_other_systems() -> None:
    assert find('a = 1\r\nb = "x"\r\n').place(("b",), of_key=False) == Span(2, 5, 3)


@pytest.mark.parametrize(
    "text", ['a = 1\n"""b""" = 2\n', "a = 1\n'''b'''.c = 2\n", 'a = 1\n"\\x" = 2\n', "a = 1\nb = ]"]
)
def test_what_stands_before_the_mistake_has_its_place(text: str) -> None:
    with pytest.raises(tomli.TOMLDecodeError):
        tomli.loads(text)
    assert {*values_in(find(text), {("a",), ("b",), ("b", "c"), ("\\x",)})} == {("a",)}


#: What Python takes for white space and TOML does not.
NO_SPACE = [char for char in map(chr, range(sys.maxunicode + 1)) if char.isspace() and char not in " \t\r\n"]


@pytest.mark.timeout_s(10)
@pytest.mark.parametrize("char", NO_SPACE, ids=ascii)
@pytest.mark.parametrize("before", ["a = ", "a = [", "a = [1, ", "a = [{} ", "a = {b = "])
def test_what_only_python_takes_for_white_space_ends_the_scan(before: str, char: str) -> None:
    """Once, the scan of an array went on forever."""
    find(before + char)
    find(f"{before}{char}]")


@pytest.mark.timeout_s(60)
@given(st.text(" \t\r\n\v\f\x1c\x85\u2028'\"\\[]{}=,.#a1\0"))
def test_the_scan_of_any_text_ends(text: str) -> None:
    with suppress(TooDeepError):
        find(text)
