"""The Container Runtime Interface, v1: the creation of containers (proto/runtime/v1/api.proto).

The daemon calls none of it. Tests do, to drive a container runtime as a kubelet does.

The rules of this file:

* Names and spellings are the proto's.
* There is no behaviour here: clients and servers are elsewhere.
"""

from collections.abc import Mapping, Sequence

import grpc.aio

from genericdp.cri.api import ContainerMetadata, Mount
from genericdp.cri.sandboxes import NamespaceOption, PodSandboxConfig
from genericdp.kubelet.api.messages import (
    Int32,
    Int64,
    Message,
    Method,
    field,
    message,
)


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


@message("runtime.v1")
class Image(Message):
    id: str = field(1)
    repo_tags: Sequence[str] = field(2)


@message("runtime.v1")
class ImageStatusRequest(Message):
    image: ImageSpec | None = field(1)


@message("runtime.v1")
class ImageStatusResponse(Message):
    image: Image | None = field(1)


@message("runtime.v1")
class PullImageRequest(Message):
    image: ImageSpec | None = field(1)


@message("runtime.v1")
class PullImageResponse(Message):
    image_ref: str = field(1)


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
IMAGE_STATUS = Method("/runtime.v1.ImageService/ImageStatus", ImageStatusRequest, ImageStatusResponse)
PULL_IMAGE = Method("/runtime.v1.ImageService/PullImage", PullImageRequest, PullImageResponse)


class CreationStub:
    """The calling side of a kubelet."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.CreateContainer = CREATE_CONTAINER.unary(channel)
        self.StartContainer = START_CONTAINER.unary(channel)
        self.RemoveContainer = REMOVE_CONTAINER.unary(channel)
        self.ExecSync = EXEC_SYNC.unary(channel)
        self.ImageStatus = IMAGE_STATUS.unary(channel)
        self.PullImage = PULL_IMAGE.unary(channel)
