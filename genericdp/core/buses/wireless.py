"""Which unit a wireless device is: all units of a radio have one parent, whichever of them are there.

The rules of this file:

* A radio is not a unit, and neither is /dev/uhid, where a program stands in for one. Each device behind
  it is.
* It is told by its own address. The kernel's numbers follow the order in which the units connected.
* One that says no address may be any of its model. So it is never taken for one that is missing (`plugged`).
* A receiver that is one unit with what is paired with it (Logitech) tells its devices by their serial
  numbers, or else by the slot that each got when it was paired.
"""

import re
from collections.abc import Sequence

from genericdp.core.buses.address import Address, telling
from genericdp.core.device import UdevDevice

_HID = re.compile(r"(?P<bus>[0-9A-F]{4}):(?P<model>[0-9A-F]{4}:[0-9A-F]{4})\.[0-9A-F]+")
_BLUETOOTH = "0005"
_UHID = "/sys/devices/virtual/misc/uhid"

_SERIAL_PORT = re.compile(r"rfcomm\d+")
_WHERE_CLOSED = "/sys/devices/virtual/tty"

#: What a receiver writes behind its own path: `usb-0000:00:14.0-2/input2:1`.
_SLOT = re.compile(r".*/input\d+:(\d+)")

#: How the exact address of a HID begins, which has the form of `Address.exact`.
_EXACT = "hid "


def hid_address(device: UdevDevice) -> Address | None:
    """What tells a HID that is a unit of its own; None for any other device."""
    found = _HID.fullmatch(device.sys_name) if device.subsystem == "hid" else None
    if found is None or (found["bus"] != _BLUETOOTH and device.sys_path.rpartition("/")[0] != _UHID):
        return None
    told = _own_address(device)
    if told:
        return Address(f"{_EXACT}{found['bus']} {told}", told, told)
    model = f"{found['bus']}:{found['model']}"
    return Address(f"{_EXACT}{model}", model)


def is_anonymous(port: str, serial: str) -> bool:
    """Whether a unit with this exact port and serial number is a HID that has said no address."""
    return port.startswith(_EXACT) and not serial


def serial_port_address(device: UdevDevice) -> Address | None:
    """What tells a serial port over Bluetooth: the number that somebody has bound to a unit and a channel."""
    if device.subsystem != "tty" or _SERIAL_PORT.fullmatch(device.sys_name) is None:
        return None
    # While a program has it open, the kernel moves it below the adapter.
    return Address(f"{_WHERE_CLOSED}/{device.sys_name}", device.sys_name)


def place_of(own: Sequence[UdevDevice]) -> list[str]:
    """The place within a receiver of what is paired with it.

    own  the device and its ancestors up to the receiver, without it, nearest first
    """
    hids = [each for each in own if each.subsystem == "hid"]
    if len(hids) < 2:
        return []
    slot = _SLOT.fullmatch(hids[0].property("HID_PHYS") or "")
    told = _own_address(hids[0]) or (f"slot{slot[1]}" if slot is not None else "")
    return [*model_of(own), *([told] if told else [])]


def model_of(own: Sequence[UdevDevice]) -> list[str]:
    """The model of what is paired with a receiver, all that earlier releases told it by."""
    hids = [each for each in own if each.subsystem == "hid"]
    # The receiver has one interface for all of them (bus:vendor:product.number).
    return [hids[0].sys_name.partition(":")[2].rpartition(".")[0].replace(":", "-")] if len(hids) > 1 else []


def _own_address(hid: UdevDevice) -> str:
    return telling((hid.property("HID_UNIQ") or "").lower())
