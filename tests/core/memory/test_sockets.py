"""A USB 3 socket is one port: a unit in it is the same device, at whichever speed it runs."""

import json
from dataclasses import replace

import pytest

from genericdp.core.inventory.place import locate
from genericdp.core.memory import saved
from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.core.memory.memory import Memory
from tests.scenes.builders import CONTROLLER
from tests.scenes.edits import Node, rule
from tests.scenes.sockets import SHIFT, a_tty_in_socket, in_socket, unread

UNITS = rule(
    "x", 'identity = "port"', match='{ SUBSYSTEM = "usb", DEVTYPE = "usb_device", ID_VENDOR_ID = "0403" }'
)
TTYS = rule("x", 'identity = "port"')
HUBS = rule("x", 'identity = "port"', match='{ SUBSYSTEM = "usb", TYPE = "9/*" }')
HOLDS_NOTHING = "only its id is known"


@pytest.mark.parametrize("shift", [0, SHIFT])
@pytest.mark.parametrize("port", ["2", "2.3.1"])
@pytest.mark.parametrize("first", [False, True])
def test_a_unit_that_comes_back_at_another_speed_is_the_same_device(
    first: bool, port: str, shift: int
) -> None:
    node = Node()
    (id_,) = node.look(UNITS, in_socket(port, fast=first, shift=shift))
    node.allocate(id_)
    assert node.look(UNITS) == {id_: "it is unplugged"}
    back = in_socket(port, fast=not first, shift=shift)
    assert node.look(UNITS, back) == {id_: "Healthy"}
    assert node.inventory.links()[id_] == back.device_node


def test_a_part_of_a_unit_is_the_same_device_at_any_speed() -> None:
    node = Node()
    (id_,) = node.look(TTYS, a_tty_in_socket())
    node.allocate(id_)
    node.look(TTYS)
    assert node.look(TTYS, a_tty_in_socket(1, fast=True, shift=SHIFT)) == {id_: "Healthy"}


def test_the_port_is_the_one_of_usb_2() -> None:
    port = locate(in_socket("2.3", fast=True, shift=SHIFT)).port
    assert (port.exact, port.readable, port.hub) == (
        f"{CONTROLLER} usb2 2.3",
        "port-2.3",
        f"{CONTROLLER} usb2 2",
    )
    assert port == locate(in_socket("2.3", shift=SHIFT)).port


def test_without_a_peer_each_speed_has_a_port() -> None:
    assert locate(in_socket(peer=False)).port.exact == f"{CONTROLLER} usb2 2"
    assert locate(in_socket(peer=False, fast=True)).port.exact == f"{CONTROLLER} usb3 2"


@pytest.mark.parametrize(
    "peer", ["", "/sys/devices/other/usb1/1-0:1.0/usb1-port2", f"{CONTROLLER}/usb1", "../x"]
)
def test_what_is_no_port_of_the_same_controller_is_no_peer(peer: str) -> None:
    unit = in_socket(fast=True)
    odd = replace(unit, attributes={**unit.attributes, "port/peer": peer})
    assert locate(odd).port.exact == f"{CONTROLLER} usb3 2"


def test_two_sockets_are_two_devices() -> None:
    node = Node()
    (id_,) = node.look(UNITS, in_socket("2"))
    node.allocate(id_)
    told = node.look(UNITS, in_socket("3", fast=True))
    assert told.pop(id_) == "it is unplugged"
    assert [*told.values()] == ["Healthy"]


# Both ports of a socket at once


def test_the_two_halves_of_a_hub_are_two_devices() -> None:
    halves = in_socket(is_hub=True), in_socket(is_hub=True, fast=True)
    node = Node()
    told = node.look(HUBS, *halves)
    assert [*told.values()] == ["Healthy", "Healthy"]
    for order in (halves, halves[::-1], halves[:1], halves[1:], halves):
        assert {id_ for id_, why in node.look(HUBS, *order).items() if why == "Healthy"} <= told.keys()
    assert node.look(HUBS, *halves) == told
    assert not node.inventory.unsure


def test_a_hub_has_the_ids_that_it_had_without_peers() -> None:
    def halves(*, peer: bool) -> dict[str, str]:
        return Node().look(HUBS, *(in_socket(is_hub=True, fast=fast, peer=peer) for fast in (False, True)))

    assert halves(peer=True) == halves(peer=False)


def test_a_half_of_a_hub_that_is_alone_is_not_the_other_one() -> None:
    fast, slow = (Node().look(HUBS, in_socket(fast=fast, is_hub=True)) for fast in (True, False))
    assert fast != slow
    assert fast == Node().look(HUBS, in_socket(fast=True, is_hub=True, peer=False))


def test_two_units_in_one_socket_are_two_devices_with_the_ids_that_they_had() -> None:
    """Such as a grabber of USB 3 with a function of USB 2 beside it."""
    both = in_socket(), in_socket(fast=True)
    node = Node()
    told = node.look(UNITS, *both)
    assert [*told.values()] == ["Healthy", "Healthy"]
    assert told == Node().look(UNITS, *(in_socket(fast=fast, peer=False) for fast in (False, True)))
    links = node.inventory.links()
    node.allocate(*told)
    for order in (both[:1], both[1:], both, (), both[1:], both, both[:1], both[::-1]):
        node.look(UNITS, *order)
        now = node.inventory.links()
        assert all(now[id_] in (links[id_], None) for id_ in told)
    assert node.look(UNITS, *both) == told
    assert node.inventory.links() == links
    node.memory = saved.load(saved.dump(node.memory))
    assert node.look(UNITS, *both[::-1]) == told
    assert node.inventory.links() == links


@pytest.mark.parametrize("first", [False, True])
def test_what_comes_beside_a_held_unit_may_be_that_unit_at_another_speed(first: bool) -> None:
    """The kernel tells of the new one before it has removed the old one."""
    before, after = in_socket(fast=first), in_socket(fast=not first)
    node = Node()
    (id_,) = node.look(UNITS, before)
    node.allocate(id_)
    told = node.look(UNITS, before, after)
    assert {each for each, why in told.items() if why == "Healthy"} <= {id_}
    assert after.device_node not in node.inventory.links().values()
    assert node.look(UNITS, after) == {id_: "Healthy"}
    assert node.inventory.links()[id_] == after.device_node


def test_what_comes_beside_a_held_unit_has_the_reason() -> None:
    node = Node()
    (id_,) = node.look(UNITS, in_socket())
    node.allocate(id_)
    node.look(UNITS, in_socket(), in_socket(fast=True))
    (refusal,) = node.inventory.refusals
    assert refusal.reason == (
        "it has appeared beside another unit in the same USB socket, and may be that unit at another speed; "
        "if both stay and can be read, this is decided in a minute"
    )
    node.now += TWO_AFTER_S
    assert [*node.look(UNITS, in_socket(), in_socket(fast=True)).values()] == ["Healthy", "Healthy"]


def test_what_is_plugged_in_again_beside_a_held_unit_before_a_minute_has_passed_has_the_reason() -> None:
    """Both came at once, so each counts at its own port, and either may be the other one later."""
    node, parts = Node(), (in_socket(), in_socket(fast=True))
    node.look(UNITS, *parts)
    (id_,) = (id_ for id_, path in node.inventory.links().items() if path == parts[0].device_node)
    node.allocate(id_)
    node.look(UNITS, parts[0])
    assert node.look(UNITS, *parts)[id_] == "Healthy"
    (refusal,) = node.inventory.refusals
    assert refusal.reason == (
        f"it is in the same USB socket as {id_}, which a pod may still hold, and may be the same unit at "
        "another speed; plug both in for a minute, or delete the pod"
    )
    node.now += TWO_AFTER_S
    node.look(UNITS, *parts)
    assert [*node.look(UNITS, *parts).values()] == ["Healthy", "Healthy"]


@pytest.mark.parametrize("is_held", [False, True])
def test_what_comes_beside_a_unit_that_no_rule_matches_any_more_is_decided_in_a_minute(is_held: bool) -> None:
    named = UNITS.replace('ID_VENDOR_ID = "0403"', 'ID_SERIAL_SHORT = "A1"')
    units = in_socket(), in_socket(fast=True, serial="A1")
    node = Node()
    (id_,) = node.look(UNITS, units[0])
    if is_held:
        node.allocate(id_)
    node.look(named, units[0])
    node.look(named, *units)
    (refusal,) = node.inventory.refusals
    assert refusal.reason.endswith("if both stay and can be read, this is decided in a minute")
    node.now += TWO_AFTER_S
    told = node.look(named, *units)
    assert [why for each, why in told.items() if each != id_] == ["Healthy"]
    assert not node.inventory.refusals


def test_a_unit_of_another_serial_number_beside_a_held_one_waits_too() -> None:
    node = Node()
    (id_,) = node.look(UNITS, in_socket())
    node.allocate(id_)
    named = in_socket(fast=True, serial="A1")
    assert [*node.look(UNITS, in_socket(), named).values()] == ["Healthy"]
    assert node.look(UNITS, named) == {id_: "Healthy"}


# Upgrades


def earlier(*ports: bool, held: bool = True) -> tuple[Node, list[str]]:
    """A node with the memory of a release for which each speed was a port; these were plugged in, in turn."""
    node = Node()
    ids: list[str] = []
    for fast in ports:
        told = node.look(UNITS, in_socket(fast=fast, peer=False, shift=SHIFT))
        ids += [id_ for id_ in told if id_ not in ids]
        if held:
            node.allocate(ids[-1])
    node.look(UNITS)
    node.memory = saved.load(saved.dump(node.memory))
    return node, ids


@pytest.mark.parametrize("fast", [False, True])
def test_a_unit_keeps_the_id_under_which_an_earlier_release_remembered_it(fast: bool) -> None:
    node, (id_,) = earlier(fast)
    for now in (fast, not fast, fast):
        unit = in_socket(fast=now, shift=SHIFT)
        assert node.look(UNITS, unit) == {id_: "Healthy"}
        assert node.inventory.links()[id_] == unit.device_node
        node.look(UNITS)


def test_a_unit_that_was_never_held_keeps_its_id_while_it_is_plugged_in() -> None:
    unit = in_socket(fast=True, shift=SHIFT)
    node, (id_,) = earlier(True, held=False)
    assert node.look(UNITS, unit) == {id_: "Healthy"}
    assert node.look(UNITS, unit, answer=node.nobody_holds_anything()) == {id_: "Healthy"}
    node.look(UNITS)
    node.now += 10_000.0
    assert node.look(UNITS, answer=node.nobody_holds_anything()) == {}
    (new,) = node.look(UNITS, unit)
    assert new != id_
    assert node.look(UNITS, in_socket(shift=SHIFT)) == {new: "Healthy"}


def test_a_unit_with_two_remembered_ids_is_given_to_no_second_pod() -> None:
    """An earlier release offered it at both speeds; a pod has the id of one of them."""
    node, (slow, fast) = earlier(False, True)
    node.memory = replace(node.memory, held={fast: node.memory.held[fast]})
    assert node.look(UNITS, in_socket(fast=True, shift=SHIFT))[fast] == "Healthy"
    told = node.look(UNITS, in_socket(shift=SHIFT))
    assert told.pop(slow) == "the device plugged in now may not be the one that had this id"
    assert told == {fast: "it is unplugged"}
    node.memory = saved.load(saved.dump(node.memory))
    told = node.look(UNITS, in_socket(shift=SHIFT))
    assert told == {fast: "it is unplugged", slow: f"a pod may still hold it as {fast}"}
    told = node.look(UNITS, in_socket(fast=True, shift=SHIFT))
    assert told[fast] == "Healthy"


def test_a_twin_that_an_earlier_release_tied_to_a_port_keeps_its_id() -> None:
    by_serial = UNITS.replace('identity = "port"\n', "")

    def twins(*, peer: bool) -> tuple[object, ...]:
        return tuple(in_socket(port, fast=True, peer=peer, serial="S", devnum=int(port)) for port in "23")

    node = Node()
    told = node.look(by_serial, *twins(peer=False))  # type: ignore[arg-type]
    links = node.inventory.links()
    node.allocate(*told)
    node.memory = saved.load(saved.dump(node.memory))
    assert node.look(by_serial, *twins(peer=True)) == told  # type: ignore[arg-type]
    assert node.inventory.links() == links


def test_a_tie_outlives_its_unit_at_either_speed() -> None:
    by_serial = UNITS.replace('identity = "port"\n', "")
    node = Node()
    ids = [*node.look(by_serial, *(in_socket(port, peer=False, fast=True, serial="S") for port in "23"))]
    plain = next(id_ for id_ in ids if id_ == "x_S")
    port = node.memory.ties["x_S"].rpartition(" ")[2]
    node.memory = Memory(ties=node.memory.ties)
    assert node.look(by_serial, in_socket(port, fast=True, serial="S")) == {plain: "Healthy"}


def test_without_a_memory_a_unit_waits_for_the_pod_that_holds_its_earlier_id() -> None:
    node, (id_,) = earlier(True)
    answer = replace(node.nobody_holds_anything(), ids=frozenset({("example.com/x", id_)}))
    node.memory = Memory()
    for fast in (False, True):
        told = node.look(UNITS, in_socket(fast=fast, shift=SHIFT), answer=answer)
        assert told.pop(id_) == HOLDS_NOTHING
        assert [*told.values()] == [f"a pod may still hold it as {id_}"]


def test_what_is_saved_has_the_form_of_earlier_releases() -> None:
    node = Node()
    node.look(UNITS, in_socket(fast=True))
    (device,) = json.loads(saved.dump(node.memory))["devices"].values()
    assert device["port"] == f"{CONTROLLER} usb2 2"


# What cannot be read


def test_what_cannot_be_read_may_be_at_either_port_of_its_socket() -> None:
    node = Node()
    unit = in_socket(shift=SHIFT)
    (id_,) = node.look(UNITS, unit)
    node.allocate(id_)
    hangs = in_socket(fast=True, shift=SHIFT)
    node.look(UNITS, hangs)
    there = (), (replace(hangs, device_node=None, number=None),)
    for hub in there:
        told = node.look(UNITS, *hub, unread=unread(hangs))
        assert told == {id_: "it may be one of the devices that cannot be read"}
        assert node.look(UNITS, *hub) == {id_: "it is unplugged"}
        # In another socket, it is something else.
        assert node.look(UNITS, *hub, unread=unread(in_socket("3", fast=True, shift=SHIFT))) == {
            id_: "it is unplugged"
        }
