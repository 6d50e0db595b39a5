"""The device nodes that go along with every device of a resource, such as `/dev/kfd` with each AMD GPU.

The rules of this file:

* Only the match of a shared node table decides which nodes these are, wherever they sit.
* A node has one link for all resources that share it. No device has a link of that name.
* Siblings are told apart as those of devices are: a link that a pod got does not lead to another one.
* Without a node for a table that is not optional, no device of the resource is Healthy.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from genericdp.core.buses.kernel_name import stem_of
from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims, why_refused
from genericdp.core.inventory.group import Member
from genericdp.core.inventory.identity import hash_of, natural
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.offer import Device, Health, Node, SharedAt
from genericdp.core.inventory.place import Spot, spot_of_node
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.template import MissingPropertyError

#: How the name of every link to a shared node begins; "+" follows. Behind an id comes nothing or "@".
SHARED = "shared"

#: What a link can repeat of the name of a virtual device below /dev, with "+" for "/".
_PLAIN = re.compile(r"[A-Za-z0-9._/-]{1,100}")

_LINK = re.compile(rf"{SHARED}[+][A-Za-z0-9._+@-]{{1,120}}")

_STEM_LENGTH = 40
_MARK_LENGTH = 10


def is_shared_link(name: str) -> bool:
    """Whether a link of this name leads to a shared node."""
    return _LINK.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class SharedNodes:
    """The shared nodes of one resource.

    nodes     in the order of the node tables
    at        see `Device.shared_at`
    reason    why no device of the resource can be Healthy; "" if they can
    refusals  of nodes that match and are not given out
    waits     whether a node is refused only until no pod can have it
    """

    nodes: tuple[Node, ...] = ()
    at: Mapping[Spot, SharedAt] = field(default_factory=dict)
    reason: str = ""
    refusals: tuple[Refusal, ...] = ()
    waits: bool = False

    def with_them(self, device: Device) -> Device:
        """A device of the resource together with the shared nodes."""
        if not self.nodes and not self.reason:
            return device
        reason = device.reason or self.reason
        return replace(
            device,
            health=Health.UNHEALTHY if reason else Health.HEALTHY,
            reason=reason,
            links=(*device.links, *(node.link for node in self.nodes)),
            shared=self.nodes,
            shared_at=self.at,
        )


def shared_nodes(
    resource: Resource,
    devices: Iterable[UdevDevice],
    claims: Claims,
    node_of: Callable[[Member, str], Node],
) -> SharedNodes:
    """The shared nodes of a resource among the udev devices that it shares.

    node_of  describes a node under a link; may raise MissingPropertyError
    """
    members: dict[int, list[Member]] = {}
    for device in devices:
        shares = claims.judged(device).shares
        claim = next(each for each in shares if each.resource.name == resource.name)
        members.setdefault(claim.table, []).append(Member(claim, device, claims.place(device)))
    nodes: list[Node] = []
    at: dict[Spot, SharedAt] = {}
    reasons: list[str] = []
    refusals: list[Refusal] = []
    waits = False
    for index, table in enumerate(resource.nodes):
        if not table.shared:
            continue
        refused = ""
        before = len(nodes)
        for member in sorted(members.get(index, ()), key=_order):
            try:
                nodes.append(_node(member, node_of, claims.plugged))
                if not _has_name(member):
                    place, device = member.place, member.device
                    at[place.spot] = SharedAt(device.sys_path, spot_of_node(device), place.model, place.dock)
                reasons.append(member.fault)
            except _RefusedError as error:
                path = member.device.device_node or ""
                refusals.append(Refusal(resource.name, path, str(error)))
                waits = waits or claims.plugged.is_in_doubt(member.place.spot)
                refused = refused or f"the shared node '{path}' is not offered: {error}"
        if len(nodes) == before and not table.optional:
            reasons.append(refused or f"the shared node for {table.in_words} is missing")
    return SharedNodes(tuple(nodes), at, next(filter(None, reasons), ""), tuple(refusals), waits)


def _order(member: Member) -> tuple[object, ...]:
    """The sort key: what a re-plug does not change."""
    return (*map(natural, member.place.spot[:3]), natural(order_of(member.device)))


class _RefusedError(Exception):
    """A node that matches is not given out; the message says why."""


def _node(member: Member, node_of: Callable[[Member, str], Node], plugged: Plugged) -> Node:
    resource = member.claim.resource
    if reason := why_refused(member.device, resource):
        raise _RefusedError(reason)
    if what := member.place.untold:
        raise _RefusedError(f"nothing shows which {what} it is")
    if plugged.is_in_doubt(member.place.spot):
        raise _RefusedError("it cannot be told apart from another one, which a pod may still have")
    try:
        node = node_of(member, _link(member))
    except MissingPropertyError as error:
        raise _RefusedError(
            f"it has no property {error.name}, which a template uses without a default"
        ) from None
    # Its link must lead nowhere while it cannot be used.
    return replace(node, sys_path="") if member.fault else node


def _has_name(member: Member) -> bool:
    """Whether the link has the name of a virtual device or bare node."""
    device, place = member.device, member.place
    is_virtual = place.unit is device and place.port.readable == device.sys_name
    return (is_virtual or device.is_bare) and _PLAIN.fullmatch(device.devname) is not None


def _link(member: Member) -> str:
    """The name of the link: after the name of a virtual device or bare node, or else after the place."""
    device, place = member.device, member.place
    if _has_name(member):
        return f"{SHARED}+{device.devname.replace('/', '+')}"
    return f"{SHARED}+{stem_of(device)[:_STEM_LENGTH]}@{hash_of(*place.spot)[:_MARK_LENGTH]}"
