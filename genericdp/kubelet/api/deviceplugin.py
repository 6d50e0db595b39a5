"""The device plugin API, v1beta1: its messages and services (proto/deviceplugin/v1beta1/api.proto).

The rules of this file:

* Names and spellings are the proto's, so that documentation of the API applies here.
* There is no behaviour here: servers and clients are elsewhere.
"""
# ruff: noqa: N802, N815  # the proto's spelling

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import grpc
import grpc.aio

from genericdp.messages import Context, Int32, Int64, Message, Method, field, generic_handler, message

VERSION = "v1beta1"
HEALTHY = "Healthy"
UNHEALTHY = "Unhealthy"
#: The kubelet's socket in the device plugin directory.
KUBELET_SOCKET = "kubelet.sock"


@message("v1beta1")
class DevicePluginOptions(Message):
    """The kubelet takes them from the answer to GetDevicePluginOptions only."""

    pre_start_required: bool = field(1)
    get_preferred_allocation_available: bool = field(2)


@message("v1beta1")
class RegisterRequest(Message):
    """`endpoint` is a file name in the directory of kubelet.sock; `options` are ignored."""

    version: str = field(1)
    endpoint: str = field(2)
    resource_name: str = field(3)
    options: DevicePluginOptions | None = field(4)


@message("v1beta1")
class Empty(Message):
    pass


@message("v1beta1")
class NUMANode(Message):
    ID: Int64 = field(1)


@message("v1beta1")
class TopologyInfo(Message):
    nodes: Sequence[NUMANode] = field(1)


@message("v1beta1")
class Device(Message):
    """`health` is HEALTHY or UNHEALTHY; `topology` is absent if the NUMA node is unknown."""

    ID: str = field(1)
    health: str = field(2)
    topology: TopologyInfo | None = field(3)


@message("v1beta1")
class ListAndWatchResponse(Message):
    """Always the complete list."""

    devices: Sequence[Device] = field(1)


@message("v1beta1")
class PreStartContainerRequest(Message):
    devices_ids: Sequence[str] = field(1)


@message("v1beta1")
class PreStartContainerResponse(Message):
    pass


@message("v1beta1")
class ContainerPreferredAllocationRequest(Message):
    """`available_deviceIDs` includes `must_include_deviceIDs`."""

    available_deviceIDs: Sequence[str] = field(1)
    must_include_deviceIDs: Sequence[str] = field(2)
    allocation_size: Int32 = field(3)


@message("v1beta1")
class PreferredAllocationRequest(Message):
    container_requests: Sequence[ContainerPreferredAllocationRequest] = field(1)


@message("v1beta1")
class ContainerPreferredAllocationResponse(Message):
    deviceIDs: Sequence[str] = field(1)


@message("v1beta1")
class PreferredAllocationResponse(Message):
    container_responses: Sequence[ContainerPreferredAllocationResponse] = field(1)


@message("v1beta1")
class ContainerAllocateRequest(Message):
    devices_ids: Sequence[str] = field(1)


@message("v1beta1")
class AllocateRequest(Message):
    container_requests: Sequence[ContainerAllocateRequest] = field(1)


@message("v1beta1")
class CDIDevice(Message):
    """`name` is a fully qualified CDI name, vendor.example/class=name."""

    name: str = field(1)


@message("v1beta1")
class Mount(Message):
    container_path: str = field(1)
    host_path: str = field(2)
    read_only: bool = field(3)


@message("v1beta1")
class DeviceSpec(Message):
    """`permissions` is a non-empty subset of "rwm"."""

    container_path: str = field(1)
    host_path: str = field(2)
    permissions: str = field(3)


@message("v1beta1")
class ContainerAllocateResponse(Message):
    envs: Mapping[str, str] = field(1)
    mounts: Sequence[Mount] = field(2)
    devices: Sequence[DeviceSpec] = field(3)
    annotations: Mapping[str, str] = field(4)
    cdi_devices: Sequence[CDIDevice] = field(5)


@message("v1beta1")
class AllocateResponse(Message):
    container_responses: Sequence[ContainerAllocateResponse] = field(1)


REGISTER = Method("/v1beta1.Registration/Register", RegisterRequest, Empty)
GET_DEVICE_PLUGIN_OPTIONS = Method("/v1beta1.DevicePlugin/GetDevicePluginOptions", Empty, DevicePluginOptions)
LIST_AND_WATCH = Method("/v1beta1.DevicePlugin/ListAndWatch", Empty, ListAndWatchResponse, streams=True)
GET_PREFERRED_ALLOCATION = Method(
    "/v1beta1.DevicePlugin/GetPreferredAllocation", PreferredAllocationRequest, PreferredAllocationResponse
)
ALLOCATE = Method("/v1beta1.DevicePlugin/Allocate", AllocateRequest, AllocateResponse)
PRE_START_CONTAINER = Method(
    "/v1beta1.DevicePlugin/PreStartContainer", PreStartContainerRequest, PreStartContainerResponse
)


class RegistrationServicer(Protocol):
    """What the kubelet serves on kubelet.sock."""

    async def Register(self, request: RegisterRequest, context: Context) -> Empty: ...


class DevicePluginServicer(Protocol):
    """What a plugin serves on the socket it registers."""

    async def GetDevicePluginOptions(self, request: Empty, context: Context) -> DevicePluginOptions: ...

    def ListAndWatch(self, request: Empty, context: Context) -> AsyncIterator[ListAndWatchResponse]: ...

    async def GetPreferredAllocation(
        self, request: PreferredAllocationRequest, context: Context
    ) -> PreferredAllocationResponse: ...

    async def Allocate(self, request: AllocateRequest, context: Context) -> AllocateResponse: ...

    async def PreStartContainer(
        self, request: PreStartContainerRequest, context: Context
    ) -> PreStartContainerResponse: ...


def registration_handler(servicer: RegistrationServicer) -> grpc.GenericRpcHandler:
    """For `server.add_generic_rpc_handlers`: the kubelet's side of a registration."""
    return generic_handler(servicer, REGISTER)


def device_plugin_handler(servicer: DevicePluginServicer) -> grpc.GenericRpcHandler:
    """For `server.add_generic_rpc_handlers`: a plugin."""
    return generic_handler(
        servicer,
        GET_DEVICE_PLUGIN_OPTIONS,
        LIST_AND_WATCH,
        GET_PREFERRED_ALLOCATION,
        ALLOCATE,
        PRE_START_CONTAINER,
    )


class RegistrationStub:
    """The plugin's side of a registration: `await stub.Register(request, timeout=…)`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.Register = REGISTER.unary(channel)


class DevicePluginStub:
    """The kubelet's side of a plugin: `async for response in stub.ListAndWatch(Empty())`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.GetDevicePluginOptions = GET_DEVICE_PLUGIN_OPTIONS.unary(channel)
        self.ListAndWatch = LIST_AND_WATCH.stream(channel)
        self.GetPreferredAllocation = GET_PREFERRED_ALLOCATION.unary(channel)
        self.Allocate = ALLOCATE.unary(channel)
        self.PreStartContainer = PRE_START_CONTAINER.unary(channel)
