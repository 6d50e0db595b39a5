"""Notices what happens to names in directories below /dev.

The rules of this file:

* One inotify instance watches all directories: a busy node has few instances left.
* Nothing is heard of nodes that are merely used: IN_CLOSE_WRITE would wake the daemon for every program that
  writes to /dev/null. A node whose timestamps keep changing is heard, but seldom (`watch.queue`).
* While a directory cannot be watched, everything is looked at every few seconds, and a warning is logged.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Iterable

from genericdp import log
from genericdp.watch import AGAIN_S, Event, EventQueue, flags, what_to_do

_MASK = (
    flags.CREATE
    | flags.DELETE
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.ATTRIB
    | flags.ONLYDIR
    | flags.DONT_FOLLOW
)

#: What a read of the queue costs, in seconds: a look at a node goes through the sightings of all bare nodes.
READ_S = 1e-2

_log = log.get(__name__)


class NodeWatch:
    """Calls `tell` from the running event loop with each path that changes in the directories.

    tell     gets the path, or "" if anything may have happened; it must then have every directory added again
    again_s  how often to try again to watch what cannot be watched, in seconds
    """

    def __init__(self, tell: Callable[[str], None], *, again_s: float = AGAIN_S) -> None:
        self._tell = tell
        self._again_s = again_s
        self._loop = asyncio.get_running_loop()
        self._queue: EventQueue | None = None
        self._directories: dict[int, str] = {}
        self._unwatched: set[str] = set()
        self._again: asyncio.TimerHandle | None = None

    def add(self, directory: str) -> None:
        """Watch a directory from now on, if it exists."""
        try:
            if self._queue is None:
                self._queue = EventQueue(self._hear, read_s=READ_S)
            watch = self._queue.watch(directory, _MASK)
        except (FileNotFoundError, NotADirectoryError):
            return  # the directory above tells when it appears
        except OSError as error:
            if self._again is None:
                self._again = self._loop.call_later(self._again_s, self._try_again)
            if directory not in self._unwatched:
                self._unwatched.add(directory)
                why = f"cannot watch the directory '{directory}': {error.strerror}"
                _log.warning("cannot watch a directory, polling it instead", why=why, hint=what_to_do(error))
            return
        self._directories[watch] = directory
        if directory in self._unwatched:
            self._unwatched.discard(directory)
            _log.info("watching the directory again", directory=directory)

    def keep(self, directories: Collection[str]) -> None:
        """Watch no other directories any more."""
        for watch, directory in tuple(self._directories.items()):
            if directory not in directories:
                del self._directories[watch]
                if self._queue is not None:
                    self._queue.unwatch(watch)
        if not self._directories:
            self._let_go()

    def close(self) -> None:
        """Stop watching. May be called twice."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        self._directories = {}
        self._let_go()

    def _let_go(self) -> None:
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def _try_again(self) -> None:
        self._again = None
        self._tell("")

    def _hear(self, events: Iterable[Event]) -> None:
        changed: dict[str, None] = {}
        for event in events:
            directory = self._directories.get(event.watch)
            if event.mask & flags.Q_OVERFLOW:
                changed[""] = None
            elif event.mask & flags.IGNORED:
                self._directories.pop(event.watch, None)
            elif directory is not None:
                changed[os.path.join(directory, event.name) if event.name else directory] = None
        for path in changed:
            self._tell(path)
