"""A twin with which udev has not finished for a minute: it is not the unit that has just left."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.past import WHOLE
from genericdp.core.memory.lasting import TWO_AFTER_S
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule


def unfinished(device: UdevDevice) -> UdevDevice:
    """The same while udev is at work on it and its parents: their properties are those of the kernel."""
    properties = {name: each for name, each in device.properties.items() if not name.startswith("ID_")}
    parent = unfinished(device.parent) if device.parent else None
    return replace(device, initialized=False, properties=properties, parent=parent)


def a_unit(port: str, number: int, plug: int, serial: str | None = "S") -> list[UdevDevice]:
    usb = replace(a_usb_device(port, serial=serial, devnum=10 + plug), incarnation=100 * plug)
    tty = a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}")
    return [usb, replace(tty, incarnation=100 * plug + 1)]


@pytest.mark.parametrize("keys", ["", 'group_by = "usb_device"', 'group_by = "all"'])
@pytest.mark.parametrize("nodes", ["both", "usb", "none"])
@pytest.mark.parametrize("lasts", [True, False])
def test_what_udev_has_not_finished_with_for_a_minute_is_another_unit(
    keys: str, nodes: str, *, lasts: bool
) -> None:
    node, rules = Node(), rule("x", keys)
    (id_,) = node.look(rules, *a_unit("1", 0, 1))
    node.allocate(id_)
    node.look(rules, *a_unit("1", 0, 1))
    (link,) = node.links()
    usb, tty = a_unit("3", 1, 2)
    other = {"both": [unfinished(usb), unfinished(tty)], "usb": [unfinished(usb)], "none": []}[nodes]
    node.look(rules, *a_unit("1", 0, 1), *other)
    node.now += 2 * TWO_AFTER_S if lasts else 0.0
    node.look(rules, *a_unit("1", 0, 1), *other)
    node.look(rules, *other)
    node.look(rules, usb, tty)
    is_another = lasts and other != []
    assert node.links()[link] == (None if is_another else "/dev/ttyUSB1")


def test_two_units_with_which_udev_has_not_finished_are_no_twins_at_once() -> None:
    node, units = Node(), [*a_unit("1", 0, 1), *a_unit("3", 1, 2)]
    node.look(rule("x"), *map(unfinished, units))
    assert node.inventory.twins == frozenset()
    node.now += 2 * TWO_AFTER_S
    node.look(rule("x"), *map(unfinished, units))
    assert {twin.within for twin in node.inventory.twins} == {WHOLE}
