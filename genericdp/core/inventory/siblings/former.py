"""Where siblings may have been before: at other ports, or at their own one with another serial number.

The rules of this file:

* A serial number says at which other ports a unit may have been: at those where nothing is plugged in now.
  The parts of a dock may share one, and a unit that changes its mode stays at its port. So it was not at a
  port where only other models were, unless properties that a rule names as `identity` say that it was.
* If the serial number tells nothing (`fillers`), only these properties do. Then something else may be plugged
  in at the former port.
* A unit without a serial number behind a dock that has one is known by that of the dock and its port there.
  Something else may be plugged in at the former port of the dock.
* The kernel may have failed to read the serial number of a unit, now or before. So two units of one model at
  one port may be the same one if exactly one of them has a serial number, and those at two ports may be if
  these properties say so.
* A kit has several units under one id. So where an id was with the model of these siblings, it says nothing
  of the ports of other models.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from genericdp.core.buses.port import Dock, dock_of, model_of
from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.part import has_serial, has_twin
from genericdp.core.inventory.past import Known, Past, Seen, Siblings
from genericdp.core.inventory.place import Spot, may_be_model, spot_of_node
from genericdp.core.inventory.plugged import Told

#: The device nodes that are plugged in, by the spot that siblings share.
At = Mapping[Spot, Sequence[UdevDevice]]


class Former:
    """The other spots where siblings may have been before.

    alike   where a node of their model is remembered with their place and serial number, or port in a dock
    empty   those of them where nothing is plugged in
    taken   those of them where one of their model was and another model is plugged in now
    spots   those of them where they were, as far as properties or the serial number say
    may_be  those where any node of their unit may have been
    unread  the spots where they were if their serial number could not be read, now or then: at their own port
            and where properties say so
    may_be_told  whether properties, once they are known, may say that they were at one more
    is_known  whether the serial number of their unit, or of its dock, says at which ports it was
    is_unit whether the serial number says that no other unit was there
    """

    def __init__(self, group: Iterable[UdevDevice], spot: Spot, past: Past, told: Told, at: At) -> None:
        self._spot, self._past = spot, past
        behind = _behind_its_dock(group, spot, past, at)
        self.is_known = has_serial(spot) or bool(behind)
        self.is_unit = has_serial(spot) and not has_twin(past.twins, spot)
        self.alike = sorted(behind or {*past.alike("serial", spot.serial, spot.within)} - {spot})
        # Asked in every step for all siblings, and hardly any unit has been at another port.
        self.may_be_told = bool(self.alike or _of_other_kind(spot, past))
        ids = _ids_of(group, told) if self.may_be_told else frozenset[str]()
        model, told_at = _model_of(group), {each.of_all for id_ in ids for each in past.spots_of(id_)}
        ever = {each for id_ in ids for each in past.alike("id", id_, spot.within)}
        mine = {each for each in ever if _was_at(model, each, past)}
        told_at = told_at & mine or mine or told_at
        self._told = told_at
        unread = {each for each in mine if bool(each.serial) is not bool(spot.serial)}
        unread.update(_with_another_serial(group, spot, past))
        self.unread = sorted(each for each in unread if each not in at)
        self.alike = [each for each in self.alike if each in told_at or _was_at(model, each, past)]
        self.empty = [each for each in self.alike if each not in at]
        spots = [each for each in self.empty if each in told_at]
        self.taken: Sequence[Spot] = ()
        if self.is_known:
            # Another unit with their values may have been there. That says nothing of the numbers of these.
            taken = (each for each in self.alike if each in at and _was_at(model, each, past))
            self.taken = [each for each in taken if not may_be_model(model, _model_of(at[each]))]
            # Properties do not say that the other siblings of the unit have not been at a port.
            self.alike = self.may_be = self.alike if behind else self.empty
            self.spots: Sequence[Spot] = spots or self.alike
        else:
            taken = (each for each in self.alike if each in at and each in told_at)
            spots += [each for each in taken if ids.isdisjoint(_ids_of(at[each], told))]
            self.spots = spots
            # What a pod has may be remembered where its id was before.
            self.may_be = [*spots, *(each for each in self.empty if each in mine and each not in spots)]

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
        return merged(every)

    def mine(self, before: Mapping[int, Seen], known: Mapping[int, Known]) -> set[int]:
        """The numbers that certainly were those of the same siblings at one of these spots.

        known  what is remembered at home of some of the siblings
        """
        mine = (self._mine_at(spot, before) | self._all_at(spot, before, known) for spot in self.empty)
        return set().union(*mine)

    def _mine_at(self, spot: Spot, before: Mapping[int, Seen]) -> set[int]:
        """The numbers of those that were last seen at the path that is remembered at home, too."""
        seen = seen_at(spot, self._past, ())
        both = seen.keys() & before
        return {number for number in both if seen[number].order == before[number].order != ""}

    def _all_at(self, spot: Spot, before: Mapping[int, Seen], known: Mapping[int, Known]) -> set[int]:
        """All numbers at a spot if each is that of the same sibling at home, as the ids say.

        A card that moves takes along the ids of all its nodes. What a pod has is remembered at its last port
        only, so the other ones tell that this was one of them, too.
        """
        there, seen = self._past.known_at(spot), seen_at(spot, self._past, ())
        is_exact = not any(each.is_late or each.is_mixed for each in (*seen.values(), *before.values()))
        ids = {number: there[number].ids.keys() for number in there.keys() & known}
        is_same = there.keys() == before.keys() and ids == {n: each.ids.keys() for n, each in known.items()}
        return {*there} if is_exact and is_same else set()


def merged(every: Iterable[Mapping[int, Known]]) -> dict[int, Known]:
    """What is remembered at several spots where siblings have the same numbers."""
    found: dict[int, Known] = {}
    for known in every:
        for number, more in known.items():
            one = found.setdefault(number, more)
            found[number] = one._replace(held=one.held | more.held, ids={**one.ids, **more.ids})
    return found


def _behind_its_dock(group: Iterable[UdevDevice], spot: Spot, past: Past, at: At) -> set[Spot]:
    """Where a unit without a serial number was at the same port of the same dock, which is not there now."""
    dock = None if has_serial(spot) else _dock_of(group)
    if dock is None:
        return set()
    spots = {*past.alike("dock", dock.serial, dock.at, spot.within)} - {spot}
    here = ((each, _dock_of(at.get(each, ()))) for each in spots)
    return {each for each, other in here if other is None or other.serial != dock.serial}


def _dock_of(group: Iterable[UdevDevice]) -> Dock | None:
    usb = _unit_of(group)
    return None if usb is None else dock_of(usb)


def _with_another_serial(group: Iterable[UdevDevice], spot: Spot, past: Past) -> Iterator[Spot]:
    """Where a unit of this model is remembered at this port, if only one of the two has a serial number."""
    model = _model_of(group)
    for other in past.alike("port", spot.port, spot.within):
        if bool(other.serial) is bool(spot.serial):
            continue
        models = (each for known in past.known_at(other).values() for each in known.models)
        if any(may_be_model(model, each) for each in models):
            yield other


def _of_other_kind(spot: Spot, past: Past) -> Collection[Spot]:
    """Where units with a serial number are remembered if this one has none, and the other way round."""
    return past.alike("serial", "", spot.within) if spot.serial else past.alike("any serial", spot.within)


def _was_at(model: str, spot: Spot, past: Past) -> bool:
    """Whether a unit of this model may have been at a spot."""
    models = {each for known in past.known_at(spot).values() for each in known.models}
    # Those of this model may have been in doubt elsewhere since the others were there.
    models |= {seen.model for seen in past.siblings.get(spot, {}).values()}
    return any(may_be_model(model, each) for each in models)


def _model_of(group: Iterable[UdevDevice]) -> str:
    usb = _unit_of(group)
    return "" if usb is None else model_of(usb)


def _unit_of(group: Iterable[UdevDevice]) -> UdevDevice | None:
    return next((usb for node in group if (usb := node.usb_device) is not None), None)


def _ids_of(nodes: Iterable[UdevDevice], told: Told) -> frozenset[str]:
    """The ids that these nodes may have, as far as properties tell."""
    return frozenset(id_ for node in nodes if node.sys_path in told for id_ in told[node.sys_path].ids)


def gone(numbers: Mapping[int, Seen]) -> Mapping[int, Seen]:
    """What is known of siblings once all of them have left."""
    return {number: seen.gone for number, seen in numbers.items()}


def elsewhere(numbers: Mapping[int, Seen]) -> Mapping[int, Seen]:
    """What is known of siblings at a port where they may have been before."""
    return {number: seen.elsewhere for number, seen in numbers.items()}


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
