"""The line of `systemctl status`, whole."""

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.returning import Returning
from genericdp.core.status.history import Failure
from genericdp.core.status.status_line import status_line
from tests.scenes.builders import a_fuse, a_usb_serial
from tests.scenes.inventories import inventory_of

FUSE = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\n'
BOTH = FUSE + '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\nhealth = { DRIVER = "x" }\n'


def test_it_counts_in_the_singular_and_the_plural() -> None:
    assert status_line(Inventory(), None, 0) == "0 resources, 0 of 0 devices healthy; no kubelet"
    assert status_line(Inventory(), None, 0, rival=True) == (
        "0 resources, 0 of 0 devices healthy; another genericdp serves the kubelet"
    )
    one = inventory_of(FUSE, a_fuse())
    assert status_line(one, 1, 0) == "1 resource, 1 of 1 device healthy; registered"
    assert status_line(one, 1, 1) == "1 resource, 1 of 1 device healthy; registered; 1 problem in rule files"


def test_it_says_what_is_missing() -> None:
    both = inventory_of(BOTH, a_fuse(), a_usb_serial())
    assert status_line(both, 1, 2) == (
        "2 resources, 1 of 2 devices healthy; 1 of them registered; 2 problems in rule files"
    )


def test_what_fails_is_in_it() -> None:
    failing = [
        Failure("cannot save '/m': no space", "free some", 0.0),
        Failure("cannot read 2 devices", "", 0.0),
    ]
    assert status_line(Inventory(), 0, 1, failing) == (
        "0 resources, 0 of 0 devices healthy; registered; cannot save '/m': no space; cannot read 2 devices; "
        "1 problem in rule files"
    )


def test_what_ready_waits_for_comes_first_and_the_first_three_are_named() -> None:
    one, two, three, four, five = (Returning("a.b/c", f"c_{n}", 1.0) for n in range(1, 6))
    assert status_line(Inventory(), None, 0, returning=[one]) == (
        "waiting for c_1, there before the reboot; 0 resources, 0 of 0 devices healthy; no kubelet"
    )
    assert status_line(Inventory(), None, 0, returning=[one, two, three, four, five]) == (
        "waiting for c_1, c_2, c_3 and 2 more, there before the reboot; "
        "0 resources, 0 of 0 devices healthy; no kubelet"
    )
