"""The inventory: every resource with its devices now. A pure function of rules and udev devices.

The rules of this file:

* `build` never fails and its result does not depend on the order in which udev devices come.
* It is built whole, every time. Two inventories are compared by value (`diff`), never patched.
* What is not offered is said with its reason, so that `list`, `explain` and the log can tell.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from genericdp.core.claims import Claim, Claims, is_dangerous
from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.hostile import for_path, for_value
from genericdp.core.identity import (
    REPLICA_ROOM,
    Identity,
    Ties,
    UnidentifiedError,
    assign,
    identify,
    identity_of_group,
    natural,
)
from genericdp.core.place import place_of
from genericdp.core.rules import NodeTable, Resource
from genericdp.core.template import FIELDS, MissingPropertyError


class Health(StrEnum):
    """Exactly the two strings that the kubelet compares with (`v1beta1` constants)."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"


@dataclass(frozen=True, slots=True)
class Node:
    """A device node of a device.

    path      where the kernel has it now
    number    what it stands for
    link      the name of its stable link, below the link directory
    table     which of the resource's node tables it goes by
    values    the udev properties that the container paths name
    devlinks  the devlinks that the table asks for, as container paths
    sys_path  the udev device
    """

    path: str
    number: DeviceNumber | None
    link: str
    table: NodeTable
    values: Mapping[str, str]
    devlinks: tuple[str, ...]
    sys_path: str


@dataclass(frozen=True, slots=True)
class Device:
    """What the kubelet allocates: one or more device nodes that travel together.

    id         stable; replicas add `.0`, `.1`, …
    reason     why it is not Healthy, "" when it is
    nodes      in the order of the node tables; () for a device known only from before a restart
    links      the names of its links; those of absent nodes included
    numa       its NUMA node, None when unknown or when another device of the resource has none
    unit       the plain id of the physical unit: what twins have in common
    port       where the unit is connected, exactly
    hub        the USB path above the port, for `prefer = "same-hub"`; "" when not USB
    usb        (bus, device) numbers of the USB device, for KubeVirt
    values     the udev properties that envs, mounts, annotations and CDI names name
    """

    id: str
    health: Health = Health.HEALTHY
    reason: str = ""
    nodes: tuple[Node, ...] = ()
    links: tuple[str, ...] = ()
    numa: int | None = None
    unit: str = ""
    port: str = ""
    hub: str = ""
    usb: tuple[int, int] | None = None
    values: Mapping[str, str] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        return self.health is Health.HEALTHY


@dataclass(frozen=True, slots=True)
class Offer:
    """One resource and its devices, in the order of their ids."""

    resource: Resource
    devices: tuple[Device, ...] = ()

    @property
    def ids(self) -> dict[str, Device]:
        """Every id that the kubelet hears, replicas told apart, with the device behind it."""
        count = self.resource.replicas
        if count is None:
            return {device.id: device for device in self.devices}
        return {f"{device.id}.{n}": device for device in self.devices for n in range(count)}


def device_behind(id_: str, resource: Resource) -> str:
    """The device's own id behind an id that the kubelet knows."""
    return id_ if resource.replicas is None else id_.rpartition(".")[0] or id_


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """A device node that a rule takes and that is not offered, and why."""

    resource: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True, order=True)
class Overlap:
    """A device node that several resources take: the first in file order has it."""

    node: str
    winner: str
    losers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All resources in file order with their devices, and everything worth saying about the rest."""

    offers: Mapping[str, Offer] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    ties: Ties = field(default_factory=dict)
    unsure: tuple[str, ...] = ()

    def links(self) -> dict[str, str | None]:
        """Link name -> the device node it must point at, None for one whose device is absent."""
        wanted: dict[str, str | None] = {}
        for offer in self.offers.values():
            for device in offer.devices:
                wanted.update(dict.fromkeys(device.links))
                if device.healthy:
                    wanted.update({node.link: node.path for node in device.nodes})
        return wanted


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference of two inventories, by resource name.

    added, removed   resources that came or went, or whose plugin must start anew
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


@dataclass(slots=True)
class _Group:
    """The nodes that will make one device, while the inventory is being built."""

    resource: Resource
    subject: UdevDevice
    property_value: str | None = None
    members: list[tuple[Claim, UdevDevice]] = field(default_factory=list)


def build(
    claims: Claims,
    devices: Mapping[str, UdevDevice],
    domain: str,
    *,
    ties: Ties | None = None,
    known_ports: Ties | None = None,
) -> Inventory:
    """The inventory of these rules on these udev devices (sys path -> snapshot).

    ties and known_ports are what is remembered of twins, see `identity.assign`.
    """
    groups, refusals, overlaps = _gather(claims, devices)
    claims.forget_all_but(devices)
    by_resource: dict[str, list[_Group]] = {resource.name: [] for resource in claims.resources}
    for group in groups:
        by_resource[group.resource.name].append(group)
    all_ties: Ties = ties or {}
    unsure: list[str] = []
    offers: dict[str, Offer] = {}
    for resource in claims.resources:
        identified: list[tuple[_Group, Identity]] = []
        for group in by_resource[resource.name]:
            try:
                identified.append((group, _identity(group)))
            except UnidentifiedError as error:
                reason = f"it has no property {error.name}, which 'identity' names"
                refusals += _refusals_of(group, reason)
        identities = [identity for _, identity in identified]
        assigned = assign(resource.name, identities, domain, all_ties, known_ports or {})
        all_ties = assigned.ties
        unsure += assigned.unsure
        built: list[Device] = []
        for (group, identity), id_, unit in zip(identified, assigned.ids, assigned.units, strict=True):
            try:
                built.append(_device(group, id_, unit, identity))
            except MissingPropertyError as error:
                reason = f"it has no property {error.name}, which a template names without a default"
                refusals += _refusals_of(group, reason)
        offers[resource.name] = Offer(resource, with_common_topology(built))
    return Inventory(
        offers, tuple(sorted(refusals)), tuple(sorted(overlaps)), all_ties, tuple(sorted(unsure))
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


def with_common_topology(devices: Iterable[Device]) -> tuple[Device, ...]:
    """The devices in the order of their ids, with a NUMA node for all of them or for none.

    A device without topology gives the kubelet no hint, which spoils the hints of the others.
    """
    ordered = sorted(devices, key=lambda device: natural(device.id))
    if all(device.numa is not None for device in ordered):
        return tuple(ordered)
    return tuple(device if device.numa is None else replace(device, numa=None) for device in ordered)


def _gather(
    claims: Claims, devices: Mapping[str, UdevDevice]
) -> tuple[Iterable[_Group], list[Refusal], list[Overlap]]:
    groups: dict[tuple[str, str], _Group] = {}
    refusals: list[Refusal] = []
    overlaps: list[Overlap] = []
    for device in devices.values():
        found = claims.on(device)
        if not found:
            continue
        claim, node = found[0], device.device_node or ""
        if len(found) > 1:
            losers = tuple(other.resource.name for other in found[1:])
            overlaps.append(Overlap(node, claim.resource.name, losers))
        resource = claim.resource
        if is_dangerous(device) and not resource.allow_dangerous:
            reason = "it gives its holder the whole host; the rule lacks 'allow_dangerous = true'"
            refusals.append(Refusal(resource.name, node, reason))
            continue
        subject, value = _subject(resource.group_by, device)
        if subject is None:
            refusals.append(Refusal(resource.name, node, _why_no_group(resource.group_by)))
            continue
        key = (resource.name, value if value is not None else subject.sys_path)
        group = groups.setdefault(key, _Group(resource, subject, value))
        group.members.append((claim, device))
    return groups.values(), refusals, overlaps


def _subject(group_by: str, device: UdevDevice) -> tuple[UdevDevice | None, str | None]:
    """(what the whole group hangs together by, the property value that says so)."""
    match group_by:
        case "node":
            return device, None
        case "usb_device":
            return device.usb_device, None
        case "parent":
            return device.parent, None
        case _:
            value = device.property(group_by)
            return (device, value) if value else (None, None)


def _why_no_group(group_by: str) -> str:
    match group_by:
        case "usb_device":
            return "it hangs off no USB device, by which the rule groups"
        case "parent":
            return "it has no parent, by which the rule groups"
        case _:
            return f"it has no property {group_by}, by which the rule groups"


def _refusals_of(group: _Group, reason: str) -> list[Refusal]:
    return [Refusal(group.resource.name, device.device_node or "", reason) for _, device in group.members]


def _identity(group: _Group) -> Identity:
    resource = group.resource
    if group.property_value is not None:
        group.subject = min((device for _, device in group.members), key=lambda device: device.sys_path)
        if resource.identity == "serial":
            return identity_of_group(group.property_value, group.subject)
    properties = _merged_properties([device for _, device in group.members])
    return identify(group.subject, resource.identity, properties)


def _merged_properties(members: Sequence[UdevDevice]) -> dict[str, str]:
    """The properties of a device: of its nodes (the first by place wins), then of its USB device."""
    merged: dict[str, str] = {}
    ordered = sorted(members, key=_member_order)
    above = {device.usb_device for device in ordered} - {None}
    for device in (*sorted(above, key=lambda usb: usb.sys_path if usb else ""), *reversed(ordered)):
        if device is not None:
            merged.update(device.properties)
    return merged


def _member_order(device: UdevDevice) -> tuple[object, ...]:
    return (natural(place_of(device, said=True)), natural(device.sys_path))


def _device(group: _Group, id_: str, unit: str, identity: Identity) -> Device:
    resource = group.resource
    members = sorted(group.members, key=lambda member: (member[0].table, _member_order(member[1])))
    properties = _merged_properties([device for _, device in members])
    nodes: list[Node] = []
    names: set[str] = set()
    for claim, member in members:
        link = id_ if resource.group_by == "node" else _member_link(id_, member, names)
        names.add(link)
        nodes.append(_node(claim.node_table, member, link))
    reason = _why_unhealthy(resource, members)
    usb = members[0][1].usb_device
    device = Device(
        id=id_,
        health=Health.UNHEALTHY if reason else Health.HEALTHY,
        reason=reason,
        nodes=tuple(nodes),
        links=tuple(node.link for node in nodes),
        numa=_numa_node(members[0][1]),
        unit=unit,
        port=identity.port.exact,
        hub=identity.port.exact.rpartition(".")[0] if usb else "",
        usb=_bus_and_device(usb),
        values=_values(resource.device_properties, properties),
    )
    _expand_all(device, resource)
    return device


def _member_link(id_: str, device: UdevDevice, taken: set[str]) -> str:
    """`<id>@<place>`: `@` occurs in no id, so no link of one device is ever that of another."""
    link = wanted = f"{id_}@{for_path(place_of(device, said=True))}"
    rank = 1
    while link in taken:
        rank += 1
        link = f"{wanted}@{rank}"
    return link


def _node(table: NodeTable, device: UdevDevice, link: str) -> Node:
    names = frozenset().union(*(path.properties for path in table.container_paths))
    return Node(
        path=device.device_node or "",
        number=device.number,
        link=link,
        table=table,
        values={"devname": device.devname, **_values(names, device.properties)},
        devlinks=tuple(sorted(_devlinks(table, device))),
        sys_path=device.sys_path,
    )


def _devlinks(table: NodeTable, device: UdevDevice) -> Iterable[str]:
    for devlink in device.devlinks:
        if any(pattern.holds(devlink) for pattern in table.devlinks):
            directory, _, last = devlink.rpartition("/")
            parts = [for_path(part) for part in directory.split("/") if part]
            if parts[:1] == ["dev"]:
                yield "/".join(["", *parts, for_path(last)])


def _values(names: Iterable[str], properties: Mapping[str, str]) -> dict[str, str]:
    return {name: properties[name] for name in sorted(names) if properties.get(name)}


def _why_unhealthy(resource: Resource, members: Sequence[tuple[Claim, UdevDevice]]) -> str:
    present = {claim.table for claim, _ in members}
    for index, table in enumerate(resource.nodes):
        if not table.optional and index not in present:
            name = table.container_paths[0].text
            return f"the device node for '{name}' is missing"
    for _, device in members:
        if not device.node_is_there:
            return f"'{device.device_node}' is not the device node {device.number}"
        usb = device.usb_device
        if usb is not None and usb.attributes.get("authorized", "1").strip() == "0":
            return "the USB device is not authorized"
        if resource.health is not None and not resource.health.matches(device):
            failed = [
                f"{verdict.key} is {verdict.actual!r}, wanted {verdict.wanted}"
                for verdicts in resource.health.judge(device)[:1]
                for verdict in verdicts
                if not verdict.holds
            ]
            return f"health: {for_value('; '.join(failed))}"
    return ""


def _numa_node(device: UdevDevice) -> int | None:
    """The NUMA node of the nearest ancestor that has one; sysfs says -1 where there is none."""
    for candidate in device.self_and_ancestors():
        text = candidate.attributes.get("numa_node", "").strip()
        if text.isascii() and text.isdigit():
            return int(text)
    return None


def _bus_and_device(usb: UdevDevice | None) -> tuple[int, int] | None:
    if usb is None:
        return None
    bus = usb.attributes.get("busnum", "").strip()
    number = usb.attributes.get("devnum", "").strip()
    if not (bus.isascii() and bus.isdigit() and number.isascii() and number.isdigit()):
        return None
    return int(bus), int(number)


#: Stands for what is known only when a container asks: a place-holder for checking templates.
_LATER = dict.fromkeys((name for name in FIELDS if name != "devname"), "0")


def _expand_all(device: Device, resource: Resource) -> None:
    """Raise MissingPropertyError now, not when a pod is waiting."""
    for node in device.nodes:
        for path in node.table.container_paths:
            path.expand({**_LATER, **node.values}, for_path)
    for template in resource.device_templates:
        template.expand({**_LATER, "devname": "-", **device.values}, for_value)


assert len(".10000") <= REPLICA_ROOM  # noqa: S101  (ties two limits that live in different files)
