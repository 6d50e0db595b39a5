"""The lock in the kubelet's directory: one genericdp serves a kubelet, however many run.

It distinguishes another genericdp from other programs: those may listen on a socket that is named like one
of genericdp, but they do not hold the lock.

The rules of this file:

* What is locked (flock(2)) is a directory of our own that nobody else can open: whoever can read a directory
  can lock it, and everybody can read the kubelet's. One that others may open, and have locked, is replaced.
* The kernel releases the lock when the process ends, however it ends, and it works between containers that
  share the kubelet's directory. A process that is killed leaves its directory, which is empty, behind.
* It is a directory because a kubelet that starts removes sockets, and an older one all files.
* The lock counts while its directory has its name. One that was removed is made and locked again, by whoever
  is first.
* Where there can be no lock, each genericdp acts as if it were alone, and a warning says why. A file system
  without locks, such as NFS without its lock service, answers ENOLCK. For want of memory, Linux answers
  ENOMEM, whatever flock(2) says.
* A shortage of descriptors or memory says nothing about others.
"""

import errno
import fcntl
import os
import stat
from contextlib import suppress

from genericdp import log
from genericdp.errors import SHORTAGES, what_is_short

#: The name of the lock's directory.
NAME = ".genericdp-lock"

#: What an operator gives up where there is no lock.
_UNNOTICED = "without the lock, another genericdp that serves this kubelet is not noticed"

#: Only who runs genericdp can open it.
_MODE = 0o700

#: How often to make a directory that others replace.
_TRIES = 10

_log = log.get(__name__)


class DirectoryLock:
    """The lock in a directory, which need not exist yet."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, NAME)
        self._held: int | None = None
        self._said = ""

    def is_held(self) -> bool:
        """Whether this process has taken the lock that has the name now."""
        if self._held is not None:
            with suppress(OSError):
                return os.path.samestat(os.fstat(self._held), os.lstat(self.path))
        return False

    def taken(self) -> bool:
        """Take the lock if it is free. Returns whether no other process holds it.

        Raises OSError if there are too few descriptors, or too little memory, to tell.
        """
        try:
            for _ in range(_TRIES):
                self.release()
                self._held = self._open()
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self.is_held():
                    self._said = ""
                    break
        except BlockingIOError:
            self.release()
            return False
        except OSError as error:
            if error.errno in SHORTAGES:
                self.release()
                raise
            self._see(error)
        return True

    def close(self) -> None:
        """Release the lock, if it is held, and leave nothing behind."""
        if self.is_held():
            with suppress(OSError):
                os.rmdir(self.path)
        self.release()

    def release(self) -> None:
        """Release the lock, if it is held."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def _open(self) -> int:
        """The lock's directory, which is made if need be. Raises OSError."""
        for _ in range(_TRIES):
            with suppress(FileExistsError):
                os.mkdir(self.path, _MODE)
            with suppress(FileNotFoundError):  # another process has just removed it
                if _is_ours_alone(os.lstat(self.path)):
                    return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                os.rmdir(self.path)
        raise PermissionError(errno.EPERM, "other users may open it")

    def _see(self, error: OSError) -> None:
        """Log why there is no lock, unless it was logged already, or there is no directory to lock."""
        if error.errno != errno.ENOENT and str(error) != self._said:
            self._said = str(error)
            why = f"cannot lock '{self.path}': {error.strerror}"
            _log.warning(why, hint=what_is_short(error) or _UNNOTICED)


def _is_ours_alone(status: os.stat_result) -> bool:
    mode = status.st_mode & (stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
    return stat.S_ISDIR(status.st_mode) and mode == _MODE and status.st_uid == os.geteuid()
