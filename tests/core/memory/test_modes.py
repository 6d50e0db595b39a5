"""A unit of a pod changes its model at its port, as a modem does with its mode, or another unit is there."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Device, Health
from genericdp.core.inventory.part import Part
from genericdp.core.inventory.place import Spot
from genericdp.core.memory.given.links import GivenLinks
from genericdp.core.memory.given.modes import given_of
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.room import HELD_LINK_LIMIT
from genericdp.core.memory.saved import UnreadableMemoryError, dump, load
from tests.core.memory.test_siblings import id_of
from tests.scenes.builders import a_usb_device, a_usb_node, resources_of
from tests.scenes.edits import Node, rule

#: Each daemon sees a new device node with a new number at every plug.
_plugs = count(1)

#: Rules, and the prefix of the id that a pod gets.
GROUPINGS = {
    "node": rule("x"),
    "unit": rule("x", 'group_by = "usb_device"'),
    "all": rule("x", 'group_by = "all"'),
    "property": rule("x", 'group_by = "RIG"'),
    "hub": rule("x", 'group_by = { ID_MODEL_ID = "b0b0" }'),
}

DELETE = "the device plugged in now may not be the one that a pod got; delete that pod"


def a_modem(
    port: str, product: str, ports: int = 1, *, serial: str | None = "S", rig: str = "left"
) -> Sequence[UdevDevice]:
    """The serial ports of a unit that has just been plugged in, behind a hub without a serial number."""
    at = next(_plugs)
    usb = a_usb_device(f"{port}.1", product=product, serial=serial, devnum=at)
    hub = a_usb_device(port, product="b0b0", serial=None, devnum=at + 1)
    hub = replace(hub, properties={**hub.properties, "TYPE": "9/0/1"})
    usb = replace(usb, parent=hub, incarnation=100 * at)
    return [
        replace(
            a_usb_node(
                usb,
                "tty",
                f"ttyUSB{10 * at + n}",
                interface=f"0{n}",
                number=f"c 188:{10 * at + n}",
                properties={"RIG": rig},
            ),
            incarnation=100 * at + n + 1,
        )
        for n in range(ports)
    ]


def leads(node: Node) -> dict[str, int]:
    """Link -> the interface of its node; only links that lead somewhere."""
    return {link: int(path[-1]) for link, path in node.inventory.links().items() if path is not None}


@pytest.mark.parametrize("rules", GROUPINGS.values(), ids=GROUPINGS)
@pytest.mark.parametrize("modes", [[("0125", 3), ("0700", 1)], [("0700", 1), ("0125", 3), ("0701", 2)]])
@pytest.mark.parametrize("is_seen_to_leave", [False, True])
@pytest.mark.parametrize("serial", ["S", None])
def test_a_unit_that_changes_its_mode_at_its_port_has_its_links_again_in_the_first_mode(
    rules: str, modes: Sequence[tuple[str, int]], serial: str | None, *, is_seen_to_leave: bool
) -> None:
    node, other = Node(), a_modem("3", "6001", serial="C", rig="left")
    ids = sorted(node.look(rules, *a_modem("2", *modes[0], serial=serial), *other))
    for id_ in ids:
        node.allocate(id_)
    given = leads(node)
    for mode in (*modes[1:], modes[0]):
        if is_seen_to_leave:
            node.look(rules, *other)
        node.look(rules, *a_modem("2", *mode, serial=serial), *other)
        node.memory = load(dump(node.memory))
    reasons = (node.offer_of(id_).ids[id_].reason for id_ in ids)
    assert [*filter(None, reasons)] == []
    assert given.items() <= leads(node).items()


@pytest.mark.parametrize("name", ["node", "unit", "all", "property"])
@pytest.mark.parametrize("is_moved_first", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_unit_may_be_at_another_port_in_the_mode_that_its_pod_got(
    name: str, *, is_moved_first: bool, restarts: bool
) -> None:
    rules, node = GROUPINGS[name], Node()
    (held,) = node.look(rules, *a_modem("1", "6001"))
    node.allocate(held)
    given = leads(node)
    for port, product in (("1", "6015"), ("2", "6015") if is_moved_first else ("1", "6015"), ("2", "6001")):
        assert node.look(rules, *a_modem(port, product)) == {held: "Healthy"}
        if restarts:
            node.memory = load(dump(node.memory))
        node.look(rules)
    # Also where it was first.
    assert node.look(rules, *a_modem("1", "6001")) == {held: "Healthy"}
    assert leads(node) == given


def test_no_pod_keeps_a_unit_of_another_model_when_its_own_is_back() -> None:
    node, rules = Node(), rule("x")
    node.look(rules, *a_modem("1", "6001"))
    node.allocate("x_S")
    other = a_modem("1", "6015")
    assert node.look(rules, *other) == {"x_S": "Healthy"}
    other = a_modem("2", "6015")
    assert node.look(rules, *other) == {"x_S": "Healthy"}
    for _ in range(2):
        assert node.look(rules, *a_modem("1", "6001"), *other)["x_S"] == DELETE
        assert leads(node) == {}
        node.memory = load(dump(node.memory))


@pytest.mark.parametrize("name", ["property", "hub"])
@pytest.mark.parametrize("are_seen_to_leave", [False, True])
def test_a_swap_of_two_models_with_one_serial_number_gives_no_kit_the_unit_of_the_other_one(
    name: str, *, are_seen_to_leave: bool
) -> None:
    rules, node = GROUPINGS[name], Node()
    ids = sorted(node.look(rules, *a_modem("1", "6001", rig="left"), *a_modem("2", "6015", rig="right")))
    assert len(ids) == 2
    for id_ in ids:
        node.allocate(id_)
    given = leads(node)
    if are_seen_to_leave:
        node.look(rules)
    told = node.look(rules, *a_modem("2", "6001", rig="right"), *a_modem("1", "6015", rig="left"))
    assert told == dict.fromkeys(ids, DELETE)
    assert leads(node) == {}
    told = node.look(rules, *a_modem("1", "6001", rig="left"), *a_modem("2", "6015", rig="right"))
    assert told == dict.fromkeys(ids, "Healthy")
    assert leads(node) == given


@pytest.mark.parametrize("rules", [rule("x"), rule("amd.com/x")], ids=["plain ids", "ids with a hash"])
@pytest.mark.parametrize("mine", [0, 1])
def test_no_part_of_another_model_gets_an_id_of_a_unit_that_a_pod_holds(mine: int, rules: str) -> None:
    """A pod would hold it, and then nothing could tell whose the ids without a port are."""
    node = Node()
    ids = sorted(node.look(rules, *a_modem("2", "6001", 2)), key=leads(node).__getitem__)
    node.allocate(ids[mine])
    node.look(rules)
    for other in (a_modem("1", "6015", 3), a_modem("1", "6015", 3)):
        assert "Healthy" not in node.look(rules, *other).values()
        node.memory = load(dump(node.memory))
    told = node.look(rules, *other, *a_modem("2", "6001", 2))
    assert [told[id_] for id_ in ids] == ["Healthy", "Healthy"]
    assert [leads(node)[id_] for id_ in ids] == [0, 1]
    # They have been seen side by side, so now the other one has ids of its own.
    assert [*told.values()].count("Healthy") == 5


def test_a_unit_of_a_kit_has_its_link_again_at_its_port_beside_another_model_with_its_serial_number() -> None:
    rules, node = GROUPINGS["all"], Node()
    node.look(rules, *a_modem("3", "6015"))
    one = a_modem("2", "6001")
    node.look(rules, one[0], *a_modem("3", "6015"))
    node.allocate("x")
    given = {path == one[0].device_node: link for link, path in node.inventory.links().items()}
    node.look(rules, one[0], *a_modem("4", "6015"))
    other = a_modem("3", "6015")
    assert node.look(rules, one[0], *other) == {"x": "Healthy"}
    links = node.inventory.links()
    assert (links[given[True]], links[given[False]]) == (one[0].device_node, other[0].device_node)


@pytest.mark.parametrize("name", ["node", "unit", "hub"])
@pytest.mark.parametrize("serial", ["0001", "200901010001", None])
def test_a_serial_number_that_tells_nothing_makes_no_other_model_wait(name: str, serial: str | None) -> None:
    rules, node = GROUPINGS[name], Node()
    one, other = a_modem("1", "6001", serial=serial), a_modem("2", "6015", serial=serial)
    ids = node.look(rules, *one, *other)
    held = next(link for link, path in node.inventory.links().items() if path == one[0].device_node)
    node.allocate(held.partition("@")[0])
    node.look(rules, *one)
    assert node.look(rules, *one, *other) == dict.fromkeys(ids, "Healthy")
    # One that comes later, too.
    third = a_modem("3", "6014", serial=serial)
    assert {*node.look(rules, *one, *other, *third).values()} == {"Healthy"}


@pytest.mark.parametrize("name", ["all", "property"])
@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
def test_a_modem_that_starts_in_another_mode_has_its_links_at_each_port(name: str, restarts: str) -> None:
    rules, node = GROUPINGS[name], Node()
    rest = a_modem("7", "6014", serial="GPS")
    (held,) = node.look(rules, *a_modem("1", "6001", 2), *rest)
    node.allocate(held)
    given = leads(node)
    for port in "22312":
        node.look(rules, *rest)
        node.look(rules, *a_modem(port, "6015"), *rest)
        for last in (a_modem(port, "6001", 2), a_modem(port, "6001", 2)):
            assert node.look(rules, *last, *rest) == {held: "Healthy"}
            assert given.items() <= leads(node).items()
            node.look(rules, *rest)
            if restarts:
                node.memory = load(dump(node.memory, "same boot"), restarts)


def test_a_kit_has_its_unit_again_after_another_model_was_at_its_port_over_two_boots() -> None:
    rules, node = GROUPINGS["hub"], Node()
    ids = sorted(node.look(rules, *a_modem("2", "6001"), *a_modem("3", "6015")))
    for id_ in ids:
        node.allocate(id_)
    given = leads(node)
    node.memory = load(dump(node.memory, "one"), "two")
    node.look(rules, *a_modem("2", "6015"))
    node.memory = load(dump(node.memory, "two"), "three")
    told = node.look(rules, *a_modem("2", "6001"), *a_modem("3", "6015"))
    assert told == dict.fromkeys(ids, "Healthy")
    assert leads(node) == given


def test_the_unit_of_a_pod_stays_its_own_after_another_model_was_in_its_kit() -> None:
    at = '{{ SUBSYSTEM = "tty", usb = {{ port = [{}] }} }}'
    rules = rule("x", 'group_by = "all"', match=at.format('"1.1", "2.1", "3.1"')) + rule("o")
    node, own, other = Node(), a_modem("3", "6001"), a_modem("2", "6015")
    node.look(rules, *a_modem("2", "6001"))
    node.allocate("x")
    for plugged in ((), other, (*other, *own), own, ()):
        node.look(rules, *plugged)
    told = node.look(rules, *a_modem("4", "6001"))
    assert told.pop("x") == "it is unplugged"
    assert [*told.values()] == ["a pod may still hold it as x of example.com/x"]


def _kit(**changed: Any) -> Device:
    fields = {
        "id": "x",
        "health": Health.HEALTHY,
        "links": ("x@if00@abcdef",),
        "spots": (Spot("/1", "S", "if00"),),
        "models": ("0403:6001",),
    }
    return Device(**{**fields, **changed})


ALL = resources_of(rule("x", 'group_by = "all"'))[0]
GIVEN = {"x@if00@abcdef": (Spot("", "S", "if00"), "0403:6001")}


@pytest.mark.parametrize(
    ("changed", "given"),
    [
        ({}, {}),
        ({"also": (Spot("c 188:1 2", "", "number"),)}, {}),
        ({"spots": (Spot("/2", "S", "if00"),)}, GIVEN),
        ({"models": ("0403:6015",)}, GIVEN),
        ({"links": ("x@if00@abcdef@0123456789",)}, GIVEN),
    ],
)
def test_what_a_pod_got_is_noted_when_the_device_changes_and_not_before(
    changed: dict[str, Any], given: dict[str, Part]
) -> None:
    assert given_of(_kit(**changed), Remembered(ALL.name, _kit()), ALL) == given


def test_links_that_a_device_invents_do_not_fill_the_memory() -> None:
    numbers = range(HELD_LINK_LIMIT + 1)
    device = _kit(
        links=tuple(f"x@{number}" for number in numbers),
        spots=tuple(Spot("/1", f"S{number}", "") for number in numbers),
        models=(),
    )
    given = given_of(_kit(), Remembered(ALL.name, device), ALL)
    assert [*given] == [*device.links[:HELD_LINK_LIMIT]]


@pytest.mark.parametrize(
    ("known", "model"),
    [
        (Remembered(ALL.name, _kit()), "0403:6001"),
        (Remembered(ALL.name, _kit(spots=(Spot("/1", "0001", "if00"),))), ""),
        (Remembered(ALL.name, _kit(), not_given=frozenset(_kit().spots)), ""),
        (Remembered(ALL.name, _kit(models=("0403:6015",)), given=GIVEN), "0403:6001"),
        (Remembered(ALL.name, _kit(), given={"x@other": (Spot("", "S", "if00"), "0403:6001")}), ""),
        (Remembered(ALL.name, _kit(spots=(), models=())), ""),
    ],
    ids=["as it is", "filler", "came later", "another mode", "another link", "leads nowhere"],
)
def test_the_model_of_a_link_is_that_of_the_unit_for_which_a_pod_got_it(
    known: Remembered, model: str
) -> None:
    assert GivenLinks({"x": known}, {}).model_of(known.device.links[0]) == model
    assert GivenLinks({}, {}).model_of(known.device.links[0]) == ""


@pytest.mark.parametrize("is_given", [True, False])
def test_a_link_of_which_nobody_knows_where_it_led_passes_to_another_model_only_if_no_pod_got_it(
    *, is_given: bool
) -> None:
    known = Remembered(ALL.name, _kit(spots=(), models=()), given=GIVEN if is_given else {})
    links = GivenLinks({"x": known}, {})
    at = Spot("/2", "S", "if00")
    assert links.leads_elsewhere("x@if00@abcdef", at, "0403:6015") is is_given
    assert not links.leads_elsewhere("x@if00@abcdef", at, "0403:6001")


def test_what_a_pod_got_under_another_link_is_not_another_mode() -> None:
    other = {"x@if00@abcdef@0123456789": (Spot("", "S", "if00"), "0403:6015")}
    links = GivenLinks({"x": Remembered(ALL.name, _kit(), given={**GIVEN, **other})}, {})
    assert links.leads_elsewhere("x@if00@abcdef", Spot("/1", "S", "if00"), "0403:6015")
    assert not links.leads_elsewhere("x@if00@abcdef", Spot("/1", "S", "if00"), "0403:6014")


@pytest.mark.parametrize(
    "part",
    [[["/1", "S", "if00"], "0403:6001"], [["", "", "if00"], "0403:6001"], [["", "S", "if00"]], "x", None],
)
def test_a_saved_memory_in_which_a_part_is_malformed_is_not_read(part: object) -> None:
    saved = dump(replace(Memory(), devices={"x": Remembered(ALL.name, _kit(), given=GIVEN)}), "boot")
    assert load(saved, "boot").devices["x"].given == GIVEN
    document = json.loads(saved)
    document["devices"]["x"]["given"] = {"x@if00@abcdef": part}
    with pytest.raises(UnreadableMemoryError):
        load(json.dumps(document).encode(), "boot")


def test_no_model_stays_in_mind_if_the_id_means_the_port() -> None:
    rules, node = rule("x", 'group_by = "usb_device"', 'identity = "port"'), Node()
    (held,) = node.look(rules, *a_modem("1", "6001"))
    node.allocate(held)
    assert node.look(rules, *a_modem("1", "6015")) == {held: "Healthy"}
    assert node.memory.devices[held].given == {}


@pytest.mark.parametrize("name", ["all", "property"])
@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
@pytest.mark.parametrize("is_first", [False, True])
def test_no_link_of_a_kit_of_two_models_leads_to_the_other_one_wherever_they_are_moved(
    name: str, restarts: str, *, is_first: bool
) -> None:
    """Whichever of them came first, or both at the same time."""
    rules, node = GROUPINGS[name], Node()
    at = {"6001": "2", "6015": "1"}
    if is_first:
        node.look(rules, *a_modem("2", "6001"))
    own = {product: a_modem(port, product) for product, port in at.items()}
    (held,) = node.look(rules, *chain(*own.values()))
    node.allocate(held)
    paths = {product: unit[0].device_node for product, unit in own.items()}
    given = {
        link: product
        for link, path in node.inventory.links().items()
        for product in at
        if path == paths[product]
    }
    assert len(given) == 2
    moves = [("6001", "3"), ("6015", "2"), ("6001", "1"), ("6015", ""), ("6001", "2"), ("6015", "1")]
    for product, port in moves:
        if port:
            own[product] = a_modem(port, product)
        else:
            del own[product]
        paths = {product: unit[0].device_node for product, unit in own.items()}
        for _ in range(2):
            node.look(rules, *chain(*own.values()))
            links = node.inventory.links()
            assert all(links[link] in (None, paths.get(product)) for link, product in given.items())
            if restarts:
                node.memory = load(dump(node.memory, "same boot"), restarts)
    # Both are at their own ports again.
    links = node.inventory.links()
    assert {link: links[link] for link in given} == {link: paths[product] for link, product in given.items()}


@pytest.mark.parametrize("name", ["all", "property"])
def test_a_pod_has_its_unit_again_beside_the_model_that_was_at_its_port(name: str) -> None:
    rules, node = GROUPINGS[name], Node()
    own = a_modem("2", "6001")
    (held,) = node.look(rules, *own)
    node.allocate(held)
    (link,) = leads(node)
    other = a_modem("2", "6015")
    node.look(rules)
    assert node.look(rules, *other) == {held: "Healthy"}
    own = a_modem("1", "6001")
    node.look(rules, *own, *other)
    for plugged in ((own,), (own, a_modem("2", "6015")), (own, a_modem("3", "6015"))):
        assert node.look(rules, *chain(*plugged)) == {held: "Healthy"}
        assert node.inventory.links()[link] == own[0].device_node


def test_the_long_link_that_a_pod_got_does_not_lead_to_another_model_at_the_same_port() -> None:
    rules, node = GROUPINGS["all"], Node()
    own, other = a_modem("2", "6001"), a_modem("3", "6015")
    node.look(rules, *own, *other)
    node.look(rules, *own)
    node.allocate("x")
    (link,) = leads(node)
    node.look(rules)
    own = a_modem("1", "6001")
    node.look(rules, *own)
    node.look(rules, *own, *a_modem("2", "6015"))
    assert node.inventory.links()[link] is None
    node.look(rules)
    own = a_modem("2", "6001")
    assert node.look(rules, *own) == {"x": "Healthy"}
    assert node.inventory.links()[link] == own[0].device_node


@pytest.mark.parametrize("ports", [1, 3])
def test_a_kit_of_two_models_has_its_links_again_after_one_was_at_the_port_of_the_other_one(
    ports: int,
) -> None:
    rules, node = GROUPINGS["all"], Node()
    node.look(rules, *a_modem("2", "6001", ports))
    other = a_modem("1", "6015")
    node.look(rules, *a_modem("2", "6001", ports), *other)
    node.allocate("x")
    given = {link for link, path in node.inventory.links().items() if path != other[0].device_node}
    for plugged in (other, (), a_modem("2", "6015"), (), a_modem("2", "6001", ports)):
        node.look(rules, *plugged)
    other = a_modem("1", "6015")
    told = node.look(rules, *a_modem("2", "6001", ports), *other)
    assert told == {"x": "Healthy"}
    links = node.inventory.links()
    assert None not in {links[link] for link in given}
    assert {link for link, path in links.items() if path == other[0].device_node}.isdisjoint(given)


@pytest.mark.parametrize("name", ["all", "property"])
@pytest.mark.parametrize("nodes", [(1, 1), (2, 3)])
def test_the_next_pod_keeps_the_link_that_it_got_after_the_unit_has_changed_its_mode(
    name: str, nodes: tuple[int, int]
) -> None:
    rules, node = GROUPINGS[name], Node()
    node.look(rules, *a_modem("1", "6015", nodes[1]))
    node.look(rules)
    own = a_modem("2", "6001", nodes[0])
    node.look(rules, *own)
    (held,) = node.look(rules, *own)
    node.allocate(held)
    node.look(rules)
    own = a_modem("2", "6015", nodes[1])
    node.look(rules, *own)
    node.look(rules, *own)
    given = leads(node)
    node.allocate(held)
    for _ in range(2):
        for _ in range(2):
            assert node.look(rules, *own) == {held: "Healthy"}
            assert given.items() <= leads(node).items()
        node.look(rules)
        own = a_modem("2", "6015", nodes[1])


@pytest.mark.parametrize("name", ["unit", "property"])
@pytest.mark.parametrize("mine", [0, 1])
def test_another_model_does_not_become_the_unit_of_a_pod_whichever_of_its_nodes_comes_first(
    name: str, mine: int
) -> None:
    rules, node = GROUPINGS[name], Node()
    (held,) = node.look(rules, a_modem("2", "6015", 2)[mine])
    node.allocate(held)
    given = leads(node)
    node.look(rules)
    other = a_modem("4", "6001", 2)
    for plugged in ([other[1 - mine]], other, other):
        node.look(rules, *plugged)
        assert given.keys().isdisjoint(leads(node))
    own = a_modem("2", "6015", 2)[mine]
    told = node.look(rules, own, *other)
    assert node.inventory.links()[next(iter(given))] == own.device_node
    assert told[held] == "Healthy"


def test_a_kit_is_offered_although_only_another_unit_is_in_it_now() -> None:
    """It has no link of what the pod got."""
    rules, node = GROUPINGS["all"], Node()
    node.look(rules, *a_modem("1", "6001"))
    node.allocate("x")
    (link,) = leads(node)
    assert node.look(rules, *a_modem("2", "6015", serial="T")) == {"x": "Healthy"}
    assert node.inventory.links()[link] is None


def test_more_nodes_of_a_unit_are_offered_at_its_port_whatever_mode_it_is_in() -> None:
    rules, node = GROUPINGS["node"], Node()
    node.look(rules, *a_modem("2", "6001"))
    node.allocate("x_S")
    told = node.look(rules, *a_modem("2", "6015", 3))
    assert told == dict.fromkeys(("x_S", "x_S.if01", "x_S.if02"), "Healthy")


def test_what_a_pod_got_is_forgotten_when_the_next_pod_gets_the_device() -> None:
    rules, node = GROUPINGS["node"], Node()
    node.look(rules, *a_modem("2", "6001"))
    node.allocate("x_S")
    own = a_modem("2", "6015")
    node.look(rules, *own)
    node.allocate("x_S")
    told = node.look(rules, *own, *a_modem("3", "6001"))
    assert told["x_S"] == "Healthy"
    assert leads(node)["x_S"] == 0


def test_a_pod_of_a_shared_kit_keeps_its_links_when_another_pod_gets_the_kit() -> None:
    """The second one got another unit at the port, which may be the first one's in another mode."""
    rules, node = rule("x", 'group_by = "all"', "replicas = 2"), Node()
    other = a_modem("3", "6001")
    node.look(rules, *a_modem("3", "6015"))
    node.allocate("x.0")
    given = [link for link, path in node.inventory.links().items() if path]
    node.look(rules)
    node.look(rules, *other)
    node.allocate("x.1")
    own = a_modem("1", "6015")
    node.look(rules, *other, *own)
    links = node.inventory.links()
    assert {links[link] for link in given} <= {None, own[0].device_node}


@pytest.mark.parametrize("is_seen_to_leave", [False, True])
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("identity", ["serial", "property"])
def test_a_model_that_another_pod_got_at_another_port_is_no_mode_of_this_pods_unit(
    identity: str, part: int, *, is_seen_to_leave: bool
) -> None:
    """Two models have one serial number. One leaves, and the other one, with two nodes, takes its port."""
    node, own, other = Node(), a_modem("2", "6015"), a_modem("4", "0125", 2)
    rules = rule("x") if identity == "serial" else rule("x", 'identity = ["RIG"]')
    node.look(rules, *own, *other)
    id_ = id_of(node, str(own[0].device_node))
    node.allocate(id_)
    node.allocate(id_of(node, str(other[part].device_node)))
    if is_seen_to_leave:
        node.look(rules)
    node.look(rules, *a_modem("2", "0125", 2))
    assert node.inventory.links()[id_] is None


@pytest.mark.parametrize("serial", ["S", None])
@pytest.mark.parametrize("keys", ['identity = ["RIG"]', 'group_by = "RIG"'])
@pytest.mark.parametrize("after", ["y", "x"])
@pytest.mark.parametrize("modes", [("0125", "0700"), ("0700", "0125"), ("0125", "0125")])
def test_what_a_property_identifies_waits_at_another_port_in_any_mode(
    modes: tuple[str, str], after: str, keys: str, serial: str | None
) -> None:
    """The pod has it in the first one."""
    before, edited = rule("x", keys), rule("y", keys)
    if after == "x":
        edited = rule("early", match='{ SUBSYSTEM = "net" }') + rule("z", keys) + before
    node = Node()
    (held,) = node.look(before, *a_modem("1", "0125", serial=serial))
    node.allocate(held)
    node.look(before, *a_modem("1", modes[0], serial=serial))
    node.look(edited, *a_modem("1", modes[0], serial=serial))
    node.look(edited)
    for _ in range(2):
        told = node.look(edited, *a_modem("2", modes[1], serial=serial))
        assert "Healthy" not in told.values()
        assert f"a pod may still hold it as {held} of example.com/x" in told.values()
