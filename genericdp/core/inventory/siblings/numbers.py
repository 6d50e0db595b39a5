"""Which number each of the siblings at one spot has.

Siblings are nodes that nothing but their order tells apart. The order changes when one of them comes or
goes, so each gets a number once and keeps it.

The rules of this file:

* A sibling is the same as before as long as its directory in sysfs has the same path and inode. The kernel
  never uses both again before a reboot, so this also holds over a restart of the daemon (`memory.saved`).
* What has come is what was missing, if a property that a rule names as `identity` says so: as many have come
  with its value as are missing that had it.
* Of the others, what has come while as many are missing is what was missing, in the order of the paths, or of
  what drivers call the cameras of a board. So a unit that is plugged in again, at any port, or that comes
  after a reboot, is as it was. The order that counts is the one in which they got their numbers: one that was
  bound again has another path.
* If their number differs, or if they have not come in the order of their paths, now or before, nobody can
  tell which one has come. It is **in doubt** as long as a pod may hold one of those that are missing. So is
  one with which udev has not finished, because its properties may tell, and any that comes at the spot of a
  wireless unit without an address. Once more came than were missing, those that come next may be any of them.
* If no pod holds any of them, what has come is taken for the first ones, and nothing is known of the others
  but that there are so many. If all have come, all begin anew.
* Properties tell where a unit was before, and so does a serial number that is no filler (`fillers`).
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import in_path_order
from genericdp.core.inventory.part import has_serial
from genericdp.core.inventory.past import Known, Past, Seen
from genericdp.core.inventory.place import Spot, spot_of_node
from genericdp.core.inventory.plugged import Told
from genericdp.core.usb_port import UsbPort

#: One that has not been seen since its number was a guess.
NOT_SEEN = Seen(is_late=True)


class Numbered(NamedTuple):
    """The siblings at one spot, as in `Plugged`; `in_doubt` are sys paths."""

    numbers: Mapping[str, int]
    siblings: Mapping[int, Seen]
    in_doubt: Collection[str]
    unsettled: Collection[str]
    homes: Sequence[Spot]


def number(
    group: Sequence[UdevDevice], spot: Spot, past: Past, told: Told, taken: Container[Spot] = ()
) -> Numbered:
    """The numbers of the siblings at a spot.

    taken  the spots where anything is plugged in: siblings that have come were not there before
    """
    seen = {node.sys_path: Seen(order_of(node), node.incarnation) for node in group}
    here = {each[:2]: path for path, each in seen.items()}
    before, stayed = _stayed(spot, past, group, here)
    elsewhere = _elsewhere(spot, past, taken) if len(stayed) < len(seen) else ()
    homes = _homes(group, spot, elsewhere, past, told)
    # Where something is remembered at the spot itself, some may have come, and others not yet.
    possible = () if _is_known(spot, past) else homes
    home = possible[0] if possible else spot
    if possible:
        before, stayed = _stayed(home, past, group, here)
    came = [path for path in seen if path not in stayed]
    missing = sorted(before.keys() - stayed.values())
    is_unsettled = bool(came and (missing or elsewhere)) and not spot.is_anonymous
    arrivals = {path: seen[path] for path in came} if is_unsettled else {}
    others = [each for each in (elsewhere if has_serial(spot) else homes) if each != home]
    at_others = [known for each in others for known in past.known_at(each).values()]
    seats = _seats(arrivals, missing, before, past.known_at(home), spot=spot, told=told, others=at_others)
    sure = {**stayed, **seats.taken}
    new = [node for node in group if node.sys_path not in sure]
    missing = [number for number in missing if number not in seats.taken.values()]
    is_home_open = len({_signature(seen_at(each, past)) for each in possible}) > 1
    are_others = bool(missing) and (
        len(new) != len(missing)
        or is_home_open
        or any(before[n].is_late and (len(missing) > 1 or not before[n].order) for n in missing)
        or (len(missing) > 1 and not _came_in_order(spot, [seen[node.sys_path] for node in new]))
    )
    nobody_can_tell = (
        are_others or spot.is_anonymous or seats.disputed or not all(node.initialized for node in new)
    )
    is_in_doubt = bool(new and nobody_can_tell) and (
        _is_any_held(missing, past.known_at(home)) or any(known.is_held for known in at_others)
    )
    if is_in_doubt and (len(new) > len(missing) or is_home_open):
        # Some were never seen there, so even as many as are missing may be those, the next time.
        before = {n: NOT_SEEN if n in missing else seen for n, seen in before.items()}
    if new and are_others and not is_in_doubt:
        before = _guessed(before, missing, len(new), is_all=not sure)
        missing = sorted(before.keys() - sure.values())
    unused = [number for number in range(len(before) + len(new)) if number not in before]
    paths = [node.sys_path for node in new]
    by_order = dict(zip(paths, unused if is_in_doubt else [*missing, *unused], strict=False))
    numbers = {**sure, **by_order}
    if not is_in_doubt:
        sure = numbers
    siblings = {number: each.gone for number, each in before.items()}
    siblings |= {sure[path]: each for path, each in seen.items() if path in sure}
    return Numbered(
        numbers,
        _with_late(spot, siblings, before),
        paths if is_in_doubt else (),
        came if is_unsettled else (),
        homes if told else elsewhere,
    )


def seen_at(spot: Spot, past: Past, here: Iterable[UdevDevice] = ()) -> Mapping[int, Seen]:
    """The numbers that are remembered at a spot, and where each was seen.

    here  the device nodes that are at the spot now
    """
    numbers = past.siblings.get(spot)
    if numbers is not None:
        return numbers
    # A device without siblings is remembered with its device node alone.
    at = {node.sys_path: node for node in here}
    return {n: _seen(each, at.get(each.sys_path)) for n, each in past.known_at(spot).items()}


def _seen(known: Known, now: UdevDevice | None) -> Seen:
    """Where a device node was seen. `now` is what has its path now, which may be another one."""
    if now is None or known.node != spot_of_node(now).port:
        return Seen(known.sys_path)
    return Seen(order_of(now), now.incarnation)


def _signature(numbers: Mapping[int, Seen]) -> Sequence[object]:
    """What tells which siblings come, and in which order."""
    return tuple((number, numbers[number].is_late) for number in sorted(numbers))


def _stayed(
    spot: Spot, past: Past, group: Iterable[UdevDevice], here: Mapping[tuple[str, int], str]
) -> tuple[Mapping[int, Seen], Mapping[str, int]]:
    """The numbers that are remembered at a spot, and those of siblings that have not left since."""
    before = seen_at(spot, past, group)
    return before, {here[each[:2]]: number for number, each in before.items() if each[:2] in here}


def _is_known(spot: Spot, past: Past) -> bool:
    """Whether something is remembered there. Then its siblings have the numbers that they have there."""
    return spot in past.siblings or any(known.is_there for known in past.known_at(spot).values())


def _elsewhere(spot: Spot, past: Past, taken: Container[Spot]) -> Sequence[Spot]:
    """The other spots where they may have been: something is remembered there, and nothing is there now."""
    return [each for each in past.alike(spot.serial, spot.within) if each not in taken and each != spot]


def _homes(
    group: Iterable[UdevDevice], spot: Spot, elsewhere: Sequence[Spot], past: Past, told: Told
) -> Sequence[Spot]:
    """Where siblings were before, as far as properties or the serial number of their unit say."""
    ids = {id_ for node in group for id_ in told.get(node.sys_path, ())} if elsewhere else ()
    told_at = {at.of_all for id_ in ids for at in past.spots_of(id_)}
    homes = [home for home in elsewhere if home in told_at]
    return elsewhere if not homes and has_serial(spot) else homes


def _guessed(
    before: Mapping[int, Seen], missing: Sequence[int], count: int, *, is_all: bool
) -> Mapping[int, Seen]:
    """What is known of siblings once so many that have come are taken for some of the missing ones.

    Nothing is known of those that are left but that there were so many. If all come, all begin anew.
    """
    if is_all:
        return dict.fromkeys(range(len(missing) if count < len(missing) else 0), NOT_SEEN)
    return {number: NOT_SEEN if number in missing else seen for number, seen in before.items()}


def _came_in_order(spot: Spot, seen: Sequence[Seen]) -> bool:
    """Whether siblings, in the order of their paths, have come in this order, as the inodes say.

    That is only expected of a unit on USB, which comes as a whole. Names of drivers are in another order.
    """
    if UsbPort.of_exact(spot.port) is None or not all(each.order.startswith("/") for each in seen):
        return True
    return all(one.incarnation <= other.incarnation for one, other in pairwise(seen))


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
    if keys and not _came_in_order(spot, [siblings[number] for number in present]):
        late.update(unplaced)
    return late


class _Seats(NamedTuple):
    """What properties say of the siblings that have come.

    taken     the numbers of those that they tell, by sys path
    disputed  whether they speak of others, too, but do not tell which one each of them is
    """

    taken: Mapping[str, int]
    disputed: bool


def _seats(
    came: Mapping[str, Seen],
    missing: Sequence[int],
    before: Mapping[int, Seen],
    known: Mapping[int, Known],
    *,
    spot: Spot,
    told: Told,
    others: Sequence[Known],
) -> _Seats:
    """`others` is what is remembered at other spots, and may have come."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for path in came:
        if path in told:
            alike.setdefault(told[path], []).append(path)
    had = {
        ids: [number for number in missing if number in known and not known[number].ids.isdisjoint(ids)]
        for ids in alike
    }
    # After an edit of the rules, a number may be remembered of several values.
    times = Counter(number for numbers in had.values() for number in numbers)
    # One whose device is forgotten may have had any of them.
    is_any_lost = len(came) != len(missing) and any(number not in known for number in missing)
    taken: dict[str, int] = {}
    disputed = False
    for ids, numbers in had.items():
        mine = [each.ids for each in others if not each.ids.isdisjoint(ids)]
        apart = {id_ for each in mine for id_ in each.intersection(ids)}
        apart = apart.difference(*(known[number].ids for number in numbers))
        is_told = len(numbers) == len(alike[ids]) and all(times[number] == 1 for number in numbers)
        is_late = len(numbers) > 1 and any(before[number].is_late for number in numbers)
        is_ordered = not is_late and _came_in_order(spot, [came[path] for path in alike[ids]])
        if is_told and is_ordered and not is_any_lost and not apart:
            taken |= zip(alike[ids], numbers, strict=True)
            continue
        is_one = len(apart) == len(alike[ids]) == 1
        if numbers or (apart and not (is_one and _are_of_one_value(mine, alike))):
            disputed = True
    return _Seats(taken, disputed)


def _are_of_one_value(nodes: Iterable[frozenset[str]], values: Iterable[Collection[str]]) -> bool:
    """Whether each of these remembered nodes (their ids) had one of these values (the ids that have it)."""
    return all(sum(not node.isdisjoint(ids) for ids in values) == 1 for node in nodes)


def _is_any_held(numbers: Iterable[int], known: Mapping[int, Known]) -> bool:
    return any(number in known and known[number].is_held for number in numbers)
