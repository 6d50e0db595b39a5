"""The inventory: every resource with its devices now. A pure function of rules and udev devices.

The rules of this file:

* `build` never fails and its result does not depend on the order in which udev devices come.
* It is built whole, every time. Two inventories are compared by value (`diff`), never patched.
* What is not offered is said with its reason, so that `list`, `explain` and the log can tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.compose import Composer
from genericdp.core.inventory.group import Group, gather, identity_of
from genericdp.core.inventory.identity import Identity, Ties, UnidentifiedError, assign
from genericdp.core.inventory.offer import Device, Health, Offer, Overlap, Refusal, in_order
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.template import MissingPropertyError

#: How many ids one resource offers: with those that are absent or withdrawn, the list for the kubelet
#: stays below 4 MiB, beyond which it ends the stream (grpc-go's default).
ID_LIMIT = 20_000

TOO_MANY = f"and {ID_LIMIT} ids are the most that a kubelet takes; lower 'replicas', or match less"


@dataclass(frozen=True, slots=True)
class Inventory:
    """All resources in file order with their devices, and everything worth saying about the rest.

    ties       which of several twins has the plain ids, see `identity`
    unsure     ids of devices that nothing but their order tells apart
    withdrawn  links of devices that no resource is left for, and that pods may still hold
    """

    offers: Mapping[str, Offer] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    ties: Ties = field(default_factory=dict)
    unsure: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()

    def links(self) -> dict[str, str | None]:
        """Link name -> the device node it must point at, None for one whose device is absent."""
        wanted: dict[str, str | None] = dict.fromkeys(self.withdrawn)
        for offer in self.offers.values():
            for device in offer.devices:
                wanted.update(dict.fromkeys(device.links))
                if device.healthy:
                    wanted.update({node.link: node.path for node in device.nodes})
        return wanted


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference of two inventories, by resource name.

    added, removed   resources that came or went
    updated          resources whose list for the kubelet is another one, or whose answers are
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


def build(
    claims: Claims,
    devices: Mapping[str, UdevDevice],
    domain: str,
    *,
    ties: Ties | None = None,
    known_ports: Ties | None = None,
) -> Inventory:
    """The inventory of these rules on these udev devices (sys path -> snapshot).

    ties and known_ports are what is remembered of twins, see `identity.assign`. A resource whose
    devices are the snapshots of last time keeps the very offer that it had.
    """
    ties = ties or {}
    taken: dict[str, list[UdevDevice]] = {resource.name: [] for resource in claims.resources}
    overlaps: list[Overlap] = []
    for device in devices.values():
        found = claims.on(device)
        if found:
            taken[found[0].resource.name].append(device)
        if len(found) > 1:
            winner, *losers = (claim.resource.name for claim in found)
            overlaps.append(Overlap(device.device_node or "", winner, tuple(losers)))
    claims.forget_all_but(devices)
    drafts = [
        _draft(resource, taken[resource.name], claims, domain, ties=ties, known_ports=known_ports or {})
        for resource in claims.resources
    ]
    new_ties = {unit: port for draft in drafts for unit, port in draft.ties.items()}
    return Inventory(
        offers={draft.offer.resource.name: draft.offer for draft in drafts},
        refusals=tuple(sorted(refusal for draft in drafts for refusal in draft.refusals)),
        overlaps=tuple(sorted(overlaps)),
        ties={**ties, **new_ties},
        unsure=tuple(sorted(id_ for draft in drafts for id_ in draft.unsure)),
    )


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
class _Draft:
    """One resource's part of an inventory, and what it was made of.

    units   of all its devices
    ties    those of its units, old and new
    """

    domain: str
    devices: Sequence[UdevDevice]
    offer: Offer
    refusals: Sequence[Refusal]
    units: Sequence[str]
    ties: Ties
    unsure: Sequence[str]

    def still_holds(self, domain: str, devices: Sequence[UdevDevice], ties: Ties) -> bool:
        """Whether it would come out the same, of these snapshots and with these ties."""
        return (
            self.domain == domain
            and self.devices == devices
            and all(ties.get(unit) == self.ties.get(unit) for unit in self.units)
        )


def _draft(
    resource: Resource,
    devices: Sequence[UdevDevice],
    claims: Claims,
    domain: str,
    *,
    ties: Ties,
    known_ports: Ties,
) -> _Draft:
    """The draft of last time if it still holds, or a new one."""
    kept = claims.drafts.get(resource.name)
    if isinstance(kept, _Draft) and kept.still_holds(domain, devices, ties):
        return kept
    groups, refusals = gather(resource, devices, claims)
    identified: list[tuple[Group, Identity]] = []
    for group in groups:
        try:
            identified.append((group, identity_of(group)))
        except UnidentifiedError as error:
            refusals += group.refusals(f"it has no property {error.name}, which 'identity' names")
    assigned = assign(resource.name, [identity for _, identity in identified], domain, ties, known_ports)
    composer = Composer(resource)
    composed: list[Device] = []
    behind: dict[str, Group] = {}
    for (group, identity), id_, unit in zip(identified, assigned.ids, assigned.units, strict=True):
        behind[id_] = group
        try:
            composed.append(composer.compose(group, identity, id_, unit))
        except MissingPropertyError as error:
            reason = f"it has no property {error.name}, which a template names without a default"
            refusals += group.refusals(reason)
    most = ID_LIMIT // (resource.replicas or 1)
    offered = in_order(composed)
    for device in offered[most:]:
        refusals += behind[device.id].refusals(f"its resource has {most} other devices, {TOO_MANY}")
    units = tuple(dict.fromkeys(assigned.units))
    draft = _Draft(
        domain=domain,
        devices=devices,
        offer=Offer(resource, offered[:most]),
        refusals=refusals,
        units=units,
        ties={unit: assigned.ties[unit] for unit in units if unit in assigned.ties},
        unsure=assigned.unsure,
    )
    claims.drafts[resource.name] = draft
    return draft
