"""What udev has reported about devices, while it is valid.

The rules of this file:

* What udev reported is valid until it reports something else or the device is gone; a wiped database retracts
  nothing.
* A database entry says nothing about the successor of the device it was written for. The kernel reuses device
  numbers at once; udev, if busy or dead, deletes the entry later or never.
* Without a running udev, nothing will ever add to what the kernel reports. A udev that starts later retracts
  it only by reporting something else.
"""

import os
from dataclasses import dataclass, replace

from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.udev import snapshot, sysfs
from genericdp.udev.bounded import Bounded

RUN = "/run/udev"

#: Which database entry it is: its inode, and when it was written.
Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a device.

    device  without its parents; None without one. `initialized` means that the database has an entry for it
    stamp   of the database entry that there was before it was read; None without one
    """

    device: UdevDevice | None
    stamp: Stamp | None = None


def look_at(sys_path: str, attributes: frozenset[str], run: str) -> Read:
    """What sysfs and the database in udev's directory `run` say about a device. Can be called in a thread.

    An entry that is written meanwhile is not taken for the one before it. Raises OSError.
    """
    number = sysfs.number_of(sys_path)
    # Which kind it is, its subsystem will say.
    stamps = {kind: _stamp(f"{run}/data/{kind}{number}") for kind in ("b", "c") if number}
    device = snapshot.look_at(sys_path, attributes)
    if device is None or device.number is None:
        return Read(device)
    if number != f"{device.number.major}:{device.number.minor}":
        return Read(None)  # another one by now, which has events of its own
    return Read(device, stamps[device.number.kind])


def _path(run: str, number: DeviceNumber) -> str:
    return f"{run}/data/{number.kind}{number.major}:{number.minor}"


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError as error:
        sysfs.unless_gone(error)
        return None
    return status.st_ino, status.st_mtime_ns


class Database:
    """Completes snapshots with what udev knows; remembers what it needs for that.

    run      udev's run directory
    bounded  reads what may hang
    """

    def __init__(self, run: str, bounded: Bounded) -> None:
        self.run = run
        self._bounded = bounded
        # The sys paths that udev has described, in its database or in a message.
        self._described: set[str] = set()
        # For which incarnation a database entry was written: its (inode, time) was first read for that one.
        self._entries: dict[DeviceNumber, tuple[Stamp, int]] = {}

    def forget(self, sys_path: str) -> None:
        """Forget a device that is gone."""
        self._described.discard(sys_path)

    def read(self, sys_path: str, attributes: frozenset[str]) -> Read:
        """What `look_at` says, possibly a while ago, but of the device that is there. Raises OSError."""
        read: Read = self._bounded.call(look_at, sys_path, attributes, self.run)
        if read.device is not None and sysfs.incarnation(sys_path) != read.device.incarnation:
            read = self._bounded.call(look_at, sys_path, attributes, self.run)
        return read

    def complete(
        self,
        read: Read,
        known: UdevDevice | None,
        message: UdevDevice | None,
        *,
        trust_the_past: bool,
    ) -> UdevDevice | None:
        """The snapshot with udev's properties, and whether it is initialized; None without a device.

        known           the last snapshot at that sys path
        message         the device as an event of udev describes it
        trust_the_past  False if udev has just declared the device removed

        Raises OSError if the database cannot be read.
        """
        found = read.device
        if found is None:
            return None
        if found.initialized and self._is_of_another(found, read.stamp):
            self._described.discard(found.sys_path)
            return self._without_udev(self._of_the_kernel(found), known if trust_the_past else None)
        if found.initialized:
            self._described.add(found.sys_path)
            return found
        if message is not None and message.number == found.number:
            self._described.add(found.sys_path)
            return _with(found, message)
        if trust_the_past and known is not None and self._still_holds(found, known):
            return _with(found, known)
        self._described.discard(found.sys_path)
        return self._without_udev(found, known if trust_the_past else None)

    def described(self, found: UdevDevice) -> UdevDevice:
        """A device that could not be read, with what the database says about it. Raises OSError."""
        if found.number is None:
            return found
        path = _path(self.run, found.number)
        stamp = _stamp(path)
        if stamp is None or self._is_of_another(found, stamp):
            return found
        properties: dict[str, str] = {}
        tags: set[str] = set()
        with open(path, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                kind, _, text = line.rstrip("\n").partition(":")
                if kind == "E":
                    name, _, value = text.partition("=")
                    properties[name] = value
                elif kind == "I":
                    properties["USEC_INITIALIZED"] = text
                elif kind == "G":
                    tags.add(text)
        return replace(found, properties={**properties, **found.properties}, tags=frozenset(tags))

    def _without_udev(self, found: UdevDevice, known: UdevDevice | None) -> UdevDevice:
        is_believed = known is not None and known.initialized and _is_the_same(found, known)
        return replace(found, initialized=True) if is_believed or not self._is_awaited(found) else found

    def _is_of_another(self, found: UdevDevice, stamp: Stamp | None) -> bool:
        if found.number is None or stamp is None:
            return False
        read, incarnation = self._entries.get(found.number, (None, 0))
        if stamp == read and incarnation != found.incarnation:
            return True
        self._entries[found.number] = (stamp, found.incarnation)
        return False

    def _still_holds(self, found: UdevDevice, known: UdevDevice) -> bool:
        return found.sys_path in self._described and _is_the_same(found, known)

    def _is_awaited(self, found: UdevDevice) -> bool:
        # udev stores nothing about a device with neither a node nor a network interface.
        matters = found.number is not None or "IFINDEX" in found.properties
        return matters and sysfs.is_there(f"{self.run}/control")

    def _of_the_kernel(self, found: UdevDevice) -> UdevDevice:
        names = self._bounded.call(sysfs.names_of_the_kernel, found.sys_path)
        return replace(
            found,
            initialized=False,
            properties={name: value for name, value in found.properties.items() if name in names},
            devlinks=(),
            tags=frozenset(),
        )


def _is_the_same(found: UdevDevice, known: UdevDevice) -> bool:
    return (found.incarnation, found.number) == (known.incarnation, known.number)


def _with(found: UdevDevice, described: UdevDevice) -> UdevDevice:
    # The kernel's own properties are always read anew; a driver that is gone must not stay.
    properties = {name: value for name, value in described.properties.items() if name != "DRIVER"}
    return replace(
        found,
        initialized=True,
        properties={**properties, **found.properties},
        devlinks=described.devlinks,
        tags=described.tags,
    )
