"""Which device nodes travel together, and what the device that they make is identified by."""

import itertools
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.group import Group, find_property, gather, identity_of, source_of
from genericdp.core.inventory.identity import OF_ALL, UnidentifiedError
from genericdp.core.inventory.inventory import Refusal
from tests.scenes.builders import (
    CONTROLLER,
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
    assert group.subject is not None
    assert group.subject[0] is keyboard
    assert [member.device.sys_name for member in group.members] == ["event3", "js0"]
    identity = identity_of(group)
    assert (identity.basis, identity.key, identity.place) == ("serial", "KB", "input")


def test_all_nodes_with_one_value_of_a_property_make_one() -> None:
    sticks = [
        a_usb_node(a_usb_device(port, serial=f"S{port}"), "tty", f"ttyUSB{port}", properties={"RACK": rack})
        for port, rack in (("1", "left"), ("2", "right"), ("3", "left"))
    ]
    assert groups('group_by = "RACK"', *sticks) == [["ttyUSB1", "ttyUSB3"], ["ttyUSB2"]]


def a_touchpad() -> tuple[UdevDevice, list[UdevDevice]]:
    """The HID device of a touchpad on an I2C bus, and its nodes: two of input devices, one hidraw."""
    adapter = a_device("/sys/devices/platform/AMDI0010:03", subsystem="platform")
    client = a_device(f"{adapter.sys_path}/i2c-0/i2c-ELAN1201:00", subsystem="i2c", parent=adapter)
    hid = a_device(f"{client.sys_path}/0018:04F3:3098.0003", subsystem="hid", parent=client)
    inputs = [
        a_device(f"{hid.sys_path}/input/input{n}", subsystem="input", attributes={"name": name}, parent=hid)
        for n, name in ((11, "ELAN Mouse"), (13, "ELAN Touchpad"))
    ]
    return hid, [
        *(
            a_device(f"{each.sys_path}/event{n}", subsystem="input", node=f"/dev/input/event{n}", parent=each)
            for n, each in enumerate(inputs)
        ),
        a_device(f"{hid.sys_path}/hidraw/hidraw0", subsystem="hidraw", node="/dev/hidraw0", parent=hid),
    ]


def test_all_nodes_below_the_nearest_parent_that_satisfies_a_match_make_one() -> None:
    hid, nodes = a_touchpad()
    group = the_group('group_by = { SUBSYSTEM = "hid" }', *nodes)
    assert group.subject is not None
    assert group.subject[0] is hid
    assert [member.device.devname for member in group.members] == ["input/event0", "input/event1", "hidraw0"]
    identity = identity_of(group)
    # Not the number of its arrival, 0003.
    assert (identity.basis, identity.readable, identity.place) == (
        "port", "port-AMDI0010:03", "0018-04F3-3098",
    )  # fmt: skip


def test_the_nearest_of_several_such_parents_counts_and_a_node_may_be_its_own() -> None:
    bridge = a_device("/sys/devices/pci0000:00/0000:00:01.0", subsystem="pci")
    cards = [a_device(f"{bridge.sys_path}/0000:01:00.{n}", subsystem="pci", parent=bridge) for n in (0, 1)]
    nodes = [
        a_device(f"{card.sys_path}/misc/m{n}", node=f"/dev/m{n}", parent=card) for n, card in enumerate(cards)
    ]
    assert groups('group_by = { SUBSYSTEM = "pci" }', *nodes) == [["m0"], ["m1"]]
    assert groups('group_by = { DEVPATH = "*/0000:00:01.0" }', *nodes) == [["m0", "m1"]]
    assert groups('group_by = { SUBSYSTEM = ["misc", "pci"] }', *nodes) == [["m0"], ["m1"]]
    either = '[{ DEVPATH = "*.1" }, { DEVPATH = "*/0000:00:01.0" }]'
    assert groups(f"group_by = {either}", *nodes, a_fuse_below(cards[1])) == [["fuse", "m1"], ["m0"]]


def a_fuse_below(parent: UdevDevice) -> UdevDevice:
    return a_device(f"{parent.sys_path}/misc/fuse", node="/dev/fuse", parent=parent)


def test_a_word_groups_as_the_match_that_it_stands_for() -> None:
    devices = (*MODEM, a_usb_serial(7, serial="A"))
    as_match = '{ SUBSYSTEM = "usb", DEVTYPE = "usb_device" }'
    for made in ('"usb_device"', as_match):
        found = gathered(f"group_by = {made}", *devices)[0]
        assert [identity_of(group).key for group in found] == ["EC25-17", "A"]


def test_all_nodes_of_a_resource_may_make_one_that_is_called_like_the_resource() -> None:
    everything = (*a_touchpad()[1], a_fuse(), *MODEM)
    assert len(groups('group_by = "all"', *everything)) == 1
    for some in (everything, (a_fuse(),), (a_usb_serial(7),)):
        assert identity_of(the_group('group_by = "all"', *some)) == OF_ALL
    assert groups('group_by = "all"') == []


def test_the_order_of_enumeration_does_not_matter() -> None:
    for order in itertools.permutations(MODEM[1:]):
        assert groups('group_by = "usb_device"', *order) == [NAMES]


@pytest.mark.parametrize(
    ("group_by", "reason"),
    [
        ('"usb_device"', "it does not belong to a USB device, but the rule groups by 'usb_device'"),
        ('"parent"', "it has no parent, but the rule groups by 'parent'"),
        ('"ID_MODEL"', "it has no property ID_MODEL, but the rule groups by it"),
        ('"EMPTY"', "it has no property EMPTY, but the rule groups by it"),
        ('{ SUBSYSTEM = "hid" }', "neither it nor one of its parents satisfies the match in 'group_by'"),
    ],
)
def test_a_node_that_belongs_to_no_group_is_refused(group_by: str, reason: str) -> None:
    fuse = a_device(node="/dev/fuse", properties={"EMPTY": ""})
    assert gathered(f"group_by = {group_by}", fuse) == ([], [Refusal("example.com/x", "/dev/fuse", reason)])


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


@pytest.mark.parametrize("keys", ["", 'identity = "port"', 'identity = ["RACK"]'])
def test_a_group_by_property_is_identified_by_its_value(keys: str) -> None:
    group = the_group(f'group_by = "RACK"\n{keys}', in_a_rack("1", 5), in_a_rack("2", 4))
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


def test_a_list_of_other_properties_does_not_make_one_device_of_two_groups() -> None:
    keys = 'group_by = "RACK"\nidentity = ["ID_SERIAL_SHORT"]'
    left, right = (identity_of(the_group(keys, in_a_rack("1", 0, RACK=rack))) for rack in ("left", "right"))
    assert (left.basis, left.readable) == ("property ID_SERIAL_SHORT RACK", "S1-left")
    assert (right.basis, right.readable) == ("property ID_SERIAL_SHORT RACK", "S1-right")


def test_a_device_that_lacks_such_a_property_has_no_identity() -> None:
    with pytest.raises(UnidentifiedError) as unidentified:
        identity_of(the_group('identity = ["NOT_THERE"]', a_fuse()))
    assert str(unidentified.value) == "it has no property NOT_THERE, which 'identity' uses"


def test_properties_are_those_of_the_usb_device_first_when_it_is_the_device() -> None:
    usb = a_usb_device(serial="S")
    nodes = [
        a_usb_node(usb, "tty", f"ttyUSB{n}", interface=f"0{n}", properties={"ID_MODEL_ID": f"node{n}"})
        for n in (0, 1)
    ]
    identity = identity_of(the_group('group_by = "usb_device"\nidentity = ["ID_MODEL_ID"]', *nodes))
    assert identity.key == "6001"


def test_a_property_is_looked_for_in_the_nodes_then_in_their_usb_devices_then_in_their_ancestors() -> None:
    usb = a_usb_device()
    empty = a_usb_node(usb, "tty", "ttyUSB0", properties={"A": "", "B": "first"})
    full = a_usb_node(usb, "tty", "ttyUSB1", properties={"A": "second", "B": "second"})
    assert find_property("A", empty, full) == "second"
    assert find_property("B", empty, full) == "first"
    assert find_property("BUSNUM", empty, full) == "001"
    assert find_property("C", empty, full) is None
    assert find_property("SUBSYSTEM", empty) == "tty"
    assert find_property("DRIVER", empty) == "usb"


def test_the_nearest_ancestor_that_has_a_property_gives_it() -> None:
    bridge = a_device(
        "/sys/devices/pci0000:00/0000:00:01.0", subsystem="pci", properties={"SLOT": "bridge", "X": "y"}
    )
    card = a_device(
        f"{bridge.sys_path}/0000:01:00.0", subsystem="pci", properties={"SLOT": "card"}, parent=bridge
    )
    node = a_device(f"{card.sys_path}/drm/card0", subsystem="drm", node="/dev/dri/card0", parent=card)
    assert source_of("SLOT", node) is card
    assert source_of("X", node) is bridge
    assert source_of("Z", node) is None
    # Before any ancestor, the other nodes count.
    other = a_device(f"{card.sys_path}/drm/render", node="/dev/dri/r", properties={"X": "own"}, parent=card)
    assert source_of("X", node, other) is other


def test_what_a_hub_says_about_itself_is_not_said_about_what_is_plugged_into_it() -> None:
    hub = replace(
        a_usb_device("2", serial="HUB"),
        parent=a_device(CONTROLLER, subsystem="pci", properties={"PCI_SLOT_NAME": "0000:00:14.0"}),
    )
    stick = replace(a_usb_device("2.1", serial=None), parent=hub)
    tty = a_usb_node(stick, "tty", "ttyUSB0")
    assert find_property("ID_SERIAL_SHORT", hub) == "HUB"
    assert find_property("ID_SERIAL_SHORT", stick) is None
    assert find_property("ID_SERIAL_SHORT", tty) is None
    assert find_property("PCI_SLOT_NAME", tty) == "0000:00:14.0"


def test_an_identity_is_looked_for_in_the_unit_and_not_above() -> None:
    controller = a_device(CONTROLLER, subsystem="pci", properties={"PCI_SLOT_NAME": "0000:00:14.0"})
    usb = replace(a_usb_device(serial="S"), parent=controller)
    interface = replace(a_usb_interface(usb), properties={"ID_PORT": "left"})
    tty = a_device(f"{interface.sys_path}/ttyUSB0", subsystem="tty", node="/dev/ttyUSB0", parent=interface)
    assert identity_of(the_group('identity = ["ID_PORT", "BUSNUM"]', tty)).readable == "left-001"
    for keys in ("", 'group_by = "DEVNAME"\n'):
        with pytest.raises(UnidentifiedError):
            identity_of(the_group(f'{keys}identity = ["PCI_SLOT_NAME"]', tty))
