"""Links that an earlier release named otherwise, for the pods that still have them.

The kubelet saves the answers that it got, so a container that restarts after an upgrade asks for its device
by the old name.

The rules of this file:

* A renamed link leads to the device node of the new link as long as a pod holds the old id, and only
  while no other pod can get that node exclusively.
* What is the same is decided once, at the first look after the upgrade, and saved. In doubt, the old link
  leads nowhere.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from genericdp.core.hostile import for_path
from genericdp.core.inventory.identity import hash_of
from genericdp.core.inventory.offer import Device, Offer, ids_of
from genericdp.core.inventory.place import UNKNOWN, Spot
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered

_MARK_LENGTH = 6


def after_upgrade(memory: Memory, offers: Mapping[str, Offer], plugged: Plugged) -> Memory:
    """The memory of an earlier release, at the first look at what is offered now.

    That release did not number siblings, and it saved the links of a device sorted by name.
    """
    times = Counter(spot for known in memory.devices.values() for spot in known.device.spots)
    held = memory.held_devices
    same = _Same(offers, memory.devices)
    devices: dict[str, Remembered] = {}
    renamed: dict[str, str] = {}
    for id_, known in memory.devices.items():
        links = _in_order_of_spots(known.device)
        more = (link for link in known.device.links if link not in links)
        was = known.device.spots
        now = same.as_remembered(known)
        if now is not None and all(times[spot] == plugged.count_at(spot) for spot in was):
            spots = _numbered(was, now.spots)
            if id_ in held:
                names = dict(zip(now.spots, now.links, strict=False))
                pairs = zip(links, (names[spot] for spot in spots), strict=False)
                renamed |= {old: new for old, new in pairs if old != new}
        else:
            is_alone = {spot: times[spot] == 1 >= plugged.count_at(spot) for spot in was}
            spots = tuple(spot if is_alone[spot] else spot._replace(number=UNKNOWN) for spot in was)
        devices[id_] = replace(known, device=replace(known.device, links=(*links, *more), spots=spots))
    return replace(memory, devices=devices, renamed=renamed, is_of_earlier_release=False)


class _Same:
    """Finds the device that is now offered for a remembered one."""

    def __init__(self, offers: Mapping[str, Offer], devices: Mapping[str, Remembered]) -> None:
        self._listed: dict[tuple[str, str], Device] = {}
        self._by_spots: dict[tuple[str, str, tuple[Spot, ...]], list[Device]] = {}
        for name, offer in offers.items():
            for device in offer.devices:
                self._listed[name, device.id] = device
                key = (name, _without_hash(device.id), _of_all(device))
                self._by_spots.setdefault(key, []).append(device)
        found = (self._find(known) for known in devices.values())
        self._times = Counter(device.id for device in found if device is not None)

    def as_remembered(self, known: Remembered) -> Device | None:
        """The one with the same id, or else with the same one but for its hash, and with the same nodes.

        None if it would be that of several ids.
        """
        device = self._find(known)
        return None if device is None or self._times[device.id] > 1 else device

    def _find(self, known: Remembered) -> Device | None:
        device = self._listed.get((known.resource, known.device.id))
        if device is not None:
            return device if _of_all(device) == _of_all(known.device) else None
        prefix = _without_hash(known.device.id)
        key = (known.resource, prefix, _of_all(known.device))
        found = self._by_spots.get(key, []) if prefix else []
        return found[0] if len(found) == 1 else None


def _of_all(device: Device) -> tuple[Spot, ...]:
    return tuple(sorted(spot.of_all for spot in device.spots))


def _numbered(was: Iterable[Spot], now: Iterable[Spot]) -> tuple[Spot, ...]:
    """These spots with the numbers that they have now: siblings were in the order of their paths."""
    by_spot: dict[Spot, list[Spot]] = {}
    for spot in sorted(now, reverse=True):
        by_spot.setdefault(spot.of_all, []).append(spot)
    return tuple(by_spot[spot].pop() for spot in was)


def _without_hash(id_: str) -> str:
    """What an id of the second form tells people; "" for an id of the first form."""
    prefix = id_.rpartition("_")[0]
    return prefix if "_" in prefix else ""


def still_renamed(renamed: Mapping[str, str], held: Collection[str]) -> Mapping[str, str]:
    """Those of devices that pods still hold."""
    return {old: new for old, new in renamed.items() if _owner(old) in held} if renamed else renamed


def leading(
    renamed: Mapping[str, str], offers: Mapping[str, Offer], devices: Mapping[str, Remembered]
) -> dict[str, str]:
    """Renamed link -> the device node to which it leads now; only those that lead to one."""
    if not renamed:
        return {}
    wanted = {*renamed.values()}
    nodes = {
        node.link: (offer, device, node, spot)
        for offer in offers.values()
        for device in offer.devices
        for node, spot in zip(device.nodes, device.spots, strict=False)
        if node.link in wanted and node.sys_path
    }
    return {
        old: node.path
        for old, new in renamed.items()
        if new in nodes
        for offer, device, node, spot in (nodes[new],)
        if _may_lead(old, offer, device, spot, devices)
    }


def _may_lead(old: str, offer: Offer, device: Device, spot: Spot, devices: Mapping[str, Remembered]) -> bool:
    owner = _owner(old)
    if device.id == owner:
        return device.healthy
    is_shared = not offer.resource.is_exclusive
    if owner not in devices or not (
        is_shared or all(id_ in offer.refused for id_ in ids_of(device.id, offer.resource.replicas))
    ):
        return False
    known = devices[owner].device
    return dict(zip(known.links, known.spots, strict=False)).get(old) == spot


def _in_order_of_spots(device: Device) -> tuple[str, ...]:
    """The links of the nodes at the spots of a device, as the earlier release named them; () in doubt."""
    if len(device.spots) == 1 and device.links == (device.id,):
        return device.links
    left = [*device.links]
    found: list[str] = []
    for spot in device.spots:
        link = next((name for name in _names(device.id, spot, len(device.spots)) if name in left), None)
        if link is None:
            return ()
        left.remove(link)
        found.append(link)
    return tuple(found)


def _names(id_: str, spot: Spot, count: int) -> Iterator[str]:
    """How the link of a node at a spot may have been named, the first of those that looked alike first."""
    name = f"{id_}@{for_path(spot.within)}"
    bases = (name, *(f"{name}@{hash_of(mark)[:_MARK_LENGTH]}" for mark in (spot.serial, spot.port)))
    for base in bases:
        yield base
        for rank in range(2, count + 1):
            yield f"{base}@{rank}"


def _owner(link: str) -> str:
    return link.partition("@")[0]
