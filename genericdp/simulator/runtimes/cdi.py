"""CDI, which resolves device names by spec files at each creation of a container.

The rules of this file:

* The edits of a file apply once, before those of its first device. Later edits replace earlier ones with the
  same env, container path or mount point, and what the request had there.
* Host paths are read by lstat: unlike everything else, CDI does not follow links. With a type and a major
  number in the file, nothing is read.
* Devices are also named by annotations `cdi.k8s.io/…`.
* A node belongs to the process, and has the default mode of the low-level runtime, unless the file says it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from genericdp.simulator.runtimes.cdi_spec import Known, scan
from genericdp.simulator.runtimes.filesystem import PathError, look
from genericdp.simulator.runtimes.oci import OciDevice
from genericdp.simulator.runtimes.runtime import (
    CdiSupport,
    ContainerConfig,
    CreateContainerError,
    RequestedMount,
    Runtime,
)

#: How the keys of annotations begin that name CDI devices, comma-separated.
ANNOTATION_PREFIX = "cdi.k8s.io/"

_DEFAULT_MODE = 0o666


@dataclass(slots=True)
class Edits:
    """The container edits of all requested devices."""

    devices: dict[str, OciDevice] = field(default_factory=dict)
    mounts: dict[str, RequestedMount] = field(default_factory=dict)
    envs: dict[str, str] = field(default_factory=dict)
    groups: dict[int, None] = field(default_factory=dict)


def inject(runtime: Runtime, config: ContainerConfig) -> Edits:
    """The edits of the requested devices. CreateContainerError when CDI is off or a name is unknown."""
    names = requested(config)
    if not names:
        return Edits()
    match runtime.cdi:
        case CdiSupport.IGNORED:
            return Edits()
        case CdiSupport.OFF:
            raise CreateContainerError(
                f"CDI devices ({', '.join(names)}) requested but CDI support is explicitly disabled"
            )
    known = scan(runtime.cdi_dirs) if runtime.cdi_cache is None else runtime.cdi_cache.devices()
    return _edits(known, names, config)


def requested(config: ContainerConfig) -> tuple[str, ...]:
    """The CDI devices of a request: those of its own field, then those of its annotations."""
    annotated = [
        name
        for key, value in config.annotations.items()
        if key.startswith(ANNOTATION_PREFIX)
        for name in value.split(",")
    ]
    return tuple(dict.fromkeys((*config.cdi_devices, *annotated)))


def _edits(known: Known, names: Iterable[str], config: ContainerConfig) -> Edits:
    missing = [name for name in names if name not in known]
    if missing:
        raise CreateContainerError(
            f"CDI device injection failed: unresolvable CDI devices {', '.join(missing)}"
        )
    edits = Edits()
    files: set[str] = set()
    for name in names:
        spec, of_device = known[name]
        if spec.path not in files:
            files.add(spec.path)
            _apply(edits, spec.edits, config)
        _apply(edits, of_device, config)
    return edits


def _apply(edits: Edits, part: Mapping[str, Any], config: ContainerConfig) -> None:
    for env in part.get("env", ()):
        name, _, value = env.partition("=")
        edits.envs[name] = value
    for mount in part.get("mounts", ()):
        path = mount["containerPath"]
        edits.mounts.pop(path, None)
        edits.mounts[path] = RequestedMount(mount["hostPath"], path, "ro" in mount.get("options", ()))
    for node in part.get("deviceNodes", ()):
        edits.devices.pop(node["path"], None)
        edits.devices[node["path"]] = _device(node, config)
    edits.groups.update(dict.fromkeys(gid for gid in part.get("additionalGids", ()) if gid))


def _device(node: Mapping[str, Any], config: ContainerConfig) -> OciDevice:
    path = node.get("hostPath") or node["path"]
    kind, major, minor = node.get("type", ""), node.get("major", 0), node.get("minor", 0)
    if not kind or not (major or kind == "p"):
        kind, major, minor = _looked_up(node, path)
    permissions = node.get("permissions") or "rwm"
    return OciDevice(
        node["path"],
        kind,
        major,
        minor,
        node.get("fileMode", _DEFAULT_MODE),
        node.get("uid", config.run_as_user),
        node.get("gid", config.run_as_group),
        "" if permissions == "none" else permissions,
        path,
        path,
    )


def _looked_up(node: Mapping[str, Any], path: str) -> tuple[str, int, int]:
    """The type and number of a node of the host."""
    try:
        found = look(path)
    except PathError as error:
        raise _unusable(path, str(error).partition(": ")[2]) from None
    if found.kind not in ("c", "b", "p"):
        raise _unusable(path, "not a device node")
    if (node.get("type") or found.kind) != found.kind:
        raise CreateContainerError(
            "CDI device injection failed: failed to inject devices: "
            f'CDI device ("{node["path"]}", "{path}"), host type mismatch ({node["type"]}, {found.kind})'
        )
    return found.kind, found.major, found.minor


def _unusable(path: str, reason: str) -> CreateContainerError:
    return CreateContainerError(
        "CDI device injection failed: failed to inject devices: "
        f'failed to stat CDI host device "{path}": {reason}'
    )
