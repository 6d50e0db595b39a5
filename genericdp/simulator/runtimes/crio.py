"""How CRI-O turns requested devices into those of the OCI spec.

The rules of this file:

* The behaviour is that of CRI-O 1.18 to 1.36, `specAddContainerConfigDevices`.
* A path that is missing, dangling or not a device is ignored SILENTLY: the container starts without it.
  Only a loop of links is an error.
* The owner is copied from the host. CRI-O sets no mode, so the low-level runtime's default applies.
* A privileged container also gets all devices of the host. A device replaces an earlier one at its path.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from genericdp.simulator.runtimes.filesystem import HostNode, PathError, exists, look, nodes_below, resolve
from genericdp.simulator.runtimes.oci import OciDevice
from genericdp.simulator.runtimes.runtime import ContainerConfig, CreateContainerError, RequestedDevice

DEFAULT_MODE = 0o666


def devices(config: ContainerConfig) -> list[OciDevice]:
    """The devices of the OCI spec. CreateContainerError for the few errors that CRI-O reports."""
    return _replacing(device for requested in config.devices for device in _devices(requested, config))


def with_the_hosts(requested: Sequence[OciDevice], directory: str) -> list[OciDevice]:
    """The devices of a privileged container; `directory`: of the host's devices."""
    host = [
        _device(node, RequestedDevice(node.path, node.path, "rwm"), node.path)
        for node in nodes_below(directory)
    ]
    return _replacing([*host, *requested])


def _replacing(devices: Iterable[OciDevice]) -> list[OciDevice]:
    return list({device.path: device for device in devices}.values())


def _devices(requested: RequestedDevice, config: ContainerConfig) -> Iterator[OciDevice]:
    if (
        config.privileged
        and requested.container_path != requested.host_path
        and exists(requested.container_path)
    ):
        raise CreateContainerError(
            "privileged container was configured with a device container path that already exists on the host"
        )
    try:
        path = resolve(requested.host_path, strict=False)
    except PathError:
        raise CreateContainerError(
            f"SecureJoin //{requested.host_path}: too many levels of symbolic links"
        ) from None
    try:
        node = look(path)
    except PathError:
        return
    if node.kind == "d":
        yield from _below(path, requested)
    elif node.kind:
        yield _device(node, requested, requested.container_path)


def _below(root: str, requested: RequestedDevice) -> Iterator[OciDevice]:
    """Every device below a directory, including fifos; links inside are ignored."""
    for directory, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            node = look(f"{directory.rstrip('/')}/{name}")
            if node.kind:
                container_path = node.path.replace(root, requested.container_path, 1)
                yield replace(_device(node, requested, container_path), from_directory=True)


def _device(node: HostNode, requested: RequestedDevice, container_path: str) -> OciDevice:
    return OciDevice(
        container_path,
        node.kind,
        node.major,
        node.minor,
        DEFAULT_MODE,
        node.uid,
        node.gid,
        requested.permissions,
        node.path,
        requested.host_path,
    )
