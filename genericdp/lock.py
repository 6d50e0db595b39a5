"""One genericdp serves a node: a lock in the link directory, which all of them share.

Two of them are there during an upgrade, or because somebody installed the package and the DaemonSet.
They would point each other's links away and take each other's registrations.

The rules of this file:

* The kernel holds the lock and lets go of it when the process ends, however it ends (flock(2)). It
  works between containers: what they share is the directory, not the process ids.
* The file says who has it, for people; nothing is decided by that.
"""

import fcntl
import os
from contextlib import suppress
from typing import Self

from genericdp.errors import GenericdpError

#: The name of the file; no link is called so, as ids do not begin with a dot.
NAME = ".lock"

#: The words of the file are somebody else's.
_WORDS_LIMIT = 200


class NodeLock:
    """The lock of the link directory. Use as `with NodeLock(directory) as lock:`."""

    def __init__(self, directory: str) -> None:
        """Raises GenericdpError when there is no directory to lock."""
        self.path = os.path.join(directory, NAME)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            os.makedirs(directory, mode=0o755, exist_ok=True)
            self._file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise GenericdpError(
                f"cannot lock '{self.path}': {error.strerror}",
                hint="without the lock, a second genericdp on this node would not be noticed",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def taken(self) -> bool:
        """Take the lock if nobody has it; whether it is ours now."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # no locks on this file system: nobody can have it
        who = f"process {os.getpid()} on {os.uname().nodename}\n"
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, who.encode(), 0)
        return True

    @property
    def holder(self) -> str:
        """Who has it, in words."""
        try:
            said = os.pread(self._file, _WORDS_LIMIT, 0).decode("utf-8", "replace").strip()
        except OSError:
            said = ""
        return said or "another process"
