"""Which resource takes which device node."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims, Turnover, is_dangerous
from genericdp.core.rules.match import Match, PropertyCondition
from genericdp.core.rules.pattern import glob
from genericdp.core.rules.resource import NodeTable, Resource
from tests.scenes.builders import (
    a_device,
    a_fuse,
    a_modem,
    a_terminal,
    a_usb_device,
    a_usb_serial,
    resources_of,
)


def takers(rules: str, device: UdevDevice) -> list[str]:
    return [claim.resource.short_name for claim in Claims(resources_of(rules)).on(device)]


TWO = """
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", ID_VENDOR_ID = "0403" }
[[resource]]
name = "any-tty"
match = { SUBSYSTEM = "tty" }
"""


def test_claims_are_in_file_order() -> None:
    assert takers(TWO, a_usb_serial(vendor="0403")) == ["ftdi", "any-tty"]
    assert takers(TWO, a_usb_serial(vendor="10c4")) == ["any-tty"]
    assert takers(TWO, a_terminal()) == []


def test_what_has_no_device_node_is_not_claimed() -> None:
    assert takers(TWO, replace(a_usb_serial(), device_node=None)) == []


def test_what_udev_has_not_finished_with_is_not_claimed() -> None:
    assert takers(TWO, replace(a_usb_serial(), initialized=False)) == []


def test_a_resource_claims_the_nodes_that_it_has_a_table_for() -> None:
    modem = Claims(
        resources_of("""
        [[resource]]
        name = "modem"
        match = { usb = { vendor = "2c7c" } }
        group_by = "usb_device"
        [[resource.node]]
        match = { SUBSYSTEM = "tty", usb = { interface = "02" } }
        [[resource.node]]
        match = { SUBSYSTEM = ["usbmisc", "tty"] }
        """)
    )
    tables = [[claim.table for claim in modem.on(device)] for device in a_modem()]
    assert tables == [[], [1], [1], [0], [1]]
    (claim,) = modem.on(a_modem()[4])
    assert claim.node_table is claim.resource.nodes[1]


@pytest.mark.parametrize(
    ("match", "taken"),
    [
        # Each of them asks for what is settled once for all devices alike.
        ('{ SUBSYSTEM = "tty" }', True),
        ('{ SUBSYSTEM = "usb*" }', False),
        ('{ SUBSYSTEM = { not = "tty" } }', False),
        ("{ SUBSYSTEM = { exists = true } }", True),
        ('{ ID_VENDOR_ID = "0x403" }', True),
        ('{ ID_VENDOR_ID = { not = "0403" } }', False),
        ('{ usb = { vendor = "0403" } }', True),
        ('{ usb = { vendor = "0404" } }', False),
        ("{ usb = { vendor = { exists = false } } }", False),
        ('[{ SUBSYSTEM = "misc" }, { usb = { vendor = "0403", product = "6001" } }]', True),
        ('[{ SUBSYSTEM = "misc" }, { usb = { vendor = "0403", product = "6002" } }]', False),
        ('[{ SUBSYSTEM = "misc" }, { DEVNAME = "/dev/ttyUSB0" }]', True),
        ('{ parent = { SUBSYSTEM = "usb" } }', True),
        ('{ parent = { SUBSYSTEM = "pci" }, SUBSYSTEM = "tty" }', True),
    ],
)
def test_what_is_settled_in_advance_agrees_with_the_match(match: str, taken: bool) -> None:
    rules = f'[[resource]]\nname = "x"\nmatch = {match}\n'
    device = a_usb_serial(vendor="0403")
    assert resources_of(rules)[0].match.matches(device) is taken
    assert takers(rules, device) == ["x"] * taken


def test_a_resource_whose_match_has_no_conditions_takes_everything() -> None:
    claims = Claims([Resource("example.com/x", Match())])
    assert [claim.resource.name for claim in claims.on(a_fuse())] == ["example.com/x"]


class Counted:
    """A condition that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def condition(self) -> PropertyCondition:
        def holds(value: str | None) -> bool:
            del value
            self.asked += 1
            return True

        return PropertyCondition("DEVNAME", replace(glob("*"), holds=holds))


def test_a_bare_node_is_not_claimed_unless_a_rule_names_it() -> None:
    bare = UdevDevice(
        "/dev/card0", device_node="/dev/card0", properties={"DEVNAME": "/dev/card0", "MAJOR": "9"}
    )
    by_number = '[[resource]]\nname = "any"\nmatch = { MAJOR = "9" }\n'
    assert takers(by_number, bare) == []
    by_name = '[[resource]]\nname = "card"\nmatch = { DEVNAME = "/dev/card*" }\n'
    assert takers(by_name, bare) == ["card"]


def test_a_snapshot_is_judged_once() -> None:
    counted = Counted()
    claims = Claims([Resource("example.com/x", Match(((counted.condition(),),)))])
    device = a_fuse()
    for _ in range(2):
        claims.see({device.sys_path: device})
        claims.on(device)
        assert counted.asked == 1
    claims.see({device.sys_path: replace(device)})
    assert counted.asked == 2


def test_a_place_is_found_once() -> None:
    claims, device = Claims([]), a_usb_serial()
    usb = device.usb_device
    assert usb is not None
    claims.see({each.sys_path: each for each in (usb, device)})
    for each in (usb, device):
        assert claims.place(each) is claims.place(each)
        assert claims.place(replace(each)) is not claims.place(each)
        assert claims.place(each).port.readable == "port-2"


def test_what_has_left_is_judged_anew() -> None:
    counted = Counted()
    claims = Claims([Resource("example.com/x", Match(((counted.condition(),),)))])
    fuse, terminal = a_fuse(), a_terminal()
    both = {fuse.sys_path: fuse, terminal.sys_path: terminal}
    claims.see(both)
    claims.see({fuse.sys_path: fuse})
    assert counted.asked == 2
    claims.see(both)
    assert counted.asked == 3


def test_a_snapshot_that_was_not_seen_is_judged_for_itself() -> None:
    claims, device = Claims(resources_of(TWO)), a_usb_serial()
    claims.see({device.sys_path: device})
    other = replace(device, properties={**device.properties, "ID_VENDOR_ID": "10c4"})
    assert [claim.resource.short_name for claim in claims.on(other)] == ["any-tty"]
    assert [claim.resource.short_name for claim in claims.on(device)] == ["ftdi", "any-tty"]


def test_what_was_replaced_has_left_and_come() -> None:
    claims = Claims([])
    fuse, terminal = a_fuse(), a_terminal()
    assert came_and_left(claims.see({fuse.sys_path: fuse})) == ([fuse], [])
    assert came_and_left(claims.see({fuse.sys_path: fuse})) == ([], [])
    other = replace(fuse)
    both = {terminal.sys_path: terminal, fuse.sys_path: other}
    assert came_and_left(claims.see(both)) == ([terminal, other], [fuse])
    assert came_and_left(claims.see({terminal.sys_path: terminal})) == ([], [other])


def came_and_left(turnover: Turnover) -> tuple[list[UdevDevice], list[UdevDevice]]:
    return [each.device for each in turnover.came], [each.device for each in turnover.left]


def test_a_device_that_invents_vendors_does_not_fill_the_memory() -> None:
    claims = Claims(resources_of(TWO))
    for number in range(2500):
        claims.on(a_usb_serial(vendor=f"{number:04x}"))
    assert len(claims._candidates_of) <= 1000
    assert [claim.resource.short_name for claim in claims.on(a_usb_serial(vendor="0403"))] == [
        "ftdi",
        "any-tty",
    ]


@pytest.mark.parametrize(
    "node",
    [
        "mem", "kmem", "port", "kmsg", "snapshot", "btrfs-control", "loop-control", "autofs",
        "mapper/control", "cpu/0/msr", "cpu/17/msr", "sg0", "bsg/6:0:0:0", "nvme0", "ng0n1", "nvme-fabrics",
        "raw/rawctl", "mtd0", "mtd3ro", "ubi_ctrl", "ubi0", "ubi0_1", "zfs", "vc-mem", "mpt3ctl",
        "megaraid_sas_ioctl_node", "vfio/noiommu-0", "vfio/devices/noiommu-vfio0",
    ],
)  # fmt: skip
def test_what_gives_its_holder_the_host_is_dangerous(node: str) -> None:
    assert is_dangerous(a_device(subsystem="x", node=f"/dev/{node}"))


def test_every_block_device_is_dangerous() -> None:
    assert is_dangerous(a_device(subsystem="block", node="/dev/sda"))


@pytest.mark.parametrize(
    "node",
    [
        "ttyUSB0",
        "fuse",
        "kvm",
        "net/tun",
        "gpiomem",
        "memory",
        "mem/x",
        "sgx_enclave",
        "input/mice",
        "vfio/51",
    ],
)
def test_other_nodes_are_not(node: str) -> None:
    assert not is_dangerous(a_device(subsystem="x", node=f"/dev/{node}"))
    assert not is_dangerous(a_usb_device())


def test_the_default_node_table_takes_every_node() -> None:
    resource = Resource("example.com/x", Match(), nodes=(NodeTable(),))
    (claim,) = Claims([resource]).on(a_fuse())
    assert claim.table == 0
