"""The pod workers of a kubelet process: each starts the containers of one pod, again and again if need be.

The rules of this file:

* A pod has one worker, so that none of its containers is started twice at once.
* kubelet 1.36 (`pod_workers.go`): a worker whose work failed does it again 10 to 15 s later. News of its
  pod makes it work at once, or as soon as it is idle; a new pod's sandbox is such news, half a second after
  the pod. So a start that failed is tried again after half a second; one that timed out, at once.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from genericdp.simulator.clock import Clock
from genericdp.simulator.pods import PodStatus

#: kubelet 1.36: `backOffPeriod` and `workerBackOffPeriodJitterFactor`.
BACK_OFF_S = 10.0
BACK_OFF_JITTER = 0.5
#: How long after a new pod the kubelet hears of its sandbox, as measured; it lists sandboxes every second.
SANDBOX_NEWS_S = 0.5
#: How often the kubelet looks for containers that have ended (`genericPlegRelistPeriod`).
RELIST_S = 1.0


class ByItself(Protocol):
    """Awaits what nobody asked for and nobody awaits; the caller of the kubelet hears of its errors later."""

    def __call__(self, work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]: ...


class Workers:
    """The workers of all pods. `sync` does a pod's work and returns whether it succeeded."""

    def __init__(
        self,
        sync: Callable[[PodStatus], Awaitable[bool]],
        *,
        clock: Clock,
        rng: random.Random,
        by_itself: ByItself,
    ) -> None:
        self._sync = sync
        self._clock = clock
        self._rng = rng
        self._by_itself = by_itself
        self._locks: dict[str, asyncio.Lock] = {}
        self._retries: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def busy(self, pod: PodStatus) -> bool:
        """Whether the pod's worker is at work."""
        return self._lock(pod).locked()

    async def start(self, pod: PodStatus) -> None:
        """Do the work of a new pod."""
        self._later(pod, SANDBOX_NEWS_S)
        await self.sync(pod)

    def hear_of_exit(self, pod: PodStatus) -> None:
        """A container of the pod has ended."""
        self._later(pod, RELIST_S)

    async def sync(self, pod: PodStatus) -> None:
        """Do the work of a pod."""
        await self.do(pod, lambda: self._sync(pod))

    async def do(self, pod: PodStatus, work: Callable[[], Awaitable[bool]]) -> None:
        """Let the pod's worker do this; after a failure it syncs the pod later."""
        async with self._lock(pod):
            succeeded = await work()
            retry = self._retries.pop(pod.uid, None)
            if retry is not None:
                retry.cancel()
            if not succeeded:
                back_off_s = BACK_OFF_S * (1 + BACK_OFF_JITTER * self._rng.random())
                self._retries[pod.uid] = self._later(pod, back_off_s)

    async def close(self) -> None:
        """End with the process."""
        # A panic may come from a worker, which cannot wait for its own end.
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _lock(self, pod: PodStatus) -> asyncio.Lock:
        return self._locks.setdefault(pod.uid, asyncio.Lock())

    def _later(self, pod: PodStatus, seconds: float) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._sync_at(pod, self._clock.now() + seconds))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _sync_at(self, pod: PodStatus, time: float) -> None:
        # The clock may have moved before this task began.
        left = time - self._clock.now()
        if left > 0:
            await self._clock.sleep(left)
        # From here on it is the work itself, not what the next failure puts off.
        if self._retries.get(pod.uid) is asyncio.current_task():
            del self._retries[pod.uid]
        await self._by_itself(self.sync(pod))
