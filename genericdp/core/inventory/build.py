"""Builds the inventory of a fixed list of resources again at each event.

The rules of this file:

* The result is a function of the resources and the udev devices. It does not depend on the order in
  which the devices come, and building never fails.
* An event costs what it touches. The builder keeps what it found out about each snapshot and each
  resource, and none of this shows: a builder with a past and a new one give equal inventories.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.compose import Composer
from genericdp.core.inventory.group import Group, gather, identity_of
from genericdp.core.inventory.identity import Identity, UnidentifiedError, assign
from genericdp.core.inventory.inventory import Conflict, Inventory, Overlap, Refusal
from genericdp.core.inventory.offer import Device, Offer, in_order
from genericdp.core.inventory.past import NO_PAST, Past, Ties
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.shared import shared_nodes
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.rules.template import MissingPropertyError


class Builder:
    """Builds the inventory of these resources from any udev devices.

    domain  the one that goes without saying, see `identity.assign`
    answer  how a resource is answered that does not say it
    claims  which resource takes which of the devices of the last build
    """

    def __init__(
        self, resources: Iterable[Resource], domain: str, answer: AnswerBy = AnswerBy.DEVICES
    ) -> None:
        self.resources = tuple(resources)
        self.claims = Claims(self.resources)
        self._domain = domain
        self._answer = answer
        self._drafts: dict[str, _Draft] = {}

    def build(self, devices: Mapping[str, UdevDevice], past: Past = NO_PAST) -> Inventory:
        """The inventory of these udev devices (sys path -> snapshot), given what is remembered.

        A resource whose devices are the snapshots of last time keeps the very offer that it had.
        """
        self.claims.see(devices, past)
        nodes, overlaps, conflicts = self._sort(devices)
        for resource in self.resources:
            draft = self._drafts.get(resource.name)
            mine = nodes[resource.name]
            siblings = [*self._siblings_of(mine.taken), *self._siblings_of(mine.shared)]
            if draft is None or not draft.still_holds(mine, siblings, past):
                made = self._draft(resource, mine, siblings, past)
                if draft is not None and draft.nodes == mine and draft.offer == made.offer:
                    # Only what is remembered has changed. The same object is quickly compared, in every step.
                    made = replace(made, offer=draft.offer)
                self._drafts[resource.name] = made
        drafts = [self._drafts[resource.name] for resource in self.resources]
        new_ties = {unit: port for draft in drafts for unit, port in draft.ties.items()}
        return Inventory(
            offers={draft.offer.resource.name: draft.offer for draft in drafts},
            refusals=tuple(sorted(refusal for draft in drafts for refusal in draft.refusals)),
            overlaps=tuple(sorted(overlaps)),
            ties={**past.ties, **new_ties},
            unsure=tuple(sorted(id_ for draft in drafts for id_ in draft.unsure)),
            conflicts=tuple(sorted(conflicts)),
        )

    def _sort(
        self, devices: Mapping[str, UdevDevice]
    ) -> tuple[Mapping[str, "_Nodes"], list[Overlap], list[Conflict]]:
        """Resource name -> its device nodes; those that several resources take; those that others share."""
        nodes = {resource.name: _Nodes() for resource in self.resources}
        overlaps: list[Overlap] = []
        conflicts: list[Conflict] = []
        for device in devices.values():
            judged = self.claims.judged(device)
            found, path = judged.claims, device.device_node or ""
            if found:
                nodes[found[0].resource.name].taken.append(device)
            if len(found) > 1:
                winner, *losers = (claim.resource.name for claim in found)
                overlaps.append(Overlap(path, winner, tuple(losers)))
            if judged.shares:
                sharers = tuple(claim.resource.name for claim in judged.shares)
                for name in sharers:
                    nodes[name].shared.append(device)
                if found and found[0].resource.is_exclusive:
                    conflicts.append(Conflict(path, found[0].resource.name, sharers))
        return nodes, overlaps, conflicts

    def _siblings_of(self, devices: Sequence[UdevDevice]) -> Sequence[tuple[Spot, int]]:
        """The spots of those that have siblings, or had some, with their number."""
        numbers = self.claims.plugged.numbers
        spots = [self.claims.place(device).spot for device in devices if device.sys_path in numbers]
        return [(spot, self._count_at(spot)) for spot in spots]

    def _count_at(self, spot: Spot) -> int:
        """How many numbers siblings at a spot may have."""
        return 1 + max(self.claims.plugged.siblings.get(spot.of_all, (0,)))

    def _draft(
        self,
        resource: Resource,
        nodes: "_Nodes",
        siblings: Sequence[tuple[Spot, int]],
        past: Past,
    ) -> "_Draft":
        groups, refusals = gather(resource, nodes.taken, self.claims)
        identified: list[tuple[Group, Identity]] = []
        for group in groups:
            try:
                identified.append((group, identity_of(group)))
            except UnidentifiedError as error:
                refusals += group.refusals(f"it has no property {error.name}, which 'identity' uses")
        identities = [identity for _, identity in identified]
        assigned = assign(resource.name, identities, self._domain, past, self._count_at)
        composer = Composer(resource, self._answer)
        shared = shared_nodes(resource, nodes.shared, self.claims, composer.node)
        refusals += shared.refusals
        composed: list[Device] = []
        for (group, identity), id_, unit in zip(identified, assigned.ids, assigned.units, strict=True):
            try:
                composed.append(shared.with_them(composer.compose(group, identity, id_, unit)))
            except MissingPropertyError as error:
                reason = f"it has no property {error.name}, which a template uses without a default"
                refusals += group.refusals(reason)
        units = tuple(dict.fromkeys(assigned.units))
        return _Draft(
            nodes=nodes,
            siblings=siblings,
            offer=Offer(resource, in_order(composed)),
            refusals=refusals,
            units=units,
            ties={unit: assigned.ties[unit] for unit in units if unit in assigned.ties},
            unsure=assigned.unsure,
            seats=assigned.seats,
            plain=assigned.plain,
        )


@dataclass(slots=True)
class _Nodes:
    """The device nodes of one resource: those that it takes, and those that it shares."""

    taken: list[UdevDevice] = field(default_factory=list)
    shared: list[UdevDevice] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Draft:
    """One resource's part of an inventory, and what it was made of.

    siblings  the spots of the nodes that have siblings, with their number
    units     of all its devices
    ties      those of its units, old and new
    seats, plain  see `identity.Assignment`
    """

    nodes: _Nodes
    siblings: Sequence[tuple[Spot, int]]
    offer: Offer
    refusals: Sequence[Refusal]
    units: Sequence[str]
    ties: Ties
    unsure: Sequence[str]
    seats: Mapping[str, Sequence[Spot]]
    plain: Mapping[str, str]

    def still_holds(self, nodes: _Nodes, siblings: Sequence[tuple[Spot, int]], past: Past) -> bool:
        """Whether these snapshots, siblings and memories would give the same draft."""
        return (
            self.nodes == nodes
            and self.siblings == siblings
            and all(past.ties.get(unit) == self.ties.get(unit) for unit in self.units)
            and all(past.spots_of(id_) == spots for id_, spots in self.seats.items())
            and all(past.port_of(id_) == port for id_, port in self.plain.items())
        )
