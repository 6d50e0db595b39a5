"""Which number each of the siblings at one spot has.

Siblings are nodes that nothing but their order tells apart. The order changes when one of them comes or
goes, so each gets a number once and keeps it.

The rules of this file:

* What has come is what was missing, if a property that a rule names as `identity` says so: as many have come
  with its value as are missing that had it, under whatever ids. If others are missing, it is known that they
  had another value: of one that was gone when an edit named the property, nobody knows.
* Of the others, what has come while as many are missing is what was missing, in the order of the paths, or of
  what drivers call the cameras of a board. So a unit that is plugged in again, at any port, or that comes
  after a reboot, is as it was. The order that counts is the one in which they got their numbers: one that was
  bound again has another path.
* If their number differs, or if they have not come in the order of their paths, now or before, nobody can
  tell which one has come. It is **in doubt** as long as a pod may hold one of those that are missing. So is
  one with which udev has not finished, because its properties may tell, and any that comes at the spot of a
  wireless unit without an address, or while one of them cannot be read. Once more came than were missing,
  those that come next may be any of them. Once some came in another order, or with other values, or one was
  bound again, they stay in doubt until all have left: one that is bound again may make the order look right,
  and an edit may name another property.
* If no pod holds any of them, what has come is taken for the first ones, and nothing is known of the others
  but that there are so many. If all have come, all begin anew.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import in_path_order
from genericdp.core.inventory.part import has_twin
from genericdp.core.inventory.past import Known, Past, Seen, Siblings
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.plugged import Alike, Told
from genericdp.core.inventory.siblings.doubtful import is_one_bound_again
from genericdp.core.inventory.siblings.former import At, elsewhere, gone, seen_at
from genericdp.core.inventory.siblings.homes import Home, home_of
from genericdp.core.inventory.siblings.seats import came_in_order, may_be_others, seats_of
from genericdp.core.inventory.siblings.unread import unread_among


class Numbered(NamedTuple):
    """The siblings at one spot, as in `Plugged`; `in_doubt` are sys paths.

    left     the spots at other ports where they have been -> what is remembered there now
    anew     the numbers that have begun anew, at each of these spots
    stayed   the numbers of those that have not left since
    """

    numbers: Mapping[str, int]
    siblings: Mapping[int, Seen]
    in_doubt: Collection[str]
    unsettled: Collection[str]
    homes: Sequence[Spot]
    left: Siblings
    anew: Collection[Spot]
    stayed: Collection[int]


def number(
    group: Sequence[UdevDevice], spot: Spot, past: Past, told: Told, at: At, *, is_one_unread: bool = False
) -> Numbered:
    """The numbers of the siblings at a spot. `at` is what is plugged in.

    is_one_unread  whether one of them may be what cannot be read
    """
    home = home_of(group, spot, past, told, at)
    missing = sorted(home.before.keys() - home.stayed.values())
    if spot in past.doubtful and is_one_bound_again(past.doubtful[spot], group, past.unread):
        home = home._replace(before={**home.before, **{n: home.before[n].mixed for n in missing}})
    seen, before = home.seen, home.before
    came = [path for path in seen if path not in home.stayed]
    is_unsettled = bool(came and (missing or home.former or home.may_be_told)) and not spot.is_anonymous
    # What cannot be read may have the same value.
    arrivals = {path: seen[path] for path in came} if is_unsettled and not is_one_unread else {}
    are_finished = all(node.initialized for node in group if node.sys_path in arrivals)
    seats = seats_of(arrivals, missing, home, spot, told, are_finished=are_finished)
    sure = {**home.stayed, **seats.taken}
    new = [node for node in group if node.sys_path not in sure]
    missing = [number for number in missing if number not in seats.taken.values()]
    are_in_order = came_in_order(spot, [seen[node.sys_path] for node in new])
    are_others = bool(missing) and (
        len(new) != len(missing)
        or home.is_open
        or is_one_unread
        or _are_told_apart(missing, new, home, told)
        or may_be_others(missing, before)
        or (len(missing) > 1 and not are_in_order)
    )
    nobody_can_tell = (
        are_others or spot.is_anonymous or seats.disputed or not all(node.initialized for node in new)
    )
    is_in_doubt = bool(new) and nobody_can_tell and home.may_hold(missing, sure.values())
    doubtful: Collection[int] = ()
    are_more = is_in_doubt and len(new) > len(missing)
    if are_more:
        # Some were never seen before, so even as many as are missing may be those, the next time.
        doubtful = [n for n in missing if _may_have_come(home.known.get(n), new, told)]
        before = _not_seen(before, doubtful)
    anew: list[Spot] = []
    if new and are_others and not is_in_doubt:
        doubtful = missing
        anew = [each._replace(number=n) for each in (spot, *home.former) for n in missing]
        before = _guessed(before, missing, len(new), is_all=not sure)
        missing = sorted(before.keys() - sure.values())
    unused = [number for number in range(len(before) + len(new)) if number not in before]
    paths = [node.sys_path for node in new]
    by_order = dict(zip(paths, unused if is_in_doubt else [*missing, *unused], strict=False))
    numbers = {**sure, **by_order}
    if not is_in_doubt:
        sure = numbers
    # What cannot be read may not have left. So nothing else has its path and inode.
    siblings = {**gone(before), **unread_among({number: before[number] for number in missing}, past)}
    are_mixed = not are_in_order or (seats.disputed and len(new) == len(missing))
    if is_in_doubt and (are_mixed or any(before[number].is_mixed for number in missing)):
        siblings |= {number: before[number].mixed for number in missing}
    siblings |= {sure[path]: each for path, each in seen.items() if path in sure}
    now = _with_late(spot, siblings, before)
    here = elsewhere(now)
    were = home.left if is_in_doubt else {each: gone(numbers) for each, numbers in home.left.items()}
    left = {each: here if home.is_same else _not_seen(then, doubtful) for each, then in were.items()}
    if are_more and has_twin(past.twins, spot):
        left = {}  # the other port may be that of the twin
    elif are_more:
        left = {**_doubted(home.apart, left, new, past, told), **(left if home.is_same else {})}
    return Numbered(
        numbers,
        now,
        paths if is_in_doubt else (),
        came if is_unsettled else (),
        home.former,
        left,
        anew,
        home.stayed.values(),
    )


def _guessed(
    before: Mapping[int, Seen], missing: Sequence[int], count: int, *, is_all: bool
) -> Mapping[int, Seen]:
    """What is known of siblings once so many that have come are taken for some of the missing ones.

    Nothing is known of those that are left but that there were so many. If all come, all begin anew.
    """
    if is_all:
        stay = missing if count < len(missing) else ()
        return {n: _unseen(before[number]) for n, number in enumerate(stay)}
    return _not_seen(before, missing)


def _not_seen(before: Mapping[int, Seen], numbers: Collection[int]) -> Mapping[int, Seen]:
    """What is known of siblings once it is not known any more where those with these numbers were."""
    return {number: _unseen(seen) if number in numbers else seen for number, seen in before.items()}


def _unseen(sibling: Seen) -> Seen:
    return Seen(is_late=True, model=sibling.model)


def _with_late(spot: Spot, siblings: Mapping[int, Seen], before: Mapping[int, Seen]) -> Mapping[int, Seen]:
    """Siblings, each with whether its number says where it comes: that is found out when it is first seen."""
    new = [n for n, seen in siblings.items() if seen.is_there and not (n in before and before[n].order)]
    late = _out_of_order(spot, new, siblings)
    late |= {n for n, seen in before.items() if seen.is_late}.difference(new)
    return {n: seen._replace(is_late=n in late) for n, seen in siblings.items()}


def _out_of_order(spot: Spot, unplaced: Iterable[int], siblings: Mapping[int, Seen]) -> set[int]:
    """Those of siblings whose new number contradicts the order of the paths, or that have not come in it."""
    late: set[int] = set()
    keys: dict[int, Any] = {}
    for number in unplaced:
        keys = keys or {n: in_path_order(seen.order) for n, seen in siblings.items() if seen.order}
        for other, key in keys.items():
            if other != number and (other < number) != (key < keys[number]):
                late.add(number)
    present = sorted((number for number in keys if siblings[number].is_there), key=keys.__getitem__)
    if keys and not came_in_order(spot, [siblings[number] for number in present]):
        late.update(unplaced)
    return late


def _may_have_come(known: Known | None, new: Iterable[UdevDevice], told: Told) -> bool:
    """Whether one of these may be what had a number, as far as properties tell."""
    return known is None or not all(_is_another(known, told.get(node.sys_path)) for node in new)


def _is_another(known: Known, now: Alike | None) -> bool:
    """Whether the values of properties say that a sibling is not what had a number."""
    if now is None or not known.ids.keys().isdisjoint(now.ids):
        return False
    values = {value for value in known.ids.values() if value.basis == now.value.basis}
    return bool(values) and now.value not in values


def _are_told_apart(missing: Iterable[int], new: Iterable[UdevDevice], home: Home, told: Told) -> bool:
    """Whether one is none of those that pods got before an edit named the properties that tell it."""
    known = [home.known[number] for number in missing if number in home.known]
    return any(
        (alike := told.get(node.sys_path)) is not None
        and all(each.held and _is_another(each, alike) and not _holds_by(each, alike) for each in known)
        for node in (new if known else ())
    )


def _holds_by(known: Known, alike: Alike) -> bool:
    """Whether a pod holds what had a number under an id that is made of the same properties."""
    return any(value.basis == alike.value.basis for id_, value in known.ids.items() if id_ in known.held)


def _doubted(
    spots: Iterable[Spot], left: Siblings, new: Sequence[UdevDevice], past: Past, told: Told
) -> Siblings:
    """What is known at these spots once it is in doubt whether any of these nodes was there before.

    left  what would be known otherwise, as far as that has changed
    """
    found: dict[Spot, Mapping[int, Seen]] = {}
    for spot in spots:
        known, numbers = past.known_at(spot), left.get(spot) or seen_at(spot, past, ())
        found[spot] = _not_seen(numbers, [n for n in numbers if _may_have_come(known.get(n), new, told)])
    return found
