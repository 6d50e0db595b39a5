"""Is udev heard? A pure judgement from the numbers of the events and the time.

The kernel numbers its uevents; udev passes each of them on under the same number when it has dealt
with the device. A listener that hears the kernel but not udev sits in another network namespace, or
nobody plays udev on this machine, or udevd hangs.

The rules of this file:

* No clock and no timer: times are seconds on the caller's clock, and never go back.
* udev works on several devices at once, so events may come back in another order: one that is heard
  answers all with lower numbers. The last one may be slow; patience has to cover that.
* A long queue is not deafness: as long as anything is heard, patience begins anew.
"""

from collections import deque

#: Events heard within this part of the patience are answered for as one.
_RESOLUTION = 1 / 8


class Hearing:
    """Remembers which events of the kernel udev has not answered yet.

    patience_s    how long udev may take for an event before it counts as not heard
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._last_heard = float("-inf")
        self._unanswered: deque[tuple[float, int]] = deque()  # (heard at, number), oldest first

    def kernel(self, seqnum: int, now: float) -> None:
        """The kernel said `seqnum` (0 when its message carried none: nothing to wait for)."""
        if not seqnum:
            return
        if self._unanswered and now - self._unanswered[-1][0] < self._patience_s * _RESOLUTION:
            heard_at, number = self._unanswered.pop()
            self._unanswered.append((heard_at, max(number, seqnum)))
        else:
            self._unanswered.append((now, seqnum))

    def udev(self, seqnum: int, now: float) -> None:
        """Udev said `seqnum`: it is alive, and everything up to that is answered."""
        self._last_heard = now
        while self._unanswered and self._unanswered[0][1] <= seqnum:
            self._unanswered.popleft()

    def forget(self) -> None:
        """Start afresh: events were lost, or the sockets are new."""
        self._unanswered.clear()

    @property
    def deadline(self) -> float | None:
        """When patience ends unless udev is heard before; None when nothing is awaited."""
        if not self._unanswered:
            return None
        return max(self._unanswered[0][0], self._last_heard) + self._patience_s

    def is_deaf(self, now: float) -> bool:
        """Whether patience has ended."""
        deadline = self.deadline
        return deadline is not None and now >= deadline
