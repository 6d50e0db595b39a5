"""The work of a kubelet process on its pods: it admits them and runs their containers.

The rules of this file:

* Admission is serial, as in the kubelet's main loop. Pods start concurrently, each by its own worker.
* A failed admission is final for the pod. A container that cannot be created waits until the pod's worker
  tries again, by itself or because of a call of `sync`.
* Pods and running containers belong to the node and outlive the kubelet's process.
"""

import asyncio
import random
from collections.abc import Mapping

from genericdp.simulator.clock import Clock
from genericdp.simulator.devices.allocation import Allocator
from genericdp.simulator.devices.ledger import Ledger
from genericdp.simulator.devices.topology import ANY, Hint, Policy, hints, merge
from genericdp.simulator.errors import DeviceError, SimulatorError
from genericdp.simulator.gates import Gates, Point
from genericdp.simulator.node.back_off import BackOff
from genericdp.simulator.node.container_config import container_config
from genericdp.simulator.node.node import Node
from genericdp.simulator.node.predicate import predicate_failure
from genericdp.simulator.node.worker import ByItself, Workers
from genericdp.simulator.pods import Container, ContainerState, ContainerStatus, Phase, PodStatus
from genericdp.simulator.runtimes.creation import create
from genericdp.simulator.runtimes.runtime import CreateContainerError, Runtime


class Workload:
    """Runs the pods of a node for one kubelet process."""

    def __init__(
        self,
        node: Node,
        ledger: Ledger,
        allocator: Allocator,
        *,
        runtime: Runtime,
        gates: Gates,
        policy: Policy,
        numa_nodes: tuple[int, ...],
        clock: Clock,
        rng: random.Random,
        by_itself: ByItself,
    ) -> None:
        self._node = node
        self._ledger = ledger
        self._allocator = allocator
        self._runtime = runtime
        self._gates = gates
        self._policy = policy
        self._numa_nodes = numa_nodes
        self._clock = clock
        self._back_off = BackOff()
        self._serial = asyncio.Lock()
        self._workers = Workers(self._sync, clock=clock, rng=rng, by_itself=by_itself)
        self._ran_at_start = {
            (pod.uid, status.spec.name)
            for pod in node.active()
            for status in pod.containers.values()
            if status.state is ContainerState.RUNNING
        }

    async def admit(self, pod: PodStatus, published: Mapping[str, int], *, sources_ready: bool) -> bool:
        """Admit or reject a pod. `published` is allocatable as in the last node status."""
        async with self._serial:
            try:
                for container in (*pod.spec.init_containers, *pod.spec.containers):
                    hint = self._align(pod, container)
                    if hint is None:
                        pod.reject(
                            "TopologyAffinityError", "Resources cannot be allocated with Topology locality"
                        )
                        return False
                    bypass = not sources_ready and (pod.uid, container.name) in self._ran_at_start
                    await self._allocator.allocate(pod, container, bypass=bypass, hint=hint)
            except DeviceError as error:
                pod.reject("UnexpectedAdmissionError", f"Allocate failed due to {error}, which is unexpected")
                return False
            others = [other for other in self._node.active() if other is not pod]
            failure = predicate_failure(pod, others, published, self._ledger.allocated)
            if failure is not None:
                pod.reject(*failure)
                return False
            pod.admitted = True
            return True

    async def start(self, pod: PodStatus) -> None:
        """Start the containers of a pod that was just admitted."""
        await self._workers.start(pod)

    async def sync(self, pod: PodStatus) -> None:
        """Start the containers of a pod that should be running and are not."""
        await self._workers.sync(pod)

    def hear_of_exit(self, pod: PodStatus) -> None:
        """A container of the pod has ended."""
        self._workers.hear_of_exit(pod)

    def syncing(self) -> list[str]:
        """The names of the pods whose containers are being started."""
        return [pod.name for pod in self._node.pods.values() if self._workers.busy(pod)]

    async def close(self) -> None:
        """Start nothing more."""
        await self._workers.close()

    async def _sync(self, pod: PodStatus) -> bool:
        """Returns whether everything runs that should."""
        if not self._exists(pod):
            return True
        if not pod.made_at:
            await self._gates.passes(Point.SANDBOX)
            pod.made_at = round(self._clock.now() * 1e9)
        for container in pod.spec.init_containers:
            status = pod.containers[container.name]
            if status.state is ContainerState.TERMINATED and not container.restartable:
                continue
            if not await self._run(pod, status):
                self._hold_back(pod)
                return False
            if not container.restartable:
                status.become(ContainerState.TERMINATED, "Completed")
        results = [await self._run(pod, pod.containers[container.name]) for container in pod.spec.containers]
        if all(results):
            pod.phase = self._phase(pod)
        self.publish_health(pod)
        return all(results)

    def _phase(self, pod: PodStatus) -> Phase:
        """The phase of a pod with nothing left to start."""
        statuses = [pod.containers[container.name] for container in pod.spec.containers]
        if any(status.exit_code is None or pod.restarts_after(status) for status in statuses):
            return Phase.RUNNING
        pod.stop_containers()
        return Phase.FAILED if any(status.exit_code for status in statuses) else Phase.SUCCEEDED

    async def restart(self, pod: PodStatus, name: str) -> ContainerStatus:
        """End a container's process and create the container again."""
        status = pod.container(name)
        if status.created is None:
            raise SimulatorError(f"container '{name}' of pod '{pod.name}' has never run; use sync")

        async def create_again() -> bool:
            status.become(ContainerState.WAITING)
            status.exit_code = None
            running = await self._run(pod, status)
            self.publish_health(pod)
            return running

        await self._workers.do(pod, create_again)
        return status

    def publish_health(self, pod: PodStatus) -> None:
        """Update `allocatedResourcesStatus`; init containers and sidecars have none."""
        for container in pod.spec.containers:
            pod.containers[container.name].resources = self._ledger.health(pod.uid, container.name)

    async def _run(self, pod: PodStatus, status: ContainerStatus) -> bool:
        """Create the container unless it is running. Returns whether nothing is left to do for it now."""
        if status.state is ContainerState.RUNNING:
            return True
        if status.exit_code is not None:
            if not status.spec.restartable and not pod.restarts_after(status):
                return True
            container = (pod.uid, status.spec.name)
            pause_s = self._back_off.wait_s(container, status.ended, self._clock.now())
            if pause_s:
                names = f"container={status.spec.name} pod={pod.name}_{pod.spec.namespace}({pod.uid})"
                why = f"back-off {_in_go(pause_s)} restarting failed {names}"
                status.become(ContainerState.WAITING, "CrashLoopBackOff", why)
                return False
            status.exit_code = None
        try:
            await self._allocator.pre_start(pod, status.spec)
            config = container_config(
                status.spec,
                self._allocator.responses(pod, status.spec),
                user_namespace=not pod.spec.host_users,
            )
        except DeviceError as error:
            status.become(ContainerState.WAITING, "CreateContainerConfigError", str(error))
            return False
        try:
            created = create(self._runtime, config)
        except CreateContainerError as error:
            status.become(ContainerState.WAITING, "CreateContainerError", str(error))
            return False
        await self._gates.passes(Point.CREATE)
        if status.created is not None:
            status.restarts += 1
        status.created, status.started = created, False
        status.created_at = round(self._clock.now() * 1e9)
        await self._gates.passes(Point.START)
        status.started = True
        if self._exists(pod):
            status.become(ContainerState.RUNNING)
        return True

    def _exists(self, pod: PodStatus) -> bool:
        """Whether there is anything to do for a pod."""
        return pod.active and pod.uid in self._node.pods

    def _hold_back(self, pod: PodStatus) -> None:
        for container in pod.spec.containers:
            status = pod.containers[container.name]
            if status.state is ContainerState.WAITING:
                status.become(ContainerState.WAITING, "PodInitializing")

    def _align(self, pod: PodStatus, container: Container) -> Hint | None:
        """The topology manager's hint for allocating, or None to reject the pod."""
        if self._policy is Policy.NONE:
            return ANY
        wishes = [
            self._wish(pod, container, resource, count)
            for resource, count in sorted(container.limits.items())
        ]
        hint, admitted = merge(self._policy, [wish for wish in wishes if wish is not None], self._numa_nodes)
        return hint if admitted else None

    def _wish(self, pod: PodStatus, container: Container, resource: str, count: int) -> list[Hint] | None:
        """`GetTopologyHints` for one resource; None when topology does not matter to it."""
        if not self._ledger.is_device_resource(resource):
            return None
        devices = self._ledger.of(resource)
        if not devices.aligned:
            return None
        held = self._ledger.held(pod.uid, container.name, resource)
        if held is not None:
            if len(held) != count:
                return []
            return hints(resource, devices, self._numa_nodes, available=held, reusable=(), request=count)
        available = devices.healthy - self._ledger.allocated.get(resource, set())
        reusable = self._allocator.reusable(pod.uid, resource)
        if len(available | reusable) < count:
            return []
        return hints(
            resource, devices, self._numa_nodes, available=available, reusable=reusable, request=count
        )


def _in_go(seconds: float) -> str:
    """As Go writes a duration."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
