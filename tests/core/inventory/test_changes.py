"""The difference of two inventories."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Changes, Inventory, diff
from tests.scenes.builders import a_usb_serial
from tests.scenes.inventories import inventory_of

FTDI = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty", ID_VENDOR_ID = "0403" }\n'
SERIAL = '[[resource]]\nname = "serial"\nmatch = { SUBSYSTEM = "tty", usb = { vendor = "*" } }\n'
FUSE = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\nreplicas = 2\n'


def test_no_difference_is_no_change() -> None:
    inventory = inventory_of(FTDI + FUSE, a_usb_serial())
    assert diff(inventory, inventory_of(FTDI + FUSE, a_usb_serial())) == Changes()
    assert not diff(inventory, inventory)


def test_resources_that_come_and_go_are_named_in_file_order() -> None:
    one, two = inventory_of(FTDI + FUSE), inventory_of(SERIAL + FUSE)
    assert diff(Inventory(), two) == Changes(added=("example.com/serial", "example.com/fuse"))
    assert diff(one, two) == Changes(added=("example.com/serial",), removed=("example.com/ftdi",))
    assert diff(one, Inventory()) == Changes(removed=("example.com/ftdi", "example.com/fuse"))


@pytest.mark.parametrize(
    ("rules", "devices"),
    [
        (FTDI, []),
        (FTDI, [a_usb_serial(4, serial="A5")]),
        (FTDI, [replace(a_usb_serial(3, serial="A5"), node_is_there=False)]),
        (FTDI, [a_usb_serial(3, serial="B6")]),
        (FTDI + 'permissions = "r"\n', [a_usb_serial(3, serial="A5")]),
        (FTDI + 'prefer = "spread"\n', [a_usb_serial(3, serial="A5")]),
    ],
)
def test_whatever_changes_a_list_or_an_answer_is_an_update(rules: str, devices: list[UdevDevice]) -> None:
    before = inventory_of(FTDI + FUSE, a_usb_serial(3, serial="A5"))
    after = inventory_of(rules + FUSE, *devices)
    changes = diff(before, after)
    assert changes == Changes(updated=("example.com/ftdi",))
    assert changes


def test_a_rule_that_moved_within_its_file_is_not_a_change() -> None:
    # A rule that moved within its file means the same.
    before = inventory_of(FTDI, a_usb_serial(3))
    assert diff(before, inventory_of("# a comment\n" + FTDI, a_usb_serial(3))) == Changes()
