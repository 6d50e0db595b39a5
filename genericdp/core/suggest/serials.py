"""Which serial number of a USB device may tell it from other units.

The rules of this file:

* A filler is no serial number, nor is anything that a USB string cannot hold.
"""

from genericdp.core.device import UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.inventory.place import AUTO_NUMBER
from genericdp.core.rules.match import usb_value

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
    return "" if serial is None else why_filler(serial, *names, ids, unit.attributes.get("product", ""))
