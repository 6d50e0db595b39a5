"""The device nodes that are plugged in, each at its spot, and which number each sibling has.

Siblings are nodes that nothing but their order tells apart. `genericdp.core.inventory.siblings` numbers them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from genericdp.core.buses.port import Dock, are_two_docks, dock_of, may_be_at, unit_on_usb
from genericdp.core.device import VIRTUAL, UdevDevice
from genericdp.core.inventory.part import has_serial
from genericdp.core.inventory.past import Seen, Siblings, Value
from genericdp.core.inventory.place import UNKNOWN, Spot, locate, may_be_model


class Alike(NamedTuple):
    """What is told of a sibling by a rule that names properties.

    ids    those that it and the others with the same values may have; none if no rule takes it. They say
           which values it has, not which sibling it is
    value  what these ids say of properties
    """

    ids: tuple[str, ...]
    value: Value


#: By sys path.
Told = Mapping[str, Alike]
NOTHING_TOLD: Told = {}

#: What cannot be read, if everything can: see `UnreadError.paths`.
ALL_READ: Mapping[str, str] = {}

NO_DOCKS: Mapping[Spot, Dock] = {}
NO_MODELS: Mapping[Spot, Collection[str]] = {}


@dataclass(frozen=True, slots=True)
class Plugged:
    """The device nodes that are plugged in.

    groups    the spot that siblings share -> the siblings, in their order
    numbers   sys path -> number, of all siblings
    siblings  the numbers of all siblings, with those that are missing; no spot is without any
    in_doubt  the spot that siblings share -> those of which nobody can say which ones they are
    unsettled the sys paths of those that have come while some were missing, and that properties may tell
    homes     the spots of siblings -> those at other ports where they may have been before
    unread    the paths of what cannot be read, and may be plugged in all the same
    beside    the paths that units among them would have at the other ports of their sockets of USB 3
    anew      spots with numbers that have begun anew: what had them before may be any of the siblings
    stayed    the spot that siblings share -> those that certainly are the same nodes as in the look before
    """

    groups: Mapping[Spot, Sequence[UdevDevice]] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    siblings: Siblings = field(default_factory=dict)
    in_doubt: Mapping[Spot, Sequence[UdevDevice]] = field(default_factory=dict)
    unsettled: frozenset[str] = frozenset()
    homes: Mapping[Spot, Sequence[Spot]] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    anew: frozenset[Spot] = frozenset()
    stayed: Mapping[Spot, Collection[int]] = field(default_factory=dict)

    def nodes_at(self, spot: Spot, dock: Dock | None = None) -> Sequence[UdevDevice]:
        """The device nodes that may be the one that was at a spot, behind a dock if one was there."""
        nodes = self._nodes_at(spot)
        return [node for node in nodes if not _is_behind_another(node, dock)] if dock and nodes else nodes

    def _nodes_at(self, spot: Spot) -> Sequence[UdevDevice]:
        group = self.groups.get(spot.of_all, ())
        if spot.number == UNKNOWN:
            return group
        found = [node for node in group if self.numbers.get(node.sys_path, 0) == spot.number]
        return found or self.in_doubt.get(spot.of_all, ())

    def is_taken(self, spot: Spot, dock: Dock | None = None) -> bool:
        """Whether a device node is plugged in at a spot, or may be. `dock`: see `nodes_at`."""
        return bool(self.nodes_at(spot, dock)) or self.is_unread(spot)

    def is_unread(self, spot: Spot) -> bool:
        """Whether something that cannot be read may be at a spot, at either port of its socket."""
        return any(may_be_at(spot.port, path) for path in (*self.unread, *self.beside))

    def with_unread(self, unread: Mapping[str, str]) -> "Plugged":
        """The same, and what cannot be read: see `UnreadError.paths`."""
        return replace(self, unread=frozenset(unread), beside=frozenset(unread.values()) - {""})

    def is_coming(self, spot: Spot) -> bool:
        """Whether the unit that was at a spot may be what udev has not finished with, wherever that is.

        Or what has never been read on USB, where the kernel does not answer while a driver probes a unit.
        """
        return (spot.serial, spot.within) in self.coming() or bool(self.strangers())

    def coming(self) -> frozenset[tuple[str, str]]:
        """Serial number and place in its unit of each device node that udev has not finished with."""
        return frozenset(
            (spot.serial, spot.within)
            for spot, nodes in self.groups.items()
            if not all(node.initialized for node in nodes)
        )

    def strangers(self) -> Collection[tuple[str, str]]:
        """The units on USB of which nothing has ever been read: see `unit_on_usb`."""
        unread = {unit for path in self.unread if (unit := unit_on_usb(path)) is not None}
        nodes = (node for group in self.groups.values() for node in group)
        return unread.difference(unit_on_usb(node.sys_path) for node in (nodes if unread else ()))

    def units(self) -> Iterator[tuple[str, str]]:
        """The port and serial number of what is plugged in, more than once if it has several nodes."""
        return ((spot.port, spot.serial) for spot in self.groups if spot.serial)

    def is_in_doubt(self, spot: Spot) -> bool:
        """Whether nobody can say which sibling the node at a spot is."""
        return any(self.numbers[node.sys_path] == spot.number for node in self.in_doubt.get(spot.of_all, ()))

    def with_homes(self, spots: tuple[Spot, ...]) -> tuple[Spot, ...]:
        """These spots, and where the siblings there may have been before."""
        if not self.homes:
            return spots
        homes = (
            home._replace(number=spot.number) for spot in spots for home in self.homes.get(spot.of_all, ())
        )
        return (*spots, *homes)

    def remembered(
        self,
        spots: Iterable[Spot],
        moved: Collection[tuple[Spot, str]] = (),
        before: Iterable[Spot] = (),
        docks: Mapping[Spot, Dock] = NO_DOCKS,
        models: Mapping[Spot, Collection[str]] = NO_MODELS,
    ) -> Siblings:
        """The numbers to remember when these are the spots of remembered devices.

        moved   those of nodes that may come where a part of their unit is at another port already, each with
                the model of the unit
        before  those at which siblings were remembered so far. While siblings are in doubt, or udev is still
                processing them, no device has their numbers yet, so they are kept here
        docks   those at the spots that siblings share
        models  those that were remembered there

        A unit may come again with all of them. Of what software makes, as of wireless units, one that is
        missing and that no such device has is free again, unless all of them are missing. Where one is in
        doubt, or was, there are several.
        """
        mine: dict[Spot, set[int]] = {}
        for spot in chain(spots, (each for each, _ in moved)):
            if spot.of_all in self.siblings:
                mine.setdefault(spot.of_all, set()).add(spot.number)
        for spot in filter(self.groups.get, before):
            mine.setdefault(spot, set())
        kept = self._of_moved(moved, docks, models)
        for spot, numbers in self.siblings.items():
            if spot in mine:
                here = {number for number, seen in numbers.items() if seen.is_there}
                all_stay = not here or not (spot.is_anonymous or spot.port.startswith(VIRTUAL))
                stay = {
                    number: seen
                    for number, seen in numbers.items()
                    if all_stay or number in here or number in mine[spot]
                }
                # A device may be remembered with a number of which nothing else is known any more.
                was_in_doubt = any(seen.is_late for seen in stay.values())
                is_one_of_several = stay.keys() | mine[spot] != {0} or was_in_doubt or spot in self.in_doubt
                if is_one_of_several or (here and spot.is_anonymous):
                    kept[spot] = stay
        return kept

    def _of_moved(
        self,
        moved: Iterable[tuple[Spot, str]],
        docks: Mapping[Spot, Dock],
        models: Mapping[Spot, Collection[str]],
    ) -> dict[Spot, Mapping[int, Seen]]:
        kept: dict[Spot, Mapping[int, Seen]] = {}
        left: dict[tuple[str, ...], list[Spot]] = {}
        for spot in self.siblings if moved else ():
            if (unit := _unit_at(spot, docks)) and not self.groups.get(spot):
                left.setdefault(unit, []).append(spot)
        for spot, model in moved if left else ():
            # Parts of a dock may share a serial number. They are different models.
            for home in left.get(_unit_at(spot, docks), ()):
                is_unit = any(may_be_model(model, other) for other in models.get(home, ("",)))
                if is_unit and spot.of_all not in self.siblings:
                    kept[spot.of_all] = {number: seen.gone for number, seen in self.siblings[home].items()}
        return kept

    def count_at(self, spot: Spot) -> int:
        """How many siblings are plugged in at a spot that they share."""
        return len(self.groups.get(spot.of_all, ()))


class BySerial:
    """The device nodes that are plugged in, by their serial numbers and their places in their units."""

    def __init__(self, plugged: Plugged) -> None:
        self._plugged = plugged

    def nodes_like(self, spot: Spot, model: str) -> list[UdevDevice]:
        """The nodes of a unit of a model, at any port, with the serial number at a spot."""
        ports = self._ports.get((spot.serial, spot.within), ())
        nodes = (node for port in ports for node in self._plugged.nodes_at(spot._replace(port=port)))
        return [node for node in nodes if may_be_model(model, locate(node).model)]

    @cached_property
    def _ports(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """Serial number and place in its unit -> the ports where such a node is plugged in."""
        found: dict[tuple[str, str], list[str]] = {}
        for spot in self._plugged.groups:
            found.setdefault((spot.serial, spot.within), []).append(spot.port)
        return found


def _unit_at(spot: Spot, docks: Mapping[Spot, Dock]) -> tuple[str, ...]:
    """What says which unit is at a spot, at whatever port, and the place in it; () if nothing does."""
    if has_serial(spot):
        return spot.serial, spot.within
    dock = docks.get(spot.of_all)
    return () if dock is None else (dock.serial, dock.at, spot.within)


def _is_behind_another(node: UdevDevice, dock: Dock) -> bool:
    usb = node.usb_device
    return usb is not None and are_two_docks(dock_of(usb), dock)


NOTHING_PLUGGED = Plugged()
