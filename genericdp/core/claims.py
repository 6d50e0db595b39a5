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
from genericdp.core.match import PropertyCondition
from genericdp.core.rules import NodeTable, Resource

#: Nodes whose holder owns the whole host: disks, memory, machine registers, flash.
_DANGEROUS_NAMES = re.compile(
    r"(?:mem|kmem|port|kmsg|snapshot|btrfs-control|loop-control|autofs|mapper/control"
    r"|cpu/\d+/msr|sg\d+|bsg/.*|nvme\d+|ng\d+n\d+|mtd\d+(?:ro)?|raw/.*)"
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


class Claims:
    """The claims of a fixed list of resources, remembered for each snapshot."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.resources = tuple(resources)
        self._by_subsystem: dict[str, tuple[Resource, ...]] = {}
        self._known: dict[str, tuple[UdevDevice, tuple[Claim, ...]]] = {}

    def on(self, device: UdevDevice) -> tuple[Claim, ...]:
        """The claims on a udev device in file order; the first one wins."""
        known = self._known.get(device.sys_path)
        if known is not None and known[0] is device:
            return known[1]
        claims = self._judge(device)
        self._known[device.sys_path] = (device, claims)
        return claims

    def forget_all_but(self, devices: Mapping[str, UdevDevice]) -> None:
        """Drop what is remembered of devices that are gone, so that memory stays flat."""
        if len(self._known) > len(devices):
            self._known = {path: known for path, known in self._known.items() if path in devices}

    def _judge(self, device: UdevDevice) -> tuple[Claim, ...]:
        if device.device_node is None or not device.initialized:
            return ()
        claims: list[Claim] = []
        for resource in self._candidates(device.subsystem):
            if resource.match.matches(device):
                for index, table in enumerate(resource.nodes):
                    if table.match.matches(device):
                        claims.append(Claim(resource, index))
                        break
        return tuple(claims)

    def _candidates(self, subsystem: str) -> tuple[Resource, ...]:
        """The resources that do not name another subsystem outright."""
        known = self._by_subsystem.get(subsystem)
        if known is None:
            known = self._by_subsystem[subsystem] = tuple(
                resource for resource in self.resources if _may_match(resource, subsystem)
            )
        return known


def _may_match(resource: Resource, subsystem: str) -> bool:
    alternatives = resource.match.alternatives
    return not alternatives or any(
        all(
            condition.pattern.holds(subsystem or None)
            for condition in alternative
            if isinstance(condition, PropertyCondition) and condition.name == "SUBSYSTEM"
        )
        for alternative in alternatives
    )
