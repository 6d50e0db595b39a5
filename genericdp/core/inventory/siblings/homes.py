"""Where siblings were before: at their spot or, if nothing is remembered there, at another port.

The rules of this file:

* A sibling is the same as before as long as its directory in sysfs has the same path and inode. The kernel
  never uses both again before a reboot, so this also holds over a restart of the daemon (`memory.saved`).
* A serial number says at which other ports a unit may have been: at those where nothing is plugged in now. If
  it tells nothing (`fillers`), only properties that a rule names as `identity` do. Then something else may be
  plugged in at the former port.
* A unit without a serial number behind a dock that has one is known by that of the dock and its port there.
* If it may be one of several ports, the first one counts as long as siblings have the same numbers at all of
  them.
* Siblings that were of another model say nothing about those that are there now, unless a pod holds one of
  them: a unit that changes its mode stays at its port.
* What is found out about a unit with a serial number at one port is remembered at all that it has left. So it
  does not matter at which port it comes next.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from genericdp.core.buses.port import Dock, dock_of, model_of
from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.part import has_serial
from genericdp.core.inventory.past import Known, Past, Seen, Siblings, Value, has_twin
from genericdp.core.inventory.place import Spot, spot_of_node
from genericdp.core.inventory.plugged import Alike, Told

#: The device nodes that are plugged in, by the spot that siblings share.
At = Mapping[Spot, Sequence[UdevDevice]]


class Home(NamedTuple):
    """Siblings, and what is remembered of them where they were before.

    seen     where each of them is now, by sys path
    spot     where they were before: here, or at another port
    before   the numbers that are remembered there
    known    what is remembered of the device nodes with these numbers, as far as anything is
    stayed   the numbers of those that have not left since, by sys path
    others   what is remembered at the other spots where they may have been
    former   the spots at other ports where they may have been
    left     those of them where nothing is now -> the numbers that are remembered there
    apart    the spots where nothing is now and where any node of their unit may have been
    is_same  whether the same is remembered there as here: only these siblings can have been there
    is_open  whether the numbers at these spots differ, so that nobody can tell which ones are theirs
    foreign  the numbers in `known` that may be those of another unit, at another spot
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
    seen = {node.sys_path: Seen(order_of(node), node.incarnation) for node in group}
    paths = {each[:2]: path for path, each in seen.items()}
    home, before, known = spot, seen_at(spot, past, group), past.known_at(spot)
    former = _Former(group, spot, past, told, at)
    if paths.keys() <= {each[:2] for each in before.values()}:
        ports = [*former.left(home, before)] if group else []
        return Home(seen, home, before, known, _stayed(before, paths), former=ports)
    if _are_of_another_model(group, known.values()):
        before = {}
    is_open = False
    # Where something is remembered at the spot itself, some may have come, and others not yet.
    if former.spots and not _is_known(spot, past):
        home = former.spots[0]
        before = elsewhere(seen_at(home, past, ()))
        known = past.known_at(home)
        is_open = len({_signature(seen_at(each, past, ())) for each in former.spots}) > 1
    left = former.left(home, before)
    is_same = former.is_known and not is_open
    # Some may not have come yet, and be remembered elsewhere.
    elsewhere_too = former.known(before)
    foreign = () if former.is_unit else elsewhere_too.keys() - known.keys() - former.mine(before)
    known = {**elsewhere_too, **known}
    if is_same:
        # What came with other values, at other ports, may have had these numbers there.
        same = (each for each in left if home == spot or each in former.spots)
        known = _merged((known, *map(past.known_at, same)))
    others = [each for other in former.may_be if other != home for each in past.known_at(other).values()]
    return Home(
        seen,
        home,
        before,
        known,
        _stayed(before, paths),
        others,
        former.alike,
        left,
        [each for each in former.may_be if each in former.empty],
        is_same,
        is_open,
        foreign,
    )


class _Former:
    """The spots at other ports where siblings may have been before.

    alike   where a node with their serial number and place is remembered
    empty   those of them where nothing is plugged in
    spots   those of them where they were, as far as properties or the serial number say
    may_be  those where any node of their unit may have been
    is_unit whether the serial number says that no other unit was there
    """

    def __init__(self, group: Iterable[UdevDevice], spot: Spot, past: Past, told: Told, at: At) -> None:
        self._spot, self._past = spot, past
        dock = None if has_serial(spot) else _dock_of(group)
        behind = {*past.behind(dock, spot.within)} - {spot} if dock is not None else set[Spot]()
        #: Whether the serial number of the unit, or of its dock, says at which other ports it was.
        self.is_known = has_serial(spot) or bool(behind)
        unit = spot._replace(serial=dock.serial) if dock is not None and behind else spot
        self.is_unit = self.is_known and not has_twin(past.twins, unit)
        self.alike = sorted(behind or {*past.alike(spot.serial, spot.within)} - {spot})
        # Asked in every step for all siblings, and hardly any unit has been at another port.
        ids = _ids_of(group, told) if self.alike else frozenset[str]()
        told_at = {each.of_all for id_ in ids for each in past.spots_of(id_)}
        self._told = told_at
        self.empty = [each for each in self.alike if each not in at]
        spots = [each for each in self.empty if each in told_at]
        if self.is_known:
            # Properties do not say that the other siblings of the unit have not been at a port.
            self.alike = self.may_be = self.empty
            self.spots: Sequence[Spot] = spots or self.empty
        else:
            taken = (each for each in self.alike if each in at and each in told_at)
            spots += [each for each in taken if ids.isdisjoint(_ids_of(at[each], told))]
            self.spots = self.may_be = spots

    def left(self, home: Spot, before: Mapping[int, Seen]) -> Siblings:
        """The numbers that are remembered where these siblings were before they came here.

        Those are also the ports where they were last seen at the paths that they had at home.
        """
        were = {spot: elsewhere(seen_at(spot, self._past, ())) for spot in self.empty}
        there, at_home = (() if home == self._spot else self.spots), gone(before)
        return {spot: numbers for spot, numbers in were.items() if spot in there or gone(numbers) == at_home}

    def known(self, before: Mapping[int, Seen]) -> Mapping[int, Known]:
        """What is remembered at these spots of the siblings with the numbers that they had at home.

        Other units may have been there. A property says that it was this one, or the path (`_mine_at`).
        """
        every: list[Mapping[int, Known]] = []
        for spot in self.empty:
            known = self._past.known_at(spot)
            is_told = self.is_unit or spot in self._told
            mine = known.keys() if is_told else known.keys() & self._mine_at(spot, before)
            every.append({number: known[number] for number in mine})
        return _merged(every)

    def mine(self, before: Mapping[int, Seen]) -> set[int]:
        """The numbers that certainly were those of the same siblings at one of these spots."""
        return set().union(*(self._mine_at(spot, before) for spot in self.empty))

    def _mine_at(self, spot: Spot, before: Mapping[int, Seen]) -> set[int]:
        """The numbers of those that were last seen at the path that is remembered at home, too."""
        seen = seen_at(spot, self._past, ())
        both = seen.keys() & before
        return {number for number in both if seen[number].order == before[number].order != ""}


def _merged(every: Iterable[Mapping[int, Known]]) -> dict[int, Known]:
    """What is remembered at several spots where siblings have the same numbers."""
    found: dict[int, Known] = {}
    for known in every:
        for number, more in known.items():
            one = found.setdefault(number, more)
            found[number] = one._replace(held=one.held | more.held, ids={**one.ids, **more.ids})
    return found


def _dock_of(group: Iterable[UdevDevice]) -> Dock | None:
    usb = next((usb for node in group if (usb := node.usb_device) is not None), None)
    return None if usb is None else dock_of(usb)


def _ids_of(nodes: Iterable[UdevDevice], told: Told) -> frozenset[str]:
    """The ids that these nodes may have, as far as properties tell."""
    return frozenset(id_ for node in nodes if node.sys_path in told for id_ in told[node.sys_path].ids)


def _stayed(before: Mapping[int, Seen], paths: Mapping[tuple[str, int], str]) -> Mapping[str, int]:
    return {paths[each[:2]]: number for number, each in before.items() if each[:2] in paths}


def gone(numbers: Mapping[int, Seen]) -> Mapping[int, Seen]:
    """What is known of siblings once all of them have left."""
    return {number: seen.gone for number, seen in numbers.items()}


def elsewhere(numbers: Mapping[int, Seen]) -> Mapping[int, Seen]:
    """What is known of siblings at a port where they may have been before."""
    return {number: seen.elsewhere for number, seen in numbers.items()}


def _are_of_another_model(group: Iterable[UdevDevice], known: Collection[Known]) -> bool:
    """Whether all siblings that are remembered were of another model, and no pod holds any of them."""
    units = [usb for node in group if (usb := node.usb_device) is not None]
    models = frozenset[str]().union(*(each.models for each in known))
    if not units or not models or "" in models or any(each.held for each in known):
        return False
    return models.isdisjoint(map(model_of, units))


def _is_known(spot: Spot, past: Past) -> bool:
    """Whether something is remembered there. Then its siblings have the numbers that they have there."""
    return spot in past.siblings or any(known.is_there for known in past.known_at(spot).values())


def seen_at(spot: Spot, past: Past, here: Iterable[UdevDevice]) -> Mapping[int, Seen]:
    """The numbers that are remembered at a spot, and where each was seen.

    here  the siblings that are plugged in now: one of them may be the one that was there
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
