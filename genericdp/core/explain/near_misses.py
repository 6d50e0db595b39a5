"""Near misses: device nodes that a resource would take except for a condition or two.

The rules of this file:

* Nothing is judged here. A near miss is an opinion, read for what keeps the resource from taking the node.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.explain.opinion import Opinion
from genericdp.core.inventory.identity import natural
from genericdp.core.rules.match import Verdict

#: More near misses than this do not help.
_MOST = 3


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A device node that a resource nearly takes.

    failed     the conditions that fail; () when all hold
    elsewhere  the resource that has the node, "" when none has
    """

    node: UdevDevice
    failed: tuple[Verdict, ...]
    elsewhere: str = ""

    def __str__(self) -> str:
        if self.failed:
            text = f"matches all but {'; and '.join(in_words(verdict) for verdict in self.failed)}"
            return f"{text} (it goes to {self.elsewhere})" if self.elsewhere else text
        return f"matches, but goes to {self.elsewhere}" if self.elsewhere else "matches"


def in_words(verdict: Verdict) -> str:
    """What a condition wanted, and the actual value."""
    actual = "is missing" if verdict.actual is None else f"is '{verdict.actual}'"
    return f"{verdict.key}: wanted {verdict.wanted}, {actual}"


def near_miss(opinion: Opinion) -> NearMiss | None:
    """A resource's opinion as a near miss; None when the device is not near, or goes to the resource."""
    if opinion.nearness.is_far or opinion.owner == opinion.resource or opinion.shares:
        return None
    owner = "" if opinion.owner is None else opinion.owner.name
    return NearMiss(opinion.subject, opinion.failed, owner)


def near_misses(opinions: Iterable[Opinion]) -> tuple[NearMiss, ...]:
    """The nearest of one resource's opinions on device nodes, all equally near; () if none is near."""
    found: dict[int, list[NearMiss]] = {}
    for each in opinions:
        if (miss := near_miss(each)) is not None:
            found.setdefault(each.nearness.distance, []).append(miss)
    nearest = found[min(found)] if found else []
    return tuple(sorted(nearest, key=lambda miss: natural(miss.node.device_node or ""))[:_MOST])
