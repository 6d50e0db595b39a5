"""Whatever a device says and whatever sysfs does, reading goes on."""

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core import hostile
from genericdp.core.hint import RescanCause, Resync, Uevent
from genericdp.udev import UdevDevices
from tests.udev import gadgets
from tests.udev.gadgets import Entry
from tests.udev.listening import by_node
from tests.udev.test_stuck import look_until_all_is_read
from tests.udev.testbed import Testbed

pytestmark = pytest.mark.testbed

DONGLE = gadgets.serial_dongle()
USB, TTY = DONGLE[2], DONGLE[-1]
KVM = (Entry("/devices/virtual/misc/kvm", "misc", "kvm", "10:232"),)

STRINGS = {
    "a line feed": "A\nB",
    "an escape": "\x1b]0;owned\x07",
    "a way out": "../../../etc/passwd",
    "a command": "$(reboot)`reboot`",
    "no text": b"\xff\xfe\x80".decode("utf-8", "surrogateescape"),
    "half a character": "ü".encode()[:1].decode("utf-8", "surrogateescape"),
    "escaped by udev": "A\\x20B",
    "spaces": "  A  B  ",
    "many": "x" * 4000,
}


@pytest.mark.parametrize("value", STRINGS.values(), ids=STRINGS)
def test_a_serial_number_may_be_anything(bed: Testbed, value: str) -> None:
    bed.attach(DONGLE)
    bed.set_attribute(USB, "serial", value.encode("utf-8", "surrogateescape") + b"\n")
    bed.initialize(replace(TTY, udev={"ID_SERIAL_SHORT": value.replace("\n", " ")}))
    devices = UdevDevices()
    devices.resync()

    tty = by_node(devices)["/dev/ttyUSB0"]
    assert tty.usb_device is not None
    assert tty.usb_device.attributes["serial"] == value
    assert tty.properties["ID_SERIAL_SHORT"] == value.replace("\n", " ")
    for clean in (hostile.for_path, hostile.for_value, hostile.for_id, hostile.for_terminal):
        assert clean(value).isprintable()


def test_a_value_is_cut_at_a_page(bed: Testbed) -> None:
    bed.attach(DONGLE)
    bed.set_attribute(USB, "serial", b"x" * 100_000)
    bed.initialize(replace(TTY, udev={"ID_SERIAL": "y" * 100_000}))
    devices = UdevDevices()
    devices.resync()

    tty = by_node(devices)["/dev/ttyUSB0"]
    assert tty.usb_device is not None
    assert tty.usb_device.attributes["serial"] == "x" * 4096
    assert tty.properties["ID_SERIAL"] == "y" * 4096


def test_a_thousand_properties_are_enough(bed: Testbed) -> None:
    bed.attach(DONGLE)
    bed.initialize(replace(TTY, udev={f"X{n:05}": "1" for n in range(5000)}))
    answered = threading.Event()
    devices = UdevDevices(on_answer=answered.set)
    devices.resync()
    look_until_all_is_read(devices, answered)  # a busy machine may need longer than the daemon waits

    assert len(by_node(devices)["/dev/ttyUSB0"].properties) == 1024


def test_a_device_whose_name_is_no_text_is_left_out_and_the_others_are_not(bed: Testbed) -> None:
    odd = Entry(b"/devices/virtual/misc/\xff\xfe".decode("utf-8", "surrogateescape"), "misc", "odd", "10:99")
    bed.plug(DONGLE)
    bed.attach((odd,))
    devices = UdevDevices()

    devices.resync()
    devices.apply(Uevent("change", odd.sys_path, "", "udev"))

    assert set(by_node(devices)) == {"/dev/ttyUSB0", "/dev/bus/usb/001/001", "/dev/bus/usb/001/005"}


@pytest.mark.parametrize("name", ["", "../x", "bus/../../../etc/passwd", "x//y"])
def test_a_node_outside_dev_is_no_node(bed: Testbed, name: str) -> None:
    bed.attach(DONGLE)
    (bed.root / "sys" / TTY.path.lstrip("/") / "uevent").write_text(f"MAJOR=188\nMINOR=0\nDEVNAME={name}\n")
    devices = UdevDevices()
    devices.resync()

    assert TTY.sys_path not in devices.devices


@pytest.mark.parametrize(
    "line", ["MAJOR=x\nMINOR=0", "MAJOR=188", "MAJOR=\nMINOR=", "MAJOR=99999999999\nMINOR=1"]
)
def test_an_invalid_device_number_is_ignored(bed: Testbed, line: str) -> None:
    bed.attach(DONGLE)
    (bed.root / "sys" / TTY.path.lstrip("/") / "uevent").write_text(f"{line}\nDEVNAME=ttyUSB0\n")
    devices = UdevDevices()
    devices.resync()

    tty = by_node(devices).get("/dev/ttyUSB0")
    assert tty is None or not tty.node_is_there


def _nothing(node: Path) -> None:
    node.unlink()


def _folder(node: Path) -> None:
    node.unlink()
    node.mkdir()


def _dangling_link(node: Path) -> None:
    node.unlink()
    node.symlink_to("/dev/not-there")


def _other_number(node: Path) -> None:
    # What the preload library shows as the number of a file is in a link beside it.
    link = node.parent / ".node" / node.name
    link.unlink()
    link.symlink_to("188:1")


def _regular_file(node: Path) -> None:
    (node.parent / ".node" / node.name).unlink()


@pytest.mark.parametrize(
    "replaced",
    [_nothing, _folder, _dangling_link, _other_number, _regular_file],
    ids=lambda function: function.__name__.strip("_"),
)
def test_a_node_that_is_not_the_devices_own_is_not_there(bed: Testbed, replaced: object) -> None:
    bed.plug(DONGLE)
    devices = UdevDevices()
    devices.resync()
    assert by_node(devices)["/dev/ttyUSB0"].node_is_there

    assert callable(replaced)
    replaced(bed.node(TTY))
    assert devices.apply(Uevent("change", TTY.sys_path, "tty", "udev"))

    assert not by_node(devices)["/dev/ttyUSB0"].node_is_there
    assert by_node(devices)["/dev/ttyUSB0"].number is not None


def test_an_attribute_that_cannot_be_read_is_absent(bed: Testbed) -> None:
    bed.plug(DONGLE)
    folder = bed.root / "sys" / USB.path.lstrip("/")
    (folder / "serial").unlink()
    (folder / "serial").mkdir()
    (folder / "busnum").unlink()
    (folder / "busnum").symlink_to("nowhere")
    devices = UdevDevices()
    devices.resync()

    usb = devices.devices[USB.sys_path]
    assert "serial" not in usb.attributes
    assert "busnum" not in usb.attributes
    assert usb.attributes["idVendor"] == "0403"


_FLAPPER = """
import sys
from pathlib import Path
from tests.udev import gadgets
from tests.udev.testbed import Testbed
bed = Testbed.__new__(Testbed)
bed.root, bed._plugged, bed._seqnum = Path(sys.argv[1]), {}, 0
dongle = gadgets.hub(behind=2)[2:]
print("ready", flush=True)
while True:
    for entry in bed.attach(dongle):
        bed.initialize(entry)
    for entry in reversed(dongle):
        bed.detach(entry)
"""


def test_devices_that_come_and_go_while_they_are_read_do_no_harm(bed: Testbed) -> None:
    """Another process plugs and unplugs as fast as it can; every look is at some other moment of it."""
    bed.plug(gadgets.webcam())
    devices = UdevDevices()
    sizes = set()
    flapper = subprocess.Popen([sys.executable, "-c", _FLAPPER, str(bed.root)], stdout=subprocess.PIPE)
    with flapper:
        assert flapper.stdout is not None
        flapper.stdout.readline()
        for _ in range(150):
            devices.apply(Resync(RescanCause.DEAF))
            devices.apply(Uevent("change", gadgets.hub(behind=2)[-1].sys_path, "", "udev"))
            sizes.add(len(devices.devices))
            for device in devices.devices.values():
                assert all(each.sys_path in device.sys_path for each in device.ancestors())
        flapper.kill()
    assert len(sizes) > 2
    assert {"/dev/video0", "/dev/video1", "/dev/media0"} <= set(by_node(devices))


@pytest.mark.parametrize(("subsystem", "name"), [("hid", "HID_NAME"), ("input", "NAME")])
def test_a_name_with_line_feeds_gives_a_device_no_device_node_of_another(
    bed: Testbed, subsystem: str, name: str
) -> None:
    """The kernel writes what a device calls itself into its `uevent` file as it is."""
    forged = {name: "Pad\nDEVNAME=kvm\nMAJOR=10\nMINOR=232"}
    gamepad = gadgets.gamepad()
    (pad,) = (entry for entry in gamepad if entry.subsystem == subsystem and not entry.node)
    bed.plug(KVM, tuple(replace(entry, kernel=forged) if entry is pad else entry for entry in gamepad))
    devices = UdevDevices()
    devices.resync()

    found = {device.sys_path: device.device_node for device in devices.devices.values()}
    assert found[pad.sys_path] is None
    assert [path for path, node in found.items() if node == "/dev/kvm"] == [KVM[0].sys_path]


#: Lines that a name adds, and what they would make of the device that has it.
FORGED = {
    "another subsystem": "SUBSYSTEM=usb\nDEVTYPE=usb_device\nPRODUCT=403/6001/600",
    "another driver": "DRIVER=ftdi_sio",
    "a carriage return": "\rDRIVER=ftdi_sio\rDEVTYPE=usb_device",
    "another path": "DEVPATH=/devices/virtual/misc/kvm",
    "what udev says": "ID_VENDOR_ID=0403\nTAGS=:systemd:\nDEVLINKS=/dev/serial/by-id/x",
    "the database entry of a node": "MAJOR=10\nMINOR=232",
    "the database entry of a network interface": "IFINDEX=7",
    "what the kernel writes first": "HID_ID=0003:00000403:00006001\nPRODUCT=3/403/6001/100",
    "what the kernel writes later": "HID_PHYS=usb-1/input0\nPHYS=usb-1/input0\nMODALIAS=usb:v0403p6001",
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize(("subsystem", "name"), [("hid", "HID_NAME"), ("input", "NAME")])
def test_a_name_with_line_feeds_gives_a_device_no_other_property(
    bed: Testbed, subsystem: str, name: str, forged: str
) -> None:
    kernel = {
        "hid": {
            "HID_ID": "0003:0000054C:000009CC",
            name: "Pad",
            "HID_PHYS": "usb-2",
            "MODALIAS": "hid:b0003",
        },
        "input": {"PRODUCT": "3/54c/9cc/111", name: "Pad", "PHYS": "usb-2", "MODALIAS": "input:b0003"},
    }[subsystem]
    gamepad = gadgets.gamepad()
    (pad,) = (entry for entry in gamepad if entry.subsystem == subsystem and not entry.node)
    honest = replace(pad, kernel=kernel)
    kvm = replace(KVM[0], udev={"ID_VENDOR_ID": "0403"}, tags=("systemd",), devlinks=("/dev/kvm-too",))
    gamepad = tuple(honest if entry is pad else entry for entry in gamepad)
    bed.plug((kvm,), gadgets.modem(), gamepad)
    devices = UdevDevices()
    devices.resync()
    before = devices.devices[pad.sys_path]

    text = {**honest.kernel_properties, name: f"Pad\n{forged}"}
    written = "".join(f"{key}={value}\n" for key, value in text.items())
    (bed.root / "sys" / pad.path.lstrip("/") / "uevent").write_text(written, newline="")
    devices.resync()
    after = devices.devices[pad.sys_path]

    assert (after.subsystem, after.driver, after.devtype) == (before.subsystem, before.driver, before.devtype)
    assert (after.tags, after.devlinks, after.number) == (before.tags, before.devlinks, None)
    assert {"SUBSYSTEM", "DEVPATH"} <= after.properties.keys()
    changed = after.properties.items() - before.properties.items()
    assert not changed
