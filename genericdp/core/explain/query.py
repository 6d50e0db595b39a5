"""A device described by what is known of it: its serial number, its USB ids.

The rules of this file:

* What is not known is not guessed: a rule wants the device when at least one of its conditions is on
  what is known, and all of these hold.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from genericdp.core.buses.port import Port
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import Identity, Speller, basis_of
from genericdp.core.inventory.place import locate
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.match import usb_value
from genericdp.core.rules.pattern import hex_id
from genericdp.core.rules.resource import Resource

#: What is known -> the sysfs attribute of a USB device, and the properties that udev derives from it.
_WRITTEN_AS = {
    "vendor": ("idVendor", ("ID_VENDOR_ID", "ID_USB_VENDOR_ID")),
    "product": ("idProduct", ("ID_MODEL_ID", "ID_USB_MODEL_ID")),
    "serial": ("serial", ("ID_SERIAL_SHORT", "ID_USB_SERIAL_SHORT")),
}

_NOWHERE = Port("", "")


_USB_ID = re.compile(r"(?:0x)?([0-9A-Fa-f]{1,4})(?::(?:(?:0x)?([0-9A-Fa-f]{1,4})|\*)?)?")


def usb_id(text: str) -> tuple[str, str | None] | None:
    """Vendor and product as `lsusb` prints them (`0403:6001`, `0403`, `0403:*`), as a query takes them;
    None for anything else.
    """
    found = _USB_ID.fullmatch(text)
    if found is None:
        return None
    vendor, product = found.groups()
    return hex_id(vendor, 4), product and hex_id(product, 4)


@dataclass(frozen=True, slots=True)
class Query:
    """What is known of a device, None for what is not. Vendor and product are USB ids in hex."""

    serial: str | None = None
    vendor: str | None = None
    product: str | None = None

    def __str__(self) -> str:
        words = ["device"]
        if self.vendor is not None:
            words = [f"USB device {self.vendor}:{self.product or '*'}"]
        if self.serial is not None:
            words.append(f"with the serial number '{self.serial}'")
        return " ".join(words)

    @property
    def known(self) -> dict[str, str]:
        """What is known, by the word for it."""
        facts = {"vendor": self.vendor, "product": self.product, "serial": self.serial}
        return {word: value for word, value in facts.items() if value is not None}

    def among(self, nodes: Iterable[UdevDevice]) -> list[UdevDevice]:
        """The device nodes that all of it is true of."""
        return [node for node in nodes if all(_has(node, word, value) for word, value in self.known.items())]

    def similar(self, nodes: Iterable[UdevDevice]) -> list[tuple[UdevDevice, str]]:
        """Device nodes of nearly the same device, with what they have instead."""
        by_serial: dict[str, list[UdevDevice]] = {}
        found = []
        for node in nodes:
            if serial := locate(node).serial:
                by_serial.setdefault(serial.casefold(), []).append(node)
            if self.product is not None and _has(node, "vendor", self.vendor or ""):
                found.append((node, f"usb {self.vendor}:{usb_value(node, 'product')}"))
        if self.serial is not None:
            close = difflib.get_close_matches(self.serial.casefold(), by_serial, n=3, cutoff=0.7)
            found += [(node, f"serial {locate(node).serial}") for word in close for node in by_serial[word]]
        return found

    def is_wanted_by(self, resource: Resource) -> bool:
        """Whether a rule wants what is known of it."""
        subject, keys = self._as_device(), self._keys()
        for verdicts in resource.match.judge(subject):
            asked = [verdict for verdict in verdicts if verdict.key.removeprefix("parent.") in keys]
            if asked and all(verdict.holds for verdict in asked):
                return True
        return False

    def remembered(self, memory: Memory, domain: str) -> tuple[Remembered, ...]:
        """The absent devices with this serial number; () when that is not known."""
        if self.serial is None or self.vendor is not None:
            return ()
        bases = ("serial", *map(basis_of, _WRITTEN_AS["serial"][1]))
        identities = [Identity(basis, self.serial, self.serial, "", _NOWHERE, "") for basis in bases]
        return tuple(
            known
            for known in memory.devices.values()
            if known.absent_since is not None
            and known.device.unit in {Speller(known.resource, domain).unit(each) for each in identities}
        )

    def _as_device(self) -> UdevDevice:
        attributes = {_WRITTEN_AS[word][0]: value for word, value in self.known.items()}
        properties = {name: value for word, value in self.known.items() for name in _WRITTEN_AS[word][1]}
        usb = UdevDevice(
            "/sys/query", subsystem="usb", devtype="usb_device", attributes=attributes, properties=properties
        )
        return UdevDevice("/sys/query/node", properties=properties, parent=usb)

    def _keys(self) -> frozenset[str]:
        return frozenset(key for word in self.known for key in _keys_of(word))


def _keys_of(word: str) -> Iterator[str]:
    attribute, properties = _WRITTEN_AS[word]
    yield f"usb.{word}"
    yield f"ATTR{{{attribute}}}"
    yield from properties


def _has(node: UdevDevice, word: str, value: str) -> bool:
    if word == "serial":
        return value in (locate(node).serial, usb_value(node, word), node.property("ID_SERIAL_SHORT"))
    actual = usb_value(node, word)
    return actual is not None and hex_id(actual, 4) == value
