"""Which resource takes which device node: the first one in file order that has a place for it.

And which resources share it: those with a shared node table for it, whoever takes it.

The rules of this file:

* Only an initialized udev device with a device node can be claimed.
* A resource claims only the nodes that go into a container, not everything that its match holds for.
  The other nodes of a composite device stay free for other resources.
* The claims on a snapshot never change, so they are kept for as long as the snapshot is the same
  object. Of the devices that an event does not touch, it only compares whether they are.
* Of bare nodes, only those can be claimed that a rule names: others are seen only because somebody asks for
  them or a pod may hold them.
* A node that a resource shares is none of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from genericdp.core.buses.port import is_usb, port_on_a_bus, usb_above
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.past import NO_PAST, Past
from genericdp.core.inventory.place import Place, locate, nodes_of_unit
from genericdp.core.inventory.plugged import NOTHING_PLUGGED, Told
from genericdp.core.inventory.siblings.groups import NO_GROUPS, Sighting
from genericdp.core.rules.match import Condition, Match, PropertyCondition, UsbCondition, usb_value
from genericdp.core.rules.node_names import names_in
from genericdp.core.rules.pattern import Test
from genericdp.core.rules.resource import NodeTable, Resource
from genericdp.core.usb_port import Sockets

#: Nodes that give control of the whole host: disks, memory, machine registers, flash.
_DANGEROUS_NAMES = re.compile(
    r"(?:mem|kmem|port|kmsg|snapshot|btrfs-control|loop-control|autofs|mapper/control|zfs"
    r"|cpu/\d+/msr|sg\d+|bsg/.*|nvme\d+|ng\d+n\d+|nvme-fabrics|raw/.*|mpt\dctl|megaraid_sas_ioctl_node"
    r"|mtd\d+(?:ro)?|ubi_ctrl|ubi\d+(?:_\d+)?|vc-mem|vfio/(?:devices/)?noiommu-.*)"
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
class Judged:
    """What the rules make of a snapshot.

    claims  the claims on it in file order; the first one wins
    shares  the shared node tables that it satisfies, one of each resource, as claims that claim nothing
    """

    claims: tuple[Claim, ...] = ()
    shares: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A resource with the claims that it may make, one for each of some node tables.

    match  what a device must satisfy, whatever the table
    tests  for each alternative of the match, the conditions on the `_Traits`: position and test
    """

    match: Match
    claims: tuple[Claim, ...]
    tests: tuple[tuple[tuple[int, Test], ...], ...]

    @classmethod
    def of(cls, match: Match, *claims: Claim) -> "_Candidate":
        return cls(
            match,
            claims,
            tuple(
                tuple(test for condition in alternative if (test := _test_of(condition)) is not None)
                for alternative in match.alternatives
            ),
        )

    def may_take(self, traits: "_Traits") -> bool:
        """Whether a device with these traits may satisfy the match."""
        for alternative in self.tests:
            for position, holds in alternative:
                if not holds(traits[position]):
                    break
            else:
                return True
        return not self.tests

    def claim_on(self, device: UdevDevice) -> Claim | None:
        """The claim of the first node table that has a place for a device node."""
        if self.match.matches(device):
            for claim in self.claims:
                if claim.node_table.match.matches(device):
                    return claim
        return None


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Those that may take a device node, and those that may share it, in file order."""

    takers: tuple[_Candidate, ...]
    sharers: tuple[_Candidate, ...]

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> "_Candidates":
        takers: list[_Candidate] = []
        sharers: list[_Candidate] = []
        for resource in resources:
            claims = [Claim(resource, index) for index in range(len(resource.nodes))]
            takers.append(
                _Candidate.of(resource.match, *(each for each in claims if not each.node_table.shared))
            )
            # Only the match of the table decides, so each of them is ruled out for itself.
            sharers += [
                _Candidate.of(each.node_table.match, each) for each in claims if each.node_table.shared
            ]
        return cls(tuple(takers), tuple(sharers))

    def possible(self, traits: "_Traits") -> "_Candidates":
        """Those that may take or share a device with these traits."""
        return _Candidates(
            tuple(each for each in self.takers if each.may_take(traits)),
            tuple(each for each in self.sharers if each.may_take(traits)),
        )

    def judge(self, device: UdevDevice) -> Judged:
        """What becomes of a device node."""
        # A list, not a generator: this runs for every rule on every device.
        claims = [claim for each in self.takers if (claim := each.claim_on(device)) is not None]
        if not self.sharers:
            return Judged(tuple(claims))
        shares: dict[str, Claim] = {}
        for each in self.sharers:
            if (share := each.claim_on(device)) is not None:
                shares.setdefault(share.resource.name, share)
        return Judged(
            tuple(claim for claim in claims if claim.resource.name not in shares), tuple(shares.values())
        )


#: Values that many devices have in common: subsystem, vendor as udev knows it, vendor of the USB device. They
#: rule out most resources for most devices, and this is found out only once for all devices alike.
_Traits = tuple[str | None, str | None, str | None]

#: How many combinations of these values are kept. A device may invent vendors.
_TRAITS_LIMIT = 1000

_NOTHING = Judged()


def _traits_of(device: UdevDevice) -> _Traits:
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
class Examined:
    """A snapshot and what was found out about it; its place only if it has a device node or was asked for."""

    device: UdevDevice
    judged: Judged
    place: Place | None


class Turnover(NamedTuple):
    """The snapshots that are no longer there, and those that are new. One that was replaced is in both."""

    left: Sequence[Examined]
    came: Sequence[Examined]


class Claims:
    """The claims of a fixed list of resources, kept for each snapshot that was seen last.

    A claim depends on the snapshot alone, and a snapshot that was not seen is judged when it is asked about:
    no claim is older than its snapshot. Only `plugged`, and with it the number of a sibling, is as of the
    last `see`. Every build begins with that, and places are asked for only during a build or after it.

    examined what was seen then, by sys path
    plugged  the device nodes that were plugged in then
    sockets  the units that were in sockets of USB 3 then
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        resources = tuple(resources)
        self.plugged = NOTHING_PLUGGED
        self._groups = NO_GROUPS
        self._names = names_in(resources)
        self._candidates = _Candidates.of(resources)
        self._candidates_of: dict[_Traits, _Candidates] = {}
        self.examined: dict[str, Examined] = {}
        self.sockets = Sockets()

    def see(self, devices: Mapping[str, UdevDevice], past: Past = NO_PAST) -> Turnover:
        """Take into account what is plugged in now, before anything is asked about it."""
        before = self.examined
        # All that is done for each device, so it does as little as possible.
        new = [
            device
            for path, device in devices.items()
            if (known := before.get(path)) is None or known.device is not device
        ]
        stay = len(devices) - sum(each.sys_path not in before for each in new)
        gone = before.keys() - devices.keys() if len(before) > stay else frozenset()
        units = {device.sys_path: port_on_a_bus(device).socket for device in new if is_usb(device)}
        if moved := self.sockets.see(gone, units, past.at_now, lambda unit: nodes_of_unit(devices, unit)):
            others = before.keys() - gone - {device.sys_path for device in new}
            new += [before[path].device for path in others if usb_above(path) in moved]
        left = [before[device.sys_path] for device in new if device.sys_path in before]
        left += [before.pop(path) for path in gone]
        examined = [self._examine(device) for device in new]
        before.update((each.device.sys_path, each) for each in examined)
        if left or examined:
            self._groups = self._groups.after(_sightings(left), _sightings(examined))
        self.plugged = self._groups.numbered(past)
        return Turnover(left, examined)

    def seat(self, told: Told, past: Past) -> None:
        """Number the siblings again, now that it is known what the rules tell them by."""
        self.plugged = self._groups.numbered(past, told)

    def on(self, device: UdevDevice) -> tuple[Claim, ...]:
        """The claims on a udev device in file order; the first one wins."""
        return self._of(device).judged.claims

    def judged(self, device: UdevDevice) -> Judged:
        """The claims on a udev device, and who shares it."""
        return self._of(device).judged

    def place(self, device: UdevDevice) -> Place:
        """Where a udev device sits, and which of its siblings it is."""
        known = self._of(device)
        if known.place is None:
            known.place = self._locate(device)
        number = self.plugged.numbers.get(device.sys_path)
        return known.place.numbered(number) if number else known.place

    def _of(self, device: UdevDevice) -> Examined:
        known = self.examined.get(device.sys_path)
        return known if known is not None and known.device is device else self._examine(device)

    def _examine(self, device: UdevDevice) -> Examined:
        return Examined(device, self._judge(device), self._locate(device) if device.device_node else None)

    def _locate(self, device: UdevDevice) -> Place:
        place = locate(device)
        at = self.sockets.port_of(place.unit.sys_path)
        place = place if at in ("", place.port.exact) else locate(device, at)
        return replace(place, across=None) if self.sockets.is_apart(place.unit.sys_path) else place

    def _judge(self, device: UdevDevice) -> Judged:
        is_unnamed = device.is_bare and not self._names.hold_for(device.sys_path)
        if device.device_node is None or not device.initialized or is_unnamed:
            return _NOTHING
        candidates = self._candidates_of.get(traits := _traits_of(device))
        if candidates is None:
            candidates = self._candidates.possible(traits)
            if len(self._candidates_of) >= _TRAITS_LIMIT:
                self._candidates_of.clear()
            self._candidates_of[traits] = candidates
        return candidates.judge(device)


def _sightings(examined: Iterable[Examined]) -> Iterator[Sighting]:
    nodes = ((each.device, each.place) for each in examined if each.device.device_node is not None)
    return ((device, place.spot) for device, place in nodes if place is not None)
