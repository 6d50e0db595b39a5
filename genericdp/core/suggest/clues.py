"""Conditions that distinguish a device from all others, from the best clue to the last resort.

The rules of this file:

* The longer a clue lasts, the better it is: what a unit is comes before where it is plugged in, and that
  before its place in the machine. The kernel's name counts only where the kernel always gives the same one.
* A rule file can express every condition. The caller finds out which devices it matches.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from genericdp.core.buses.video import has_index
from genericdp.core.device import UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.inventory.place import LEGACY_SERIAL, locate, unit_of
from genericdp.core.rules.match import usb_value
from genericdp.core.suggest.cautions import CONSOLE_ATTRIBUTES
from genericdp.core.suggest.conditions import Conditions, joined, one_or_more, one_or_more_globs
from genericdp.core.suggest.fixed_names import (
    has_a_fixed_name,
    is_made,
    lasting_path,
    names_without_number,
    without_numbers,
)
from genericdp.core.suggest.quoting import exactly, toml
from genericdp.core.suggest.serials import (
    SERIAL_ATTRIBUTES,
    SERIAL_PROPERTIES,
    serial_of,
    serials_of_drivers,
    serials_of_udev,
)
from genericdp.core.suggest.units.disks import is_card, scsi_device_of, which_of_disk, which_of_drive
from genericdp.core.suggest.units.firmware import loaded_of
from genericdp.core.suggest.units.models import model_of, named_model_of
from genericdp.core.suggest.units.siblings import Siblings
from genericdp.core.suggest.units.targets import TARGET_ATTRIBUTES, target_of


class By(StrEnum):
    """What a rule knows its device by."""

    SERIAL = "serial"
    MODEL = "model"
    PORT = "port"
    PLACE = "place"
    INTERFACE = "interface"
    NAME = "name"
    TARGET = "target"
    LABEL = "label"
    PATH = "path"
    KIND = "kind"
    ARRIVAL = "arrival"


@dataclass(frozen=True, slots=True)
class Clue:
    """Conditions that a unit satisfies, and what of it they look at."""

    by: By
    conditions: Conditions


#: Their driver gives device nodes of these subsystems a name that says what they are.
_LABELLED = frozenset({"video4linux", "i2c-dev", "rc"})

#: sysfs attributes with what a driver or an administrator calls a device: RDMA and clocks have their own.
_LABELS = ("name", "identity", "ibdev", "clock_name")

#: sysfs attributes that tell apart the nodes of a unit: where a laptop has its sensors, or their number on
#: the controller; the number of a namespace on its drive. The label of a GPIO chip repeats its path.
_DETAILS = {"iio": ("label", "location", "id"), "block": ("nsid",)}

#: sysfs attributes that clues look at, beyond CORE_ATTRIBUTES. Only verbs read them.
CLUE_ATTRIBUTES = TARGET_ATTRIBUTES.union(SERIAL_ATTRIBUTES, CONSOLE_ATTRIBUTES, _LABELS, *_DETAILS.values())

#: The address of a chip with the number of its I2C bus, which follows the order of arrival: `imx219 9-0010`.
ON_I2C = re.compile(r" \d+-([0-9a-f]{4})$")

#: Buses: attributes of devices on these describe a unit, not one of its nodes.
_WHERE_UNITS_BEGIN = frozenset({"usb", "pci", "platform"})


def kind_of(group: Siblings) -> Conditions:
    """The kind of the nodes: their subsystems, and which part of its disk a block device is."""
    kind: Conditions = {"SUBSYSTEM": one_or_more({node.subsystem for node in group.nodes})}
    first = group.nodes[0]
    return {**kind, **which_of_disk(first)} if first.subsystem == "block" else kind


def names_of(nodes: Iterable[UdevDevice]) -> Conditions:
    """The names that the nodes have now."""
    return {"DEVNAME": one_or_more(node.property("DEVNAME") or "" for node in nodes)}


def clues(node: UdevDevice) -> Iterator[Clue]:
    """The clues to the unit of a device node, the best one first."""
    unit = unit_of(node)
    if has_a_fixed_name(node):
        yield Clue(By.NAME, names_of([node]))
    elif unit.subsystem == "usb" and not target_of(node):
        if is_card(node):
            yield from (Clue(By.SERIAL, number) for number in serials_of_udev(node))
        yield from _usb_clues(node, unit)
    elif node.is_bare:
        yield Clue(By.PATH, names_of([node]))
    else:
        yield from _other_clues(node, unit)


def _usb_clues(node: UdevDevice, unit: UdevDevice) -> Iterator[Clue]:
    model = model_of(unit)
    by, known = By.MODEL, model
    if (serial := serial_of(unit)) is not None:
        by, known = By.SERIAL, joined(model, {"usb": {"serial": exactly(serial)}})
    yield Clue(by, known)
    if named := named_model_of(node):
        # Another board of the maker may say the same of itself but for its name.
        yield Clue(by, joined(known, named))
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
    yield from (Clue(By.SERIAL, number) for number in serials_of_udev(node))
    if target := target_of(node):
        yield Clue(By.TARGET, target)
    yield from (Clue(By.SERIAL, number) for number in serials_of_drivers(node, unit))
    if scsi := scsi_device_of(node):
        # What hangs off a controller says nothing about the controller, nor the other way round.
        if model := scsi.attributes.get("model", "").strip():
            yield Clue(By.MODEL, {"parent": {"SUBSYSTEM": "scsi", "ATTR{model}": f"{exactly(model)}*"}})
        return
    yield from (Clue(by, place) for by, place in _function_of(unit))
    if unit.is_virtual or node.subsystem in _LABELLED:
        for attribute in _LABELS:
            yield from (Clue(By.LABEL, label) for label in _nearest(node, attribute))
        if product := node.properties.get("ID_V4L_PRODUCT"):
            yield Clue(By.LABEL, {"ID_V4L_PRODUCT": exactly(product)})
    if not unit.is_virtual:
        yield Clue(By.KIND if is_made(unit) else By.PLACE, _path_of(node, unit))
    yield from _in_device_tree(node, unit)


def identity_of(group: Siblings, conditions: Conditions, by: By) -> tuple[str, str]:
    """What the identity has to be, as TOML, and why; ("", "") where the rule needs none."""
    unit = unit_of(group.nodes[0])
    if loaded_of(unit):
        return toml("port"), "it has new USB ids when its firmware is loaded"
    if by is By.PORT and serial_of(unit) is not None:
        return toml("port"), "any unit plugged in there counts as this device"
    if by is not By.SERIAL or not (name := _property_of(group, conditions)):
        return "", ""
    is_card_of_usb = group.nodes[0].usb_device is not None
    why = "the id is that of the card, not of its reader" if is_card_of_usb else ""
    return f"[{toml(name)}]", why or "the id stays when the number changes"


def _property_of(group: Siblings, conditions: Conditions) -> str:
    """The property that the identity has to name, because a number of arrival or the reader of a card tells
    nothing; "" if none.
    """
    place = locate(group.nodes[0])
    is_name = place.port.readable == place.unit.sys_name
    is_counted = place.port.is_turn or (is_name and re.search(r"\d$", place.unit.sys_name))
    in_reader = place.usb is not None and is_card(group.nodes[0])
    is_told = not in_reader and (place.serial is not None or not is_counted)
    if (is_told and not place.untold) or group.group_by != "node":
        return ""
    return next((name for name in conditions if name in SERIAL_PROPERTIES), "")


def _function_of(unit: UdevDevice) -> Iterator[tuple[By, Conditions]]:
    """What a PCI function is, and where."""
    function: dict[str, str] = {}
    for name, by in (("PCI_ID", By.MODEL), ("PCI_SLOT_NAME", By.PLACE)):
        if value := unit.properties.get(name):
            function[name] = exactly(value)
            yield by, {"parent": dict(function)}


def _in_device_tree(node: UdevDevice, unit: UdevDevice) -> Iterator[Clue]:
    """Where the device tree of a board has it: a path without numbers of buses, behind multiplexers, too."""
    for above in node.self_and_ancestors():
        if above is unit:
            return
        if path := above.properties.get("OF_FULLNAME"):
            here: Conditions = {"OF_FULLNAME": exactly(path)}
            yield Clue(By.PLACE, here if above is node else {"parent": here})
            return


def _path_of(node: UdevDevice, unit: UdevDevice) -> Conditions:
    return {"DEVPATH": f"{lasting_path(unit.sys_path.removeprefix('/sys'))}{'' if unit is node else '/*'}"}


def by_arrival(group: Siblings) -> Clue:
    """The names that the nodes have now, on their unit: no other unit is taken for it."""
    node = group.nodes[0]
    unit = unit_of(node)
    *_, (_, place) = (By.ARRIVAL, target_of(node)), *_function_of(unit)
    if not place and not unit.is_virtual and not node.is_bare:
        place = model_of(unit) if unit.subsystem == "usb" else _path_of(node, unit)
    return Clue(By.ARRIVAL, joined(names_of(group.nodes), place))


def lasting_place(group: Siblings) -> Clue:
    """Where a device sits, by the parts of its path in sysfs that do not follow the order of arrival."""
    first = group.nodes[0]
    unit = unit_of(first)
    paths = {
        without_numbers(
            node.sys_path.removeprefix("/sys"),
            subsystem=node.subsystem if node.is_virtual or node is not unit_of(node) else None,
        )
        for node in group.nodes
    }
    path: Conditions = {"DEVPATH": one_or_more_globs(paths)}
    if model := unit.properties.get("PCI_ID"):
        return Clue(By.PLACE, joined({"parent": {"PCI_ID": exactly(model)}}, path))
    return Clue(By.KIND if first.is_virtual or is_made(unit) else By.PLACE, path)


def details(node: UdevDevice) -> Iterator[Conditions]:
    """What distinguishes a device node from the others of its unit, the best detail first."""
    if interface := usb_value(node, "interface"):
        yield {"usb": {"interface": exactly(interface)}}
    if drive := which_of_drive(node):
        yield drive
    yield from ({"DEVNAME": one_or_more_globs(names)} for names in names_without_number(node))
    unit = unit_of(node)
    # Elsewhere, the nodes of cameras and the lines of serial ports are numbered in the order of arrival.
    fixed = {"index": has_index(unit), "line": unit.sys_name == LEGACY_SERIAL}
    for attribute in ("index", "port_number", "name", "line", *_DETAILS.get(node.subsystem, ())):
        if fixed.get(attribute, True):
            yield from _nearest(node, attribute)


def details_of_all(nodes: Sequence[UdevDevice]) -> Iterator[Conditions]:
    """The details that device nodes have in common, and that they share with fewer others than their kind;
    last, all their names.
    """
    others = [[*details(node)] for node in nodes[1:]]
    yield from (detail for detail in details(nodes[0]) if all(detail in each for each in others))
    names = {name for node in nodes for name in next(names_without_number(node), ("",))} if others else set()
    if names and "" not in names:
        yield {"DEVNAME": one_or_more_globs(names)}


def _nearest(node: UdevDevice, attribute: str) -> Iterator[Conditions]:
    """The attribute of the node, or of the nearest of its parents that has it."""
    for above in node.self_and_ancestors():
        if above.subsystem in _WHERE_UNITS_BEGIN:
            return
        if value := above.attributes.get(attribute):
            own: Conditions = {f"ATTR{{{attribute}}}": ON_I2C.sub(r" *-\1", exactly(value))}
            yield own if above is node else {"parent": {"SUBSYSTEM": exactly(above.subsystem), **own}}
            return
