"""Builds the inventory of a fixed list of resources again at each event.

The rules of this file:

* The result is a function of the resources and the udev devices. It does not depend on the order in
  which the devices come, and building never fails.
* An event costs what it touches. The builder keeps what it found out about each snapshot and each
  resource, and none of this shows: a builder with a past and a new one give equal inventories.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claim, Claims
from genericdp.core.inventory.compose import Composer
from genericdp.core.inventory.group import (
    WHY_NEW,
    Group,
    Member,
    empty_group,
    gather,
    identity_of,
    in_common,
    is_told_by_properties,
)
from genericdp.core.inventory.identity import Identity, Speller, UnidentifiedError, assign
from genericdp.core.inventory.inventory import Inventory, Refusal
from genericdp.core.inventory.naming.links import links_of
from genericdp.core.inventory.offer import Device, Offer, in_order
from genericdp.core.inventory.past import NO_PAST, Past, Ties, Twins, value_of, with_twins
from genericdp.core.inventory.place import Place, Spot
from genericdp.core.inventory.plugged import Alike, Told
from genericdp.core.inventory.shared import shared_nodes
from genericdp.core.inventory.sorting import Nodes, Sorting
from genericdp.core.inventory.twins import SideBySide, twins_of
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.rules.template import MissingPropertyError


class Builder:
    """Builds the inventory of these resources from any udev devices.

    domain  the one that goes without saying, see `identity.assign`
    answer  how a resource is answered that does not say it
    claims  which resource takes which of the devices of the last build
    side_by_side  which units were plugged in at the same time then
    """

    def __init__(
        self, resources: Iterable[Resource], domain: str, answer: AnswerBy = AnswerBy.DEVICES
    ) -> None:
        self.resources = tuple(resources)
        self.claims = Claims(self.resources)
        self._domain = domain
        self._answer = answer
        self._sorting = Sorting(self.resources)
        self.side_by_side = SideBySide(self.resources)
        self._drafts: dict[str, _Draft] = {}

    def build(self, devices: Mapping[str, UdevDevice], past: Past = NO_PAST) -> Inventory:
        """The inventory of these udev devices (sys path -> snapshot), given what is remembered.

        A resource whose devices are the snapshots of last time keeps the very offer that it had.
        """
        turnover = self.claims.see(devices, past)
        for each in turnover.left:
            self._sorting.remove(each)
        for each in turnover.came:
            self._sorting.add(each)
        self.side_by_side.see(turnover, self.claims, past)
        past = with_twins(past, self.side_by_side.twins)
        if self.claims.plugged.unsettled:
            self.claims.seat(self._told(self.claims.plugged.unsettled, past), past)
        for resource in self.resources:
            draft = self._drafts.get(resource.name)
            nodes = self._sorting.of[resource.name]
            siblings = self._siblings_of(nodes)
            if draft is None or not draft.still_holds(nodes, siblings, past):
                made = self._draft(resource, nodes, siblings, past)
                if draft is not None and draft.changes == made.changes and draft.offer == made.offer:
                    # Only what is remembered has changed. The same object is quickly compared, in every step.
                    made = replace(made, offer=draft.offer)
                self._drafts[resource.name] = made
        drafts = [self._drafts[resource.name] for resource in self.resources]
        new_ties = {unit: port for draft in drafts for unit, port in draft.ties.items()}
        return Inventory(
            offers={draft.offer.resource.name: draft.offer for draft in drafts},
            refusals=tuple(sorted(refusal for draft in drafts for refusal in draft.refusals)),
            overlaps=tuple(sorted(self._sorting.overlaps.values())),
            ties={**past.ties, **new_ties},
            twins=past.twins,
            unsure=tuple(sorted(id_ for draft in drafts for id_ in draft.unsure)),
            conflicts=tuple(sorted(self._sorting.conflicts.values())),
            doubted={id_: mine for draft in drafts for id_, mine in draft.doubted.items()},
            untold={id_: lost for draft in drafts for id_, lost in draft.untold.items()},
            waiting=tuple(device.id for draft in drafts if draft.waits for device in draft.offer.devices),
            new={unit: places for draft in drafts for unit, places in draft.new.items()},
        )

    def _told(self, open_: frozenset[str], past: Past) -> Told:
        """What properties say that rules name as the identity of these siblings, by sys path."""
        told: dict[str, Alike] = {}
        others: dict[str, Alike] = {}
        for resource in self.resources:
            nodes = self._sorting.of[resource.name]
            if is_told_by_properties(resource) and not nodes.taken.keys().isdisjoint(open_):
                identified, _, _ = self._identified(resource, nodes)
                identities = [identity for _, identity in identified]
                assigned = assign(resource.name, identities, self._domain, past, self._count_at)
                for (group, identity), ids in zip(identified, assigned.alike, strict=True):
                    alike = Alike(ids, value_of(identity.basis, identity.value_hash))
                    told |= {member.device.sys_path: alike for member in group.members}
                # What the rule does not take, or not any more, may have the same values.
                for path in open_ - nodes.taken.keys():
                    alone = self._identity_alone(resource, self.claims.examined[path].device)
                    if alone is not None:
                        others.setdefault(path, Alike((), value_of(alone.basis, alone.value_hash)))
        return {**others, **told}

    def _identity_alone(self, resource: Resource, node: UdevDevice) -> Identity | None:
        """The identity that a node alone would have if the resource took it; None if it would have none."""
        common = in_common(resource.group_by, node)
        if common is None:
            return None
        group = empty_group(resource, common, self.claims)
        group.members.append(Member(Claim(resource, 0), node, self.claims.place(node)))
        try:
            return identity_of(group)
        except UnidentifiedError:
            return None

    def _identified(
        self, resource: Resource, nodes: Nodes
    ) -> tuple[list[tuple[Group, Identity]], list[tuple[Group, Identity]], list[Refusal]]:
        """The groups of the nodes that a resource takes, those that are new, and the refusals."""
        groups, refusals = gather(resource, nodes.taken.values(), self.claims)
        identified: list[tuple[Group, Identity]] = []
        new: list[tuple[Group, Identity]] = []
        for group in groups:
            try:
                identity = identity_of(group)
                spots = self.claims.plugged.with_homes(identity.spots)
                identity = replace(identity, twins=twins_of(group, identity), spots=spots)
                if group.is_new:
                    new.append((group, identity))
                    refusals += group.refusals(WHY_NEW)
                else:
                    identified.append((group, identity))
            except UnidentifiedError as error:
                refusals += group.refusals(str(error))
        return identified, new, refusals

    def _siblings_of(self, nodes: Nodes) -> Mapping[str, tuple[Spot, int]]:
        """The spots of those that have siblings, or had some, with how many there may be: by sys path."""
        numbers = self.claims.plugged.numbers
        if not numbers:
            return {}
        spots = {
            path: self.claims.place(these[path]).spot
            for these in (nodes.taken, nodes.shared)
            for path in numbers.keys() & these.keys()
        }
        return {path: (spot, self._count_at(spot)) for path, spot in spots.items()}

    def _count_at(self, spot: Spot) -> int:
        """How many numbers siblings at a spot may have."""
        return 1 + max(self.claims.plugged.siblings.get(spot.of_all, (0,)))

    def _draft(
        self,
        resource: Resource,
        nodes: Nodes,
        siblings: Mapping[str, tuple[Spot, int]],
        past: Past,
    ) -> "_Draft":
        identified, new, refusals = self._identified(resource, nodes)
        identities = [identity for _, identity in identified]
        assigned = assign(resource.name, identities, self._domain, past, self._count_at)
        composer = Composer(resource, self._answer)
        shared = shared_nodes(resource, nodes.shared.values(), self.claims, composer.node)
        refusals += shared.refusals
        composed: list[Device] = []
        names = [*assigned.units]
        ties = {unit: assigned.ties[unit] for unit in dict.fromkeys(names) if unit in assigned.ties}
        plain: dict[str, str] = {}
        forged: list[tuple[str, Spot, str]] = []
        models: dict[str, str] = {}
        twins = {twin for identity in identities for twin in identity.twins}
        for (group, identity), id_, unit in zip(identified, assigned.ids, assigned.units, strict=True):
            links = links_of(group, identity, id_, past)
            names += links.by_unit
            ties |= links.ties
            plain |= links.plain
            forged += links.forged
            models |= links.models
            twins |= links.twins
            try:
                device = composer.compose(group, identity, id_, unit, links.names)
                composed.append(shared.with_them(device))
            except MissingPropertyError as error:
                reason = f"it has no property {error.name}, which a template uses without a default"
                refusals += group.refusals(reason)
        return _Draft(
            changes=nodes.changes,
            siblings=siblings,
            offer=Offer(resource, in_order(composed)),
            refusals=refusals,
            names=set(names),
            ties=ties,
            twins=past.twins & twins,
            may_be_twins=frozenset(twins),
            unsure=assigned.unsure,
            seats=assigned.seats,
            rivals=assigned.rivals,
            held=past.held.intersection(assigned.rivals),
            plain=assigned.plain,
            links=plain,
            forged=forged,
            models=models,
            unknown=past.unknown,
            of_several=past.of_several,
            doubted=assigned.doubted,
            untold=assigned.untold,
            waits=shared.waits,
            new=self._places_of(resource, new),
        )

    def _places_of(
        self, resource: Resource, groups: Iterable[tuple[Group, Identity]]
    ) -> Mapping[str, Sequence[Place]]:
        """The plain ids of units -> the places of their device nodes in these groups."""
        spell, found = Speller(resource.name, self._domain), dict[str, list[Place]]()
        for group, identity in groups:
            found.setdefault(spell.unit(identity), []).extend(member.place for member in group.members)
        return found


@dataclass(frozen=True, slots=True)
class _Draft:
    """One resource's part of an inventory, and what it was made of.

    changes   how often the nodes of the resource had changed
    siblings  the spots of the nodes that have siblings, with their number
    names     what twins may have in common: the plain ids of all its units, and links
    ties      those of these names, old and new
    may_be_twins  what its units would have in common with twins
    twins     those of `may_be_twins` that twins are known to have in common
    seats, rivals, plain, doubted, untold  see `identity.Assignment`
    held      those of `rivals` that pods may hold
    links     see `plain` of `naming.links.Links`; `forged` and `models` likewise
    unknown, of_several  see `past.Past`
    waits     see `SharedNodes`
    new       see `Inventory`
    """

    changes: int
    siblings: Mapping[str, tuple[Spot, int]]
    offer: Offer
    refusals: Sequence[Refusal]
    names: set[str]
    ties: Ties
    twins: Twins
    may_be_twins: Twins
    unsure: Sequence[str]
    seats: Mapping[str, Sequence[Spot]]
    rivals: Collection[str]
    held: Collection[str]
    plain: Mapping[str, str]
    links: Mapping[str, str]
    forged: Sequence[tuple[str, Spot, str]]
    models: Mapping[str, str]
    unknown: Collection[str]
    of_several: Collection[str]
    doubted: Mapping[str, Sequence[str]]
    untold: Mapping[str, Sequence[str]]
    waits: bool
    new: Mapping[str, Sequence[Place]]

    def still_holds(self, nodes: Nodes, siblings: Mapping[str, tuple[Spot, int]], past: Past) -> bool:
        """Whether these nodes, siblings and memories would give the same draft."""
        return (
            self.changes == nodes.changes
            and self.siblings == siblings
            and self.ties == {unit: past.ties[unit] for unit in past.ties.keys() & self.names}
            and self.twins == past.twins & self.may_be_twins
            and all(past.spots_of(id_) == spots for id_, spots in self.seats.items())
            and self.held == past.held.intersection(self.rivals)
            and (self.unknown, self.of_several) == (past.unknown, past.of_several)
            and all(past.port_of(id_) == port for id_, port in self.plain.items())
            and all(past.port_at(link, ()) == port for link, port in self.links.items())
            and all(past.leads_elsewhere(*each) for each in self.forged)
            and all(past.given_model(link) == model for link, model in self.models.items())
        )
