"""A directory whose files genericdp keeps right: open at all times, and without what a killed program left.

The rules of this file:

* It stays open, so that a shortage of descriptors keeps nothing in it from changing.
* Everybody may enter it, whatever the umask is: for a pod with a user namespace of its own, the low-level
  runtime looks up paths of the host as a user without rights there.
* A name that a killed `node-removed` never renamed (`packaging/udev`) is left until udev itself would have
  ended the program. Without the name, a running one would leave a link at a node that has gone.
"""

import os
import time
from contextlib import suppress

from genericdp.errors import SHORTAGES
from genericdp.files.trust import open_trusted

#: udev ends a program after 180 s (udev.conf(5), event_timeout).
_ABANDONED_S = 300.0

#: Everybody may read and enter the directory; only its owner may change it.
MODE = 0o755


class KeptDirectory:
    """The directory of a path, see `open_trusted`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def descriptor(self) -> int:
        """Open the directory again. In a shortage, use what is open if the path still leads to it.

        Raises UntrustedError, OSError.
        """
        try:
            descriptor = open_trusted(self._path)
        except OSError as error:
            kept = self._still_open() if error.errno in SHORTAGES else None
            if kept is None:
                raise
            return kept
        self.close()
        self._descriptor = descriptor
        return descriptor

    def left(self) -> int | None:
        """What is open although the path leads elsewhere by now."""
        return None if self._still_open() is not None else self._descriptor

    def is_elsewhere(self) -> bool:
        """Whether the path leads elsewhere than to what is open or, if nothing is, to a directory at all."""
        return self._still_open() is None and (self._descriptor is not None or os.path.isdir(self._path))

    def close(self) -> None:
        """Close it until the next time."""
        before, self._descriptor = self._descriptor, None
        if before is not None:
            os.close(before)

    def _still_open(self) -> int | None:
        """What is open, if the path still leads to it."""
        with suppress(OSError):
            if self._descriptor is not None and os.path.samestat(
                os.fstat(self._descriptor), os.stat(self._path)
            ):
                return self._descriptor
        return None


def make_for_all(directory: str) -> None:
    """Make a directory, and those above it, if it does not exist. Raises OSError."""
    above = os.path.dirname(directory)
    # `/` exists, even if the system cannot look at it.
    if above not in {"", directory} and not os.path.lexists(above):
        make_for_all(above)
    with suppress(FileExistsError):
        os.mkdir(directory)
        # Where others can write, something else may be there by now.
        made = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(made, MODE)
        finally:
            os.close(made)


def is_abandoned(directory: int, name: str) -> bool:
    """Whether a name in a directory (a descriptor) is so old that nobody will rename it."""
    try:
        return time.time() - os.lstat(name, dir_fd=directory).st_mtime > _ABANDONED_S
    except OSError:
        return False
