"""The pod resources API, v1: its messages and service (proto/podresources/v1/api.proto).

The rules of this file:

* Names and spellings are the proto's.
* There is no behaviour here: servers and clients are elsewhere.
"""
# ruff: noqa: N802  # the proto's spelling

from collections.abc import Sequence
from typing import Protocol

import grpc
import grpc.aio

from genericdp.messages import Context, Int64, Message, Method, UInt64, field, generic_handler, message


@message("v1")
class NUMANode(Message):
    ID: Int64 = field(1)


@message("v1")
class TopologyInfo(Message):
    nodes: Sequence[NUMANode] = field(1)


@message("v1")
class ContainerDevices(Message):
    """One entry for each device and NUMA node, with a single id."""

    resource_name: str = field(1)
    device_ids: Sequence[str] = field(2)
    topology: TopologyInfo | None = field(3)


@message("v1")
class ContainerMemory(Message):
    memory_type: str = field(1)
    size: UInt64 = field(2)
    topology: TopologyInfo | None = field(3)


@message("v1")
class CDIDevice(Message):
    name: str = field(1)


@message("v1")
class ClaimResource(Message):
    cdi_devices: Sequence[CDIDevice] = field(1)
    driver_name: str = field(2)
    pool_name: str = field(3)
    device_name: str = field(4)
    share_id: str | None = field(5)


@message("v1", reserved=(1,))
class DynamicResource(Message):
    claim_name: str = field(2)
    claim_namespace: str = field(3)
    claim_resources: Sequence[ClaimResource] = field(4)


@message("v1")
class ContainerResources(Message):
    name: str = field(1)
    devices: Sequence[ContainerDevices] = field(2)
    cpu_ids: Sequence[Int64] = field(3)
    memory: Sequence[ContainerMemory] = field(4)
    dynamic_resources: Sequence[DynamicResource] = field(5)


@message("v1")
class PodResources(Message):
    name: str = field(1)
    namespace: str = field(2)
    containers: Sequence[ContainerResources] = field(3)


@message("v1")
class ListPodResourcesRequest(Message):
    pass


@message("v1")
class ListPodResourcesResponse(Message):
    pod_resources: Sequence[PodResources] = field(1)


@message("v1")
class AllocatableResourcesRequest(Message):
    pass


@message("v1")
class AllocatableResourcesResponse(Message):
    """Healthy devices, allocated or not."""

    devices: Sequence[ContainerDevices] = field(1)
    cpu_ids: Sequence[Int64] = field(2)
    memory: Sequence[ContainerMemory] = field(3)


@message("v1")
class GetPodResourcesRequest(Message):
    pod_name: str = field(1)
    pod_namespace: str = field(2)


@message("v1")
class GetPodResourcesResponse(Message):
    pod_resources: PodResources | None = field(1)


LIST = Method("/v1.PodResourcesLister/List", ListPodResourcesRequest, ListPodResourcesResponse)
GET_ALLOCATABLE_RESOURCES = Method(
    "/v1.PodResourcesLister/GetAllocatableResources",
    AllocatableResourcesRequest,
    AllocatableResourcesResponse,
)
GET = Method("/v1.PodResourcesLister/Get", GetPodResourcesRequest, GetPodResourcesResponse)


class PodResourcesListerServicer(Protocol):
    """What the kubelet serves on its pod resources socket."""

    async def List(self, request: ListPodResourcesRequest, context: Context) -> ListPodResourcesResponse: ...

    async def GetAllocatableResources(
        self, request: AllocatableResourcesRequest, context: Context
    ) -> AllocatableResourcesResponse: ...

    async def Get(self, request: GetPodResourcesRequest, context: Context) -> GetPodResourcesResponse: ...


def pod_resources_lister_handler(
    servicer: PodResourcesListerServicer,
) -> grpc.GenericRpcHandler:
    """For `server.add_generic_rpc_handlers`: the kubelet's side."""
    return generic_handler(servicer, LIST, GET_ALLOCATABLE_RESOURCES, GET)


class PodResourcesListerStub:
    """The asking side: `await stub.List(ListPodResourcesRequest(), timeout=…)`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.List = LIST.unary(channel)
        self.GetAllocatableResources = GET_ALLOCATABLE_RESOURCES.unary(channel)
        self.Get = GET.unary(channel)
