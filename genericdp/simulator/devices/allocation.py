"""The device manager's allocation of devices to containers.

The rules of this file:

* The steps, their order and the texts are those of kubelet 1.36 (`devicemanager/manager.go`). Where Go
  iterates over a map in random order, a seeded generator shuffles, so that a plugin's assumption about
  the order fails, and fails reproducibly.
* The caller runs one admission at a time; lists of plugins may arrive during it.
"""

import random
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator.devices.ledger import Endpoint, Ledger, PluginCalls
from genericdp.simulator.devices.topology import ANY, Hint, by_affinity
from genericdp.simulator.errors import DeviceError, KubeletPanicError
from genericdp.simulator.pods import Container, PodStatus

_Item = TypeVar("_Item", str, tuple[str, int])

#: Devices that later containers of a pod may reuse: resource -> ids.
Reusable = dict[str, set[str]]


class Allocator:
    """Allocates devices for the containers of pods."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        rng: random.Random,
        free: Callable[[], None],
        save: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._rng = rng
        self._free = free
        self._save = save
        self._reusable: dict[str, Reusable] = {}

    async def allocate(
        self, pod: PodStatus, container: Container, *, bypass: bool = False, hint: Hint = ANY
    ) -> None:
        """Allocate all devices that a container requests. DeviceError fails the pod.

        `bypass`: the container was running when the kubelet started, and not all pods are known yet.
        """
        # Only the pod that is being admitted has devices to reuse.
        reusable = self._reusable.get(pod.uid, {})
        self._reusable = {pod.uid: reusable}
        await self._allocate_container(pod, container, reusable, bypass=bypass, hint=hint)
        if pod.is_init(container) and not container.restartable:
            for resource, entry in self._ledger.of_container(pod.uid, container.name).items():
                reusable.setdefault(resource, set()).update(entry.ids)
        else:
            # A sidecar keeps running, so it keeps its devices.
            for resource, entry in self._ledger.of_container(pod.uid, container.name).items():
                reusable.setdefault(resource, set()).difference_update(entry.ids)

    def reusable(self, pod_uid: str, resource: str) -> set[str]:
        """Devices that earlier init containers of the pod no longer need."""
        return set(self._reusable.get(pod_uid, {}).get(resource, ()))

    async def pre_start(self, pod: PodStatus, container: Container) -> None:
        """Do what precedes each creation of a container; DeviceError prevents the creation."""
        again = False
        for resource, count in self._shuffled(container.limits.items()):
            if not self._ledger.is_device_resource(resource) or count == 0:
                continue
            await self._pre_start_resource(pod, container, resource)
            if pod.active and self._ledger.held(pod.uid, container.name, resource) is None:
                again = True
        if again:
            await self.allocate(pod, container)

    def responses(self, pod: PodStatus, container: Container) -> list[api.ContainerAllocateResponse]:
        """The cached answers for a container, those with precedence first."""
        entries = self._ledger.of_container(pod.uid, container.name)
        return [entries[resource].response for resource in self._shuffled(entries)]

    async def _pre_start_resource(self, pod: PodStatus, container: Container, resource: str) -> None:
        endpoint = self._ledger.endpoints.get(resource)
        if endpoint is None:
            raise DeviceError(f"endpoint not found in cache for a registered resource: {resource}")
        if endpoint.options is None or not endpoint.options.pre_start_required:
            return
        ids = self._ledger.held(pod.uid, container.name, resource)
        if ids is None:
            raise DeviceError(
                f"no devices found allocated in local cache for pod {pod.uid}, "
                f"container {container.name}, resource {resource}"
            )
        try:
            await endpoint.running(resource).pre_start(self._shuffled(ids))
        except DeviceError as error:
            raise DeviceError(f"device plugin PreStartContainer rpc failed with err: {error}") from None

    def _calls(self, resource: str) -> PluginCalls:
        endpoint = self._ledger.endpoints.get(resource)
        if endpoint is None:
            raise DeviceError(f"unknown Device Plugin {resource}")
        return endpoint.running(resource)

    async def _allocate_container(
        self, pod: PodStatus, container: Container, reusable: Reusable, *, bypass: bool, hint: Hint
    ) -> None:
        changed = False
        for resource, count in self._shuffled(container.limits.items()):
            if not self._ledger.is_device_resource(resource):
                continue
            self._free()
            chosen = await self._choose(
                pod.uid,
                container.name,
                resource,
                count,
                reusable.get(resource, set()),
                bypass=bypass,
                hint=hint,
            )
            if chosen:
                await self._ask(pod.uid, container.name, resource, chosen)
                changed = True
        if changed:
            self._save()

    async def _ask(self, pod_uid: str, container: str, resource: str, chosen: set[str]) -> None:
        """Ask the plugin for the chosen devices and record its answer."""
        try:
            response = await self._calls(resource).allocate(self._shuffled(chosen))
        except DeviceError:
            self._ledger.recount()
            raise
        if not response.container_responses:
            # The devices leak: they stay allocated to nobody until the next recount. Go prints the answer,
            # and an empty one is an empty text.
            raise DeviceError("no containers return in allocation response ")
        listed = self._ledger.of(resource).listed
        for id_ in sorted(chosen):
            if id_ not in listed:
                raise KubeletPanicError(
                    f"nil dereference in allocateContainerResources: '{id_}' of {resource} left the list "
                    "during Allocate; a plugin must list it as Unhealthy instead"
                )
        self._ledger.give(
            pod_uid, container, resource, self._shuffled(chosen), response.container_responses[0]
        )

    async def _choose(
        self,
        pod_uid: str,
        container: str,
        resource: str,
        required: int,
        reusable: set[str],
        *,
        bypass: bool,
        hint: Hint,
    ) -> set[str]:
        """`devicesToAllocate`: the ids to ask the plugin for, or an empty set when no call is needed."""
        devices = self._ledger.of(resource)
        held = self._ledger.held(pod_uid, container, resource)
        needed = required - len(held or ())
        if held is not None and needed != 0:
            raise DeviceError(
                f'pod "{pod_uid}" container "{container}" changed request for resource "{resource}" '
                f"from {len(held)} to {required}"
            )
        if bypass:
            return set()
        if not devices.known:
            raise DeviceError(f"cannot allocate unregistered device {resource}")
        if not devices.healthy:
            raise DeviceError(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        if held is not None and not held <= devices.healthy:
            raise DeviceError(
                "previously allocated devices are no longer healthy; "
                f"cannot allocate unhealthy devices {resource}"
            )
        if needed == 0:
            return set()

        chosen = _Choice(self._ledger, resource, needed, self._shuffled)
        if chosen.take(reusable):
            return chosen.ids
        available = devices.healthy - self._ledger.allocated.get(resource, set())
        if len(available) < chosen.needed:
            raise DeviceError(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {chosen.needed}, Available: {len(available)}"
            )
        aligned, unaligned, without = by_affinity(devices, available, hint)
        if chosen.needed < len(aligned):
            preferred = await self._preferred(resource, aligned | chosen.ids, chosen.ids, required)
            _ = chosen.take(preferred & aligned) or chosen.take(aligned)
            return chosen.ids
        if chosen.take(aligned):
            return chosen.ids
        preferred = await self._preferred(resource, available | chosen.ids, chosen.ids, required)
        _ = chosen.take(preferred & available) or chosen.take(unaligned) or chosen.take(without)
        return chosen.ids

    async def _preferred(
        self, resource: str, available: Collection[str], must_include: Collection[str], size: int
    ) -> set[str]:
        """The plugin's preference, or an empty set when it does not offer GetPreferredAllocation."""
        endpoint = self._endpoint(resource)
        if endpoint.options is None or not endpoint.options.get_preferred_allocation_available:
            return set()
        wish = self._shuffled(available), self._shuffled(must_include), size
        try:
            response = await endpoint.running(resource).preferred(*wish)
        except DeviceError as error:
            raise DeviceError(f"device plugin GetPreferredAllocation rpc failed with err: {error}") from None
        if not response.container_responses:
            return set()
        return set(response.container_responses[0].deviceIDs)

    def _endpoint(self, resource: str) -> Endpoint:
        endpoint = self._ledger.endpoints.get(resource)
        if endpoint is None:
            raise DeviceError(f"endpoint not found in cache for a registered resource: {resource}")
        return endpoint

    def _shuffled(self, items: Iterable[_Item]) -> list[_Item]:
        """Items in the order of a Go map: random, but the same for the same seed."""
        shuffled = sorted(items)
        self._rng.shuffle(shuffled)
        return shuffled


class _Choice:
    """The devices taken so far, which count as allocated at once."""

    def __init__(
        self, ledger: Ledger, resource: str, needed: int, shuffle: Callable[[Iterable[str]], list[str]]
    ) -> None:
        self.ids: set[str] = set()
        self.needed = needed
        self._ledger = ledger
        self._resource = resource
        self._shuffle = shuffle

    def take(self, ids: Iterable[str]) -> bool:
        """Take from `ids` at random until there are enough. Returns whether there are."""
        # Looked up every time: a recount during a call to the plugin replaces the set.
        allocated = self._ledger.allocated.setdefault(self._resource, set())
        for id_ in self._shuffle(set(ids) - self.ids):
            allocated.add(id_)
            self.ids.add(id_)
            self.needed -= 1
            if self.needed == 0:
                return True
        return False
