"""The events of `genericdp monitor`, with one constructor for each kind.

The rules of this file:

* An event consists of plain JSON values. Keys and kinds are only ever added; docs/monitor.md says what
  each of them means, and a test checks it.
* The sender adds the `time`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain

from genericdp.core.hint import Deafness, Resync, Uevent
from genericdp.core.hostile import for_quote
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Offer
from genericdp.core.status.holdings import Holder
from genericdp.core.status.news import News
from genericdp.core.status.wording import why_rescan, why_silent

Event = Mapping[str, object]

#: An event names at most this many ids or changed devices.
NAMED_LIMIT = 20


class Kind(StrEnum):
    """What happened."""

    BEGIN = "begin"
    UEVENT = "uevent"
    CHANGE = "change"
    LIST = "list"
    REGISTRATION = "registration"
    KUBELET = "kubelet"
    ALLOCATION = "allocation"
    STOP = "stop"
    RULES = "rules"
    UDEV = "udev"
    RESYNC = "resync"
    LOST = "lost"


def of_begin(version: str, state: str, source: str) -> Event:
    """The first event. `source`: "daemon", or "rules" if there is none."""
    return {"event": Kind.BEGIN, "version": version, "state": state, "from": source}


def of_uevents(uevents: Sequence[Uevent], before: Inventory, after: Inventory) -> Iterator[Event]:
    """An event for each uevent: which devices had or have a node, own or shared, at or below its place.

    They are looked up together: `udevadm trigger` causes a uevent for every device.
    """
    if not uevents:
        return
    touched: dict[str, dict[tuple[str, str], None]] = {at: {} for each in uevents for at in _places(each)}
    inventories = (after,) if after is before else (before, after)
    for sys_path, device in chain.from_iterable(map(_nodes_of, inventories)):
        for place in _with_parents(sys_path):
            if place in touched:
                touched[place][device] = None
    for uevent in uevents:
        devices = dict.fromkeys(device for place in _places(uevent) for device in touched[place])
        yield {
            "event": Kind.UEVENT,
            "action": uevent.action,
            "subsystem": uevent.subsystem,
            "sysPath": uevent.sys_path,
            "node": uevent.node,
            "source": uevent.source,
            "touched": [{"resource": name, "device": id_} for name, id_ in devices],
        }


def _nodes_of(inventory: Inventory) -> Iterator[tuple[str, tuple[str, str]]]:
    """The sys path of each node, with the resource and the id of a device that has it."""
    for name, offer in inventory.offers.items():
        for device in offer.devices:
            for node in device.nodes_inside:
                yield node.sys_path, (name, device.id)


def _places(uevent: Uevent) -> Sequence[str]:
    return [path for path in (uevent.sys_path, uevent.old_sys_path) if path]


def _with_parents(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def of_changes(changes: Iterable[News]) -> Iterator[Event]:
    """The changes of the inventory, in the words of the log."""
    for each in changes:
        yield {
            "event": Kind.CHANGE,
            "message": each.message,
            "level": "warning" if each.warning else "info",
            "resource": each.fields.get("resource"),
            "device": each.fields.get("id"),
            "fields": dict(each.fields),
        }


def of_list(before: Offer | None, after: Offer, *, sent: bool = True) -> Event:
    """A list for the kubelet, and how it differs from the one before; `sent` or only made."""
    known = {} if before is None else {device.id: str(device.health) for device in before.devices}
    now = {device.id: str(device.health) for device in after.devices}
    changed = [(id_, health) for id_, health in now.items() if known.get(id_) != health]
    changed += [(id_, "") for id_ in known if id_ not in now]
    ids = after.ids
    return {
        "event": Kind.LIST,
        "sent": sent,
        "resource": after.resource.name,
        "ids": len(ids),
        "healthy": sum(device.healthy for device in ids.values()),
        "changes": [{"device": id_, "health": health or None} for id_, health in changed[:NAMED_LIMIT]],
        "moreChanges": max(0, len(changed) - NAMED_LIMIT),
    }


def of_registration(resource: str, phase: str, *, registered: bool, error: str) -> Event:
    """Where the registration of a resource stands."""
    return {
        "event": Kind.REGISTRATION,
        "resource": resource,
        "registered": registered,
        "phase": phase,
        "error": error,
    }


def of_kubelet(*, there: bool) -> Event:
    """A new kubelet started, or the last one stopped."""
    return {"event": Kind.KUBELET, "there": there}


def of_allocation(resource: str, ids: Sequence[str], error: str) -> Event:
    """A container got these devices, or `error` says why not."""
    return {
        "event": Kind.ALLOCATION,
        "resource": resource,
        "ids": [for_quote(id_) for id_ in ids[:NAMED_LIMIT]],
        "moreIds": max(0, len(ids) - NAMED_LIMIT),
        "error": error,
    }


def of_stop(resource: str, device: str, holder: Holder, cause: str, error: str) -> Event:
    """The container runtime was asked to stop a container, or `error` says why it did not.

    cause  "unplug" or "replug"
    """
    return {
        "event": Kind.STOP,
        "resource": resource,
        "device": device,
        "namespace": holder.namespace,
        "pod": holder.pod,
        "container": holder.container,
        "cause": cause,
        "error": error,
    }


def of_rules(files: int, problems: int) -> Event:
    """The rule files were read."""
    return {"event": Kind.RULES, "files": files, "problems": problems}


def of_deafness(hint: Deafness) -> Event:
    """Events of udev stopped arriving, or arrive again."""
    reason = "" if hint.silence is None else why_silent(hint.silence)
    return {"event": Kind.UDEV, "heard": hint.silence is None, "reason": reason}


def of_resync(hint: Resync) -> Event:
    """Every device is read again."""
    return {"event": Kind.RESYNC, "reason": why_rescan(hint)}


def of_lost(count: int) -> Event:
    """So many events were dropped because they were not read fast enough."""
    return {"event": Kind.LOST, "count": count}
