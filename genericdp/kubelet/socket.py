"""kubelet.sock: which kubelet listens on it, if any.

The rules of this file:

* The directory is watched by inotify, and only the name kubelet.sock counts: the kubelet writes its
  checkpoint beside it after every list that it receives.
* A kubelet leaves its socket behind when it stops, and binds a new one before it listens. So a kubelet
  counts as up only once its socket accepts a connection. This is tried in quick succession after an
  event and seldom later.
* A kubelet that comes back is followed at once. Only after `BURST` in quick succession does each one wait.
* A kubelet that another genericdp serves counts as down until that one ends (`lock`), and what was registered
  there ends at once. If somebody removes the lock, the one that serves makes it again; if another one was
  faster, that one serves.
* Whoever waits here serves nobody: what is registered meanwhile would be so at a kubelet of which nothing is
  known, or that of another genericdp.
* All resources share one channel to one incarnation of the kubelet. A new incarnation gets a new
  channel, because an old one waits out its back-off.
* gRPC frees all that it has with its last object, starts anew with the next one, and aborts the process if it
  lacks descriptors then. So an idle channel stays open (`idle_channel`), whether there is a kubelet or not.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

import grpc
import grpc.aio

from genericdp import log
from genericdp.kubelet.api.deviceplugin import KUBELET_SOCKET
from genericdp.kubelet.endpoints import report_strangers, sweep
from genericdp.kubelet.socketfile import ABSENT, SocketFile
from genericdp.lock import NAME, DirectoryLock
from genericdp.messages import private_channel
from genericdp.retry import Retry
from genericdp.unixsocket import accepts
from genericdp.watch import DirectoryWatch

#: Identifies one run of the kubelet: a number that no other run has.
Incarnation = int

#: The pause between two tries to connect, in seconds: short at first, longer while nobody listens.
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 2.0

#: How many kubelets may follow each other without a pause, and how far apart further ones are, in seconds. A
#: kubelet that crashes is started again after 10 s by its own unit, after 5 s by k3s.
BURST = 10
APART_S = 2.0

#: How often to check whether another genericdp has ended, in seconds.
AGAIN_S = 0.5

#: How long a killed genericdp may still seem to listen after the kernel has released its lock, in seconds.
_ENDING_S = 1.0

_log = log.get(__name__)


class KubeletSocket:
    """Follows kubelet.sock in the device plugin directory, which need not exist yet.

    incarnation  which kubelet listens; None without one
    since        when it was first seen, on the clock of the event loop
    rival        a kubelet listens, and another genericdp serves it
    """

    def __init__(
        self,
        directory: str,
        on_change: Callable[[bool], None] = lambda _: None,
        *,
        on_rival: Callable[[], None] = lambda: None,
        apart_s: float = APART_S,
    ) -> None:
        self.directory = directory
        self.path = os.path.join(directory, KUBELET_SOCKET)
        self.incarnation: Incarnation | None = None
        self.since = 0.0
        self.rival = False
        self._on_change = on_change
        self._on_rival = on_rival
        self._lock = DirectoryLock(directory)
        self._locking = Retry(self.look_again)
        self._report: asyncio.TimerHandle | None = None
        self._apart_s = apart_s
        self._file: SocketFile | None = None
        self._count = 0
        self._left: Incarnation = 0
        self._due = 0.0
        self._changed = asyncio.Event()
        self._event = asyncio.Event()
        self._channel: grpc.aio.Channel | None = None

    async def follow(self) -> None:
        """Keep `incarnation` up to date, until cancelled."""
        watch = DirectoryWatch(self.directory, self._hear)
        try:
            while True:
                self._event.clear()
                if self._file is None or not self._file.is_in_place():
                    if self.is_there():
                        await self._rest()
                    await self._take(await self._next())
                elif not await self._keeps_lock():
                    await self._leave()
                    continue
                self._locking.tried(self._file is None or not self._lock.waits)
                if self._file is not None or not self.is_there():
                    await self._event.wait()
        finally:
            watch.close()
            self._let_go()
            if self._report is not None:
                self._report.cancel()
            self._locking.succeeded()
            self._lock.close()
            await self._close_channel()

    def is_there(self) -> bool:
        """Whether kubelet.sock exists, even if nobody listens."""
        return os.path.exists(self.path)

    async def wait_until_there(self) -> Incarnation:
        """Wait until a kubelet listens; returns which one."""
        while self.incarnation is None:
            await self._changed.wait()
        return self.incarnation

    async def wait_until_over(self, incarnation: Incarnation) -> None:
        """Return once another kubelet listens, or another genericdp serves it.

        A socket that was merely deleted does not count.
        """
        while self.incarnation in (incarnation, None) and self._left < incarnation:
            await self._changed.wait()

    def channel(self) -> grpc.aio.Channel:
        """A channel to the kubelet that listens now."""
        if self._channel is None:
            self._channel = private_channel(
                f"unix:{self.path}",
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
            )
        return self._channel

    @contextlib.asynccontextmanager
    async def idle_channel(self) -> AsyncIterator[None]:
        """Keep what gRPC has started until the end of the block.

        Enter it first, so that it ends last: after a shortage of descriptors, gRPC may wait for ever when its
        last object is closed.
        """
        channel = grpc.aio.insecure_channel(f"unix:{self.path}")
        try:
            yield
        finally:
            await channel.close()

    def look_again(self) -> None:
        """Check, without an event, whether the kubelet is another one.

        While mounts cannot be watched, this finds a file system that is mounted over the directory.
        """
        self._event.set()

    def _hear(self, names: frozenset[str]) -> None:
        if not names or names & {KUBELET_SOCKET, NAME} or self.rival:
            self._event.set()

    async def _rest(self) -> None:
        """Wait if too many sockets have followed each other. No event ends the wait: there are too many."""
        early_s = self._due - (BURST - 1) * self._apart_s - _now()
        if early_s > 0:
            await self._take(None)
            _log.warning("kubelet.sock is replaced again and again", socket=self.path)
            await asyncio.sleep(early_s)
        self._due = max(self._due, _now()) + self._apart_s

    async def _next(self) -> SocketFile | None:
        """The socket in place, once it accepts a connection; None as soon as it is gone or replaced."""
        try:
            found = SocketFile(self.path)
        except OSError as error:
            if error.errno not in ABSENT:
                await self._pause(_LONGEST_PAUSE_S)
            return None
        pause = _FIRST_PAUSE_S
        try:
            while found.is_in_place():
                try:
                    listens = accepts(self.path)
                    if listens and self._is_ours():
                        return found
                except OSError:  # too few descriptors, or no permission: no event says when that ends
                    await self._take(None)
                    await self._pause(_LONGEST_PAUSE_S)
                    continue
                if listens:
                    await self._leave()
                    await self._pause(AGAIN_S)
                else:
                    await self._take(None)
                    await self._pause(pause)
                    pause = min(_LONGEST_PAUSE_S, pause * 1.5)
        except BaseException:
            found.close()
            raise
        found.close()
        self._see_rival(False)
        return None

    def _is_ours(self) -> bool:
        """Whether no other genericdp serves the kubelet. Removes the sockets of those that were killed.

        Raises OSError if it has too few descriptors, or too little memory, to tell. Nothing is decided then.
        """
        if self._lock.is_held():
            return True
        if not self._lock.taken():
            return False
        self._see_rival(False)
        try:
            others = sweep(self.directory)
        except OSError:
            self._lock.release()
            raise
        if others:
            loop = asyncio.get_running_loop()
            self._report = loop.call_later(_ENDING_S, report_strangers, self.directory, others)
        return True

    async def _keeps_lock(self) -> bool:
        """Whether still no other genericdp serves the kubelet."""
        try:
            return self._lock.is_held() or self._lock.taken()
        except OSError:  # too few descriptors, or too little memory, to tell
            await self._pause(_LONGEST_PAUSE_S)
            self._event.set()
            return True

    async def _leave(self) -> None:
        """Another genericdp serves the kubelet: what this one has registered there has to end."""
        self._left = self._count
        await self._take(None)
        self._wake_up()
        self._see_rival(True)

    def _see_rival(self, rival: bool) -> None:
        if rival != self.rival:
            self.rival = rival
            self._on_rival()
            if rival:
                _log.warning(
                    "another genericdp serves this kubelet; waiting until it ends",
                    directory=self.directory,
                    hint="remove one of the two, or give both the same 'link_dir'",
                )

    async def _pause(self, seconds: float) -> None:
        """Wait for an event, but not longer than this."""
        self._event.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()

    async def _take(self, file: SocketFile | None) -> None:
        self._let_go()
        self._file = file
        if file is not None or self.incarnation is not None:
            self._count += file is not None
            self.incarnation = None if file is None else self._count
            self.since = _now()
            self._wake_up()
            self._on_change(file is not None)
        await self._close_channel()

    def _wake_up(self) -> None:
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    async def _close_channel(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


def _now() -> float:
    return asyncio.get_running_loop().time()
