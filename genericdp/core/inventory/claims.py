"""Which resource takes which device node: the first one in file order that has a place for it.

The rules of this file:

* Only an initialized udev device with a device node can be claimed.
* A resource claims only the nodes that go into a container, not everything that its match holds for.
  The other nodes of a composite device stay free for other resources.
* The claims on a snapshot never change, so they are kept for as long as the snapshot is the same
  object. The cost of an event does not grow with the devices that it does not touch.
* Which siblings a device node has depends on what is plugged in, never on what the rules take.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.place import Place, Spot, locate
from genericdp.core.rules.match import Condition, PropertyCondition, UsbCondition, usb_value
from genericdp.core.rules.pattern import Test
from genericdp.core.rules.resource import NodeTable, Resource

#: Nodes that give control of the whole host: disks, memory, machine registers, flash.
_DANGEROUS_NAMES = re.compile(
    r"(?:mem|kmem|port|kmsg|snapshot|btrfs-control|loop-control|autofs|mapper/control|zfs"
    r"|cpu/\d+/msr|sg\d+|bsg/.*|nvme\d+|ng\d+n\d+|nvme-fabrics|raw/.*|mpt\dctl|megaraid_sas_ioctl_node"
    r"|mtd\d+(?:ro)?|ubi_ctrl|ubi\d+(?:_\d+)?|vc-mem)"
)


def is_dangerous(device: UdevDevice) -> bool:
    """Whether a resource needs `allow_dangerous = true` to hand out this device node."""
    return device.subsystem == "block" or _DANGEROUS_NAMES.fullmatch(device.devname) is not None


def why_refused(device: UdevDevice, resource: Resource) -> str:
    """Why a resource must not hand out a device node that it takes; "" if it may."""
    if is_dangerous(device) and not resource.allow_dangerous:
        return "it gives control of the host; the rule lacks 'allow_dangerous = true'"
    return device.refusal


@dataclass(frozen=True, slots=True)
class Claim:
    """A resource has a place for a device node: its node table with the index `table`."""

    resource: Resource
    table: int

    @property
    def node_table(self) -> NodeTable:
        return self.resource.nodes[self.table]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A resource with the claims that it may make, one for each node table.

    tests  for each alternative of its match, the conditions on the `_Shared` values: position and test
    """

    resource: Resource
    claims: tuple[Claim, ...]
    tests: tuple[tuple[tuple[int, Test], ...], ...]

    @classmethod
    def of(cls, resource: Resource) -> "_Candidate":
        return cls(
            resource,
            tuple(Claim(resource, index) for index in range(len(resource.nodes))),
            tuple(
                tuple(test for condition in alternative if (test := _test_of(condition)) is not None)
                for alternative in resource.match.alternatives
            ),
        )

    def may_take(self, values: "_Shared") -> bool:
        """Whether the resource may take a device with these values."""
        for alternative in self.tests:
            for position, holds in alternative:
                if not holds(values[position]):
                    break
            else:
                return True
        return not self.tests

    def claim_on(self, device: UdevDevice) -> Claim | None:
        """The claim of the first node table that has a place for a device node."""
        if self.resource.match.matches(device):
            for claim in self.claims:
                if claim.node_table.match.matches(device):
                    return claim
        return None


#: Values that many devices share: subsystem, vendor as udev knows it, vendor of the USB device. They
#: rule out most resources for most devices, and this is found out only once for devices that share them.
_Shared = tuple[str | None, str | None, str | None]

#: How many combinations of these values are kept. A device may invent vendors.
_SHARED_LIMIT = 1000


def _shared_of(device: UdevDevice) -> _Shared:
    return device.property("SUBSYSTEM"), device.property("ID_VENDOR_ID"), usb_value(device, "vendor")


def _test_of(condition: Condition) -> tuple[int, Test] | None:
    match condition:
        case PropertyCondition(name="SUBSYSTEM"):
            return 0, condition.pattern.holds
        case PropertyCondition(name="ID_VENDOR_ID"):
            return 1, condition.pattern.holds
        case UsbCondition(key="vendor"):
            return 2, condition.pattern.holds
        case _:
            return None


@dataclass(slots=True)
class _Known:
    """What was found out about a snapshot; its place only when it was needed."""

    device: UdevDevice
    claims: tuple[Claim, ...]
    place: Place | None = None


#: The device nodes that are plugged in: the spot that siblings share -> the siblings, in order.
Plugged = Mapping[Spot, Sequence[UdevDevice]]


def plugged_of(devices: Iterable[UdevDevice], place: Callable[[UdevDevice], Place] = locate) -> Plugged:
    """The device nodes among udev devices. `place` finds out where one sits; a cache makes this fast."""
    found: dict[Spot, list[UdevDevice]] = {}
    for device in devices:
        if device.device_node is not None:
            found.setdefault(place(device).spot, []).append(device)
    for siblings in found.values():
        if len(siblings) > 1:
            siblings.sort(key=lambda sibling: natural(sibling.sys_path))
    return found


def nodes_at(plugged: Plugged, spot: Spot) -> Sequence[UdevDevice]:
    """The device nodes that may be the one that was at a spot."""
    siblings = plugged.get(spot.of_all, ())
    return siblings if len(siblings) != spot.of else siblings[spot.number : spot.number + 1]


class Claims:
    """The claims of a fixed list of resources, kept for each snapshot.

    plugged  the device nodes that are plugged in
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.plugged: Plugged = {}
        self._siblings: dict[str, Spot] = {}
        self._candidates = tuple(_Candidate.of(resource) for resource in resources)
        self._candidates_of: dict[_Shared, tuple[_Candidate, ...]] = {}
        self._known: dict[str, _Known] = {}

    def see(self, devices: Mapping[str, UdevDevice]) -> None:
        """Take into account what is plugged in now, before anything is asked about it."""
        self.plugged = plugged_of(devices.values(), self._place)
        self._siblings = {
            sibling.sys_path: spot._replace(number=number, of=len(siblings))
            for spot, siblings in self.plugged.items()
            if len(siblings) > 1
            for number, sibling in enumerate(siblings)
        }
        if len(self._known) > len(devices):
            # What is kept about devices that are gone is dropped, so that memory stays flat.
            self._known = {path: known for path, known in self._known.items() if path in devices}

    def spot_of_sibling(self, device: UdevDevice) -> Spot | None:
        """The spot of a udev device that has siblings."""
        return self._siblings.get(device.sys_path) if self._siblings else None

    def on(self, device: UdevDevice) -> tuple[Claim, ...]:
        """The claims on a udev device in file order; the first one wins."""
        return self._of(device).claims

    def place(self, device: UdevDevice) -> Place:
        """Where a udev device sits, and which of its siblings it is."""
        spot = self.spot_of_sibling(device)
        return self._place(device) if spot is None else replace(self._place(device), spot=spot)

    def _place(self, device: UdevDevice) -> Place:
        known = self._of(device)
        if known.place is None:
            known.place = locate(device)
        return known.place

    def _of(self, device: UdevDevice) -> _Known:
        known = self._known.get(device.sys_path)
        if known is None or known.device is not device:
            known = self._known[device.sys_path] = _Known(device, self._judge(device))
        return known

    def _judge(self, device: UdevDevice) -> tuple[Claim, ...]:
        if device.device_node is None or not device.initialized:
            return ()
        values = _shared_of(device)
        candidates = self._candidates_of.get(values)
        if candidates is None:
            candidates = tuple(each for each in self._candidates if each.may_take(values))
            if len(self._candidates_of) >= _SHARED_LIMIT:
                self._candidates_of.clear()
            self._candidates_of[values] = candidates
        # A list, not a generator: this runs for every rule on every device.
        return tuple([claim for each in candidates if (claim := each.claim_on(device)) is not None])
