"""Which device nodes a list shows: those that words describe; without words, those that a pod may ask for.

The rules of this file:

* A node is left out for what it is, whatever the rules say. Words show it all the same.
* A serial port has hardware unless the kernel says that it found none.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from genericdp.core.buses.port import is_hub as kernel_says_hub
from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import driver_and_address, identification
from genericdp.core.explain.survey import Survey
from genericdp.core.inventory.offer import Offer
from genericdp.core.inventory.place import LEGACY_SERIAL, unit_of

#: sysfs attributes that tell serial ports without hardware, beyond CORE_ATTRIBUTES. Only verbs read them.
TYPE_ATTRIBUTES = frozenset({"type"})

#: The kind of a serial port where the kernel found no chip.
WITHOUT_HARDWARE = "serial ports without hardware"

#: The number of the Linux Foundation, the maker of all root hubs.
_ROOT_HUB = "1d6b"

#: What no pod asks for, by the names of virtual devices. The runtime gives the first ones to every container
#: (OCI runtime specification, default devices).
_NO_HARDWARE = tuple(
    (kind, re.compile(names))
    for kind, names in (
        ("nodes that every container has", r"null|zero|full|random|urandom|tty|console|ptmx"),
        ("virtual consoles", r"tty\d+|vcs[au]?\d*|ttyprintk"),
        ("pseudo-terminals", r"[pt]ty[a-z][0-9a-f]"),
        ("loop and RAM disks", r"loop\d+|ram\d+|zram\d+|nbd\d+"),
        ("processor registers", r"cpu/\d+/(?:msr|cpuid)"),
        ("USB bus monitors", r"usbmon\d+"),
    )
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What an operator wants to see: device nodes of one of the subsystems, which every word describes.

    A word is a part of a path or link below /dev, of the subsystem, of a name, of the maker or of a driver.
    Case does not matter.
    """

    words: tuple[str, ...] = ()
    subsystems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words or self.subsystems)

    def __str__(self) -> str:
        wanted = [f"'{word}'" for word in self.words]
        return " and ".join(
            [*wanted, *([f"subsystem {' or '.join(self.subsystems)}"] * bool(self.subsystems))]
        )

    def holds(self, node: UdevDevice) -> bool:
        """Whether a device node is wanted."""
        if self.subsystems and node.subsystem not in self.subsystems:
            return False
        texts = [_plain(text) for text in _descriptions(node)] if self.words else []
        return all(any(_plain(word) in text for text in texts) for word in self.words)

    def names(self, name: str) -> bool:
        """Whether every word is a part of this name of a resource or device."""
        return not self.subsystems and all(_plain(word) in _plain(name) for word in self.words)


def narrowed(survey: Survey, selection: Selection) -> Survey:
    """The same survey with nothing but what is wanted of its device nodes, its resources and its devices."""
    if not selection:
        return survey
    wanted = {
        path: each for path, each in survey.devices.items() if each.device_node and selection.holds(each)
    }
    paths = {each.device_node for each in wanted.values()}
    inventory = survey.inventory
    offers = {name: _narrowed(offer, selection, paths) for name, offer in inventory.offers.items()}
    kept = {
        name: offer for name, offer in offers.items() if offer.devices or selection.names(offer.resource.name)
    }
    return replace(
        survey,
        devices=wanted,
        inventory=replace(
            inventory,
            offers=kept,
            refusals=tuple(each for each in inventory.refusals if each.node in paths),
            overlaps=tuple(each for each in inventory.overlaps if each.node in paths),
            orphans=tuple(
                each
                for each in inventory.orphans
                if selection.names(each.id) or selection.names(each.resource)
            ),
            conflicts=tuple(each for each in inventory.conflicts if each.node in paths),
            unsure=tuple(
                each
                for each in inventory.unsure
                if any(each == device.id for offer in kept.values() for device in offer.devices)
            ),
        ),
    )


def _narrowed(offer: Offer, selection: Selection, paths: Collection[str | None]) -> Offer:
    if selection.names(offer.resource.name):
        return offer
    devices = (
        device
        for device in offer.devices
        if selection.names(device.id) or any(node.path in paths for node in device.nodes_inside)
    )
    return replace(offer, devices=tuple(devices))


def why_left_out(node: UdevDevice) -> str:
    """The kind of a device node that no pod asks for, in the plural: `virtual consoles`; "" of any other."""
    if node.is_virtual:
        return next((kind for kind, names in _NO_HARDWARE if names.fullmatch(node.devname)), "")
    if node.subsystem == "tty" and _has_no_hardware(node):
        return WITHOUT_HARDWARE
    return "USB hubs" if node.usb_device is node and is_hub(node) else ""


def is_hub(usb: UdevDevice) -> bool:
    """Whether a USB device is a hub."""
    return kernel_says_hub(usb) or usb.attributes.get("idVendor") == _ROOT_HUB


def _has_no_hardware(port: UdevDevice) -> bool:
    # The driver makes some ports before it looks for hardware. Those that firmware describes are elsewhere.
    kind = port.attributes.get("type", "").strip()
    return kind == "0" or (not kind and any(each.sys_name == LEGACY_SERIAL for each in port.ancestors()))


def _descriptions(node: UdevDevice) -> Iterator[str]:
    yield node.device_node or ""
    yield from node.devlinks
    yield node.subsystem
    yield identification(node)
    yield driver_and_address(node)
    unit = unit_of(node)
    for each in node.self_and_ancestors():
        for key in ("DRIVER", "ID_VENDOR", "ID_MODEL", "ID_VENDOR_FROM_DATABASE", "ID_MODEL_FROM_DATABASE"):
            # A node of a USB device may have the names of the host controller.
            if each is unit or not key.endswith("DATABASE"):
                yield each.properties.get(key, "")
        if each is unit:
            return


def _plain(text: str) -> str:
    return text.lower().replace("_", " ")
