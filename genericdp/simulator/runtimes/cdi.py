"""CDI, which resolves device names by spec files at each creation of a container.

The rules of this file:

* It reads JSON files of spec 0.5 to 1.1, and of those device nodes, mounts and env variables.
* Host paths are read by lstat: unlike everything else, CDI does not follow links.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from genericdp.simulator.runtimes.filesystem import PathError, look
from genericdp.simulator.runtimes.oci import OciDevice
from genericdp.simulator.runtimes.runtime import CreateContainerError, RequestedMount, Runtime


@dataclass(slots=True)
class Edits:
    """The container edits of all requested devices."""

    devices: list[OciDevice] = field(default_factory=list)
    mounts: list[RequestedMount] = field(default_factory=list)
    envs: dict[str, str] = field(default_factory=dict)


def inject(runtime: Runtime, names: Iterable[str]) -> Edits:
    """The edits of the named devices. CreateContainerError when CDI is off or a name is unknown."""
    wanted = list(names)
    if not runtime.cdi:
        raise CreateContainerError("CDI device injection failed: CDI support is not enabled")
    known = _known(runtime.cdi_dirs)
    missing = [name for name in wanted if name not in known]
    if missing:
        raise CreateContainerError(
            f"CDI device injection failed: unresolvable CDI devices {', '.join(missing)}"
        )
    edits = Edits()
    for name in wanted:
        for part in known[name]:
            _apply(edits, part)
    return edits


def _known(directories: Iterable[str]) -> dict[str, list[Mapping[str, Any]]]:
    """Device name -> its edits. A later directory wins; a name in two files of one directory conflicts."""
    known: dict[str, list[Mapping[str, Any]]] = {}
    for directory in directories:
        here: dict[str, list[Mapping[str, Any]]] = {}
        conflicts: set[str] = set()
        for spec in _specs(directory):
            for device in spec.get("devices", ()):
                name = f"{spec['kind']}={device['name']}"
                if name in here:
                    conflicts.add(name)
                here[name] = [spec.get("containerEdits", {}), device.get("containerEdits", {})]
        known |= {name: edits for name, edits in here.items() if name not in conflicts}
        for name in conflicts:
            known.pop(name, None)
    return known


def _specs(directory: str) -> Iterable[Mapping[str, Any]]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for name in names:
        if name.endswith(".json"):
            try:
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    yield json.load(file)
            except (OSError, ValueError):
                continue


def _apply(edits: Edits, part: Mapping[str, Any]) -> None:
    for env in part.get("env", ()):
        name, _, value = env.partition("=")
        edits.envs[name] = value
    for mount in part.get("mounts", ()):
        edits.mounts.append(
            RequestedMount(mount["hostPath"], mount["containerPath"], "ro" in mount.get("options", ()))
        )
    for node in part.get("deviceNodes", ()):
        edits.devices.append(_device(node))


def _device(node: Mapping[str, Any]) -> OciDevice:
    path = node.get("hostPath") or node["path"]
    try:
        found = look(path)
    except PathError as error:
        raise _unusable(path, str(error)) from None
    if found.kind not in ("c", "b", "p"):
        raise _unusable(path, "not a device node")
    return OciDevice(
        node["path"],
        found.kind,
        found.major,
        found.minor,
        node.get("fileMode", found.mode),
        node.get("uid", found.uid),
        node.get("gid", found.gid),
        node.get("permissions", "rwm"),
        found.path,
        path,
    )


def _unusable(path: str, reason: str) -> CreateContainerError:
    return CreateContainerError(
        "CDI device injection failed: failed to inject devices: "
        f'failed to stat CDI host device "{path}": {reason}'
    )
