"""Runs jobs that wait for a disk in a thread: fsync(2) takes seconds on a worn flash memory.

The rules of this file:

* `do` waits PATIENCE_S for the job, which is enough on most disks. Only `finish` waits longer.
* Only one job runs at a time. A caller that asks for another one meanwhile is called back when it ends.
* If no thread can be started, the job runs in the event loop. When memory is low, a new thread can also die
  before it runs any code. `threading.Thread.start` then blocks forever, so it is not used here.
"""

import asyncio
from _thread import start_new_thread
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from threading import Event, Lock
from typing import Any, Generic, TypeVar

from genericdp import log

T = TypeVar("T")

#: How long the event loop waits for a disk, in seconds.
PATIENCE_S = 0.05

#: How long a thread may take to begin, in seconds.
BEGIN_S = 1.0

#: How long the start or the end of the daemon waits until it says so, in seconds.
REPORT_AFTER_S = 1.0

_log = log.get(__name__)


class Disk:
    """Runs one job at a time. To be used from the thread of the event loop.

    path   what the jobs write, for people
    again  called when a job has ended and `do` was called meanwhile
    """

    def __init__(self, path: str, again: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._again = again
        self._is_due = False
        self._end: Callable[[], None] | None = None
        self._future: Future[Any] = Future()

    @property
    def is_busy(self) -> bool:
        """Whether a job runs."""
        return self._end is not None

    @property
    def left(self) -> int:
        """How many jobs have to end until all is done that was asked for: the one that runs, and the next."""
        return self.is_busy + self._is_due

    def do(self, job: Callable[[], T], ended: Callable[[Future[T]], None]) -> bool:
        """Run a job in a thread, and then call `ended` in this one. Returns whether that is done.

        If not, a running event loop calls `ended` later. While another job runs, it calls `again` instead.
        """
        if self.queue():
            return False
        running = _Job(job)
        future = running.future
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None

        def tell(_: Future[T]) -> None:
            if loop is not None:
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self._see, future)

        self._future, self._end = future, partial(ended, future)
        try:
            start_new_thread(running.run, ())
        except (RuntimeError, MemoryError):  # the unit limits the threads (TasksMax=)
            running.run()
        wait((future,), PATIENCE_S)
        if not running.begun.wait(BEGIN_S):
            running.run()
        if future.done():
            self._see(future)
            return True
        future.add_done_callback(tell)
        return False

    def queue(self) -> bool:
        """Have `again` called when the job that runs has ended. False if none runs."""
        self._is_due |= self.is_busy
        return self.is_busy

    def finish(self) -> None:
        """Wait until no job runs, nor is asked for, however long that takes."""
        while self.is_busy:
            wait((self._future,), REPORT_AFTER_S)
            if not self._future.done():
                _log.warning("waiting until the disk has written", path=self._path)
                wait((self._future,))
            self._see(self._future)

    def _see(self, future: Future[Any]) -> None:
        # `finish` may have seen it before.
        if future is not self._future or self._end is None:
            return
        end, self._end = self._end, None
        try:
            end()
        finally:
            if self._is_due:
                self._is_due = False
                self._again()


class _Job(Generic[T]):
    """Does its work once, in the first thread that calls `run`."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.future: Future[T] = Future()
        self.begun = Event()
        self._work = work
        self._is_taken = Lock()

    def run(self) -> None:
        if not self._is_taken.acquire(blocking=False):
            return
        try:
            self.begun.set()
            self.future.set_result(self._work())
        except Exception as error:  # noqa: BLE001  (raised where the result is asked for)
            self.future.set_exception(error)
