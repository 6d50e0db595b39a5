"""Conditions that distinguish a device from all others, from the best clue to the last resort.

The rules of this file:

* The longer a clue lasts, the better it is: what a unit is comes before where it is plugged in, and that
  before its place in the machine. The kernel's name counts only where the kernel always gives the same one.
* A rule file can express every condition. The caller finds out which devices it matches.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import AUTO_NUMBER, LEGACY_SERIAL, unit_of
from genericdp.core.rules.match import usb_value
from genericdp.core.suggest.quoting import exactly
from genericdp.core.suggest.siblings import Siblings

#: A match as a rule file writes it: globs, lists of them, tables.
Conditions = Mapping[str, "str | tuple[str, ...] | Conditions"]


class By(StrEnum):
    """What a rule knows its device by."""

    SERIAL = "serial"
    MODEL = "model"
    PORT = "port"
    PLACE = "place"
    INTERFACE = "interface"
    NAME = "name"
    PATH = "path"
    KIND = "kind"
    ARRIVAL = "arrival"


@dataclass(frozen=True, slots=True)
class Clue:
    """Conditions that a unit satisfies, and what of it they look at."""

    by: By
    conditions: Conditions


#: A USB string has at most 126 characters: anything longer is not a serial number.
_LONGEST_SERIAL = 126

#: Kernel names that are given in the order of arrival although the device is on no bus.
_BY_ARRIVAL = re.compile(r"(?:dm-|md|tap|input/|hidraw|vfio/)\d*.*")

#: The number that a device node owes to the order of arrival: its last one; a sound card's is inside.
_NUMBER = re.compile(r"(?<=C)\d+(?=D|$)|\d+$")
#: Buses: attributes of devices on these describe a unit, not one of its nodes.
_WHERE_UNITS_BEGIN = frozenset({"usb", "pci", "platform"})


def kind_of(group: Siblings) -> Conditions:
    """The kind of the nodes: their subsystems."""
    return {"SUBSYSTEM": _one_or_more({node.subsystem for node in group.nodes})}


def names_of(nodes: Iterable[UdevDevice]) -> Conditions:
    """The names that the nodes have now."""
    return {"DEVNAME": _one_or_more(node.property("DEVNAME") or "" for node in nodes)}


def _one_or_more(values: Iterable[str]) -> str | tuple[str, ...]:
    globs = tuple(sorted(exactly(value) for value in values))
    return globs[0] if len(globs) == 1 else globs


def serial_of(unit: UdevDevice) -> str | None:
    """The serial number of a USB device as a rule can write it, or None."""
    serial = unit.attributes.get("serial", "")
    return serial if serial.strip() and len(serial) <= _LONGEST_SERIAL else None


def has_a_fixed_name(node: UdevDevice) -> bool:
    """Whether the kernel always gives this node this name: not on a bus, not numbered by arrival."""
    virtual = node.sys_path.startswith("/sys/devices/virtual/")
    return virtual and _BY_ARRIVAL.fullmatch(node.devname) is None


def clues(node: UdevDevice) -> Iterator[Clue]:
    """The clues to the unit of a device node, the best one first."""
    unit = unit_of(node)
    if unit.subsystem == "usb":
        yield from _usb_clues(unit)
    elif has_a_fixed_name(node):
        yield Clue(By.NAME, names_of([node]))
    elif node.is_bare:
        yield Clue(By.PATH, names_of([node]))
    else:
        yield from _other_clues(node, unit)


def model_of(unit: UdevDevice) -> Conditions:
    """What every unit of the model of a USB device satisfies."""
    values = {key: usb_value(unit, key) for key in ("vendor", "product")}
    return {"usb": {key: exactly(value) for key, value in values.items() if value}}


def _usb_clues(unit: UdevDevice) -> Iterator[Clue]:
    model = model_of(unit)
    serial = serial_of(unit)
    if serial is not None:
        yield Clue(By.SERIAL, joined(model, {"usb": {"serial": exactly(serial)}}))
    else:
        yield Clue(By.MODEL, model)
    at_port = joined(model, {"usb": {"port": exactly(usb_value(unit, "port") or "")}})
    yield Clue(By.PORT, at_port)
    controller = unit.sys_path.partition("/usb")[0].removeprefix("/sys")
    yield Clue(By.PLACE, joined(at_port, {"DEVPATH": f"{_lasting(controller)}/*"}))


def _other_clues(node: UdevDevice, unit: UdevDevice) -> Iterator[Clue]:
    for above in node.ancestors():
        if above.subsystem == "hid":
            # Over Bluetooth, the first one is the address of the device.
            for name, by in (("HID_UNIQ", By.SERIAL), ("HID_NAME", By.MODEL)):
                if value := above.properties.get(name):
                    yield Clue(by, {"parent": {name: exactly(value)}})
        if above.subsystem == "net":
            yield Clue(By.INTERFACE, {"parent": {"SUBSYSTEM": "net", "INTERFACE": exactly(above.sys_name)}})
    for name in ("ID_SERIAL", "ID_WWN", "ID_PART_ENTRY_UUID"):
        if value := node.properties.get(name):
            yield Clue(By.SERIAL, {name: exactly(value)})
    for name, by in (("PCI_ID", By.MODEL), ("PCI_SLOT_NAME", By.PLACE)):
        if value := unit.properties.get(name):
            yield Clue(by, {"parent": {name: exactly(value)}})
    if unit.sys_path.startswith("/sys/devices/virtual/"):
        yield Clue(By.KIND, {})
    else:
        below = "" if unit is node else "/*"
        yield Clue(By.PLACE, {"DEVPATH": _lasting(unit.sys_path.removeprefix("/sys")) + below})


def _lasting(path: str) -> str:
    """A glob of a path of sysfs without the numbers that drivers give in the order of arrival."""
    return AUTO_NUMBER.sub(".*.auto", exactly(path))


def details(node: UdevDevice) -> Iterator[Conditions]:
    """What distinguishes a device node from the others of its unit, the best detail first."""
    if interface := usb_value(node, "interface"):
        yield {"usb": {"interface": exactly(interface)}}
    if node.subsystem == "block" and node.devtype:
        yield {"DEVTYPE": exactly(node.devtype)}
    if part := node.properties.get("PARTN"):
        yield {"PARTN": exactly(part)}
    number = _NUMBER.search(node.device_node or "")
    if number is not None:
        before, after = exactly(number.string[: number.start()]), exactly(number.string[number.end() :])
        yield {"DEVNAME": f"{before}[0-9]*{after}"}
    for attribute in ("index", "port_number", "name", "line"):
        # Elsewhere, the lines of serial ports are numbered in the order of arrival.
        if attribute != "line" or unit_of(node).sys_name == LEGACY_SERIAL:
            yield from _nearest(node, attribute)


def _nearest(node: UdevDevice, attribute: str) -> Iterator[Conditions]:
    """The attribute of the node, or of the nearest of its parents that has it."""
    for above in node.self_and_ancestors():
        if above.subsystem in _WHERE_UNITS_BEGIN:
            return
        if value := above.attributes.get(attribute):
            own: Conditions = {f"ATTR{{{attribute}}}": exactly(value)}
            yield own if above is node else {"parent": {"SUBSYSTEM": exactly(above.subsystem), **own}}
            return


def joined(one: Conditions, other: Conditions) -> Conditions:
    """The conditions of both. When both speak of a parent, the other's is below the one's."""
    result = dict(one)
    for key, wanted in other.items():
        mine = result.get(key)
        if isinstance(mine, Mapping) and isinstance(wanted, Mapping):
            result[key] = joined(wanted, {key: mine}) if key == "parent" else {**mine, **wanted}
        else:
            result[key] = wanted
    return result


def joined_all(one: Conditions, others: Iterable[Conditions]) -> Conditions:
    """The conditions of all."""
    return reduce(joined, others, one)
