"""Which of the free devices a container had better get (GetPreferredAllocation).

The rules of this file:

* The answer is exactly `size` ids, holds every id that must be included and only available ones,
  and depends on nothing but the arguments: an error or a short answer would fail the pod or leave
  the choice to chance.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from genericdp.core.identity import natural
from genericdp.core.inventory import Device, Offer
from genericdp.core.rules import Prefer

#: Orders the candidates, given the devices chosen so far; the smallest is taken.
Rank = Callable[[str, Sequence[str]], tuple[object, ...]]


def prefer(
    offer: Offer,
    available: Sequence[str],
    must_include: Sequence[str],
    size: int,
    last_used: Mapping[str, int],
) -> tuple[str, ...]:
    """The ids to take. `last_used` counts up with each allocation of an id (0 or absent: never)."""
    chosen = list(dict.fromkeys(must_include))[: max(size, 0)]
    candidates = [id_ for id_ in dict.fromkeys(available) if id_ not in chosen]
    rank = _rank(offer, available, last_used)
    while len(chosen) < size and candidates:
        best = min(candidates, key=lambda id_: (*rank(id_, chosen), natural(id_)))
        candidates.remove(best)
        chosen.append(best)
    return tuple(chosen)


def _rank(offer: Offer, available: Sequence[str], last_used: Mapping[str, int]) -> Rank:
    ids = offer.ids
    match offer.resource.prefer:
        case Prefer.FIRST:
            return lambda _id, _chosen: ()
        case Prefer.LEAST_RECENTLY_USED:
            return lambda id_, _chosen: (last_used.get(id_, 0),)
        case Prefer.NUMA:
            return _together(ids, available, lambda device: str(device.numa))
        case Prefer.SAME_HUB:
            return _together(ids, available, lambda device: device.hub)
        case Prefer.SPREAD:
            return _apart(ids, lambda device: device.hub)


def _together(ids: Mapping[str, Device], available: Sequence[str], group: Callable[[Device], str]) -> Rank:
    """Stay in the groups of those chosen; begin in the group with most to give."""
    groups = {id_: group(ids[id_]) for id_ in ids}
    sizes = Counter(groups.get(id_, "") for id_ in available)

    def rank(id_: str, chosen: Sequence[str]) -> tuple[object, ...]:
        mine = groups.get(id_, "")
        return (-sum(groups.get(other, "") == mine for other in chosen), -sizes[mine], mine)

    return rank


def _apart(ids: Mapping[str, Device], group: Callable[[Device], str]) -> Rank:
    """Take the unit and the group that were chosen least."""
    groups = {id_: group(device) for id_, device in ids.items()}
    ports = {id_: device.port for id_, device in ids.items()}

    def rank(id_: str, chosen: Sequence[str]) -> tuple[object, ...]:
        same_unit = sum(ports.get(other) == ports.get(id_) for other in chosen)
        same_group = sum(groups.get(other) == groups.get(id_) for other in chosen)
        return (same_unit, same_group)

    return rank
