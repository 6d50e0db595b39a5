"""The devices of one resource as the kubelet counts them.

The rules of this file:

* A list replaces everything. Only the exact word "Healthy" means healthy.
* An id that a list contains twice, healthy and unhealthy, is in both sets and counts twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from genericdp.kubelet.api import deviceplugin as api


@dataclass(frozen=True, slots=True)
class Device:
    """A listed device. `numa` is None without a topology, empty with a topology that names no node."""

    id: str
    health: str
    numa: tuple[int, ...] | None = None

    @classmethod
    def from_message(cls, message: api.Device) -> "Device":
        """Convert a device of ListAndWatchResponse."""
        numa = None
        if message.topology is not None and message.HasField("topology"):
            numa = tuple(node.ID for node in message.topology.nodes)
        return cls(message.ID, message.health, numa)


@dataclass(slots=True)
class ResourceDevices:
    """The device manager's view of one resource.

    `listed` outlives the sets: after the grace period a kubelet forgets only the sets.
    """

    listed: dict[str, Device] = field(default_factory=dict)
    healthy: set[str] = field(default_factory=set)
    unhealthy: set[str] = field(default_factory=set)
    #: Whether pods can request it: from the first list (or the checkpoint) to the end of the grace period.
    known: bool = False
    #: Whether node capacity contains it: as above, and also after a stream that ended without a list.
    counted: bool = False

    def receive(self, devices: Iterable[Device]) -> set[str]:
        """Replace the list. Returns the ids that are new or changed health, not those that left the list."""
        before, self.listed = self.listed, {}
        self.healthy, self.unhealthy, self.known, self.counted = set(), set(), True, True
        news = set()
        for device in devices:
            old = before.get(device.id)
            if old is None or old.health != device.health:
                news.add(device.id)
            self.listed[device.id] = device
            (self.healthy if device.health == api.HEALTHY else self.unhealthy).add(device.id)
        return news

    def stop(self) -> None:
        """Record that the plugin has gone: every device still counts, none can be allocated."""
        self.unhealthy |= self.healthy
        self.healthy = set()
        self.counted = True

    def restore(self) -> None:
        """Record that the checkpoint names the resource: known, but without devices until the first list."""
        self.known = self.counted = True

    def remove(self) -> None:
        """Forget the sets, as a kubelet does after the grace period."""
        self.healthy, self.unhealthy, self.known, self.counted = set(), set(), False, False

    @property
    def aligned(self) -> bool:
        """Whether any device has a NUMA node; then the topology policy applies to the whole resource."""
        return any(device.numa for device in self.listed.values())

    def numa_of(self, id_: str) -> tuple[int, ...]:
        """The NUMA nodes of a device, (-1,) if it has none. KeyError when it is not listed."""
        return self.listed[id_].numa or (-1,)
