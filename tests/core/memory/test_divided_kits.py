"""A kit of one unit at a time, grouped by a property: an edit that divides it gives no pod's unit away."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
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
