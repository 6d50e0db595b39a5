"""Ids that a rule no longer includes because its `replicas` changed, but that pods may still hold.

The rules of this file:

* Such an id stays in the list as Unhealthy: no new pod gets it, and the pod that has it keeps it. Like
  the id of an absent device, it is dropped only when PodResources says that no pod holds it and the
  grace of its resource has passed.
* Its device may be present and Healthy. A container that holds a withdrawn id gets the device as before.
* Allocate refuses the id, because the kubelet may choose it before it has the new list: also when it is held,
  because that pod may have just gone. Only while a pod is being admitted does the kubelet ask again for what
  it holds, for another of its containers. Even then the id is refused if the device is exclusive by now and
  is held under another id, too: the next pod would share it.
"""

from collections import Counter
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field, replace

from genericdp.core.inventory.offer import Device, Health, Offer, ids_of, is_id_of
from genericdp.core.memory.held import Held, is_being_admitted
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.resource import Resource, grace_s

#: How many ids of one resource are kept, those that pods hold first: the list for the kubelet stays below its
#: limit of 4 MiB. One edit withdraws at most as many as a resource may have.
WITHDRAWN_LIMIT = 20_000

REASON = "'replicas' no longer includes this id"

#: Resource name -> its `replicas` when the resource was last offered.
Replicas = Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """An id that was offered: its resource, its device, and when it was withdrawn.

    since  seconds on the clock of `remember`, None when a restart has made that unknown
    """

    resource: str
    device: str
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Shares:
    """How the devices of each resource are shared, and the ids that are left of how they were."""

    replicas: Replicas = field(default_factory=dict)
    withdrawn: Mapping[str, Withdrawn] = field(default_factory=dict)


def withdraw(
    offers: Mapping[str, Offer],
    shares: Shares,
    devices: Mapping[str, Mapping[str, Remembered]],
    *,
    before: Container[str],
    now: float,
    held: Held,
    forget: bool,
) -> tuple[Mapping[str, Offer], Shares]:
    """The offers with the withdrawn ids that pods may still hold, and the shares afterwards.

    devices  resource name -> its devices by id, present or absent, offered or not
    before   the ids of all devices that were offered before
    now      seconds, on the clock of `remember`
    held     the ids that pods hold
    forget   whether it is certain that no pod holds any other id
    """
    replicas = {name: shares.replicas.get(name) for name in devices}
    replicas |= {name: offer.resource.replicas for name, offer in offers.items()}
    unlisted = _unlisted(held, offers, devices)
    if replicas == shares.replicas and not shares.withdrawn and not unlisted:
        return offers, shares
    edited = [name for name, number in replicas.items() if shares.replicas.get(name, number) != number]
    withdrawn = {**{id_: Withdrawn(*where, now) for id_, where in unlisted.items()}, **shares.withdrawn}
    for name in edited:
        for device in devices.get(name, ()):
            if device in before:
                for id_ in ids_of(device, shares.replicas[name]):
                    withdrawn.setdefault(id_, Withdrawn(name, device, now))
    kept: dict[str, dict[str, Withdrawn]] = {}
    listed = {name: {device.id for device in offer.devices} for name, offer in offers.items()}
    for id_, one in withdrawn.items():
        resource = _resource_of(one, offers)
        is_included = one.device in listed.get(one.resource, ()) and _includes(resource, id_, one.device)
        if one.device in devices.get(one.resource, ()) and not is_included:
            since = now if one.since is None else one.since
            if id_ in held or not forget or now - since < grace_s(resource):
                kept.setdefault(one.resource, {})[id_] = (
                    one if one.since == since else replace(one, since=since)
                )
    kept = {name: _most_needed(mine, held) for name, mine in kept.items()}
    holders = Counter(holding.device for holding in held.values()) if kept else Counter[str]()
    after = Shares(replicas, {id_: one for mine in kept.values() for id_, one in mine.items()})
    offered = dict(offers)
    for name, mine in kept.items():
        if name in offers:
            again = _may_be_asked_again(offers[name], mine, held, holders, now)
            offered[name] = _with(offers[name], mine, devices[name], again)
    return offered, after


def next_dropping(shares: Shares, offers: Mapping[str, Offer]) -> float | None:
    """When the grace of the first withdrawn id ends, on the clock of `withdraw`; None without any."""
    ends = ((one.since or 0.0) + grace_s(_resource_of(one, offers)) for one in shares.withdrawn.values())
    return min(ends, default=None)


def without_needless(
    devices: Mapping[str, Remembered], crowded: Collection[str], offers: Mapping[str, Offer], shares: Shares
) -> tuple[dict[str, Remembered], Mapping[str, Offer]]:
    """What is remembered and offered without those of the crowded devices that have no withdrawn id."""
    still_listed = {one.device for one in shares.withdrawn.values()}
    kept = {id_: known for id_, known in devices.items() if id_ not in crowded or id_ in still_listed}
    return kept, {name: _only_crowded(offer, still_listed) for name, offer in offers.items()}


def _unlisted(
    held: Held, offers: Mapping[str, Offer], devices: Mapping[str, Mapping[str, Remembered]]
) -> Mapping[str, tuple[str, str]]:
    """The resource and the device of each id that a pod holds and that the rules do not include.

    The rules may have been edited while the memory was lost. Nor do they include those of crowded devices.
    """
    crowded = {name: {device.id for device in offer.crowded} for name, offer in offers.items()}
    return {
        id_: (holding.resource, holding.device)
        for id_, holding in held.items()
        if (offer := offers.get(holding.resource)) is not None
        and (
            holding.device in crowded[holding.resource]
            or not is_id_of(id_, holding.device, offer.resource.replicas)
        )
        and holding.device in devices.get(holding.resource, ())
    }


def _resource_of(one: Withdrawn, offers: Mapping[str, Offer]) -> Resource | None:
    """Its resource; None while the rules do not have it."""
    return offers[one.resource].resource if one.resource in offers else None


def _includes(resource: Resource | None, id_: str, device: str) -> bool:
    """Whether the resource includes the id, or includes it again."""
    return resource is not None and is_id_of(id_, device, resource.replicas)


def _may_be_asked_again(
    offer: Offer, mine: Mapping[str, Withdrawn], held: Held, holders: Mapping[str, int], now: float
) -> frozenset[str]:
    """The withdrawn ids of which the pod that is being admitted may ask for another of its containers.

    holders  how many ids of each device pods hold
    """
    return frozenset(
        id_
        for id_, one in mine.items()
        if id_ in held
        and is_being_admitted(held[id_], now)
        and not (offer.resource.is_exclusive and holders[one.device] > 1)
    )


def _most_needed(mine: Mapping[str, Withdrawn], held: Container[str]) -> dict[str, Withdrawn]:
    """At most WITHDRAWN_LIMIT of them: those that pods hold, then the latest."""
    if len(mine) <= WITHDRAWN_LIMIT:
        return dict(mine)
    order = sorted(mine, key=lambda id_: (id_ not in held, -(mine[id_].since or 0.0)))
    return {id_: mine[id_] for id_ in order[:WITHDRAWN_LIMIT]}


def _with(
    offer: Offer, mine: Mapping[str, Withdrawn], devices: Mapping[str, Remembered], answered: Container[str]
) -> Offer:
    # Only the device as it is listed has the NUMA node that is in the list.
    listed = {device.id: device for device in offer.with_crowded}
    # A device may have thousands of them.
    owners = {
        id_: _unhealthy(listed.get(id_) or devices[id_].device)
        for id_ in {one.device for one in mine.values()}
    }
    return replace(
        offer,
        withheld={id_: owners[one.device] for id_, one in mine.items()},
        refused={id_: REASON for id_ in mine if id_ not in answered},
    )


def _unhealthy(device: Device) -> Device:
    if not device.healthy:
        return device
    return replace(device, health=Health.UNHEALTHY, reason=REASON)


def _only_crowded(offer: Offer, still_listed: Collection[str]) -> Offer:
    if not offer.crowded:
        return offer
    return replace(offer, crowded=tuple(device for device in offer.crowded if device.id in still_listed))
