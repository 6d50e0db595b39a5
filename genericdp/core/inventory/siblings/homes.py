"""Where siblings were before: at their spot or, if nothing is remembered there, at another port.

The rules of this file:

* A sibling is the same as before as long as its directory in sysfs has the same path and inode. The kernel
  never uses both again before a reboot, so this also holds over a restart of the daemon (`memory.saved`).
* They may have been at another port if nothing is plugged in there now, and if the serial number says so or
  properties that a rule names as `identity`. A serial number that tells nothing (`fillers`) does not.
* If it may be several ports, the first one counts as long as siblings have the same numbers at all of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple

from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.part import has_serial
from genericdp.core.inventory.past import Known, Past, Seen
from genericdp.core.inventory.place import Spot, spot_of_node
from genericdp.core.inventory.plugged import Told

#: The device nodes that are plugged in, by the spot that siblings share.
At = Mapping[Spot, Sequence[UdevDevice]]


class Home(NamedTuple):
    """Siblings, and what is remembered of them where they were before.

    seen      where each of them is now, by sys path
    spot      where they were before: the same spot, or one at another port
    before    the numbers that are remembered there
    known     what is remembered of the device nodes with these numbers
    held      those of these numbers that a pod may hold
    stayed    the numbers of those that have not left since, by sys path
    is_open   whether they may come from several spots whose numbers differ
    others    what is remembered at the other spots where they may have been
    possible  the spots at other ports where they may have been
    may_move  whether properties may tell that they were at another port
    """

    seen: Mapping[str, Seen]
    spot: Spot
    before: Mapping[int, Seen]
    known: Mapping[int, Known]
    held: frozenset[int]
    stayed: Mapping[str, int]
    is_open: bool
    others: Sequence[Known]
    possible: Sequence[Spot]
    may_move: bool


def home_of(group: Sequence[UdevDevice], spot: Spot, past: Past, told: Told, at: At) -> Home:
    """Where the siblings at a spot were before. `at` is what is plugged in."""
    seen = {node.sys_path: Seen(order_of(node), node.incarnation) for node in group}
    here = {each[:2]: path for path, each in seen.items()}
    home, before = spot, _seen_at(spot, past, group)
    have_come = not here.keys() <= {each[:2] for each in before.values()}
    alike = [each for each in past.alike(spot.serial, spot.within) if each != spot] if have_come else []
    elsewhere = [each for each in alike if each not in at]
    ids = frozenset(id_ for node in group for id_ in told.get(node.sys_path, ())) if alike else frozenset()
    numbers = _numbers_of(ids, past)
    possible = [each for each in elsewhere if each in numbers]
    if has_serial(spot):
        possible = possible or elsewhere
    else:
        # Another unit may have taken the port.
        possible += [
            each for each in alike if each in at and each in numbers and not _is_told(at[each], told, ids)
        ]

    def before_at(other: Spot) -> Mapping[int, Seen]:
        return dict.fromkeys(numbers[other], Seen()) if other in at else _seen_at(other, past, group)

    is_open = False
    # Where something is remembered at the spot itself, some may have come, and others not yet.
    if possible and not _is_known(spot, past):
        home, before = possible[0], before_at(possible[0])
        is_open = len({_signature(before_at(each)) for each in possible}) > 1
    stayed = {here[each[:2]]: number for number, each in before.items() if each[:2] in here}
    known = past.known_at(home)
    lent = _lent(before.keys() - known.keys(), elsewhere, past) if home == spot else {}
    held = frozenset(n for n, each in chain(known.items(), lent.items()) if each.is_held)
    # Properties do not say that the other siblings of the unit have not been at a port.
    rest = elsewhere if has_serial(spot) else possible
    others = [known for each in rest if each != home for known in past.known_at(each).values()]
    if not has_serial(spot):
        lent = {n: each for n, each in lent.items() if not each.ids.isdisjoint(ids)}
    return Home(
        seen,
        home,
        before,
        {**lent, **known},
        held,
        stayed,
        is_open,
        others,
        possible if told else elsewhere,
        bool(alike),
    )


def _numbers_of(ids: Iterable[str], past: Past) -> Mapping[Spot, Collection[int]]:
    """The spots where the nodes of these devices are or were -> their numbers there."""
    found: dict[Spot, set[int]] = {}
    for id_ in ids:
        for spot in past.spots_of(id_):
            found.setdefault(spot.of_all, set()).add(spot.number)
    return found


def _is_told(nodes: Iterable[UdevDevice], told: Told, ids: Collection[str]) -> bool:
    """Whether properties say of one of these nodes that it may have one of these ids."""
    return any(id_ in ids for node in nodes for id_ in told.get(node.sys_path, ()))


def _lent(numbers: AbstractSet[int], elsewhere: Iterable[Spot], past: Past) -> Mapping[int, Known]:
    """What is remembered of device nodes that had these numbers at other ports, and have not come yet."""
    found: dict[int, Known] = {}
    for spot in elsewhere if numbers else ():
        for number in past.known_at(spot).keys() & numbers:
            each = past.known_at(spot)[number]
            before = found.get(number, Known("", "", is_held=False))
            found[number] = before._replace(is_held=before.is_held or each.is_held, ids=before.ids | each.ids)
    return found


def _is_known(spot: Spot, past: Past) -> bool:
    """Whether something is remembered there. Then its siblings have the numbers that they have there."""
    return spot in past.siblings or any(known.is_there for known in past.known_at(spot).values())


def _seen_at(spot: Spot, past: Past, here: Iterable[UdevDevice] = ()) -> Mapping[int, Seen]:
    """The numbers that are remembered at a spot, and where each was seen.

    here  the device nodes that are plugged in now, wherever they were
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
