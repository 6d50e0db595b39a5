"""Kits whose units get to other pods, after an edit that divides the kit, or at another port."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import PODS_SETTLE_S
from genericdp.core.memory.memory import resumed
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule


def a_unit(port: str, number: int, plug: int, serial: str | None) -> list[UdevDevice]:
    usb = replace(a_usb_device(port, serial=serial, devnum=10 + plug), incarnation=100 * plug)
    tty = a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}", properties={"RIG": "r"})
    return [usb, replace(tty, incarnation=100 * plug + 1)]


@pytest.mark.parametrize("edit", ["x", "other"])
@pytest.mark.parametrize("keys", ['group_by = "RIG"', 'group_by = "ID_VENDOR_ID"', 'group_by = "all"'])
@pytest.mark.parametrize("serial", [None, "0001", "S1"])
@pytest.mark.parametrize("other", [None, "0001", "S0"])
def test_another_unit_in_the_kit_is_not_the_one_that_has_left(
    keys: str, serial: str | None, other: str | None, edit: str
) -> None:
    kit, node = rule("x", keys), Node()
    (id_,) = node.look(kit, *a_unit("2", 0, 1, serial))
    node.allocate(id_)
    node.look(kit)
    node.look(kit, *a_unit("4", 1, 2, other))
    node.look(rule(edit), *a_unit("4", 1, 2, other))
    back = a_unit("2", 3, 5, serial)
    node.look(rule(edit), *back, *a_unit("4", 1, 2, other))
    free = [each for offer in node.inventory.offers.values() for each in offer.ids.values() if each.healthy]
    assert back[-1].device_node not in {each.path for device in free for each in device.nodes}


def in_dock(port: str, plug: int) -> list[UdevDevice]:
    """Two adapters without serial numbers, in a dock that has one."""
    hub = replace(a_usb_device(port, product="d0cc", serial="D1"), incarnation=100 * plug)
    hub = replace(hub, properties={**hub.properties, "TYPE": "9/0/1"})
    found = [hub]
    for number in (1, 2):
        usb = replace(a_usb_device(f"{port}.{number}", serial=None, devnum=9 + number), parent=hub)
        properties = {"BENCH": "a", "ROLE": f"r{number}"}
        tty = a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}", properties=properties)
        found.append(replace(tty, incarnation=100 * plug + number))
    return found


@pytest.mark.parametrize("identity", ["", 'identity = ["BENCH"]'])
@pytest.mark.parametrize("taken", ["r1", "r2"])
def test_what_an_edit_took_from_a_kit_goes_along_with_the_dock(identity: str, taken: str) -> None:
    """The one node that is left of the kit is not the one that was taken, although it moved as well."""
    kit = rule("x", 'group_by = { ID_MODEL_ID = "d0cc" }', identity)
    node, edited = Node(), rule("y", match=f'{{ SUBSYSTEM = "tty", ROLE = "{taken}" }}') + kit
    (id_,) = node.look(kit, *in_dock("1", 1))
    node.allocate(id_)
    node.look(edited, *in_dock("1", 1))
    told = node.look(edited, *in_dock("2", 2))
    assert told.pop(id_) == "Healthy"
    assert {*told.values()} == {"it is unplugged", f"a pod may still hold it as {id_} of example.com/x"}


HUBS = rule(
    "x", 'group_by = { ID_MODEL_ID = "b0b0" }', match='{ SUBSYSTEM = "tty", usb = { port = "1.*" } }'
) + rule("z")


def behind_hub(port: str, plug: int, serial: str) -> list[UdevDevice]:
    """A stick, behind a hub without a serial number if its port has a dot."""
    usb = a_usb_device(port, serial=serial, devnum=plug)
    if "." in port:
        hub = a_usb_device(port[0], product="b0b0", serial=None, devnum=99)
        usb = replace(usb, parent=replace(hub, properties={**hub.properties, "TYPE": "9/0/1"}))
    usb = replace(usb, incarnation=100 * plug)
    tty = a_usb_node(usb, "tty", f"ttyUSB{plug}", number=f"c 188:{plug}")
    return [usb, replace(tty, incarnation=100 * plug + 1)]


@pytest.mark.parametrize("back", ["1.1", "1.2"])
def test_a_unit_that_another_pod_got_elsewhere_waits_in_the_kit_until_that_pod_is_gone(back: str) -> None:
    node, other = Node(), behind_hub("1.3", 9, "B")
    (kit,) = node.look(HUBS, *behind_hub("1.1", 1, "A"), *other)
    node.allocate(kit)
    node.look(HUBS, *other)
    node.look(HUBS, *behind_hub("2", 2, "A"), *other)
    node.allocate("z_A")
    node.look(HUBS, *behind_hub("2", 2, "A"), *other)
    node.look(HUBS, *other)
    for _ in range(3):
        told = node.look(HUBS, *behind_hub(back, 3, "A"), *other)
        assert told == {
            kit: "a pod may still hold it as z_A of example.com/z",
            "z_A": "it is unplugged",
        }
        assert {*node.inventory.links().values()} == {None}
        node.memory = resumed(saved.load(saved.dump(node.memory, "this"), "this"), node.now)
    node.now += PODS_SETTLE_S
    only_kit = Answer(frozenset({("example.com/x", kit)}), node.now, complete=True)
    node.look(HUBS, *behind_hub(back, 3, "A"), *other, answer=only_kit)
    assert node.look(HUBS, *behind_hub(back, 3, "A"), *other)[kit] == "Healthy"
    assert "/dev/ttyUSB3" in node.inventory.links().values()
