"""What nobody could read, and where it may be connected."""

import pytest

from genericdp.core.buses.port import beside_in_socket, may_be_at, usb_above
from genericdp.core.device import PEER, at_root_hub
from genericdp.core.inventory.place import locate
from tests.scenes.builders import a_usb_serial
from tests.scenes.sockets import SHIFT, a_tty_in_socket, in_socket

CONTROLLER = "/sys/devices/pci0000:00/0000:00:14.0"
DISK = "/sys/devices/pci0000:00/0000:00:1d.0/0000:01:00.0"


@pytest.mark.parametrize(
    ("path", "may_be"),
    [
        (f"{CONTROLLER}/usb1/1-2/1-2.3", True),
        (f"{CONTROLLER}/usb1/1-2/1-2.3/1-2.3:1.0/ttyUSB0/tty/ttyUSB0", True),
        (f"{CONTROLLER}/usb1/1-2", False),
        (f"{CONTROLLER}/usb1", False),
        (f"{CONTROLLER}/usb1/1-3", False),
        (DISK, False),
        ("/dev/something", False),
        ("/sys/dev/char", True),
    ],
)
def test_at_a_port_of_usb_may_be_what_has_its_chain(path: str, *, may_be: bool) -> None:
    assert may_be_at(f"{CONTROLLER} usb2 2.3", path) is may_be


PLATFORM = "/sys/devices/platform/axi/1000120000.pcie/1f00200000.usb/xhci-hcd.{}.auto"


@pytest.mark.parametrize(
    ("controller", "other", "may_be"),
    [
        (CONTROLLER, DISK, False),
        (CONTROLLER, PLATFORM.format(1), True),
        (PLATFORM.format(0), PLATFORM.format(1), True),
    ],
)
def test_a_controller_is_told_apart_by_its_address_on_pci(
    controller: str, other: str, *, may_be: bool
) -> None:
    """Others have numbers, which follow the order in which they were found."""
    assert may_be_at(f"{controller} usb2 2.3", f"{other}/usb3/3-2/3-2.3") is may_be


@pytest.mark.parametrize("below", ["", "/1-2.3:1.0", "/1-2.3:1.0/ttyUSB0/tty/ttyUSB0", "/power/x"])
def test_the_unit_of_a_part_is_what_is_above_its_interface(below: str) -> None:
    unit = f"{CONTROLLER}/usb1/1-2/1-2.3"
    assert usb_above(f"{unit}{below}") == unit


def test_the_port_of_a_unit_is_one_at_which_it_may_be() -> None:
    tty = a_usb_serial(0, port="2.3")
    assert may_be_at(locate(tty).port.exact, tty.sys_path)


@pytest.mark.parametrize(
    ("path", "may_be"),
    [(DISK, True), (f"{CONTROLLER}/usb1/1-3", False), ("/sys/dev/block", True), ("/dev/sda", False)],
)
def test_at_another_port_may_be_whatever_is_not_on_usb(path: str, *, may_be: bool) -> None:
    assert may_be_at(DISK, path) is may_be


def test_what_is_told_by_something_else_may_be_anywhere() -> None:
    assert may_be_at("wwid naa.5000c500a1b2c3d4", f"{CONTROLLER}/usb1/1-3")


def test_a_bare_node_is_at_its_path() -> None:
    assert may_be_at("/dev/dsp", "/dev/dsp")
    assert not may_be_at("/dev/dsp", "/dev/mixer")


@pytest.mark.parametrize("port", ["2", "2.3.1"])
@pytest.mark.parametrize("shift", [0, SHIFT])
@pytest.mark.parametrize("fast", [False, True])
def test_beside_a_unit_is_what_would_be_in_its_socket_at_the_other_speed(
    port: str, shift: int, *, fast: bool
) -> None:
    units = {speed: in_socket(port, fast=speed, shift=shift) for speed in (False, True)}
    hub = units[fast] if port == "2" else units[fast].parent
    while hub is not None and PEER not in hub.attributes:
        hub = hub.parent
    assert hub is not None
    assert at_root_hub(units[fast].sys_path) == hub.sys_path
    part = a_tty_in_socket(port=port, fast=fast, shift=shift)
    for path in (units[fast].sys_path, part.sys_path):
        assert beside_in_socket(path, hub.attributes[PEER]) == units[not fast].sys_path
        assert beside_in_socket(path, "") == ""


@pytest.mark.parametrize(
    "path",
    [CONTROLLER, f"{CONTROLLER}/usb1", f"{CONTROLLER}/usb1/1-0:1.0", DISK, "/dev/dsp", "/sys/class/tty", ""],
)
def test_nothing_is_beside_what_is_not_at_a_port_of_a_hub(path: str) -> None:
    assert at_root_hub(path) == ""
    assert beside_in_socket(path, f"{CONTROLLER}/usb2/2-0:1.0/usb2-port7") == ""
