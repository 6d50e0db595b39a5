"""Which serial numbers may tell a unit from others: that of a USB device, those that udev and drivers have.

The rules of this file:

* Fillers do not count as serial numbers, and neither does text that a USB string cannot hold.
"""

from collections.abc import Iterator

from genericdp.core.buses.kernel_name import AUTO_NUMBER
from genericdp.core.device import UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.rules.match import usb_value
from genericdp.core.suggest.conditions import Conditions
from genericdp.core.suggest.quoting import exactly
from genericdp.core.suggest.units.firmware import loaded_of

#: The properties with which udev tells a unit from others, the best one first.
SERIAL_PROPERTIES = ("ID_SERIAL", "ID_WWN", "ID_PART_ENTRY_UUID", "DM_UUID", "MD_UUID", "CACHED_UUID")

#: sysfs attributes with the number by which a maker tells its units apart: nodes on FireWire, NVMe disks, PCI
#: functions, GPUs, tape drives.
SERIAL_ATTRIBUTES = ("guid", "serial", "serial_number", "unique_id", "wwid")

#: A USB string has at most 126 characters: anything longer is not a serial number.
_LONGEST_SERIAL = 126


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
    if serial is None:
        return ""
    why = why_filler(serial, *names, ids, unit.attributes.get("product", ""))
    return why or ("it changes with the firmware" if loaded_of(unit) else "")


def serials_of_udev(node: UdevDevice) -> Iterator[Conditions]:
    """Conditions on the serial numbers that udev has of a device node, the best one first."""
    for name in SERIAL_PROPERTIES:
        value = node.properties.get(name)
        if value and not why_filler(value, node.properties.get("ID_MODEL", "")):
            yield {name: exactly(value)}


def serials_of_drivers(node: UdevDevice, unit: UdevDevice) -> Iterator[Conditions]:
    """Conditions on the serial numbers that drivers have of a node, of its unit, or of what is in between."""
    for above in node.self_and_ancestors():
        for name in SERIAL_ATTRIBUTES:
            value = above.attributes.get(name, "")
            number = value.rstrip()
            if number and not why_filler(number, above.attributes.get("model", "")):
                # Some drivers fill it with spaces.
                own = {f"ATTR{{{name}}}": exactly(number) + "*" * (number != value)}
                at_parent: Conditions = {"parent": {"SUBSYSTEM": above.subsystem, **own}}
                yield own if above is node else at_parent
        if above is unit:
            return
