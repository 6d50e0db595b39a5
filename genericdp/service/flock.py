"""The lock in a directory: one genericdp holds it, and the kernel releases it when that process ends.

The rules of this file:

* Only who runs genericdp can open the file. One that others may open, and have locked, is replaced.
* A lock counts while its file has its name: one whose file was removed is taken again under the name.
* During a shortage of descriptors or memory nothing is decided.
* The lock file names its holder for people; nothing is decided by that.
"""

import errno
import fcntl
import os
import stat
from contextlib import suppress
from typing import Self

from genericdp.errors import SHORTAGES, GenericdpError, what_is_short
from genericdp.files.kept_directory import make_for_all

#: The name of the lock file. No link has this name, as ids do not begin with a dot.
NAME = ".lock"

#: Only the owner may open the file, because anyone who can read it can lock it.
_MODE = 0o600

#: The lock file was written by another process, so only so many bytes of it are read.
_HOLDER_LIMIT = 200

#: How often to take a lock whose file loses its name, or to replace one. Some file systems cannot tell one
#: file from another, or have no modes.
_TRIES = 10

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

#: Errors that prove that the file lost its name. After any other error, it may have it.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})


class UntoldError(GenericdpError):
    """A shortage keeps the kernel from telling who holds a lock."""


class NodeLock:
    """The lock in a directory. Use as `with NodeLock(directory) as lock:`."""

    def __init__(self, directory: str) -> None:
        """Raises GenericdpError if the directory cannot be locked."""
        self.path = os.path.join(directory, NAME)
        self._file = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def taken(self) -> bool:
        """Take the lock if it is free; whether this process holds it now.

        Raises GenericdpError if its file lost its name and cannot be made again, or if nobody can tell.
        """
        for _ in range(_TRIES):
            if _is_ours_alone(os.fstat(self._file)):
                if not self._locks():
                    return False
                if self._has_its_name():
                    break
            before, self._file = self._file, self._open()
            os.close(before)
        who = f"process {os.getpid()} on {os.uname().nodename}\n"
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, who.encode(), 0)
        return True

    def is_file_of(self, other: Self) -> bool:
        """Whether both have opened the same file."""
        return os.path.samestat(os.fstat(self._file), os.fstat(other._file))

    def kept(self) -> bool:
        """Make the file again if it lost its name; whether this process, which took the lock, holds it still.

        The file that was locked stays so until the new one is. Raises GenericdpError if it cannot be made, or
        if nobody can tell.
        """
        if self._has_its_name():
            return True
        before, self._file = self._file, self._open()
        kept = False
        try:
            kept = self.taken()
        finally:
            if not kept:
                before, self._file = self._file, before
            os.close(before)
        return kept

    def _open(self) -> int:
        try:
            make_for_all(os.path.dirname(self.path))
            for _ in range(_TRIES):
                file = os.open(self.path, _FLAGS, _MODE)
                if _is_ours_alone(os.fstat(file)):
                    return file
                os.close(file)
                with suppress(FileNotFoundError):  # another process has just replaced it
                    if not _is_ours_alone(os.lstat(self.path)):
                        os.unlink(self.path)
            raise PermissionError(errno.EPERM, "other users may open it")
        except OSError as error:
            kind = UntoldError if error.errno in SHORTAGES else GenericdpError
            raise kind(
                f"cannot lock '{self.path}': {error.strerror}",
                hint=what_is_short(error)
                or "without the lock, a second genericdp on this node would not be noticed",
            ) from error

    def _locks(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in SHORTAGES:
                raise self._untold(error) from error
            # Without locks on this file system, nobody can hold it.
        return True

    def _has_its_name(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), os.lstat(self.path))
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            raise self._untold(error) from error

    def _untold(self, error: OSError) -> GenericdpError:
        kind = UntoldError if error.errno in SHORTAGES else GenericdpError
        return kind(
            f"cannot tell who holds the lock '{self.path}': {error.strerror}", hint=what_is_short(error)
        )

    @property
    def holder(self) -> str:
        """Who holds it, in words."""
        try:
            holder = os.pread(self._file, _HOLDER_LIMIT, 0).decode("utf-8", "replace").strip()
        except OSError:
            holder = ""
        return holder or "another process"


def _is_ours_alone(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
