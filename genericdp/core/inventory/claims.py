"""Which resource takes which device node: the first in file order that has a place for it.

The rules of this file:

* Only an initialised udev device with a device node can be claimed.
* What a resource claims are the nodes that go into a container, not everything that its match
  holds for: the other nodes of a composite device stay free for other resources.
* The answer for a snapshot never changes, so it is kept as long as the snapshot is the same object:
  the cost of an event does not grow with the devices it does not touch.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import Place, locate
from genericdp.core.rules.match import Condition, PropertyCondition, UsbCondition, usb_value
from genericdp.core.rules.pattern import Test
from genericdp.core.rules.resource import NodeTable, Resource

#: Nodes whose holder owns the whole host: disks, memory, machine registers, flash.
_DANGEROUS_NAMES = re.compile(
    r"(?:mem|kmem|port|kmsg|snapshot|btrfs-control|loop-control|autofs|mapper/control|zfs"
    r"|cpu/\d+/msr|sg\d+|bsg/.*|nvme\d+|ng\d+n\d+|nvme-fabrics|raw/.*|mpt\dctl|megaraid_sas_ioctl_node"
    r"|mtd\d+(?:ro)?|ubi_ctrl|ubi\d+(?:_\d+)?|vc-mem)"
)


def is_dangerous(device: UdevDevice) -> bool:
    """Whether a resource must say `allow_dangerous = true` to hand this device node out."""
    return device.subsystem == "block" or _DANGEROUS_NAMES.fullmatch(device.devname) is not None


@dataclass(frozen=True, slots=True)
class Claim:
    """A resource has a place for a device node: the `table`th of its node tables."""

    resource: Resource
    table: int

    @property
    def node_table(self) -> NodeTable:
        return self.resource.nodes[self.table]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A resource, the claims that it may make (one for each node table), and its conditions on the
    `_Asked` values: for each alternative, the positions there and what is wanted.
    """

    resource: Resource
    claims: tuple[Claim, ...]
    asked: tuple[tuple[tuple[int, Test], ...], ...]

    @classmethod
    def of(cls, resource: Resource) -> "_Candidate":
        return cls(
            resource,
            tuple(Claim(resource, index) for index in range(len(resource.nodes))),
            tuple(
                tuple(asked for condition in alternative if (asked := _asked_by(condition)) is not None)
                for alternative in resource.match.alternatives
            ),
        )

    def is_open_for(self, values: "_Asked") -> bool:
        """Whether these values leave it open that the resource takes a device."""
        for alternative in self.asked:
            for position, holds in alternative:
                if not holds(values[position]):
                    break
            else:
                return True
        return not self.asked

    def claim_on(self, device: UdevDevice) -> Claim | None:
        """The claim of the first node table that has a place for a device node."""
        if self.resource.match.matches(device):
            for claim in self.claims:
                if claim.node_table.match.matches(device):
                    return claim
        return None


#: Values that many devices share: subsystem, vendor as udev knows it, vendor of the USB device. Most
#: rules have nothing to do with most devices, and these say so once for all devices alike.
_Asked = tuple[str | None, str | None, str | None]

#: A device may invent vendors; no node has so many real ones.
_ALIKE_LIMIT = 1000


def _asked_of(device: UdevDevice) -> _Asked:
    return device.property("SUBSYSTEM"), device.property("ID_VENDOR_ID"), usb_value(device, "vendor")


def _asked_by(condition: Condition) -> tuple[int, Test] | None:
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
    """What was found out about a snapshot; its place only once somebody asks."""

    device: UdevDevice
    claims: tuple[Claim, ...]
    place: Place | None = None


class Claims:
    """The claims of a fixed list of resources, kept for each snapshot."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._candidates = tuple(_Candidate.of(resource) for resource in resources)
        self._alike: dict[_Asked, tuple[_Candidate, ...]] = {}
        self._known: dict[str, _Known] = {}

    def on(self, device: UdevDevice) -> tuple[Claim, ...]:
        """The claims on a udev device in file order; the first one wins."""
        return self._of(device).claims

    def place(self, device: UdevDevice) -> Place:
        """Where a udev device sits, see `place.locate`."""
        known = self._of(device)
        if known.place is None:
            known.place = locate(device)
        return known.place

    def forget_all_but(self, devices: Mapping[str, UdevDevice]) -> None:
        """Drop what is remembered of devices that are gone, so that memory stays flat."""
        if len(self._known) > len(devices):
            self._known = {path: known for path, known in self._known.items() if path in devices}

    def _of(self, device: UdevDevice) -> _Known:
        known = self._known.get(device.sys_path)
        if known is None or known.device is not device:
            known = self._known[device.sys_path] = _Known(device, self._judge(device))
        return known

    def _judge(self, device: UdevDevice) -> tuple[Claim, ...]:
        if device.device_node is None or not device.initialized:
            return ()
        asked = _asked_of(device)
        candidates = self._alike.get(asked)
        if candidates is None:
            candidates = tuple(each for each in self._candidates if each.is_open_for(asked))
            if len(self._alike) >= _ALIKE_LIMIT:
                self._alike.clear()
            self._alike[asked] = candidates
        # A list, not a generator: this runs for every rule on every device.
        return tuple([claim for each in candidates if (claim := each.claim_on(device)) is not None])
