"""The lock on the kubelet's directory: one genericdp serves a kubelet, however many run.

It distinguishes another genericdp from other programs: those may listen on a socket that is named like one
of genericdp, but they do not hold the lock.

The rules of this file:

* The directory itself is locked (flock(2)), so no file is left behind. The kernel releases the lock when the
  process ends, however it ends, and it works between containers that share the directory.
* A directory that was created again is another one, and is locked again.
* Where locks do not work, each genericdp acts as if it were alone. A file system without them, such as NFS
  without its lock service, answers ENOLCK. For want of memory, Linux answers ENOMEM, whatever flock(2) says.
* A shortage of descriptors or memory says nothing about others.
"""

import fcntl
import os
from contextlib import suppress

from genericdp.errors import SHORTAGES


class DirectoryLock:
    """The lock on a directory, which need not exist yet."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._held: int | None = None

    def is_held(self) -> bool:
        """Whether this process has taken the directory that exists now."""
        if self._held is not None:
            with suppress(OSError):
                return os.path.samestat(os.fstat(self._held), os.stat(self._directory))
        return False

    def taken(self) -> bool:
        """Take the lock if it is free. Returns whether no other process holds it.

        Raises OSError if there are too few descriptors, or too little memory, to tell.
        """
        self.release()
        try:
            directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
            return True
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(directory)
            return False
        except OSError as error:
            if error.errno in SHORTAGES:
                os.close(directory)
                raise
            # There are no locks on this file system.
        self._held = directory
        return True

    def release(self) -> None:
        """Release the lock, if it is held."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)
