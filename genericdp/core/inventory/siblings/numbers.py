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
  after a reboot, is as it was.
* If their number differs, nobody can tell which one has come. It is **in doubt** as long as a pod may hold
  one of those that are missing. So is one with which udev has not finished, because its properties may tell,
  and any that comes at the spot of a wireless unit without an address.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.past import Known, Past, Seen
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.plugged import Told

NOTHING_HERE: Mapping[Seen, str] = {}


class Numbered(NamedTuple):
    """The siblings at one spot, as in `Plugged`; `in_doubt` are sys paths."""

    numbers: Mapping[str, int]
    siblings: Mapping[int, Seen]
    in_doubt: Collection[str]
    unsettled: Collection[str]


def number(
    group: Sequence[UdevDevice], spot: Spot, past: Past, told: Told, *, homes: Sequence[Spot] = ()
) -> Numbered:
    """The numbers of the siblings at a spot.

    homes  the spots of which one is where they were before, if they have come from another port
    """
    here = {Seen(order_of(node), node.incarnation): node.sys_path for node in group}
    home = homes[0] if homes else spot
    before = seen_at(home, past, here)
    stayed = {here[seen]: number for number, seen in before.items() if seen in here}
    came = [node.sys_path for node in group if node.sys_path not in stayed]
    missing = [number for number in in_order(before) if number not in stayed.values()]
    is_unsettled = bool(came and missing) and not spot.is_anonymous
    seats = _seats(came, missing, home, past, told) if is_unsettled else _NO_SEATS
    sure = {**stayed, **seats.taken}
    new = [node for node in group if node.sys_path not in sure]
    missing = [number for number in missing if number not in seats.taken.values()]
    unused = [number for number in range(len(before) + len(new)) if number not in before]
    nobody_can_tell = (
        len(new) != len(missing)
        or len(homes) > 1
        or spot.is_anonymous
        or seats.disputed
        or not all(node.initialized for node in new)
    )
    is_in_doubt = bool(new and missing and nobody_can_tell) and (
        _is_any_held(missing, past.known_at(home))
        or any(known.is_held for each in homes[1:] for known in past.known_at(each).values())
    )
    paths = [node.sys_path for node in new]
    by_order = dict(zip(paths, unused if is_in_doubt else [*missing, *unused], strict=False))
    numbers = {**sure, **by_order}
    if not is_in_doubt:
        sure = numbers
    siblings = {number: Seen(seen.order) for number, seen in before.items()}
    siblings |= {sure[path]: seen for seen, path in here.items() if path in sure}
    return Numbered(numbers, siblings, paths if is_in_doubt else (), came if is_unsettled else ())


def seen_at(spot: Spot, past: Past, here: Mapping[Seen, str] = NOTHING_HERE) -> Mapping[int, Seen]:
    """The numbers that are remembered at a spot, and where each was seen.

    here  the siblings that are there now, with their sys paths
    """
    numbers = past.siblings.get(spot)
    if numbers is not None:
        return numbers
    # A device without siblings is remembered with its path alone.
    at = {path: seen for seen, path in here.items()}
    return {n: at.get(each.sys_path, Seen(each.sys_path)) for n, each in past.known_at(spot).items()}


def in_order(numbers: Mapping[int, Seen]) -> tuple[int, ...]:
    """The numbers of siblings in the order in which these come."""
    return tuple(sorted(numbers, key=lambda n: (natural(numbers[n].order), n)))


class _Seats(NamedTuple):
    """What properties say of the siblings that have come.

    taken     the numbers of those that they tell, by sys path
    disputed  whether they speak of others, too, but do not tell which one each of them is
    """

    taken: Mapping[str, int]
    disputed: bool


_NO_SEATS = _Seats({}, disputed=False)


def _seats(came: Iterable[str], missing: Iterable[int], spot: Spot, past: Past, told: Told) -> _Seats:
    alike: dict[tuple[str, ...], list[str]] = {}
    for path in came:
        if path in told:
            alike.setdefault(told[path], []).append(path)
    had: dict[tuple[str, ...], list[int]] = {}
    for ids in alike:
        spots = {each for id_ in ids for each in past.spots_of(id_)}
        had[ids] = [number for number in missing if spot._replace(number=number) in spots]
    # After an edit of the rules, a number may be remembered of several values.
    times = Counter(number for numbers in had.values() for number in numbers)
    taken: dict[str, int] = {}
    disputed = False
    for ids, numbers in had.items():
        if len(numbers) == len(alike[ids]) and all(times[number] == 1 for number in numbers):
            taken |= zip(alike[ids], numbers, strict=True)
        else:
            disputed = disputed or bool(numbers)
    return _Seats(taken, disputed)


def _is_any_held(numbers: Iterable[int], known: Mapping[int, Known]) -> bool:
    return any(number in known and known[number].is_held for number in numbers)
