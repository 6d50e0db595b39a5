"""One look at a node: what is built, completed from memory, in one call."""

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from tests.scenes.builders import a_usb_serial, by_sys_path, resources_of
from tests.scenes.inventories import DOMAIN, devices_of
from tests.scenes.rules import FTDI_RULE


def taken(
    *devices: UdevDevice, memory: Memory | None = None, rules: str = FTDI_RULE
) -> tuple[Inventory, Memory]:
    builder = Builder(resources_of(rules, domain=DOMAIN), DOMAIN)
    return take_inventory(builder, by_sys_path(*devices), memory or Memory(), 0.0)


def test_of_twins_the_one_that_is_remembered_keeps_the_plain_id() -> None:
    """They appear together, as after a boot; without memory, the lower port would have the plain id."""
    first = a_usb_serial(0, port="2", serial="SAME")
    second = a_usb_serial(1, port="1", serial="SAME")
    _, memory = taken(first)
    inventory, _ = taken(first, second, memory=memory)
    (plain,) = (device for device in devices_of(inventory) if device.id == "ftdi_SAME")
    assert plain.nodes[0].sys_path == first.sys_path


def test_what_is_plugged_in_and_no_longer_taken_is_not_called_unplugged() -> None:
    stick = a_usb_serial(0)
    _, memory = taken(stick)
    stricter = FTDI_RULE.replace('SUBSYSTEM = "tty"', 'SUBSYSTEM = "tty", ID_X = "1"')
    for plugged, reason in (((stick,), "the rules no longer match it"), ((), "it is unplugged")):
        inventory, _ = taken(*plugged, memory=memory, rules=stricter)
        assert [device.reason for device in devices_of(inventory)] == [reason]
