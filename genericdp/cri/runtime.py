"""Asks the container runtime for containers, and stops them.

The rules of this file:

* The runtime's socket is open only while something depends on an answer.
* No answer is an error, never "there are none".
* Every answer is bounded in time and in size.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from genericdp.core.comeback.container import Container, Inside, container_of, inside
from genericdp.core.status.holdings import PodName
from genericdp.cri import api
from genericdp.cri.sockets import RuntimeUnavailableError, candidates
from genericdp.messages import Message, Method, private_channel

#: What cri-dockerd calls its runtime. It does not tell what a container was created with.
DOCKER = "docker"

#: How long an answer may take, in seconds.
_TIMEOUT_S = 10.0

#: How long the kill after the grace period may take, in seconds; the kubelet allows as much.
_KILL_S = 120.0

#: A pod may ask for centuries.
_LONGEST_GRACE_S = 86_400

#: As in the kubelet's own client of this API.
_LONGEST_ANSWER = 16 << 20

_Request = TypeVar("_Request", bound=Message)
_Answer = TypeVar("_Answer", bound=Message)


class RuntimeRefusesError(RuntimeUnavailableError):
    """It answers, but not with what was asked for."""


class RuntimeSlowError(RuntimeUnavailableError):
    """It does not answer in time."""


class ContainerRuntime:
    """A runtime that answers; its calls raise RuntimeUnavailableError if it no longer does.

    socket         where it listens
    name, version  what it says it is: "containerd" and "1.7.24"
    """

    def __init__(self, socket: str, channel: grpc.aio.Channel) -> None:
        self.socket = socket
        self.name = ""
        self.version = ""
        self._channel = channel

    @property
    def tells_devices(self) -> bool:
        """Whether `inside` can have an answer."""
        return self.name != DOCKER

    async def meet(self) -> None:
        """Ask for its name and version."""
        answer = await self._ask(api.VERSION, api.VersionRequest())
        self.name, self.version = answer.runtime_name, answer.runtime_version

    async def configuration(self) -> dict[str, str]:
        """Its verbose status: JSON by key, such as containerd's "config"; {} if it tells nothing."""
        answer = await self._ask(api.STATUS, api.StatusRequest(verbose=True))
        return dict(answer.info)

    async def made_last(self, pods: Collection[PodName]) -> int | None:
        """When it made the last of these pods that it has, in nanoseconds since 1970; None if it has none.

        Those that have ended count if none runs: after a boot, it has only such at first.
        """
        for state in api.PodSandboxState if pods else ():
            wanted = api.PodSandboxFilter(state=api.PodSandboxStateValue(state=state))
            answer = await self._ask(api.LIST_POD_SANDBOX, api.ListPodSandboxRequest(filter=wanted))
            made = [
                each.created_at
                for each in answer.items
                if each.metadata and (each.metadata.namespace, each.metadata.name) in pods
            ]
            if made:
                return max(made)
        return None

    async def containers(self) -> tuple[Container, ...]:
        """Every container of a pod that runs now, or was created and has not been started."""
        # One answer with all containers could hold thousands that ended. In this order, none is missed that
        # starts meanwhile.
        created = await self._in_state(api.ContainerState.CONTAINER_CREATED)
        running = await self._in_state(api.ContainerState.CONTAINER_RUNNING)
        return tuple({each.id: each for each in (*created, *running)}.values())

    async def _in_state(self, state: api.ContainerState) -> list[Container]:
        wanted = api.ContainerFilter(state=api.ContainerStateValue(state=state))
        answer = await self._ask(api.LIST_CONTAINERS, api.ListContainersRequest(filter=wanted))
        runs = state is api.ContainerState.CONTAINER_RUNNING
        found = (
            container_of(each.id, each.labels, each.annotations, each.created_at, runs=runs)
            for each in answer.containers
            if each.state == state
        )
        return [each for each in found if each is not None]

    async def inside(self, container: str) -> Inside | None:
        """The device nodes that a container was created with; None if the runtime does not tell.

        It may refuse to tell of one container only, that has just ended or has a very long status, or may not
        answer for one, whose shim hangs.
        """
        request = api.ContainerStatusRequest(container_id=container, verbose=True)
        try:
            answer = await self._ask(api.CONTAINER_STATUS, request)
        except (RuntimeRefusesError, RuntimeSlowError):
            return None
        return inside(answer.info.get("info", ""))

    async def stop(self, container: str, grace_s: int) -> None:
        """End a container as the kubelet does: its stop signal, and SIGKILL after the grace period."""
        request = api.StopContainerRequest(container_id=container, timeout=grace_s)
        timeout_s = min(grace_s, _LONGEST_GRACE_S) + _KILL_S
        await self._ask(api.STOP_CONTAINER, request, timeout_s)

    async def _ask(
        self, method: Method[_Request, _Answer], request: _Request, timeout_s: float | None = None
    ) -> _Answer:
        call: grpc.aio.UnaryUnaryMultiCallable[_Request, bytes] = self._channel.unary_unary(
            method.path, request_serializer=method.request.SerializeToString
        )
        hint = "check that it is running: systemctl status containerd crio"
        failed: type[RuntimeUnavailableError] = RuntimeRefusesError
        timeout_s = _TIMEOUT_S if timeout_s is None else timeout_s
        try:
            answer = await call(request, timeout=timeout_s)
            return method.response.FromString(answer)
        except grpc.aio.AioRpcError as error:
            why = error.details()
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                failed = RuntimeUnavailableError
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                failed, why = RuntimeSlowError, f"it took longer than {timeout_s:g} s"
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                hint = (
                    "it does not serve CRI (v1): set 'runtime_socket' to the socket of the kubelet's runtime"
                )
        except DecodeError as error:
            why = str(error)
        raise failed(f"the container runtime does not answer on '{self.socket}': {why}", hint=hint)


@asynccontextmanager
async def connected(socket: str) -> AsyncIterator[ContainerRuntime]:
    """The runtime on a socket. Raises RuntimeUnavailableError."""
    candidates(socket)
    async with channel_to(socket) as channel:
        runtime = ContainerRuntime(socket, channel)
        await runtime.meet()
        yield runtime


def channel_to(socket: str) -> grpc.aio.Channel:
    """A connection to a socket that is made when something is asked."""
    return private_channel(f"unix:{socket}", ("grpc.max_receive_message_length", _LONGEST_ANSWER))
