"""What is remembered of devices, so that no id is dropped while a pod may hold it.

The rules of this file:

* A device that is no longer there stays in the inventory as Unhealthy. It is forgotten only when
  somebody who knows says that no pod holds it and its grace time has passed: a dropped id crashes
  kubelet 1.36 and makes the status of its pod say Healthy.
* Everything here outlives a reboot (`genericdp.state` keeps it): the answers that the kubelet saved
  name links of devices that may not be back yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from genericdp.core.identity import Ties
from genericdp.core.inventory import Device, Health, Inventory, Offer, with_common_topology

#: How many absent devices of one resource are remembered; the longest absent ones go first. Only a
#: device that invents serial numbers comes near it, and a list of them stays far below 4 MiB.
ABSENT_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Remembered:
    """A device that was offered: what its tombstone needs.

    device      as it was last seen; its links are all those that it ever had
    absent_since  seconds since the epoch, None while it is there
    """

    resource: str
    device: Device
    absent_since: float | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """Every device that may be held (by id) and the ties of twins (see `identity.assign`)."""

    devices: Mapping[str, Remembered] = field(default_factory=dict)
    ties: Ties = field(default_factory=dict)

    @property
    def known_ports(self) -> Ties:
        """Where each unit was last seen; where it is now, if it is there."""
        present_last = sorted(
            self.devices.values(), key=lambda known: (known.absent_since is None, known.device.id)
        )
        return {known.device.unit: known.device.port for known in present_last}


def remember(
    inventory: Inventory, memory: Memory, now: float, held: frozenset[str] | None
) -> tuple[Inventory, Memory]:
    """The inventory with its absent devices as Unhealthy, and the memory after it.

    now    seconds since the epoch
    held   the ids that pods hold, without the numbers of replicas; None when nobody can say, and
           then nothing is forgotten
    """
    present = {device.id for offer in inventory.offers.values() for device in offer.devices}
    offers: dict[str, Offer] = {}
    devices: dict[str, Remembered] = {}
    for name, offer in inventory.offers.items():
        mine = {id_: known for id_, known in memory.devices.items() if known.resource == name}
        for device in offer.devices:
            earlier = mine.get(device.id)
            devices[device.id] = Remembered(name, _with_links_of(device, earlier))
        gone = {
            id_: replace(known, absent_since=now if known.absent_since is None else known.absent_since)
            for id_, known in mine.items()
            if id_ not in present
        }
        kept = {
            id_: known
            for id_, known in gone.items()
            if not _may_be_forgotten(id_, known, offer.resource.unplug_grace_s, now, held)
        }
        kept = _bounded(kept, held)
        devices.update(kept)
        listed = [_with_links_of(device, mine.get(device.id)) for device in offer.devices]
        tombstones = [_tombstone(known) for known in kept.values()]
        offers[name] = Offer(offer.resource, with_common_topology([*listed, *tombstones]))
    return replace(inventory, offers=offers), Memory(devices, inventory.ties)


def next_forgetting(memory: Memory, inventory: Inventory) -> float | None:
    """When the grace of the first absent device ends (seconds since the epoch), None without any."""
    ends = [
        known.absent_since + offer.resource.unplug_grace_s
        for known in memory.devices.values()
        if known.absent_since is not None and (offer := inventory.offers.get(known.resource)) is not None
    ]
    return min(ends, default=None)


def _may_be_forgotten(
    id_: str, known: Remembered, grace_s: float, now: float, held: frozenset[str] | None
) -> bool:
    if held is None or id_ in held or known.absent_since is None:
        return False
    return now - known.absent_since >= grace_s


def _bounded(gone: Mapping[str, Remembered], held: frozenset[str] | None) -> dict[str, Remembered]:
    if len(gone) <= ABSENT_LIMIT:
        return dict(gone)
    certain = held or frozenset()
    oldest_first = sorted(gone, key=lambda id_: (id_ not in certain, -(gone[id_].absent_since or 0.0), id_))
    return {id_: gone[id_] for id_ in oldest_first[:ABSENT_LIMIT]}


def _with_links_of(device: Device, earlier: Remembered | None) -> Device:
    """The device with the links that it ever had: an optional node may be away for a while."""
    if earlier is None:
        return device
    more = [link for link in earlier.device.links if link not in device.links]
    return replace(device, links=(*device.links, *more)) if more else device


def _tombstone(known: Remembered) -> Device:
    return replace(known.device, health=Health.UNHEALTHY, reason="it is unplugged")
