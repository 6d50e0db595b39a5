"""The Container Runtime Interface, v1: the sandboxes of pods (proto/runtime/v1/api.proto).

The daemon calls none of it. Tests do, to drive a container runtime as a kubelet does.

The rules of this file:

* Names and spellings are the proto's.
* There is no behaviour here: clients and servers are elsewhere.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum

import grpc.aio

from genericdp.kubelet.api.messages import (
    Int64,
    Message,
    Method,
    UInt32,
    enumeration,
    field,
    message,
)


@message("runtime.v1")
class IDMapping(Message):
    host_id: UInt32 = field(1)
    container_id: UInt32 = field(2)
    length: UInt32 = field(3)


@enumeration("runtime.v1")
class NamespaceMode(IntEnum):
    POD = 0
    CONTAINER = 1
    NODE = 2
    TARGET = 3


@message("runtime.v1")
class UserNamespace(Message):
    mode: NamespaceMode = field(1)
    uids: Sequence[IDMapping] = field(2)
    gids: Sequence[IDMapping] = field(3)


@message("runtime.v1")
class NamespaceOption(Message):
    network: NamespaceMode = field(1)
    pid: NamespaceMode = field(2)
    ipc: NamespaceMode = field(3)
    userns_options: UserNamespace | None = field(5)


@message("runtime.v1")
class LinuxSandboxSecurityContext(Message):
    namespace_options: NamespaceOption | None = field(1)
    privileged: bool = field(6)


@message("runtime.v1")
class LinuxPodSandboxConfig(Message):
    cgroup_parent: str = field(1)
    security_context: LinuxSandboxSecurityContext | None = field(2)


@message("runtime.v1")
class PodSandboxMetadata(Message):
    name: str = field(1)
    uid: str = field(2)
    namespace: str = field(3)
    attempt: UInt32 = field(4)


@message("runtime.v1")
class PodSandboxConfig(Message):
    metadata: PodSandboxMetadata | None = field(1)
    hostname: str = field(2)
    log_directory: str = field(3)
    labels: Mapping[str, str] = field(6)
    annotations: Mapping[str, str] = field(7)
    linux: LinuxPodSandboxConfig | None = field(8)


@message("runtime.v1")
class RunPodSandboxRequest(Message):
    config: PodSandboxConfig | None = field(1)
    runtime_handler: str = field(2)


@message("runtime.v1")
class RunPodSandboxResponse(Message):
    pod_sandbox_id: str = field(1)


@message("runtime.v1")
class StopPodSandboxRequest(Message):
    pod_sandbox_id: str = field(1)


@message("runtime.v1")
class StopPodSandboxResponse(Message):
    pass


@message("runtime.v1")
class RemovePodSandboxRequest(Message):
    pod_sandbox_id: str = field(1)


@message("runtime.v1")
class RemovePodSandboxResponse(Message):
    pass


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


RUN_POD_SANDBOX = Method(
    "/runtime.v1.RuntimeService/RunPodSandbox", RunPodSandboxRequest, RunPodSandboxResponse
)
STOP_POD_SANDBOX = Method(
    "/runtime.v1.RuntimeService/StopPodSandbox", StopPodSandboxRequest, StopPodSandboxResponse
)
REMOVE_POD_SANDBOX = Method(
    "/runtime.v1.RuntimeService/RemovePodSandbox", RemovePodSandboxRequest, RemovePodSandboxResponse
)
LIST_POD_SANDBOX = Method(
    "/runtime.v1.RuntimeService/ListPodSandbox", ListPodSandboxRequest, ListPodSandboxResponse
)


class SandboxStub:
    """The calling side of a kubelet."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.RunPodSandbox = RUN_POD_SANDBOX.unary(channel)
        self.StopPodSandbox = STOP_POD_SANDBOX.unary(channel)
        self.RemovePodSandbox = REMOVE_POD_SANDBOX.unary(channel)
        self.ListPodSandbox = LIST_POD_SANDBOX.unary(channel)
