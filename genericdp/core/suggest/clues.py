"""Conditions that distinguish a device from all others, from the best clue to the last resort.

The rules of this file:

* The longer a clue lasts, the better it is: what a unit is comes before where it is plugged in, and that
  before its place in the machine. The kernel's name counts only where the kernel always gives the same one.
* A rule file can express every condition. The caller finds out which devices it matches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

from genericdp.core.device import UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.inventory.place import AUTO_NUMBER, LEGACY_SERIAL, unit_of
from genericdp.core.rules.match import usb_value
from genericdp.core.suggest.fixed_names import (
    has_a_fixed_name,
    lasting_path,
    names_without_number,
    without_numbers,
)
from genericdp.core.suggest.quoting import exactly
from genericdp.core.suggest.units.disks import scsi_device_of, which_of_disk, which_of_drive
from genericdp.core.suggest.units.siblings import Siblings

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
    LABEL = "label"
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

#: Their driver gives device nodes of these subsystems a name that says what they are.
_LABELLED = frozenset({"video4linux", "i2c-dev", "rc"})

#: Buses: attributes of devices on these describe a unit, not one of its nodes.
_WHERE_UNITS_BEGIN = frozenset({"usb", "pci", "platform"})


def kind_of(group: Siblings) -> Conditions:
    """The kind of the nodes: their subsystems, and which part of its disk a block device is."""
    kind: Conditions = {"SUBSYSTEM": _one_or_more({node.subsystem for node in group.nodes})}
    first = group.nodes[0]
    return {**kind, **which_of_disk(first)} if first.subsystem == "block" else kind


def names_of(nodes: Iterable[UdevDevice]) -> Conditions:
    """The names that the nodes have now."""
    return {"DEVNAME": _one_or_more(node.property("DEVNAME") or "" for node in nodes)}


def _one_or_more(values: Iterable[str]) -> str | tuple[str, ...]:
    return _one_or_more_globs(map(exactly, values))


def _one_or_more_globs(globs: Iterable[str]) -> str | tuple[str, ...]:
    every = tuple(sorted(globs))
    return every[0] if len(every) == 1 else every


def serial_of(unit: UdevDevice) -> str | None:
    """The serial number of a USB device as a rule can write it, or None."""
    serial = raw_serial_of(unit)
    return None if serial is None or why_no_serial(unit) else serial


def raw_serial_of(unit: UdevDevice) -> str | None:
    """What a USB device says is its serial number, even if it tells nothing."""
    serial = unit.attributes.get("serial", "")
    return serial if serial.strip() and len(serial) <= _LONGEST_SERIAL else None


def why_no_serial(unit: UdevDevice) -> str:
    """Why the serial number of a USB device tells nothing; "" when it may tell one unit from another."""
    names = [unit.properties.get(name, "") for name in ("ID_MODEL", "ID_VENDOR")]
    ids, serial = "".join(usb_value(unit, key) or "" for key in ("vendor", "product")), raw_serial_of(unit)
    if serial is not None and AUTO_NUMBER.search(serial):
        return "it is the name of the controller, numbered in the order of arrival"
    return "" if serial is None else why_filler(serial, *names, ids, unit.attributes.get("product", ""))


def clues(node: UdevDevice) -> Iterator[Clue]:
    """The clues to the unit of a device node, the best one first."""
    unit = unit_of(node)
    if has_a_fixed_name(node):
        yield Clue(By.NAME, names_of([node]))
    elif unit.subsystem == "usb":
        yield from _usb_clues(node, unit)
    elif node.is_bare:
        yield Clue(By.PATH, names_of([node]))
    else:
        yield from _other_clues(node, unit)


def model_of(unit: UdevDevice) -> Conditions:
    """What every unit of the model of a USB device satisfies."""
    values = {key: usb_value(unit, key) for key in ("vendor", "product")}
    return {"usb": {key: exactly(value) for key, value in values.items() if value}}


def model_of_any(group: Siblings) -> Conditions:
    """What every unit of the model of a device satisfies; {} when it has none that a rule can name."""
    unit = unit_of(group.nodes[0])
    match unit.subsystem:
        case "usb":
            return model_of(unit)
        case "pci" if "PCI_ID" in unit.properties:
            return {"parent": {"PCI_ID": exactly(unit.properties["PCI_ID"])}}
        case "pnp":
            # What leads where from a mainboard, its driver does not know.
            return {}
        case _:
            # The parts of a chip have no numbers of vendor and product; the driver knows no other model.
            driver = driver_of(group.nodes[0])
            return {"parent": {"DRIVER": exactly(driver)}} if driver else {}


def driver_of(node: UdevDevice) -> str:
    """The driver of a device node, or of the nearest of its parents that has one; "" without."""
    drivers = (
        # Every serial port has the two of the kernel's own bus, `ctrl` and `port`.
        each.driver
        for each in node.self_and_ancestors()
        if each.subsystem != "serial-base"
    )
    return next(filter(None, drivers), "")


def _usb_clues(node: UdevDevice, unit: UdevDevice) -> Iterator[Clue]:
    model = model_of(unit)
    serial = serial_of(unit)
    by, known = By.MODEL, model
    if serial is not None:
        by, known = By.SERIAL, joined(model, {"usb": {"serial": exactly(serial)}})
    yield Clue(by, known)
    if product := unit.properties.get("ID_MODEL"):
        # Another board of the maker may say the same of itself but for its name.
        named: Conditions = {"ID_MODEL": exactly(product)}
        yield Clue(
            by, joined(known, named if node is unit else {"parent": {"DEVTYPE": "usb_device", **named}})
        )
    controller = {"DEVPATH": f"{lasting_path(unit.sys_path.partition('/usb')[0].removeprefix('/sys'))}/*"}
    if port := usb_value(unit, "port"):
        at_port = joined(model, {"usb": {"port": exactly(port)}})
        yield Clue(By.PORT, at_port)
        yield Clue(By.PLACE, joined(at_port, controller))
    else:
        yield Clue(By.PLACE, joined(model, controller))


def _other_clues(node: UdevDevice, unit: UdevDevice) -> Iterator[Clue]:
    for above in node.ancestors():
        if above.subsystem == "hid":
            # Over Bluetooth, the first one is the address of the device.
            for name, by in (("HID_UNIQ", By.SERIAL), ("HID_NAME", By.MODEL)):
                if (value := above.properties.get(name)) and not (by is By.SERIAL and why_filler(value)):
                    yield Clue(by, {"parent": {name: exactly(value)}})
        if above.subsystem == "net":
            yield Clue(By.INTERFACE, {"parent": {"SUBSYSTEM": "net", "INTERFACE": exactly(above.sys_name)}})
    for name in ("ID_SERIAL", "ID_WWN", "ID_PART_ENTRY_UUID", "DM_UUID", "MD_UUID"):
        value = node.properties.get(name)
        if value and not why_filler(value, node.properties.get("ID_MODEL", "")):
            yield Clue(By.SERIAL, {name: exactly(value)})
    if scsi := scsi_device_of(node):
        # What hangs off a controller says nothing about the controller, nor the other way round.
        if model := scsi.attributes.get("model", "").strip():
            yield Clue(By.MODEL, {"parent": {"SUBSYSTEM": "scsi", "ATTR{model}": f"{exactly(model)}*"}})
        return
    yield from (Clue(by, place) for by, place in _function_of(unit))
    is_virtual = _is_virtual(unit)
    if is_virtual or node.subsystem in _LABELLED:
        for attribute in ("name", "identity"):
            yield from (Clue(By.LABEL, label) for label in _nearest(node, attribute))
        if product := node.properties.get("ID_V4L_PRODUCT"):
            yield Clue(By.LABEL, {"ID_V4L_PRODUCT": exactly(product)})
    if not is_virtual:
        yield Clue(By.PLACE, _path_of(node, unit))


def _function_of(unit: UdevDevice) -> Iterator[tuple[By, Conditions]]:
    """What a PCI function is, and where."""
    function: dict[str, str] = {}
    for name, by in (("PCI_ID", By.MODEL), ("PCI_SLOT_NAME", By.PLACE)):
        if value := unit.properties.get(name):
            function[name] = exactly(value)
            yield by, {"parent": dict(function)}


def _path_of(node: UdevDevice, unit: UdevDevice) -> Conditions:
    return {"DEVPATH": f"{lasting_path(unit.sys_path.removeprefix('/sys'))}{'' if unit is node else '/*'}"}


def by_arrival(group: Siblings) -> Clue:
    """The names that the nodes have now, on their unit: no other unit is taken for it."""
    node = group.nodes[0]
    unit = unit_of(node)
    *_, (_, place) = (By.ARRIVAL, {}), *_function_of(unit)
    if not place and not _is_virtual(unit) and not node.is_bare:
        place = model_of(unit) if unit.subsystem == "usb" else _path_of(node, unit)
    return Clue(By.ARRIVAL, joined(names_of(group.nodes), place))


def lasting_place(group: Siblings) -> Clue:
    """Where a device sits, by the parts of its path in sysfs that do not follow the order of arrival."""
    first = group.nodes[0]
    unit = unit_of(first)
    paths = {
        without_numbers(
            node.sys_path.removeprefix("/sys"), is_class=_is_virtual(node) or node is not unit_of(node)
        )
        for node in group.nodes
    }
    path: Conditions = {"DEVPATH": _one_or_more_globs(paths)}
    if model := unit.properties.get("PCI_ID"):
        return Clue(By.PLACE, joined({"parent": {"PCI_ID": exactly(model)}}, path))
    return Clue(By.KIND if _is_virtual(first) else By.PLACE, path)


def _is_virtual(device: UdevDevice) -> bool:
    return device.sys_path.startswith("/sys/devices/virtual/")


def details(node: UdevDevice) -> Iterator[Conditions]:
    """What distinguishes a device node from the others of its unit, the best detail first."""
    if interface := usb_value(node, "interface"):
        yield {"usb": {"interface": exactly(interface)}}
    if drive := which_of_drive(node):
        yield drive
    yield from ({"DEVNAME": name} for name in names_without_number(node))
    for attribute in ("index", "port_number", "name", "line"):
        # Elsewhere, the lines of serial ports are numbered in the order of arrival.
        if attribute != "line" or unit_of(node).sys_name == LEGACY_SERIAL:
            yield from _nearest(node, attribute)


def details_of_all(nodes: Sequence[UdevDevice]) -> Iterator[Conditions]:
    """The details that device nodes have in common, and that they share with fewer others than their kind;
    last, all their names.
    """
    others = [[*details(node)] for node in nodes[1:]]
    yield from (detail for detail in details(nodes[0]) if all(detail in each for each in others))
    names = {next(names_without_number(node), "") for node in nodes} if others else set()
    if names and "" not in names:
        yield {"DEVNAME": _one_or_more_globs(names)}


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
