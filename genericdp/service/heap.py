"""The heap: memory that the daemon needed only at its busiest moment is given back.

The rules of this file:

* What concerns malloc is glibc's. With another C library, that does nothing.
* Nobody waits for it: memory is given back a while after work, and no timer runs while there is none.
* A search for reference cycles takes longer the more devices there are. So it runs less often then.
"""

import asyncio
import ctypes
import gc
import time
from collections.abc import Callable
from contextlib import suppress

#: After a search for reference cycles, the next one waits this many times as long as it took: with 1,000
#: devices half a minute, with 20,000 an hour.
SEARCH_AGAIN = 10_000

#: How long after work memory is given back, in seconds. Much work often follows the first.
GIVE_BACK_AFTER_S = 5.0

#: mallopt(3).
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

#: The two thresholds with which glibc begins, in bytes.
_LARGE = 128 << 10


def keep_small() -> None:
    """Let all threads share one heap, and no large block be in it.

    By default each thread of gRPC has a heap of its own, which keeps the room of its busiest moment. And
    glibc raises the thresholds with each large block that is freed, up to 32 MiB: the next large blocks are
    then in the heap, where they leave room that is not given back. A threshold that is set stays.
    """
    with suppress(AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        libc.mallopt(_M_TRIM_THRESHOLD, _LARGE)


def give_back() -> None:
    """Give the kernel all free pages: by itself, free(3) gives back only those at the end of the heap."""
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class Heap:
    """The heap while the daemon runs. Call `see_work` in its event loop after each piece of work.

    Reference cycles are freed first: Python itself waits until there are many, and one may keep a page.
    What exists before this object is never searched. It is mostly modules, which are never freed.

    now   a clock that does not jump, in seconds
    work  the processor time of this thread, in seconds; to wait for a busy processor does not count
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, work: Callable[[], float] = time.thread_time
    ) -> None:
        gc.freeze()
        self._now, self._work = now, work
        self._search_at = now()
        self._due: asyncio.TimerHandle | None = None

    def see_work(self) -> None:
        """Give memory back soon, once for all the work until then."""
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(GIVE_BACK_AFTER_S, self._give_back)

    def _give_back(self) -> None:
        self._due = None
        if (now := self._now()) >= self._search_at:
            began = self._work()
            gc.collect()
            self._search_at = now + SEARCH_AGAIN * (self._work() - began)
        give_back()
