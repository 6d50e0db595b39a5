"""How runc and crun make the device nodes of an OCI spec.

The rules of this file:

* First the rules of the device cgroup are checked, then nodes are made in order. A file that already
  exists at the path stays, silently.
* In a user namespace runc cannot make nodes. It bind-mounts the host's file at the container path,
  whatever that is, while the cgroup rule is for the requested device.
"""

from collections.abc import Sequence

from genericdp.simulator.runtimes.filesystem import HostNode, PathError, look, resolve
from genericdp.simulator.runtimes.oci import OciDevice
from genericdp.simulator.runtimes.runtime import (
    ContainerConfig,
    CreateContainerError,
    DeviceNode,
    LowLevel,
    Runtime,
)

#: The id that a user namespace shows for ids without a mapping.
OVERFLOW_ID = 65534


def make_nodes(
    runtime: Runtime, config: ContainerConfig, devices: Sequence[OciDevice]
) -> tuple[DeviceNode, ...]:
    """The nodes that a process in the container finds. CreateContainerError with runc's text."""
    _check_rules(runtime, devices)
    nodes: dict[str, DeviceNode] = {}
    for device in devices:
        path = "/" + device.path.lstrip("/")
        if not device.path or path in nodes or path in config.image_files or path == "/dev/ptmx":
            continue
        _check_parents(path, config)
        if config.user_namespace and runtime.low_level is LowLevel.RUNC:
            nodes[path] = _bound(path, device)
        else:
            nodes[path] = _made(path, device)
    return tuple(nodes.values())


def allowed(permissions: str) -> str:
    """The permissions that the cgroup grants: r, w, m in this order; other letters are dropped."""
    return "".join(letter for letter in "rwm" if letter in permissions)


def _check_rules(runtime: Runtime, devices: Sequence[OciDevice]) -> None:
    # Rule 0 denies all devices.
    for number, device in enumerate(devices, start=1):
        if not device.permissions:
            raise CreateContainerError(f"device access at {number} field cannot be empty")
        if device.kind == "p":
            raise CreateContainerError('invalid cgroup device type "p"')
        if runtime.cgroup == 1 and not allowed(device.permissions):
            raise CreateContainerError("resulting devices cgroup doesn't precisely match target")


def _check_parents(path: str, config: ContainerConfig) -> None:
    parent = path.rpartition("/")[0]
    while parent:
        if parent in config.image_files:
            raise CreateContainerError(f"mkdir {parent}: not a directory")
        parent = parent.rpartition("/")[0]


def _made(path: str, device: OciDevice) -> DeviceNode:
    return DeviceNode(
        path,
        device.kind,
        device.major,
        device.minor,
        device.mode,
        device.uid,
        device.gid,
        allowed(device.permissions),
        device.source,
        device.host_path,
    )


def _bound(path: str, device: OciDevice) -> DeviceNode:
    try:
        host: HostNode = look(resolve(path, strict=True))
    except PathError as error:
        words = "too many levels of symbolic links" if error.loop else "no such file or directory"
        raise CreateContainerError(
            f"mount {path}:{path} (via /proc/self/fd/8), flags: 0x1000: {words}"
        ) from None
    same = (host.kind, host.major, host.minor) == (device.kind, device.major, device.minor)
    return DeviceNode(
        path,
        host.kind,
        host.major,
        host.minor,
        host.mode,
        OVERFLOW_ID,
        OVERFLOW_ID,
        # The cgroup rule is for another device than the one at this path.
        allowed(device.permissions) if same else "",
        host.path,
        device.host_path,
    )
