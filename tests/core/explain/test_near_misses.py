"""What comes near to what a resource takes."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.explain.near_misses import near_misses
from genericdp.core.explain.opinion import opinion
from genericdp.core.inventory.claims import Claims
from tests.scenes.builders import a_device, a_fuse, a_kfd, a_modem, a_terminal, a_usb_serial, resources_of


def near(rules: str, *nodes: UdevDevice) -> list[str]:
    """The near misses of the first resource."""
    resources = resources_of(rules)
    claims = Claims(resources)
    misses = near_misses(opinion(resources[0], node, claims) for node in nodes)
    return [f"{miss.node.device_node} {miss}" for miss in misses]


METER = """
[[resource]]
name = "meter"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", product = "6001", serial = "A" } }
"""


def test_what_fails_by_one_condition_is_near() -> None:
    assert near(METER, a_usb_serial(0, product="6015", serial="A"), a_fuse(), a_terminal()) == [
        "/dev/ttyUSB0 matches all but usb.product: wanted '6001', is '6015'"
    ]


def test_what_fails_by_two_of_four_is_near_while_nothing_is_nearer() -> None:
    far, nearer = a_usb_serial(0, product="6015", serial="B"), a_usb_serial(1, port="3", serial="B")

    assert near(METER, far) == [
        (
            "/dev/ttyUSB0 matches all but usb.product: wanted '6001', is '6015'; and usb.serial: wanted "
            "'A', is 'B'"
        )
    ]
    assert near(METER, far, nearer) == ["/dev/ttyUSB1 matches all but usb.serial: wanted 'A', is 'B'"]


def test_a_unit_without_what_is_wanted_is_nearer_than_what_has_nothing_else_of_it() -> None:
    console = a_device("/sys/devices/virtual/tty/tty7", subsystem="tty", node="/dev/tty7", number="c 4:7")

    assert near(METER, console) == []
    assert near(METER, console, a_usb_serial(0, serial=None)) == [
        "/dev/ttyUSB0 matches all but usb.serial: wanted 'A', is missing"
    ]


def test_what_has_none_of_it_is_not_near() -> None:
    assert near('[[resource]]\nname = "x"\nmatch = { DEVNAME = "/dev/x" }', a_fuse()) == []


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ('"/dev/FUSE"', "'/dev/FUSE'"),
        ('["/dev/kvm", "/dev/Fus*"]', "'/dev/kvm' or '/dev/Fus*'"),
        ('"/dev/kvm|/dev/Fuse"', "'/dev/kvm|/dev/Fuse'"),
    ],
)
def test_what_fails_only_by_case_is_near(wanted: str, words: str) -> None:
    rules = f'[[resource]]\nname = "x"\nmatch = {{ DEVNAME = {wanted} }}'
    null = a_device("/sys/devices/virtual/mem/null", subsystem="mem", node="/dev/null", number="c 1:3")
    assert near(rules, null, a_fuse()) == [
        f"/dev/fuse matches all but DEVNAME: wanted {words}, is '/dev/fuse'"
    ]


@pytest.mark.parametrize("wanted", ['{ not = "/dev/fuse" }', '{ regex = "FUSE" }'])
def test_a_pattern_that_is_not_a_glob_is_not_misspelt(wanted: str) -> None:
    assert near(f'[[resource]]\nname = "x"\nmatch = {{ DEVNAME = {wanted} }}', a_fuse()) == []


def test_of_several_alternatives_the_nearest_one_counts() -> None:
    rules = """
[[resource]]
name = "x"
match = [{ SUBSYSTEM = "tty", DEVNAME = "/dev/x" }, { SUBSYSTEM = "misc", DEVNAME = "/dev/f" }]
"""
    assert near(rules, a_fuse()) == ["/dev/fuse matches all but DEVNAME: wanted '/dev/f', is '/dev/fuse'"]


def test_a_node_for_which_no_node_table_has_a_place_is_near() -> None:
    rules = """
[[resource]]
name = "modem"
match = { usb = { vendor = "2c7c" } }
[[resource.node]]
match = { SUBSYSTEM = "tty", usb = { interface = "09" } }
"""
    assert near(rules, a_modem()[1]) == ["/dev/ttyUSB1 matches all but usb.interface: wanted '09', is '00'"]


def test_what_matches_and_goes_to_another_resource_is_nearest() -> None:
    rules = """
[[resource]]
name = "b"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }
[[resource]]
name = "a"
match = { usb = { vendor = "2c7c" } }
"""
    assert near(rules, *a_modem(), a_usb_serial(9)) == [
        f"/dev/ttyUSB{n} matches all but usb.vendor: wanted '0403', is '2c7c' (it goes to example.com/a)"
        for n in (1, 2, 3)
    ]


def test_what_another_resource_has_is_nearest() -> None:
    rules = """
[[resource]]
name = "first"
match = { SUBSYSTEM = "tty" }
[[resource]]
name = "last"
match = { SUBSYSTEM = "tty" }
"""
    first, last = resources_of(rules)
    both = Claims((first, last))
    assert [str(each) for each in near_misses([opinion(last, a_usb_serial(9), both)])] == [
        "matches, but goes to example.com/first"
    ]
    assert near_misses([opinion(first, a_usb_serial(9), both)]) == ()


def test_what_udev_has_not_finished_with_matches_and_goes_nowhere_yet() -> None:
    fuse = a_device(node="/dev/fuse", number="c 10:229", initialized=False)

    assert near('[[resource]]\nname = "x"\nmatch = { DEVNAME = "/dev/fuse" }', fuse) == ["/dev/fuse matches"]


def test_what_a_resource_nearly_shares_is_near_and_what_it_shares_is_not() -> None:
    rules = """
[[resource]]
name = "gpu"
match = { SUBSYSTEM = "drm" }
[[resource.node]]
match = { SUBSYSTEM = "kfd", DEVNAME = "/dev/kdf" }
shared = true
"""
    assert near(rules, a_kfd()) == ["/dev/kfd matches all but DEVNAME: wanted '/dev/kdf', is '/dev/kfd'"]
    assert near(rules.replace("kdf", "kfd"), a_kfd()) == []
