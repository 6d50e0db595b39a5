"""What must survive a restart: the memory of `genericdp.core.inventory`, in a file of the state directory.

The rules of this file:

* The file is written only when its text changed, whole, by rename: a power cut during a save leaves the
  old or the new one, a power cut afterwards the new one.
* A file that cannot be understood is reported and kept aside; the daemon starts with an empty memory.
"""

import errno
import os
import stat
from contextlib import suppress

from genericdp.core.inventory import saved
from genericdp.core.inventory.memory import Memory
from genericdp.errors import GenericdpError

_WITHOUT_IT = "without it, ids of twins and of absent devices do not survive a reboot"


class StateFile:
    """`memory.json` in the state directory."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, "memory.json")
        self._saved = b""
        self._broken = False

    def load(self) -> Memory:
        """The memory as it was saved; empty without a file.

        Raises GenericdpError for a broken file, which the next `save` keeps aside.
        """
        try:
            data = _read(self.path)
            memory = saved.load(data)
        except FileNotFoundError:
            return Memory()
        except OSError as error:
            self._broken = True
            raise GenericdpError(f"cannot read '{self.path}': {error.strerror}", hint=_WITHOUT_IT) from error
        except saved.UnreadableMemoryError as error:
            self._broken = True
            raise GenericdpError(
                f"'{self.path}' {error}",
                hint=f"the daemon keeps it as '{self.path}.broken' and starts with an empty memory",
            ) from error
        self._saved = data
        return memory

    def save(self, memory: Memory) -> None:
        """Save the memory if it differs from what was saved last. Raises GenericdpError."""
        data = saved.dump(memory)
        if data == self._saved:
            return
        try:
            self._write(data)
        except OSError as error:
            raise GenericdpError(
                f"cannot save '{self.path}': {error.strerror}",
                hint=_WITHOUT_IT,
            ) from error
        self._saved = data

    def _write(self, data: bytes) -> None:
        directory = os.path.dirname(self.path)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        with open(f"{self.path}.new", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if self._broken:
            with suppress(FileNotFoundError):
                os.replace(self.path, f"{self.path}.broken")
            self._broken = False
        os.replace(f"{self.path}.new", self.path)
        _sync(directory)


def _sync(directory: str) -> None:
    # fsync(2): the fsync of the file says nothing about its entry in the directory.
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: str) -> bytes:
    """The content of a regular file; OSError for anything else: a FIFO would block."""
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read()
