"""The Container Runtime Interface, v1: what genericdp calls (proto/runtime/v1/api.proto).

The rules of this file:

* Names and spellings are the proto's.
* There is no behaviour here: clients and servers are elsewhere.
"""
# ruff: noqa: N802  # the proto's spelling

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Protocol

import grpc
import grpc.aio

from genericdp.messages import (
    Context,
    Int32,
    Int64,
    Message,
    Method,
    UInt32,
    enumeration,
    field,
    generic_handler,
    message,
)


@message("runtime.v1")
class VersionRequest(Message):
    version: str = field(1)


@message("runtime.v1")
class VersionResponse(Message):
    version: str = field(1)
    runtime_name: str = field(2)
    runtime_version: str = field(3)
    runtime_api_version: str = field(4)


@message("runtime.v1")
class RuntimeCondition(Message):
    type: str = field(1)
    status: bool = field(2)
    reason: str = field(3)
    message: str = field(4)


@message("runtime.v1")
class RuntimeStatus(Message):
    conditions: Sequence[RuntimeCondition] = field(1)


@message("runtime.v1")
class StatusRequest(Message):
    verbose: bool = field(1)


@message("runtime.v1")
class StatusResponse(Message):
    status: RuntimeStatus | None = field(1)
    info: Mapping[str, str] = field(2)


@message("runtime.v1")
class PodSandboxMetadata(Message):
    name: str = field(1)
    uid: str = field(2)
    namespace: str = field(3)
    attempt: UInt32 = field(4)


@enumeration("runtime.v1")
class PodSandboxState(IntEnum):
    SANDBOX_READY = 0
    SANDBOX_NOTREADY = 1


@message("runtime.v1")
class PodSandboxStateValue(Message):
    state: PodSandboxState = field(1)


@message("runtime.v1")
class PodSandboxFilter(Message):
    id: str = field(1)
    state: PodSandboxStateValue | None = field(2)
    label_selector: Mapping[str, str] = field(3)


@message("runtime.v1")
class ListPodSandboxRequest(Message):
    filter: PodSandboxFilter | None = field(1)


@message("runtime.v1")
class PodSandbox(Message):
    id: str = field(1)
    metadata: PodSandboxMetadata | None = field(2)
    state: PodSandboxState = field(3)
    created_at: Int64 = field(4)
    labels: Mapping[str, str] = field(5)
    annotations: Mapping[str, str] = field(6)
    runtime_handler: str = field(7)


@message("runtime.v1")
class ListPodSandboxResponse(Message):
    items: Sequence[PodSandbox] = field(1)


@message("runtime.v1")
class ContainerMetadata(Message):
    name: str = field(1)
    attempt: UInt32 = field(2)


@message("runtime.v1")
class Mount(Message):
    container_path: str = field(1)
    host_path: str = field(2)
    readonly: bool = field(3)


@message("runtime.v1")
class StopContainerRequest(Message):
    container_id: str = field(1)
    timeout: Int64 = field(2)


@message("runtime.v1")
class StopContainerResponse(Message):
    pass


@enumeration("runtime.v1")
class ContainerState(IntEnum):
    CONTAINER_CREATED = 0
    CONTAINER_RUNNING = 1
    CONTAINER_EXITED = 2
    CONTAINER_UNKNOWN = 3


@message("runtime.v1")
class ContainerStateValue(Message):
    state: ContainerState = field(1)


@message("runtime.v1")
class ContainerFilter(Message):
    id: str = field(1)
    state: ContainerStateValue | None = field(2)
    pod_sandbox_id: str = field(3)
    label_selector: Mapping[str, str] = field(4)


@message("runtime.v1")
class ListContainersRequest(Message):
    filter: ContainerFilter | None = field(1)


@message("runtime.v1")
class Container(Message):
    id: str = field(1)
    pod_sandbox_id: str = field(2)
    metadata: ContainerMetadata | None = field(3)
    state: ContainerState = field(6)
    created_at: Int64 = field(7)
    labels: Mapping[str, str] = field(8)
    annotations: Mapping[str, str] = field(9)


@message("runtime.v1")
class ListContainersResponse(Message):
    containers: Sequence[Container] = field(1)


@message("runtime.v1")
class ContainerStatusRequest(Message):
    container_id: str = field(1)
    verbose: bool = field(2)


@message("runtime.v1")
class ContainerStatus(Message):
    id: str = field(1)
    metadata: ContainerMetadata | None = field(2)
    state: ContainerState = field(3)
    created_at: Int64 = field(4)
    started_at: Int64 = field(5)
    finished_at: Int64 = field(6)
    exit_code: Int32 = field(7)
    reason: str = field(10)
    message: str = field(11)
    labels: Mapping[str, str] = field(12)
    annotations: Mapping[str, str] = field(13)
    mounts: Sequence[Mount] = field(14)


@message("runtime.v1")
class ContainerStatusResponse(Message):
    status: ContainerStatus | None = field(1)
    info: Mapping[str, str] = field(2)


VERSION = Method("/runtime.v1.RuntimeService/Version", VersionRequest, VersionResponse)
STATUS = Method("/runtime.v1.RuntimeService/Status", StatusRequest, StatusResponse)
LIST_POD_SANDBOX = Method(
    "/runtime.v1.RuntimeService/ListPodSandbox", ListPodSandboxRequest, ListPodSandboxResponse
)
LIST_CONTAINERS = Method(
    "/runtime.v1.RuntimeService/ListContainers", ListContainersRequest, ListContainersResponse
)
CONTAINER_STATUS = Method(
    "/runtime.v1.RuntimeService/ContainerStatus", ContainerStatusRequest, ContainerStatusResponse
)
STOP_CONTAINER = Method(
    "/runtime.v1.RuntimeService/StopContainer", StopContainerRequest, StopContainerResponse
)


class RuntimeServicer(Protocol):
    """What a container runtime serves on its socket, as far as genericdp calls it."""

    async def Version(self, request: VersionRequest, context: Context) -> VersionResponse: ...

    async def Status(self, request: StatusRequest, context: Context) -> StatusResponse: ...

    async def ListPodSandbox(
        self, request: ListPodSandboxRequest, context: Context
    ) -> ListPodSandboxResponse: ...

    async def ListContainers(
        self, request: ListContainersRequest, context: Context
    ) -> ListContainersResponse: ...

    async def ContainerStatus(
        self, request: ContainerStatusRequest, context: Context
    ) -> ContainerStatusResponse: ...

    async def StopContainer(
        self, request: StopContainerRequest, context: Context
    ) -> StopContainerResponse: ...


def runtime_handler(servicer: RuntimeServicer) -> grpc.GenericRpcHandler:
    """For `server.add_generic_rpc_handlers`: the runtime's side."""
    return generic_handler(
        servicer, VERSION, STATUS, LIST_POD_SANDBOX, LIST_CONTAINERS, CONTAINER_STATUS, STOP_CONTAINER
    )
