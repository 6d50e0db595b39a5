"""The stable links: what the container runtime finds under the host_path that the kubelet saved.

The rules of this file:

* A link points at a device node or, while its device is absent, at itself. Then both containerd and
  CRI-O refuse to create a container; with a missing or dangling link, CRI-O silently leaves the device
  out.
* A link changes by rename, so it is never missing, unless the file system has no room for a second link. Then
  the old one is removed first.
* A link that another process pointed at itself is dead: the node has gone, says udev's rule of the package
  (`packaging/udev`). It is left alone until its device was read again.
* A link of an earlier process that is not wanted now may be named in an answer that the kubelet saved:
  it is pointed at itself, not removed. Links to anything but devices are left alone.
* No answer names a link that only tells which node a pod holds (`HELD`), so it goes when it is not wanted.
* A shortage of descriptors keeps no link from changing: the directory stays open after the first time.
* Only genericdp can write the directory (`trust`). What the administrator puts there nevertheless never
  keeps a link from changing, unless it has the name of that link. In a sticky directory, a link of another
  user does not count: its owner could change it.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from genericdp import log
from genericdp.core.memory.held import HELD
from genericdp.errors import SHORTAGES, GenericdpError, what_is_short
from genericdp.files.kept_directory import MODE, KeptDirectory, is_abandoned, make_for_all
from genericdp.files.trust import UntrustedError

#: The name of a link before it is renamed. It ends in a random number, because a name that can be foreseen
#: can be taken. Ids do not begin with a dot, so no stable link has such a name.
_NEW = re.compile(r"\.new(?:-[0-9a-f]{16})?")

#: The same of the program that udev's rule runs, with its process id.
_NEW_OF_UDEV = re.compile(r"\.gone-[0-9]+")

#: The mode that an earlier release gave the directory, under the umask of its unit.
_MODE_BEFORE = 0o700

#: Errors of a file system, or of the kernel's memory, that has no room for another symlink.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENOMEM})

_log = log.get(__name__)


class Changed(NamedTuple):
    """The links that another process has changed: to point at themselves, or in any other way."""

    dead: frozenset[str]
    others: frozenset[str]


class Links:
    """The link directory. All methods are synchronous and fast: the directory is in memory.

    dead  the links that the last `apply` left alone because another process pointed them at themselves
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.dead: frozenset[str] = frozenset()
        self._ours: set[str] = set()
        self._made: dict[str, str] = {}
        # The inode numbers of the links that were not dead at the last look.
        self._inodes: dict[str, int] = {}
        self._kept = KeptDirectory(directory)

    def close(self) -> None:
        """Close the directory. The next `apply` opens it again."""
        self._kept.close()

    def apply(self, wanted: Mapping[str, str | None]) -> dict[str, str]:
        """Make the links: name -> path of the device node, or None for an absent device.

        Returns the links that could not be made, with the reason. Raises GenericdpError when the
        directory cannot be used.
        """
        failed: dict[str, str] = {}
        dead: set[str] = set()
        directory = self._open()
        try:
            present = self._links_in(directory, wanted)
        except OSError as error:
            raise _unusable(self.directory, error) from error
        for name in sorted({*wanted, *present}):
            target = wanted.get(name) or name
            try:
                if name not in wanted and (name in self._ours or _only_tells(name, present[name])):
                    _remove(directory, name)
                elif present.get(name) == name != target == self._made.get(name):
                    dead.add(name)
                elif present.get(name) != target and (name in wanted or _is_ours(present[name])):
                    self._inodes.pop(name, None)
                    _point(directory, name, target)
            except OSError as error:
                verb = "create" if name in wanted else "remove"
                failed[name] = f"cannot {verb} the link '{self.directory}/{name}': {error.strerror}"
                if wanted.get(name) is None:
                    _log.warning(
                        "the link of an absent device cannot be changed and may lead to another device",
                        link=f"{self.directory}/{name}",
                        why=error.strerror,
                    )
        self.dead = frozenset(dead)
        self._ours = set(wanted)
        self._made = {name: path or name for name, path in wanted.items() if name not in failed}
        return failed

    def changed(self, names: Collection[str] = ()) -> Changed:
        """Those of these links, or of all, that another process has changed. Each is looked at once."""
        dead: set[str] = set()
        others: set[str] = set()
        for name in names or self._made:
            target = self._made.get(name)
            found = None if target is None else _target(f"{self.directory}/{name}")
            if found != target:
                (dead if found == name else others).add(name)
        return Changed(frozenset(dead), frozenset(others))

    def dead_now(self) -> frozenset[str]:
        """The links that another process has pointed at themselves since they were made.

        It does so by rename, while the old link exists. So a link with the inode number of the last look is
        not read again, unless `apply` has changed it meanwhile: a disk gives a free number to the next file.
        Without space for a second link, it deletes the old one first. The new link can then reuse its inode
        number, in which case the change goes unnoticed until the uevent arrives.
        """
        try:
            with os.scandir(self.directory) as entries:
                inodes = {entry.name: entry.inode() for entry in entries}
        except OSError:
            return self.changed().dead
        replaced = {name for name in self._made if self._inodes.get(name) != inodes.get(name)}
        suspects = replaced | self.dead
        dead = self.changed(suspects).dead if suspects else frozenset[str]()
        self._inodes = {name: inode for name, inode in inodes.items() if name not in dead}
        return dead

    def revive(self, names: Collection[str]) -> None:
        """Let the next `apply` make these links again: their devices were read again."""
        for name in names:
            self._made.pop(name, None)

    def _open(self) -> int:
        """The directory as a file descriptor, so that nobody can replace it meanwhile."""
        try:
            make_for_all(self.directory)
            if not stat.S_ISDIR(os.lstat(self.directory).st_mode):  # a symlink is refused, whoever owns it
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            directory = self._kept.descriptor()
            if stat.S_IMODE(os.fstat(directory).st_mode) == _MODE_BEFORE:
                os.fchmod(directory, MODE)
        except UntrustedError as error:
            message = f"cannot use the link directory '{self.directory}': {error}"
            raise GenericdpError(message, hint=error.hint) from error
        except OSError as error:
            raise _unusable(self.directory, error) from error
        return directory

    def _links_in(self, directory: int, wanted: Collection[str]) -> dict[str, str]:
        """The links in the directory: name -> target. Anything else is left alone.

        If it cannot be listed because of a shortage, these are the wanted links and those of before.
        """
        try:
            with os.scandir(directory) as entries:
                names = [each.name for each in entries if each.is_symlink() or _is_temporary(each.name)]
        except OSError as error:
            if error.errno not in SHORTAGES:
                raise
            names = [*wanted, *self._ours.difference(wanted)]
        targets: dict[str, str] = {}
        is_sticky = bool(os.fstat(directory).st_mode & stat.S_ISVTX)
        for name in names:
            if _NEW_OF_UDEV.fullmatch(name) and not is_abandoned(directory, name):
                continue
            if _is_temporary(name):
                self._clear_away(directory, name)
            else:
                with suppress(OSError):  # it is gone, or not a symlink any more
                    is_foreign = is_sticky and _is_foreign(name, directory)
                    targets[name] = "" if is_foreign else os.readlink(name, dir_fd=directory)
        return targets

    def _clear_away(self, directory: int, name: str) -> None:
        """Remove what a killed process left half done."""
        try:
            _remove(directory, name)
        except OSError as error:
            _log.warning(
                "something in the link directory is not of genericdp and cannot be removed",
                path=f"{self.directory}/{name}",
                why=error.strerror,
                hint="nothing depends on it; remove it",
            )


def led(directory: str) -> dict[str, str]:
    """Where the links lead that an earlier process left: link -> path of a device node.

    Those that only tell this of another link (`HELD`) are among them.
    """
    found: dict[str, str] = {}
    with suppress(OSError), os.scandir(directory) as entries:
        for name in sorted(entry.name for entry in entries):
            target = _target(f"{directory}/{name}")
            if target is not None and _is_ours(target) and not name.startswith("."):
                with suppress(OSError):
                    if not _is_foreign(f"{directory}/{name}"):
                        found[name] = target
    return found


def _is_foreign(name: str, directory: int | None = None) -> bool:
    """Whether somebody else can change a link in a sticky directory: its owner. Raises OSError."""
    return os.lstat(name, dir_fd=directory).st_uid not in (0, os.geteuid())


def _unusable(directory: str, error: OSError) -> GenericdpError:
    return GenericdpError(
        f"cannot use the link directory '{directory}': {error.strerror}",
        hint=what_is_short(error)
        or "it must be a directory, not a symlink, that only genericdp uses and that it can write to; "
        "see 'link_dir' in genericdp.toml",
    )


def _is_temporary(name: str) -> bool:
    """Whether a link has such a name only until it is renamed."""
    return (_NEW.fullmatch(name) or _NEW_OF_UDEV.fullmatch(name)) is not None


def _only_tells(name: str, target: str) -> bool:
    """Whether it is one of genericdp's that no answer names."""
    return name.startswith(HELD) and (target == name or _is_ours(target))


def _is_ours(target: str) -> bool:
    """Whether a link with this target may be one of genericdp's."""
    return target.startswith("/dev/")


def _target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _point(directory: int, name: str, target: str) -> None:
    new = f".new-{os.urandom(8).hex()}"
    try:
        os.symlink(target, new, dir_fd=directory)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        # What a runtime does without the link is better than a link to another device.
        _remove(directory, name)
        os.symlink(target, name, dir_fd=directory)
        return
    try:
        os.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        with suppress(OSError):
            _remove(directory, new)
        raise


def _remove(directory: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
