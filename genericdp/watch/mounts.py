"""Notices that something was mounted or unmounted, which inotify(7) does not report.

The rules of this file:

* The kernel reports each change of the mount table as an exceptional condition of mountinfo
  (proc_pid_mountinfo(5)). An event loop does not wait for those, and mountinfo is always readable. So an
  epoll instance waits for them, and the event loop waits until that instance is readable.
* A change is a hint, and nothing is read: each listener looks at its own directories. On a busy node,
  containers mount and unmount all the time. So the first change is passed on at once, and the next ones
  together after PAUSE_S, during which the process is not woken.
* All listeners of an event loop share two descriptors.
* While mounts cannot be watched, listeners look every few seconds, and a warning is logged.
"""

import asyncio
import errno
import os
import select
from collections.abc import Callable
from contextlib import ExitStack

from genericdp import log
from genericdp.errors import what_is_short

MOUNTINFO = "/proc/self/mountinfo"

#: How long further changes wait, in seconds.
PAUSE_S = 0.1

#: How often to poll, and try to watch, what cannot be watched, in seconds.
AGAIN_S = 5.0

_log = log.get(__name__)


def listen(tell: Callable[[], None]) -> Callable[[], None]:
    """Call `tell` from the running event loop when something may have been mounted or unmounted.

    Returns the function that ends it. The caller must look at its directories after this call.
    """
    loop = asyncio.get_running_loop()
    if loop not in _watches:
        _watches[loop] = _MountWatch(loop)
    watch = _watches[loop]
    watch.listeners.append(tell)

    def end() -> None:
        watch.listeners.remove(tell)
        if not watch.listeners:
            del _watches[loop]
            watch.close()

    return end


class _MountWatch:
    """Calls its listeners from this event loop until `close`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.listeners: list[Callable[[], None]] = []
        self._loop = loop
        self._epoll: select.epoll | None = None
        self._descriptors = ExitStack()
        self._timer: asyncio.TimerHandle | None = None
        self._has_warned = False
        self._listen()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._let_go()

    def _listen(self) -> None:
        """Hear the next change, or look again after a while."""
        try:
            if self._epoll is None:
                self._epoll = self._descriptors.enter_context(select.epoll())
                mountinfo = os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC)
                self._descriptors.callback(os.close, mountinfo)
                self._epoll.register(mountinfo, select.EPOLLPRI)
            self._loop.add_reader(self._epoll, self._hear)
        except OSError as error:
            self._let_go()
            self._timer = self._loop.call_later(AGAIN_S, self._go_on)
            if not self._has_warned:
                self._has_warned = True
                _log.warning(
                    "cannot watch mounts, looking every few seconds instead",
                    why=f"cannot watch '{MOUNTINFO}': {error.strerror}",
                    hint=_what_to_do(error),
                )
            return
        if self._has_warned:
            self._has_warned = False
            _log.info("watching mounts again")

    def _hear(self) -> None:
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll)
        self._timer = self._loop.call_later(PAUSE_S, self._go_on)
        self._tell()

    def _go_on(self) -> None:
        self._timer = None
        self._listen()
        # The kernel reports a change to the first poll after it, which may have been that of add_reader.
        self._tell()

    def _tell(self) -> None:
        for tell in tuple(self.listeners):
            if tell in self.listeners:  # a call before this one may have ended it
                tell()

    def _let_go(self) -> None:
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll)
            self._epoll = None
        self._descriptors.close()


#: One for each event loop in which somebody listens.
_watches: dict[asyncio.AbstractEventLoop, _MountWatch] = {}


def _what_to_do(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "raise the sysctl fs.epoll.max_user_watches"
    return what_is_short(error) or "genericdp needs /proc"
