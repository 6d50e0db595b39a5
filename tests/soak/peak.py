"""Catches the daemon while it takes much memory: afterwards, nobody can say what for.

The rules of this file:

* It looks from a thread, as often as a moment needs: the event loop of a soak is often busy.
* It does not stop the daemon. That one writes into its own log where its threads are (`hurried`).
"""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

#: How often to look, in seconds.
LOOK_S = 0.01

#: Mappings of which more is resident are reported, in MiB.
LARGE_MIB = 5

_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ .*$", re.MULTILINE)


class Peak:
    """What a process maps in the first moment in which more than `most` MiB are resident."""

    def __init__(self, pid: int, most: float) -> None:
        self.found: list[str] = []
        self._pid = pid
        self._most = most

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look within the block."""
        done = Event()
        looking = Thread(target=self._look, args=(done,), name="peak")
        looking.start()
        try:
            yield
        finally:
            done.set()
            looking.join()

    def _look(self, done: Event) -> None:
        directory = Path(f"/proc/{self._pid}")
        with suppress(FileNotFoundError, ProcessLookupError):
            while not self.found and not done.wait(LOOK_S):
                resident = int((directory / "statm").read_text().split()[1]) * _PAGE_MIB
                if resident > self._most:
                    os.kill(self._pid, signal.SIGUSR1)
                    maps = (directory / "smaps").read_text()
                    self.found = [f"{resident:.0f} MiB", *_large(maps)]


def _large(maps: str) -> list[str]:
    """The mappings of which much is resident (proc_pid_smaps(5))."""
    starts = [match.start() for match in _MAPPING.finditer(maps)]
    found = []
    for start, end in zip(starts, [*starts[1:], len(maps)], strict=True):
        first, _, numbers = maps[start:end].partition("\n")
        resident = int(re.findall(r"^Rss: +(\d+) kB$", numbers, re.MULTILINE)[0]) / 1024
        if resident > LARGE_MIB:
            found.append(f"  {resident:.0f} MiB of {' '.join(first.split())}")
    return found
