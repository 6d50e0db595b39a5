"""Where siblings were before: at their spot or, if nothing is remembered there, at another one (`former`).

The rules of this file:

* A sibling is the same as before as long as its directory in sysfs has the same path and inode. The kernel
  never uses both again before a reboot, so this also holds over a restart of the daemon (`memory.saved`).
* If it may be one of several ports, the first one counts as long as siblings have the same numbers at all of
  them.
* Siblings of another model that were at this port say nothing about those that are there now, unless a pod
  holds one of them: a unit that changes its mode stays at its port. So these may have been at another one.
* What is found out about a unit with a serial number at one port is remembered at all that it has left. So it
  does not matter at which port it comes next.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from genericdp.core.buses.port import model_of
from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.part import has_serial
from genericdp.core.inventory.past import Known, Past, Seen, Value
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.plugged import Alike, Told
from genericdp.core.inventory.siblings.former import At, Former, elsewhere, merged, seen_at


class Home(NamedTuple):
    """Siblings, and what is remembered of them where they were before.

    seen     where each of them is now, by sys path
    spot     where they were before: here, or at another port
    before   the numbers that are remembered there
    known    what is remembered of the device nodes with these numbers, as far as anything is
    stayed   the numbers of those that have not left since, by sys path
    others   what is remembered at the other spots where they may have been
    former   the other spots where they may have been
    left     those of them where nothing is now -> the numbers that are remembered there
    apart    the spots where nothing is now and where any node of their unit may have been
    is_same  whether the same is remembered there as here: only these siblings can have been there
    is_open  whether the numbers at these spots differ, so that nobody can tell which ones are theirs
    foreign  the numbers in `known` that may be those of another unit, at another spot
    may_be_told  see `Former`
    """

    seen: Mapping[str, Seen]
    spot: Spot
    before: Mapping[int, Seen]
    known: Mapping[int, Known]
    stayed: Mapping[str, int]
    others: Sequence[Known] = ()
    former: Sequence[Spot] = ()
    left: Mapping[Spot, Mapping[int, Seen]] = {}
    apart: Sequence[Spot] = ()
    is_same: bool = False
    is_open: bool = False
    foreign: Collection[int] = ()
    may_be_told: bool = False

    def ids(self, number: int) -> frozenset[str]:
        """The ids of the devices that had a number; none if they are forgotten, and it may be any device."""
        return frozenset(self.known[number].ids) if number in self.known else frozenset()

    def held(self, number: int) -> frozenset[str]:
        """Those of these ids that a pod may hold."""
        return self.known[number].held if number in self.known else frozenset()

    def is_of(self, number: int, alike: Alike) -> bool:
        """Whether a number is that of a value: a pod holds it so, or no other value had it."""
        known = self.known[number]
        return not known.held.isdisjoint(alike.ids) or not _others(known, known.ids, alike.value)

    def may_be_by_id(self, number: int, alike: Alike) -> bool:
        """Whether a number was that of one of these ids, and a pod holds no other value there."""
        known = self.known.get(number)
        if known is None or known.ids.keys().isdisjoint(alike.ids):
            return False
        return not known.held.isdisjoint(alike.ids) or not _others(known, known.held, alike.value)

    def may_be_by_value(self, number: int, value: Value) -> bool:
        """Whether a number was that of a value under whatever id, and a pod holds no other value there."""
        known = self.known.get(number)
        return known is not None and value in known.ids.values() and not _others(known, known.held, value)

    def had_value(self, number: int, value: Value) -> bool:
        """Whether a number was that of a value once, whatever pods hold there now."""
        return number in self.known and value in self.known[number].ids.values()

    def has_said(self, number: int, basis: str) -> bool:
        """Whether it is known which value of these properties what had a number has."""
        known = self.known.get(number)
        if known is None or self.before[number].is_guess:
            return False
        return any(value.basis == basis for value in known.ids.values())

    def may_hold(self, missing: Iterable[int], sure: Iterable[int]) -> bool:
        """Whether a pod may hold one of the missing siblings, or one that was at another spot.

        sure  the numbers of those that are certainly here, whose devices are at no other spot
        """
        here = frozenset[str]().union(*map(self.ids, sure))
        of_missing = (self.known[number] for number in missing if number in self.known)
        others = (each for each in self.others if not each.ids.keys() <= here)
        return any(each.held for each in (*of_missing, *others))


def _others(known: Known, among: Iterable[str], value: Value) -> bool:
    """Whether some of the devices that had a number stand for another value of the same properties."""
    values = (known.ids[id_] for id_ in among if id_ in known.ids)
    return any(each.basis == value.basis and each != value for each in values)


def home_of(group: Sequence[UdevDevice], spot: Spot, past: Past, told: Told, at: At) -> Home:
    """Where the siblings at a spot were before. `at` is what is plugged in."""
    seen = {node.sys_path: Seen(order_of(node), node.incarnation, model=_model_at(node)) for node in group}
    paths = {each[:2]: path for path, each in seen.items()}
    home, known = spot, past.known_at(spot)
    before = _of_model(seen, seen_at(spot, past, group), known)
    former = Former(group, spot, past, told, at)
    spots = [*former.spots, *former.unread]
    if paths.keys() <= {each[:2] for each in before.values()}:
        ports = [*former.left(home, before)] if group else []
        return Home(seen, home, before, known, _stayed(before, paths), former=ports)
    is_open = False
    # Where something of this model is remembered at the spot itself, some may have come, and others not yet.
    if spots and not (before and _is_known(spot, past)):
        home = spots[0]
        before = elsewhere(seen_at(home, past, ()))
        known = past.known_at(home)
        is_open = len({_signature(seen_at(each, past, ())) for each in former.spots or former.unread}) > 1
    left = former.left(home, before)
    is_same = has_serial(spot) and not is_open
    # Some may not have come yet, and be remembered elsewhere.
    elsewhere_too = former.known(before)
    foreign = () if former.is_unit else elsewhere_too.keys() - known.keys() - former.mine(before, known)
    known = {**elsewhere_too, **known}
    if is_same:
        # What came with other values, at other ports, may have had these numbers there.
        same = (each for each in left if home == spot or each in former.spots)
        known = merged((known, *map(past.known_at, same)))
    # If they were here with and without their serial number, a pod may have got one of them either way.
    known = merged((known, *map(past.known_at, former.unread)))
    may_be = former.unread if home in former.unread else former.may_be
    # They may have left a port before another model came there.
    may_be = [*may_be, *former.taken]
    others = [each for other in may_be if other != home for each in past.known_at(other).values()]
    return Home(
        seen,
        home,
        before,
        known,
        _stayed(before, paths),
        others,
        [*former.alike, *former.unread],
        left,
        [each for each in former.may_be if each in former.empty],
        is_same,
        is_open,
        foreign,
        former.may_be_told,
    )


def _stayed(before: Mapping[int, Seen], paths: Mapping[tuple[str, int], str]) -> Mapping[str, int]:
    return {paths[each[:2]]: number for number, each in before.items() if each[:2] in paths}


def _model_at(node: UdevDevice) -> str:
    return "" if node.usb_device is None else model_of(node.usb_device)


def _of_model(
    here: Mapping[str, Seen], before: Mapping[int, Seen], known: Mapping[int, Known]
) -> Mapping[int, Seen]:
    """The numbers at a spot without those of another model than the siblings there now have.

    They may be these siblings in another mode if a pod holds one of them.
    """
    models = frozenset([each.model for each in here.values()])
    if not models or any(each.held for each in known.values()):
        return before
    were = {n: (known[n].models if n in known else ()) or (seen.model,) for n, seen in before.items()}
    return {
        n: seen
        for n, seen in before.items()
        # Those of this model may have been in doubt elsewhere since the others were here.
        if "" in were[n] or seen.model in models or not models.isdisjoint(were[n])
    }


def _is_known(spot: Spot, past: Past) -> bool:
    """Whether something is remembered there. Then its siblings have the numbers that they have there."""
    return spot in past.siblings or any(known.is_there for known in past.known_at(spot).values())


def _signature(numbers: Mapping[int, Seen]) -> Sequence[object]:
    """What tells which siblings come, and in which order."""
    return tuple((number, numbers[number].is_late) for number in sorted(numbers))
