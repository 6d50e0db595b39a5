"""What kubelets call of the Container Runtime Interface, v1, and genericdp does not (proto/runtime/v1).

The rules of this file:

* Names and spellings are the proto's.
* There is no behaviour here.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum

from genericdp.cri.api import ContainerMetadata, Mount, PodSandboxMetadata
from genericdp.messages import Int32, Int64, Message, Method, UInt32, enumeration, field, message


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


@message("runtime.v1")
class KeyValue(Message):
    key: str = field(1)
    value: str = field(2)


@message("runtime.v1")
class ImageSpec(Message):
    image: str = field(1)


@message("runtime.v1")
class Int64Value(Message):
    value: Int64 = field(1)


@message("runtime.v1")
class Device(Message):
    container_path: str = field(1)
    host_path: str = field(2)
    permissions: str = field(3)


@message("runtime.v1")
class CDIDevice(Message):
    name: str = field(1)


@message("runtime.v1")
class LinuxContainerSecurityContext(Message):
    privileged: bool = field(2)
    namespace_options: NamespaceOption | None = field(3)
    run_as_user: Int64Value | None = field(5)
    run_as_group: Int64Value | None = field(12)
    supplemental_groups: Sequence[Int64] = field(8)
    no_new_privs: bool = field(11)


@message("runtime.v1")
class LinuxContainerConfig(Message):
    security_context: LinuxContainerSecurityContext | None = field(2)


@message("runtime.v1")
class ContainerConfig(Message):
    metadata: ContainerMetadata | None = field(1)
    image: ImageSpec | None = field(2)
    command: Sequence[str] = field(3)
    args: Sequence[str] = field(4)
    working_dir: str = field(5)
    envs: Sequence[KeyValue] = field(6)
    mounts: Sequence[Mount] = field(7)
    devices: Sequence[Device] = field(8)
    labels: Mapping[str, str] = field(9)
    annotations: Mapping[str, str] = field(10)
    log_path: str = field(11)
    linux: LinuxContainerConfig | None = field(15)
    CDI_devices: Sequence[CDIDevice] = field(17)


@message("runtime.v1")
class CreateContainerRequest(Message):
    pod_sandbox_id: str = field(1)
    config: ContainerConfig | None = field(2)
    sandbox_config: PodSandboxConfig | None = field(3)


@message("runtime.v1")
class CreateContainerResponse(Message):
    container_id: str = field(1)


@message("runtime.v1")
class StartContainerRequest(Message):
    container_id: str = field(1)


@message("runtime.v1")
class StartContainerResponse(Message):
    pass


@message("runtime.v1")
class RemoveContainerRequest(Message):
    container_id: str = field(1)


@message("runtime.v1")
class RemoveContainerResponse(Message):
    pass


@message("runtime.v1")
class ExecSyncRequest(Message):
    container_id: str = field(1)
    cmd: Sequence[str] = field(2)
    timeout: Int64 = field(3)


@message("runtime.v1")
class ExecSyncResponse(Message):
    stdout: bytes = field(1)
    stderr: bytes = field(2)
    exit_code: Int32 = field(3)


RUN_POD_SANDBOX = Method(
    "/runtime.v1.RuntimeService/RunPodSandbox", RunPodSandboxRequest, RunPodSandboxResponse
)
STOP_POD_SANDBOX = Method(
    "/runtime.v1.RuntimeService/StopPodSandbox", StopPodSandboxRequest, StopPodSandboxResponse
)
REMOVE_POD_SANDBOX = Method(
    "/runtime.v1.RuntimeService/RemovePodSandbox", RemovePodSandboxRequest, RemovePodSandboxResponse
)
CREATE_CONTAINER = Method(
    "/runtime.v1.RuntimeService/CreateContainer", CreateContainerRequest, CreateContainerResponse
)
START_CONTAINER = Method(
    "/runtime.v1.RuntimeService/StartContainer", StartContainerRequest, StartContainerResponse
)
REMOVE_CONTAINER = Method(
    "/runtime.v1.RuntimeService/RemoveContainer", RemoveContainerRequest, RemoveContainerResponse
)
EXEC_SYNC = Method("/runtime.v1.RuntimeService/ExecSync", ExecSyncRequest, ExecSyncResponse)
