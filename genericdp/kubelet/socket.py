"""kubelet.sock: which kubelet listens on it, if any.

The rules of this file:

* The directory is watched by inotify, and only the name kubelet.sock counts: the kubelet writes its
  checkpoint beside it after every list that it receives.
* A kubelet leaves its socket behind when it stops, and binds a new one before it listens. So a kubelet
  counts as up only once its socket accepts a connection. This is tried in quick succession after an
  event and seldom later.
* All resources share one channel to one incarnation of the kubelet. A new incarnation gets a new
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

#: Identifies one run of the kubelet: device, inode and modification time of its socket, which is the
#: time of its bind because nobody writes to a socket file.
Incarnation = tuple[int, int, int]

#: The pause between two tries to connect, in seconds: short at first, longer while nobody listens.
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 2.0


class KubeletSocket:
    """Follows kubelet.sock in the device plugin directory, which need not exist yet.

    incarnation  which kubelet listens; None without one
    since        when it was first seen, on the clock of the event loop
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
        """Keep `incarnation` up to date, until cancelled."""
        watch = DirectoryWatch(self.directory, self._hear)
        try:
            while True:
                self._event.clear()
                found = self._look()
                if found != self.incarnation:
                    await self._take(await self._wait_until_accepting(found) if found else None)
                if found == self.incarnation and not self._event.is_set():
                    await self._event.wait()
        finally:
            watch.close()
            await self._close_channel()

    def is_there(self) -> bool:
        """Whether kubelet.sock exists, even if nobody listens."""
        return self._look() is not None

    async def wait_until_there(self) -> Incarnation:
        """Wait until a kubelet listens; returns which one."""
        while self.incarnation is None:
            await self._changed.wait()
        return self.incarnation

    async def wait_for_another(self, incarnation: object) -> None:
        """Return once another kubelet listens. A socket that was merely deleted does not count."""
        while self.incarnation in (incarnation, None):
            await self._changed.wait()

    def channel(self) -> grpc.aio.Channel:
        """A channel to the kubelet that listens now."""
        if self._channel is None:
            # New connections each time; the authority is the one that grpc-go expects.
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
        """Check, without an event, whether the kubelet is another one.

        inotify(7) does not report a file system that is mounted over the directory.
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

    async def _wait_until_accepting(self, incarnation: Incarnation) -> Incarnation | None:
        """Return the incarnation once it accepts a connection; None as soon as it is gone or replaced."""
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
