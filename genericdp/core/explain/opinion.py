"""Why one udev device goes where it goes: what every resource makes of it.

The rules of this file:

* The verdicts are those of the conditions that the daemon asks, so `explain` cannot disagree with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.rules.match import Verdict
from genericdp.core.rules.resource import EVERYTHING, NodeTable, Resource

#: A match, judged: the verdicts of each alternative. () for a match without conditions.
Judged = tuple[tuple[Verdict, ...], ...]


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one resource makes of a udev device.

    takes    it has a place for the device node; only the first resource that takes it, has it
    match    its match, judged
    tables   its node tables, judged, when the match holds and the rule file has such tables
    """

    resource: Resource
    takes: bool
    match: Judged
    tables: tuple[tuple[NodeTable, Judged], ...] = ()

    @property
    def misses(self) -> int:
        """How many conditions fail, in the alternative that comes nearest."""
        return _misses(self.match) + min((_misses(judged) for _, judged in self.tables), default=0)

    @property
    def holding(self) -> int:
        """How many conditions hold, in the alternative that has most of them."""
        tables = (_holding(judged) for _, judged in self.tables)
        return _holding(self.match) + max(tables, default=0)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one udev device.

    opinions  of every resource: those that take it in file order, then from the nearest miss on
    offer     the resource that offers it, with all its devices; None when none does
    device    the device that its node belongs to; None when it is not offered
    refusal   why it is not offered although a resource takes it, or ""
    """

    subject: UdevDevice
    opinions: tuple[Opinion, ...]
    offer: Offer | None = None
    device: Device | None = None
    refusal: str = ""

    @property
    def taken_by(self) -> tuple[Resource, ...]:
        """The resources that take it; the first one has it."""
        return tuple(each.resource for each in self.opinions if each.takes)


def explain(subject: UdevDevice, claims: Claims, inventory: Inventory) -> Explanation:
    """What becomes of a udev device, and why."""
    takers = [claim.resource for claim in claims.on(subject)]
    resources = [offer.resource for offer in inventory.offers.values()]
    opinions = [opinion(resource, subject, takes=resource in takers) for resource in resources]
    # Sorted is stable: what is equally near stays in file order.
    opinions.sort(key=lambda each: (not each.takes, each.misses - each.holding))
    for offer in inventory.offers.values():
        for device in offer.devices:
            if any(node.sys_path == subject.sys_path for node in device.nodes):
                return Explanation(subject, tuple(opinions), offer, device)
    reasons = [refusal.reason for refusal in inventory.refusals if refusal.node == subject.device_node]
    return Explanation(subject, tuple(opinions), refusal=reasons[0] if takers and reasons else "")


def opinion(resource: Resource, subject: UdevDevice, *, takes: bool) -> Opinion:
    """What a resource makes of a udev device, given whether it takes it."""
    tables: tuple[tuple[NodeTable, Judged], ...] = ()
    if resource.match.matches(subject) and _are_its_own(resource.nodes):
        tables = tuple((table, table.match.judge(subject)) for table in resource.nodes)
    return Opinion(resource, takes, resource.match.judge(subject), tables)


def _are_its_own(nodes: Sequence[NodeTable]) -> bool:
    """Whether the rule file has node tables; without, there is one that takes every node."""
    return any(table.match != EVERYTHING for table in nodes)


def holds(judged: Judged) -> bool:
    """Whether a judged match holds: one of its alternatives does, or it has no conditions."""
    return not judged or _misses(judged) == 0


def _misses(judged: Judged) -> int:
    return min((sum(not verdict.holds for verdict in verdicts) for verdicts in judged), default=0)


def _holding(judged: Judged) -> int:
    return max((sum(verdict.holds for verdict in verdicts) for verdicts in judged), default=0)
