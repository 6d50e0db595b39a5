"""The inventory: what every resource makes of the devices now, and how two of them differ.

The rules of this file:

* An inventory is a value. It is built whole, every time; two of them are compared (`diff`), never patched.
* Whatever is not offered is in it with its reason, so that `list`, `explain` and the log can tell.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from genericdp.core.inventory.offer import Device, Health, Node, Offer
from genericdp.core.inventory.past import NO_TWINS, Ties, Twins
from genericdp.core.inventory.place import Place


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """A device node that a rule takes but that is not offered, and why.

    waiting  the id of its device, if that is offered once a pod has gone
    """

    resource: str
    node: str
    reason: str
    waiting: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Overlap:
    """A device node that several resources take: it goes to the first in file order."""

    node: str
    winner: str
    losers: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Conflict:
    """A device node that a resource gives to one container at a time, and others to each of theirs."""

    node: str
    owner: str
    sharers: tuple[str, ...]


#: The reason of an orphan that is plugged in, and how all of them are introduced.
NO_RULE = "no rule defines the resource any more"
ORPHANS = (
    f"Held by pods, but {NO_RULE}. A container with such a device cannot start again: put the rule back, or "
    "delete the pod."
)


@dataclass(frozen=True, slots=True, order=True)
class Orphan:
    """A device that a pod may hold although the rules no longer define its resource."""

    resource: str
    id: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """All resources in file order with their devices, and what is worth saying about the rest.

    ties            which of several twins has the plain ids, see `identity`
    unsure          ids of devices that only their order tells apart
    doubted         ids of which nothing is known that pods hold -> the devices that they may be
    untold          ids of siblings that may be what pods hold -> the ids of such pods
    waiting         ids that wait until no pod holds their device under another id, or of which a shared
                    node waits until no pod can have it
    orphans         the devices that pods may hold although the rules no longer define their resource
    orphaned_links  their links, and those of such devices within their grace
    renamed_links   links that an earlier release named otherwise -> the device node to which they lead
    held_links      more links, which no pod gets: to the nodes of held ids whose links lead nowhere
    conflicts       exclusive device nodes that other resources share
    twins           what twins have in common that have been seen side by side
    new             the plain ids of units that have appeared beside others in their USB sockets and are not
                    offered yet -> where their device nodes are
    """

    offers: Mapping[str, Offer] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    ties: Ties = field(default_factory=dict)
    unsure: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    orphaned_links: tuple[str, ...] = ()
    renamed_links: Mapping[str, str] = field(default_factory=dict)
    held_links: Mapping[str, str] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    doubted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    untold: Mapping[str, Sequence[str]] = field(default_factory=dict)
    twins: Twins = NO_TWINS
    new: Mapping[str, Sequence[Place]] = field(default_factory=dict)

    def refused_until_pods_go(self, resource: str) -> dict[str, str]:
        """The ids of the resource whose devices are plugged in and not offered until pods have gone; why."""
        return {
            refusal.waiting: refusal.reason
            for refusal in self.refusals
            if refusal.waiting and refusal.resource == resource
        }

    def links(self) -> dict[str, str | None]:
        """Link name -> the device node it must point at, None while its device is absent."""
        wanted: dict[str, str | None] = dict.fromkeys(self.orphaned_links)
        for offer in self.offers.values():
            for device in offer.with_crowded:
                wanted.update(dict.fromkeys(device.links))
                if device.healthy:
                    wanted.update({node.link: node.path for node in device.nodes})
        # A shared node is there whatever has become of a device.
        wanted.update({node.link: node.path for node in self._shared_nodes() if node.sys_path})
        wanted.update(self.renamed_links)
        return wanted

    def _shared_nodes(self) -> Iterator[Node]:
        for offer in self.offers.values():
            before: tuple[Node, ...] = ()
            for device in offer.with_crowded:
                if device.shared is not before:
                    before = device.shared
                    yield from before

    def behind(self, links: Collection[str]) -> tuple[str, ...]:
        """The sys paths of the device nodes to which these links should lead."""
        paths = {path for link, path in self.renamed_links.items() if link in links}
        devices = (device for offer in self.offers.values() for device in offer.with_crowded)
        nodes = (node for device in devices for node in device.nodes)
        found = (
            node.sys_path
            for node in (*nodes, *self._shared_nodes())
            if node.sys_path and (node.link in links or node.path in paths)
        )
        return tuple(dict.fromkeys(found))


def without_links(inventory: Inventory, failed: Mapping[str, str]) -> Inventory:
    """The inventory in which devices whose links could not be made (link -> why) are Unhealthy."""
    if not failed:
        return inventory

    def judged(device: Device) -> Device:
        reason = next((failed[link] for link in device.links if link in failed), "")
        if not reason or not device.healthy:
            return device
        return replace(device, health=Health.UNHEALTHY, reason=reason)

    offers = {
        name: replace(offer, devices=tuple(judged(device) for device in offer.devices))
        for name, offer in inventory.offers.items()
    }
    return replace(inventory, offers=offers)


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference, by resource name.

    added, removed   resources that came or went
    updated          resources whose list for the kubelet changed, or whose answers to it did
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.updated)


def diff(old: Inventory, new: Inventory) -> Changes:
    """What changed from one inventory to the next. Empty exactly when the offers are equal."""
    return Changes(
        added=tuple(name for name in new.offers if name not in old.offers),
        removed=tuple(name for name in old.offers if name not in new.offers),
        updated=tuple(
            name for name, offer in new.offers.items() if name in old.offers and offer != old.offers[name]
        ),
    )
