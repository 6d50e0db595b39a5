"""Chooses among free devices for a container (GetPreferredAllocation).

The rules of this file:

* The answer has exactly `size` ids, all of them available, and includes every id that must be included.
  It depends on the arguments alone. An error or a short answer would fail the pod or leave the choice
  to chance.
* Where the policy leaves a choice, the order of the ids decides.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from genericdp.core.inventory.identity import natural
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
    must = sorted(set(must_include), key=natural)[: max(size, 0)]
    free = sorted(set(available).difference(must), key=natural)
    missing = max(size, 0) - len(must)
    return (*must, *_ordered(offer, must, free, missing, last_used)[:missing])


def _ordered(
    offer: Offer, must: Sequence[str], free: Sequence[str], count: int, last_used: Mapping[str, int]
) -> Sequence[str]:
    """The free ids in the order of the policy, at least `count` of them if there are so many."""
    match offer.resource.prefer:
        case Prefer.LEAST_RECENTLY_USED:
            return sorted(free, key=lambda id_: last_used.get(id_, 0))
        case Prefer.NUMA:
            return _grouped(must, free, _property(offer, lambda device: str(device.numa)))
        case Prefer.SAME_HUB:
            return _grouped(must, free, _property(offer, lambda device: device.hub))
        case Prefer.SPREAD:
            ports = _property(offer, lambda device: device.port)
            hubs = _property(offer, lambda device: device.hub)
            return _spread(must, free, count, ports, hubs)
        case _:
            return free


#: A property of the device behind an id; "" when the id was never offered.
Property = Callable[[str], str]


def _property(offer: Offer, of: Callable[[Device], str]) -> Property:
    known = {id_: of(device) for id_, device in offer.ids.items()}
    return lambda id_: known.get(id_, "")


def _grouped(must: Sequence[str], free: Sequence[str], group: Property) -> list[str]:
    """Prefer the groups of the ids that must be included, then the group with the most free ids."""
    begun = Counter(group(id_) for id_ in must)
    sizes = Counter(group(id_) for id_ in free)
    return sorted(free, key=lambda id_: (-begun[group(id_)], -sizes[group(id_)], group(id_)))


def _spread(must: Sequence[str], free: Sequence[str], count: int, port: Property, hub: Property) -> list[str]:
    """Take from the unit, and among equals from the hub, that has been taken from least."""
    units = Counter(port(id_) for id_ in must)
    hubs = Counter(hub(id_) for id_ in must)
    left, chosen = list(free), list[str]()
    while left and len(chosen) < count:
        best = min(left, key=lambda id_: (units[port(id_)], hubs[hub(id_)]))
        left.remove(best)
        chosen.append(best)
        units[port(best)] += 1
        hubs[hub(best)] += 1
    return chosen
