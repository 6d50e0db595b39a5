"""The kubelet's PodResources API: which container holds which device.

The rules of this file:

* There is one entry for each device and NUMA node, with a single id. A plugin's node -1 is a node for
  GetAllocatableResources and none for List. Init containers do not appear, sidecars do.
* List frees the devices of dead pods, as in the kubelet. A pod appears once it is admitted.
* Right after its start a kubelet knows no pods, so List returns none.
* All clients and methods share one rate limit.
"""
# ruff: noqa: N802  # the proto's spelling

from collections.abc import Callable, Iterable, Iterator

import grpc
import grpc.aio

from genericdp.kubelet.api import podresources as api
from genericdp.messages import Context
from genericdp.simulator.clock import Clock
from genericdp.simulator.devices.ledger import Ledger
from genericdp.simulator.node.node import Node
from genericdp.simulator.node.rate_limit import TokenBucket
from genericdp.simulator.pods import PodStatus


class PodResourcesLister:
    """Serves `v1.PodResourcesLister` from the ledger of one kubelet process."""

    def __init__(
        self,
        node: Node,
        ledger: Ledger,
        clock: Clock,
        *,
        free: Callable[[], None],
        knows_pods: Callable[[], bool],
    ) -> None:
        self.calls = 0
        self._node = node
        self._ledger = ledger
        self._clock = clock
        self._free = free
        self._knows_pods = knows_pods
        self._bucket = TokenBucket(clock.now())

    async def List(
        self, request: api.ListPodResourcesRequest, context: Context
    ) -> api.ListPodResourcesResponse:
        del request
        await self._limit(context)
        if not self._knows_pods():
            return api.ListPodResourcesResponse()
        self._free()
        return api.ListPodResourcesResponse(
            pod_resources=[self._pod(pod) for pod in self._node.active() if pod.admitted]
        )

    async def GetAllocatableResources(
        self, request: api.AllocatableResourcesRequest, context: Context
    ) -> api.AllocatableResourcesResponse:
        del request
        await self._limit(context)
        devices: list[api.ContainerDevices] = []
        for resource, known in sorted(self._ledger.devices.items()):
            for id_ in sorted(known.healthy):
                # A device with a topology that names no node is missing here.
                numa = known.listed[id_].numa
                devices += _entries(resource, id_, (None,) if numa is None else numa)
        return api.AllocatableResourcesResponse(devices=devices)

    async def Get(self, request: api.GetPodResourcesRequest, context: Context) -> api.GetPodResourcesResponse:
        await self._limit(context)
        for pod in self._node.active():
            if (pod.name, pod.spec.namespace) == (request.pod_name, request.pod_namespace):
                return api.GetPodResourcesResponse(pod_resources=self._pod(pod))
        await context.abort(
            grpc.StatusCode.UNKNOWN,
            f"pod {request.pod_name} in namespace {request.pod_namespace} not found",
        )
        raise AssertionError("abort raises")

    async def _limit(self, context: Context) -> None:
        self.calls += 1
        if not self._bucket.take(self._clock.now()):
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")

    def _pod(self, pod: PodStatus) -> api.PodResources:
        sidecars = [container for container in pod.spec.init_containers if container.restartable]
        return api.PodResources(
            name=pod.name,
            namespace=pod.spec.namespace,
            containers=[
                api.ContainerResources(
                    name=container.name, devices=list(self._devices(pod.uid, container.name))
                )
                for container in (*sidecars, *pod.spec.containers)
            ],
        )

    def _devices(self, pod_uid: str, container: str) -> Iterator[api.ContainerDevices]:
        for resource, entry in sorted(self._ledger.of_container(pod_uid, container).items()):
            for numa, ids in entry.ids_by_numa.items():
                for id_ in ids:
                    yield from _entries(resource, id_, (None if numa == -1 else numa,))


def _entries(resource: str, id_: str, numa: Iterable[int | None]) -> Iterator[api.ContainerDevices]:
    for node in numa:
        topology = None if node is None else api.TopologyInfo(nodes=[api.NUMANode(ID=node)])
        yield api.ContainerDevices(resource_name=resource, device_ids=[id_], topology=topology)
