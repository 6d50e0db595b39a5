"""Where siblings were before: at their spot or, if nothing is remembered there, at another port.

The rules of this file:

* A sibling is the same as before as long as its directory in sysfs has the same path and inode. The kernel
  never uses both again before a reboot, so this also holds over a restart of the daemon (`memory.saved`).
* They may have been at another port if nothing is plugged in there now, and if the serial number says so or
  properties that a rule names as `identity`. A serial number that tells nothing (`fillers`) does not.
* If it may be several ports, the first one counts as long as siblings have the same numbers at all of them.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.part import has_serial
from genericdp.core.inventory.past import Known, Past, Seen
from genericdp.core.inventory.place import Spot, spot_of_node
from genericdp.core.inventory.plugged import Told


class Home(NamedTuple):
    """Siblings, and what is remembered of them where they were before.

    seen       where each of them is now, by sys path
    before     the numbers that are remembered
    known      what is remembered of the device nodes with these numbers
    stayed     the numbers of those that have not left since, by sys path
    is_open    whether they may come from several spots whose numbers differ
    others     what is remembered at the other spots where they may have been
    possible   the spots at other ports where they may have been
    elsewhere  the same, whatever properties say
    """

    seen: Mapping[str, Seen]
    before: Mapping[int, Seen]
    known: Mapping[int, Known]
    stayed: Mapping[str, int]
    is_open: bool
    others: Sequence[Known]
    possible: Sequence[Spot]
    elsewhere: Sequence[Spot]


def home_of(group: Sequence[UdevDevice], spot: Spot, past: Past, told: Told, taken: Container[Spot]) -> Home:
    """Where the siblings at a spot were before.

    taken  the spots where anything is plugged in
    """
    seen = {node.sys_path: Seen(order_of(node), node.incarnation) for node in group}
    here = {each[:2]: path for path, each in seen.items()}
    home, before = spot, _seen_at(spot, past, group)
    have_come = not here.keys() <= {each[:2] for each in before.values()}
    elsewhere = _elsewhere(spot, past, taken) if have_come else ()
    possible = _possible(group, spot, elsewhere, past, told)
    is_open = False
    # Where something is remembered at the spot itself, some may have come, and others not yet.
    if possible and not _is_known(spot, past):
        home, before = possible[0], _seen_at(possible[0], past, group)
        is_open = len({_signature(_seen_at(each, past)) for each in possible}) > 1
    stayed = {here[each[:2]]: number for number, each in before.items() if each[:2] in here}
    # Properties do not say that the other siblings of the unit have not been at a port.
    others = (each for each in (elsewhere if has_serial(spot) else possible) if each != home)
    at_others = [known for each in others for known in past.known_at(each).values()]
    return Home(seen, before, past.known_at(home), stayed, is_open, at_others, possible, elsewhere)


def _is_known(spot: Spot, past: Past) -> bool:
    """Whether something is remembered there. Then its siblings have the numbers that they have there."""
    return spot in past.siblings or any(known.is_there for known in past.known_at(spot).values())


def _elsewhere(spot: Spot, past: Past, taken: Container[Spot]) -> Sequence[Spot]:
    return [each for each in past.alike(spot.serial, spot.within) if each not in taken and each != spot]


def _possible(
    group: Iterable[UdevDevice], spot: Spot, elsewhere: Sequence[Spot], past: Past, told: Told
) -> Sequence[Spot]:
    ids = {id_ for node in group for id_ in told.get(node.sys_path, ())} if elsewhere else ()
    told_at = {at.of_all for id_ in ids for at in past.spots_of(id_)}
    homes = [home for home in elsewhere if home in told_at]
    return elsewhere if not homes and has_serial(spot) else homes


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
