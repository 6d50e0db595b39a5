"""The device nodes that rules name: where to look for those that udev does not know.

The rules of this file:

* Only `DEVNAME` names a node, and only by what it may be: "anything but /dev/null" names none.
* A bare node has DEVNAME, MAJOR and MINOR and nothing else. A table of conditions that wants more, such as a
  subsystem or a parent, does not name one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from genericdp.core.device import UdevDevice
from genericdp.core.rules.match import Alternative, PropertyCondition
from genericdp.core.rules.pattern import Pattern, exactly, glob
from genericdp.core.rules.resource import Resource

#: The properties of a bare node, whatever it is called.
_ITS_OWN = frozenset({"DEVNAME", "MAJOR", "MINOR"})

#: A bare node without these.
_NOTHING = UdevDevice("/dev/")


# Without slots, because cached_property keeps the value in the object.
@dataclass(frozen=True)
class NodeNames:
    """What bare nodes may be called: patterns of paths, each with its beginnings."""

    patterns: tuple[Pattern, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def __or__(self, other: "NodeNames") -> "NodeNames":
        return NodeNames((*self.patterns, *other.patterns))

    def hold_for(self, path: str) -> bool:
        """Whether this is one of the paths."""
        return path in self._literals or any(pattern.holds(path) for pattern in self._others)

    def lead_into(self, directory: str) -> bool:
        """Whether one of the paths may be below this directory."""
        below = f"{directory}/"
        return any(each.startswith(below) or below.startswith(each) for each in self._beginnings)

    @cached_property
    def _literals(self) -> frozenset[str]:
        return frozenset().union(*(each.literals for each in self.patterns if each.literals is not None))

    @cached_property
    def _others(self) -> tuple[Pattern, ...]:
        return tuple(each for each in self.patterns if each.literals is None)

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset().union(*(each.beginnings or () for each in self.patterns))


#: No path.
NO_NAMES = NodeNames()

#: Every path below /dev.
ALL_NAMES = NodeNames((glob("/dev/*"),))


def names_of(paths: Iterable[str]) -> NodeNames:
    """These paths."""
    return NodeNames(tuple(exactly(path) for path in sorted(paths)))


def names_in(resources: Iterable[Resource]) -> NodeNames:
    """The paths by which these rules may take a bare node."""
    patterns = (
        pattern
        for resource in resources
        for match in (resource.match, *(table.match for table in resource.nodes))
        for alternative in match.alternatives
        if (pattern := _name_in(alternative)) is not None
    )
    return NodeNames(tuple(dict.fromkeys(patterns)))


def _name_in(alternative: Alternative) -> Pattern | None:
    name: Pattern | None = None
    for condition in alternative:
        if not isinstance(condition, PropertyCondition) or condition.name not in _ITS_OWN:
            if not condition.holds(_NOTHING):
                return None
        elif condition.name == "DEVNAME" and condition.pattern.beginnings is not None:
            name = condition.pattern
    return name
