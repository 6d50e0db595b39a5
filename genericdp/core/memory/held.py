"""Which ids pods hold, as far as a device plugin can know.

The rules of this file:

* An id that was given by Allocate, or that PodResources lists, is held until a complete answer of
  PodResources no longer lists it. No call of the kubelet says that a device is free again.
* A pod appears in PodResources only after its admission. An answer says nothing about an id that was given
  shortly before the question.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from genericdp.core.inventory.offer import Offer
from genericdp.core.memory.remembered import Remembered

#: How long the admission of a pod may take after Allocate, in seconds: other plugins are asked, too.
PODS_SETTLE_S = 120.0


@dataclass(frozen=True, slots=True)
class Holding:
    """An id that a pod may hold.

    resource  the name of its resource
    device    the id of the device behind it
    shared    whether other containers may have the device at the same time
    given     when Allocate gave it, on the clock of `remember`; None when that was before a restart
    """

    resource: str
    device: str
    shared: bool
    given: float | None = field(default=None, compare=False)


#: Id as the kubelet knows it -> what the pod has.
Held = Mapping[str, Holding]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of PodResources.

    ids       (resource, id) of every device that a container holds
    asked     when the question was asked, on the clock of `remember`
    complete  whether an id that is missing is free: a kubelet that has just started does not know its pods
    """

    ids: frozenset[tuple[str, str]]
    asked: float
    complete: bool


def give(held: Held, offer: Offer, ids: Iterable[str], now: float) -> Held:
    """The holdings after Allocate gave these ids of a resource at `now`."""
    given = {id_: _holding(offer, id_, now) for id_ in ids if id_ in offer.ids}
    for id_ in given.keys() & held.keys():
        # A pod may have held it since before the device was shared.
        given[id_] = replace(given[id_], shared=given[id_].shared and held[id_].shared)
    return {**held, **given}


def learn(held: Held, answer: Answer, offers: Mapping[str, Offer], devices: Mapping[str, Remembered]) -> Held:
    """The holdings after an answer of PodResources.

    offers   what is offered of the present devices, by resource name
    devices  all devices that are remembered, by id
    """
    listed = {id_ for _, id_ in answer.ids}
    kept = {
        id_: holding
        for id_, holding in held.items()
        if not answer.complete
        or id_ in listed
        or (holding.given is not None and holding.given > answer.asked - PODS_SETTLE_S)
    }
    ours = {*offers, *(known.resource for known in devices.values())}
    found = {
        id_: _holding(offers[name], id_, None)
        if name in offers and id_ in offers[name].ids
        else _unlisted(name, id_, devices)
        for name, id_ in answer.ids
        if id_ not in kept and name in ours
    }
    return {**kept, **found} if found or len(kept) < len(held) else held


def _holding(offer: Offer, id_: str, now: float | None) -> Holding:
    device = offer.ids[id_].id
    shared = (offer.resource.replicas or 1) > 1 and id_ not in offer.withheld
    return Holding(offer.resource.name, device, shared, now)


def _unlisted(resource: str, id_: str, devices: Mapping[str, Remembered]) -> Holding:
    """What a pod has of a device that is not listed now: it may be back later."""
    device, dot, _ = id_.rpartition(".")
    is_replica = bool(dot) and id_ not in devices and device in devices
    return Holding(resource, device if is_replica else id_, is_replica)
