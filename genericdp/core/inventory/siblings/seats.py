"""What properties say of siblings: which numbers those have that have come.

The rules of this file:

* A property tells siblings apart only if a rule names it as `identity`, and only by its value: as many have
  come with it as are missing that had it, under whatever ids, and no other one that is missing may have it.
* Siblings of several resources may have one value. Then their ids do not tell which of them they are: what a
  rule takes may depend on the names that the kernel gives, or have been edited.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from genericdp.core.inventory.past import Seen, Value
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.plugged import Alike, Told
from genericdp.core.inventory.siblings.homes import Home
from genericdp.core.usb_port import UsbPort


class Seats(NamedTuple):
    """What properties say of the siblings that have come.

    taken     the numbers of those that they tell, by sys path
    disputed  whether they speak of others, too, but do not tell which one each of them is
    """

    taken: Mapping[str, int]
    disputed: bool


def seats_of(
    came: Mapping[str, Seen],
    missing: Sequence[int],
    home: Home,
    spot: Spot,
    told: Told,
    *,
    are_finished: bool,
) -> Seats:
    """What properties say of those of the siblings at a spot that have come.

    came, missing  where they are, by sys path, and the numbers of those that were there before
    are_finished   whether udev has finished with all of them, so that their properties are known
    """
    alike = _alike(came, told)
    are_all = are_finished and len(came) == len(missing)
    had = _had(alike, missing, home)
    times = Counter(number for numbers in had.values() for number in numbers)
    at_others = frozenset[str]().union(*(each.ids for each in home.others))
    taken: dict[str, int] = {}
    disputed = False
    for each, numbers in had.items():
        apart = at_others.intersection(each.ids).difference(*map(home.ids, numbers))
        # Those that no rule takes, or not any more, have none of the ids, but may have had a number.
        same = [
            path for path in came if path in alike[each] or (path in told and told[path] == ((), each.value))
        ]
        is_told = len(numbers) == len(same) and all(times[number] == 1 for number in numbers)
        is_late = may_be_others(numbers, home.before)
        is_ordered = not is_late and came_in_order(spot, [came[path] for path in same])
        is_alone = all(home.is_of(number, each) for number in numbers)
        # Of several with one value, some may be those of another unit.
        is_own = len(numbers) == 1 or {*numbers}.isdisjoint(home.foreign)
        # One of which nothing is known, or nothing of these properties, may have the same value.
        silent = (
            number
            for number in missing
            if not home.has_said(number, each.value.basis) or home.had_value(number, each.value)
        )
        is_one_silent = not are_all and any(number not in numbers for number in silent)
        if is_told and is_alone and is_own and is_ordered and not is_one_silent and not apart:
            taken |= zip(same, numbers, strict=True)
            continue
        # If all are back, their order tells which of those that no rule takes they are.
        by_order = {number for path, number in zip(came, missing, strict=False) if path in same}
        if len(same) > len(alike[each]) and by_order.issuperset(numbers) and not apart:
            continue
        # One that was at another spot is known by its value, unless several have come with it.
        disputed = disputed or bool(numbers) or (bool(apart) and not len(apart) == len(alike[each]) == 1)
    return Seats(taken, disputed)


def _alike(came: Iterable[str], told: Told) -> Mapping[Alike, Sequence[str]]:
    """Those of siblings that rules take, by value."""
    paths: dict[Value, list[str]] = {}
    for path in came:
        if path in told and told[path].ids:
            paths.setdefault(told[path].value, []).append(path)
    return {
        Alike((*dict.fromkeys(id_ for path in mine for id_ in told[path].ids),), value): mine
        for value, mine in paths.items()
    }


def _had(alike: Iterable[Alike], missing: Sequence[int], home: Home) -> Mapping[Alike, Sequence[int]]:
    """The numbers of those that are missing and that had each of these values.

    A number may be remembered of several values: after an edit, or of siblings that came in place of each
    other. It is that of the one that a pod may hold.
    """
    by_id = {each: [number for number in missing if home.may_be_by_id(number, each)] for each in alike}
    others = [number for number in missing if all(number not in numbers for numbers in by_id.values())]
    # An edit may have given what has the same value other ids.
    return {
        each: sorted((*numbers, *(n for n in others if home.may_be_by_value(n, each.value))))
        for each, numbers in by_id.items()
    }


def came_in_order(spot: Spot, seen: Sequence[Seen]) -> bool:
    """Whether siblings, in the order of their paths, have come in this order, as the inodes say.

    That is only expected of a unit on USB, which comes as a whole. Names of drivers are in another order.
    """
    if UsbPort.of_exact(spot.port) is None or not all(each.order.startswith("/") for each in seen):
        return True
    return all(one.incarnation <= other.incarnation for one, other in pairwise(seen))


def may_be_others(numbers: Collection[int], before: Mapping[int, Seen]) -> bool:
    """Whether even as many siblings as had these numbers may be others, or in another order."""
    seen = [before[number] for number in numbers]
    if len(seen) > 1 and any(each.is_late or each.is_mixed for each in seen):
        return True
    return any(each.is_guess for each in seen)
