"""Chooses among free devices for a container (GetPreferredAllocation).

The rules of this file:

* The answer has exactly `size` ids, all of them available, and includes every id that must be included.
  It depends on the arguments alone. An error or a short answer would fail the pod or leave the choice
  to chance.
* The kubelet may not have heard yet that a device has gone. Whatever the policy, ids that are Unhealthy,
  that have to wait or that are no longer offered are taken last.
* Two replicas of one device are of no more use to a container than one. So it gets different devices while
  there are any, unless the policy is to stay on one unit.
* Where the policy leaves a choice, the order of the ids decides.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.rules.resource import Prefer


def prefer(
    offer: Offer,
    available: Iterable[str],
    must_include: Iterable[str],
    size: int,
    last_used: Mapping[str, int],
) -> tuple[str, ...]:
    """The ids to take. `last_used` grows with each allocation; 0 or absent: never allocated."""
    must = offer.in_order(must_include)[: max(size, 0)]
    free = offer.in_order(set(available).difference(must))
    missing = max(size, 0) - len(must)
    usable: list[str] = []
    others: list[str] = []
    for id_ in free:
        (usable if _is_usable(offer, id_) else others).append(id_)
    chosen = (*must, *_ordered(offer, must, usable, last_used)[:missing])
    if len(usable) >= missing or not others:
        return chosen
    return (*chosen, *_ordered(offer, chosen, others, last_used)[: missing - len(usable)])


def _is_usable(offer: Offer, id_: str) -> bool:
    """Whether a container with this id could start now, as far as is known."""
    device = offer.ids.get(id_)
    return device is not None and device.healthy and id_ not in offer.refused


def _ordered(
    offer: Offer, must: Sequence[str], free: Sequence[str], last_used: Mapping[str, int]
) -> Sequence[str]:
    """The free ids in the order in which to take them."""
    ordered = _by_policy(offer, must, free, last_used)
    # To spread is to take different devices anyway.
    if offer.resource.replicas is None or offer.resource.prefer in (Prefer.SAME_UNIT, Prefer.SPREAD):
        return ordered
    return _in_turn(must, ordered, *_device_and_unit(offer))


def _by_policy(
    offer: Offer, must: Sequence[str], free: Sequence[str], last_used: Mapping[str, int]
) -> Sequence[str]:
    """The free ids in the order of the policy."""
    match offer.resource.prefer:
        case Prefer.LEAST_RECENTLY_USED:
            return sorted(free, key=lambda id_: last_used.get(id_, 0))
        case Prefer.NUMA:
            return _grouped(must, free, _property(offer, lambda device: str(device.numa)))
        case Prefer.SAME_HUB:
            return _grouped(must, free, _property(offer, lambda device: device.hub))
        case Prefer.SAME_UNIT:
            return _grouped(must, free, _property(offer, lambda device: device.port))
        case Prefer.SPREAD:
            hubs = _property(offer, lambda device: device.hub)
            return _in_turn(must, free, *_device_and_unit(offer), hubs)
        case _:
            return free


#: A property of the device behind an id; "" when the id was never offered.
Property = Callable[[str], str]


def _property(offer: Offer, of: Callable[[Device], str]) -> Property:
    known = {id_: of(device) for id_, device in offer.ids.items()}
    return lambda id_: known.get(id_, "")


def _device_and_unit(offer: Offer) -> tuple[Property, Property]:
    return _property(offer, lambda device: device.id), _property(offer, lambda device: device.port)


def _grouped(must: Sequence[str], free: Sequence[str], group: Property) -> list[str]:
    """Prefer the groups of the ids that must be included, then the group with the most free ids."""
    begun = Counter(group(id_) for id_ in must)
    sizes = Counter(group(id_) for id_ in free)
    return sorted(free, key=lambda id_: (-begun[group(id_)], -sizes[group(id_)], group(id_)))


def _in_turn(must: Sequence[str], free: Sequence[str], *groups: Property) -> Sequence[str]:
    """Take from the group that has been taken from least; among equals, by the next kind of group.

    Looking at all that are left each time would take a minute for 20,000 ids. It is not needed: as each
    group lies within one of the next kind (a unit is at one hub), how many of its group are taken when an id
    has its turn is known beforehand.
    """
    turns: list[dict[str, int]] = []
    for group in groups:
        turns.append(_numbered(free, group, Counter(group(id_) for id_ in must)))
        # Several sorts by a number take a fraction of the time of one by tuples.
        for turn in reversed(turns):
            free = sorted(free, key=turn.__getitem__)
    return free


def _numbered(ids: Iterable[str], group: Property, taken: Counter[str]) -> dict[str, int]:
    """For each id, how many ids of its group come before it, with those that are taken already."""
    numbers: dict[str, int] = {}
    for id_ in ids:
        numbers[id_] = taken[group(id_)]
        taken[group(id_)] += 1
    return numbers
