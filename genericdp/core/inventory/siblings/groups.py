"""Which device nodes are siblings: those at one spot. Each has a number.

The rules of this file:

* Which siblings a device node has depends on what is plugged in, never on what the rules take.
* A unit that comes at another port is as it was there: its siblings have the numbers that they had.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import in_path_order
from genericdp.core.inventory.past import NO_PAST, Past, Seen
from genericdp.core.inventory.place import Spot, locate, may_be_model
from genericdp.core.inventory.plugged import NOTHING_TOLD, Plugged, Told
from genericdp.core.inventory.siblings.numbers import number
from genericdp.core.inventory.siblings.unread import with_unread

#: A device node, and the spot that it shares with its siblings.
Sighting = tuple[UdevDevice, Spot]


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
        homes: dict[Spot, Sequence[Spot]] = {}
        left: dict[Spot, Mapping[int, Seen]] = {}
        anew: set[Spot] = set()
        stayed: dict[Spot, Collection[int]] = {}
        unread = with_unread(self.at, past)
        others = (*self._alone(past), *self._edited(past), *unread)
        for spot in dict.fromkeys((*self.shared, *past.siblings, *others)):
            group = self.at.get(spot, ())
            numbered = number(group, spot, past, told, self.at, is_one_unread=spot in unread)
            numbers |= numbered.numbers
            if numbered.siblings:
                siblings[spot] = numbered.siblings
            unsettled.update(numbered.unsettled)
            if numbered.in_doubt:
                in_doubt[spot] = [node for node in group if node.sys_path in numbered.in_doubt]
            if numbered.homes:
                homes[spot] = numbered.homes
            left |= numbered.left
            anew.update(numbered.anew)
            stayed[spot] = numbered.stayed
        # A device that has lost its number (`Numbered.anew`) may be all that is remembered at a port.
        siblings |= {spot: numbers for spot, numbers in left.items() if numbers}
        return Plugged(
            self.at,
            numbers,
            siblings,
            in_doubt,
            frozenset(unsettled),
            homes,
            anew=frozenset(anew),
            stayed=stayed,
        )

    def _alone(self, past: Past) -> Iterable[Spot]:
        """Where a device node may be one of several that were at another port, or had another serial."""
        away = {spot: numbers for spot, numbers in past.siblings.items() if self._have_left(spot, numbers)}
        gone = {(spot.serial, spot.within) for spot in away} | {(spot.port, spot.within) for spot in away}
        # Both at once, if the serial number could be read at one of the two ports only.
        unread: dict[tuple[bool, str], set[str]] = {}
        for spot, numbers in away.items():
            models = {seen.model for seen in numbers.values()}
            unread.setdefault((spot.serial != "", spot.within), set()).update(models)
        return [
            spot
            for spot in (self.at if gone else ())
            if (spot.serial, spot.within) in gone
            or (spot.port, spot.within) in gone
            or self._has_model(spot, unread.get((spot.serial == "", spot.within), ()))
        ]

    def _has_model(self, spot: Spot, models: Collection[str]) -> bool:
        """Whether what is plugged in at a spot may be of one of these models."""
        return any(may_be_model(locate(self.at[spot][0]).model, model) for model in models)

    def _have_left(self, spot: Spot, numbers: Mapping[int, Seen]) -> bool:
        """Whether some siblings are not at their spot any more. Something else may be there."""
        here = {(order_of(node), node.incarnation) for node in self.at.get(spot, ())}
        return not here or not all(seen[:2] in here for seen in numbers.values())

    def _edited(self, past: Past) -> Iterable[Spot]:
        """Where a pod got a device node before an edit named the properties that tell which one it is."""
        known = ((spot, past.known_at(spot).get(0)) for spot in past.unoffered if spot in self.at)
        return [
            spot
            for spot, one in known
            if one is not None and len({value.basis for value in one.ids.values()}) > 1
        ]


NO_GROUPS = Groups()


def plugged_of(devices: Iterable[UdevDevice], past: Past = NO_PAST, told: Told = NOTHING_TOLD) -> Plugged:
    """The device nodes among udev devices."""
    nodes = (device for device in devices if device.device_node is not None)
    return NO_GROUPS.after((), ((node, locate(node).spot) for node in nodes)).numbered(past, told)


def _order(node: UdevDevice) -> tuple[object, ...]:
    return in_path_order(order_of(node))
