"""The lock in a directory that others share: one genericdp serves a kubelet, and one writes CDI spec files.

It distinguishes another genericdp from other programs: those may listen on a socket that is named like one
of genericdp, but they do not hold the lock.

The rules of this file:

* What is locked (flock(2)) is a directory of our own that nobody else can open: whoever can read a directory
  can lock it, and everybody can read the one that is shared. One that others may open, and have locked, is
  replaced.
* The process that serves recreates a lock that was removed, opened to others, or lost with the shared
  directory. A waiting process gives it time: while the old lock is still held, its holder is alive.
* The kernel releases the lock when the process ends, however it ends, and it works between containers that
  share the directory. A process that is killed leaves the lock's directory, which is empty, behind.
* It is a directory because a kubelet that starts removes sockets, and an older one all files, from its own.
* The lock counts while its directory has its name and its mode. Who finds that another one has it serves no
  more.
* Anything else with that name stays, unless it is an empty directory. Files inside our own directory do not
  affect the lock.
* Where there can be no lock, each genericdp acts as if it were alone, and a warning says why. A file system
  without locks, such as NFS without its lock service, answers ENOLCK. For want of memory, Linux answers
  ENOMEM, whatever flock(2) says.
* A shortage of descriptors or memory does not show whether another genericdp is running. On a full disk,
  the lock cannot be made; `waits` says that `taken` should be tried again later.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress

from genericdp import log
from genericdp.errors import SHORTAGES, what_is_short

#: The name of the lock's directory in that of the kubelet.
NAME = ".genericdp-lock"

#: What an operator gives up where there is no lock.
_UNNOTICED = "without the lock, another genericdp that uses this directory is not noticed"

#: Why a directory cannot be made or replaced that somebody else has put something in the way of.
_IN_THE_WAY = (errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY)

_MAKE_WAY = "remove what has this name: genericdp makes the directory itself"

#: Only who runs genericdp can open it.
_MODE = 0o700

#: How often to make a directory that others replace.
_TRIES = 10

#: How long the one that serves may take to make the lock again, in seconds. It hears at once that it has to.
PATIENCE_S = 2.0

_log = log.get(__name__)


class DirectoryLock:
    """The lock in a directory, which need not exist yet.

    name   that of the lock's own directory
    waits  whether a shortage or a read-only file system kept it from being locked: call `taken` again,
           because no event reports the end of that
    """

    def __init__(
        self, directory: str, now: Callable[[], float] = time.monotonic, *, name: str = NAME
    ) -> None:
        self.path = os.path.join(directory, name)
        self._now = now
        # The directory that was found last, whether this process has locked it, and until when another one
        # that has may make it again.
        self._found: int | None = None
        self._is_mine = False
        self._until: float | None = None
        self._said = ""
        self.waits = False

    def is_held(self) -> bool:
        """Whether this process has taken the lock that has the name now, and nobody else can open it."""
        return self._is_mine and self._counts()

    def taken(self) -> bool:
        """Take the lock if it is free. Returns whether no other process holds it.

        Raises OSError if there are too few descriptors, or too little memory, to tell.
        """
        self.waits = False
        try:
            for _ in range(_TRIES):
                if self._found is None:
                    self._found = self._open()
                self._is_mine = self._is_mine or self._locks(self._found)
                if self._counts():
                    self._until = None
                    return self._is_mine
                if not self._is_mine and self._may_be_made_again():
                    return False
                self._make_again(self._found)
            raise PermissionError(errno.EPERM, "other users may open it")
        except OSError as error:
            if not self._is_mine:
                self.release()
            if error.errno in SHORTAGES:
                raise
            self._see(error)
        return True

    def close(self) -> None:
        """Release the lock, if it is held, and leave nothing behind."""
        if self._is_mine and self._has_the_name():
            with suppress(OSError):
                os.rmdir(self.path)
        self.release()

    def release(self) -> None:
        """Release the lock, if it is held."""
        found, self._found, self._is_mine, self._until = self._found, None, False, None
        if found is not None:
            os.close(found)

    def _has_the_name(self) -> bool:
        if self._found is not None:
            with suppress(OSError):
                return os.path.samestat(os.fstat(self._found), os.lstat(self.path))
        return False

    def _counts(self) -> bool:
        """Whether the directory that was found has the name, and nobody else can open it."""
        return self._found is not None and self._has_the_name() and _is_ours_alone(os.fstat(self._found))

    def _may_be_made_again(self) -> bool:
        """Whether the one that has locked what no longer counts still has time to make it again."""
        now = self._now()
        if self._until is None:
            self._until = now + PATIENCE_S
        return now < self._until

    def _make_again(self, before: int) -> None:
        """Put another directory in the place of one that does not count.

        The one before stays locked until the new one is: meanwhile, others wait for its holder.
        """
        if self._has_the_name():
            with suppress(FileNotFoundError):
                os.rmdir(self.path)
        found = self._open()
        try:
            is_mine = self._locks(found)
        except OSError:
            os.close(found)
            raise
        self._found, self._is_mine, self._until = found, is_mine, None
        os.close(before)

    def _open(self) -> int:
        """The directory that has the name, which is made if need be. Raises OSError."""
        for _ in range(_TRIES):
            with suppress(FileExistsError):
                os.mkdir(self.path, _MODE)
            with suppress(FileNotFoundError):  # another process has just removed it
                try:
                    return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                except PermissionError:
                    os.rmdir(self.path)
        raise PermissionError(errno.EPERM, "others replace it again and again")

    def _locks(self, directory: int) -> bool:
        """Lock a directory; whether no other process has locked it.

        Raises OSError if nobody can tell for a shortage.
        """
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
            self._see(error)
        else:
            if self._said:
                _log.info(f"locked '{self.path}' now")
            self._said = ""
        return True

    def _see(self, error: OSError) -> None:
        """Log why there is no lock, unless it was logged already, or there is no directory to lock."""
        self.waits = bool(what_is_short(error))
        if error.errno != errno.ENOENT and str(error) != self._said:
            self._said = str(error)
            why = f"cannot lock '{self.path}': {error.strerror}"
            if error.errno in _IN_THE_WAY:
                _log.warning(why, hint=f"{_MAKE_WAY}; {_UNNOTICED}")
            else:
                _log.warning(why, hint=what_is_short(error) or _UNNOTICED)


def _is_ours_alone(status: os.stat_result) -> bool:
    mode = status.st_mode & (stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
    return stat.S_ISDIR(status.st_mode) and mode == _MODE and status.st_uid == os.geteuid()
