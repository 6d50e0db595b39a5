"""Remembers devices, so that no id is dropped while a pod may hold it.

The rules of this file:

* A device that has left stays in the inventory as Unhealthy. It is forgotten only when PodResources says
  that no pod holds it and its grace time has passed: a dropped id crashes kubelet 1.36 and makes the
  status of its pod say Healthy.
* Its links stay even when its resource has left the rules. Without them, CRI-O would start the container
  of a pod that holds the device as if nothing were missing.
* Everything here outlives a reboot (`genericdp.files.state` saves it): the kubelet saves its answers, and
  they name links of devices that may not be back yet.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.absence import Absence
from genericdp.core.inventory.identity import Ties
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device, Health, Offer, in_order
from genericdp.core.inventory.place import Place, locate
from genericdp.core.inventory.withdrawn import Shares, next_dropping, withdraw
from genericdp.core.rules.resource import Resource, grace_s

#: How many absent devices of one resource are remembered beside those that are known to be held, and
#: how many ids their replicas may make. Those that have been absent longest go first. Only a device
#: that invents serial numbers comes near these limits; they keep the list for the kubelet below 4 MiB.
ABSENT_LIMIT = 1000
ABSENT_ID_LIMIT = 10_000

#: How many ties of twins are remembered. Beyond that, only the ties of remembered units are kept.
TIE_LIMIT = 10_000

#: How many links of one device are remembered: a device may also invent the names of its nodes.
LINK_LIMIT = 64

#: How long a change may wait to be saved, in seconds: the changes of a storm are saved together.
SAVE_WITHIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Remembered:
    """A device that was offered, with what its tombstone needs.

    device        as it was last seen, with every link that it ever had
    absent_since  seconds on the clock of `remember`, None while it is present
    """

    resource: str
    device: Device
    absent_since: float | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """Every device that pods may hold (by id), how it was shared, and the ties of twins."""

    devices: Mapping[str, Remembered] = field(default_factory=dict)
    ties: Ties = field(default_factory=dict)
    shares: Shares = field(default_factory=Shares)

    @property
    def known_ports(self) -> Ties:
        """The port of each unit: the one where it is now, or else where it was last seen."""
        present_last = sorted(
            self.devices.values(), key=lambda known: (known.absent_since is None, known.device.id)
        )
        return {known.device.unit: known.device.port for known in present_last}


def remember(
    inventory: Inventory,
    memory: Memory,
    now: float,
    held: frozenset[str] | None,
    plugged: Mapping[str, UdevDevice] = MappingProxyType({}),
    *,
    place: Callable[[UdevDevice], Place] = locate,
) -> tuple[Inventory, Memory]:
    """The inventory with its absent devices as Unhealthy, and the memory afterwards.

    now      seconds, on a clock that does not jump
    held     the ids that pods hold; None when this is not known, and then nothing is forgotten
    plugged  all udev devices, by sys path: a device may be plugged in and yet not offered
    place    where a udev device sits; a cache of `locate` makes this fast
    """
    gone = _by_resource(memory.devices)
    present = {
        name: {
            device.id: _renewed(name, device, gone.get(name, {}).pop(device.id, None))
            for device in offer.devices
        }
        for name, offer in inventory.offers.items()
    }
    absent_devices = (known.device for mine in gone.values() for known in mine.values())
    absence = Absence(absent_devices, plugged, inventory.refusals, place)
    leaving = _Leaving(now, None if held is None else _with_devices(held), absence)
    offers: dict[str, Offer] = {}
    devices: dict[str, Remembered] = {}
    for name, offer in inventory.offers.items():
        absent = leaving.absent(gone.pop(name, {}), offer.resource)
        devices |= present[name] | absent
        offers[name] = _with_absent(offer, present[name], absent)
    orphaned_links: list[str] = []
    for mine in gone.values():
        absent = leaving.absent(mine, None)
        devices |= absent
        orphaned_links += [link for known in absent.values() for link in known.device.links]
    shared, shares = withdraw(
        offers, memory.shares, _by_resource(devices), before=memory.devices, now=now, held=held
    )
    return (
        replace(inventory, offers=shared, orphaned_links=tuple(sorted(orphaned_links))),
        Memory(devices, _ties_worth_keeping(inventory.ties, devices), shares),
    )


def save_within_s(before: Memory, after: Memory) -> float | None:
    """How long the new memory may wait to be saved, in seconds; None if nothing changed.

    A change of ties may not wait: after a power cut nothing else tells which of two twins came first.
    """
    if after == before:
        return None
    return 0.0 if after.ties != before.ties else SAVE_WITHIN_S


def next_forgetting(memory: Memory, inventory: Inventory) -> float | None:
    """When the first grace of an absent device or a withdrawn id ends, on the clock of `remember`.

    None when there are none. In the past for those that are still held, or may be.
    """
    ends = [
        known.absent_since + grace_s(offer.resource if offer is not None else None)
        for known in memory.devices.values()
        if known.absent_since is not None
        for offer in (inventory.offers.get(known.resource),)
    ]
    dropping = next_dropping(memory.shares, inventory.offers)
    return min(ends if dropping is None else [*ends, dropping], default=None)


def _renewed(resource: str, device: Device, known: Remembered | None) -> Remembered:
    """A device that is present, with every link that it ever had: an optional node may be missing now."""
    if known is None:
        return Remembered(resource, device)
    more = [link for link in known.device.links if link not in device.links]
    if more:
        device = replace(device, links=(*device.links, *more[: max(0, LINK_LIMIT - len(device.links))]))
    # What did not change stays the same object, which makes comparing cheap.
    return known if known.device == device and known.absent_since is None else Remembered(resource, device)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """Decides what stays of devices that have left.

    held  every id that pods hold and every device behind one; None when this is not known
    """

    now: float
    held: frozenset[str] | None
    absence: Absence

    def absent(self, gone: Mapping[str, Remembered], resource: Resource | None) -> dict[str, Remembered]:
        """The tombstones of those devices that may not be forgotten yet."""
        grace = grace_s(resource)
        absent: dict[str, Remembered] = {}
        for id_, known in gone.items():
            since = self.now if known.absent_since is None else known.absent_since
            if known.absent_since is None or self._may_be_held(id_) or self.now - since < grace:
                absent[id_] = self._tombstone(known, since)
        limit = min(ABSENT_LIMIT, max(1, ABSENT_ID_LIMIT // ((resource and resource.replicas) or 1)))
        if len(absent) <= limit:
            return absent
        certain = self.held or frozenset()
        others = sorted(
            (id_ for id_ in absent if id_ not in certain),
            key=lambda id_: (-(absent[id_].absent_since or 0.0), id_),
        )
        dropped = frozenset(others[limit:])
        return {id_: known for id_, known in absent.items() if id_ not in dropped}

    def _may_be_held(self, id_: str) -> bool:
        return self.held is None or id_ in self.held

    def _tombstone(self, known: Remembered, since: float) -> Remembered:
        reason = self.absence.reason(known.resource, known.device)
        if known.absent_since is not None and known.device.reason == reason:
            return known
        # Another device may have its sys paths by now. Allocate still needs the rest of its nodes.
        nodes = tuple(replace(node, sys_path="") for node in known.device.nodes)
        device = replace(known.device, health=Health.UNHEALTHY, reason=reason, nodes=nodes)
        return Remembered(known.resource, device, since)


def _with_devices(held: Iterable[str]) -> frozenset[str]:
    """The ids that pods hold and the devices behind them, with or without the number of a replica."""
    # Once the resource has left the rules, nothing says which of the two an id is: keep both.
    return frozenset(name for id_ in held for name in (id_, id_.rpartition(".")[0]))


def _by_resource(devices: Mapping[str, Remembered]) -> dict[str, dict[str, Remembered]]:
    mine: dict[str, dict[str, Remembered]] = {}
    for id_, known in devices.items():
        mine.setdefault(known.resource, {})[id_] = known
    return mine


def _ties_worth_keeping(ties: Ties, devices: Mapping[str, Remembered]) -> Ties:
    if len(ties) <= TIE_LIMIT:
        return ties
    units = {known.device.unit for known in devices.values()}
    return {unit: port for unit, port in ties.items() if unit in units}


def _with_absent(offer: Offer, present: Mapping[str, Remembered], absent: Mapping[str, Remembered]) -> Offer:
    devices = [known.device for known in (*present.values(), *absent.values())]
    if not absent and all(map(operator.is_, devices, offer.devices)):
        return offer
    return Offer(offer.resource, in_order(devices))
