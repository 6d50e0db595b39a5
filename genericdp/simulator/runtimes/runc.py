"""How runc and crun make the device nodes of an OCI spec.

The rules of this file:

* First runc checks the rules of the device cgroup, then nodes are made in order. A file or directory that
  already exists at the path stays, silently. An earlier node cannot be the directory of another one.
* crun 1.21 grants nothing for empty permissions, refuses relative paths, and counts the last of two entries
  for one device.
* In a user namespace runc cannot make nodes. It bind-mounts the host's file at the container path,
  whatever that is, while the cgroup rule is for the requested device.
"""

from collections.abc import Container, Mapping, Sequence

from genericdp.simulator.runtimes.filesystem import HostNode, PathError, look, resolve
from genericdp.simulator.runtimes.oci import OciDevice
from genericdp.simulator.runtimes.runtime import (
    ContainerConfig,
    CreateContainerError,
    DeviceNode,
    LowLevel,
    Runtime,
)

#: Kind, major and minor -> permissions.
Granted = Mapping[tuple[str, int, int], str]

#: The id that a user namespace shows for ids without a mapping.
OVERFLOW_ID = 65534


def make_nodes(
    runtime: Runtime, config: ContainerConfig, devices: Sequence[OciDevice]
) -> tuple[DeviceNode, ...]:
    """The nodes that a process in the container finds. CreateContainerError with runc's text."""
    _check_rules(runtime, devices)
    granted = _granted(runtime, config, devices)
    bound = config.user_namespace and runtime.low_level is LowLevel.RUNC
    nodes: dict[str, DeviceNode] = {}
    directories: set[str] = set()
    for device in devices:
        path = "/" + device.path.lstrip("/")
        if not device.path or path in nodes or path in config.image_files or path == "/dev/ptmx":
            continue
        if path in directories:
            if bound:
                raise CreateContainerError(
                    f"error during container init: error creating device nodes: open {path}: is a directory"
                )
            continue
        if runtime.low_level is LowLevel.CRUN and not device.path.startswith("/"):
            raise CreateContainerError(f"mknod `{device.path}`: No such file or directory")
        directories |= _parents(path, (config.image_files, nodes), runtime.low_level)
        if bound:
            nodes[path] = _bound(path, device, granted)
        else:
            nodes[path] = _made(path, device, granted)
    return tuple(nodes.values())


def allowed(permissions: str) -> str:
    """The permissions that the cgroup grants: r, w, m in this order; other letters are dropped."""
    return "".join(letter for letter in "rwm" if letter in permissions)


def _granted(runtime: Runtime, config: ContainerConfig, devices: Sequence[OciDevice]) -> Granted:
    """What the cgroup grants, for each device: runc adds up all of its entries, crun takes the last.

    A privileged container may use every device.
    """
    if config.privileged:
        return {(device.kind, device.major, device.minor): "rwm" for device in devices}
    rules: dict[tuple[str, int, int], str] = {}
    for device in devices:
        number = (device.kind, device.major, device.minor)
        others = "" if runtime.low_level is LowLevel.CRUN else rules.get(number, "")
        rules[number] = allowed(others + device.permissions)
    return rules


def _check_rules(runtime: Runtime, devices: Sequence[OciDevice]) -> None:
    if runtime.low_level is LowLevel.CRUN:
        for device in devices:
            if device.kind == "p":
                raise CreateContainerError("unknown device type `p`")
        return
    # Rule 0 denies all devices.
    for number, device in enumerate(devices, start=1):
        if not device.permissions:
            raise CreateContainerError(f"device access at {number} field cannot be empty")
        if device.kind == "p":
            raise CreateContainerError('invalid cgroup device type "p"')
        if runtime.cgroup == 1 and not allowed(device.permissions):
            raise CreateContainerError("resulting devices cgroup doesn't precisely match target")


def _parents(path: str, files: Sequence[Container[str]], low_level: LowLevel) -> set[str]:
    """The directories in which a node is. CreateContainerError if one of them is a file."""
    parents: set[str] = set()
    parent = path.rpartition("/")[0]
    while parent:
        if any(parent in some for some in files):
            if low_level is LowLevel.CRUN:
                raise CreateContainerError(f"mknod `{path}`: Not a directory")
            raise CreateContainerError(f"cannot mkdir in {parent}: not a directory")
        parents.add(parent)
        parent = parent.rpartition("/")[0]
    return parents


def _made(path: str, device: OciDevice, granted: Granted) -> DeviceNode:
    return DeviceNode(
        path,
        device.kind,
        device.major,
        device.minor,
        device.mode,
        device.uid,
        device.gid,
        granted[device.kind, device.major, device.minor],
        device.source,
        device.host_path,
    )


def _bound(path: str, device: OciDevice, granted: Granted) -> DeviceNode:
    try:
        host: HostNode = look(resolve(path, strict=True))
    except PathError as error:
        words = "too many levels of symbolic links" if error.loop else "no such file or directory"
        raise CreateContainerError(
            "error during container init: error creating device nodes: "
            f"mount {path} (via /proc/self/fd/8), flags: 0x1000: {words}"
        ) from None
    return DeviceNode(
        path,
        host.kind,
        host.major,
        host.minor,
        host.mode,
        OVERFLOW_ID,
        OVERFLOW_ID,
        # The rules are about the requested devices, and this may be another one.
        granted.get((host.kind, host.major, host.minor), ""),
        host.path,
        device.host_path,
    )
