"""A declared key arrives in a field: `check` never accepts what then does nothing."""

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.reading import resource
from genericdp.core.reading.parse import parse_rules, parse_settings
from genericdp.core.reading.resource import MOUNT_KEYS, NODE_KEYS, PRESTART_KEYS, RESOURCE_KEYS
from genericdp.core.reading.scalars import TEXT
from genericdp.core.reading.settings import SETTINGS_KEYS
from genericdp.core.reading.table import Key, keys_of
from genericdp.core.rules.resource import Mount, NodeTable, PreStart, Resource
from genericdp.core.rules.settings import Settings

MADE_UP = Key("colour", TEXT, "which colour the device has")

#: Values of all kinds, good for some keys and wrong for the others, as they are written; two spaces apart.
VALUES = Path(__file__).parents[2] / "data" / "rules" / "values.txt"

#: What every table of the kind needs: key -> value.
NEEDED = {"name": '"a"', "match": '{ ID_X = "1" }'}
NEEDED_BY_NODES = {"match": '{ ID_X = "2" }'}
NEEDED_BY_MOUNTS = {"host_path": '"/x"', "container_path": '"/y"'}


def values() -> list[str]:
    return VALUES.read_text(encoding="utf-8").replace("\n", "  ").strip().split("  ")


def written(table: dict[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in table.items())


def rule(below: str = "", **own: str) -> str:
    return f"[[resource]]\n{written({**NEEDED, **own})}{below}"


def a_resource(name: str, value: str) -> str:
    # Without a health that looks at an attribute, 'health_poll' is a mistake.
    needed = {"health": '{ "ATTR{x}" = "1" }'} if name == "health_poll" else {}
    return rule(**needed, **{name: value})


def a_node(name: str, value: str) -> str:
    return rule(f"[[resource.node]]\n{written({**NEEDED_BY_NODES, name: value})}")


def a_mount(name: str, value: str) -> str:
    return rule(f"[[resource.mounts]]\n{written({**NEEDED_BY_MOUNTS, name: value})}")


def a_prestart(name: str, value: str) -> str:
    return rule(f"[resource.prestart]\n{name} = {value}\n")


def a_setting(name: str, value: str) -> str:
    return f"{name} = {value}\n"


def meaning(read: Callable[[str], tuple[Any, tuple[Any, ...]]], text: str) -> Any:
    """What a text says; None for one with a mistake."""
    found, problems = read(text)
    return None if problems else found


def rules(text: str) -> Any:
    return parse_rules("x.toml", text, "example.com")


def settings(text: str) -> Any:
    return parse_settings("x.toml", text)


@pytest.mark.parametrize(
    ("keys", "text", "read"),
    [
        (RESOURCE_KEYS, a_resource, rules),
        (NODE_KEYS, a_node, rules),
        (MOUNT_KEYS, a_mount, rules),
        (PRESTART_KEYS, a_prestart, rules),
        (SETTINGS_KEYS, a_setting, settings),
    ],
    ids=["resource", "node", "mount", "prestart", "settings"],
)
def test_every_key_changes_what_is_read(
    keys: tuple[Key, ...],
    text: Callable[[str, str], str],
    read: Callable[[str], tuple[Any, tuple[Any, ...]]],
) -> None:
    for key in keys:
        meanings: list[Any] = []
        for value in values():
            found = meaning(read, text(key.name, value))
            if found is not None and found not in meanings:
                meanings.append(found)
        assert len(meanings) > 1, f"'{key.name}' is accepted, and whatever is written for it means the same"


def test_a_key_without_a_field_cannot_be_declared() -> None:
    with pytest.raises(TypeError) as refused:
        keys_of(Resource, MADE_UP)
    assert str(refused.value) == "Resource has no field 'colour' for the value of the key 'colour'"
    with pytest.raises(TypeError) as refused:
        keys_of(PreStart, dataclasses.replace(MADE_UP, field="colour_nm"))
    assert str(refused.value) == "PreStart has no field 'colour_nm' for the value of the key 'colour'"


def test_two_keys_of_one_field_cannot_be_declared() -> None:
    with pytest.raises(TypeError) as refused:
        keys_of(Resource, Key("description", TEXT, "x"), dataclasses.replace(MADE_UP, field="description"))
    assert str(refused.value) == (
        "the keys 'description' and 'colour' have the same field 'description' of Resource"
    )


@pytest.mark.parametrize(
    "keys",
    [RESOURCE_KEYS, NODE_KEYS, MOUNT_KEYS, PRESTART_KEYS, SETTINGS_KEYS],
    ids=["resource", "node", "mount", "prestart", "settings"],
)
def test_each_key_has_a_field_of_its_own(keys: tuple[Key, ...]) -> None:
    """Even in a table that is made of several calls of `keys_of`."""
    fields = [key.field for key in keys]
    assert sorted(fields) == sorted({*fields})


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("RESOURCE_KEYS", a_resource),
        ("NODE_KEYS", a_node),
        ("MOUNT_KEYS", a_mount),
        ("PRESTART_KEYS", a_prestart),
    ],
)
def test_a_key_that_arrives_nowhere_is_not_silently_accepted(
    table: str, text: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one that was not declared with `keys_of`."""
    monkeypatch.setattr(resource, table, (*getattr(resource, table), MADE_UP))
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        rules(text("colour", '"red"'))


@pytest.mark.parametrize(
    ("of", "keys", "not_written"),
    [
        (Resource, RESOURCE_KEYS, {"location"}),
        (NodeTable, NODE_KEYS, set()),
        (Mount, MOUNT_KEYS, set()),
        (PreStart, PRESTART_KEYS, set()),
        (Settings, SETTINGS_KEYS, set()),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_every_field_has_a_key(of: Any, keys: Iterable[Key], not_written: set[str]) -> None:
    fields = {field.name for field in dataclasses.fields(of)}
    assert fields - {key.field for key in keys} == not_written


def test_a_key_has_the_default_of_its_field() -> None:
    settings = {key.name: key for key in SETTINGS_KEYS}
    assert settings["coalesce"].default == Settings().coalesce_s
    assert not settings["coalesce"].required
    mounts = {key.name: key.required for key in MOUNT_KEYS}
    assert mounts == {"host_path": True, "container_path": True, "read_only": False}


def test_a_key_has_the_default_that_a_factory_makes() -> None:
    @dataclasses.dataclass
    class Painted:
        colour: list[str] = dataclasses.field(default_factory=lambda: ["red"])

    (key,) = keys_of(Painted, MADE_UP)
    assert (key.default, key.required) == (["red"], False)
