"""How containerd turns requested devices into those of the OCI spec (1.6 to 2.3, `WithDevices`).

The rules of this file:

* Links are followed at every creation. Anything but a device or a directory is an error.
* Mode and owner are copied from the host.
* A privileged container also gets all devices of the host. They come last (`WithHostDevices`).
* The texts are containerd's without the container's id, which is not predictable.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from genericdp.simulator.runtimes.filesystem import (
    SKIPPED_DIRECTORIES,
    SKIPPED_FILES,
    HostNode,
    PathError,
    entries,
    is_link,
    look,
    nodes_below,
    resolve,
)
from genericdp.simulator.runtimes.oci import OciDevice
from genericdp.simulator.runtimes.runtime import ContainerConfig, CreateContainerError, RequestedDevice


def devices(config: ContainerConfig) -> list[OciDevice]:
    """The devices of the OCI spec. CreateContainerError when one cannot be resolved."""
    return [device for requested in config.devices for device in _devices(requested)]


def with_the_hosts(requested: Sequence[OciDevice], directory: str) -> list[OciDevice]:
    """The devices of a privileged container; `directory`: of the host's devices."""
    host = [
        _device(node, RequestedDevice(node.path, node.path, "rwm"), node.path)
        for node in nodes_below(directory)
    ]
    return [*requested, *host]


def _devices(requested: RequestedDevice) -> Iterator[OciDevice]:
    try:
        path = _resolve(requested.host_path)
        node = look(path)
        if node.kind == "d":
            yield from _below(path, path, requested)
            return
    except PathError as error:
        raise _refusal(str(error)) from None
    if not node.kind:
        raise _refusal("not a device node")
    yield _device(node, requested, requested.container_path or path)


def _refusal(reason: str) -> CreateContainerError:
    return CreateContainerError(f"failed to generate container spec: failed to generate spec: {reason}")


def _resolve(path: str) -> str:
    if not is_link(path):
        look(path)
        return path
    try:
        return resolve(path, strict=True)
    except PathError as error:
        raise PathError("EvalSymlinks: too many links" if error.loop else str(error)) from None


def _below(root: str, directory: str, requested: RequestedDevice) -> Iterator[OciDevice]:
    """Every device below a directory; links inside are ignored."""
    for name in entries(directory):
        node = look(f"{directory.rstrip('/')}/{name}")
        if node.kind == "d":
            if name not in SKIPPED_DIRECTORIES:
                yield from _below(root, node.path, requested)
        elif node.kind in ("c", "b") and name not in SKIPPED_FILES:
            inside = node.path.removeprefix(root).lstrip("/")
            container_path = f"{(requested.container_path or root).rstrip('/')}/{inside}"
            yield replace(_device(node, requested, container_path), from_directory=True)


def _device(node: HostNode, requested: RequestedDevice, container_path: str) -> OciDevice:
    return OciDevice(
        container_path,
        node.kind,
        node.major,
        node.minor,
        node.mode,
        node.uid,
        node.gid,
        requested.permissions,
        node.path,
        requested.host_path,
    )
