"""kubelet.sock: whether a kubelet listens there, and which one.

The rules of this file:

* The directory is watched by inotify and only the name kubelet.sock counts: the kubelet writes its
  checkpoint beside it after every list that it gets.
* A kubelet leaves its socket behind when it stops, and binds a new one before it listens. So a
  socket counts as there only once it accepts a connection, which is tried in quick succession
  after an event and seldom later.
* All resources share one channel to one incarnation of the kubelet; a new incarnation gets a new
  channel, because an old one waits out its back-off.
"""

import asyncio
import os
from collections.abc import Callable

import grpc
import grpc.aio

from genericdp.kubelet.api.deviceplugin import KUBELET_SOCKET
from genericdp.unixsocket import accepts
from genericdp.watch import DirectoryWatch

#: Which kubelet it is: device, inode and birth of its socket (nobody writes to a socket file, so
#: its time of modification is that of its bind).
Incarnation = tuple[int, int, int]

#: Between two tries to connect, in seconds: quick at first, calm with a socket nobody listens on.
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 2.0


class KubeletSocket:
    """Follows kubelet.sock in the device plugin directory, which need not exist yet.

    incarnation  which kubelet listens, None without one
    since        when that was noticed, on the clock of the event loop
    """

    def __init__(self, directory: str, on_change: Callable[[bool], None] = lambda _: None) -> None:
        self.directory = directory
        self.path = os.path.join(directory, KUBELET_SOCKET)
        self.incarnation: Incarnation | None = None
        self.since = 0.0
        self._on_change = on_change
        self._changed = asyncio.Event()
        self._event = asyncio.Event()
        self._channel: grpc.aio.Channel | None = None

    async def follow(self) -> None:
        """Keep `incarnation` true, until cancelled."""
        watch = DirectoryWatch(self.directory, self._hear)
        try:
            while True:
                self._event.clear()
                found = self._look()
                if found != self.incarnation:
                    await self._take(await self._once_it_accepts(found) if found else None)
                if found == self.incarnation and not self._event.is_set():
                    await self._event.wait()
        finally:
            watch.close()
            await self._close_channel()

    def is_there(self) -> bool:
        """Whether there is a kubelet.sock, whoever listens."""
        return self._look() is not None

    async def wait_until_there(self) -> Incarnation:
        """Return once a kubelet listens; which one."""
        while self.incarnation is None:
            await self._changed.wait()
        return self.incarnation

    async def wait_for_another(self, incarnation: object) -> None:
        """Return once another kubelet listens. A socket that was merely deleted is none."""
        while self.incarnation in (incarnation, None):
            await self._changed.wait()

    def channel(self) -> grpc.aio.Channel:
        """A channel to the kubelet that is there now."""
        if self._channel is None:
            # A fresh pool of connections each time; the authority is what grpc-go expects.
            self._channel = grpc.aio.insecure_channel(
                f"unix:{self.path}",
                options=(
                    ("grpc.default_authority", "localhost"),
                    ("grpc.use_local_subchannel_pool", 1),
                    ("grpc.initial_reconnect_backoff_ms", 100),
                    ("grpc.max_reconnect_backoff_ms", 1000),
                ),
            )
        return self._channel

    def look_again(self) -> None:
        """Look whether the kubelet is another one, although nothing was heard.

        A file system mounted over the directory is in no event of inotify(7).
        """
        self._event.set()

    def _hear(self, names: frozenset[str]) -> None:
        if not names or KUBELET_SOCKET in names:
            self._event.set()

    def _look(self) -> Incarnation | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_mtime_ns

    async def _once_it_accepts(self, incarnation: Incarnation) -> Incarnation | None:
        """Return it once it accepts a connection; None as soon as it is gone or another."""
        pause = _FIRST_PAUSE_S
        while self._look() == incarnation:
            if accepts(self.path):
                return incarnation
            self._event.clear()
            try:
                async with asyncio.timeout(pause):
                    await self._event.wait()
            except TimeoutError:
                pause = min(_LONGEST_PAUSE_S, pause * 1.5)
        return None

    async def _take(self, incarnation: Incarnation | None) -> None:
        was, self.incarnation = self.incarnation, incarnation
        self.since = asyncio.get_running_loop().time()
        if was != incarnation:
            event, self._changed = self._changed, asyncio.Event()
            event.set()
            self._on_change(incarnation is not None)
        await self._close_channel()

    async def _close_channel(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
