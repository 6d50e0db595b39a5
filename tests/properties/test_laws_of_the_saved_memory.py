"""Laws of reading a saved memory: whatever the file says, the kubelet hears only ids that genericdp makes."""

import copy
import json
import re
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.identity import ID_LIMIT
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.saved import UnreadableMemoryError, Writer, dump, load
from genericdp.core.memory.take import take_inventory
from genericdp.core.rules.resource import Resource
from tests.properties.strategies import DOMAIN, Boot, Unit, booted, machines, rules
from tests.scenes.inventories import answered

#: What goes wrong in texts that become ids, names of links and paths.
texts = st.text(max_size=6) | st.sampled_from(
    [
        "",
        ".",
        "..",
        "a",
        "a.0",
        "a.1",
        "a@b",
        "tty_S",
        "tty_S.0",
        "a/b",
        f"{DOMAIN}/tty",
        "\ud800",
        "\0",
        "x" * 64,
    ]
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.integers(), st.floats(), st.sampled_from([10**40]), texts
)
values = st.recursive(
    scalars, lambda some: st.lists(some, max_size=3) | st.dictionaries(texts, some, max_size=3), max_leaves=6
)


def possibly(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly right, sometimes anything."""
    return st.integers(0, 9).flatmap(lambda n: values if n == 0 else right)


ids = st.sampled_from(["a", "a.0", "a.1", "b", "tty_S"]) | texts
names = st.sampled_from([f"{DOMAIN}/tty", f"{DOMAIN}/shared", "a/b"])
devices = st.fixed_dictionaries(
    {
        "resource": possibly(names),
        "unit": possibly(texts),
        "port": possibly(texts),
        "hub": possibly(texts),
        "numa": possibly(st.none() | st.integers(0, 9)),
        "links": possibly(st.lists(st.sampled_from(["a", "a@b", "tty_S"]) | texts, max_size=2)),
    },
    optional={"spots": possibly(st.lists(st.lists(texts, min_size=3, max_size=3), max_size=2))},
)
withdrawn = st.fixed_dictionaries({"resource": possibly(names), "device": possibly(ids)})
documents = st.fixed_dictionaries(
    {
        "version": possibly(st.just(1)),
        "ties": possibly(st.dictionaries(texts, texts, max_size=2)),
        "devices": possibly(st.dictionaries(ids, possibly(devices), max_size=3)),
    },
    optional={
        "replicas": possibly(st.dictionaries(names, possibly(st.none() | st.integers(1, 3)))),
        "withdrawn": possibly(st.dictionaries(ids, possibly(withdrawn), max_size=3)),
        "doubtful": possibly(
            st.lists(
                possibly(
                    st.tuples(
                        texts,
                        texts,
                        texts,
                        possibly(st.tuples(texts, st.integers())),
                        possibly(st.lists(possibly(st.tuples(texts, st.integers())), max_size=2)),
                    )
                ),
                max_size=2,
            )
        ),
        "left": possibly(st.lists(possibly(st.lists(texts, min_size=3, max_size=3)), max_size=2)),
        **{
            twins: possibly(st.lists(possibly(st.lists(texts, min_size=4, max_size=4)), max_size=2))
            for twins in ("twins", "guesses")
        },
    },
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inside for place in places(each, (*path, key)))]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """What the daemon saves after it saw a machine and other rules, with some places changed."""
    memory = Memory()
    for rules_ in draw(st.lists(rules, min_size=1, max_size=3)):
        _, memory = take_inventory(Builder(rules_, DOMAIN), booted(draw(machines(3)), Boot()), memory, 0.0)
    document = json.loads(dump(memory))
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from(places(document)[1:]))
        room: Any = document
        for key in above:
            room = room[key]
        if isinstance(room, dict) and draw(st.booleans()):
            room[draw(texts)] = room.pop(last)
        else:
            room[last] = copy.deepcopy(draw(values))
    return document


def memory_or_reason(saved: bytes) -> Memory | str:
    try:
        return load(saved)
    except UnreadableMemoryError as error:
        return str(error)


@given(documents | mutated() | values, rules, machines(3), st.booleans())
def test_a_saved_memory_is_sound_or_refused(
    document: Any, rules_: tuple[Resource, ...], units: tuple[Unit, ...], knows: bool
) -> None:
    read = memory_or_reason(json.dumps(document).encode())
    if isinstance(read, str):
        assert read.isprintable()
        assert len(read) <= 600
        return
    memory = read
    assert load(dump(memory)) == memory
    answer = answered(frozenset(), memory, 1e9) if knows else None
    inventory, after = take_inventory(Builder(rules_, DOMAIN), booted(units), memory, 1e9, answer)
    for offer in inventory.offers.values():
        for id_, device in offer.ids.items():
            assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", id_)
            assert len(id_) <= ID_LIMIT
            assert device.numa is None or type(device.numa) is int
            found = offer.device(id_)
            assert found is not None
            assert id_ == found.id or id_.rpartition(".")[0] == found.id
    for link, path in inventory.links().items():
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+:@=-]*", link)
        assert len(link) <= 255
        assert path is None or path.startswith("/dev/")
    again, _ = take_inventory(Builder(rules_, DOMAIN), booted(units), load(dump(after)), 1e9, answer)
    assert {*again.links()} >= {link for link, path in inventory.links().items() if path}


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:1e-.\\u', max_size=40).map(str.encode))
def test_bytes_that_are_not_a_memory_are_refused(saved: bytes) -> None:
    assert memory_or_reason(saved) != Memory()


@given(st.lists(st.tuples(rules, machines(3), st.booleans()), min_size=1, max_size=4))
def test_one_memory_after_the_other_is_written_as_if_it_were_the_first(
    history: list[tuple[tuple[Resource, ...], tuple[Unit, ...], bool]],
) -> None:
    writer, memory = Writer(), Memory()
    for rules_, units, gives in history:
        inventory, memory = take_inventory(Builder(rules_, DOMAIN), booted(units), memory, 0.0)
        assert writer.dump(memory) == dump(memory)
        assert load(writer.dump(memory)).devices.keys() == memory.devices.keys()
        for offer in inventory.offers.values() if gives else ():
            memory = replace(memory, held=give(memory.held, offer, [*offer.ids][:2], 0.0))
        assert writer.dump(memory) == dump(memory)
        assert load(writer.dump(memory)).held == memory.held
