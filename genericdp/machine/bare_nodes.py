"""The bare nodes below /dev that rules name or pods may hold, kept up to date by looking.

The rules of this file:

* A node is examined with lstat and never opened. No symlink is followed, on the way to a node either.
* Only directories that root alone can change, and of the file system of /dev itself, are looked at: neither
  /dev/shm nor the terminals in /dev/pts are devices of the machine.
* No rule can name what is not printable.
* A directory is reported to the watch before it is read, so that nothing that happens in it is missed.
* What cannot be read is not gone: what was seen of it stays.
* What is remembered is not gone either while it is in a directory that is not looked at.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType

from genericdp.core.bare_node import Sighting, device_of, judge
from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.memory.memory import bare_paths
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.node_names import NO_NAMES, NodeNames, names_of
from genericdp.errors import UnreadError
from genericdp.udev import sysfs
from genericdp.udev.bounded import Bounded
from genericdp.udev.unread import what_helps

DEV = "/dev"

#: How many directories are looked at. With a CPU for each directory, /dev/cpu has as many as anything.
DIRECTORY_LIMIT = 1000

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class BareNodes:
    """The bare nodes by their paths. Synchronous; starts empty, `resync` and `judge` fill it.

    names         the paths that rules name
    shown         paths that are looked at, too, because somebody asks for them
    on_directory  called with each directory before it is read
    """

    def __init__(self, names: NodeNames, shown: NodeNames = NO_NAMES) -> None:
        self.on_directory: Callable[[str], None] = lambda _: None
        self._names = names
        self._shown = shown
        self._remembered: Callable[[], Mapping[str, Remembered]] = dict
        self._known: Mapping[str, Remembered] | None = None
        self._known_paths: frozenset[str] = frozenset()
        self._seen = names | shown
        self._directories: frozenset[str] = frozenset()
        self._sightings: dict[str, Sighting] = {}
        self._judged: dict[str, tuple[Sighting, str]] = {}
        self._devices: dict[str, UdevDevice] = {}
        self._unread: dict[str, OSError] = {}
        # What the kernel says of numbers that udev does not know, see `sysfs.node_of`.
        self._asked: dict[DeviceNumber, str | None] = {}
        self._bounded = Bounded()

    @property
    def devices(self) -> Mapping[str, UdevDevice]:
        """The bare nodes by path, those that are refused included: a live view."""
        return MappingProxyType(self._devices)

    @property
    def directories(self) -> frozenset[str]:
        """The directories that were read."""
        return self._directories

    @property
    def unread(self) -> UnreadError | None:
        """What could not be read the last time, None if everything could."""
        paths = dict.fromkeys(self._unread, "")
        for path, why in self._unread.items():
            what = f"cannot read '{why.filename or path}': {why.strerror}"
            return UnreadError(what, hint=what_helps(why), paths=paths)
        return None

    def concern(self, path: str) -> bool:
        """Whether something that happens to this path matters."""
        return path == DEV or self._seen.hold_for(path) or self._seen.lead_into(path)

    def remember(self, devices: Callable[[], Mapping[str, Remembered]]) -> None:
        """From the next look on, look for the bare nodes of what is then remembered, too."""
        self._remembered = devices

    def want(self, names: NodeNames) -> None:
        """Look for these from now on."""
        if names != self._names:
            self._names, self._known = names, None
            self.resync()

    def resync(self) -> None:
        """Look at everything again."""
        self.look_at(DEV)

    def look_at(self, *paths: str) -> bool:
        """Look again at these paths and at what is below them; True if anything differs."""
        tops = {path for path in paths if path == DEV or os.path.dirname(path) in self._directories}
        if not tops:
            return False
        before = self._directories, self._sightings, self._unread
        elsewhere = _Outside(tops)
        room = DIRECTORY_LIMIT - sum(map(elsewhere.holds, self._directories))
        self._see_remembered()
        look = _Look(self._names, self._seen, self._known_paths, self.on_directory, room)
        for path in sorted(tops):
            if tops.isdisjoint(_above(path)):
                look.at(path)
        readable = _Outside(look.unread)

        def stays(known: str) -> bool:
            return elsewhere.holds(known) or not readable.holds(known)

        self._directories = frozenset((*look.directories, *filter(stays, self._directories)))
        kept = {known: sighting for known, sighting in self._sightings.items() if stays(known)}
        self._sightings = {**kept, **look.sightings}
        unread = {known: why for known, why in self._unread.items() if elsewhere.holds(known)}
        self._unread = {**unread, **look.unread}
        return before != (self._directories, self._sightings, self._unread)

    def judge(self, udev: Mapping[str, UdevDevice]) -> bool:
        """Take into account what udev knows now; True if a bare node changed."""
        if not self._sightings and not self._judged:
            return False
        judged = judge(self._sightings.values(), self._owners(udev), self._names.hold_for)
        after = {path: (self._sightings[path], refusal) for path, refusal in judged.items()}
        if after == self._judged:
            return False
        self._devices = {
            path: self._devices[path] if self._judged.get(path) == found else device_of(*found)
            for path, found in after.items()
        }
        self._judged = after
        return True

    def _see_remembered(self) -> None:
        known = self._remembered()
        if known is not self._known:
            self._known, self._known_paths = known, bare_paths(known)
            self._seen = self._names | self._shown | names_of(self._known_paths)

    def _owners(self, udev: Mapping[str, UdevDevice]) -> dict[DeviceNumber, str | None]:
        owners: dict[DeviceNumber, str | None] = {
            device.number: device.device_node
            for device in udev.values()
            if device.number is not None and device.device_node is not None
        }
        unowned: dict[DeviceNumber, list[str]] = {}
        for path, sighting in self._sightings.items():
            if sighting.number is not None and sighting.number not in owners:
                unowned.setdefault(sighting.number, []).append(path)
        before, self._asked = self._asked, {}
        self._bounded.plan(sysfs.node_of, unowned)
        for number, paths in unowned.items():
            # The kernel makes a node, and removes it, some time before udev says so.
            try:
                owner = self._bounded.call(sysfs.node_of, number)
            except OSError as error:
                self._unread.update(dict.fromkeys(paths, error))
                if number not in before:
                    owners[number] = None
                    continue
                owner = before[number]
            self._asked[number] = owner
            if owner is not None:
                owners[number] = owner
        return owners


class _Outside:
    """Which paths are neither one of some paths nor below one of them."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)

    def holds(self, path: str) -> bool:
        return path not in self._paths and self._paths.isdisjoint(_above(path))


def _above(path: str) -> Iterator[str]:
    """The directories above a path."""
    while path := path.rpartition("/")[0]:
        yield path


class _Look:
    """One look at a path and at what is below it: what was found there.

    directories  those that were read
    unread       what could not be read, and why
    """

    def __init__(
        self,
        names: NodeNames,
        seen: NodeNames,
        remembered: Collection[str],
        on_directory: Callable[[str], None],
        room: int,
    ) -> None:
        """`seen` are all paths that are looked at: those that rules name, and others."""
        self.directories: set[str] = set()
        self.sightings: dict[str, Sighting] = {}
        self.unread: dict[str, OSError] = {}
        self._names = names
        self._seen = seen
        self._remembered = remembered
        self._on_directory = on_directory
        self._room = room

    def at(self, path: str) -> None:
        """Look at a path and at what is below it. No rule can name what is not printable."""
        if not path.isprintable():
            return
        try:
            status = os.lstat(path)
            if not stat.S_ISDIR(status.st_mode):
                self._see(path, status)
            elif self._seen.lead_into(path):
                why = self._why_not(path, status)
                if why:
                    self._hide(path, why)
                else:
                    self._read(path)
        except OSError as error:
            if error.errno not in sysfs.GONE:
                self.unread[path] = OSError(error.errno, error.strerror)

    def _why_not(self, directory: str, status: os.stat_result) -> str:
        """Why a directory is not looked into, "" if it is."""
        if status.st_dev != os.lstat(DEV).st_dev:
            return f"'{directory}' is not on the file system of {DEV}, so genericdp does not look into it"
        if status.st_uid != 0 or status.st_mode & _OTHERS_WRITE:
            return f"others than root can change '{directory}', so genericdp does not look into it"
        if len(self.directories) >= self._room:
            most = f"at most {DIRECTORY_LIMIT} directories below {DEV}"
            return f"genericdp looks into {most}, and not into '{directory}'"
        return ""

    def _hide(self, directory: str, why: str) -> None:
        below = f"{directory}/"
        hidden = (path for path in self._remembered if path.startswith(below))
        self.sightings.update((path, Sighting(path, None, hidden=why)) for path in hidden)

    def _read(self, directory: str) -> None:
        self.directories.add(directory)
        self._on_directory(directory)
        with os.scandir(directory) as entries:
            found = [(f"{directory}/{entry.name}", entry.is_dir(follow_symlinks=False)) for entry in entries]
        for path, is_directory in sorted(found):
            if is_directory or self._seen.hold_for(path):
                self.at(path)

    def _see(self, path: str, status: os.stat_result) -> None:
        if not self._seen.hold_for(path):
            return
        kind = "c" if stat.S_ISCHR(status.st_mode) else "b" if stat.S_ISBLK(status.st_mode) else ""
        if kind:
            number = DeviceNumber(kind, os.major(status.st_rdev), os.minor(status.st_rdev))
            self.sightings[path] = Sighting(path, number, status.st_uid, status.st_gid)
        elif self._names.hold_for(path) and stat.S_ISLNK(status.st_mode):
            target = os.path.realpath(path)
            # A rule for /dev/video* means the nodes, and udev's symlinks to them have similar names.
            if not self._names.hold_for(target) and _is_node(target):
                self.sightings[path] = Sighting(path, None, target=target)


def _is_node(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
