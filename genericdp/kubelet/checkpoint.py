"""Reads the checkpoint of the kubelet's device manager, `kubelet_internal_checkpoint`.

The rules of this file:

* It is not an API. If it cannot be read, nobody knows what it says: that is an error, not an empty
  checkpoint.
* It is read while nothing else is done. So only a regular file is read, and none that would take seconds.
* It names every container that got devices, also the init containers that PodResources leaves out (kubelet
  1.36, `podDevices.toCheckpointData`).
* It has the answers to Allocate, as the plugins gave them. One that cannot be read hides no other.
* It may name pods that have gone. The kubelet forgets these when PodResources is asked and it knows its pods
  (`UpdateAllocatedDevices`), and writes the file after each list of a plugin and each allocation.
"""

import base64
import contextlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from genericdp.core.comeback.judge import Answers, Saved
from genericdp.core.memory.held import Named
from genericdp.core.rules.name import cdi_kind
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError, what_is_short
from genericdp.kubelet.api.deviceplugin import ContainerAllocateResponse

NAME = "kubelet_internal_checkpoint"

#: The longest file that is read, in bytes. A node with 20,000 pods that hold a device each has 8 MB.
LONGEST = 16 << 20

_HINT = "until it can be read, what only an init container may hold is not given to other pods"

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, DecodeError)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What containers have been given.

    given  (resource, id) of all resources
    named  what is known of the containers that were answered by CDI
    """

    given: frozenset[tuple[str, str]] = frozenset()
    named: tuple[Named, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(id_ for _, id_ in self.given)


def read(directory: str) -> Checkpoint:
    """The checkpoint; an empty one if there is none. Raises GenericdpError if it cannot be read."""
    path = os.path.join(directory, NAME)
    try:
        entries = list(_entries(directory))
        given = frozenset(
            (entry["ResourceName"], id_) for entry in entries for id_ in _ids(entry["DeviceIDs"])
        )
        if not all(isinstance(text, str) for pair in given for text in pair):
            raise TypeError
        return Checkpoint(given, tuple(_named(entries)))
    except FileNotFoundError:
        return Checkpoint()
    except OSError as error:
        why = error.strerror or str(error)
        raise GenericdpError(f"cannot read '{path}': {why}", hint=what_is_short(error) or _HINT) from error
    except _UNREADABLE as error:
        raise GenericdpError(f"cannot read '{path}': it has another format", hint=_HINT) from error


def answers_in(directory: str) -> Answers:
    """What each container gets again, as long as its pod exists: the saved answers to Allocate."""
    found: dict[tuple[str, str, str], Saved] = {}
    try:
        entries = list(_entries(directory))
    except _UNREADABLE:
        return {}
    for entry in entries:
        with contextlib.suppress(*_UNREADABLE):
            answer = ContainerAllocateResponse.FromString(base64.b64decode(entry["AllocResp"]))
            found[entry["PodUID"], entry["ContainerName"], entry["ResourceName"]] = Saved(
                {device.container_path: device.host_path for device in answer.devices},
                tuple(device.name for device in answer.cdi_devices),
            )
    return found


def names_holders(settings: Settings) -> bool:
    """Whether a saved answer names one of our links or CDI devices; also True if that cannot be read."""
    try:
        entries = list(_entries(settings.kubelet_dir))
    except FileNotFoundError:
        return False
    except _UNREADABLE:
        return True
    return any(_is_of_ours(entry, settings.link_dir) for entry in entries)


def _is_of_ours(entry: Any, link_dir: str) -> bool:
    try:
        answer = base64.b64decode(entry["AllocResp"])
        kind = cdi_kind(entry["ResourceName"])
        return f"{link_dir}/".encode() in answer or f"{kind}=".encode() in answer
    except _UNREADABLE:
        return True


def _named(entries: Iterable[Any]) -> Iterator[Named]:
    """What is known of containers whose answer names a CDI device of the kind of the resource."""
    for entry in entries:
        with contextlib.suppress(*_UNREADABLE):
            resource, answer = entry["ResourceName"], base64.b64decode(entry["AllocResp"])
            # Few answers do, and decoding each of them takes longer.
            if f"{cdi_kind(resource)}=".encode() in answer:
                found = ContainerAllocateResponse.FromString(answer)
                # A rule may name CDI devices of that kind, too, beside what it gives by devices.
                if not found.devices and not found.mounts:
                    names = tuple(each.name for each in found.cdi_devices)
                    yield Named(resource, frozenset(_ids(entry["DeviceIDs"])), names)


def _entries(directory: str) -> Iterable[Any]:
    return json.loads(_read(os.path.join(directory, NAME)))["Data"]["PodDeviceEntries"] or ()


def _read(path: str) -> bytes:
    """The content of a regular file. Raises OSError."""
    with open(path, "rb", opener=_open) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST:
            raise OSError(f"it is not a regular file of at most {LONGEST} bytes")
        return file.read()


def _open(path: str, flags: int) -> int:
    # Who opens a pipe without O_NONBLOCK waits for a writer.
    return os.open(path, flags | os.O_NONBLOCK)


def _ids(by_numa_node: Any) -> list[str]:
    """The ids of an entry: NUMA node -> ids (kubelet 1.20 and later), or a list of ids."""
    lists = by_numa_node.values() if isinstance(by_numa_node, dict) else (by_numa_node,)
    return [id_ for ids in lists for id_ in ids]
