"""Makes one device of the nodes of a group: its links, its health, its topology, its template values.

The rules of this file:

* Links are named after the places of the nodes. So the link of one node never becomes that of another,
  whichever nodes are missing. Nodes that look alike get longer names. Only the one of a twin that was there
  first keeps the short one. If a pod got that for a model, the node of this model has it.
* A template that cannot be expanded is found here, not when a pod is waiting.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

from genericdp.core.device import NOBODY, UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.hostile import for_path, for_value
from genericdp.core.inventory.group import Group, Member, find_property
from genericdp.core.inventory.identity import Identity, hash_of, names_of
from genericdp.core.inventory.ids import long_name
from genericdp.core.inventory.offer import Device, Health, Node
from genericdp.core.inventory.past import (
    NO_TWINS,
    Past,
    Ties,
    Twin,
    Twins,
    ports_given,
    tie_links,
    twin_of,
    with_wholes,
)
from genericdp.core.inventory.place import Spot, may_be_model
from genericdp.core.rules.grouping import NODE
from genericdp.core.rules.match import Verdict
from genericdp.core.rules.resource import NodeTable, Resource
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.rules.template import FIELDS, MissingPropertyError, Template

#: The value of `{gid}` while no node is present: the group of nobody, which may not open anything.
_NO_GROUP = str(NOBODY)

#: How many characters of a hash tell the units of one device apart; there are few.
_MARK_LENGTH = 6


class Composer:
    """Makes the devices of one resource. It knows which properties the templates name.

    answer  how the resource is answered if it does not say it
    """

    def __init__(self, resource: Resource, answer: AnswerBy) -> None:
        self._resource = resource
        # A node's new group does not concern other resources.
        self._needs_groups = (resource.answer or answer) is not AnswerBy.DEVICES
        self._of_device = _Properties(resource.device_templates)
        self._of_nodes = tuple(_Properties(table.container_paths) for table in resource.nodes)

    def compose(self, group: Group, identity: Identity, id_: str, unit: str, links: Sequence[str]) -> Device:
        """The device of a group. Raises MissingPropertyError when a template cannot be expanded."""
        places = sorted(zip(group.members, links, strict=True), key=lambda place: place[0].claim.table)
        nodes = tuple(self.node(member, link) for member, link in places)
        reason = _why_unhealthy(self._resource, [member for member, _ in places])
        about = places[0][0].device if group.subject is None else group.subject[0]
        return Device(
            id=id_,
            health=Health.UNHEALTHY if reason else Health.HEALTHY,
            reason=reason,
            nodes=nodes,
            links=tuple(node.link for node in nodes),
            numa=_numa_node(member.device for member, _ in places),
            unit=unit,
            basis=identity.basis,
            key_hash=_key_hash(identity),
            port=identity.port.exact,
            hub=identity.port.hub,
            usb=_bus_and_device(member.place.usb for member, _ in places),
            values=self._of_device.values([member.device for member, _ in places], about.sys_name),
            spots=tuple([member.place.spot for member, _ in places]),
            models=tuple([member.place.model for member, _ in places]),
            docks={member.place.spot: dock for member, _ in places if (dock := member.place.dock)},
            also=tuple([spot for member, link in places for spot in member.also(link)]),
            before=tuple([spot for member, _ in places if (spot := member.place.before) is not None]),
            across=tuple([spot for member, _ in places if (spot := member.place.across) is not None]),
        )

    def node(self, member: Member, link: str) -> Node:
        """A device node under a link. Raises MissingPropertyError when a template cannot be expanded."""
        claim, device = member.claim, member.device
        return Node(
            path=device.device_node or "",
            number=device.number,
            link=link,
            table=claim.node_table,
            values={
                "devname": device.devname,
                **self._of_nodes[claim.table].values((device,), device.sys_name),
            },
            devlinks=_devlinks(claim.node_table, device),
            sys_path=device.sys_path,
            gid=device.gid if self._needs_groups else None,
        )


class _Properties:
    """The udev properties that some templates name, and which of them they require.

    `gid` and `sysname` are among them only where a template names them, so that a node's new group does not
    concern other resources.
    """

    def __init__(self, templates: Iterable[Template]) -> None:
        fields = [field for template in templates for field in template.fields]
        names = {field.name for field in fields}
        self._named = sorted(names - {*FIELDS})
        self._names_gid = "gid" in names
        self._names_sysname = "sysname" in names
        self._required = {field.name for field in fields if field.default is None}

    def values(self, devices: Sequence[UdevDevice], sys_name: str) -> dict[str, str]:
        """Their values for these nodes. Raises MissingPropertyError.

        sys_name  the kernel's name of what the template is about
        """
        found: dict[str, str] = {}
        if self._names_gid:
            groups = sorted({device.gid for device in devices if device.gid is not None})
            found["gid"] = ",".join(map(str, groups)) or _NO_GROUP
        if self._names_sysname:
            found["sysname"] = sys_name
        for name in self._named:
            value = find_property(name, *devices)
            if value is not None:
                found[name] = value
            elif name in self._required:
                raise MissingPropertyError(name)
        return found


@dataclass(frozen=True, slots=True)
class Links:
    """The names of the links of a group.

    names    the link of each member: `<id>`, or `<id>@<place>` where there may be several. `@` occurs in no
             id, so no link of one device is ever that of another
    by_unit  those names that a unit has by its serial number alone, or would have if it had no twin
    ties     such a name -> the exact port of the twin that had it first, "" if none had
    plain    such a name of a filler -> the exact port where it is remembered
    twins    what the units named so would have in common with twins
    forged   such a name, with spot and model of a node that does not have it: a pod got it for another unit
    models   such a name, or a long one -> the model of the unit for which a pod got it
    """

    names: Sequence[str]
    by_unit: Collection[str] = ()
    ties: Ties = field(default_factory=dict)
    plain: Mapping[str, str] = field(default_factory=dict)
    twins: Twins = NO_TWINS
    forged: Collection[tuple[str, Spot, str]] = ()
    models: Mapping[str, str] = field(default_factory=dict)


def links_of(group: Group, identity: Identity, id_: str, past: Past) -> Links:
    """The names of the links of a group, with what they depend on."""
    if group.resource.group_by == NODE:
        return Links([id_])
    places = [member.place for member in group.members]
    spots = [place.spot for place in places]
    names = [_name(group, identity, id_, spot) for spot in spots]
    rivals: dict[str, dict[Spot, Twin | None]] = {}
    plain: dict[str, str] = {}
    for name, spot, place in zip(names, spots, places, strict=True):
        if _is_by_unit(group, identity, spot):
            rivals.setdefault(name, {})[spot] = twin_of(place)
            if why_filler(spot.serial):
                plain[name] = past.port_at(name, ())
    ties = tie_links(rivals, past)
    # The mark in a name is short, and a serial number can be made for it.
    by_unit = [(name, place.spot, place.model) for name, place in zip(names, places, strict=True)]
    forged = frozenset(each for each in by_unit if each[0] in rivals and past.leads_elsewhere(*each))
    models = {name: past.given_model(name) for name in ties}
    owners = {**ties, **plain, **ports_given(models, by_unit, rivals, past)}
    has_it = [owners.get(each[0], each[1].port) == each[1].port and each not in forged for each in by_unit]
    times = Counter(compress(names, has_it))
    links = [
        name if mine and times[name] == 1 else _long_name_of(name, spot, model, models, past)
        for (name, spot, model), mine in zip(by_unit, has_it, strict=True)
    ]
    twins = with_wholes(twin for spots in rivals.values() for twin in spots.values())
    return Links(links, rivals.keys(), ties, plain, twins, forged, models)


def _long_name_of(name: str, spot: Spot, model: str, models: dict[str, str], past: Past) -> str:
    """The long name of a node, unless a pod got that for another model, which was at the same spot.

    models  see `Links.models`; what is asked for here is added
    """
    longer, longest = long_name(name, spot), long_name(name, spot, model)
    models |= {each: past.given_model(each) for each in (longer, longest)}
    # Once a node has the longest name, the next pod gets that.
    has_longest = models[longest] == model != ""
    return longest if has_longest or not may_be_model(models[longer], model) else longer


def _name(group: Group, identity: Identity, id_: str, spot: Spot) -> str:
    """The link of the node at a spot, if it belongs to that node alone."""
    name = f"{id_}@{for_path(spot.within)}"
    if _is_foreign(group, identity, spot):
        # Another unit may have the same place, so the link says which unit it is.
        is_by_unit = _is_by_unit(group, identity, spot)
        # A device may call itself like the port of another one.
        kind = ("serial",) if is_by_unit and spot.serial.startswith("/") else ()
        name += f"@{hash_of(*kind, spot.serial if is_by_unit else spot.port)[:_MARK_LENGTH]}"
    return f"{name}@{spot.number + 1}" if spot.number else name


def _is_by_unit(group: Group, identity: Identity, spot: Spot) -> bool:
    """Whether the link of the node at a spot names its unit by the serial number, wherever it is."""
    return spot.serial != "" and group.resource.identity == "serial" and _is_foreign(group, identity, spot)


def _is_foreign(group: Group, identity: Identity, spot: Spot) -> bool:
    """Whether a spot may be on another unit than the one that the group is about."""
    return group.subject is None or spot.port != identity.port.exact


def _key_hash(identity: Identity) -> str:
    """What the same values of the same properties have in common in every resource, see `Device.key_hash`."""
    return hash_of(identity.basis, identity.key) if names_of(identity.basis) else ""


def _devlinks(table: NodeTable, device: UdevDevice) -> tuple[str, ...]:
    """The devlinks that a table asks for, made harmless as container paths."""
    if not table.devlinks:
        return ()
    paths: set[str] = set()
    for devlink in device.devlinks:
        if devlink.startswith("/dev/") and any(pattern.holds(devlink) for pattern in table.devlinks):
            parts = [for_path(part) for part in devlink.removeprefix("/dev/").split("/") if part]
            paths.add("/".join(("/dev", *parts)))
    return tuple(sorted(paths - {"/dev"}))


def _why_unhealthy(resource: Resource, members: Sequence[Member]) -> str:
    """A reason that an operator can do something about, "" for a healthy device."""
    present = {member.claim.table for member in members}
    for index, table in enumerate(resource.nodes):
        if index not in present and not table.optional and not table.shared:
            return f"the device node for {table.in_words} is missing"
    for member in members:
        if member.fault:
            return member.fault
        if resource.health is not None and not resource.health.matches(member.device):
            failed = (verdict for verdict in resource.health.judge(member.device)[0] if not verdict.holds)
            return for_value("; ".join(_in_words(verdict) for verdict in failed))
    return ""


def _in_words(verdict: Verdict) -> str:
    actual = "missing" if verdict.actual is None else f"'{verdict.actual}'"
    return f"{verdict.key} is {actual}, wanted {verdict.wanted}"


def _numa_node(devices: Iterable[UdevDevice]) -> int | None:
    """The NUMA node on which all of these are; None if they are on several or if one is on none."""
    nodes = {_nearest_numa_node(device) for device in devices}
    return nodes.pop() if len(nodes) == 1 else None


def _nearest_numa_node(device: UdevDevice) -> int | None:
    """The NUMA node of the nearest ancestor that has one; in sysfs, -1 stands for none."""
    for candidate in device.self_and_ancestors():
        text = candidate.attributes.get("numa_node")
        node = _number(text) if text is not None else None
        if node is not None:
            return node
    return None


def _bus_and_device(units: Iterable[UdevDevice | None]) -> tuple[tuple[int, int], ...]:
    """The (bus, device) numbers of these USB devices, each once."""
    found: dict[tuple[int, int], None] = {}
    for usb in units:
        numbers = None if usb is None else usb_numbers(usb)
        if numbers is not None:
            found[numbers] = None
    return tuple(found)


def usb_numbers(usb: UdevDevice) -> tuple[int, int] | None:
    """The (bus, device) numbers of a USB device."""
    bus, device = (_number(usb.attributes.get(name, "")) for name in ("busnum", "devnum"))
    return None if bus is None or device is None else (bus, device)


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
