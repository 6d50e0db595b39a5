"""What waits for a disk is done in a thread: it may take seconds, as fsync(2) does on a worn flash memory.

The rules of this file:

* What a disk has done within PATIENCE_S, as most do, is done when `do` returns. Nothing else is waited for.
* One thing is done at a time. Its user decides what comes next when it ends, in the event loop.
* Without a thread it is done all the same, and waited for.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

#: How long the event loop waits for a disk, in seconds.
PATIENCE_S = 0.05


class Disk:
    """Does one thing after the other. To be used from the thread of the event loop."""

    def __init__(self) -> None:
        self._end: Callable[[], None] | None = None
        self._future: Future[Any] = Future()

    @property
    def is_busy(self) -> bool:
        """Whether something is being done."""
        return self._end is not None

    def do(self, work: Callable[[], T], ended: Callable[[Future[T]], None]) -> bool:
        """Call `work` in a thread, and then `ended` in this one. Not while it is busy.

        If that takes long, this returns False before, and a running event loop calls `ended`.
        """
        if self.is_busy:
            raise RuntimeError("one thing at a time")
        future: Future[T] = Future()
        self._future, self._end = future, partial(ended, future)
        try:
            Thread(target=_run, args=(work, future), name="disk", daemon=True).start()
        except RuntimeError:  # the unit limits the threads (TasksMax=)
            _run(work, future)
        wait((future,), PATIENCE_S)
        if future.done():
            self._see(future)
            return True
        loop = asyncio.get_running_loop()

        def tell(_: Future[T]) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._see, future)

        future.add_done_callback(tell)
        return False

    def finish(self) -> None:
        """Wait until nothing is being done, however long that takes."""
        while self.is_busy:
            wait((self._future,))
            self._see(self._future)

    def _see(self, future: Future[Any]) -> None:
        if future is self._future and self._end is not None:
            end, self._end = self._end, None
            end()


def _run(work: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(work())
    except Exception as error:  # noqa: BLE001  (raised where the result is asked for)
        future.set_exception(error)
