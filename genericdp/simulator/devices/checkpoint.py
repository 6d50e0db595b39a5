"""The device manager's checkpoint file, `kubelet_internal_checkpoint`.

The rules of this file:

* The format is the kubelet's, except for the checksum: Go computes it from a dump of the data's memory
  layout; here it is a CRC.
* After every list of a plugin it is written to a dot file in the same directory and renamed. Everybody
  who watches the directory has to cope with that noise. There is no fsync: no plugin could tell.
"""

import base64
import json
import os
import secrets
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator.errors import DeviceError

NAME = "kubelet_internal_checkpoint"


@dataclass(frozen=True, slots=True)
class PodDevices:
    """One container's devices of one resource, by NUMA node (-1: none), with the plugin's answer."""

    pod_uid: str
    container: str
    resource: str
    ids_by_numa: Mapping[int, tuple[str, ...]]
    response: api.ContainerAllocateResponse

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(id_ for ids in self.ids_by_numa.values() for id_ in ids)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The content of the file: allocations, and the healthy devices of each resource."""

    entries: tuple[PodDevices, ...] = ()
    registered: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def render(entries: Iterable[PodDevices], registered: Mapping[str, Iterable[str]]) -> str:
    """The file's text."""
    data = {
        "PodDeviceEntries": [
            {
                "PodUID": entry.pod_uid,
                "ContainerName": entry.container,
                "ResourceName": entry.resource,
                "DeviceIDs": {str(numa): list(ids) for numa, ids in entry.ids_by_numa.items()},
                "AllocResp": base64.b64encode(entry.response.SerializeToString()).decode(),
            }
            for entry in entries
        ],
        "RegisteredDevices": {name: sorted(ids) for name, ids in sorted(registered.items())},
    }
    return json.dumps({"Data": data, "Checksum": _checksum(data)})


def parse(text: str) -> Checkpoint:
    """Parse the file's text. Damaged text counts as empty, as it does for a kubelet."""
    try:
        document = json.loads(text)
        data = document["Data"]
        if document["Checksum"] != _checksum(data):
            return Checkpoint()
        entries = tuple(
            PodDevices(
                entry["PodUID"],
                entry["ContainerName"],
                entry["ResourceName"],
                {int(numa): tuple(ids) for numa, ids in entry["DeviceIDs"].items()},
                api.ContainerAllocateResponse.FromString(base64.b64decode(entry["AllocResp"])),
            )
            for entry in data["PodDeviceEntries"]
        )
        return Checkpoint(entries, {name: tuple(ids) for name, ids in data["RegisteredDevices"].items()})
    except (ValueError, KeyError, TypeError):
        return Checkpoint()


def read(directory: Path) -> Checkpoint | None:
    """The checkpoint in a directory, or None if it has none."""
    try:
        return parse((directory / NAME).read_text())
    except FileNotFoundError:
        return None


def write(directory: Path, text: str) -> None:
    """Replace the file. A missing directory is ignored. Raises DeviceError if it cannot be written."""
    temporary = directory / f".{secrets.randbelow(10**9)}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        temporary.replace(directory / NAME)
    except FileNotFoundError:
        pass
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise DeviceError(f'failed to write checkpoint file "{NAME}": open {temporary}: {why}') from error


def _checksum(data: Any) -> int:
    return zlib.crc32(json.dumps(data, sort_keys=True).encode())
