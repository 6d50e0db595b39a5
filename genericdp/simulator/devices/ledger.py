"""What the device manager knows: resources, endpoints, and who was given what.

The rules of this file:

* No I/O and no time of its own; every change of the books is a method here.
* `allocated` is kept apart from `given`, as in the kubelet: the first is written before a plugin has
  answered, the second after, and a leak is where they differ.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator.devices.checkpoint import Checkpoint, PodDevices, render
from genericdp.simulator.devices.resource import Device, ResourceDevices

#: How long a resource is counted after its plugin has gone (kubelet 1.36, `endpointStopGracePeriod`).
GRACE_S = 300.0


class PluginCalls(Protocol):
    """The RPCs to a plugin. Each raises DeviceError with the kubelet's text."""

    async def preferred(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> api.PreferredAllocationResponse: ...

    async def allocate(self, ids: Sequence[str]) -> api.AllocateResponse: ...

    async def pre_start(self, ids: Sequence[str]) -> None: ...


@dataclass(slots=True, eq=False)
class Endpoint:
    """The plugin of a resource. After a restart of the kubelet: no calls, no options, stopped."""

    calls: PluginCalls | None = None
    options: api.DevicePluginOptions | None = None
    stopped_at: float | None = None


@dataclass(slots=True)
class Counts:
    """`GetCapacity`: what the next node status says."""

    capacity: dict[str, int] = field(default_factory=dict)
    allocatable: dict[str, int] = field(default_factory=dict)


class Ledger:
    """The books of one kubelet process."""

    def __init__(self) -> None:
        self.devices: dict[str, ResourceDevices] = {}
        self.endpoints: dict[str, Endpoint] = {}
        self.allocated: dict[str, set[str]] = {}
        self.pod_devices: dict[tuple[str, str, str], PodDevices] = {}

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, now: float) -> "Ledger":
        """After a restart: allocations are known, resources have nothing until their plugins come back."""
        ledger = cls()
        for entry in checkpoint.entries:
            ledger.pod_devices[entry.pod_uid, entry.container, entry.resource] = entry
        ledger.recount()
        for resource in checkpoint.registered:
            ledger.of(resource).restore()
            ledger.endpoints[resource] = Endpoint(stopped_at=now)
        return ledger

    def checkpoint(self) -> str:
        """The text that a later process reads."""
        registered = {name: devices.healthy for name, devices in self.devices.items() if devices.known}
        return render(self.pod_devices.values(), registered)

    def of(self, resource: str) -> ResourceDevices:
        """The devices of a resource, made if need be."""
        return self.devices.setdefault(resource, ResourceDevices())

    def receive(self, resource: str, devices: Iterable[Device]) -> set[str]:
        """A list arrived. Returns the uids of the pods whose status has to be published again."""
        news = self.of(resource).receive(devices)
        return {uid for id_ in news if (uid := self.holder(id_))}

    def connected(self, resource: str, calls: PluginCalls, options: api.DevicePluginOptions) -> None:
        """A plugin answered GetDevicePluginOptions; its devices stay as they were until it lists them."""
        self.endpoints[resource] = Endpoint(calls, options)

    def stopped(self, resource: str, now: float) -> None:
        """The plugin of a resource is gone; the grace begins."""
        endpoint = self.endpoints.get(resource)
        if endpoint is not None:
            self.of(resource).stop()
            endpoint.stopped_at = now

    def is_device_resource(self, resource: str) -> bool:
        """Whether the device manager cares about it at all."""
        return (resource in self.devices and self.devices[resource].known) or resource in self.allocated

    def counts(self) -> Counts:
        """Capacity and allocatable right now, published or not."""
        counted = {name: devices for name, devices in self.devices.items() if devices.counted}
        return Counts(
            {name: len(devices.healthy) + len(devices.unhealthy) for name, devices in counted.items()},
            {name: len(devices.healthy) for name, devices in counted.items() if devices.known},
        )

    def remove_expired(self, now: float) -> list[str]:
        """Forget resources whose grace is over; only the node status tick does this."""
        removed = []
        for resource, devices in self.devices.items():
            endpoint = self.endpoints.get(resource)
            if not devices.counted or (endpoint is not None and not _expired(endpoint, now)):
                continue
            self.endpoints.pop(resource, None)
            devices.remove()
            removed.append(resource)
        return removed

    def free(self, active: Collection[str]) -> None:
        """Forget what pods that are no longer active were given; there is no call to the plugin for it."""
        gone = [key for key in self.pod_devices if key[0] not in active]
        for key in gone:
            del self.pod_devices[key]
        if gone:
            self.recount()

    def recount(self) -> None:
        """Derive `allocated` from `given`: repairs leaks."""
        self.allocated = {}
        for entry in self.pod_devices.values():
            self.allocated.setdefault(entry.resource, set()).update(entry.ids)

    def held(self, pod_uid: str, container: str, resource: str) -> frozenset[str] | None:
        """The ids that a container was given, or None."""
        entry = self.pod_devices.get((pod_uid, container, resource))
        return None if entry is None else entry.ids

    def give(
        self,
        pod_uid: str,
        container: str,
        resource: str,
        ids: Iterable[str],
        response: api.ContainerAllocateResponse,
    ) -> None:
        """Note down an allocation. KeyError when an id is no longer listed."""
        by_numa: dict[int, list[str]] = {}
        for id_ in ids:
            for node in self.devices[resource].numa_of(id_):
                by_numa.setdefault(node, []).append(id_)
        self.pod_devices[pod_uid, container, resource] = PodDevices(
            pod_uid,
            container,
            resource,
            {node: tuple(on_node) for node, on_node in by_numa.items()},
            response,
        )

    def of_container(self, pod_uid: str, container: str) -> dict[str, PodDevices]:
        """Everything that a container was given, by resource."""
        return {
            resource: entry
            for (uid, name, resource), entry in self.pod_devices.items()
            if (uid, name) == (pod_uid, container)
        }

    def holder(self, id_: str) -> str | None:
        """The uid of a pod that was given this id, whatever the resource: ids had better be unique."""
        return next((entry.pod_uid for entry in self.pod_devices.values() if id_ in entry.ids), None)

    def health(self, pod_uid: str, container: str) -> dict[str, dict[str, str]]:
        """`allocatedResourcesStatus`: resource -> id -> health. A device that is not listed is "Healthy"."""
        result: dict[str, dict[str, str]] = {}
        for resource, entry in self.of_container(pod_uid, container).items():
            listed: Mapping[str, Device] = self.of(resource).listed
            result[resource] = {
                id_: api.HEALTHY if id_ not in listed or listed[id_].health == api.HEALTHY else api.UNHEALTHY
                for id_ in sorted(entry.ids)
            }
        return result


def _expired(endpoint: Endpoint, now: float) -> bool:
    return endpoint.stopped_at is not None and now - endpoint.stopped_at > GRACE_S
