"""The reason why a device is absent, as its nodes that are plugged in tell it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.inventory.inventory import NO_RULE, Inventory, Refusal
from genericdp.core.inventory.siblings.groups import plugged_of
from genericdp.core.memory.absence import Absence
from tests.scenes.builders import (
    a_card,
    a_device,
    a_modem,
    a_usb_device,
    a_usb_interface,
    a_usb_node,
    a_usb_serial,
)
from tests.scenes.edits import Node, rule
from tests.scenes.inventories import inventory_of, the_device
from tests.scenes.rules import FTDI, FTDI_RULE, MODEM, MODEM_RULE

STICK = a_usb_serial(3)
REFUSAL = Refusal(FTDI, STICK.device_node or "", "it has no luck")


def reason_for_the_stick(refusals: Sequence[Refusal]) -> str:
    device = the_device(FTDI_RULE, STICK)
    return Absence(plugged_of([STICK]), Inventory(refusals=tuple(refusals))).reason(FTDI, device)


def test_a_refusal_by_its_resource_is_the_reason() -> None:
    assert reason_for_the_stick([REFUSAL]) == "it has no luck"


def test_a_refusal_by_another_resource_or_of_another_node_is_not() -> None:
    others = [replace(REFUSAL, resource=MODEM), replace(REFUSAL, node="/dev/ttyUSB4")]
    assert reason_for_the_stick(others) == "the rules no longer match it"


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (FTDI_RULE + 'identity = "port"\n', "its id is now ftdi_port-2_nowobh74uu"),
        (FTDI_RULE.replace("ftdi", "uart"), "its id is now uart_A50285BI"),
        (FTDI_RULE, "the device plugged in now may not be the one that a pod got; delete that pod"),
    ],
    ids=["the same resource", "another resource", "under its own id"],
)
def test_a_device_that_has_another_id_now_is_told_by_it(rules: str, reason: str) -> None:
    device = the_device(FTDI_RULE, STICK)
    assert Absence(plugged_of([STICK]), inventory_of(rules, STICK)).reason(FTDI, device) == reason


def test_siblings_that_exchange_their_values_are_not_told_by_the_ids_of_each_other() -> None:
    usb = a_usb_device("1", serial="MANY")

    def a_sibling(number: int, foo: str) -> UdevDevice:
        return a_usb_node(usb, "tty", f"ttyACM{number}", number=f"c 166:{number}", properties={"FOO": foo})

    rules = rule("x", 'identity = ["FOO"]')
    node = Node()
    ids = [*node.look(rules, a_sibling(0, "a"), a_sibling(1, "b"))]
    for id_ in ids:
        node.allocate(id_)
    told = node.look(rules, a_sibling(0, "b"), a_sibling(1, "a"))
    assert told == dict.fromkeys(
        ids, "the device plugged in now may not be the one that a pod got; delete that pod"
    )


def test_a_bare_node_that_udev_knows_now_is_told_by_its_new_id() -> None:
    rules = '[[resource]]\nname = "card"\nmatch = { DEVNAME = "/dev/card0" }\n'
    bare = UdevDevice("/dev/card0", device_node="/dev/card0", number=DeviceNumber("c", 510, 0))
    known = a_device("/sys/devices/virtual/card/first", subsystem="card", node="/dev/card0", number="c 510:0")
    device = the_device(rules, bare)
    (now,) = inventory_of(rules, known).offers["example.com/card"].ids

    found = Absence(plugged_of([known]), inventory_of(rules, known)).reason("example.com/card", device)
    assert found == f"its id is now {now}"
    found = Absence(plugged_of([known]), Inventory()).reason("example.com/card", device)
    assert found == "the rules no longer match it"


def test_a_device_that_is_now_several_is_not_told_by_one_of_them() -> None:
    usb, *nodes = a_modem()
    device = the_device(MODEM_RULE, usb, *nodes)
    apart = MODEM_RULE.replace('group_by = "usb_device"\n', "")
    absence = Absence(plugged_of([usb, *nodes]), inventory_of(apart, usb, *nodes))
    found = absence.reason(MODEM, device)
    assert found == "the device plugged in now may not be the one that a pod got; delete that pod"
    ids = "modem_EC25-17.if02, modem_EC25-17.if04-cdc-wdm"
    assert absence.reason(MODEM, device, is_held=False) == f"its ids are now {ids}"


def test_a_divided_device_names_only_its_first_ids() -> None:
    sticks = [a_usb_serial(n, port=str(n + 1), serial=f"S{n}") for n in range(5)]
    device = the_device(rule("x", 'group_by = "all"'), *sticks)
    found = Absence(plugged_of(sticks), inventory_of(rule("x"), *sticks))
    assert found.reason("example.com/x", device, is_held=False) == "its ids are now x_S0, x_S1, x_S2, …"


def test_what_udev_has_only_begun_with_is_not_finished() -> None:
    usb, *nodes = a_modem()
    device = the_device(MODEM_RULE, usb, *nodes)
    *finished, last = nodes
    coming = plugged_of([usb, *finished, replace(last, initialized=False)])
    assert Absence(coming, Inventory()).reason(MODEM, device) == "udev has not finished with it"


def test_a_unit_that_was_seen_at_two_ports_is_told_by_its_id_at_the_other_port() -> None:
    """It may be its twin, so the pod does not get it."""
    here, there = (a_usb_serial(n, port=str(n), serial="A") for n in (1, 2))
    node = Node()
    (held,) = node.look(rule(), here)
    node.allocate(held)
    (other,) = node.look(rule(), here, there).keys() - {held}

    told = node.look(rule(), there)

    reason = (
        f"it is unplugged; {other} has the same identity, but there were two such units: plug this one in at "
        "its old port (USB port 1)"
    )
    assert told == {held: reason, other: "Healthy"}
    assert node.look(rule()) == dict.fromkeys((held, other), "it is unplugged")


def test_a_device_whose_driver_is_unbound_is_unplugged() -> None:
    """Its interface is still there, without a device node."""
    device = the_device(FTDI_RULE, STICK)
    usb = STICK.usb_device
    assert usb is not None
    left = plugged_of([usb, a_usb_interface(usb)])
    assert Absence(left, Inventory()).reason(FTDI, device) == "it is unplugged"


MOVED_AWAY = "it is unplugged at its port, and no rule matches it where it is now"
NARROW = FTDI_RULE.replace('vendor = "0403"', 'vendor = "9999"')


@pytest.mark.parametrize(
    ("at", "rules", "reason"),
    [
        ({"port": "5"}, NARROW, MOVED_AWAY),
        ({"port": "5"}, FTDI_RULE.replace("ftdi", "uart"), "it is unplugged"),
        ({"port": "5", "product": "6002"}, NARROW, "it is unplugged"),
        ({"port": "5", "serial": "S2"}, NARROW, "it is unplugged"),
    ],
    ids=["no rule matches it", "another resource takes it", "another model", "another unit"],
)
def test_a_unit_that_was_moved_after_an_edit_is_told_by_its_serial_number(
    at: Mapping[str, Any], rules: str, reason: str
) -> None:
    """What another resource takes may be another unit there."""
    device, moved = the_device(FTDI_RULE, STICK), a_usb_serial(7, **at)
    assert Absence(plugged_of([moved]), inventory_of(rules, moved)).reason(FTDI, device) == reason


@pytest.mark.parametrize("keys", ['identity = "port"', ""])
def test_what_is_told_by_its_port_is_not_at_another_one(keys: str) -> None:
    serial = "A5" if keys else None
    stick, moved = (a_usb_serial(n, port=port, serial=serial) for n, port in enumerate("25"))
    device = the_device(f"{FTDI_RULE}{keys}\n", stick)
    assert Absence(plugged_of([moved]), Inventory()).reason(FTDI, device) == "it is unplugged"


def test_a_unit_at_another_port_with_a_mistake_is_told_by_the_mistake() -> None:
    node, moved = Node(), a_usb_serial(7, port="5", serial="A5")
    (held,) = node.look(rule(), a_usb_serial(3, port="2", serial="A5"))
    node.allocate(held)
    told = node.look(rule("ftdi", 'env = { REV = "{ID_REVISION}" }'), moved)
    mistake = "it has no property ID_REVISION, which a template uses without a default"
    assert told == {held: f"it is unplugged at its port; where it is now, {mistake}"}
    told = node.look(rule("ftdi", 'env = { REV = "{ID_REVISION}" }'), replace(moved, initialized=False))
    assert told == {held: "it is unplugged"}


def test_a_unit_that_was_moved_has_no_rule_once_its_resource_has_none() -> None:
    node = Node()
    (held,) = node.look(rule(), a_usb_serial(3, port="2", serial="A5"))
    node.allocate(held)
    other = rule("other", match='{ SUBSYSTEM = "net" }')
    for here in ([a_usb_serial(7, port="5", serial="A5")], []):
        node.look(other, *here)
        assert node.memory.devices[held].device.reason == (NO_RULE if here else "it is unplugged")


def test_a_kit_of_which_only_a_part_was_moved_is_unplugged() -> None:
    sticks = [a_usb_serial(n, port=str(n), serial=f"S{n}") for n in (1, 2)]
    device = the_device(rule("x", 'group_by = "all"'), *sticks)
    moved = [a_usb_serial(n, port=str(n), serial=f"S{n - 2}") for n in (3, 4)]
    for here, reason in ((moved, MOVED_AWAY), (moved[:1], "it is unplugged")):
        assert Absence(plugged_of(here), Inventory()).reason("example.com/x", device) == reason


def test_twins_are_not_looked_for_at_other_ports() -> None:
    first, second = (a_usb_serial(n, port=str(n), serial="A") for n in (1, 2))
    node = Node()
    (held,) = node.look(rule(), first)
    node.allocate(held)
    node.look(rule(), first, second)
    narrow = rule(match='{ SUBSYSTEM = "tty", usb = { port = "1" } }')
    assert node.look(narrow, second)[held] == "it is unplugged"


def test_what_no_pod_holds_is_not_the_one_that_a_pod_got() -> None:
    node, by_part = Node(), rule("ftdi", 'identity = ["PART"]')
    ids = node.look(rule(), *a_card("2", {0: 0, 1: 1}, 10))
    node.look(by_part, *a_card("2", {1: 1}, 20))
    told = node.look(by_part, *a_card("2", {0: 0, 1: 1}, 30))
    assert {told[id_] for id_ in ids} == {"the device plugged in now may not be the one that had this id"}


def test_what_had_an_id_of_an_earlier_release_is_told_to_delete_a_pod_only_if_one_has_it() -> None:
    device = replace(the_device(FTDI_RULE, STICK), also=())
    inventory = inventory_of(FTDI_RULE, STICK)
    ((name, offer),) = inventory.offers.items()
    now = tuple(replace(each, before=device.spots, spots=(), also=()) for each in offer.devices)
    inventory = replace(inventory, offers={name: replace(offer, devices=now)})
    absence = Absence(plugged_of([]), inventory)
    held = "the device plugged in now may not be the one that a pod got; delete that pod"
    assert absence.reason(FTDI, device) == held
    free = "the device plugged in now may not be the one that had this id"
    assert absence.reason(FTDI, device, is_held=False) == free
