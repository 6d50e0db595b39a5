"""Where a udev device sits: on which physical unit, at which port, at which place of the unit.

The rules of this file:

* Everything comes from sysfs, nothing from the udev database, so that a node without udevd, or with
  a wiped database, sees the same places.
* Numbers that the kernel hands out in the order of arrival (`ttyUSB3`, bus 1, `event7`) never count.
  What a driver or the hardware fixed does: port chains, interface numbers, addresses on a bus.
"""

import re
from dataclasses import dataclass

from genericdp.core.device import UdevDevice

#: Buses whose device names are addresses: the same slot has the same name after every boot.
_ADDRESSED = frozenset({"pci", "platform", "pnp", "acpi", "amba", "vmbus", "xen", "ccw"})

#: Attributes that tell the nodes of one interface apart, with the value that goes without saying.
_ORDINALS = (("index", "index"), ("port_number", "port"), ("line", "line"))

#: Kernel names that need not be said: a tty at an interface is what one expects there.
_UNSAID_STEMS = frozenset({"ttyUSB", "ttyACM", "ttyS", "ttyAMA", "ttyGS", "video"})

_SOUND_CARD = re.compile(r"C\d+")
_FIRST_NUMBER = re.compile(r"([A-Za-z][A-Za-z_-]*?)-?\d+(.*)")
_USB_ROOT = re.compile(r"usb\d+")
_USB_DEVICE = re.compile(r"\d+-[\d.]+")


@dataclass(frozen=True, slots=True)
class Port:
    """Where a unit is connected. `exact` tells any two ports of the node apart; `readable` need not."""

    exact: str
    readable: str


def unit_of(device: UdevDevice) -> UdevDevice:
    """The physical thing that a udev device belongs to: its USB device, else the nearest device on a
    bus with addresses, else (virtual devices) the topmost ancestor.
    """
    usb = device.usb_device
    if usb is not None:
        return usb
    top = device
    for candidate in device.self_and_ancestors():
        if candidate.subsystem in _ADDRESSED:
            return candidate
        top = candidate
    return top


def serial_of(device: UdevDevice) -> str | None:
    """The serial number of the unit, as its own sysfs attribute says; None when it has none."""
    usb = device.usb_device
    candidates = (usb,) if usb is not None else tuple(device.self_and_ancestors())
    for candidate in candidates:
        serial = candidate.attributes.get("serial", "").strip()
        if serial:
            return serial
    return None


def port_of(unit: UdevDevice) -> Port:
    """Where a unit (as `unit_of` gives it) is connected."""
    if unit.subsystem == "usb":
        return _usb_port(unit)
    if unit.subsystem in _ADDRESSED:
        return Port(unit.sys_path, f"port-{unit.sys_name}")
    return Port(unit.sys_name, unit.sys_name)


def _usb_port(unit: UdevDevice) -> Port:
    """Controller, USB generation of the root hub, chain of ports: what ID_PATH says, without bus
    numbers (they follow the order in which controllers were found).
    """
    controller: list[str] = []
    for component in unit.sys_path.split("/"):
        if _USB_ROOT.fullmatch(component) or _USB_DEVICE.fullmatch(component):
            break
        controller.append(component)
    generation = ""
    for hub in unit.self_and_ancestors():
        if _USB_ROOT.fullmatch(hub.sys_name):
            generation = hub.attributes.get("version", "").strip()
    chain = unit.sys_name.partition("-")[2] or "0"
    return Port(f"{'/'.join(controller)} usb{generation} {chain}", f"port-{chain}")


def place_of(device: UdevDevice, *, said: bool = False) -> str:
    """The place of a device within its unit, made of `[A-Za-z0-9-]` and device-given names.

    "" is the unit itself or its one obvious node. With `said`, nothing that goes without saying is
    left out (`if00` where the short form is ""): for names of members, which need one each.
    """
    unit = unit_of(device)
    if device is unit:
        return "usb" if said and device.subsystem == "usb" else ("node" if said else "")
    parts: list[str] = []
    interface = device.usb_interface
    if interface is not None:
        number = interface.attributes.get("bInterfaceNumber", "").strip()
        if number and (said or number != "00"):
            parts.append(f"if{number}")
        if device is interface:
            return "-".join(parts) or ("if" if said else "")
    stem = _stem(device)
    if stem not in _UNSAID_STEMS:
        parts.append(stem)
    for attribute, word in _ORDINALS:
        value = device.attributes.get(attribute, "").strip()
        if value.isascii() and value.isdigit() and int(value) != 0:
            parts.append(f"{word}{int(value)}")
    parts += _input_name(device)
    return "-".join(parts) or ("node" if said else "")


def _stem(device: UdevDevice) -> str:
    """The kernel name without the numbers that it owes to the order of arrival."""
    if device.subsystem == "block":
        partition = device.properties.get("PARTN", "")
        return f"part{partition}" if device.devtype == "partition" else "disk"
    name = device.sys_name
    if device.subsystem == "sound":
        return _SOUND_CARD.sub("", name)
    found = _FIRST_NUMBER.fullmatch(name)
    return found.group(1) + found.group(2) if found else name


def _input_name(device: UdevDevice) -> list[str]:
    """Several input devices may share an interface (keyboard and its media keys); names differ."""
    for ancestor in device.self_and_ancestors():
        if ancestor.subsystem == "input":
            name = ancestor.attributes.get("name", "").strip()
            if name:
                return [name]
    return []
