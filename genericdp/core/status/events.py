"""The events of `genericdp monitor`: what was heard, what it touched, what the kubelet was told.

The rules of this file:

* An event is plain JSON values. Keys are only ever added; docs/monitor.md says what each of them means.
* Nothing of this is made while nobody listens.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Offer
from genericdp.core.status.news import news

Event = Mapping[str, object]

#: Of so many devices it is said one by one that a list has them otherwise than the one before.
NAMED_LIMIT = 20


class Heard(Protocol):
    """A uevent as it was heard, of the kernel or of udev; `node` is "" where it is not said."""

    @property
    def action(self) -> str: ...
    @property
    def sys_path(self) -> str: ...
    @property
    def subsystem(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def old_sys_path(self) -> str: ...


def of_uevent(heard: Heard, before: Inventory, after: Inventory) -> Event:
    """A uevent, and the devices that have a node at or below its place, before it or after it."""
    places = [f"{path}/" for path in (heard.sys_path, heard.old_sys_path) if path]
    touched: dict[tuple[str, str], str] = {}
    for inventory in (before, after):
        for name, offer in inventory.offers.items():
            for device in offer.devices:
                for node in device.nodes:
                    if node.sys_path and any(f"{node.sys_path}/".startswith(place) for place in places):
                        touched[name, device.id] = node.path
    return {
        "event": "uevent",
        "action": heard.action,
        "subsystem": heard.subsystem,
        "sysPath": heard.sys_path,
        "node": heard.node,
        "source": heard.source,
        "touched": [{"resource": name, "device": id_} for name, id_ in touched],
    }


def of_step(before: Inventory, after: Inventory) -> Iterator[Event]:
    """What changed in the inventory, in the words of the log."""
    for each in news(before, after):
        yield {
            "event": "change",
            "message": each.message,
            "level": "warning" if each.warning else "info",
            "resource": each.fields.get("resource"),
            "device": each.fields.get("id"),
            "fields": dict(each.fields),
        }


def of_list(before: Offer | None, after: Offer, *, sent: bool = True) -> Event:
    """A list for the kubelet, and in what it differs from the one before; `sent` or only made."""
    known = {} if before is None else {device.id: str(device.health) for device in before.devices}
    now = {device.id: str(device.health) for device in after.devices}
    changed = [(id_, health) for id_, health in now.items() if known.get(id_) != health]
    changed += [(id_, "") for id_ in known if id_ not in now]
    ids = after.ids
    return {
        "event": "list",
        "sent": sent,
        "resource": after.resource.name,
        "ids": len(ids),
        "healthy": sum(device.healthy for device in ids.values()),
        "changes": [{"device": id_, "health": health or None} for id_, health in changed[:NAMED_LIMIT]],
        "moreChanges": max(0, len(changed) - NAMED_LIMIT),
    }
