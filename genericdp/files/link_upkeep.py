"""Keeps the stable links as they should be.

The rules of this file:

* A link that cannot be created is tried again. A link that somebody else changed is restored.
* A link that udev's rule of the package pointed at itself is restored only after its device was read again:
  udev may know before the daemon that the node has gone, and another device may have its name by now.
* Repeated changes do not keep the daemon busy: it restores links only at intervals.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from genericdp import log
from genericdp.errors import GenericdpError
from genericdp.files.links import Links
from genericdp.retry import Retry
from genericdp.watch import DirectoryWatch

#: How long to wait before making links again that somebody changes again and again, in seconds. Also the
#: longest pause before links are tried again that could not be made.
AGAIN_S = 10.0

#: The same for links that another process pointed at themselves although their nodes are there, and for links
#: in a directory that replaced the one before: they may lead to other devices.
REVIVE_AGAIN_S = 1.0

_log = log.get(__name__)


class LinkUpkeep:
    """The links of a directory.

    again    called when links have to be made again; it must call `apply`
    on_dead  called with links that another process pointed at themselves; it must read their devices again
             and then call `apply`
    """

    def __init__(
        self, directory: str, again: Callable[[], None], on_dead: Callable[[Collection[str]], None]
    ) -> None:
        self._links = Links(directory)
        self._again = again
        self._on_dead = on_dead
        self._retry = Retry(again, longest_s=AGAIN_S)
        self._timer: asyncio.TimerHandle | None = None
        self._mended: float | None = None
        self._revived: float | None = None
        self._reviving: frozenset[str] = frozenset()

    def apply(self, wanted: Mapping[str, str | None]) -> dict[str, str]:
        """Make the links, see `Links.apply`; returns those that could not be made, with the reason."""
        self._cancel()
        try:
            failed = self._links.apply(wanted)
        except GenericdpError as error:
            _log.error(str(error), hint=error.hint)
            self._retry.failed()
            return dict.fromkeys(wanted, str(error))
        self._retry.tried(not failed)
        if self._reviving:
            if any(wanted.get(name) for name in self._reviving):
                self._revived = asyncio.get_running_loop().time()
            self._reviving = frozenset()
        if self._links.dead:
            self._schedule_dead()
        return failed

    def dead(self) -> frozenset[str]:
        """The links that another process has pointed at themselves since they were made."""
        return self._links.dead_now()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Notice within the block when somebody else changes a link."""
        watch = DirectoryWatch(self._links.directory, self._hear)
        try:
            yield
        finally:
            watch.close()
            self._cancel()
            self._retry.succeeded()
            self._links.close()

    def _hear(self, names: frozenset[str]) -> None:
        # Changes by this process arrive here, too.
        changed = self._links.changed(names)
        if changed.dead:
            self._schedule_dead()
        if not changed.others:
            return
        now, pause = asyncio.get_running_loop().time(), AGAIN_S if names else REVIVE_AGAIN_S
        if self._mended is None or now - self._mended > pause:
            self._mended = now
            _log.warning("the stable links were changed, restoring them", directory=self._links.directory)
            self._again()
        elif self._timer is None:  # somebody changes them again and again
            self._timer = asyncio.get_running_loop().call_later(pause, self._again)

    def _schedule_dead(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait = 0.0 if self._revived is None else self._revived + REVIVE_AGAIN_S - loop.time()
            self._timer = loop.call_later(max(0.0, wait), self._revive)

    def _revive(self) -> None:
        self._timer = None
        self._reviving = self._links.changed().dead
        self._links.revive(self._reviving)
        self._on_dead(self._reviving)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
