"""The devices of one resource as the kubelet counts them: a list, a healthy and an unhealthy set.

The rules of this file:

* A list replaces everything. Only the exact word "Healthy" is healthy.
* An id that a list names twice, once healthy and once not, is in both sets and counts twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from genericdp.kubelet.api import deviceplugin as api


@dataclass(frozen=True, slots=True)
class Device:
    """`numa` is None without a topology and empty with a topology that names no node."""

    id: str
    health: str
    numa: tuple[int, ...] | None = None

    @classmethod
    def from_message(cls, message: api.Device) -> "Device":
        """What a plugin said about a device."""
        numa = None
        if message.topology is not None and message.HasField("topology"):
            numa = tuple(node.ID for node in message.topology.nodes)
        return cls(message.ID, message.health, numa)


@dataclass(slots=True)
class ResourceDevices:
    """What is known of one resource.

    `listed` outlives the sets: when a resource is removed after its grace, the kubelet forgets the sets only.
    """

    listed: dict[str, Device] = field(default_factory=dict)
    healthy: set[str] = field(default_factory=set)
    unhealthy: set[str] = field(default_factory=set)
    #: Whether pods can ask for it: from the first list (or the checkpoint) until the grace is over.
    known: bool = False
    #: Whether node capacity names it: as above, and also when a stream ended without any list.
    counted: bool = False

    def receive(self, devices: Iterable[Device]) -> set[str]:
        """Take over a list. Returns the ids whose health is news (never those that have vanished)."""
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
        """The plugin is gone: nothing can be allocated, everything is still counted."""
        self.unhealthy |= self.healthy
        self.healthy = set()
        self.counted = True

    def restore(self) -> None:
        """The checkpoint names the resource: known, with nothing in it until the plugin comes back."""
        self.known = self.counted = True

    def remove(self) -> None:
        """The grace is over."""
        self.healthy, self.unhealthy, self.known, self.counted = set(), set(), False, False

    @property
    def aligned(self) -> bool:
        """Whether any device has a NUMA node, which subjects the whole resource to the topology policy."""
        return any(device.numa for device in self.listed.values())

    def numa_of(self, id_: str) -> tuple[int, ...]:
        """The NUMA nodes of a device, (-1,) without one. KeyError when it is not listed."""
        return self.listed[id_].numa or (-1,)
