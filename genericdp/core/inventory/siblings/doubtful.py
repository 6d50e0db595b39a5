"""What is remembered of siblings of which nobody can tell which ones they are: they have no numbers.

The rules of this file:

* If one of them has left while their unit has stayed, it may be bound again. It comes last then, whatever its
  number was, so the order of those that are there says nothing until all of them have left.
* What cannot be read has not left.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.past import Doubtful
from genericdp.core.inventory.place import Spot, locate
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.inventory.siblings.unread import is_at_or_below


def is_one_bound_again(before: Doubtful, group: Sequence[UdevDevice], unread: Collection[str]) -> bool:
    """Whether one of the doubtful siblings has left, and their unit has stayed.

    unread  the paths of what cannot be read
    """
    return bool(_left(before, group, unread))


def doubtful_among(
    plugged: Plugged, before: Mapping[Spot, Doubtful], unread: Collection[str]
) -> Mapping[Spot, Doubtful]:
    """What to remember of those that are in doubt, or were and cannot be read.

    before  what was remembered so far
    unread  the paths of what cannot be read
    """
    found: dict[Spot, Doubtful] = {}
    for spot, nodes in plugged.in_doubt.items():
        here = frozenset((order_of(node), node.incarnation) for node in nodes)
        if spot in before:
            # One that has left is enough to know that one may be bound again.
            left = sorted(_left(before[spot], plugged.groups[spot], unread))[:1]
            here |= _unread(before[spot], unread).union(left)
        found[spot] = Doubtful(_unit_of(nodes[0]), here)
    for spot in before.keys() - plugged.groups.keys():
        if still := _unread(before[spot], unread):
            found[spot] = before[spot]._replace(nodes=still)
    return found


def _left(
    before: Doubtful, group: Sequence[UdevDevice], unread: Collection[str]
) -> frozenset[tuple[str, int]]:
    """Those of the doubtful siblings that have left while their unit has stayed."""
    if not group or _unit_of(group[0]) != before.unit:
        return frozenset()
    here = {(order_of(node), node.incarnation) for node in group}
    return before.nodes - here - _unread(before, unread)


def _unread(doubtful: Doubtful, unread: Iterable[str]) -> frozenset[tuple[str, int]]:
    return frozenset(each for path in unread for each in doubtful.nodes if is_at_or_below(each[0], path))


def _unit_of(node: UdevDevice) -> tuple[str, int]:
    """What stays while its siblings come and go; ("", 0) for what software makes, which has nothing such."""
    unit = locate(node).unit
    return ("", 0) if unit.is_virtual else (unit.sys_path, unit.incarnation)
