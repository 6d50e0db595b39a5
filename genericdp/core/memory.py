"""What is remembered of devices, so that no id is dropped while a pod may hold it.

The rules of this file:

* A device that is no longer there stays in the inventory as Unhealthy. It is forgotten only when
  somebody who knows says that no pod holds it and its grace time has passed: a dropped id crashes
  kubelet 1.36 and makes the status of its pod say Healthy.
* Its links stay even when its resource is gone from the rules: without them CRI-O would start the
  container of a pod that holds it as if nothing were missing.
* Everything here outlives a reboot (`genericdp.state` keeps it): the answers that the kubelet saved
  name links of devices that may not be back yet.
"""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from genericdp.core.identity import Ties
from genericdp.core.inventory import Inventory
from genericdp.core.offer import Device, Health, Offer, in_order
from genericdp.core.rules import UNPLUG_GRACE_S, Resource

#: How many absent devices of one resource are remembered beside those that are surely held, and how
#: many ids they may make with replicas; the longest absent ones go first. Only a device that invents
#: serial numbers comes near it, and the list for the kubelet stays far below its limit of 4 MiB.
ABSENT_LIMIT = 1000
ABSENT_ID_LIMIT = 20_000

#: How many ties of twins are remembered; beyond it, only those of units that are remembered, too.
TIE_LIMIT = 10_000

#: How many links of one device are remembered: a device may invent names of its nodes, too.
LINK_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Remembered:
    """A device that was offered: what its tombstone needs.

    device        as it was last seen; its links are those that it ever had
    absent_since  seconds on the clock of `remember`, None while it is there
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

    def held_among(self, ids: Iterable[str]) -> frozenset[str]:
        """The devices behind the ids that pods hold, with or without the number of a replica."""
        # Which of the two it is is in no rule any more once a resource has gone: both are kept.
        both = (name for id_ in ids for name in (id_, id_.rpartition(".")[0]))
        return frozenset(name for name in both if name in self.devices)


def remember(
    inventory: Inventory, memory: Memory, now: float, held: frozenset[str] | None
) -> tuple[Inventory, Memory]:
    """The inventory with its absent devices as Unhealthy, and the memory after it.

    now    seconds, on a clock that does not jump
    held   the devices that pods hold (`Memory.held_among`); None when nobody can say, and then
           nothing is forgotten
    """
    before: dict[str, dict[str, Remembered]] = {}
    for id_, known in memory.devices.items():
        before.setdefault(known.resource, {})[id_] = known
    offers: dict[str, Offer] = {}
    devices: dict[str, Remembered] = {}
    for name, offer in inventory.offers.items():
        mine = before.pop(name, {})
        present = {device.id: _renewed(name, device, mine.pop(device.id, None)) for device in offer.devices}
        absent = _absent(mine, offer.resource, now, held)
        devices |= present | absent
        offers[name] = _with_absent(offer, present, absent)
    withdrawn: list[str] = []
    for mine in before.values():
        absent = _absent(mine, None, now, held)
        devices |= absent
        withdrawn += [link for known in absent.values() for link in known.device.links]
    return (
        replace(inventory, offers=offers, withdrawn=tuple(sorted(withdrawn))),
        Memory(devices, _ties_worth_keeping(inventory.ties, devices)),
    )


def next_forgetting(memory: Memory, inventory: Inventory) -> float | None:
    """When the grace of the first absent device ends, on the clock of `remember`; None without any.

    In the past for a device that is still held, or of which nobody can say.
    """
    ends = [
        known.absent_since + _grace_s(offer.resource if offer is not None else None)
        for known in memory.devices.values()
        if known.absent_since is not None
        for offer in (inventory.offers.get(known.resource),)
    ]
    return min(ends, default=None)


def _renewed(resource: str, device: Device, known: Remembered | None) -> Remembered:
    """A device that is there, with the links that it ever had: an optional node may be away."""
    if known is None:
        return Remembered(resource, device)
    more = [link for link in known.device.links if link not in device.links]
    if more:
        device = replace(device, links=(*device.links, *more[: max(0, LINK_LIMIT - len(device.links))]))
    # What did not change stays the same object, so that comparing costs nothing.
    return known if known.device == device and known.absent_since is None else Remembered(resource, device)


def _absent(
    gone: Mapping[str, Remembered], resource: Resource | None, now: float, held: frozenset[str] | None
) -> dict[str, Remembered]:
    """Those of the devices that are gone which may not be forgotten yet."""
    grace_s = _grace_s(resource)
    absent: dict[str, Remembered] = {}
    for id_, known in gone.items():
        if known.absent_since is None:
            absent[id_] = Remembered(known.resource, _tombstone(known.device), now)
        elif held is None or id_ in held or now - known.absent_since < grace_s:
            absent[id_] = known
    limit = min(ABSENT_LIMIT, max(1, ABSENT_ID_LIMIT // ((resource and resource.replicas) or 1)))
    if len(absent) <= limit:
        return absent
    certain = held or frozenset()
    others = sorted(
        (id_ for id_ in absent if id_ not in certain),
        key=lambda id_: (-(absent[id_].absent_since or 0.0), id_),
    )
    dropped = frozenset(others[limit:])
    return {id_: known for id_, known in absent.items() if id_ not in dropped}


def _ties_worth_keeping(ties: Ties, devices: Mapping[str, Remembered]) -> Ties:
    if len(ties) <= TIE_LIMIT:
        return ties
    units = {known.device.unit for known in devices.values()}
    return {unit: port for unit, port in ties.items() if unit in units}


def _grace_s(resource: Resource | None) -> float:
    return UNPLUG_GRACE_S if resource is None else resource.unplug_grace_s


def _tombstone(device: Device) -> Device:
    # Another device may be at its sys paths by now; the rest of its nodes Allocate still asks about.
    nodes = tuple(replace(node, sys_path="") for node in device.nodes)
    return replace(device, health=Health.UNHEALTHY, reason="it is unplugged", nodes=nodes)


def _with_absent(offer: Offer, present: Mapping[str, Remembered], absent: Mapping[str, Remembered]) -> Offer:
    devices = [known.device for known in (*present.values(), *absent.values())]
    if not absent and all(map(operator.is_, devices, offer.devices)):
        return offer
    return Offer(offer.resource, in_order(devices))
