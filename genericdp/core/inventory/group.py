"""Sorts the device nodes that a resource takes into groups; each group makes one device.

The rules of this file:

* `group_by` says what a group is: a node, a USB device, a parent, or all nodes that share a property.
* A node that must not be handed out, or that does not belong to a group, is refused with the reason.
* The identity of a group does not change while optional nodes come and go.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import DANGER, Claim, Claims, is_dangerous
from genericdp.core.inventory.identity import Identity, basis_of, identify, natural
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.place import Place, locate
from genericdp.core.rules.resource import Resource


@dataclass(frozen=True, slots=True)
class Member:
    """A device node of a group, with the claim that brought it in and the place where it sits."""

    claim: Claim
    device: UdevDevice
    place: Place

    @property
    def order(self) -> tuple[object, ...]:
        """The sort key: first what a re-plug does not change, last the kernel's name."""
        port, serial, within = self.place.spot[:3]
        return (natural(within), serial, port, natural(self.device.sys_path))

    @property
    def fault(self) -> str:
        """Why the node cannot be used as it is, "" if it can."""
        device, usb = self.device, self.place.usb
        if not device.node_is_there:
            return f"'{device.device_node}' is not the device node {device.number}"
        if usb is not None and usb.attributes.get("authorized", "1").strip() == "0":
            return "the USB device is not authorized"
        return ""


@dataclass(slots=True)
class Group:
    """The nodes that make one device.

    subject  the udev device that they are or have in common, None when they share a property instead
    value    the value of that property
    members  in the order of their places
    """

    resource: Resource
    subject: UdevDevice | None
    value: str = ""
    members: list[Member] = field(default_factory=list)

    def refusals(self, reason: str) -> list[Refusal]:
        """A refusal for each of its nodes."""
        return [_refusal(self.resource, member.device, reason) for member in self.members]


def gather(
    resource: Resource, devices: Iterable[UdevDevice], claims: Claims
) -> tuple[list[Group], list[Refusal]]:
    """The groups of the device nodes that a resource takes, and the refusals of the other nodes."""
    groups: dict[str, Group] = {}
    refusals: list[Refusal] = []
    for device in devices:
        subject, value = _subject(resource.group_by, device)
        if is_dangerous(device) and not resource.allow_dangerous:
            refusals.append(_refusal(resource, device, DANGER))
        elif subject is None and not value:
            refusals.append(_refusal(resource, device, _why_no_group(resource.group_by)))
        else:
            key = subject.sys_path if subject is not None else value
            group = groups.setdefault(key, Group(resource, subject, value))
            group.members.append(Member(claims.on(device)[0], device, claims.place(device)))
    for group in groups.values():
        if len(group.members) > 1:
            group.members.sort(key=lambda member: member.order)
    return list(groups.values()), refusals


def identity_of(group: Group) -> Identity:
    """The identity of the device that a group makes. Raises UnidentifiedError."""
    wanted = group.resource.identity

    def property_of(name: str) -> str | None:
        return find_property(name, group.subject, *(member.device for member in group.members))

    if group.subject is None:
        place = min((member.place for member in group.members), key=lambda place: place.port.exact)
        order = min(member.device.sys_path for member in group.members)
        if wanted == "serial":
            basis = basis_of(group.resource.group_by)
            return Identity(basis, group.value, group.value, "", place.port, order)
        return identify(place, "", order, wanted, property_of)
    place, within = _place_of_subject(group.resource.group_by, group.subject, group.members[0].place)
    return identify(place, within, group.subject.sys_path, wanted, property_of)


def _place_of_subject(group_by: str, subject: UdevDevice, member: Place) -> tuple[Place, str]:
    """Where the subject sits, and which place within the unit the device as a whole occupies."""
    match group_by:
        case "node":
            return member, member.within
        case "usb_device":
            return member, ""
        case _:
            place = locate(subject)
            return place, place.within


def find_property(name: str, *devices: UdevDevice | None) -> str | None:
    """The first value of these udev devices, or else of their USB devices, that is not empty."""
    for device in (*devices, *(device.usb_device for device in devices if device is not None)):
        value = device.property(name) if device is not None else None
        if value:
            return value
    return None


def _subject(group_by: str, device: UdevDevice) -> tuple[UdevDevice | None, str]:
    """(the udev device that the group has in common, "") or (None, the value of a property)."""
    match group_by:
        case "node":
            return device, ""
        case "usb_device":
            return device.usb_device, ""
        case "parent":
            return device.parent, ""
        case _:
            return None, device.property(group_by) or ""


def _why_no_group(group_by: str) -> str:
    match group_by:
        case "usb_device":
            return "it does not belong to a USB device, and the rule groups by 'usb_device'"
        case "parent":
            return "it has no parent, and the rule groups by 'parent'"
        case _:
            return f"it has no property {group_by}, and the rule groups by it"


def _refusal(resource: Resource, device: UdevDevice, reason: str) -> Refusal:
    return Refusal(resource.name, device.device_node or "", reason)
