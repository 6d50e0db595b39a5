"""The node's container runtime as others see it: the part of CRI about pods, and containers that run or will.

The rules of this file:

* The containers are those of the node's pods. They outlive the kubelet, and the runtime does, too.
* containerd and CRI-O put the OCI spec into the verbose status of a container under the same key, beside
  different things (containerd 1.6 to 2.3, `toCRIContainerInfo`; CRI-O 1.18 to 1.36, `createContainerInfo`).
* A container that is told to end does so after `ends_after_s` of its spec, or is killed after the timeout.
  Then the runtime answers.
"""
# ruff: noqa: N802  # the proto's spelling

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from pathlib import Path

import grpc
import grpc.aio

from genericdp.cri import api
from genericdp.messages import Context
from genericdp.simulator import pods
from genericdp.simulator.clock import Clock
from genericdp.simulator.node.node import Node
from genericdp.simulator.pods import ContainerState, PodStatus
from genericdp.simulator.runtimes.runtime import CdiSupport, CreatedContainer, Personality, Runtime
from genericdp.simulator.server import Server

#: 128 and the number of the signal.
SIGTERM_EXIT, SIGKILL_EXIT = 143, 137


@dataclass(frozen=True, slots=True)
class StopCall:
    """A call of StopContainer for a container that ran, and what that container was."""

    pod: PodStatus
    container: str
    created: CreatedContainer
    id: str
    timeout_s: int


class ContainerRuntime:
    """Serves CRI on a socket between `start` and `stop`.

    socket   where it listens
    stops    the calls of StopContainer for containers that ran, oldest first
    on_exit  called with the pod after one of its containers has ended
    """

    def __init__(
        self,
        node: Node,
        runtime: Runtime,
        clock: Clock,
        socket: Path,
        on_exit: Callable[[PodStatus], None],
    ) -> None:
        self.socket = socket
        self.stops: list[StopCall] = []
        #: The ids of containers of which it does not tell the status, because their shims hang.
        self.hanging: set[str] = set()
        self._node = node
        self._runtime = runtime
        self._clock = clock
        self._on_exit = on_exit
        self._server: Server | None = None

    async def start(self) -> None:
        """Listen. Containers that run do so anyway."""
        self.socket.parent.mkdir(parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        self._server = Server(api.runtime_handler(self))
        await self._server.start(self.socket)

    async def stop(self) -> None:
        """`systemctl stop containerd`: containers go on."""
        if self._server is not None:
            await self._server.stop()
            self._server = None

    async def Version(self, request: api.VersionRequest, context: Context) -> api.VersionResponse:
        del request, context
        # containerd 2 does not ignore CDI devices.
        containerd = "1.7.24" if self._runtime.cdi is CdiSupport.IGNORED else "v2.3.4"
        name, version = ("cri-o", "1.36.3") if self._is_crio else ("containerd", containerd)
        return api.VersionResponse(
            version="0.1.0", runtime_name=name, runtime_version=version, runtime_api_version="v1"
        )

    async def Status(self, request: api.StatusRequest, context: Context) -> api.StatusResponse:
        del context
        ready = [api.RuntimeCondition(type=type_, status=True) for type_ in ("RuntimeReady", "NetworkReady")]
        info = {}
        if request.verbose and not self._is_crio:
            enabled = self._runtime.cdi is CdiSupport.ON
            settings = {"enableCDI": enabled, "cdiSpecDirs": list(self._runtime.cdi_dirs)}
            info = {"config": json.dumps(settings)}
        return api.StatusResponse(status=api.RuntimeStatus(conditions=ready), info=info)

    async def ListPodSandbox(
        self, request: api.ListPodSandboxRequest, context: Context
    ) -> api.ListPodSandboxResponse:
        del context
        states = _states(request.filter or api.PodSandboxFilter(), api.PodSandboxState)
        return api.ListPodSandboxResponse(
            items=[
                api.PodSandbox(
                    id=_sandbox(pod),
                    metadata=api.PodSandboxMetadata(name=pod.name, uid=pod.uid, namespace=pod.spec.namespace),
                    state=_sandbox_state(pod),
                    created_at=pod.made_at,
                    labels=_pod_labels(pod),
                )
                for pod in self._node.pods.values()
                if pod.made_at and _sandbox_state(pod) in states
            ]
        )

    async def ListContainers(
        self, request: api.ListContainersRequest, context: Context
    ) -> api.ListContainersResponse:
        del context
        wanted = request.filter or api.ContainerFilter()
        states = _states(wanted, api.ContainerState)
        return api.ListContainersResponse(
            containers=[
                api.Container(
                    id=id_of(pod, status),
                    pod_sandbox_id=_sandbox(pod),
                    metadata=api.ContainerMetadata(name=status.spec.name, attempt=status.restarts),
                    state=_state(status),
                    created_at=status.created_at,
                    labels=_labels(pod, status),
                    annotations=_annotations(pod, status),
                )
                for pod, status in self._containers()
                if not wanted.id or id_of(pod, status) == wanted.id
                if _state(status) in states
                if dict(wanted.label_selector).items() <= _labels(pod, status).items()
            ]
        )

    async def ContainerStatus(
        self, request: api.ContainerStatusRequest, context: Context
    ) -> api.ContainerStatusResponse:
        if request.container_id in self.hanging:
            await asyncio.Event().wait()
        for pod, status in self._containers():
            if id_of(pod, status) == request.container_id:
                return api.ContainerStatusResponse(
                    status=api.ContainerStatus(
                        id=request.container_id,
                        metadata=api.ContainerMetadata(name=status.spec.name, attempt=status.restarts),
                        state=_state(status),
                        created_at=status.created_at,
                        exit_code=status.exit_code or 0,
                        labels=_labels(pod, status),
                        annotations=_annotations(pod, status),
                    ),
                    info={"info": json.dumps(self._info(pod, status))} if request.verbose else {},
                )
        await context.abort(
            grpc.StatusCode.NOT_FOUND,
            f'an error occurred when try to find container "{request.container_id}": not found',
        )
        raise AssertionError("abort raises")

    async def StopContainer(
        self, request: api.StopContainerRequest, context: Context
    ) -> api.StopContainerResponse:
        del context
        for pod, status in self._containers():
            if id_of(pod, status) == request.container_id and status.state is ContainerState.RUNNING:
                created = status.created or CreatedContainer()
                self.stops.append(
                    StopCall(pod, status.spec.name, created, request.container_id, request.timeout)
                )
                in_time = status.spec.ends_after_s <= request.timeout
                seconds = status.spec.ends_after_s if in_time else float(request.timeout)
                if seconds:
                    await self._clock.sleep(seconds)
                if id_of(pod, status) == request.container_id and status.state is ContainerState.RUNNING:
                    status.exit(SIGTERM_EXIT if in_time else SIGKILL_EXIT, self._clock.now())
                    self._on_exit(pod)
        return api.StopContainerResponse()

    @property
    def _is_crio(self) -> bool:
        return self._runtime.personality is Personality.CRIO

    def _containers(self) -> Iterator[tuple[PodStatus, pods.ContainerStatus]]:
        """Every container that was ever created, in its last incarnation."""
        for pod in list(self._node.pods.values()):
            for status in list(pod.containers.values()):
                if status.created is not None:
                    yield pod, status

    def _info(self, pod: PodStatus, status: pods.ContainerStatus) -> dict[str, object]:
        created = status.created or CreatedContainer()
        spec = {
            "ociVersion": "1.2.1",
            "process": {"env": [f"{name}={value}" for name, value in created.envs.items()]},
            "linux": {"devices": [each.entry() for each in created.spec_devices] or None},
        }
        if self._is_crio:
            return {
                "sandboxID": _sandbox(pod),
                "pid": 4711,
                "runtimeSpec": spec,
                "privileged": status.spec.privileged,
            }
        config = {
            "metadata": {"name": status.spec.name},
            "devices": [
                {
                    "container_path": each.container_path,
                    "host_path": each.host_path,
                    "permissions": each.permissions,
                }
                for each in created.config.devices
            ],
            "labels": _labels(pod, status),
            "annotations": _annotations(pod, status),
        }
        return {
            "sandboxID": _sandbox(pod),
            "pid": 4711,
            "removing": False,
            "snapshotKey": id_of(pod, status),
            "snapshotter": "overlayfs",
            "runtimeType": "io.containerd.runc.v2",
            "runtimeOptions": {"systemd_cgroup": True},
            "config": config,
            "runtimeSpec": spec,
        }


def id_of(pod: PodStatus, status: pods.ContainerStatus) -> str:
    """The runtime's id of a container in its last incarnation."""
    return sha256(f"{pod.uid}/{status.spec.name}/{status.restarts}".encode()).hexdigest()


def _sandbox(pod: PodStatus) -> str:
    return sha256(pod.uid.encode()).hexdigest()


def _states(wanted: api.PodSandboxFilter | api.ContainerFilter, every: type[IntEnum]) -> set[int]:
    return {wanted.state.state} if wanted.state and wanted.HasField("state") else set(every)


def _sandbox_state(pod: PodStatus) -> api.PodSandboxState:
    return api.PodSandboxState.SANDBOX_READY if pod.active else api.PodSandboxState.SANDBOX_NOTREADY


def _state(status: pods.ContainerStatus) -> api.ContainerState:
    if not status.started:
        return api.ContainerState.CONTAINER_CREATED
    running = status.state is ContainerState.RUNNING
    return api.ContainerState.CONTAINER_RUNNING if running else api.ContainerState.CONTAINER_EXITED


def _labels(pod: PodStatus, status: pods.ContainerStatus) -> dict[str, str]:
    return {"io.kubernetes.container.name": status.spec.name, **_pod_labels(pod)}


def _pod_labels(pod: PodStatus) -> dict[str, str]:
    return {
        "io.kubernetes.pod.name": pod.name,
        "io.kubernetes.pod.namespace": pod.spec.namespace,
        "io.kubernetes.pod.uid": pod.uid,
    }


def _annotations(pod: PodStatus, status: pods.ContainerStatus) -> dict[str, str]:
    return {
        "io.kubernetes.container.hash": "4b3a2c1d",
        "io.kubernetes.container.restartCount": str(status.restarts),
        "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        "io.kubernetes.container.terminationMessagePolicy": "File",
        "io.kubernetes.pod.terminationGracePeriod": str(pod.spec.grace_period_s),
    }
