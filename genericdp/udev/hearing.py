"""Are udev's events arriving? A pure judgement from event numbers and the time.

The kernel numbers its uevents; udev forwards each one under the same number once it has processed the
device. If kernel events arrive but udev events do not, this process is in another network namespace,
udev is not running on this machine, or udevd hangs.

The rules of this file:

* No clock and no timer: times are seconds on the caller's clock, and never go back.
* udev processes several devices at once, so its events may be out of order: each one answers all lower
  numbers. The last one may be slow; the patience has to cover that.
* The two sockets are read one after the other, so an answer may be read before the event that it answers.
* A long queue is not deafness: every event of udev restarts the patience.
"""

from collections import deque

#: Events within this fraction of the patience count as one.
_RESOLUTION = 1 / 8


class Hearing:
    """Remembers which kernel events udev has not answered yet.

    patience_s    how long udev may take for an event before it counts as silent
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._last_heard = float("-inf")
        self._answered = 0  # the highest number that udev has sent
        self._unanswered: deque[tuple[float, int]] = deque()  # (heard at, number), oldest first

    def kernel(self, seqnum: int, now: float) -> None:
        """The kernel sent event `seqnum` (0 without a number: nothing to wait for)."""
        if seqnum <= self._answered:
            return
        if self._unanswered and now - self._unanswered[-1][0] < self._patience_s * _RESOLUTION:
            heard_at, number = self._unanswered.pop()
            self._unanswered.append((heard_at, max(number, seqnum)))
        else:
            self._unanswered.append((now, seqnum))

    def udev(self, seqnum: int, now: float) -> None:
        """Udev sent event `seqnum`: it is alive and has answered everything up to that number."""
        self._last_heard = now
        self._answered = max(self._answered, seqnum)
        while self._unanswered and self._unanswered[0][1] <= seqnum:
            self._unanswered.popleft()

    def forget(self) -> None:
        """Start again: events were lost, or the sockets are new."""
        self._unanswered.clear()
        self._answered = 0

    @property
    def deadline(self) -> float | None:
        """When patience ends unless udev answers first; None if no answer is awaited."""
        if not self._unanswered:
            return None
        return max(self._unanswered[0][0], self._last_heard) + self._patience_s

    def is_deaf(self, now: float) -> bool:
        """Whether patience has ended."""
        deadline = self.deadline
        return deadline is not None and now >= deadline
