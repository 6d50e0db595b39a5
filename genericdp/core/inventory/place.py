"""Where a udev device sits: on which physical unit, at which port, at which place of the unit.

The rules of this file:

* Everything comes from sysfs, nothing from the udev database. So a node without udevd, or with a wiped
  database, sees the same places.
* Numbers that the kernel assigns in the order of arrival (`ttyUSB3`, bus 1, `event7`) never count. What
  a driver or the hardware fixes does count: port chains, interface numbers, addresses on a bus.
"""

import re
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from genericdp.core.device import DeviceNumber, UdevDevice, ata_attributes
from genericdp.core.usb_port import UsbPort

#: Devices that a driver makes of a part of another one. Their names are UUIDs, wherever they are made.
_MEDIATED = "mdev"

#: Buses whose device names are addresses: the same slot has the same name after every boot.
_ADDRESSED = frozenset({"pci", "platform", "pnp", "acpi", "amba", "vmbus", "xen", "ccw", "vio", _MEDIATED})

#: Attributes that tell apart the nodes of one interface: a camera's nodes, a serial adapter's ports.
_ORDINALS = (("index", "index"), ("port_number", "port"))

#: The platform device of the serial ports of a PC: only there is `line` a fixed address.
LEGACY_SERIAL = "serial8250"
_LINE = (("line", "line"),)

#: Serial ports over Bluetooth. The kernel moves them below the adapter while a program has them open.
_OVER_BLUETOOTH = re.compile(r"rfcomm\d+")
_WHERE_CLOSED = "/sys/devices/virtual/tty"

#: A kernel name in three parts: the driver's stem, the number by order of arrival, the rest.
_KERNEL_NAME = re.compile(r"((?:i2c|v4l|[A-Za-z])[A-Za-z:_-]*?)[:_-]?\d+(.*)")
_SOUND_CARD = re.compile(r"C\d+")

#: `<controller>/usb<bus>/<bus>-<port>/<bus>-<port>.<port>`
_USB_PATH = re.compile(r"(.*)/usb(\d+)(?:/\2-[\d.]+)*")

#: Platform devices that drivers create are numbered in the order of arrival: `xhci-hcd.1.auto`.
AUTO_NUMBER = re.compile(r"\.\d+\.auto(?=/|$)")


@dataclass(frozen=True, slots=True)
class Port:
    """Where a unit is connected.

    exact     different for any two ports of the node
    readable  for people; two ports may have the same
    hub       different for any two hubs; "" when it is not USB
    """

    exact: str
    readable: str
    hub: str = ""


_NUMBER = "number"

#: The number of a sibling when nobody can say which one it is.
UNKNOWN = -1


class Spot(NamedTuple):
    """What tells a device node from every other one, whatever the kernel and the rules call it.

    Siblings are those that nothing but their order tells apart. Each has a number, which it keeps for as long
    as it is plugged in, see `plugged`. A spot holds no snapshot, so it may be kept for as long as the device
    is remembered.

    port    the exact one
    serial  the serial number of the unit, "" when it has none
    within  the place within the unit, in full: `if00`, `if04-cdc-wdm`, `usb`
    number  which of its siblings it is, from 0; UNKNOWN in the memory of an earlier release
    """

    port: str
    serial: str
    within: str
    number: int = 0

    @property
    def of_all(self) -> "Spot":
        """The spot that all siblings share."""
        return self._replace(number=0) if self.number else self

    def may_be(self, other: "Spot") -> bool:
        """Whether both may be spots of one device node, seen at different times."""
        return self == other or (UNKNOWN in (self.number, other.number) and self.of_all == other.of_all)


def spot_of(number: DeviceNumber | None) -> Spot:
    """A spot for a device number: whatever path has it, it is the same device."""
    return Spot(str(number), "", _NUMBER)


def is_of_number(spot: Spot) -> bool:
    """Whether it is one of `spot_of`. No port is a device number."""
    return spot.within == _NUMBER and not spot.port.startswith("/")


def is_of_path(spot: Spot) -> bool:
    """Whether it is that of a bare node, whose port is its path."""
    return spot.port.startswith("/dev/")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a udev device sits.

    unit    the physical thing that it belongs to
    port    where that is connected
    serial  the serial number of the unit, None when it has none
    within  the place within the unit, short: "" is the unit itself, or the one node that one expects there
    spot    all of it as text, with nothing left out; without siblings as far as `locate` knows
    """

    unit: UdevDevice
    port: Port
    serial: str | None
    within: str
    spot: Spot

    @property
    def usb(self) -> UdevDevice | None:
        """The unit, if it is a USB device."""
        return self.unit if self.unit.subsystem == "usb" else None


def locate(device: UdevDevice) -> Place:
    """The place of a udev device. `within` and `spot` may hold what a device says about itself."""
    unit = unit_of(device)
    port = port_of(unit)
    serial = _serial_of(device, unit)
    within, in_full = _within(device, unit)
    return Place(unit, port, serial, within, Spot(port.exact, serial or "", in_full))


def unit_of(device: UdevDevice) -> UdevDevice:
    """The physical thing that a udev device belongs to.

    Its USB device, or else the nearest device on a bus with addresses, or else (for virtual devices)
    the topmost ancestor. A serial port over Bluetooth is itself a unit, whatever adapter it uses.
    """
    if device.subsystem == "tty" and _OVER_BLUETOOTH.fullmatch(device.sys_name):
        return device
    usb = device.usb_device
    if usb is not None:
        return usb
    top = device
    for candidate in device.self_and_ancestors():
        if candidate.subsystem in _ADDRESSED:
            return candidate
        top = candidate
    return top


def port_of(unit: UdevDevice) -> Port:
    """Where a unit (from `unit_of`) is connected."""
    if unit.subsystem == "usb":
        return _usb_port(unit)
    if unit.subsystem == _MEDIATED:
        return Port(f"{_MEDIATED} {unit.sys_name}", unit.sys_name)
    if unit.subsystem in _ADDRESSED:
        path = AUTO_NUMBER.sub(".auto", unit.sys_path)
        return Port(path, f"port-{path.rpartition('/')[2]}")
    if _OVER_BLUETOOTH.fullmatch(unit.sys_name):
        return Port(f"{_WHERE_CLOSED}/{unit.sys_name}", unit.sys_name)
    return Port(unit.sys_path, unit.devname if unit.is_bare else unit.sys_name)


def _usb_port(unit: UdevDevice) -> Port:
    found = _USB_PATH.fullmatch(unit.sys_path)
    controller = AUTO_NUMBER.sub(".auto", found.group(1)) if found else unit.sys_path.rpartition("/")[0]
    root = unit
    for hub in unit.ancestors():
        if hub.subsystem == "usb":
            root = hub
    # Only the major version: kernels disagree about the minor version of the same root hub.
    generation = root.attributes.get("version", "").strip().partition(".")[0]
    chain = unit.sys_name.partition("-")[2] or "0"
    port = UsbPort(controller, generation, chain)
    return Port(port.exact, f"port-{chain}", port.hub)


def _serial_of(device: UdevDevice, unit: UdevDevice) -> str | None:
    """The serial number of the unit in sysfs; for a USB device, only its own counts."""
    for candidate in [unit] if unit.subsystem == "usb" else [*_below(unit, None, device), unit]:
        serial = candidate.attributes.get("serial", "").strip()
        if serial:
            return serial
    return None


def _below(unit: UdevDevice, interface: UdevDevice | None, device: UdevDevice) -> list[UdevDevice]:
    """The device and its ancestors up to the interface or the unit, without these, nearest first."""
    line = device.self_and_ancestors()
    return list(takewhile(lambda each: each is not unit and each is not interface, line))


def _within(device: UdevDevice, unit: UdevDevice) -> tuple[str, str]:
    """The place within the unit, in the short form and in full."""
    if device is unit:
        return "", "usb" if unit.subsystem == "usb" else "node"
    interface = device.usb_interface
    number = interface.attributes.get("bInterfaceNumber", "").strip() if interface is not None else ""
    in_full = [f"if{number}"] if number else []
    within = in_full if number != "00" else []
    if device is not interface:
        parts = _below_interface(device, unit, interface)
        in_full = [*in_full, *parts]
        within = [*within, *parts]
    return "-".join(within), "-".join(in_full) or "node"


def _below_interface(device: UdevDevice, unit: UdevDevice, interface: UdevDevice | None) -> list[str]:
    own = _below(unit, interface, device)
    stem = stem_of(device)
    # A tty or a camera's video node is what one expects at an interface; anything else is named.
    parts = [] if device.subsystem == "tty" or stem == "video" else [stem]
    for attribute, word in _LINE if unit.sys_name == LEGACY_SERIAL else _ORDINALS:
        parts += _ordinal(own, attribute, word)
    parts += _ata_port(own)
    for subsystem, told in _TOLD_BY.items():
        chain = [each for each in own if each.subsystem == subsystem]
        parts += told(chain) if chain else []
    return parts


def _ordinal(own: list[UdevDevice], attribute: str, word: str) -> list[str]:
    """The value of the nearest device that has the attribute (usb-serial keeps it on a parent)."""
    for each in own:
        value = each.attributes.get(attribute)
        if value is not None:
            number = value.strip().lstrip("0")
            return [word + number] if number.isascii() and number.isdigit() else []
    return []


def _ata_port(own: list[UdevDevice]) -> list[str]:
    """A controller has a port for each disk; the number of the SCSI host follows the order of arrival."""
    for each in own:
        for name in ata_attributes(each.sys_path):
            number = each.attributes.get(name, "").strip()
            return [f"port{number}"] if number.isascii() and number.isdigit() else []
    return []


def _scsi_address(chain: list[UdevDevice]) -> list[str]:
    """A card reader's slots are the logical units of one interface (host:channel:target:lun)."""
    addresses = [each.sys_name.partition(":")[2] for each in chain if each.devtype == "scsi_device"]
    return [f"lun{address.replace(':', '-')}" for address in addresses[:1] if address != "0:0:0"]


def _paired_hid(chain: list[UdevDevice]) -> list[str]:
    """A receiver has one interface for all paired devices (bus:vendor:product.number)."""
    if len(chain) < 2:
        return []
    return [chain[0].sys_name.partition(":")[2].rpartition(".")[0].replace(":", "-")]


def _input_name(chain: list[UdevDevice]) -> list[str]:
    """Several input devices may share an interface (a keyboard and its media keys); their names differ."""
    names = [each.attributes.get("name", "").strip() for each in chain]
    return [name for name in names if name][:1]


#: Subsystem -> what tells apart the nodes of one interface, from their ancestors in the subsystem.
_TOLD_BY = {"scsi": _scsi_address, "hid": _paired_hid, "input": _input_name}


def stem_of(device: UdevDevice) -> str:
    """The kernel name without the numbers that follow the order of arrival."""
    name = device.sys_name
    match device.subsystem:
        case "block" if device.devtype == "partition":
            name = f"part{device.properties.get('PARTN', '')}"
        case "block":
            name = "disk"
        case "sound":
            name = _SOUND_CARD.sub("", name)
        case "hid":
            name = name.rpartition(".")[0]
        case "bsg" | "vfio" | "vfio-dev":
            # The node of an IOMMU group has no other name than its number.
            name = device.subsystem
        case _:
            found = _KERNEL_NAME.fullmatch(name)
            name = found.group(1) + found.group(2) if found else name
    return re.sub(r"[^A-Za-z0-9.-]", "-", name)
