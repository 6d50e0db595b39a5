"""Are udev's events arriving? A pure judgement from event numbers and the time.

The kernel numbers its uevents; udev forwards each one under the same number once it has processed the
device. If kernel events arrive but udev events do not, this process is in another network namespace,
udev is not running on this machine, or udevd hangs.

The rules of this file:

* No clock and no timer: times are seconds on the caller's clock, and never go back.
* udev processes several devices at once, so its events may be out of order: each one shows that udev has got
  as far as its number. The last one may be slow; the patience has to cover that.
* The two sockets are read one after the other, so an answer may be read before the event that it answers.
  Several processors send the kernel's events, nearly in the order of their numbers: once the kernel has got
  much further, nobody waits for the answer any more.
* A long queue is not deafness: every event of udev restarts the patience.
* A udevd that is killed takes its queue with it, and the next one goes on with what happens then. So an event
  that udev leaves unanswered for long, though it has got further, has been skipped.
"""

from collections.abc import Iterator

from genericdp.core.hint import Uevent

#: How many events are remembered of those that udev has not answered, and how many answers that were read
#: early. The oldest events tell when udev is deaf, so those that come beyond that are not remembered.
REMEMBERED = 10_000

#: How far the kernel's events may be out of order. On two busy processors, it was 560 in 200,000 events. If
#: it is more, the device of an answer that is not remembered is looked at once more.
OUT_OF_ORDER = 1_000


class Hearing:
    """Remembers which kernel events udev has not answered yet.

    patience_s    how long udev may take for an event before it counts as silent
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._last_heard = float("-inf")
        self._sent = 0  # the highest number that the kernel has sent
        self._answered = 0  # the highest number that udev has sent
        self._unanswered: dict[int, tuple[float, Uevent]] = {}  # number -> (heard at, event), oldest first
        self._early: dict[int, None] = {}  # the answers whose event has not been read
        self._mark: tuple[float, int] | None = None  # how far udev had got then, with events left behind

    def kernel(self, uevent: Uevent, now: float) -> None:
        """The kernel sent an event. Without a number, there is nothing to wait for."""
        number = uevent.seqnum
        self._sent = max(self._sent, number)
        if number in self._early:
            del self._early[number]
        elif number and len(self._unanswered) < REMEMBERED:
            self._unanswered[number] = now, uevent
            self._set_mark(now)

    def udev(self, number: int, now: float) -> None:
        """Udev sent event `number`: it is alive, and has got so far."""
        self._last_heard = now
        self._answered = max(self._answered, number)
        if self._unanswered.pop(number, None) is None:
            self._early[number] = None
            self._forget_late()
        self._set_mark(now)

    def forget(self) -> None:
        """Start again: events were lost, or the sockets are new."""
        self._unanswered.clear()
        self._early.clear()
        self._answered, self._mark = 0, None

    def skipped(self, now: float) -> Iterator[Uevent]:
        """The events that udev has skipped since the last call: their devices have to be looked at."""
        if self._mark is None or now < self._mark[0] + self._patience_s:
            return
        _, mark = self._mark
        self._mark = None
        while self._unanswered and (number := next(iter(self._unanswered))) < mark:
            yield self._unanswered.pop(number)[1]
        self._set_mark(now)

    @property
    def deadline(self) -> float | None:
        """When patience ends unless udev answers first; None if no answer is awaited."""
        starts = [] if self._mark is None else [self._mark[0]]
        awaited = self._awaited_since()
        if awaited is not None:
            starts.append(awaited)
        return min(starts) + self._patience_s if starts else None

    def is_deaf(self, now: float) -> bool:
        """Whether patience with udev as a whole has ended."""
        awaited = self._awaited_since()
        return awaited is not None and now >= awaited + self._patience_s

    @property
    def awaited(self) -> Uevent | None:
        """The first event of the kernel that udev has neither answered nor got as far as."""
        return next(
            (event for number, (_, event) in self._unanswered.items() if number > self._answered), None
        )

    def _forget_late(self) -> None:
        while self._early:
            oldest = next(iter(self._early))
            if len(self._early) <= REMEMBERED and oldest > self._sent - OUT_OF_ORDER:
                return
            del self._early[oldest]

    def _awaited_since(self) -> float | None:
        """When it began that there is one."""
        awaited = self.awaited
        return None if awaited is None else max(self._unanswered[awaited.seqnum][0], self._last_heard)

    def _set_mark(self, now: float) -> None:
        oldest = next(iter(self._unanswered), self._answered)
        if self._mark is not None and oldest >= self._mark[1]:
            self._mark = None
        if self._mark is None and oldest < self._answered:
            self._mark = now, self._answered
