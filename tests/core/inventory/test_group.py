"""Which device nodes travel together, and what the device that they make is identified by."""

import itertools

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.group import Group, find_property, gather, identity_of
from genericdp.core.inventory.identity import UnidentifiedError
from genericdp.core.inventory.inventory import Refusal
from tests.scenes.builders import (
    a_device,
    a_fuse,
    a_modem,
    a_usb_device,
    a_usb_interface,
    a_usb_node,
    a_usb_serial,
    resources_of,
)


def gathered(keys: str, *devices: UdevDevice) -> tuple[list[Group], list[Refusal]]:
    """The groups of a resource that takes every node, with these further keys."""
    (resource,) = resources_of(f'[[resource]]\nname = "x"\nmatch = {{ DEVNAME = "*" }}\n{keys}\n')
    return gather(resource, devices, Claims([resource]))


def groups(keys: str, *devices: UdevDevice) -> list[list[str]]:
    made, refusals = gathered(keys, *devices)
    assert refusals == []
    return sorted([member.device.devname for member in group.members] for group in made)


def the_group(keys: str, *devices: UdevDevice) -> Group:
    (group,), refusals = gathered(keys, *devices)
    assert refusals == []
    return group


MODEM = a_modem(serial="EC25-17")
NAMES = ["ttyUSB1", "ttyUSB2", "ttyUSB3", "cdc-wdm0"]


def test_by_default_every_node_is_a_device() -> None:
    made = groups("", *MODEM)
    assert made == sorted([["bus/usb/001/009"], *([name] for name in NAMES)])


def test_all_nodes_of_a_usb_device_make_one_in_the_order_of_their_places() -> None:
    assert groups('group_by = "usb_device"', *MODEM, a_usb_serial(7)) == [
        [*NAMES, "bus/usb/001/009"],
        ["ttyUSB7"],
    ]


def test_all_nodes_below_a_parent_make_one() -> None:
    keyboard = a_device(
        "/sys/x/input/input5", subsystem="input", parent=a_usb_interface(a_usb_device(serial="KB"))
    )
    nodes = [
        a_device(f"{keyboard.sys_path}/{name}", subsystem="input", node=f"/dev/input/{name}", parent=keyboard)
        for name in ("js0", "event3")
    ]
    group = the_group('group_by = "parent"', *nodes)
    assert group.subject is keyboard
    assert [member.device.sys_name for member in group.members] == ["event3", "js0"]
    identity = identity_of(group)
    assert (identity.basis, identity.key, identity.place) == ("serial", "KB", "input")


def test_all_nodes_with_one_value_of_a_property_make_one() -> None:
    sticks = [
        a_usb_node(a_usb_device(port, serial=f"S{port}"), "tty", f"ttyUSB{port}", properties={"RACK": rack})
        for port, rack in (("1", "left"), ("2", "right"), ("3", "left"))
    ]
    assert groups('group_by = "RACK"', *sticks) == [["ttyUSB1", "ttyUSB3"], ["ttyUSB2"]]


def test_the_order_of_enumeration_does_not_matter() -> None:
    for order in itertools.permutations(MODEM[1:]):
        assert groups('group_by = "usb_device"', *order) == [NAMES]


@pytest.mark.parametrize(
    ("group_by", "reason"),
    [
        ("usb_device", "it does not belong to a USB device, and the rule groups by 'usb_device'"),
        ("parent", "it has no parent, and the rule groups by 'parent'"),
        ("ID_MODEL", "it has no property ID_MODEL, and the rule groups by it"),
        ("EMPTY", "it has no property EMPTY, and the rule groups by it"),
    ],
)
def test_a_node_that_belongs_to_no_group_is_refused(group_by: str, reason: str) -> None:
    fuse = a_device(node="/dev/fuse", properties={"EMPTY": ""})
    assert gathered(f'group_by = "{group_by}"', fuse) == ([], [Refusal("example.com/x", "/dev/fuse", reason)])


def test_a_node_that_gives_its_holder_the_host_is_refused_unless_the_rule_allows_it() -> None:
    memory = a_device("/sys/devices/virtual/mem/mem", subsystem="mem", node="/dev/mem")
    reason = "it gives control of the host; the rule lacks 'allow_dangerous = true'"
    assert gathered("", memory, a_fuse())[1] == [Refusal("example.com/x", "/dev/mem", reason)]
    assert groups("allow_dangerous = true", memory) == [["mem"]]


def test_a_group_is_refused_node_by_node() -> None:
    group = the_group('group_by = "usb_device"', *MODEM[1:3])
    assert group.refusals("because") == [
        Refusal("example.com/x", "/dev/ttyUSB1", "because"),
        Refusal("example.com/x", "/dev/ttyUSB2", "because"),
    ]


# Identity


def test_a_node_is_identified_by_its_unit_and_its_place() -> None:
    identity = identity_of(the_group("", MODEM[3]))
    assert (identity.basis, identity.key, identity.place) == ("serial", "EC25-17", "if02")
    identity = identity_of(the_group('identity = "port"', MODEM[3]))
    assert (identity.basis, identity.readable, identity.place) == ("port", "port-4", "if02")


def test_a_usb_device_is_identified_by_itself_whichever_of_its_nodes_are_there() -> None:
    for count in (1, 2, 3, 4):
        for nodes in itertools.combinations(MODEM[1:], count):
            identity = identity_of(the_group('group_by = "usb_device"', *nodes))
            assert (identity.key, identity.place, identity.order) == ("EC25-17", "", MODEM[0].sys_path)


def in_a_rack(port: str, number: int, bus: int = 1, **properties: str) -> UdevDevice:
    usb = a_usb_device(port, bus=bus, serial=f"S{port}")
    return a_usb_node(usb, "tty", f"ttyUSB{number}", properties={"RACK": "left", **properties})


def test_a_group_by_property_is_identified_by_its_value() -> None:
    group = the_group('group_by = "RACK"', in_a_rack("1", 5), in_a_rack("2", 4))
    identity = identity_of(group)
    assert (identity.basis, identity.key, identity.readable, identity.place) == (
        "property RACK",
        "left",
        "left",
        "",
    )
    assert identity.port.readable == "port-1"


def test_kernel_names_do_not_decide_what_such_a_group_is() -> None:
    for identity in ("serial", "port"):
        keys = f'group_by = "RACK"\nidentity = "{identity}"'
        first = identity_of(the_group(keys, in_a_rack("1", 5, bus=2), in_a_rack("2", 4, bus=1)))
        later = identity_of(the_group(keys, in_a_rack("1", 0, bus=1), in_a_rack("2", 9, bus=2)))
        assert (first.basis, first.key, first.place, first.port) == (
            later.basis, later.key, later.place, later.port
        )  # fmt: skip


def test_identity_may_name_properties_of_the_device() -> None:
    rules = 'identity = ["ID_SERIAL_SHORT", "RACK"]'
    identity = identity_of(the_group(rules, in_a_rack("1", 0)))
    assert (identity.basis, identity.readable, identity.place) == (
        "property ID_SERIAL_SHORT RACK", "S1-left", "",
    )  # fmt: skip
    grouped = identity_of(the_group(f'group_by = "RACK"\n{rules}', in_a_rack("1", 0), in_a_rack("2", 1)))
    assert (grouped.readable, grouped.place) == ("S1-left", "")


def test_a_device_that_lacks_such_a_property_has_no_identity() -> None:
    with pytest.raises(UnidentifiedError) as unidentified:
        identity_of(the_group('identity = ["NOT_THERE"]', a_fuse()))
    assert unidentified.value.name == "NOT_THERE"


def test_properties_are_those_of_the_usb_device_first_when_it_is_the_device() -> None:
    usb = a_usb_device(serial="S")
    nodes = [
        a_usb_node(usb, "tty", f"ttyUSB{n}", interface=f"0{n}", properties={"ID_MODEL_ID": f"node{n}"})
        for n in (0, 1)
    ]
    identity = identity_of(the_group('group_by = "usb_device"\nidentity = ["ID_MODEL_ID"]', *nodes))
    assert identity.key == "6001"


def test_a_property_is_looked_for_in_the_nodes_in_turn_and_then_in_their_usb_devices() -> None:
    usb = a_usb_device()
    empty = a_usb_node(usb, "tty", "ttyUSB0", properties={"A": "", "B": "first"})
    full = a_usb_node(usb, "tty", "ttyUSB1", properties={"A": "second", "B": "second"})
    assert find_property("A", None, empty, full) == "second"
    assert find_property("B", None, empty, full) == "first"
    assert find_property("BUSNUM", None, empty, full) == "001"
    assert find_property("C", None, empty, full) is None
    assert find_property("SUBSYSTEM", empty) == "tty"
