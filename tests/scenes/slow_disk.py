"""A disk that takes as long as a test wants, or fails."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import wait as futures_wait
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pytest

from genericdp.watch import disk

#: More than wait for a disk at a time.
_ALL = 1000


class SlowDisk:
    """`waits`: how many wait for it now; `begun`: how many have ever waited; `written`: what it has."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.waits = self.begun = 0
        self._fsync = os.fsync
        self._answers: SimpleQueue[Exception | None] = SimpleQueue()
        self._is_fast = False

    def fsync(self, descriptor: int) -> None:
        """Wait for the disk, for as long as it takes."""
        self.wait()
        self._fsync(descriptor)
        self.written.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    def wait(self) -> None:
        """Wait until it answers."""
        if not self._is_fast and threading.current_thread() is threading.main_thread():
            raise AssertionError("the event loop waits for the disk")
        self.waits += 1
        self.begun += 1
        answer = None if self._is_fast else self._answers.get()
        self.waits -= 1
        if answer is not None:
            raise answer

    def answer_one(self, answer: Exception | None = None) -> None:
        """It answers one who waits, perhaps by an error."""
        self._answers.put(answer)

    def answer(self) -> None:
        """It answers all who wait, and is a fast one from now on."""
        self._is_fast = True
        for _ in range(_ALL):
            self._answers.put(None)


def when_waited_for(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """From now on, do this as soon as `Disk.finish` waits, which blocks the thread of the event loop."""

    def act_and_wait(futures: Any, timeout: float | None = None) -> Any:
        if timeout != disk.PATIENCE_S:
            act()
        return futures_wait(futures, timeout)

    patch.setattr(disk, "wait", act_and_wait)


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
