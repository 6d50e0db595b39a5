"""The file of a socket, and whether it is still the same one.

The rules of this file:

* Another kubelet means another inode. Times, mode and owner of a socket say nothing: a touch changes them.
"""

import errno
import os

#: Errors that prove that the socket does not exist. After any other error, it may exist.
ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class SocketFile:
    """The file of a socket. While it is held, no other file has its inode number."""

    def __init__(self, path: str) -> None:
        """Raises OSError if it cannot be held; nothing is opened."""
        self._path = path
        self._held = os.open(path, os.O_PATH | os.O_CLOEXEC)
        self._identity = _identity(os.fstat(self._held))

    def is_in_place(self) -> bool:
        """Whether it still has its name."""
        try:
            return _identity(os.stat(self._path)) == self._identity
        except OSError as error:
            return error.errno not in ABSENT

    def close(self) -> None:
        os.close(self._held)


def _identity(file: os.stat_result) -> tuple[int, int]:
    return file.st_dev, file.st_ino
