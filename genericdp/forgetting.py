"""Asks the kubelet who holds devices, so that those that nobody holds can be forgotten or given out again.

The rules of this file:

* A device is forgotten only after its grace period and on evidence: the kubelet says that no container
  holds it. A kubelet that has just started does not know all its pods yet: the holders that it names count,
  but the absence of one proves nothing.
* Nothing is asked while nothing depends on the answer, except once after each start of the kubelet.
"""

import asyncio
import contextlib
from collections.abc import Callable

from genericdp.core.memory.held import Answer
from genericdp.core.status.holdings import are_complete
from genericdp.kubelet import podresources
from genericdp.kubelet.socket import KubeletSocket

#: How long to wait before asking again about a device whose grace period has passed, in seconds.
ASK_AGAIN_S = 60.0

#: The same while a device has to wait until nobody holds it, or while a kubelet has not answered at all.
ASK_AGAIN_SOON_S = 10.0

#: How often a kubelet that has just started is asked until it answers. A node may have no PodResources API.
FIRST_TRIES = 6


class Forgetting:
    """Asks the kubelet who holds devices whenever something depends on it.

    kubelet        the kubelet that is asked
    pod_resources  the socket of its PodResources API
    now            the clock of `due`, in seconds
    due            when the next grace period ends; None without one
    waits          whether a device has to wait until nobody holds it
    tell           called with each answer
    """

    def __init__(
        self,
        kubelet: KubeletSocket,
        pod_resources: str,
        *,
        now: Callable[[], float],
        due: Callable[[], float | None],
        waits: Callable[[], bool],
        tell: Callable[[Answer], None],
    ) -> None:
        self._kubelet = kubelet
        self._pod_resources = pod_resources
        self._now = now
        self._due = due
        self._waits = waits
        self._tell = tell
        self._changed = asyncio.Event()
        self._asked: object = None
        self._tries = 0

    def look_again(self) -> None:
        """Take into account that more may depend on an answer, or that a kubelet has started."""
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            wait = self._wait_s()
            if wait is None or wait > 0:
                await self._until_changed(wait)
            else:
                is_first = self._is_new()
                await self._ask()
                if not is_first or self._is_new():
                    await self._pause()

    def _wait_s(self) -> float | None:
        """How long there is nothing to ask, in seconds; None: until something changes."""
        if self._kubelet.incarnation is None:
            return None
        if self._is_new() or self._waits():
            return 0.0
        due = self._due()
        return None if due is None else due - self._now()

    def _is_new(self) -> bool:
        """Whether the kubelet has not answered since it started, and still may."""
        incarnation = self._kubelet.incarnation
        if incarnation != self._asked:
            self._asked, self._tries = incarnation, FIRST_TRIES
        return incarnation is not None and self._tries > 0

    async def _until_changed(self, seconds: float | None) -> None:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _pause(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            soon = self._is_new() or self._waits()
            left = began + (ASK_AGAIN_SOON_S if soon else ASK_AGAIN_S) - loop.time()
            if left <= 0:
                return
            await self._until_changed(left)

    async def _ask(self) -> None:
        incarnation = self._kubelet.incarnation
        complete, asked = self._kubelet_knows_its_pods(), self._now()
        self._tries -= 1
        holdings = await podresources.ask(self._pod_resources)
        # Meanwhile another kubelet may have started.
        if holdings is not None and self._kubelet.incarnation == incarnation:
            self._tries = 0
            self._tell(Answer(frozenset(holdings), asked, complete))

    def _kubelet_knows_its_pods(self) -> bool:
        return are_complete(asyncio.get_running_loop().time() - self._kubelet.since)
