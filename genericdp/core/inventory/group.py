"""Sorts the device nodes that a resource takes into groups; each group makes one device.

The rules of this file:

* `group_by` says what a group is: the nodes with the same nearest udev device that satisfies a match (a node,
  a USB device and a parent are special cases), those that share a property, or all.
* A node that must not be handed out, or that does not belong to a group, is refused with the reason.
* The identity of a group does not change while optional nodes come and go. That of nodes that share a
  property, or of all nodes, is never tied to a port: they may be at several.
* The value of the property that nodes share is always part of the identity of their group. So no two groups
  have one identity, and the id of a group does not depend on which others are there.
* A property that an identity names is looked for in the unit and its parts, for a template also above.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from genericdp.core.buses.port import usb_above
from genericdp.core.buses.told import why_untold
from genericdp.core.buses.video import order_of
from genericdp.core.device import UdevDevice
from genericdp.core.hostile import for_value
from genericdp.core.inventory.claims import Claim, Claims, why_refused
from genericdp.core.inventory.identity import OF_ALL, Identity, UnidentifiedError, basis_of, natural
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.place import (
    Place,
    Spot,
    locate,
    spot_of,
    spot_of_node,
    spot_under_link,
    unit_of,
)
from genericdp.core.rules.grouping import NODE, AllNodes, Grouping, Nearest, SameProperty
from genericdp.core.rules.resource import Resource
from genericdp.core.vfio import why_not_viable

_NO_PORT = (
    'it has no port, only a number in order of arrival; leave out identity = "port": '
    "its serial number identifies it"
)

WHY_NEW = (
    "it has appeared beside another unit in the same USB socket, and may be that unit at another speed; "
    "if both stay and can be read, this is decided in a minute"
)


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
        return (natural(within), serial, port, natural(order_of(self.device)))

    def also(self, link: str) -> tuple[Spot, ...]:
        """Where the very node may be found later, although it is another device by then.

        A bare node may get another path, a VFIO group another first function, a volume another name, and what
        tells the unit, a property or an attribute, may get another value while the unit stays plugged in.

        link  the one that leads there now
        """
        device = self.device
        if device.is_bare:
            return (spot_of(device.number),)
        functions = device.companions if device.subsystem == "vfio" else ()
        also = [locate(replace(device, parent=each, companions=())).spot for each in functions]
        return (*also, spot_of_node(device), spot_under_link(device, link))

    @property
    def fault(self) -> str:
        """Why the node cannot be used as it is, "" if it can."""
        device, usb = self.device, self.place.usb
        if not device.node_is_there:
            return f"'{device.device_node}' is not the device node {device.number}"
        if usb is not None and usb.attributes.get("authorized", "1").strip() == "0":
            return "the USB device is not authorized"
        return for_value(why_not_viable(device))


@dataclass(slots=True)
class Group:
    """The nodes that make one device.

    subject  the udev device that they are or have in common, with the place where it sits; None when they
             share a property, or nothing but the resource
    value    the value of the property
    members  in the order of their places
    is_new   whether each has appeared beside another unit in its USB socket: then they make no device yet
    """

    resource: Resource
    subject: tuple[UdevDevice, Place] | None
    value: str = ""
    members: list[Member] = field(default_factory=list)
    is_new: bool = False

    def refusals(self, reason: str) -> list[Refusal]:
        """A refusal for each of its nodes."""
        return [_refusal(self.resource, member.device, reason) for member in self.members]


def gather(
    resource: Resource, devices: Iterable[UdevDevice], claims: Claims
) -> tuple[list[Group], list[Refusal]]:
    """The groups of the device nodes that a resource takes, and the refusals of the other nodes."""
    groups: dict[tuple[str, bool], Group] = {}
    refusals: list[Refusal] = []
    for device in devices:
        common = in_common(resource.group_by, device)
        if reason := why_refused(device, resource):
            refusals.append(_refusal(resource, device, reason))
        elif common is None:
            refusals.append(_refusal(resource, device, _why_no_group(resource.group_by)))
        else:
            is_new = bool(claims.sockets.new) and usb_above(device.sys_path) in claims.sockets.new
            key = common if isinstance(common, str) else common.sys_path, is_new
            if key not in groups:
                groups[key] = replace(empty_group(resource, common, claims), is_new=is_new)
            groups[key].members.append(Member(claims.on(device)[0], device, claims.place(device)))
    for group in groups.values():
        if len(group.members) > 1:
            group.members.sort(key=lambda member: member.order)
        for member in _untold(group):
            group.members.remove(member)
            refusals.append(_refusal(resource, member.device, why_untold(member.place.untold, in_group=True)))
    return [group for group in groups.values() if group.members], refusals


def _untold(group: Group) -> list[Member]:
    """The members of which nothing shows which ones they are.

    One of these is told by the group if that is the disk itself, or has a property in common.
    """
    untold = [member for member in group.members if member.place.untold]
    if not untold or group.resource.group_by == NODE:
        return []
    if isinstance(group.resource.group_by, AllNodes) or (group.subject and not group.subject[1].untold):
        return untold
    return untold if len({_disk_of(member) for member in untold}) > 1 else []


def _disk_of(member: Member) -> str:
    """The sys path of the disk, volume or array that a node is, or is a part of."""
    disks = (each for each in member.device.self_and_ancestors() if each.devtype == "scsi_device")
    return next(disks, member.place.unit).sys_path


def empty_group(resource: Resource, common: UdevDevice | str, claims: Claims) -> Group:
    """The group of what has this in common (`in_common`), without its members."""
    if isinstance(common, str):
        return Group(resource, None, common)
    return Group(resource, (common, claims.place(common)))


def in_common(grouping: Grouping, device: UdevDevice) -> UdevDevice | str | None:
    """What a node has in common with the others of its group: a udev device or the value of a property.

    None if it belongs to no group.
    """
    match grouping:
        case Nearest():
            return grouping.subject(device)
        case SameProperty(name):
            return device.property(name) or None
        case AllNodes():
            return ""


def identity_of(group: Group) -> Identity:
    """The identity of the device that a group makes. Raises UnidentifiedError."""
    return replace(_identity_of(group), spots=tuple([member.place.spot for member in group.members]))


def is_told_by_properties(resource: Resource) -> bool:
    """Whether the identity of a device of the resource is made of properties that the rule names."""
    return isinstance(resource.group_by, SameProperty) or isinstance(resource.identity, tuple)


def _identity_of(group: Group) -> Identity:
    wanted, grouping = group.resource.identity, group.resource.group_by
    nodes = tuple(member.device for member in group.members)
    if group.subject is not None:
        subject, place = group.subject
        return identify(
            place,
            place.within,
            order_of(subject),
            wanted,
            lambda name: find_property(name, subject, *nodes, within_unit=True),
        )
    if not isinstance(grouping, SameProperty):
        return OF_ALL
    place = min((member.place for member in group.members), key=lambda place: place.port.exact)
    order = min(order_of(member.device) for member in group.members)
    # Parts of a device may be at several ports, and come and go. None of these is the one of the device.
    names = wanted if isinstance(wanted, tuple) else ()

    def value_of(name: str) -> str | None:
        return group.value if name == grouping.name else find_property(name, *nodes, within_unit=True)

    told_by = tuple(dict.fromkeys((*names, grouping.name)))
    return replace(identify(place, "", order, told_by, value_of), is_spread=True)


def identify(
    place: Place,
    within: str,
    order: str,
    wanted: str | tuple[str, ...],
    property_of: Callable[[str], str | None],
) -> Identity:
    """The identity of a device at a place of a unit.

    `wanted` is the rule's identity; `property_of` looks up a list of names.
    Raises UnidentifiedError when one of them is missing, and when nothing shows which device it is.
    """
    port = place.port
    if isinstance(wanted, tuple):
        values = [_required(property_of, name) for name in wanted]
        key = values[0] if len(values) == 1 else ascii(values)
        return Identity(basis_of(*wanted), key, "-".join(values), within, port, order)
    if place.untold:
        raise UnidentifiedError(why_untold(place.untold))
    if wanted == "serial" and place.serial is not None:
        return Identity("serial", place.serial, place.serial, within, port, order)
    is_name = port.readable == place.unit.sys_name
    if (is_name or port.is_turn) and place.serial is not None:
        raise UnidentifiedError(_NO_PORT)
    if is_name:
        return Identity("name", port.readable, port.readable, within, port, order)
    return Identity("port", port.exact, port.readable, within, port, order)


def _required(property_of: Callable[[str], str | None], name: str) -> str:
    value = property_of(name)
    if not value:
        raise UnidentifiedError(f"it has no property {name}, which 'identity' uses")
    return value


def find_property(name: str, *devices: UdevDevice, within_unit: bool = False) -> str | None:
    """The first value of a property that is not empty, see `source_of`."""
    source = source_of(name, *devices, within_unit=within_unit)
    return None if source is None else source.property(name)


def source_of(name: str, *devices: UdevDevice, within_unit: bool = False) -> UdevDevice | None:
    """The udev device from which these ones have a property.

    That is the first of themselves that has it, or else of their USB devices, or else of their ancestors, the
    nearest first. What a hub says about itself is not said about the devices at its ports.

    within_unit  only ancestors count that are parts of the unit, or the unit itself
    """
    return next((each for each in _sources(devices, within_unit=within_unit) if each.property(name)), None)


def _sources(devices: Sequence[UdevDevice], *, within_unit: bool) -> Iterator[UdevDevice]:
    yield from devices
    for device in devices:
        usb = device.usb_device
        # A USB radio is not part of the devices behind it.
        if usb is not None and not (within_unit and unit_of(device) is not usb):
            yield usb
    for device in devices:
        unit, is_above = unit_of(device), False
        for each in device.self_and_ancestors():
            if not is_above or not (within_unit or each.subsystem == "usb"):
                yield each
            is_above = is_above or each is unit


def _why_no_group(grouping: Grouping) -> str:
    match grouping:
        case SameProperty(name):
            return f"it has no property {name}, but the rule groups by it"
        case Nearest(word="usb_device"):
            return "it does not belong to a USB device, but the rule groups by 'usb_device'"
        case Nearest(word="parent"):
            return "it has no parent, but the rule groups by 'parent'"
        case _:
            return "neither it nor one of its parents satisfies the match in 'group_by'"


def _refusal(resource: Resource, device: UdevDevice, reason: str) -> Refusal:
    return Refusal(resource.name, device.device_node or "", reason)
