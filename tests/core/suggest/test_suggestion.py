"""Suggested rules, as they are read."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.suggest.clues import By
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.suggestion import Suggestion, suggest
from genericdp.errors import GenericdpError
from tests.scenes.builders import (
    CONTROLLER,
    a_bare_node,
    a_device,
    a_function,
    a_fuse,
    a_gpu,
    a_kfd,
    a_modem,
    a_terminal,
    a_usb_device,
    a_usb_interface,
    a_usb_node,
    a_usb_serial,
    a_vfio_group,
    by_sys_path,
)
from tests.scenes.suggestions import DOMAIN, assert_takes_exactly, uncommented


def suggested(
    node: UdevDevice, *others: UdevDevice, by_itself: bool = False, taken: tuple[str, ...] = ()
) -> Suggestion:
    """The suggestion for a node of a machine that has these others; it keeps what is promised."""
    devices = by_sys_path(node, *others)
    suggestion = suggest(node, Present(devices, DOMAIN), by_itself=by_itself, taken=taken)
    assert_takes_exactly(suggestion.text, devices, suggestion.group.nodes)
    assert_takes_exactly(uncommented(suggestion.text), devices, suggestion.group.nodes)
    return suggestion


def with_properties(device: UdevDevice, **properties: str) -> UdevDevice:
    return replace(device, properties={**device.properties, **properties})


def with_attributes(device: UdevDevice, **attributes: str) -> UdevDevice:
    return replace(device, attributes={**device.attributes, **attributes})


# What goes along with it


def test_a_gpu_is_suggested_with_the_node_that_goes_along_with_all_of_them() -> None:
    card, render = a_gpu()
    assert (
        suggested(card, render, *a_gpu(1), a_kfd()).text
        == """\
# /etc/genericdp/rules.d/50-drm-amdgpu.toml
#
# drm device of amdgpu (1002:740f): /dev/dri/card0, /dev/dri/renderD128
#
# By model and slot: another unit of the model in this slot matches, too.
#
# A container gets these 2 nodes together.

[[resource]]
name = "drm-amdgpu"  # pods request example.com/drm-amdgpu
match.SUBSYSTEM = "drm"
match.parent = { PCI_ID = "1002:740F", PCI_SLOT_NAME = "0000:03:00.0" }
group_by = "parent"  # all nodes of a unit make one device
# replicas = 10  # how many containers can share it

# For a part of it, replace the match by this:
#
# /dev/dri/renderD128, enough for programs that show nothing on a display:
# match.SUBSYSTEM = "drm"
# match.parent = { PCI_ID = "1002:740F", PCI_SLOT_NAME = "0000:03:00.0" }
# match.DEVNAME = "/dev/dri/renderD*"

[[resource.node]]
match = { DEVNAME = "/dev/kfd" }
shared = true  # goes along with every device and belongs to none
"""
    )
    assert "shared" not in suggested(card, render, *a_gpu(1)).text


def test_an_iommu_group_is_suggested_with_the_vfio_container() -> None:
    group = a_vfio_group(51, a_function("0000:81:00.0"))
    container = a_device("/sys/devices/virtual/misc/vfio", node="/dev/vfio/vfio", number="c 10:196")
    assert suggested(group, container).text.endswith(
        """\

[[resource.node]]
match = { DEVNAME = "/dev/vfio/vfio" }
shared = true  # goes along with every device and belongs to none
"""
    )


def test_a_gpu_of_nvidia_is_suggested_with_the_nodes_of_its_driver() -> None:
    gpu, *shared = (
        a_bare_node(path, number)
        for path, number in (
            ("/dev/nvidia0", "c 195:0"),
            ("/dev/nvidiactl", "c 195:255"),
            ("/dev/nvidia-uvm", "c 511:0"),
        )
    )
    assert (
        suggested(gpu, *shared).text
        == """\
# /etc/genericdp/rules.d/50-nvidia0.toml
#
# device: /dev/nvidia0
#
# By its path: udev does not know it, nor which unit is behind it.
#
# A container gets device nodes only. It also needs the libraries of the driver:
# see examples/families/nvidia.toml.

[[resource]]
name = "nvidia0"  # pods request example.com/nvidia0
match = { DEVNAME = "/dev/nvidia0" }

[[resource.node]]
match = { DEVNAME = "/dev/nvidiactl" }
shared = true  # goes along with every device and belongs to none

[[resource.node]]
match = { DEVNAME = "/dev/nvidia-uvm" }
shared = true  # goes along with every device and belongs to none
"""
    )
    assert "nvidiactl" not in suggested(shared[1], shared[0]).text


def test_a_graphics_node_of_a_gpu_of_nvidia_is_suggested_with_a_word_about_the_others() -> None:
    assert (
        "NVIDIA's libraries use other nodes of the GPU, such as /dev/nvidia0. udev does not know them, so "
        "nothing shows which of them is that of this GPU: 'genericdp suggest /dev/nvidia0', or see "
        "examples/families/nvidia.toml."
    ) in suggested(*a_gpu(driver="nvidia")).reasons
    assert "NVIDIA" not in suggested(*a_gpu()).text


def test_a_node_that_goes_along_with_others_may_have_a_rule_of_its_own() -> None:
    assert "[[resource.node]]" not in suggested(a_kfd(), *a_gpu()).text


# What it is known by


def test_a_unit_with_a_serial_number_is_known_by_it() -> None:
    dongle = with_properties(a_usb_serial(0), ID_MODEL="FT232R_USB_UART", ID_VENDOR="FTDI")

    assert (
        suggested(dongle, a_usb_serial(1, port="3", serial="OTHER")).text
        == """\
# /etc/genericdp/rules.d/50-ft232r-usb-uart.toml
#
# FTDI FT232R USB UART (0403:6001): /dev/ttyUSB0
#
# By serial number: the rule finds this unit wherever it is plugged in.

[[resource]]
name = "ft232r-usb-uart"  # pods request example.com/ft232r-usb-uart
match.SUBSYSTEM = "tty"
match.usb = { vendor = "0403", product = "6001", serial = "A50285BI" }
# container_path = "/dev/ft232r-usb-uart"  # a fixed name in the container
"""
    )


def test_a_unit_without_a_serial_number_is_known_by_its_model_while_it_is_the_only_one() -> None:
    assert (
        suggested(a_usb_serial(0, serial=None), a_fuse()).text
        == """\
# /etc/genericdp/rules.d/50-usb-0403-6001.toml
#
# USB device (0403:6001): /dev/ttyUSB0
#
# By model: it has no serial number, and no other unit of the model is plugged
# in. A second one would match, too; to exclude it, add port = "2" to 'usb'.

[[resource]]
name = "usb-0403-6001"  # pods request example.com/usb-0403-6001
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", product = "6001" } }
# container_path = "/dev/usb-0403-6001"  # a fixed name in the container
"""
    )


def test_twins_without_serial_numbers_are_told_apart_by_their_ports() -> None:
    suggestion = suggested(a_usb_serial(0, port="1", serial=None), a_usb_serial(1, serial=None))

    assert suggestion.by is By.PORT
    assert suggestion.rivals == ("/dev/ttyUSB1",)
    assert suggestion.reasons == (
        (
            "By port: it has no serial number, so only the port distinguishes it from its twin "
            "(/dev/ttyUSB1). Any unit of this model matches there, and this one does not match at another "
            "port."
        ),
    )
    assert suggestion.table[2:4] == (
        'match.SUBSYSTEM = "tty"',
        'match.usb = { vendor = "0403", product = "6001", port = "1" }',
    )


def test_twins_with_the_same_serial_number_are_told_apart_by_their_ports() -> None:
    twins = [a_usb_serial(n, port=str(n), serial="A1") for n in range(1, 8)]
    suggestion = suggested(*twins)

    assert suggestion.by is By.PORT
    assert suggestion.reasons == (
        (
            "By port: its twin (/dev/ttyUSB2, /dev/ttyUSB3, /dev/ttyUSB4, /dev/ttyUSB5 and 2 more) has the "
            "same serial number, so only the port tells the two apart. Any unit of this model "
            "matches there, and this one does not match at another port."
        ),
    )
    assert 'identity = "port"  # any unit plugged in there counts as this device' in suggestion.table


def test_twins_at_the_same_port_of_two_controllers_are_told_apart_by_these() -> None:
    twin = a_usb_serial(1, serial=None)
    moved = {CONTROLLER: "/sys/devices/pci0000:00/0000:05:00.0", "usb1": "usb3", "1-": "3-"}
    elsewhere = _moved(twin, moved)
    suggestion = suggested(a_usb_serial(0, serial=None), elsewhere)

    assert suggestion.by is By.PLACE
    assert suggestion.reasons[0].startswith(
        "By controller and port: it has no serial number, so only the controller and port "
        "distinguish it from its twin (/dev/ttyUSB1). "
    )
    assert 'match.DEVPATH = "/devices/pci0000:00/0000:00:14.0/*"' in suggestion.table


def _moved(device: UdevDevice, names: dict[str, str]) -> UdevDevice:
    path = device.sys_path
    for old, new in names.items():
        path = path.replace(old, new)
    parent = None if device.parent is None else _moved(device.parent, names)
    properties = {**device.properties, "DEVPATH": path.removeprefix("/sys")}
    return replace(device, sys_path=path, parent=parent, properties=properties)


def test_a_serial_number_that_tells_nothing_is_not_relied_on() -> None:
    suggestion = suggested(a_usb_serial(0, serial="00000001"))

    assert suggestion.reasons == (
        (
            "By model: its serial number, '00000001', tells nothing (chips leave the factory with it, such "
            "as CP210x (0001) and RTL2832U (00000001)), and no other unit of the model is plugged in. A "
            "second one would match, too; to exclude it, add port = \"2\" to 'usb'."
        ),
    )
    assert "00000001" not in "".join(suggestion.table)


def test_an_invalid_serial_number_is_not_used() -> None:
    assert suggested(a_usb_serial(0, serial=" ")).by is By.MODEL
    assert suggested(a_usb_serial(0, serial="9" * 127)).by is By.MODEL


def test_what_nothing_lasting_tells_apart_is_known_by_its_name_of_today() -> None:
    usb = a_usb_device(serial="A")
    one, other = (a_usb_node(usb, "hidraw", f"hidraw{n}", interface="00") for n in (0, 1))

    assert (
        suggested(one, other, by_itself=True).text
        == """\
# /etc/genericdp/rules.d/50-usb-0403-6001-hidraw.toml
#
# USB device (0403:6001): /dev/hidraw0
#
# CAUTION: nothing permanent distinguishes it from /dev/hidraw1. The rule uses
# the name that the kernel has given it for now; after a re-plug or reboot,
# another node of the unit may have that name.

[[resource]]
name = "usb-0403-6001-hidraw"  # pods request example.com/usb-0403-6001-hidraw
match.DEVNAME = "/dev/hidraw0"
match.usb = { vendor = "0403", product = "6001" }
"""
    )


def test_a_device_of_no_bus_is_known_by_its_name() -> None:
    assert (
        suggested(a_fuse()).text
        == """\
# /etc/genericdp/rules.d/50-fuse.toml
#
# misc device: /dev/fuse
#
# By name: the kernel always gives it the same name.

[[resource]]
name = "fuse"  # pods request example.com/fuse
match = { DEVNAME = "/dev/fuse" }
# replicas = 10  # how many containers can share it
"""
    )


def test_terminals_and_disks_are_not_shared_and_keep_the_case_of_the_kernel() -> None:
    console = a_device("/sys/devices/virtual/tty/tty9", subsystem="tty", node="/dev/tty9", number="c 4:9")
    assert suggested(console).table == (
        "[[resource]]",
        'name = "tty9"  # pods request example.com/tty9',
        'match = { DEVNAME = "/dev/tty9" }',
    )
    port = a_device("/sys/devices/pnp0/00:01/tty/ttyS0", subsystem="tty", node="/dev/ttyS0", number="c 4:64")
    assert suggested(port).table == (
        "[[resource]]",
        'name = "ttys0"  # pods request example.com/ttys0',
        'match = { SUBSYSTEM = "tty", DEVPATH = "/devices/pnp0/00:01/tty/ttyS0" }',
        '# container_path = "/dev/ttyS0"  # a fixed name in the container',
    )


def a_graphics_card(slot: str, number: int, pci_id: str = "8086:9A49") -> tuple[UdevDevice, ...]:
    pci = a_device(
        f"/sys/devices/pci0000:00/{slot}",
        subsystem="pci",
        properties={"PCI_ID": pci_id, "PCI_SLOT_NAME": slot},
    )
    return tuple(
        a_device(
            f"{pci.sys_path}/drm/{name}{minor}",
            subsystem="drm",
            node=f"/dev/dri/{name}{minor}",
            number=f"c 226:{minor}",
            parent=pci,
        )
        for name, minor in (("card", number), ("renderD", 128 + number))
    )


def test_a_card_is_known_by_its_model_and_its_nodes_make_one_device() -> None:
    card = a_graphics_card("0000:00:02.0", 0)

    assert (
        suggested(*card).text
        == """\
# /etc/genericdp/rules.d/50-drm.toml
#
# drm device (8086:9a49): /dev/dri/card0, /dev/dri/renderD128
#
# By model: this machine has no other drm device of the model. A second one
# would match, too.
#
# A container gets these 2 nodes together.

[[resource]]
name = "drm"  # pods request example.com/drm
match = { SUBSYSTEM = "drm", parent = { PCI_ID = "8086:9A49" } }
group_by = "parent"  # all nodes of a unit make one device
# replicas = 10  # how many containers can share it

# For a part of it, replace the match by this:
#
# /dev/dri/renderD128, enough for programs that show nothing on a display:
# match.SUBSYSTEM = "drm"
# match.parent = { PCI_ID = "8086:9A49" }
# match.DEVNAME = "/dev/dri/renderD*"
"""
    )


def test_of_two_cards_of_a_model_each_is_known_by_its_slot() -> None:
    suggestion = suggested(*a_graphics_card("0000:00:02.0", 0), *a_graphics_card("0000:00:03.0", 1))

    assert suggestion.by is By.PLACE
    assert suggestion.reasons[0] == "By model and slot: another unit of the model in this slot matches, too."
    assert 'match.parent = { PCI_ID = "8086:9A49", PCI_SLOT_NAME = "0000:00:02.0" }' in suggestion.table


def test_what_a_driver_numbers_in_the_order_of_arrival_is_no_part_of_a_place() -> None:
    platform = a_device("/sys/devices/platform/soc/gpio-mock.3.auto", subsystem="platform")
    chip = a_device(
        f"{platform.sys_path}/gpiochip0",
        subsystem="gpio",
        node="/dev/gpiochip0",
        number="c 254:0",
        parent=platform,
    )
    suggestion = suggested(chip, a_fuse())

    assert suggestion.by is By.PLACE
    assert 'match.DEVPATH = "/devices/platform/soc/gpio-mock.*.auto/*"' in suggestion.table


def test_a_unit_of_its_own_is_known_by_its_own_place() -> None:
    node = a_device("/sys/devices/soc/mailbox0", subsystem="mailbox", node="/dev/mailbox0", number="c 9:0")

    assert 'match = { SUBSYSTEM = "mailbox", DEVPATH = "/devices/soc/mailbox0" }' in suggested(node).table


def test_a_tap_is_known_by_its_interface() -> None:
    net = a_device("/sys/devices/virtual/net/vm0", subsystem="net", properties={"INTERFACE": "vm0"})
    tap = a_device(
        f"{net.sys_path}/macvtap/tap7", subsystem="macvtap", node="/dev/tap7", number="c 240:1", parent=net
    )
    suggestion = suggested(tap, a_fuse())

    assert suggestion.by is By.INTERFACE
    assert suggestion.reasons == ("By the name of its network interface.",)
    assert suggestion.name == "macvtap-vm0"
    assert 'match.parent = { SUBSYSTEM = "net", INTERFACE = "vm0" }' in suggestion.table


def a_disk(parts: int = 0) -> tuple[UdevDevice, ...]:
    pci = a_device("/sys/devices/pci0000:00/0000:00:05.0", subsystem="pci")
    disk = a_device(
        f"{pci.sys_path}/virtio2/block/vda",
        subsystem="block",
        devtype="disk",
        node="/dev/vda",
        number="b 254:0",
        properties={"ID_SERIAL": "root*disk"},
        parent=pci,
    )
    partitions = (
        a_device(
            f"{disk.sys_path}/vda{n}",
            subsystem="block",
            devtype="partition",
            node=f"/dev/vda{n}",
            number=f"b 254:{n}",
            properties={"ID_SERIAL": "root*disk", "PARTN": str(n)},
            parent=disk,
        )
        for n in range(1, parts + 1)
    )
    return (disk, *partitions)


def test_a_rule_for_a_disk_says_what_that_means() -> None:
    assert suggested(*a_disk(parts=2)).table == (
        "[[resource]]",
        'name = "vda"  # pods request example.com/vda',
        'match = { SUBSYSTEM = "block", DEVTYPE = "disk", ID_SERIAL = "root\\\\*disk" }',
        "allow_dangerous = true  # it gives control of the host",
    )


def test_a_partition_is_known_by_its_number_on_the_disk() -> None:
    disk, one, two = a_disk(parts=2)
    assert (
        'match = { SUBSYSTEM = "block", PARTN = "2", ID_SERIAL = "root\\\\*disk" }'
        in suggested(two, one, disk).table
    )


# What belongs together


def test_all_nodes_of_a_composite_device_make_one_but_the_raw_usb_node() -> None:
    usb, *nodes = a_modem()

    assert (
        suggested(nodes[1], usb, *nodes).text
        == """\
# /etc/genericdp/rules.d/50-usb-2c7c-0125.toml
#
# USB device (2c7c:0125): /dev/cdc-wdm0, /dev/ttyUSB1, /dev/ttyUSB2,
# /dev/ttyUSB3
#
# By serial number: the rule finds this unit wherever it is plugged in.
#
# A container gets these 4 nodes together. The raw USB node /dev/bus/usb/001/009
# is not among them; programs that use libusb and no driver of the kernel need
# that one instead: 'genericdp suggest /dev/bus/usb/001/009'.

[[resource]]
name = "usb-2c7c-0125"  # pods request example.com/usb-2c7c-0125
match.SUBSYSTEM = ["tty", "usbmisc"]
match.usb = { vendor = "2c7c", product = "0125", serial = "EC25-17" }
group_by = "usb_device"  # all nodes of a unit make one device

# For a part of it, replace the match by one of these:
#
# /dev/cdc-wdm0, the control port:
# match.SUBSYSTEM = "usbmisc"
# match.usb = { vendor = "2c7c", product = "0125", serial = "EC25-17" }
#
# /dev/ttyUSB1, /dev/ttyUSB2, /dev/ttyUSB3, without the rest:
# match.SUBSYSTEM = "tty"
# match.usb = { vendor = "2c7c", product = "0125", serial = "EC25-17" }
#
# /dev/ttyUSB1:
# match.SUBSYSTEM = "tty"
# match.usb = { vendor = "2c7c", product = "0125", serial = "EC25-17", interface = "00" }
#
# /dev/ttyUSB2:
# match.SUBSYSTEM = "tty"
# match.usb = { vendor = "2c7c", product = "0125", serial = "EC25-17", interface = "01" }
#
# /dev/ttyUSB3:
# match.SUBSYSTEM = "tty"
# match.usb = { vendor = "2c7c", product = "0125", serial = "EC25-17", interface = "02" }
"""
    )


def test_a_single_node_of_a_composite_device() -> None:
    usb, *nodes = a_modem()
    port, control = (suggested(each, usb, *nodes, by_itself=True) for each in (nodes[1], nodes[3]))

    assert port.name == "usb-2c7c-0125-if01"
    assert port.table[2:4] == (
        'match.SUBSYSTEM = "tty"',
        'match.usb = { vendor = "2c7c", product = "0125", serial = "EC25-17", interface = "01" }',
    )
    assert control.name == "usb-2c7c-0125-cdc-wdm"


def test_the_raw_usb_node_is_suggested_to_who_names_it() -> None:
    usb, *nodes = a_modem()
    suggestion = suggested(usb, *nodes)

    assert suggestion.name == "usb-2c7c-0125-usb"
    assert suggestion.group.paths == ("/dev/bus/usb/001/009",)


def test_a_dangerous_node_is_not_added_to_others() -> None:
    usb = a_usb_device("4", vendor="12d1", product="1f01")
    port = a_usb_node(usb, "tty", "ttyUSB0", interface="00", number="c 188:0")
    disk = a_usb_node(usb, "block", "sdb", interface="01", number="b 8:16")

    assert suggested(port, disk, usb).group.paths == ("/dev/ttyUSB0",)
    assert suggested(disk, port, usb).group.paths == ("/dev/sdb",)


def test_ports_of_one_interface_are_told_apart_by_their_numbers() -> None:
    usb = a_usb_device()
    above = a_usb_interface(usb)
    ports = []
    for number in (0, 1):
        serial = a_device(
            f"{above.sys_path}/ttyUSB{number}",
            subsystem="usb-serial",
            attributes={"port_number": str(number)},
            parent=above,
        )
        path = f"{serial.sys_path}/tty/ttyUSB{number}"
        node = f"/dev/ttyUSB{number}"
        ports.append(a_device(path, subsystem="tty", node=node, number=f"c 188:{number}", parent=serial))

    assert (
        'match.parent = { SUBSYSTEM = "usb-serial", "ATTR{port_number}" = "1" }'
        in suggested(*ports[::-1], by_itself=True).table
    )


def test_a_camera_s_nodes_are_told_apart_by_their_indexes() -> None:
    usb = a_usb_device()
    nodes = [
        a_usb_node(usb, "video4linux", f"video{n}", number=f"c 81:{n}", attributes={"index": str(n)})
        for n in (0, 1)
    ]

    assert 'match."ATTR{index}" = "1"' in suggested(*nodes[::-1], by_itself=True).table


def test_input_devices_of_one_interface_are_told_apart_by_their_names() -> None:
    above = a_usb_interface(a_usb_device())
    keys = []
    for number, name in enumerate(("Keyboard", "Media \x1b Keys")):
        parent = a_device(
            f"{above.sys_path}/input/input{number}",
            subsystem="input",
            attributes={"name": name},
            parent=above,
        )
        path, node = f"{parent.sys_path}/event{number}", f"/dev/input/event{number}"
        keys.append(a_device(path, subsystem="input", node=node, number=f"c 13:{number}", parent=parent))

    assert (
        'match.parent = { SUBSYSTEM = "input", "ATTR{name}" = "Media \\u001b Keys" }'
        in suggested(*keys[::-1], by_itself=True).table
    )


def test_the_details_of_a_node_stand_below_those_of_its_unit() -> None:
    pci = a_device("/sys/devices/pci0000:00/0000:00:1f.3", subsystem="pci", properties={"PCI_ID": "8086:A"})
    jacks = []
    for number, name in enumerate(("Mic", "Headphone")):
        parent = a_device(
            f"{pci.sys_path}/sound/card0/input{number}",
            subsystem="input",
            attributes={"name": name},
            parent=pci,
        )
        path, node = f"{parent.sys_path}/event{number}", f"/dev/input/event{number}"
        jacks.append(a_device(path, subsystem="input", node=node, number=f"c 13:{number}", parent=parent))
    suggestion = suggested(*jacks)

    assert suggestion.name == "mic"
    assert (
        'match.parent = { SUBSYSTEM = "input", "ATTR{name}" = "Mic", parent = { PCI_ID = "8086:A" } }'
        in suggestion.table
    )


def a_pad(number: int, address: str = "", name: str = "Pad") -> tuple[UdevDevice, ...]:
    """A game controller that the kernel knows without a bus: over Bluetooth, or made by a program."""
    path = f"/sys/devices/virtual/misc/uhid/0005:054C:09CC.{number:04}"
    hid = a_device(path, subsystem="hid", properties={"HID_UNIQ": address, "HID_NAME": name})
    above = a_device(f"{path}/input/input{number}", subsystem="input", attributes={"name": name}, parent=hid)
    return tuple(
        a_device(
            f"{above.sys_path}/{kind}{number}",
            subsystem="input",
            node=f"/dev/input/{kind}{number}",
            number=f"c 13:{number + 64 * (kind == 'event')}",
            parent=above,
        )
        for kind in ("event", "js")
    )


def test_a_bluetooth_device_is_known_by_its_address() -> None:
    suggestion = suggested(*a_pad(1, "aa:bb"), *a_pad(2, "aa:cc"))

    assert suggestion.reasons[0] == "By serial number: the rule finds this unit wherever it is."
    assert suggestion.table[2:4] == (
        'match = { SUBSYSTEM = "input", parent = { HID_UNIQ = "aa:bb" } }',
        'group_by = "parent"  # all nodes of a unit make one device',
    )


def test_a_device_on_no_bus_and_without_an_address_is_known_by_what_it_calls_itself() -> None:
    assert suggested(*a_pad(1), *a_pad(2, name="Other")).by is By.MODEL
    twins = suggested(*a_pad(1), *a_pad(2))
    assert twins.by is By.ARRIVAL
    assert 'match = { DEVNAME = ["/dev/input/event1", "/dev/input/js1"] }' in twins.table

    tablet = a_device("/sys/devices/virtual/input/input9", subsystem="input", attributes={"name": "Tablet"})
    node = a_device(
        f"{tablet.sys_path}/event9",
        subsystem="input",
        node="/dev/input/event9",
        number="c 13:73",
        parent=tablet,
    )
    suggestion = suggested(node, *a_pad(1))

    assert suggestion.reasons == (
        "By the name that its driver gives it: this machine has only one with this name.",
    )
    assert suggestion.table[2] == (
        'match = { SUBSYSTEM = "input", parent = { SUBSYSTEM = "input", "ATTR{name}" = "Tablet" } }'
    ) or suggestion.table[2:4] == (
        'match.SUBSYSTEM = "input"',
        'match.parent = { SUBSYSTEM = "input", "ATTR{name}" = "Tablet" }',
    )


def test_buses_of_one_card_are_told_apart_by_their_names() -> None:
    pci = a_device("/sys/devices/pci0000:00/0000:00:02.0", subsystem="pci", properties={"PCI_ID": "8086:A"})
    buses = []
    for number, name in enumerate(("gmbus dpb", "gmbus dpc")):
        adapter = a_device(
            f"{pci.sys_path}/i2c-{number}", subsystem="i2c", attributes={"name": name}, parent=pci
        )
        path, node = f"{adapter.sys_path}/i2c-dev/i2c-{number}", f"/dev/i2c-{number}"
        attributes = {"name": name}
        buses.append(
            a_device(
                path,
                subsystem="i2c-dev",
                node=node,
                number=f"c 89:{number}",
                attributes=attributes,
                parent=adapter,
            )
        )

    assert 'match."ATTR{name}" = "gmbus dpc"' in suggested(*buses[::-1]).table


def test_the_serial_ports_of_a_pc_are_told_apart_by_their_lines() -> None:
    platform = a_device("/sys/devices/platform/serial8250", subsystem="platform")
    ports = [
        a_device(
            f"{platform.sys_path}/tty/ttyS{number}",
            subsystem="tty",
            node=f"/dev/ttyS{number}",
            number=f"c 4:{64 + number}",
            attributes={"line": str(number)},
            parent=platform,
        )
        for number in (0, 1)
    ]

    assert suggested(*ports).table[2:5] == (
        'match.SUBSYSTEM = "tty"',
        'match.DEVPATH = "/devices/platform/serial8250/*"',
        'match."ATTR{line}" = "0"',
    )


# What it is called


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("FT232R_USB_UART", "ft232r-usb-uart"),
        ("../../etc/passwd", "etc-passwd"),
        ("Größe", "gr-e"),
        ("6001", "usb-0403-6001"),
        ("12345", "usb-0403-6001"),
        ("x" * 100, "x" * 32),
        ("kubernetes.io/evil", "kubernetes-io-evil"),
        ("\n[[resource]]\n", "resource"),
    ],
)
def test_a_resource_is_named_after_its_model_if_that_makes_a_valid_name(model: str, name: str) -> None:
    suggestion = suggested(with_properties(a_usb_serial(0), ID_MODEL=model))

    assert suggestion.name == name


def test_without_a_udev_database_the_name_is_what_sysfs_says() -> None:
    usb = with_attributes(a_usb_device(), product="USB Meter")
    node = a_usb_node(usb, "tty", "ttyUSB0", number="c 188:0")

    assert suggested(node).name == "usb-meter"


def test_names_in_use_are_numbered() -> None:
    assert suggested(a_fuse(), taken=("fuse",)).name == "fuse-2"
    assert suggested(a_fuse(), taken=("fuse", "fuse-2")).name == "fuse-3"


def test_a_name_of_digits_alone_is_none() -> None:
    node = a_device("/sys/devices/virtual/x/0", subsystem="7", node="/dev/0", number="c 9:0")

    assert suggested(node).name == "device"
    vfio = a_device("/sys/devices/virtual/vfio/0", subsystem="vfio", node="/dev/vfio/0", number="c 9:0")
    assert suggested(vfio).name == "vfio"


def test_a_folder_that_says_which_one_it_is_belongs_to_the_name() -> None:
    node = a_device(
        "/sys/devices/virtual/cpuid/cpu1", subsystem="cpuid", node="/dev/cpu/1/cpuid", number="c 203:1"
    )

    assert suggested(node).name == "cpu-1-cpuid"


# Hostile devices


@pytest.mark.parametrize(
    "serial",
    [
        "*",
        "?",
        "[a]",
        "a|b",
        "\\",
        '"',
        "'''",
        "a\nb",
        "\x00",
        "\udcff",
        "é",
        "\U0001f600",
        "#",
        "}",
        "\u202e",
        "[",
        "!x",
    ],
)
def test_no_serial_number_means_anything_in_a_rule(serial: str) -> None:
    hostile, other = a_usb_serial(0, serial=serial), a_usb_serial(1, port="3", serial="ab")

    assert suggested(hostile, other).by is By.SERIAL


def test_a_byte_that_is_not_text_matches_any_character_in_its_place() -> None:
    one, other = (
        a_usb_serial(n, port=str(n), serial=f"A{char}") for n, char in ((1, "\udcfe"), (2, "\udcff"))
    )
    suggestion = suggested(one, other)

    assert suggestion.by is By.PORT
    assert suggested(one).table[3] == 'match.usb = { vendor = "0403", product = "6001", serial = "A?" }'


def test_an_invalid_id_is_not_used() -> None:
    assert "vendor" not in "".join(suggested(a_usb_serial(0, vendor="*")).table)


def test_what_udev_has_not_finished_with_has_no_rule_yet() -> None:
    node = replace(a_usb_serial(0), initialized=False)
    with pytest.raises(GenericdpError) as raised:
        suggest(node, Present(by_sys_path(node), DOMAIN))

    assert str(raised.value) == "udev has not finished with '/dev/ttyUSB0' yet"
    hint = "try again in a moment; if udevd started after the device, 'udevadm trigger' makes it look"
    assert raised.value.hint == hint


def test_a_node_that_udev_knows_under_the_name_of_another_one_has_no_rule() -> None:
    node, other = a_terminal(20), a_terminal(21)
    confused = with_properties(other, DEVNAME="/dev/vcs20")
    with pytest.raises(GenericdpError) as raised:
        suggest(node, Present(by_sys_path(node, confused), DOMAIN))

    assert str(raised.value) == "no rule can distinguish /dev/vcs20 from the other device nodes"
    assert (
        raised.value.hint == "udev gives one name to several of them; 'udevadm trigger' makes it look again"
    )
