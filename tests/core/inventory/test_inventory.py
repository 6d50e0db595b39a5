"""What links an inventory wants, and what becomes of devices whose links cannot be made."""

from dataclasses import replace

from genericdp.core.inventory.inventory import Inventory, without_links
from genericdp.core.inventory.offer import Device, Health, Node, Offer
from genericdp.core.rules.resource import EVERY_NODE
from tests.scenes.builders import a_fuse, a_usb_serial, resources_of
from tests.scenes.inventories import inventory_of

FTDI = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty", ID_VENDOR_ID = "0403" }\n'


def test_a_link_points_at_the_node_of_a_healthy_device() -> None:
    assert inventory_of(FTDI, a_usb_serial(3, serial="A5")).links() == {"ftdi_A5": "/dev/ttyUSB3"}


def test_the_links_of_an_unhealthy_device_point_nowhere() -> None:
    device = replace(a_usb_serial(3, serial="A5"), node_is_there=False)
    assert inventory_of(FTDI, device).links() == {"ftdi_A5": None}


def test_links_of_nodes_that_are_away_and_of_resources_that_left_point_nowhere() -> None:
    node = Node("/dev/a", None, "x@a", EVERY_NODE, {}, (), "/sys/a")
    offer = Offer(resources_of(FTDI)[0], (Device("x", nodes=(node,), links=("x@a", "x@b")),))
    inventory = Inventory({"example.com/ftdi": offer}, orphaned_links=("y@a", "x@a"))
    assert inventory.links() == {"y@a": None, "x@a": "/dev/a", "x@b": None}


def test_a_device_whose_link_cannot_be_made_is_not_healthy() -> None:
    inventory = inventory_of(
        FTDI, a_usb_serial(0, port="1", serial="A"), a_usb_serial(1, port="2", serial="B"), a_fuse()
    )
    assert without_links(inventory, {}) is inventory
    judged = without_links(inventory, {"ftdi_B": "no space", "other": "x"})
    a, b = judged.offers["example.com/ftdi"].devices
    assert (a.healthy, b.health, b.reason) == (True, Health.UNHEALTHY, "no space")
    assert without_links(judged, {"ftdi_B": "other"}) == judged
