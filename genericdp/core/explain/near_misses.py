"""Near misses: what a resource would take, if it were not for one thing or two.

The rules of this file:

* The verdicts are those of the rule's own conditions, as for `explain`.
* What is merely of the same kind is not near: a condition that looks for something that a device does
  not have at all counts twice, and more must hold than fails.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from genericdp.core.device import UdevDevice
from genericdp.core.explain.opinion import Judged, Opinion, opinion
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.identity import natural
from genericdp.core.rules.match import Verdict
from genericdp.core.rules.resource import Resource

#: More near misses than this are no help.
_MOST = 3


#: A device of which nothing is known, and its parents: what a condition says of it, is what it wants.
_NOTHING = reduce(
    lambda above, path: UdevDevice(path, parent=above),
    ("/sys/a/b", "/sys/a/b/c", "/sys/a/b/c/d"),
    UdevDevice("/sys/a"),
)


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
    """What a condition wanted and what there is."""
    actual = "is not there" if verdict.actual is None else f"is '{verdict.actual}'"
    return f"{verdict.key}: wanted {verdict.wanted}, {actual}"


def near_misses(resource: Resource, nodes: Iterable[UdevDevice], claims: Claims) -> tuple[NearMiss, ...]:
    """The device nodes that come nearest to what a resource takes and that it does not have, all
    equally near; () when none is near.
    """
    found: dict[int, list[NearMiss]] = {}
    for node in nodes:
        takers = [claim.resource for claim in claims.on(node)]
        if takers[:1] == [resource]:
            continue
        verdicts = _verdicts(opinion(resource, node, takes=False))
        failed = tuple(verdict for verdict in verdicts if not verdict.holds)
        distance = _distance(verdicts)
        if distance <= len(verdicts) - len(failed):
            miss = NearMiss(node, failed, takers[0].name if takers else "")
            found.setdefault(distance, []).append(miss)
    nearest = found[min(found)] if found else []
    return tuple(sorted(nearest, key=lambda miss: natural(miss.node.device_node or ""))[:_MOST])


def wants(resource: Resource) -> tuple[str, ...]:
    """What a resource's match wants, in words: a text for each alternative."""
    return tuple(
        ", ".join(f"{verdict.key} {verdict.wanted}" for verdict in verdicts)
        for verdicts in resource.match.judge(_NOTHING)
    )


def _verdicts(judged: Opinion) -> tuple[Verdict, ...]:
    """Those of the alternative that comes nearest, and of the node table that does."""
    tables = [_nearest(each) for _, each in judged.tables]
    return (*_nearest(judged.match), *min(tables, key=_distance, default=()))


def _nearest(judged: Judged) -> tuple[Verdict, ...]:
    """The verdicts of the alternative that comes nearest."""
    return min(judged, key=_distance, default=())


def _distance(verdicts: Iterable[Verdict]) -> int:
    return sum(1 if verdict.actual is not None else 2 for verdict in verdicts if not verdict.holds)
