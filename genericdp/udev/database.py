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
from dataclasses import replace

from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.udev import sysfs
from genericdp.udev.bounded import Bounded

RUN = "/run/udev"


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
        self._entries: dict[DeviceNumber, tuple[tuple[int, int], int]] = {}

    def forget(self, sys_path: str) -> None:
        """Forget a device that is gone."""
        self._described.discard(sys_path)

    def complete(
        self,
        found: UdevDevice,
        known: UdevDevice | None,
        message: UdevDevice | None,
        *,
        trust_the_past: bool,
    ) -> UdevDevice:
        """The snapshot with udev's properties, and whether it is initialized.

        found           read just now; `initialized` means that the database has an entry for it
        known           the last snapshot at that sys path
        message         the device as an event of udev describes it
        trust_the_past  False if udev has just declared the device removed

        Raises OSError if the database cannot be read.
        """
        if found.initialized and self._is_of_another(found):
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

    def _without_udev(self, found: UdevDevice, known: UdevDevice | None) -> UdevDevice:
        is_believed = known is not None and known.initialized and _is_the_same(found, known)
        return replace(found, initialized=True) if is_believed or not self._is_awaited(found) else found

    def _is_of_another(self, found: UdevDevice) -> bool:
        if found.number is None:
            return False
        number = found.number
        try:
            status = os.stat(f"{self.run}/data/{number.kind}{number.major}:{number.minor}")
        except OSError as error:
            if error.errno not in sysfs.GONE:
                raise
            return False
        entry = (status.st_ino, status.st_mtime_ns)
        read, incarnation = self._entries.get(number, (None, 0))
        if entry == read and incarnation != found.incarnation:
            return True
        self._entries[number] = (entry, found.incarnation)
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
