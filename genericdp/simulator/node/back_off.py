"""How long a container that ended waits until it is started again: CrashLoopBackOff.

The rules of this file:

* kubelet 1.36 (`doBackOff`, client-go's `flowcontrol.Backoff`): a container that ended for the first time is
  started at once. Then it waits 10 s from its end, 20 s, and so on up to five minutes. Ten minutes without a
  start forget that.
"""

from dataclasses import dataclass

#: `MaxContainerBackOff` and the first pause.
FIRST_S = 10.0
LONGEST_S = 300.0


@dataclass(slots=True)
class _Entry:
    pause_s: float
    updated: float


class BackOff:
    """The back-off of every container of one kubelet process."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], _Entry] = {}

    def wait_s(self, container: tuple[str, str], ended: float, now: float) -> float:
        """The pause that a container is still in that `ended` at a time; 0: it is started now."""
        entry = self._entries.get(container)
        if entry is None or ended - entry.updated > 2 * LONGEST_S:
            self._entries[container] = _Entry(FIRST_S, now)
            return 0.0
        if now - ended < entry.pause_s:
            return entry.pause_s
        entry.pause_s, entry.updated = min(2 * entry.pause_s, LONGEST_S), now
        return 0.0
