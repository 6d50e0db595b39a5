"""Where a udev device sits: on which physical unit, at which port, at which place of the unit.

The rules of this file:

* Everything comes from sysfs, nothing from the udev database. So a node without udevd, or with a wiped
  database, sees the same places.
* Numbers that the kernel assigns in the order of arrival (`ttyUSB3`, bus 1, `event7`) never count. What
  a driver or the hardware fixes does count: port chains, interface numbers, addresses on a bus. The index of
  a V4L node is one or the other (`buses.video`).
* What is plugged in nowhere is told by what its bus calls it (`genericdp.core.buses`). What nothing tells
  from another one has no identity.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple

from genericdp.core.buses.address import Address
from genericdp.core.buses.kernel_name import stem_of
from genericdp.core.buses.nvme import FIRST as FIRST_NAMESPACE
from genericdp.core.buses.ordinal import ordinal
from genericdp.core.buses.port import ADDRESSED, Dock, Port, dock_of, model_of, port_on_a_bus, usb_above
from genericdp.core.buses.scsi import ata_port
from genericdp.core.buses.told import address_of, place_before, place_of
from genericdp.core.buses.wireless import is_anonymous
from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.fillers import why_filler

#: What hangs off these has been made of nothing by a driver: hosts of iSCSI, and since Linux 6.14 vgem.
_HANGERS = frozenset({"/sys/devices/platform", "/sys/devices/faux"})

#: The attribute that tells apart the ports of a serial adapter.
_PORT = ("port_number", "port")

#: The platform device of the serial ports of a PC: only there is `line` a fixed address.
LEGACY_SERIAL = "serial8250"
_LINE = ("line", "line")

_NUMBER = "number"

#: The place within a unit on USB of the node that the unit itself has, whatever drivers make of it.
USB_NODE = "usb"

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

    @property
    def is_anonymous(self) -> bool:
        """Whether any unit of its model may be here, one after the other."""
        return is_anonymous(self.port, self.serial)

    def may_be(self, other: "Spot") -> bool:
        """Whether both may be spots of one device node, seen at different times."""
        return self == other or (UNKNOWN in (self.number, other.number) and self.of_all == other.of_all)


def spot_of(number: DeviceNumber | None) -> Spot:
    """A spot for a device number: whatever path has it, it is the same device."""
    return Spot(str(number), "", _NUMBER)


def is_of_number(spot: Spot) -> bool:
    """Whether it is one of `spot_of`. No port is a device number."""
    return spot.within == _NUMBER and not spot.port.startswith("/")


def spot_of_node(device: UdevDevice) -> Spot:
    """A spot for a device node until the next boot: whatever it is called, it is the same device."""
    return Spot(f"{device.number} {device.incarnation}", "", _NUMBER)


def number_of(spot: Spot) -> Spot:
    """The device number (`spot_of`) of one of `spot_of_node`."""
    return Spot(spot.port.rpartition(" ")[0], "", _NUMBER)


def nodes_of_unit(devices: Mapping[str, UdevDevice], unit: str) -> list[Spot]:
    """The device nodes of a unit on USB, of which this is the sys path (`spot_of_node`)."""
    nodes = (each for each in devices.values() if each.device_node and usb_above(each.sys_path) == unit)
    return [spot_of_node(each) for each in nodes]


def spot_under_link(device: UdevDevice, link: str) -> Spot:
    """The same, with the link that leads there."""
    return spot_of_node(device)._replace(serial=link)


def is_of_node(spot: Spot) -> bool:
    """Whether it is one of `spot_of_node`, with a link or without."""
    return is_of_number(spot) and spot.port.count(" ") > 1


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
    untold  what nobody can tell it to be, such as "disk"; "" if it is told from everything else
    before  the spot that an earlier release saved, if it was another one
    across  the spot at the other port of its socket of USB 3, unless the two are known to be two
    """

    unit: UdevDevice
    port: Port
    serial: str | None
    within: str
    spot: Spot
    untold: str = ""
    before: Spot | None = None
    across: Spot | None = None

    def numbered(self, number: int) -> "Place":
        """The place of the sibling with a number."""
        across = self.across and self.across._replace(number=number)
        return replace(self, spot=self.spot._replace(number=number), across=across)

    @property
    def usb(self) -> UdevDevice | None:
        """The unit, if it is a USB device."""
        return self.unit if self.unit.subsystem == "usb" else None

    @property
    def model(self) -> str:
        """The model of the unit, if it is a USB device; "" for any other."""
        return model_of(self.unit) if self.unit.subsystem == "usb" else ""

    @property
    def dock(self) -> Dock | None:
        """The dock that identifies a USB device whose own serial number does not; None for any other."""
        is_told = self.spot.serial and not why_filler(self.spot.serial)
        return dock_of(self.unit) if self.unit.subsystem == "usb" and not is_told else None


def may_be_model(one: str, other: str) -> bool:
    """Whether two units may be of one model; "" stands for one that is not known."""
    return one == other or "" in (one, other)


def locate(device: UdevDevice, at: str = "") -> Place:
    """The place of a udev device. `within` and `spot` may hold what a device says about itself.

    at  see `port_on_a_bus`
    """
    unit, address = _unit_and_address(device)
    own = _below(unit, device)
    port = port_on_a_bus(unit, at) if address is None else Port(address.exact, address.readable)
    serial = _serial_of(own, unit) if address is None else address.serial or None
    told, untold = place_of(own, unit)
    within, in_full = _within(own, unit, told)
    spot = Spot(port.exact, serial or "", in_full)
    is_new = (
        address is not None
        or unit.subsystem == "faux"
        or untold
        or port.was
        or told != place_before(own)
        # Its kernel name is read in another way.
        or "!" in device.sys_name
        or device.subsystem == "platform"
    )
    before = _spot_before(device, at) if is_new else spot
    across = spot._replace(port=port.across.exact) if port.across else None
    return Place(unit, port, serial, within, spot, untold, None if before.of_all == spot else before, across)


def _spot_before(device: UdevDevice, at: str) -> Spot:
    """The spot that an earlier release saved of a device, whichever of its siblings it was.

    That release took the numbers of SCSI devices and volumes for addresses, and a radio for one unit.
    """
    unit = _unit_on_a_bus(device)
    own = _below(unit, device)
    _, in_full = _within(own, unit, place_before(own), before=True)
    port = port_on_a_bus(unit, at)
    return Spot(port.was or port.exact, _serial_of(own, unit) or "", in_full, UNKNOWN)


def unit_of(device: UdevDevice) -> UdevDevice:
    """The physical thing that a udev device belongs to.

    That is the nearest one that its bus gives an address, wherever it is; its USB device, or else the nearest
    device on a bus with addresses, or else (for virtual devices) the topmost ancestor.
    """
    return _unit_and_address(device)[0]


def _unit_and_address(device: UdevDevice) -> tuple[UdevDevice, Address | None]:
    """The unit, and what tells it if it is plugged in nowhere."""
    # A plain loop, because every device node on the machine is asked about.
    candidate: UdevDevice | None = device
    while candidate is not None:
        address = address_of(candidate)
        if address is not None:
            return candidate, address
        candidate = candidate.parent
    return _unit_on_a_bus(device, below=_HANGERS), None


def _unit_on_a_bus(device: UdevDevice, below: Collection[str] = ()) -> UdevDevice:
    usb = device.usb_device
    if usb is not None:
        return usb
    top = device
    for candidate in device.self_and_ancestors():
        if candidate.subsystem in ADDRESSED:
            return candidate
        if candidate.sys_path not in below:
            top = candidate
    return top


def _serial_of(own: Sequence[UdevDevice], unit: UdevDevice) -> str | None:
    """The serial number of the unit in sysfs; for a USB device, only its own counts."""
    for candidate in (unit,) if unit.subsystem == "usb" else (*own, unit):
        serial = candidate.attributes.get("serial", "").strip()
        if serial:
            return serial
    return None


def _below(unit: UdevDevice, device: UdevDevice) -> list[UdevDevice]:
    """The device and its ancestors up to the unit, without it, nearest first: `own` in this file."""
    own: list[UdevDevice] = []
    each: UdevDevice | None = device
    while each is not None and each is not unit:
        own.append(each)
        each = each.parent
    return own


def _within(
    own: Sequence[UdevDevice], unit: UdevDevice, told: list[str], *, before: bool = False
) -> tuple[str, str]:
    """The place within the unit, in the short form and in full; `told` is what a bus says about it."""
    if not own:
        return "", USB_NODE if unit.subsystem == "usb" else "node"
    # A radio may be on USB, and what is behind it is not.
    interface = own[0].usb_interface if unit.subsystem == "usb" else None
    number = interface.attributes.get("bInterfaceNumber", "").strip() if interface is not None else ""
    in_full = [f"if{number}"] if number else []
    within = in_full if number != "00" else []
    if own[0] is not interface:
        below = list(takewhile(lambda each: each is not interface, own))
        parts = _below_interface(below, unit, told, before=before)
        in_full = [*in_full, *parts]
        within = [*within, *(part for part in parts if part != FIRST_NAMESPACE)]
    return "-".join(within), "-".join(in_full) or "node"


def _below_interface(
    own: Sequence[UdevDevice], unit: UdevDevice, told: list[str], *, before: bool
) -> list[str]:
    device = own[0]
    # The generic node of an NVMe namespace has the number of arrival in its name, like its disk.
    stem = "ng" if told and device.subsystem == "nvme-generic" else stem_of(device, before=before)
    # A tty or a camera's video node is what one expects at an interface; anything else is named.
    parts = [] if device.subsystem == "tty" or stem == "video" else [stem]
    parts += ordinal(own, *(_LINE if unit.sys_name == LEGACY_SERIAL else _PORT))
    parts += ata_port(own)
    return [*parts, *told, *_input_name(own)]


def _input_name(own: Sequence[UdevDevice]) -> list[str]:
    """Several input devices may share an interface (a keyboard and its media keys); their names differ."""
    names = [each.attributes.get("name", "").strip() for each in own if each.subsystem == "input"]
    return [name for name in names if name][:1]
