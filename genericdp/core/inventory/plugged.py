"""The device nodes that are plugged in, each at its spot, and which number each sibling has.

Siblings are nodes that nothing but their order tells apart. The order changes when one of them comes or
goes, so each gets a number once and keeps it.

The rules of this file:

* A sibling is the same as before as long as its directory in sysfs has the same path and inode. The kernel
  never uses both again before a reboot, so this also holds over a restart of the daemon (`memory.saved`).
* What has come is what was missing, if a property that a rule names as `identity` says so: as many have come
  with its value as are missing that had it.
* Of the others, what has come while as many are missing is what was missing, in the order of the paths, or of
  what drivers call the cameras of a board. So a unit that is plugged in again, or that comes after a reboot,
  is as it was.
* If their number differs, nobody can tell which one has come. It is **in doubt** as long as a pod may hold
  one of those that are missing. So is one with which udev has not finished, because its properties may tell,
  and any that comes at the spot of a wireless unit without an address.
* A unit that comes at another port is as it was there, in the order of the paths, once as many siblings are
  there. Until then nobody can tell which ones they are, if a pod may hold one.
* Which siblings a device node has depends on what is plugged in, never on what the rules take.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from genericdp.core.buses.port import may_be_at, unit_on_usb
from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.past import NO_PAST, Known, Past, Seen, Siblings
from genericdp.core.inventory.place import UNKNOWN, Spot, locate

#: A device node, and the spot that it shares with its siblings.
Sighting = tuple[UdevDevice, Spot]

#: Of siblings that a rule tells by properties: sys path -> the ids that it and those with the same values may
#: have. Such an id means these values, so the number that is remembered of it is that of the same sibling.
Told = Mapping[str, tuple[str, ...]]
NOTHING_TOLD: Told = {}


@dataclass(frozen=True, slots=True)
class Plugged:
    """The device nodes that are plugged in.

    groups    the spot that siblings share -> the siblings, in their order
    numbers   sys path -> number, of all siblings
    siblings  the numbers of all siblings, with those that are missing
    in_doubt  the spot that siblings share -> those of which nobody can say which ones they are
    unsettled the sys paths of those that have come while some were missing, and that properties may tell
    unread    the paths of what cannot be read, and may be plugged in all the same
    """

    groups: Mapping[Spot, Sequence[UdevDevice]] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    siblings: Siblings = field(default_factory=dict)
    in_doubt: Mapping[Spot, Sequence[UdevDevice]] = field(default_factory=dict)
    unsettled: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()

    def nodes_at(self, spot: Spot) -> Sequence[UdevDevice]:
        """The device nodes that may be the one that was at a spot."""
        group = self.groups.get(spot.of_all, ())
        if spot.number == UNKNOWN:
            return group
        found = [node for node in group if self.numbers.get(node.sys_path, 0) == spot.number]
        return found or self.in_doubt.get(spot.of_all, ())

    def is_taken(self, spot: Spot) -> bool:
        """Whether a device node is plugged in at a spot, or may be."""
        return bool(self.nodes_at(spot)) or self.is_unread(spot)

    def is_unread(self, spot: Spot) -> bool:
        """Whether something that cannot be read may be at a spot."""
        return any(may_be_at(spot.port, path) for path in self.unread)

    def is_coming(self, spot: Spot) -> bool:
        """Whether the unit that was at a spot may be what udev has not finished with, wherever that is.

        Or what has never been read on USB, where the kernel does not answer while a driver probes a unit.
        """
        return (
            any(
                (other.serial, other.within) == (spot.serial, spot.within)
                and not all(node.initialized for node in nodes)
                for other, nodes in self.groups.items()
            )
            or self._has_strangers()
        )

    def _has_strangers(self) -> bool:
        """Whether there is a unit on USB of which nothing has ever been read."""
        unread = {unit for path in self.unread if (unit := unit_on_usb(path)) is not None}
        nodes = (node for group in self.groups.values() for node in group)
        return not unread <= ({unit_on_usb(node.sys_path) for node in nodes} if unread else unread)

    def is_in_doubt(self, spot: Spot) -> bool:
        """Whether nobody can say which sibling the node at a spot is."""
        return any(self.numbers[node.sys_path] == spot.number for node in self.in_doubt.get(spot.of_all, ()))

    def remembered(self, spots: Iterable[Spot]) -> Siblings:
        """The numbers to remember when these are the spots of remembered devices.

        One that is missing and that no such device has is free again, unless all of them are missing. Where
        one is in doubt, there are several.
        """
        mine = {spot for spot in spots if spot.of_all in self.siblings}
        shared = {spot.of_all for spot in mine}
        kept: dict[Spot, Mapping[int, Seen]] = {}
        for spot, numbers in self.siblings.items():
            if spot in shared:
                here = {number for number, seen in numbers.items() if seen.is_there}
                left = {
                    number: seen
                    for number, seen in numbers.items()
                    if not here or number in here or spot._replace(number=number) in mine
                }
                if left.keys() - {0} or spot in self.in_doubt or (here and spot.is_anonymous):
                    kept[spot] = left
        return kept

    def count_at(self, spot: Spot) -> int:
        """How many siblings are plugged in at a spot that they share."""
        return len(self.groups.get(spot.of_all, ()))


NOTHING_PLUGGED = Plugged()


@dataclass(frozen=True, slots=True)
class Groups:
    """The device nodes that are plugged in, by the spot that siblings share.

    at      spot -> the nodes there, in their order
    shared  the spots of siblings: where there are several, and where there may be others later
    """

    at: Mapping[Spot, Sequence[UdevDevice]] = field(default_factory=dict)
    shared: Mapping[Spot, None] = field(default_factory=dict)

    def after(self, left: Iterable[Sighting], came: Iterable[Sighting]) -> "Groups":
        """The groups after these nodes have left and those have come. Costs what changed, and two copies."""
        changed: dict[Spot, dict[str, UdevDevice]] = {}

        def group_at(spot: Spot) -> dict[str, UdevDevice]:
            if spot not in changed:
                changed[spot] = {node.sys_path: node for node in self.at.get(spot, ())}
            return changed[spot]

        for node, spot in left:
            del group_at(spot)[node.sys_path]
        for node, spot in came:
            group_at(spot)[node.sys_path] = node
        at, shared = {**self.at}, {**self.shared}
        for spot, group in changed.items():
            nodes = tuple(group.values())
            at.pop(spot, None)
            shared.pop(spot, None)
            if nodes:
                at[spot] = nodes
            if len(nodes) > 1:
                at[spot] = tuple(sorted(nodes, key=_order))
            if len(nodes) > 1 or (nodes and spot.is_anonymous):
                shared[spot] = None
        return Groups(at, shared)

    def numbered(self, past: Past = NO_PAST, told: Told = NOTHING_TOLD) -> Plugged:
        """The same nodes, each sibling with its number."""
        numbers: dict[str, int] = {}
        siblings: dict[Spot, Mapping[int, Seen]] = {}
        in_doubt: dict[Spot, Sequence[UdevDevice]] = {}
        unsettled: set[str] = set()
        incomplete = self._incomplete(past)
        for spot in dict.fromkeys((*self.shared, *past.siblings, *incomplete)):
            group = self.at.get(spot, ())
            numbered = _number(group, spot, past, told, is_complete=spot not in incomplete)
            numbers |= numbered.numbers
            if numbered.siblings:
                siblings[spot] = numbered.siblings
            unsettled.update(numbered.unsettled)
            if numbered.in_doubt:
                in_doubt[spot] = [node for node in group if node.sys_path in numbered.in_doubt]
        return Plugged(self.at, numbers, siblings, in_doubt, frozenset(unsettled))

    def _incomplete(self, past: Past) -> Collection[Spot]:
        """Where units have come from another port without all of the siblings of which a pod may hold one."""
        gone = {
            (spot.serial, spot.within): len(numbers)
            for spot, numbers in past.siblings.items()
            if spot.serial and spot not in self.at and _is_any_held(numbers, past.known_at(spot))
        }
        return [
            spot
            for spot, group in (self.at.items() if gone else ())
            if len(group) != gone.get((spot.serial, spot.within), len(group))
            and not (spot in past.siblings or past.known_at(spot))
        ]


NO_GROUPS = Groups()


def plugged_of(devices: Iterable[UdevDevice], past: Past = NO_PAST, told: Told = NOTHING_TOLD) -> Plugged:
    """The device nodes among udev devices."""
    nodes = (device for device in devices if device.device_node is not None)
    return NO_GROUPS.after((), ((node, locate(node).spot) for node in nodes)).numbered(past, told)


class _Numbered(NamedTuple):
    """The siblings at one spot, as in `Plugged`; `in_doubt` are sys paths."""

    numbers: Mapping[str, int]
    siblings: Mapping[int, Seen]
    in_doubt: Collection[str]
    unsettled: Collection[str]


def _number(
    group: Sequence[UdevDevice], spot: Spot, past: Past, told: Told, *, is_complete: bool
) -> _Numbered:
    here = {Seen(order_of(node), node.incarnation): node.sys_path for node in group}
    before = past.siblings.get(spot)
    if before is None:
        # A device without siblings is remembered with its path alone.
        seen_at = {path: seen for seen, path in here.items()}
        before = {
            n: seen_at.get(each.sys_path, Seen(each.sys_path)) for n, each in past.known_at(spot).items()
        }
    stayed = {here[seen]: number for number, seen in before.items() if seen in here}
    came = [node.sys_path for node in group if node.sys_path not in stayed]
    missing = sorted(before.keys() - stayed.values(), key=lambda n: (natural(before[n].order), n))
    is_unsettled = bool(came and missing) and not spot.is_anonymous
    seats = _seats(came, missing, spot, past, told) if is_unsettled else _NO_SEATS
    sure = {**stayed, **seats.taken}
    new = [node for node in group if node.sys_path not in sure]
    missing = [number for number in missing if number not in seats.taken.values()]
    unused = [number for number in range(len(before) + len(new)) if number not in before]
    nobody_can_tell = (
        len(new) != len(missing)
        or spot.is_anonymous
        or seats.disputed
        or not all(node.initialized for node in new)
    )
    is_in_doubt = not is_complete or (
        new and missing and nobody_can_tell and _is_any_held(missing, past.known_at(spot))
    )
    paths = [node.sys_path for node in new]
    by_order = dict(zip(paths, unused if is_in_doubt else [*missing, *unused], strict=False))
    numbers = {**sure, **by_order}
    if not is_in_doubt:
        sure = numbers
    siblings = {number: Seen(seen.order) for number, seen in before.items()}
    siblings |= {sure[path]: seen for seen, path in here.items() if path in sure}
    return _Numbered(numbers, siblings, paths if is_in_doubt else (), came if is_unsettled else ())


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


def _order(node: UdevDevice) -> tuple[object, ...]:
    return natural(order_of(node))


def _is_any_held(numbers: Iterable[int], known: Mapping[int, Known]) -> bool:
    return any(number in known and known[number].is_held for number in numbers)
