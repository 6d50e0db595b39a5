"""The device manager's ledger: resources, their endpoints, and which container holds which device.

The rules of this file:

* It does no I/O and reads no clock; every change of the ledger is a method here.
* `allocated` and `pod_devices` are separate, as in the kubelet: the first is written before a plugin
  answers, the second after it. Where they differ, devices have leaked.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator.devices.checkpoint import Checkpoint, PodDevices, render
from genericdp.simulator.devices.resource import Device, ResourceDevices
from genericdp.simulator.errors import DeviceError, stopped_endpoint

#: How long a resource still counts after its plugin has gone (kubelet 1.36, `endpointStopGracePeriod`).
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
    """The plugin of a resource. Right after a kubelet restart it is stopped and has no calls or options."""

    calls: PluginCalls | None = None
    options: api.DevicePluginOptions | None = None
    stopped_at: float | None = None

    def running(self, resource: str) -> PluginCalls:
        """The RPCs to the plugin. DeviceError when it has stopped."""
        if self.calls is None or self.stopped_at is not None:
            raise DeviceError(
                stopped_endpoint(resource, self.stopped_at or 0.0, connected=self.calls is not None)
            )
        return self.calls


@dataclass(slots=True)
class Counts:
    """`GetCapacity`: the numbers of the next node status."""

    capacity: dict[str, int] = field(default_factory=dict)
    allocatable: dict[str, int] = field(default_factory=dict)


class Ledger:
    """The ledger of one kubelet process."""

    def __init__(self) -> None:
        self.devices: dict[str, ResourceDevices] = {}
        self.endpoints: dict[str, Endpoint] = {}
        self.allocated: dict[str, set[str]] = {}
        self.pod_devices: dict[tuple[str, str, str], PodDevices] = {}

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint, now: float) -> "Ledger":
        """The state after a restart: allocations are known; each resource is empty until its first list."""
        ledger = cls()
        for entry in checkpoint.entries:
            ledger.pod_devices[entry.pod_uid, entry.container, entry.resource] = entry
        ledger.recount()
        for resource in checkpoint.registered:
            ledger.of(resource).restore()
            ledger.endpoints[resource] = Endpoint(stopped_at=now)
        return ledger

    def checkpoint(self) -> str:
        """The text of the checkpoint file."""
        registered = {name: devices.healthy for name, devices in self.devices.items() if devices.known}
        return render(self.pod_devices.values(), registered)

    def of(self, resource: str) -> ResourceDevices:
        """The devices of a resource, created if unknown."""
        return self.devices.setdefault(resource, ResourceDevices())

    def receive(self, resource: str, devices: Iterable[Device]) -> set[str]:
        """Take in a list. Returns the uids of the pods whose status has to be published again."""
        news = self.of(resource).receive(devices)
        return {uid for id_ in news if (uid := self.holder(id_))}

    def connected(self, resource: str, calls: PluginCalls, options: api.DevicePluginOptions) -> None:
        """Record a plugin that answered GetDevicePluginOptions; its devices change with its first list."""
        self.endpoints[resource] = Endpoint(calls, options)

    def stopped(self, resource: str, now: float) -> None:
        """Record that the plugin of a resource has gone; the grace period begins."""
        endpoint = self.endpoints.get(resource)
        if endpoint is not None:
            self.of(resource).stop()
            endpoint.stopped_at = now

    def is_device_resource(self, resource: str) -> bool:
        """Whether the device manager is responsible for a resource."""
        return (resource in self.devices and self.devices[resource].known) or resource in self.allocated

    def counts(self) -> Counts:
        """Capacity and allocatable right now, published or not."""
        counted = {name: devices for name, devices in self.devices.items() if devices.counted}
        return Counts(
            {name: len(devices.healthy) + len(devices.unhealthy) for name, devices in counted.items()},
            {name: len(devices.healthy) for name, devices in counted.items() if devices.known},
        )

    def remove_expired(self, now: float) -> list[str]:
        """Forget resources whose grace period is over. Only the node status tick calls this."""
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
        """Free the devices of all pods but the active ones. Plugins are not notified."""
        gone = [key for key in self.pod_devices if key[0] not in active]
        for key in gone:
            del self.pod_devices[key]
        if gone:
            self.recount()

    def recount(self) -> None:
        """Derive `allocated` from `pod_devices`, which repairs leaks."""
        self.allocated = {}
        for entry in self.pod_devices.values():
            self.allocated.setdefault(entry.resource, set()).update(entry.ids)

    def held(self, pod_uid: str, container: str, resource: str) -> frozenset[str] | None:
        """The ids of a resource that a container holds, or None."""
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
        """Record an allocation. KeyError when an id is no longer listed."""
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
        """The devices of a container, by resource."""
        return {
            resource: entry
            for (uid, name, resource), entry in self.pod_devices.items()
            if (uid, name) == (pod_uid, container)
        }

    def holder(self, id_: str) -> str | None:
        """The uid of a pod that holds this id, of any resource: a kubelet assumes ids to be unique."""
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
