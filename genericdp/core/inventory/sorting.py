"""Which device nodes each resource takes and shares, kept from one build to the next.

The rules of this file:

* Only what changed is sorted again. The order in which it came does not show.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Examined
from genericdp.core.inventory.inventory import Conflict, Overlap
from genericdp.core.rules.resource import Resource


@dataclass(slots=True)
class Nodes:
    """The device nodes of one resource by sys path: those that it takes, and those that it shares.

    changes  how often they have changed
    """

    taken: dict[str, UdevDevice] = field(default_factory=dict)
    shared: dict[str, UdevDevice] = field(default_factory=dict)
    changes: int = 0


class Sorting:
    """The device nodes of some resources.

    of         resource name -> its device nodes
    overlaps   sys path -> the resources that take the node, if there are several
    conflicts  sys path -> the resources that share the node, if another one has it for itself
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.of = {resource.name: Nodes() for resource in resources}
        self.overlaps: dict[str, Overlap] = {}
        self.conflicts: dict[str, Conflict] = {}

    def remove(self, examined: Examined) -> None:
        """Take out a snapshot that was added."""
        sys_path = examined.device.sys_path
        for claim in examined.judged.claims[:1]:
            nodes = self.of[claim.resource.name]
            del nodes.taken[sys_path]
            nodes.changes += 1
        for claim in examined.judged.shares:
            nodes = self.of[claim.resource.name]
            del nodes.shared[sys_path]
            nodes.changes += 1
        self.overlaps.pop(sys_path, None)
        self.conflicts.pop(sys_path, None)

    def add(self, examined: Examined) -> None:
        """Put in a snapshot."""
        device, found = examined.device, examined.judged.claims
        path = device.device_node or ""
        takers = tuple(claim.resource.name for claim in found)
        sharers = tuple(claim.resource.name for claim in examined.judged.shares)
        for name in takers[:1]:
            self.of[name].taken[device.sys_path] = device
            self.of[name].changes += 1
        for name in sharers:
            self.of[name].shared[device.sys_path] = device
            self.of[name].changes += 1
        if len(takers) > 1:
            self.overlaps[device.sys_path] = Overlap(path, takers[0], takers[1:])
        if sharers and found and found[0].resource.is_exclusive:
            self.conflicts[device.sys_path] = Conflict(path, takers[0], sharers)
