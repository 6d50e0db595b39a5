"""A disk that takes as long as a test wants, or fails."""

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from genericdp.files import disk

#: More than wait for a disk at a time.
_ALL = 1000


class SlowDisk:
    """`waits`: how many wait for it now; `begun`: how many have ever waited; `written`: what it has."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.waits = self.begun = 0
        self._fsync = os.fsync
        self._answers = threading.Semaphore(0)
        self._is_fast = False

    def fsync(self, descriptor: int) -> None:
        """Wait for the disk, for as long as it takes."""
        if not self._is_fast and threading.current_thread() is threading.main_thread():
            raise AssertionError("the event loop waits for the disk")
        self.waits += 1
        self.begun += 1
        if not self._is_fast:
            self._answers.acquire()
        self.waits -= 1
        self._fsync(descriptor)
        self.written.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    def answer_one(self) -> None:
        """It answers one who waits."""
        self._answers.release()

    def answer(self) -> None:
        """It answers all who wait, and is a fast one from now on."""
        self._is_fast = True
        self._answers.release(_ALL)


def fails(_: int) -> None:
    """As fsync(2) of a disk that is damaged."""
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@contextmanager
def a_slow_disk() -> Iterator[SlowDisk]:
    """In the block, the disk of this machine has written nothing until it is told to answer."""
    slow = SlowDisk()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", slow.fsync)
        patch.setattr(disk, "PATIENCE_S", 0.0)
        try:
            yield slow
        finally:
            slow.answer()
