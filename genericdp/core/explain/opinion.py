"""How one resource judges one udev device.

The rules of this file:

* The verdicts are those of the conditions that the daemon asks, so `explain` cannot disagree with it.
* Each resource judges a device once. `Opinion.nearness` is the one measure by which opinions are sorted
  and hints are chosen.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.rules.match import Verdict
from genericdp.core.rules.resource import EVERYTHING, NodeTable, Resource

#: A match, judged: the verdicts of each alternative. () for a match without conditions.
Judged = tuple[tuple[Verdict, ...], ...]

#: A glob in the words of a condition.
_QUOTED = re.compile(r"'([^']*)'")


class Nearness(NamedTuple):
    """How near a device comes to satisfying conditions. The smaller value is the nearer one.

    is_far    more fails than holds: it is at most a device of the same kind
    distance  the conditions that fail; one on a value that the device lacks altogether counts twice, one
              that fails only by upper and lower case does not count
    holding   minus the conditions that hold
    """

    is_far: bool
    distance: int
    holding: int


@dataclass(frozen=True, slots=True)
class Opinion:
    """How one resource judges a udev device.

    owner     the resource that has the device node: the first that takes it; None when none does
    takes     this resource has a place for the device node; it has the node only if it is the owner
    match     its match, judged
    tables    its node tables, judged, when the match holds and the rule file has such tables
    shares    whether the device node goes along with every device of the resource
    shared    its shared node tables, judged
    closest   the verdicts of the closest alternative of the match, then of the closest node table; or those
              of a shared table that is closer
    nearness  what these amount to; sorts opinions, the nearest first
    """

    resource: Resource
    subject: UdevDevice
    owner: Resource | None
    takes: bool
    match: Judged
    tables: tuple[tuple[NodeTable, Judged], ...]
    shares: bool
    shared: tuple[tuple[NodeTable, Judged], ...]
    closest: tuple[Verdict, ...]
    nearness: Nearness

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """The closest verdicts that keep the resource from taking the device."""
        return tuple(verdict for verdict in self.closest if not verdict.holds)


def opinion(resource: Resource, subject: UdevDevice, claims: Claims) -> Opinion:
    """How a resource judges a udev device; the claims say which resource takes its node."""
    found = claims.judged(subject)
    takers = [claim.resource for claim in found.claims]
    match = resource.match.judge(subject)
    tables: tuple[tuple[NodeTable, Judged], ...] = ()
    if resource.match.matches(subject) and _are_its_own(resource.own_nodes):
        tables = tuple((table, table.match.judge(subject)) for table in resource.own_nodes)
    shared = tuple((table, table.match.judge(subject)) for table in resource.shared_nodes)
    in_tables = (_closest(judged) for _, judged in tables)
    closest = (*_closest(match), *min(in_tables, key=_nearness, default=()))
    closest = min((closest, *(_closest(judged) for _, judged in shared)), key=_nearness)
    return Opinion(
        resource,
        subject,
        takers[0] if takers else None,
        resource in takers,
        match,
        tables,
        resource in [claim.resource for claim in found.shares],
        shared,
        closest,
        _nearness(closest),
    )


def _nearness(verdicts: Iterable[Verdict]) -> Nearness:
    holding = distance = 0
    for verdict in verdicts:
        if verdict.holds:
            holding += 1
        elif verdict.actual is None:
            distance += 2
        elif not _is_misspelt(verdict.wanted, verdict.actual):
            distance += 1
    return Nearness(distance > holding, distance, -holding)


def _is_misspelt(wanted: str, actual: str) -> bool:
    """Whether a value fails a glob only by upper and lower case."""
    if wanted.startswith(("not ", "regex ")):
        return False
    globs = (glob for quoted in _QUOTED.findall(wanted) for glob in quoted.split("|"))
    return any(fnmatchcase(actual.casefold(), glob.casefold()) for glob in globs)


def holds(judged: Judged) -> bool:
    """Whether a judged match holds: one of its alternatives does, or it has no conditions."""
    return not judged or any(all(verdict.holds for verdict in verdicts) for verdicts in judged)


def _closest(judged: Judged) -> tuple[Verdict, ...]:
    """The verdicts of the alternative that comes closest."""
    return min(judged, key=_nearness, default=())


def _are_its_own(nodes: Sequence[NodeTable]) -> bool:
    """Whether the rule file has node tables; without any, an implied one takes every node."""
    return any(table.match != EVERYTHING for table in nodes)
