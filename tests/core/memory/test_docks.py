"""A dock with a serial number, whose parts have none, is known at any port under any name."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from genericdp.core.buses.port import Dock, may_be_in
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.past import WHOLE, Twin
from genericdp.core.inventory.place import Spot, locate
from genericdp.core.inventory.siblings.groups import plugged_of
from genericdp.core.memory.given.docks import docks_now
from genericdp.core.memory.lasting import without_guesses
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.saved import dump, load
from tests.scenes.builders import a_usb_node
from tests.scenes.edits import Node, rule
from tests.scenes.sockets import in_socket

RED = {"ID_COLOR": "red"}
DOCKS = 'group_by = { ID_MODEL_ID = "d0cc" }'
BY_PORT = rule("left", DOCKS, match='{ SUBSYSTEM = "tty", usb = { port = ["2.*", "6.*"] } }') + rule(
    "x", DOCKS
)


def a_hub(
    port: str, since: int, *, fast: bool = False, product: str = "d0cc", serial: str = "D1"
) -> UdevDevice:
    unit = in_socket(port, fast=fast, product=product, serial=serial, shift=4, devnum=9 + since)
    hub = in_socket(port, fast=fast, product=product, serial=serial, shift=4, devnum=9 + since, is_hub=True)
    return replace(hub, properties={**unit.properties, "TYPE": "9/0/1"}, incarnation=since)


def a_dock(
    port: str,
    since: int,
    *,
    serial: str = "D1",
    parts: str = "12",
    part: str | None = None,
    fast: bool = False,
) -> tuple[UdevDevice, ...]:
    """The device nodes of its parts, as it is plugged in there.

    part  the serial number of each part
    fast  whether it runs at a speed of USB 3. Then its parts count at another port than the hub itself
    """

    def found() -> Iterator[UdevDevice]:
        dock = a_hub(port, since, fast=fast, serial=serial)
        for number in (4 * since + int(each) for each in parts):
            at = f"{port}.{number - 4 * since}"
            unit = in_socket(at, fast=fast, serial=part, shift=4, devnum=40 + number)
            unit = replace(unit, parent=dock, incarnation=1000 + number)
            node = a_usb_node(unit, "tty", f"ttyUSB{number}", number=f"c 188:{number}")
            yield replace(node, incarnation=2000 + number)

    return tuple(found())


ELSEWHERE = {
    "renamed": rule("y", DOCKS),
    "another resource takes the port": BY_PORT,
    "another resource takes each part": rule("y"),
    "another resource takes one part": rule("y", match='{ SUBSYSTEM = "tty", usb = { port = "*.1" } }')
    + rule("x", DOCKS),
}


@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize(("fast", "part"), [(False, None), (False, "0001"), (True, None)])
@pytest.mark.parametrize("after", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_dock_waits_at_another_port_under_another_name(
    after: str, restarts: str, part: str | None, *, is_away: bool, fast: bool
) -> None:
    node = Node()
    before = BY_PORT if after is BY_PORT else rule("x", DOCKS)
    assert node.look(before, *a_dock("3", 0, part=part, fast=fast)) == {"x_D1": "Healthy"}
    node.allocate("x_D1")
    if not is_away:
        node.look(after, *a_dock("3", 0, part=part, fast=fast))
    node.look(after)
    if restarts:
        node.memory = load(dump(node.memory, "same boot"), restarts)
    for _ in range(2):
        told = node.look(after, *a_dock("2", 1, part=part, fast=fast))
        why = {why for id_, why in told.items() if not id_.startswith("x") and why != "it is unplugged"}
        assert why == {"a pod may still hold it as x_D1 of example.com/x"}
    told = node.look(after, *a_dock("2", 1, part=part, fast=fast), answer=node.nobody_holds_anything())
    assert "Healthy" in {why for id_, why in told.items() if not id_.startswith("x")}
    assert not any("hold it" in why for why in told.values())


@pytest.mark.parametrize("serial", ["", "D1"])
def test_the_two_hubs_of_a_dock_are_no_twins(serial: str) -> None:
    """They have one serial number and are two models. A rule may make a device of each."""
    hubs = rule("x", 'group_by = { SUBSYSTEM = "usb", TYPE = "9/*" }')

    def a_whole_dock(port: str, since: int) -> Iterator[UdevDevice]:
        for n, (fast, model) in enumerate(((False, "d0cc"), (True, "d0cd"))):
            hub = a_hub(port, 10 * since + n, fast=fast, product=model)
            unit = in_socket(f"{port}.{n + 1}", fast=fast, shift=4, serial=serial and f"P{n}")
            unit = replace(unit, parent=hub, incarnation=100 + 10 * since + n)
            number = 2 * since + n
            node = a_usb_node(unit, "tty", f"ttyUSB{number}", number=f"c 188:{number}")
            yield replace(node, incarnation=200 + number)

    for which in range(2):
        node = Node()
        held = sorted(node.look(hubs, *a_whole_dock("3", 0)))[which]
        node.allocate(held)
        node.look(hubs)
        told = node.look(hubs, *a_whole_dock("2", 1))
        waits = [id_ for id_, why in told.items() if why == f"a pod may still hold it as {held}"]
        assert [node.offer_of(id_).ids[id_].nodes[0].path for id_ in waits] == [f"/dev/ttyUSB{2 + which}"]


@pytest.mark.parametrize("serial", ["D2", "0001"])
def test_another_dock_does_not_wait(serial: str) -> None:
    """Nor does one that may be any dock of its model: its serial number tells nothing."""
    node = Node()
    (held,) = node.look(rule("x", DOCKS), *a_dock("3", 0, serial="D1" if serial == "D2" else serial))
    node.allocate(held)
    node.look(rule("y", DOCKS))
    assert [*node.look(rule("y", DOCKS), *a_dock("2", 1, serial=serial)).values()] == ["Healthy"]


def test_what_one_pod_has_of_a_dock_stays_when_the_part_of_another_pod_leaves() -> None:
    """Both ids are those of the dock, and both parts have the same place in their units."""
    rules, node = (
        rule("a", DOCKS, match='{ SUBSYSTEM = "tty", usb = { port = "*.1" } }') + rule("b", DOCKS),
        Node(),
    )
    assert node.look(rules, *a_dock("3", 0)) == {"a_D1": "Healthy", "b_D1": "Healthy"}
    node.allocate("a_D1")
    node.allocate("b_D1")
    for parts, here, away in (("2", "b_D1", "a_D1"), ("1", "a_D1", "b_D1"), ("2", "b_D1", "a_D1")):
        assert node.look(rules, *a_dock("3", 0, parts=parts)) == {here: "Healthy", away: "it is unplugged"}
        node.memory = load(dump(node.memory))
    told = node.look(rules, *a_dock("4", 1, parts="2"))
    assert told == {"a_D1": "it is unplugged", "b_D1": "Healthy"}


def test_a_stick_with_a_serial_number_is_not_another_one_that_was_at_its_port_of_the_dock() -> None:
    def in_dock(port: str, since: int, serial: str) -> UdevDevice:
        unit = in_socket(f"{port}.1", serial=serial, shift=4, devnum=40 + since)
        unit = replace(unit, parent=a_hub(port, since), incarnation=1000 + since)
        node = a_usb_node(unit, "tty", f"ttyUSB{since}", number=f"c 188:{since}")
        return replace(node, incarnation=2000 + since)

    node = Node()
    assert node.look(rule("u"), in_dock("3", 0, "S1")) == {"u_S1": "Healthy"}
    node.allocate("u_S1")
    node.look(rule("u"))
    assert node.look(rule("u"), in_dock("2", 1, "S2"))["u_S2"] == "Healthy"


@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
@pytest.mark.parametrize("is_edited_first", [False, True])
def test_what_a_kit_lost_with_its_dock_waits_wherever_the_dock_is(
    restarts: str, *, is_edited_first: bool
) -> None:
    ports = '{{ SUBSYSTEM = "tty", usb = {{ port = {} }} }}'
    before = rule("kit", 'group_by = "all"')
    after = rule("kit", 'group_by = "all"', match=ports.format('"9"')) + rule("u")
    stick = a_usb_node(in_socket("9", serial="S9"), "tty", "ttyACM9", number="c 166:9")
    node = Node()
    node.look(before, stick, *a_dock("3", 0, parts="1"))
    node.allocate("kit")
    if is_edited_first:
        node.look(after, stick, *a_dock("3", 0, parts="1"))
    node.look(after if is_edited_first else before, stick)
    if restarts:
        node.memory = load(dump(node.memory, "same boot"), restarts)
    for _ in range(2):
        told = node.look(after, stick, *a_dock("2", 1, parts="1"))
        assert told.pop("kit") == "Healthy"
        assert "Healthy" not in told.values()
    # The next pod gets the kit without it.
    node.allocate("kit")
    assert "Healthy" in {why for id_, why in node.look(after, stick, *a_dock("2", 1)).items() if id_ != "kit"}
    known = node.memory.devices["kit"]
    assert (known.earlier, known.docks) == ({}, {})


@pytest.mark.parametrize("fast", [False, True])
def test_another_dock_is_free_where_the_dock_of_a_pod_was(*, fast: bool) -> None:
    """Also what edited rules took from that dock."""
    whole = rule("x", DOCKS)
    apart = rule("r", match='{ SUBSYSTEM = "tty", usb = { port = "*.2" } }') + whole
    node = Node()
    node.look(whole, *a_dock("3", 0, fast=fast))
    node.allocate("x_D1")
    node.look(whole, *a_dock("5", 1, fast=fast))
    assert node.memory.devices["x_D1"].earlier == {}
    node.look(apart, *a_dock("5", 1, fast=fast))
    moved = a_dock("2", 2, fast=fast)
    node.look(apart, *moved)
    other = a_dock("5", 3, fast=fast, serial="D9")
    told = node.look(apart, *moved, *other)
    waiting = [id_ for id_, why in told.items() if why != "Healthy"]
    assert [node.offer_of(id_).ids[id_].port for id_ in waiting] == [_port_of(moved[1])]


def _port_of(node: UdevDevice) -> str:
    return locate(node).spot.port


@pytest.mark.parametrize(
    ("was", "now"), [("3.1", "3.2"), ("3.1", "5"), ("5", "3.1"), ("5", "6"), ("3.1", "4.1")]
)
def test_what_an_edit_took_from_a_unit_waits_where_the_unit_has_moved_to_in_and_out_of_a_dock(
    was: str, now: str
) -> None:
    """The unit itself has no serial number: a property identifies it."""

    def a_unit(port: str, since: int) -> Iterator[UdevDevice]:
        unit = replace(in_socket(port, shift=4, devnum=40 + since), incarnation=1000 + since)
        if "." in port:
            unit = replace(unit, parent=a_hub(port.partition(".")[0], since))
        for n in (0, 2):
            number = 4 * since + n
            node = a_usb_node(
                unit, "tty", f"ttyUSB{number}", interface=f"0{n}", number=f"c 188:{number}", properties=RED
            )
            yield replace(node, incarnation=2000 + number)

    whole = rule("x", 'group_by = "usb_device"', 'identity = ["ID_COLOR"]')
    apart = rule("r", match='{ SUBSYSTEM = "tty", usb = { interface = "02" } }') + whole
    node = Node()
    (held,) = node.look(whole, *a_unit(was, 0))
    node.allocate(held)
    node.look(apart, *a_unit(was, 0))
    node.look(apart)
    told = node.look(apart, *a_unit(now, 1))
    assert told.pop(held) == "Healthy"
    assert f"a pod may still hold it as {held} of example.com/x" in told.values()
    assert "Healthy" not in told.values()


def test_another_node_of_a_unit_in_a_dock_does_not_wait_where_the_dock_has_moved_to() -> None:
    """No pod got it."""

    def in_dock(port: str, since: int) -> Iterator[UdevDevice]:
        unit = in_socket(f"{port}.1", shift=4, devnum=40 + since)
        unit = replace(unit, parent=a_hub(port, since), incarnation=1000 + since)
        for n in range(2):
            number = 2 * since + n
            node = a_usb_node(unit, "tty", f"ttyUSB{number}", interface=f"0{n}", number=f"c 188:{number}")
            yield replace(node, incarnation=2000 + number)

    rules = rule("x", DOCKS, match='{ SUBSYSTEM = "tty", usb = { interface = "00" } }') + rule("r", DOCKS)
    node = Node()
    assert node.look(rules, *in_dock("3", 0)) == {"x_D1": "Healthy", "r_D1": "Healthy"}
    node.allocate("x_D1")
    node.look(rules)
    told = node.look(rules.replace('"x"', '"y"'), *in_dock("2", 1))
    assert told == {"y_D1": "a pod may still hold it as x_D1 of example.com/x", "r_D1": "Healthy"}


def test_units_of_one_colour_in_two_docks_do_not_wait_for_each_other() -> None:
    """They have no serial numbers of their own, and were seen side by side."""

    def in_dock(port: str, serial: str, since: int) -> UdevDevice:
        unit = in_socket(f"{port}.1", shift=4, devnum=40 + since)
        unit = replace(unit, parent=a_hub(port, since, serial=serial), incarnation=1000 + since)
        node = a_usb_node(unit, "tty", f"ttyUSB{since}", number=f"c 188:{since}", properties=RED)
        return replace(node, incarnation=2000 + since)

    rules, node = rule("x", 'identity = ["ID_COLOR"]'), Node()
    free, held = in_dock("2", "D1", 0), in_dock("3", "D2", 1)
    ids = node.look(rules, free, held)
    (id_,) = (link for link, path in node.inventory.links().items() if path == held.device_node)
    node.allocate(id_)
    told = node.look(rules, free)
    assert told.pop(id_).startswith("it is unplugged")
    assert told == dict.fromkeys(ids.keys() - {id_}, "Healthy")


def test_a_dock_is_not_another_one_that_is_at_the_port_where_it_was() -> None:
    """The docks were plugged in at each other's ports for a while, and come back one after the other."""
    rules, node = rule("x", DOCKS), Node()
    node.look(rules, *a_dock("2", 0), *a_dock("1", 1, serial="D2"))
    node.allocate("x_D1")
    got = {link: path for link, path in node.inventory.links().items() if link.startswith("x_D1")}
    node.look(rules, *a_dock("2", 0))
    node.look(rules)
    node.look(rules, *a_dock("1", 2))
    both = {"x_D1": "Healthy", "x_D2": "Healthy"}
    assert node.look(rules, *a_dock("1", 2), *a_dock("2", 3, serial="D2")) == both
    node.look(rules, *a_dock("2", 3, serial="D2"))
    node.look(rules)
    other = a_dock("1", 4, serial="D2")
    assert node.look(rules, *other) == {**both, "x_D1": "it is unplugged"}
    assert node.inventory.held_links == {}
    assert node.look(rules, *a_dock("2", 0), *other) == both
    assert {link: node.inventory.links()[link] for link in got} == got


def test_a_dock_is_not_a_part_of_another_one_that_lacks_a_node_like_its_own() -> None:
    """The first part of each has a node more than the second one, and needs no driver to be there."""

    def in_dock(port: str, since: int, serial: str) -> Iterator[UdevDevice]:
        for number, subsystems in ((1, ("tty", "hidraw")), (2, ("tty",))):
            unit = in_socket(
                f"{port}.{number}", shift=4, product=f"600{number}", devnum=40 + 2 * since + number
            )
            dock = a_hub(port, since, serial=serial)
            yield (unit := replace(unit, parent=dock, incarnation=1000 + 2 * since + number))
            for subsystem in subsystems:
                name = f"{subsystem}{2 * since + number}"
                yield replace(a_usb_node(unit, subsystem, name), incarnation=unit.incarnation + 1000)

    match = '{ SUBSYSTEM = ["tty", "hidraw"] }'
    rules, node = rule("x", DOCKS, match=match), Node()
    node.look(rules, *in_dock("2", 0, "D1"), *in_dock("1", 1, "D2"))
    node.allocate("x_D1")
    node.look(rules, *in_dock("2", 0, "D1"))
    node.look(rules, *in_dock("4", 2, "D1"))
    other = (*in_dock("1", 3, "D2"),)
    both = {"x_D1": "Healthy", "x_D2": "Healthy"}
    assert node.look(rules, *in_dock("4", 2, "D1"), *other) == both
    node.look(rules, *other)
    assert node.look(rules, *in_dock("2", 4, "D1"), *other) == both


def test_nothing_of_a_dock_stays_at_its_old_port_if_another_one_is_there() -> None:
    rules, node = rule("x", DOCKS), Node()
    node.look(rules, *a_dock("2", 0))
    node.allocate("x_D1")
    both = (*a_dock("4", 1), *a_dock("2", 2, serial="D2"))
    assert node.look(rules, *both) == {"x_D1": "Healthy", "x_D2": "Healthy"}
    assert node.memory.devices["x_D1"].earlier == {}


def a_card_in_a_dock(port: str, since: int, nodes: Mapping[int, int], serial: str = "") -> list[UdevDevice]:
    """The dock, and a card with several ports in it; `nodes` are its port -> the number of its ttyUSB."""
    dock = a_hub(port, since)
    unit = in_socket(f"{port}.1", serial=serial or None, shift=4, devnum=40 + since)
    unit = replace(unit, parent=dock, incarnation=100 * since)
    found = [
        replace(
            a_usb_node(unit, "tty", f"ttyUSB{n}", number=f"c 188:{n}"), incarnation=100 * since + 1 + part
        )
        for part, n in nodes.items()
    ]
    return [dock, unit, *found]


@pytest.mark.parametrize("serial", ["", "0001"])
@pytest.mark.parametrize(
    "rules", [rule("x", DOCKS), rule("x"), rule("x", "replicas = 2"), rule("x", "identity = 'port'")]
)
@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
@pytest.mark.parametrize("visits", [["2"], ["2", "3"], []])
@pytest.mark.parametrize("first", ["is not bound", "cannot be read"])
def test_the_siblings_in_a_dock_are_remembered_wherever_the_dock_has_been(
    first: str, visits: list[str], restarts: str, rules: str, serial: str
) -> None:
    def at(port: str, since: int) -> list[UdevDevice]:
        return a_card_in_a_dock(port, since, {0: 0, 1: 1}, serial)

    node = Node()
    ids = [*node.look(rules, *at("1", 1))]
    node.allocate(ids[0])
    node.look(rules, *at("1", 1))
    got = {link: path for link, path in node.links().items() if link.startswith(ids[0])}
    for since, port in enumerate(visits, 2):
        node.look(rules, *at(port, since))
    if restarts:
        node.memory = load(dump(node.memory, "same boot"), restarts)
    if first == "is not bound":
        node.look(rules, *a_card_in_a_dock("1", 9, {1: 0}, serial))
    else:
        *there, lost, other = at("1", 9)
        node.look(rules, *there, other, unread=[lost.sys_path])
    links = node.links()
    assert [links[link] for link in got] == [None] * len(got)
    for _ in range(2):
        node.look(rules, *at("1", 9))
        links = node.links()
        assert {link: links[link] for link in got} in (got, dict.fromkeys(got))


@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
@pytest.mark.parametrize("trip", [["2"], ["2", "3"], ["1"], []])
def test_the_siblings_in_a_dock_are_remembered_while_only_another_part_of_it_is_there(
    trip: list[str], restarts: str
) -> None:
    rules = rule("x", DOCKS)

    def at(port: str, since: int, nodes: Mapping[int, int]) -> list[UdevDevice]:
        (stick,) = a_dock(port, since, parts="2")
        return [*a_card_in_a_dock(port, since, nodes), stick]

    node = Node()
    (id_,) = node.look(rules, *at("1", 1, {0: 0, 1: 1}))
    node.allocate(id_)
    node.look(rules, *at("1", 1, {0: 0, 1: 1}))
    got = dict(node.links())
    for since, port in enumerate(trip, 2):
        node.look(rules, *a_dock(port, since, parts="2"))
        if restarts:
            node.memory = load(dump(node.memory, "same boot"), restarts)
    told = node.look(rules, *at("1", 9, {1: 0}))
    assert told[id_] != "Healthy"
    links = node.links()
    card = [link for link, path in got.items() if path in ("/dev/ttyUSB0", "/dev/ttyUSB1")]
    assert [links[link] for link in card] == [None, None]


def a_part(port: str, since: int, serial: str, product: str = "d0cc", color: str = "red") -> UdevDevice:
    """What is plugged in at the first port of a hub; it has no serial number, but a colour."""
    hub = a_hub(port, since, serial=serial, product=product)
    unit = replace(in_socket(f"{port}.1", shift=4, devnum=40 + since), parent=hub, incarnation=since + 1)
    properties = {"ID_COLOR": color}
    node = a_usb_node(unit, "tty", "ttyUSB0", number="c 188:0", properties=properties)
    return replace(node, incarnation=since + 2)


BY_COLOR = 'identity = ["ID_COLOR"]'
BY_VALUE = [rule("x", BY_COLOR), rule("x", 'group_by = "all"'), rule("x", DOCKS)]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("port", ["3", "4"])
@pytest.mark.parametrize("times", [0, 1, 2])
@pytest.mark.parametrize("after", [*BY_VALUE, rule("y", DOCKS)])
@pytest.mark.parametrize("before", BY_VALUE)
def test_a_dock_is_known_at_another_port_although_its_serial_number_could_not_be_read_for_a_while(
    before: str, after: str, times: int, port: str, *, restarts: bool
) -> None:
    def at(port: str, since: int, serial: str = "D1") -> UdevDevice:
        (part,) = a_dock(port, since, serial=serial, parts="1")
        return replace(part, properties={**part.properties, **RED})

    node = Node()
    held, *_ = node.look(before, at("3", 0))
    node.allocate(held)
    node.look(before, at("3", 0))
    for since in range(1, times + 1):
        node.look(before, at(port, since, ""))
        if restarts:
            node.memory = load(dump(node.memory, "boot"), "boot")
            node.look(before, at(port, since, ""))
    node.look(after, at(port if times else "3", 8, "" if times else "D1"))
    told = node.look(after, at("2", 9))
    assert [id_ for id_, why in told.items() if why == "Healthy"] in ([], [held])


@pytest.mark.parametrize("outer", ["", "OUT"])
@pytest.mark.parametrize("after", [rule("x", DOCKS), rule("y", DOCKS), rule("y")])
def test_a_dock_behind_a_hub_may_be_the_same_one_although_its_serial_number_cannot_be_read(
    after: str, outer: str
) -> None:
    def at(since: int, serial: str) -> UdevDevice:
        hub = a_hub("1", since, product="0a0a", serial=outer)
        dock = replace(a_hub("1.1", since, serial=serial), parent=hub, incarnation=since + 1)
        unit = replace(in_socket("1.1.1", shift=4, devnum=40 + since), parent=dock, incarnation=since + 2)
        tty = a_usb_node(unit, "tty", f"ttyUSB{since}", number=f"c 188:{since}")
        return replace(tty, incarnation=since + 3)

    node = Node()
    (held,) = node.look(rule("x", DOCKS), at(10, "IN"))
    node.allocate(held)
    node.look(rule("x", DOCKS), at(10, "IN"))
    node.look(after)
    assert "Healthy" not in node.look(after, at(20, "")).values()


@pytest.mark.parametrize(
    ("port", "serial", "product", "taken"),
    [
        ("4", "", "d0cc", ["D1"]),
        ("4", "D2", "d0cc", []),
        ("4", "D1", "d0cc", []),
        ("4", "", "aaaa", []),
        ("3", "", "d0cc", ["D1"]),
        ("3", "", "aaaa", []),
    ],
)
def test_a_dock_moves_with_a_device_if_its_id_says_that_it_is_the_same_and_the_dock_may_be(
    port: str, serial: str, product: str, taken: list[str]
) -> None:
    node = Node()
    (id_,) = node.look(rule("x", BY_COLOR), a_part("3", 10, "D1"))
    node.allocate(id_)
    assert node.look(rule("x", BY_COLOR), a_part(port, 20, serial, product)) == {id_: "Healthy"}
    assert [dock.serial for dock in node.memory.devices[id_].docks.values()] == taken


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("is_edited_first", [False, True])
@pytest.mark.parametrize("product", ["d0cc", "aaaa"])
@pytest.mark.parametrize("port", ["3", "4"])
@pytest.mark.parametrize(
    "after", [rule("y"), rule("x"), rule("x", 'group_by = "all"'), rule("y", BY_COLOR), rule("x", DOCKS)]
)
def test_a_device_by_property_may_be_in_another_dock_than_the_last_one_that_could_be_read(
    after: str, port: str, product: str, *, is_edited_first: bool, restarts: bool
) -> None:
    """It was moved to a hub of which nobody knew which one it was."""
    node, before = Node(), rule("x", BY_COLOR)
    (held,) = node.look(before, a_part("3", 10, "D3"))
    node.allocate(held)
    node.look(before, a_part(port, 20, "", product))
    if is_edited_first:
        node.look(after, a_part(port, 20, "", product))
    if restarts:
        node.memory = load(dump(node.memory, "boot"), "boot")
    told = node.look(after, a_part(port, 30, "H4"))
    assert [id_ for id_, why in told.items() if why == "Healthy" and id_ != held] == []


def test_a_device_at_a_port_of_the_host_is_not_in_the_dock_that_it_left() -> None:
    """The dock waits for nobody, once there is something else in it."""
    node, before = Node(), rule("x", BY_COLOR)
    (held,) = node.look(before, a_part("3", 10, "D3"))
    node.allocate(held)
    unit = replace(in_socket("1", shift=4, devnum=60), incarnation=60)
    tty = a_usb_node(unit, "tty", "ttyUSB0", number="c 188:0", properties=RED)
    assert node.look(before, replace(tty, incarnation=61)) == {held: "Healthy"}
    node.look(before)
    told = node.look(rule("x", DOCKS), a_part("3", 30, "D3", color="blue"))
    assert told == {"x_D3": "Healthy", held: "it is unplugged"}


@pytest.mark.parametrize("ports", [1, 2])
def test_what_a_pod_has_in_a_dock_stays_when_what_another_pod_took_out_of_the_dock_is_unplugged(
    ports: int,
) -> None:
    """It is at the same port of the dock where the other one was."""

    def at(port: str, since: int, color: str) -> Iterator[UdevDevice]:
        unit = replace(in_socket(port, shift=4, devnum=40 + since), incarnation=since)
        if "." in port:
            unit = replace(unit, parent=a_hub("1", 1))
        for n in range(since, since + ports):
            properties, interface = {"ID_COLOR": color}, f"0{n - since}"
            number = f"c 188:{n}"
            node = a_usb_node(
                unit, "tty", f"ttyUSB{n}", interface=interface, number=number, properties=properties
            )
            yield replace(node, incarnation=n + 1)

    keys = () if ports == 1 else ('group_by = "usb_device"',)
    rules = rule("x", BY_COLOR, *keys, match='{ SUBSYSTEM = "tty", ID_COLOR = "red" }') + rule("rest")
    node = Node()
    (red,) = node.look(rules, *at("1.1", 10, "red"))
    node.allocate(red)
    node.look(rules, *at("3", 20, "red"))
    told = node.look(rules, *at("3", 20, "red"), *at("1.1", 30, "blue"))
    assert {*told.values()} == {"Healthy"}
    for blue in told.keys() - {red}:
        node.allocate(blue)
    got = {link: path for link, path in node.links().items() if not link.startswith(red)}
    assert node.look(rules, *at("1.1", 30, "blue")) == {**told, red: "it is unplugged"}
    assert {link: path for link, path in node.links().items() if not link.startswith(red)} == got


def test_the_dock_of_a_device_by_property_is_known_only_while_it_can_be_read() -> None:
    here, before = Spot("2.1", "", "if00"), Spot("3.1", "", "if00")
    dock, last = Dock("D1", "1d50:d0cc", "1"), Dock("D2", "1d50:d0cc", "1")
    device = Device("x", spots=(here,), key_hash="red")
    known = Remembered("x", device, earlier={before: ""}, docks={here: last, before: last})
    assert [known.dock_of(spot) for spot in (here, before)] == [None, last]
    assert [known.last_dock_of(spot) for spot in (here, before)] == [last, last]
    read = replace(known, device=replace(device, docks={here: dock}))
    assert [read.dock_of(here), read.last_dock_of(here)] == [dock, dock]
    by_port = replace(known, device=replace(device, key_hash=""))
    assert by_port.dock_of(here) == last


@pytest.mark.parametrize(
    ("serial", "moved", "key_hash", "within", "docks"),
    [
        # It moved with its unit to a hub that may be the dock.
        ("", True, "", "if00", ["4.1"]),
        ("D1", True, "", "if00", []),
        ("H4", True, "", "if00", []),
        # Nobody knows where it is, unless the id says so.
        ("", False, "", "if00", []),
        ("", False, "red", "if00", ["4.1"]),
        ("", False, "red", "if01", []),
        # It was lost where another dock is now.
        ("H4", None, "", "if01", ["3.1"]),
    ],
)
def test_a_node_is_in_its_last_dock_where_it_may_be(
    serial: str, moved: bool | None, key_hash: str, within: str, docks: list[str]
) -> None:
    was, part = locate(a_part("3", 10, "D1")).spot, a_part("3" if moved is None else "4", 20, serial)
    dock, place = Dock("D1", "0403:d0cc", "1"), locate(part)
    before = was._replace(within=within)
    known = Remembered("x", Device("x", spots=(before,)), docks={before: dock})
    read = {place.spot: place.dock} if place.dock else {}
    device = Device("x", spots=(place.spot,), key_hash=key_hash, docks=read)
    now = before if moved is None else place.spot if moved else None
    found = docks_now(known, device, {before: now}, plugged_of([part]))
    assert [spot.port.rpartition(" ")[2] for spot in found] == docks
    assert {*found.values()} <= {dock}


@pytest.mark.parametrize(("product", "docks"), [("d0cc", ["D1"]), ("aaaa", [])])
def test_what_an_edit_took_from_a_device_is_in_the_last_dock_if_the_device_may_be(
    product: str, docks: list[str]
) -> None:
    was, part = locate(a_part("3", 10, "D1")).spot, a_part("4", 20, "", product)
    dock, now = Dock("D1", "0403:d0cc", "1"), locate(part).spot
    lost = was._replace(within="if01")
    known = Remembered("x", Device("x", spots=(lost,)), docks={lost: dock})
    moved = {lost: now._replace(within="if01")}
    found = docks_now(known, Device("x", spots=(now,)), moved, plugged_of([part]))
    assert [each.serial for each in found.values()] == docks


@pytest.mark.parametrize(
    ("serial", "model", "at", "may_be"),
    [
        ("", "0403:d0cc", "1", True),
        ("D1", "0403:d0cc", "1", True),
        ("H4", "0403:d0cc", "1", False),
        ("", "0403:d0cd", "1", False),
        ("", "0403:d0cc", "2", False),
    ],
)
def test_a_unit_may_be_in_a_dock_of_its_model_at_its_port(
    serial: str, model: str, at: str, *, may_be: bool
) -> None:
    usb = a_part("3", 10, serial).usb_device
    assert usb is not None
    assert may_be_in(usb, Dock("D1", model, at)) is may_be


def test_a_dock_that_cannot_be_read_is_saved_for_a_release_that_knows_none_such() -> None:
    """It reads what it knows, and no dock at a spot where none is certain."""
    here, before = Spot("2.1", "", "if00"), Spot("3.1", "", "if00")
    dock = Dock("D1", "0403:d0cc", "1")
    known = Remembered(
        "example.com/x",
        Device("x", links=("x",), spots=(here,)),
        earlier={before: ""},
        docks={here: dock, before: dock},
    )
    saved = json.loads(dump(Memory({"x": known})))["devices"]["x"]
    assert [spot[0] for spot, _ in saved["docks"]] == ["3.1"]
    assert [spot[0] for spot, _ in saved["unread_docks"]] == ["2.1"]
    assert load(dump(Memory({"x": known}))).devices["x"].docks == known.docks


TWO_RULES = rule("y", match='{ SUBSYSTEM = "tty", ID_MODEL_ID = "6001" }') + rule(
    "x", 'identity = ["PART"]', match='{ SUBSYSTEM = "tty", ID_MODEL_ID = "7777" }'
)
WITH_SHARED = (
    rule("x", match='{ SUBSYSTEM = "tty", ID_MODEL_ID = "7777" }')
    + '[[resource.node]]\nmatch = { SUBSYSTEM = "tty", ID_MODEL_ID = "6001" }\n'
    + "shared = true\noptional = true\n"
)


@pytest.mark.parametrize("rules", [TWO_RULES, WITH_SHARED], ids=["two rules", "shared"])
@pytest.mark.parametrize("is_replugged", [False, True])
def test_of_two_adapters_in_a_dock_one_may_be_away_while_the_other_comes_one_by_one(
    rules: str, *, is_replugged: bool
) -> None:
    def at(port: str, since: int, ports: int, *, other: bool) -> Iterator[UdevDevice]:
        hub = a_hub(port, since)
        for number, product, count in ((1, "6001", ports), (2, "7777", 1 if other else 0)):
            unit = in_socket(f"{port}.{number}", product=product, shift=4, devnum=40 + number)
            unit = replace(unit, parent=hub, incarnation=since + 10 * number)
            for n in range(5 * number, 5 * number + count):
                part = {"PART": f"{product}-{n}"}
                node = a_usb_node(unit, "tty", f"ttyUSB{n}", number=f"c 188:{n}", properties=part)
                yield replace(node, incarnation=since + 10 * number + n)

    node = Node()
    node.look(rules, *at("1", 100, 2, other=True))
    if is_replugged:
        node.look(rules, *at("1", 100, 2, other=False))
        node.look(rules)
    node.look(rules, *at("1", 200, 1, other=False))
    if is_replugged:
        node.look(rules, *at("1", 200, 2, other=False))
        node.look(rules)
        node.look(rules, *at("2", 300, 1, other=False))
    for _ in range(2):
        told = node.look(rules, *at("2", 300, 2, other=True))
        assert [*told.values()].count("Healthy") == (3 if rules == TWO_RULES else 1)
        assert all(node.memory.siblings.values())
        node.memory = load(dump(node.memory, "boot"), "boot")


def test_the_tie_of_a_dock_stays_when_there_is_no_twin_of_its_part() -> None:
    node = Node()
    node.look(rule("x", DOCKS), *a_dock("3", 0, parts="1", part="P"))
    (known,) = node.memory.devices.values()
    ties = {known.device.unit: known.device.port}
    part = frozenset({Twin("serial", "P", known.device.models[0], WHOLE)})
    after = without_guesses(replace(node.memory, ties=ties, twins=part, guesses=part), {})
    assert (after.ties, after.twins) == (ties, frozenset())
