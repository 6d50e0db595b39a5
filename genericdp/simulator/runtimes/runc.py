"""What runc (or crun) makes of the devices of a spec.

The rules of this file:

* First the device cgroup's rules are checked, then nodes are made in order; what is already there
  stays, silently.
* In a user namespace runc cannot make nodes. It bind-mounts the host's path that equals the
  container path, whatever that is, while the cgroup rule is for the device that was asked for.
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

#: Ids that have no mapping into a user namespace look like this inside.
OVERFLOW_ID = 65534


def make_nodes(
    runtime: Runtime, config: ContainerConfig, devices: Sequence[OciDevice]
) -> tuple[DeviceNode, ...]:
    """The nodes that a process finds. CreateContainerError with runc's text."""
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
    """What the cgroup makes of permissions: known letters in their order, once; the rest is dropped."""
    return "".join(letter for letter in "rwm" if letter in permissions)


def _check_rules(runtime: Runtime, devices: Sequence[OciDevice]) -> None:
    # Rule 0 denies everything.
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
        # The rule names another device than the one that is found there.
        allowed(device.permissions) if same else "",
        host.path,
        device.host_path,
    )
