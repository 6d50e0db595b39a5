"""The kernel's queue of file events, read so that nobody keeps the daemon busy by filling it.

Other users of the node decide how many events there are: whoever may write to /tmp or /dev/null changes its
times as often as they like.

The rules of this file:

* A turn of the event loop reads at most CHUNK bytes, and events that are alike are passed on once.
* Each read and each event costs some time, on account. Whoever is BURST_S in debt pauses until that is paid.
  So what happens now and then is heard at once, and a full queue is read in about half a second.
* Nothing is lost unnoticed: what the queue has no room for, the kernel replaces by Q_OVERFLOW.
"""

import asyncio
import os
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from inotify_simple import INotify, flags

__all__ = ["Event", "EventQueue", "flags"]

#: How many bytes a turn reads at most: 2000 events with short names.
CHUNK = 1 << 16

#: What a read costs if little comes of it, and each event in it, in seconds: twenty times of what they take.
READ_S = 2e-3
EVENT_S = 3e-5

#: How much may be read without a pause, in the same seconds.
BURST_S = 0.05

#: watch, mask, cookie and length of the name (inotify(7)).
_HEAD = struct.Struct("iIII")


class Event(NamedTuple):
    """What happened to a name in a directory, or without a name to the directory itself."""

    watch: int
    mask: int
    name: str


class EventQueue:
    """Calls `hear` from the running event loop with the events of the watches.

    read_s  what a read costs, in seconds: the more, the more follows from what is heard
    """

    def __init__(self, hear: Callable[[Iterable[Event]], None], *, read_s: float = READ_S) -> None:
        """Raises OSError if there is no inotify instance left."""
        self._hear = hear
        self._read_s = read_s
        self._loop = asyncio.get_running_loop()
        self._paid_at = 0.0
        self._pause: asyncio.TimerHandle | None = None
        self._inotify = INotify(nonblocking=True)
        self._loop.add_reader(self._inotify.fileno(), self.read)

    def watch(self, path: str, mask: int) -> int:
        """Watch a path; returns the number of the watch. Raises OSError."""
        return int(self._inotify.add_watch(path, mask))

    def unwatch(self, watch: int) -> None:
        """Watch this no longer."""
        with suppress(OSError):  # the kernel has dropped the watch of a deleted directory
            self._inotify.rm_watch(watch)

    def close(self) -> None:
        """Hear nothing any more. May be called twice."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if not self._inotify.closed:
            self._loop.remove_reader(self._inotify.fileno())
            self._inotify.close()

    def read(self) -> None:
        """Pass on what has happened, unless it has been too much."""
        if self._pause is not None or self._inotify.closed:
            return
        try:
            data = os.read(self._inotify.fileno(), CHUNK)
        except BlockingIOError:
            return
        count, events = _events_in(data)
        now = self._loop.time()
        self._paid_at = max(self._paid_at, now) + self._read_s + count * EVENT_S
        if self._paid_at - now > BURST_S:
            self._loop.remove_reader(self._inotify.fileno())
            self._pause = self._loop.call_at(self._paid_at, self._go_on)
        self._hear(events)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._inotify.fileno(), self.read)


def _events_in(data: bytes) -> tuple[int, list[Event]]:
    """How many events there are, and those that differ, in their order."""
    at = count = 0
    found: dict[tuple[int, int, bytes], None] = {}
    while at < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size + length
        found[watch, mask, data[at - length : at]] = None
        count += 1
    return count, [Event(watch, mask, os.fsdecode(name.rstrip(b"\0"))) for watch, mask, name in found]
