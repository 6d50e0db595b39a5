"""The simulated kubelet as its user sees it: start it, look at the node, run pods, make it fail.

The rules of this file:

* It is the simulator's whole interface, apart from values; it decides nothing.
* A panic is recorded and raised again at the end of the `async with`, so no test can miss it.
"""

import asyncio
import contextlib
import os
import random
import secrets
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from genericdp.simulator.changes import Changes
from genericdp.simulator.clock import Clock, WallClock
from genericdp.simulator.devices.topology import Policy
from genericdp.simulator.errors import KubeletPanicError, SimulatorError
from genericdp.simulator.faults import Faults, empty
from genericdp.simulator.gates import Gates
from genericdp.simulator.node.container_runtime import ContainerRuntime
from genericdp.simulator.node.node_status import NodeStatusHistory
from genericdp.simulator.plugins.client_table import Generation
from genericdp.simulator.pods import ContainerStatus, Phase, Pod, PodStatus
from genericdp.simulator.process import Configuration, Directories, Process
from genericdp.simulator.runtimes.runtime import CONTAINERD, Runtime
from genericdp.simulator.view import View

AnyPath = str | os.PathLike[str]

_Result = TypeVar("_Result")


class Kubelet(View):
    """A simulated kubelet with its node, its pods and its container runtime.

    root             its --root-dir; the directories for its sockets are created below it
    generation       how it tells plugins of one resource apart
    runtime          CONTAINERD, CRIO, or another Runtime
    clock            with a ManualClock, grace periods, deadlines and back-off pass when the test says so
    seed             for everything that the real kubelet does in random order
    policy           the topology manager's
    numa_nodes       the NUMA nodes of the machine
    status_period_s  how often to publish the node status and retry waiting containers; None: only on `tick()`
    watchdog_s       how long a plugin may take to answer a call without a deadline; a real kubelet waits
                     forever, but its health check fails after five minutes
    """

    def __init__(
        self,
        root: AnyPath,
        *,
        generation: Generation = Generation.LEGACY,
        runtime: Runtime = CONTAINERD,
        clock: Clock | None = None,
        seed: int = 0,
        policy: Policy = Policy.NONE,
        numa_nodes: tuple[int, ...] = (0,),
        status_period_s: float | None = None,
        watchdog_s: float = 300.0,
    ) -> None:
        super().__init__(Directories(Path(root)))
        self.clock: Clock = clock or WallClock()
        self.node_status = NodeStatusHistory()
        self.health_pushes: list[str] = []
        self.panics: list[KubeletPanicError] = []
        self._gates = Gates()
        self._configuration = Configuration(
            self._directories,
            generation,
            runtime,
            self.clock,
            self._gates,
            policy,
            numa_nodes,
            watchdog_s,
        )
        self.faults = Faults(self.directory, self._gates, lambda: self._running.plugins)
        self._rng = random.Random(seed)  # noqa: S311  # no secret depends on these orders
        self._changes = Changes()
        self.container_runtime = ContainerRuntime(
            self._node, runtime, self.clock, self.runtime_socket, on_exit=self._hear_of_exit
        )
        self._status_period_s = status_period_s
        self._timers: list[asyncio.Task[None]] = []
        self._failures: list[BaseException] = []

    # Its life.

    async def __aenter__(self) -> Self:
        await self.container_runtime.start()
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.running:
            await self.stop()
        await self.container_runtime.stop()
        problems = [*self.panics, *self._failures]
        if problems and error is None:
            raise problems[0]

    async def start(self, *, readmit: bool = True) -> None:
        """Start a process. It readmits the pods that the node already has, or leaves that to `readmit()`."""
        if self._process is not None:
            raise SimulatorError("the kubelet is already running")
        process = Process(
            self._configuration,
            self._node,
            rng=self._rng,
            attempts=self.registrations,
            refusal=lambda: self.faults.refusal,
            on_change=self._changes.notify,
            on_news=self._push_health,
            on_failure=self._failures.append,
            by_itself=self._by_itself,
        )
        self._process = process
        if not process.had_checkpoint:
            self.node_status.reset(self.clock.now())
        await process.start()
        if readmit:
            await self.readmit()
        if self._status_period_s is not None:
            self._timers.append(asyncio.create_task(self._by_itself(self._run_timer(self._status_period_s))))
        self._changes.notify()

    async def stop(self) -> None:
        """End the process. kubelet.sock stays where it is, and containers keep running."""
        process = self._running
        self._process = None
        # A panic may come from the timer itself, which cannot wait for its own end.
        timers = [timer for timer in self._timers if timer is not asyncio.current_task()]
        self._timers.clear()
        for timer in timers:
            timer.cancel()
        await asyncio.gather(*timers, return_exceptions=True)
        await process.stop()
        self._changes.notify()

    async def crash(self) -> None:
        """End the process in the middle of writing its checkpoint."""
        await self.stop()
        with contextlib.suppress(FileNotFoundError):
            (self.directory / f".{secrets.randbelow(10**9)}").write_text("{")

    async def restart(self, *, readmit: bool = True) -> None:
        """`systemctl restart kubelet`."""
        await self.stop()
        await self.start(readmit=readmit)

    async def reboot(self, *, wipe: Iterable[AnyPath] = (), readmit: bool = True) -> None:
        """Restart the machine: every container ends, and the directories in `wipe` (a tmpfs) are emptied."""
        if self.running:
            await self.stop()
        for pod in self._node.active():
            pod.stop_containers()
        for directory in wipe:
            empty(Path(directory))
        await self.start(readmit=readmit)

    async def readmit(self, *, sources_ready: bool = False) -> None:
        """Admit the node's pods again and start what is not running, as a kubelet does after its start.

        `sources_ready`: do it as if the kubelet had already heard of all pods.
        """
        process = self._running
        if sources_ready:
            process.sources_ready = True
        for pod in self._node.active():
            await self._take(pod)
        process.sources_ready = True
        self._changes.notify()

    # Its loops.

    def tick(self) -> bool:
        """Run the node status loop, which a kubelet does every 10 s. Returns whether it published."""
        ledger = self._running.ledger
        removed = ledger.remove_expired(self.clock.now())
        if removed:
            self._running.try_to_save()
        counts = ledger.counts()
        changed = self.node_status.publish(self.clock.now(), counts.capacity, counts.allocatable, removed)
        self._changes.notify()
        return changed

    async def reconcile(self) -> None:
        """Run one round of the plugin watcher, which a kubelet does every second."""
        await self._running.watcher.reconcile()

    async def wait_until(self, predicate: Callable[[], object], *, timeout_s: float = 30.0) -> None:
        """Return once `predicate()` is true, checked after every change. Raises TimeoutError."""
        await self._changes.wait_until(predicate, timeout_s=timeout_s, describe=self.describe)

    # Pods.

    async def admit(self, spec: Pod) -> PodStatus:
        """Bind a pod to this node: admit it and start it. KubeletPanicError where a real kubelet crashes."""
        if not self.running:
            raise SimulatorError("the kubelet is not running")
        pod = self._node.new(spec)
        await self._take(pod)
        return pod

    async def sync(self, pod: PodStatus) -> None:
        """Retry the waiting containers of a pod now; by itself a kubelet does so after 10 to 15 s."""
        await self._guarded(self._running.workload.sync(pod))

    async def restart_container(self, pod: PodStatus, name: str) -> ContainerStatus:
        """End a container's process and create the container again, from the cached answer."""
        workload = self._running.workload
        status = pod.container(name)
        await self._guarded(workload.restart(pod, name))
        return status

    def finish(self, pod: PodStatus) -> None:
        """End all containers of a pod successfully; the next allocation or List frees its devices."""
        pod.stop_containers()
        pod.phase = Phase.SUCCEEDED
        self._changes.notify()

    def delete(self, pod: PodStatus) -> None:
        """Delete a pod; the next allocation or List frees its devices; plugins are not notified."""
        pod.stop_containers()
        self._node.remove(pod)
        self._changes.notify()

    # Inside.

    async def _take(self, pod: PodStatus) -> None:
        """Admit a pod, and start it if it was admitted."""
        process = self._running
        published = self.node_status.now.allocatable
        admitted = process.workload.admit(pod, published, sources_ready=process.sources_ready)
        if await self._guarded(admitted):
            await self._guarded(process.workload.start(pod))

    async def _by_itself(self, work: Coroutine[Any, Any, None]) -> None:
        """Await something that no caller awaits; `__aexit__` raises its error."""
        try:
            await self._guarded(work)
        except Exception as error:  # noqa: BLE001  # raised later
            if error not in self.panics:
                self._failures.append(error)

    async def _guarded(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Await something that may crash the kubelet."""
        try:
            return await work
        except KubeletPanicError as panic:
            self.panics.append(panic)
            if self.running:
                await self.crash()
            raise
        finally:
            self._changes.notify()

    def _hear_of_exit(self, pod: PodStatus) -> None:
        """A container of a pod has ended; a kubelet that does not run sees it when it starts."""
        if self._process is not None:
            self._process.workload.hear_of_exit(pod)
        self._changes.notify()

    def _push_health(self, uids: set[str]) -> None:
        """Publish the status of these pods at once, not at their next sync."""
        for uid in sorted(uids):
            pod = self._node.pods.get(uid)
            if pod is not None and self._process is not None:
                self.health_pushes.append(pod.name)
                self._process.workload.publish_health(pod)

    async def _run_timer(self, period_s: float) -> None:
        """Do periodically what a kubelet does by itself. Ends with the process."""
        process = self._process
        while self._process is process:
            await self.clock.sleep(period_s)
            self.tick()
            await self.reconcile()
            for pod in self._node.active():
                await self._running.workload.sync(pod)
