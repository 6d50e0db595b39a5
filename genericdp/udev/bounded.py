"""Reads that may hang in the kernel: in a thread, and waited for no longer than a bound.

The rules of this file:

* While a driver probes a USB device, a read of the device's strings blocks, and on some kernels (6.1) so does
  a read of its `uevent` file: for as long as the device likes. The same goes for the hub it is connected to.
  What a driver asks its hardware for can hang as well.
* What has not come back is neither asked again nor waited for before it has. Nothing waits for its thread.
  Where a read cannot be interrupted, the kernel keeps the process until then, even if it is killed.
* While some hang, all others are asked: one device can pretend to be many. No more than `MOST` hang at once;
  what is not asked because of that is not said not to answer.
* What has come back too late is kept for a reader that only wants what it could not read. Any other one asks
  again, because something may have happened since.
* libudev may be used in several threads, but each of its devices in one only.
* A thread that wakes another one takes as long as reading a device. So what will be needed is read ahead.
"""

import errno
import signal
import time
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")

#: How long to wait for a read (seconds): a busy machine needs some time for one that does not hang, too.
BOUND_S = 0.2

#: How many may hang, one soon after the other, before the others are waited for only briefly.
LIMIT = 16

#: How many may hang at once: these, and as many as a bus of USB has devices (USB 2.0, 4.1.1: 127).
MOST = LIMIT + 127

#: How long to wait for reads that hang (seconds), and for each of them once that is used up.
TOGETHER_S = LIMIT * BOUND_S
_BRIEFLY_S = 0.02

#: How much of that comes back in a second: so much of the time may be spent waiting, whatever hangs.
_REGAINED = 0.1

#: How much is read ahead at once. It is kept until it is needed.
_AT_ONCE = 32

OnAnswer = Callable[[], object] | None

#: What a thread does; whether it goes on.
_Job = Callable[[], bool]

#: What a read returned, or raised.
_Outcome = tuple[Any, Exception | None]


@dataclass(slots=True, eq=False)
class _Batch:
    """What a thread reads, one after the other.

    outcomes  what came of it so far
    since     when the next one was begun
    is_left   nobody waits any more
    is_old    somebody has asked again since
    """

    whats: list[Hashable]
    since: float = field(default_factory=time.monotonic)
    outcomes: list[_Outcome] = field(default_factory=list)
    done: SimpleQueue[None] = field(default_factory=SimpleQueue)
    is_left: bool = False
    is_old: bool = False


@dataclass(frozen=True, slots=True)
class _Late:
    """What has come back too late, and of which call."""

    read: Callable[..., Any]
    others: tuple[object, ...]
    outcome: _Outcome


class Bounded:
    """Reads in one thread, and after each read that hangs in another one. To be used from one thread.

    on_answer  called in some thread when something has come back that was no longer waited for
    clock      seconds since some moment
    """

    def __init__(self, on_answer: OnAnswer = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._on_answer = on_answer
        self._clock = clock
        self._lock = Lock()
        self._hanging: dict[Hashable, _Batch] = {}
        self._late: dict[Hashable, _Late] = {}
        self._takes_late = False
        self._left_s = TOGETHER_S
        self._left_at = clock()
        self._jobs: SimpleQueue[_Job] | None = None
        self._end: Callable[[], object] | None = None
        self._planned: set[tuple[Callable[..., Any], Hashable]] = set()
        self._plan: deque[Hashable] = deque()
        self._ahead: dict[Hashable, _Outcome] = {}

    def plan(
        self, read: Callable[..., Any], whats: Iterable[Hashable] = (), *, takes_late: bool = False
    ) -> None:
        """These will be read by this function, most of them in this order. Without any: what was read ahead
        is too old by now.

        takes_late  what came back too late is good enough, if nobody has asked for it again since
        """
        self._plan = deque(whats)
        self._planned = {(read, what) for what in self._plan}
        self._ahead = {}
        self._takes_late = takes_late
        if takes_late:
            with self._lock:
                self._late = {
                    what: late for what, late in self._late.items() if (read, what) in self._planned
                }

    def call(self, read: Callable[..., T], what: Hashable, *others: object) -> T:
        """What `read(what, *others)` returns or raises. Of one thing, only one read hangs at a time.

        Raises OSError: ETIMEDOUT if it has not come back, ECANCELED if it was not asked because too many
        others have not, EAGAIN without a thread.
        """
        outcome = None
        if (read, what) in self._planned:
            self._planned.discard((read, what))
            while self._plan and what not in self._ahead:
                some = [self._plan.popleft() for _ in range(min(_AT_ONCE, len(self._plan)))]
                self._ahead |= self._each(read, some, others)
            outcome = self._ahead.pop(what, None)
        answer, error = outcome or self._each(read, [what], others)[what]
        if error is not None:
            raise error
        found: T = answer
        return found

    def _each(
        self, read: Callable[..., Any], whats: list[Hashable], others: tuple[object, ...]
    ) -> dict[Hashable, _Outcome]:
        found = self._taken_late(read, whats, others)
        left = [what for what in whats if what not in found]
        while left:
            found |= {what: (None, why) for what in left if (why := self._why_not(what)) is not None}
            left = [what for what in left if what not in found]
            batch = _Batch(left)
            try:
                self._read(batch, read, others)
            except RuntimeError as error:
                why = OSError(errno.EAGAIN, str(error))
                return dict.fromkeys(left, (None, why)) | found
            found |= zip(left, batch.outcomes, strict=False)
            if batch.is_left:
                found[left[len(batch.outcomes)]] = None, _no_answer()
            left = left[len(batch.outcomes) + 1 :]
        return found

    def _taken_late(
        self, read: Callable[..., Any], whats: list[Hashable], others: tuple[object, ...]
    ) -> dict[Hashable, _Outcome]:
        with self._lock:
            late = {what: self._late.pop(what) for what in whats if what in self._late}
        return {
            what: each.outcome
            for what, each in late.items()
            if self._takes_late and (each.read, each.others) == (read, others)
        }

    def _why_not(self, what: Hashable) -> OSError | None:
        """Why this is not asked, None if it can be."""
        with self._lock:
            batch = self._hanging.get(what)
            if batch is None:
                return _not_asked() if len(self._hanging) >= MOST else None
            if not self._takes_late:
                batch.is_old = True
            return _no_answer()

    def _read(self, batch: _Batch, read: Callable[..., Any], others: tuple[object, ...]) -> None:
        """Raises RuntimeError if no thread can be started."""
        if not batch.whats:
            return
        (self._jobs or self._start()).put(partial(self._do, batch, read, others))
        left_s = bound_s = BOUND_S if self._regain() > 0 else _BRIEFLY_S
        while left_s > 0:
            try:
                batch.done.get(timeout=left_s)
            except Empty:
                left_s = batch.since + bound_s - time.monotonic()
            else:
                return
        with self._lock:
            if len(batch.outcomes) < len(batch.whats):
                self._hanging[batch.whats[len(batch.outcomes)]] = batch
                batch.is_left = True
                self._left_s -= bound_s
                self._let_go()

    def _regain(self) -> float:
        """How long to wait for reads that hang, in seconds, as things are now."""
        now = self._clock()
        self._left_s = min(TOGETHER_S, self._left_s + (now - self._left_at) * _REGAINED)
        self._left_at = now
        return self._left_s

    def _do(self, batch: _Batch, read: Callable[..., Any], others: tuple[object, ...]) -> bool:
        for what in batch.whats:
            outcome = _outcome(read, what, others)
            with self._lock:
                if batch.is_left:
                    del self._hanging[what]
                    if not batch.is_old:
                        self._late[what] = _Late(read, others, outcome)
                    break
                batch.outcomes.append(outcome)
                batch.since = time.monotonic()
        else:
            batch.done.put(None)
            return True
        if self._on_answer is not None:
            self._on_answer()
        return False

    def _start(self) -> SimpleQueue[_Job]:
        jobs: SimpleQueue[_Job] = SimpleQueue()
        Thread(target=_work, args=(jobs,), name="sysfs", daemon=True).start()
        self._jobs = jobs
        # The thread does not know this object while it has nothing to do, and ends with it.
        self._end = weakref.finalize(self, jobs.put, _end).detach
        return jobs

    def _let_go(self) -> None:
        """Leave the thread to itself: it ends when its read does."""
        if self._end is not None:
            self._end()
        self._jobs = None


def _outcome(read: Callable[..., Any], what: Hashable, others: tuple[object, ...]) -> _Outcome:
    try:
        return read(what, *others), None
    except OSError as error:
        # Its traceback would keep devices of libudev.
        return None, error.with_traceback(None)
    except Exception as error:  # noqa: BLE001  (raised where it is waited for)
        return None, error


def _end() -> bool:
    return False


def _work(jobs: SimpleQueue[_Job]) -> None:
    # Signals are for the main thread. Here, one would end a read early.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while jobs.get()():
        pass


def _no_answer() -> OSError:
    return OSError(errno.ETIMEDOUT, "the kernel does not answer")


def _not_asked() -> OSError:
    return OSError(errno.ECANCELED, "too many others do not answer")
