"""CDI spec files as the CDI library reads them (tags.cncf.io/container-device-interface 1.1).

The rules of this file:

* A file in which anything is wrong is no file: an unknown or repeated field, a value of another type, a
  version that is unknown or too low for a field, a name that breaks the grammar, no device, an empty device.
* Of two files in one directory that have the same device, neither counts, and no third one elsewhere.
  Otherwise the later directory wins.
* Files are JSON. The real library also reads YAML.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Versions of the specification: the number of a version counts up with each.
VERSIONS = ("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")

_KIND_PART = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]")
_DEVICE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")

_SPEC = {"cdiVersion": str, "kind": str, "annotations": dict, "devices": list, "containerEdits": dict}
_DEVICE = {"name": str, "annotations": dict, "containerEdits": dict}
_EDITS = {
    "env": list,
    "deviceNodes": list,
    "netDevices": list,
    "hooks": list,
    "mounts": list,
    "intelRdt": dict,
    "additionalGids": list,
}
_NODE = {
    "path": str,
    "hostPath": str,
    "type": str,
    "major": int,
    "minor": int,
    "fileMode": int,
    "permissions": str,
    "uid": int,
    "gid": int,
}
_MOUNT = {"hostPath": str, "containerPath": str, "options": list, "type": str}


class BadSpecError(ValueError):
    """The library does not load the file."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec file. `edits` are for every container that has one of its devices."""

    path: str
    kind: str
    devices: Mapping[str, Mapping[str, Any]]
    edits: Mapping[str, Any]


#: Qualified name -> the spec file that it is in, and the edits of the device.
Known = Mapping[str, tuple[Spec, Mapping[str, Any]]]


def scan(directories: Iterable[str], newest: str = VERSIONS[-1]) -> Known:
    """The devices in these directories, of which later ones win. `newest`: the version of the library."""
    known: dict[str, tuple[int, Spec, Mapping[str, Any]]] = {}
    conflicts: set[str] = set()
    for priority, directory in enumerate(directories):
        for spec in _specs(directory, newest):
            for device, edits in spec.devices.items():
                name = f"{spec.kind}={device}"
                if name in known and known[name][0] == priority:
                    conflicts.add(name)
                else:
                    known[name] = priority, spec, edits
    return {name: (spec, edits) for name, (_, spec, edits) in known.items() if name not in conflicts}


def _specs(directory: str, newest: str) -> Iterator[Spec]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for name in names:
        path = os.path.join(directory, name)
        if name.endswith((".json", ".yaml")) and not (os.path.isdir(path) and not os.path.islink(path)):
            try:
                with open(path, encoding="utf-8") as file:
                    yield read(file.read(), path, newest)
            except (OSError, ValueError):
                continue


def read(text: str, path: str = "", newest: str = VERSIONS[-1]) -> Spec:
    """A spec file. Raises BadSpecError, ValueError."""
    document = _checked(json.loads(text, object_pairs_hook=_once), _SPEC, "the spec")
    kind = document.get("kind", "")
    vendor, _, class_ = kind.partition("/")
    if not _KIND_PART.fullmatch(vendor) or not _KIND_PART.fullmatch(class_):
        raise BadSpecError(f"invalid kind {kind!r}")
    edits = _edits(document.get("containerEdits", {}))
    devices: dict[str, Mapping[str, Any]] = {}
    for entry in document.get("devices", ()):
        device = _checked(entry, _DEVICE, "a device")
        name = device.get("name", "")
        if not _DEVICE_NAME.fullmatch(name):
            raise BadSpecError(f"invalid device name {name!r}")
        if name in devices:
            raise BadSpecError(f"invalid spec, multiple device {name!r}")
        devices[name] = _edits(device.get("containerEdits", {}))
        if not any(devices[name].values()):
            raise BadSpecError("invalid device, empty device edits")
    if not devices:
        raise BadSpecError("invalid spec, no devices")
    _check_version(document, [edits, *devices.values()], newest)
    return Spec(path, kind, devices, edits)


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise BadSpecError("a key is repeated")
    return table


def _checked(value: Any, fields: Mapping[str, type], what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadSpecError(f"{what} is not an object")
    for key, each in value.items():
        if key not in fields:
            raise BadSpecError(f"unknown field {key!r} in {what}")
        if type(each) is not fields[key]:
            raise BadSpecError(f"cannot unmarshal {key!r} of {what}")
    return value


def _edits(value: Any) -> dict[str, Any]:
    edits = _checked(value, _EDITS, "containerEdits")
    for env in edits.get("env", ()):
        if not isinstance(env, str) or env.find("=") < 1:
            raise BadSpecError(f"invalid environment variable {env!r}")
    for node in edits.get("deviceNodes", ()):
        _check_node(_checked(node, _NODE, "a device node"))
    for mount in edits.get("mounts", ()):
        _checked(mount, _MOUNT, "a mount")
        if not mount.get("hostPath") or not mount.get("containerPath"):
            raise BadSpecError("invalid mount, empty path")
    for gid in edits.get("additionalGids", ()):
        if type(gid) is not int or not 0 <= gid < 1 << 32:
            raise BadSpecError(f"cannot unmarshal the group {gid!r}")
    return edits


def _check_node(node: Mapping[str, Any]) -> None:
    if not node.get("path"):
        raise BadSpecError("invalid (empty) device path")
    if node.get("type", "") not in ("", "b", "c", "u", "p"):
        raise BadSpecError(f"invalid type {node['type']!r}")
    permissions = node.get("permissions", "")
    if permissions != "none" and permissions.strip("rwm"):
        raise BadSpecError(f"invalid permissions {permissions!r}")


def _check_version(document: Mapping[str, Any], edits: Sequence[Mapping[str, Any]], newest: str) -> None:
    version = document.get("cdiVersion", "").removeprefix("v")
    known = VERSIONS[: VERSIONS.index(newest) + 1]
    if version not in known:
        raise BadSpecError(f"invalid version {version!r}")
    needed = lowest_version(document, edits)
    if known.index(version) < VERSIONS.index(needed):
        raise BadSpecError(f"the spec version must be at least v{needed}")


def lowest_version(document: Mapping[str, Any], edits: Sequence[Mapping[str, Any]]) -> str:
    """The lowest version that has the fields of a spec with these edits (`MinimumRequiredVersion`)."""
    devices = document.get("devices", ())
    if any("netDevices" in each for each in edits):
        return "1.1.0"
    if any(each.get("additionalGids") or "intelRdt" in each for each in edits):
        return "0.7.0"
    if (
        document.get("annotations")
        or any(each.get("annotations") for each in devices)
        or "." in document["kind"].partition("/")[2]
    ):
        return "0.6.0"
    nodes = [node for each in edits for node in each.get("deviceNodes", ())]
    if any(node.get("hostPath") for node in nodes) or any(each["name"][0].isdigit() for each in devices):
        return "0.5.0"
    mounts = [mount for each in edits for mount in each.get("mounts", ())]
    return "0.4.0" if any(mount.get("type") for mount in mounts) else "0.3.0"
