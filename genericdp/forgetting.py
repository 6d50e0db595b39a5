"""Forgets unplugged devices that no container holds any more.

The rules of this file:

* A device is forgotten only after its grace period and on evidence: the kubelet says that no container
  holds it. A kubelet that has just started does not know its pods yet, so it is not asked.
"""

import asyncio
import contextlib
from collections.abc import Callable

from genericdp.core.status.holdings import are_complete
from genericdp.kubelet import podresources
from genericdp.kubelet.socket import KubeletSocket

#: How long to wait before asking again about a device whose grace period has passed, in seconds.
ASK_AGAIN_S = 60.0


class Forgetting:
    """Asks the kubelet who holds devices whenever a grace period has passed.

    kubelet        the kubelet that is asked
    pod_resources  the socket of its PodResources API
    now            the clock of `due`, in seconds
    due            when the next grace period ends; None without one
    forget         called with the ids that are held; forgets all others whose grace period has passed
    """

    def __init__(
        self,
        kubelet: KubeletSocket,
        pod_resources: str,
        *,
        now: Callable[[], float],
        due: Callable[[], float | None],
        forget: Callable[[frozenset[str]], None],
    ) -> None:
        self._kubelet = kubelet
        self._pod_resources = pod_resources
        self._now = now
        self._due = due
        self._forget = forget
        self._changed = asyncio.Event()

    def look_again(self) -> None:
        """Take into account that `due` may have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._changed.clear()
            due = self._due()
            wait = None if due is None else due - self._now()
            if wait is None or wait > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._changed.wait()
                continue
            if self._kubelet_knows_its_pods():
                holdings = await podresources.ask(self._pod_resources)
                # Meanwhile another kubelet may have started.
                if holdings is not None and self._kubelet_knows_its_pods():
                    self._forget(frozenset(id_ for _, id_ in holdings))
            await asyncio.sleep(ASK_AGAIN_S)

    def _kubelet_knows_its_pods(self) -> bool:
        up_s = asyncio.get_running_loop().time() - self._kubelet.since
        return self._kubelet.incarnation is not None and are_complete(up_s)
