"""Whole machines as udev knows them: laptops, servers, boards, an industrial PC, a virtual machine.

`tests/data/machines/NAME.txt` is in the form of `udevadm info --export-db`, with the sysfs attributes that
genericdp reads (`recording`). The machines are made up after real ones of these kinds. They have what an
operator meets there: ports without hardware, `ID_SERIAL=noserial`, names that udev takes from the host
controller, nodes of which only the kernel's name is known. Only ancestors of device nodes are recorded.
"""

import re
from functools import cache
from pathlib import Path
from types import MappingProxyType

from genericdp.core.device import CORE_ATTRIBUTES, DeviceNumber, UdevDevice, attributes_by_name
from tests.scenes.recording import Lines, attributes_of, blocks, properties_of

FOLDER = Path(__file__).parents[1] / "data" / "machines"

#: The names of all machines.
MACHINES = tuple(sorted(path.stem for path in FOLDER.iterdir()))

#: Numbers that follow the order of arrival, behind the word that the driver puts before them.
_COUNTED = re.compile(
    r"(?<![A-Za-z_-])((?:nvme|ng|ttyUSB|ttyACM|ttyCH9344USB|ttyMI|ttyn|video(?!4linux)|vbi|radio|media|hidraw|hiddev|event|js|mouse|lp"
    r"|usbtmc|cdc-wdm|sg|n?st|sch|lirc|rc|input|adapter|dvb|uverbs|umad|issm|mlx5_|accel|card|renderD|uio|wwan"
    r"|iio:device|xdma|rngd[!/]npu|memx|comedi|rpmsg_pru|gpiochip|ptp|mmc|mmcblk|mtd|mtdblock|host(?!1x)|target"
    r"|rbd|rfcomm|fw|bcache|zd|ublk[bc]|hidg|cec|counter|EtherCAT|gpib|hfi1_|dm-|md|nvme-subsys|ubi|pps|i2c-|ttyMAX|session|r?port-|end_device-|PCI7432W|(?:control|pcm|midi|hw)C|remoteproc|virtio))(\d+)"
)
#: The letter of a disk.
_LETTERS = re.compile(r"(?<![A-Za-z0-9_-])((?:s|v|das)d)([a-h])(?=\d*$|\d*/)", re.MULTILINE)
#: Numbers of platform devices that drivers make, of themselves or as functions of a PCI device.
_MADE = re.compile(r"(?<=\.)\d+(?=\.auto)|(?<=/dw-apb-uart\.)\d+|(?<=/i2c_designware\.)\d+")
#: The first number of a SCSI address is that of the host adapter.
_SCSI = re.compile(r"(?<=/)(\d+)(?=:\d+:\d+:\d+\b)")
#: Numbers of images of Ceph, and of I2C buses before the addresses on them.
_BUSES = re.compile(r"(?<=/rbd/)\d+|(?<=/)\d+(?=-[0-9a-f]{4}\b)")
#: The index of a V4L node, in what is recorded of it.
_INDEX = re.compile(r"^P: (.*)/video4linux/.*\n(?:.+\n)*?A: index=(\d+)$", re.MULTILINE)
#: What registers all V4L nodes of a unit in its own order: a driver for USB, or for a PCI function.
_IN_ORDER = re.compile(r".*/usb\d+/.*|.*/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ARRIVED_LATER = 5


@cache
def after_reboot(name: str, *more: str) -> MappingProxyType[str, UdevDevice]:
    """The same machine when everything was found later: `/dev/nvme0n1` is `/dev/nvme5n1`.

    The devices are in the same order as those of `machine`.
    """
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    text = _COUNTED.sub(lambda found: f"{found[1]}{int(found[2]) + _ARRIVED_LATER}", text)
    text = _LETTERS.sub(lambda found: f"{found[1]}{chr(ord(found[2]) + _ARRIVED_LATER)}", text)
    for number in (_SCSI, _MADE, _BUSES):
        text = number.sub(lambda found: str(int(found[0]) + _ARRIVED_LATER), text)
    text = _INDEX.sub(_in_another_order, text)
    return _devices(tuple(blocks(text)), CORE_ATTRIBUTES.union(more))


def _in_another_order(found: re.Match[str]) -> str:
    """What is recorded of a V4L node, with the index that it has when its neighbour was registered first."""
    if _IN_ORDER.fullmatch(found[1]):
        return found[0]
    return f"{found[0].removesuffix(found[2])}{int(found[2]) ^ 1}"


@cache
def machine(name: str, *more: str, attributes: bool = True) -> MappingProxyType[str, UdevDevice]:
    """The devices of a machine by their sys paths, as a snapshot of udev holds them.

    more        sysfs attributes beyond CORE_ATTRIBUTES
    attributes  False leaves all of them out, as in what `udevadm info --export-db` prints
    """
    return _devices(recorded(name), CORE_ATTRIBUTES.union(more) if attributes else frozenset())


def node(name: str, path: str) -> UdevDevice:
    """The device of a machine with this device node."""
    return next(each for each in machine(name).values() if each.device_node == path)


def recorded(name: str) -> tuple[Lines, ...]:
    """The recorded devices of a machine."""
    return tuple(blocks((FOLDER / f"{name}.txt").read_text(encoding="utf-8")))


def _devices(recorded: tuple[Lines, ...], wanted: frozenset[str]) -> MappingProxyType[str, UdevDevice]:
    devices: dict[str, UdevDevice] = {}
    # Parents sort before their children.
    for lines in sorted(recorded, key=lambda each: each["P"][0].count("/")):
        device = _device(lines, devices, wanted)
        devices[device.sys_path] = device
    return MappingProxyType(devices)


def _device(lines: Lines, devices: dict[str, UdevDevice], wanted: frozenset[str]) -> UdevDevice:
    properties = properties_of(lines)
    sys_path = f"/sys{lines['P'][0]}"
    wanted = wanted.union(attributes_by_name(sys_path)) if wanted else wanted
    number = None
    if "MAJOR" in properties:
        kind = "b" if properties["SUBSYSTEM"] == "block" else "c"
        number = DeviceNumber(kind, int(properties["MAJOR"]), int(properties["MINOR"]))
    return UdevDevice(
        sys_path=sys_path,
        subsystem=properties["SUBSYSTEM"],
        devtype=properties.get("DEVTYPE", ""),
        driver=properties.get("DRIVER", ""),
        incarnation=1,
        device_node=properties.get("DEVNAME"),
        number=number,
        devlinks=tuple(f"/dev/{link}" for link in lines.get("S", ())),
        properties=properties,
        attributes={name: value for name, value in attributes_of(lines).items() if name in wanted},
        tags=frozenset(tag for tag in properties.get("TAGS", "").split(":") if tag),
        parent=_parent(sys_path, devices),
    )


def _parent(sys_path: str, devices: dict[str, UdevDevice]) -> UdevDevice | None:
    above = sys_path.rpartition("/")[0]
    while above and above not in devices:
        above = above.rpartition("/")[0]
    return devices.get(above)
