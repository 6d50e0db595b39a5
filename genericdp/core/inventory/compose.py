"""Makes one device of the nodes of a group, with its health, its topology, its template values.

The rules of this file:

* A template that cannot be expanded is found here, not when a pod is waiting.
"""

from collections.abc import Iterable, Sequence

from genericdp.core.device import NOBODY, UdevDevice
from genericdp.core.hostile import for_path, for_value
from genericdp.core.inventory.group import Group, Member, find_property
from genericdp.core.inventory.identity import Identity
from genericdp.core.inventory.offer import Device, Health, Node
from genericdp.core.rules.match import Verdict
from genericdp.core.rules.resource import NodeTable, Resource
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.rules.template import FIELDS, MissingPropertyError, Template

#: The value of `{gid}` while no node is present: the group of nobody, which may not open anything.
_NO_GROUP = str(NOBODY)


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
            key_hash=identity.value_hash,
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
    """A number that Linux can give to a NUMA node, a bus or a device on it: it has fewer than 5 digits."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else None
