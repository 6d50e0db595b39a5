"""Which ids have to wait, because a pod may hold a device node of theirs under another id.

The rules of this file:

* Edited rules give a device another id, another resource or other replicas, while a pod keeps what it got. An
  exclusive device node is never given out again before that pod has gone.
* A shared id does not wait for another shared one.
* Whether a pod holds the id itself does not matter: that pod may have gone, and the kubelet would give the id
  to the next one.
* Usually nothing waits, and finding this out costs one look at each holding.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from genericdp.core.inventory.offer import Device, Health, Offer, ids_of
from genericdp.core.inventory.place import Spot, spot_of
from genericdp.core.memory.held import Held, Holding
from genericdp.core.memory.remembered import Remembered, Whereabouts


def with_waiting(
    offers: Mapping[str, Offer], held: Held, devices: Mapping[str, Remembered]
) -> Mapping[str, Offer]:
    """The offers in which the ids that have to wait are Unhealthy.

    devices  all that are remembered, by id
    """
    elsewhere = {
        id_: holding
        for id_, holding in held.items()
        if not _is_as_given(id_, holding, offers.get(holding.resource), devices.get(holding.device))
    }
    if not elsewhere:
        return offers
    holders: dict[str, dict[str, Holding]] = {}
    for id_, holding in elsewhere.items():
        holders.setdefault(holding.device, {})[id_] = holding
    whereabouts = Whereabouts({id_: devices[id_] for id_ in holders if id_ in devices})
    held_devices = frozenset(holding.device for holding in held.values())
    return {
        name: _with(offer, dict(_waiting(offer, holders, whereabouts, devices, held_devices)), held_devices)
        for name, offer in offers.items()
    }


def ids_that_wait(before: Mapping[str, Offer], after: Mapping[str, Offer]) -> tuple[str, ...]:
    """The ids that `with_waiting` made wait."""
    if after is before:
        return ()
    return tuple(
        sorted(
            id_ for name, offer in after.items() for id_ in offer.refused.keys() - before[name].refused.keys()
        )
    )


def _is_as_given(id_: str, holding: Holding, offer: Offer | None, known: Remembered | None) -> bool:
    """Whether the rules still offer what the pod holds, and all of it, in the same way."""
    return (
        offer is not None
        and known is not None
        and known.absent_since is None
        and not known.earlier
        and id_ in offer.ids
        and id_ not in offer.withheld
        and holding.shared is _is_shared(offer)
    )


def _is_shared(offer: Offer) -> bool:
    return not offer.resource.is_exclusive


def _waiting(
    offer: Offer,
    holders: Mapping[str, Mapping[str, Holding]],
    whereabouts: Whereabouts,
    devices: Mapping[str, Remembered],
    held_devices: Collection[str],
) -> Iterator[tuple[str, str]]:
    """The ids of an offer that have to wait, each with the reason. `holders`: device -> who holds it."""
    shared = _is_shared(offer)
    for device in offer.devices:
        if devices[device.id].absent_since is not None:
            continue
        others = {
            id_: holding
            for spot in _spots_of(device, is_held=device.id in held_devices)
            for holder in whereabouts.at(spot)
            for id_, holding in holders[holder].items()
            if not (shared and holding.shared)
        }
        if others:
            names = sorted(others)
            for id_ in ids_of(device.id, offer.resource.replicas):
                other = next((name for name in names if name != id_), None)
                if other is not None:
                    yield id_, _reason(offer, other, others[other])


def _spots_of(device: Device, *, is_held: bool) -> Iterator[Spot]:
    """Where a pod may have got a node of the device, under its number and from an earlier release as well.

    A unit in a socket of USB 3 may have had the other speed then, unless a pod has it as it is.
    """
    yield from device.spots
    yield from device.also
    yield from device.before
    if not is_held:
        yield from device.across
    for node in device.nodes:
        if not node.is_bare:
            yield spot_of(node.number)


def _reason(offer: Offer, id_: str, holding: Holding) -> str:
    of = "" if holding.resource == offer.resource.name else f" of {holding.resource}"
    return f"a pod may still hold it as {id_}{of}"


def _with(offer: Offer, waiting: Mapping[str, str], held_devices: frozenset[str]) -> Offer:
    if not waiting:
        return offer
    devices: list[Device] = []
    withheld = dict(offer.withheld)
    for device in offer.devices:
        reasons = {id_: waiting[id_] for id_ in ids_of(device.id, offer.resource.replicas) if id_ in waiting}
        if reasons and device.id not in held_devices:
            # No pod has it under this id, so its link need not lead anywhere.
            devices.append(_unhealthy(device, next(iter(reasons.values()))))
            continue
        devices.append(device)
        withheld.update({id_: _unhealthy(device, reason) for id_, reason in reasons.items()})
    return replace(offer, devices=tuple(devices), withheld=withheld, refused={**offer.refused, **waiting})


def _unhealthy(device: Device, reason: str) -> Device:
    return replace(device, health=Health.UNHEALTHY, reason=reason)
