"""Reads the checkpoint of the kubelet's device manager, `kubelet_internal_checkpoint`.

The rules of this file:

* It is not an API. If it cannot be read, nobody knows what it says: that is an error, not an empty
  checkpoint. The same goes for a file that changes while it is read: a kubelet replaces it by rename.
* It may be long, with the answers of all plugins. While the daemon serves, it is read in pieces, and
  everything else has its turn in between. Only a regular file is read, and none that would take minutes.
* It names every container that got devices, also the init containers that PodResources leaves out (kubelet
  1.36, `podDevices.toCheckpointData`).
* It has the answers to Allocate, as the plugins gave them. One that cannot be read hides no other. What they
  name tells what pods got of a device of which nothing is remembered.
* It may name pods that have gone. The kubelet forgets these when PodResources is asked and it knows its pods
  (`UpdateAllocatedDevices`), and writes the file after each list of a plugin and each allocation.
"""

import base64
import contextlib
import os
import stat
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError

from genericdp.core.comeback.judge import Answers, Saved
from genericdp.core.inventory.shared import SHARED, is_shared_link
from genericdp.core.memory.answer import Named
from genericdp.core.rules.name import cdi_kind, env_names
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError, what_is_short
from genericdp.kubelet.api.deviceplugin import ContainerAllocateResponse
from genericdp.kubelet.deadline import Turn
from genericdp.kubelet.pieces import Pieces

NAME = "kubelet_internal_checkpoint"

#: The longest file that is read, in bytes. A node with 250 pods has less than 1 MiB; one whose pods hold all
#: 20,000 ids of a resource has 2 to 16 MiB for these.
LONGEST = 64 << 20

_HINT = "until it can be read, what only an init container may hold is not given to other pods"

#: The longest name of a file, in bytes.
_LONGEST_NAME = 255

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, DecodeError)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What containers have been given.

    given       (resource, id) of all resources
    named       what is known of the answers that name CDI devices, or links that do not follow from an id
    names_ours  whether an answer names one of our links or CDI devices, or cannot be read
    ours        the resources of which an answer names one of our links
    """

    given: frozenset[tuple[str, str]] = frozenset()
    named: tuple[Named, ...] = ()
    names_ours: bool = False
    ours: frozenset[str] = frozenset()

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(id_ for _, id_ in self.given)


async def read(directory: str, link_dir: str) -> Checkpoint:
    """The checkpoint; an empty one if there is none. Raises GenericdpError if it cannot be read."""
    path = os.path.join(directory, NAME)
    given: set[tuple[str, str]] = set()
    named: list[Named] = []
    ours: set[str] = set()
    names_ours = False

    def take(entry: Any) -> None:
        nonlocal names_ours
        given.update((_text(entry["ResourceName"]), _text(id_)) for id_ in _ids(entry["DeviceIDs"]))
        names_ours = names_ours or _names_ours(entry, link_dir)
        if entry["ResourceName"] not in ours and _names_links(entry, link_dir):
            ours.add(_text(entry["ResourceName"]))
        named.extend(_named(entry, link_dir))

    try:
        await _each(path, take)
    except FileNotFoundError:
        return Checkpoint()
    except OSError as error:
        why = error.strerror or str(error)
        raise GenericdpError(f"cannot read '{path}': {why}", hint=what_is_short(error) or _HINT) from error
    except _UNREADABLE as error:
        raise GenericdpError(f"cannot read '{path}': it has another format", hint=_HINT) from error
    return Checkpoint(frozenset(given), tuple(named), names_ours, frozenset(ours))


async def answers_in(directory: str, resources: Collection[str]) -> Answers:
    """What each container gets again of these resources, as long as its pod exists: the saved answers."""
    found: dict[tuple[str, str, str], Saved] = {}

    def take(entry: Any) -> None:
        with contextlib.suppress(*_UNREADABLE):
            if entry["ResourceName"] in resources:
                answer = ContainerAllocateResponse.FromString(_answer(entry))
                found[entry["PodUID"], entry["ContainerName"], entry["ResourceName"]] = Saved(
                    {device.container_path: device.host_path for device in answer.devices},
                    tuple(device.name for device in answer.cdi_devices),
                    tuple(_ids(entry["DeviceIDs"])),
                )

    try:
        await _each(os.path.join(directory, NAME), take)
    except _UNREADABLE:
        return {}
    return found


def names_holders(settings: Settings) -> bool:
    """Whether an answer names one of our links or CDI devices, or cannot be read. Reads without a pause."""
    path = os.path.join(settings.kubelet_dir, NAME)
    try:
        with contextlib.closing(_steps(path)) as steps:
            return any(_names_ours(entry, settings.link_dir) for entries in steps for entry in entries)
    except FileNotFoundError:
        return False
    except _UNREADABLE:
        return True


def _names_ours(entry: Any, link_dir: str) -> bool:
    try:
        resource, answer = entry["ResourceName"], _answer(entry)
        # Other plugins name CDI devices of the kind of their resource, too, but not the env that ours keep.
        marks = (f"{cdi_kind(resource)}=", env_names(resource)[1])
        return f"{link_dir}/".encode() in answer or all(mark.encode() in answer for mark in marks)
    except _UNREADABLE:
        return True


def _names_links(entry: Any, link_dir: str) -> bool:
    try:
        return f"{link_dir}/".encode() in _answer(entry)
    except _UNREADABLE:
        return False


def _named(entry: Any, link_dir: str) -> Iterator[Named]:
    """What is known of an answer that names a CDI device of the kind of the resource, or not only ids."""
    with contextlib.suppress(*_UNREADABLE):
        resource, answer = entry["ResourceName"], _answer(entry)
        by_cdi, by_links = f"{cdi_kind(resource)}=".encode() in answer, _may_have_places(answer, link_dir)
        # Few answers do, and decoding each of them takes longer.
        if by_cdi or by_links:
            found = ContainerAllocateResponse.FromString(answer)
            # A rule may name CDI devices of that kind, too, beside what it gives by devices.
            is_all = by_cdi and not found.devices and not found.mounts
            names = tuple(each.name for each in found.cdi_devices) if is_all else ()
            links = _links(found, link_dir) if by_links else ()
            if names or links:
                yield Named(resource, frozenset(_ids(entry["DeviceIDs"])), names, links)


def _may_have_places(answer: bytes, link_dir: str) -> bool:
    """Whether an answer may name other links than those that are called like a device."""
    return f"{link_dir}/".encode() in answer and (
        b"@" in answer or f"{link_dir}/{SHARED}+".encode() in answer
    )


def _links(answer: ContainerAllocateResponse, link_dir: str) -> tuple[str, ...]:
    """The names of its links; () if all of them are called like a device."""
    above = f"{link_dir}/"
    paths = (device.host_path for device in answer.devices)
    names = dict.fromkeys(path.removeprefix(above) for path in paths if path.startswith(above))
    links = tuple(name for name in names if "/" not in name and len(name) <= _LONGEST_NAME)
    return links if any("@" in name or is_shared_link(name) for name in links) else ()


async def _each(path: str, take: Callable[[Any], None]) -> None:
    """Take each entry; everything else has its turn in between. Raises one of _UNREADABLE."""
    turn = Turn()
    with contextlib.closing(_steps(path)) as steps:
        for entries in steps:
            for entry in entries:
                take(entry)
            await turn.end_if_long()


def _steps(path: str) -> Generator[Sequence[Any], None, None]:
    """The entries, one at a time, and none at a time while the rest is read. Raises one of _UNREADABLE."""
    with _opened(path) as file:
        document = Pieces(file)
        has_entries = False
        for key in document.members():
            if key == "Data":
                has_entries = yield from _data(document)
            else:
                document.value()
        document.end()
        if not has_entries:
            raise KeyError("PodDeviceEntries")


def _data(document: Pieces) -> Generator[Sequence[Any], None, bool]:
    """The steps of `Data`; returns whether it has entries, of which there may be none."""
    has_entries = False
    for key in document.members():
        match key:
            case "PodDeviceEntries":
                has_entries = True
                for _ in document.elements():
                    yield (document.value(),)
            case "RegisteredDevices":
                for _ in document.members():
                    document.value()
                    yield ()
            case _:
                document.value()
    return has_entries


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """A regular file, to be read whole. Raises OSError, also if it has changed meanwhile."""
    with open(path, "rb", opener=_open) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST:
            raise OSError(f"it is not a regular file of at most {LONGEST} bytes")
        yield file
        now = os.fstat(file.fileno())
        if (now.st_size, now.st_mtime_ns) != (found.st_size, found.st_mtime_ns):
            raise OSError("it changed while it was read")


def _open(path: str, flags: int) -> int:
    # Who opens a pipe without O_NONBLOCK waits for a writer.
    return os.open(path, flags | os.O_NONBLOCK)


def _answer(entry: Any) -> bytes:
    return base64.b64decode(entry["AllocResp"])


def _ids(by_numa_node: Any) -> list[str]:
    """The ids of an entry: NUMA node -> ids (kubelet 1.20 and later), or a list of ids."""
    lists = by_numa_node.values() if isinstance(by_numa_node, dict) else (by_numa_node,)
    return [id_ for ids in lists for id_ in ids]


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError
    return name
