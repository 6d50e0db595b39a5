"""The life of one resource's registration: serve, register, notice the loss, start again.

The rules of this file:

* Every registration uses a new, short, unique socket name, and never starts while a stream of the
  earlier one is alive. In kubelets up to 1.36 the end of any stream of a resource disconnects the
  client that is current at that moment; newer ones reject a socket that they know.
* The server answers before Register is called: meanwhile the kubelet calls GetDevicePluginOptions.
* If the kubelet's stream ends while kubelet.sock remains, the registration is lost. The kubelet never comes
  back on its own. Streams of other clients do not count (`streams`).
* Servers start a few at a time, so thousands of resources keep no other answer waiting.
* While another genericdp serves the kubelet, there is no server: no stream, and no call of Register.
* A peer that does not read keeps nobody waiting: its stream has ended, which it hears when it reads.
* A cancellation always ends it. An error while the server closes takes the place of the cancellation that
  closes it, so `serve` asks after each error whether it was cancelled.
* Read `serve` from top to bottom: its position in the code is the only state.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import grpc
import grpc.aio

from genericdp import log
from genericdp.core.limits import SOCKET_PATH_LIMIT
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.deadline import enforced
from genericdp.kubelet.endpoints import fresh_name, remove
from genericdp.kubelet.plugin import Plugin
from genericdp.kubelet.socket import APART_S, Incarnation, KubeletSocket
from genericdp.unixsocket import why_not_bound

#: The kubelet dials for up to 10 s before it answers Register (kubelet 1.36, `connectClient`).
REGISTER_TIMEOUT_S = 15.0

#: How long a server may take to stop, in seconds. With bytes for a peer that does not read, such as a kubelet
#: that was killed and hangs in the kernel, grpc waits until it has gone. Nobody needs what is left then.
STOP_S = 2.0

#: How long of that the answers take that are being sent, in seconds. Streams go on meanwhile.
ANSWER_S = 0.5

#: How many servers of a kubelet may be started before everything else has its turn: one takes up to 1 ms.
STARTS_AT_ONCE = 8

#: What still stops.
_stopping: set[asyncio.Future[None]] = set()

#: A registration that lasted this long was not a failure, in seconds.
STEADY_S = 10.0

_log = log.get(__name__)


class Phase(StrEnum):
    """Where a registration stands."""

    WAITING = "waiting for the kubelet"
    REGISTERING = "registering"
    REGISTERED = "registered"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the registration of a resource stands. `error`: why the last one, or the last try, failed."""

    resource: str
    phase: Phase
    error: str = ""


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait before the next try, in seconds: doubling from `first` to `longest`.

    A lost registration waits, too, before it is renewed: the kubelet may still be processing the stream
    that ended, and up to 1.36 it would end the new one instead.

    stream   how long the kubelet may take to open ListAndWatch after Register; usually milliseconds
    kubelet  how far apart kubelets are followed that replace each other again and again
    """

    first: float
    longest: float
    stream: float = 2.0
    kubelet: float = APART_S

    def before_try(self, failures: int) -> float:
        """The pause after so many failures in a row, with jitter to spread the resources out."""
        pause: float = min(self.longest, self.first * 2 ** min(failures, 30))
        # The module `random` would take 150 kB for this one number.
        return pause * (0.5 + os.urandom(1)[0] / 512)


#: After a refusal. A kubelet that comes back ends the pause.
REFUSED = Pauses(0.2, 30.0)


class Registration:
    """Keeps one plugin registered at the kubelet, until its task is cancelled.

    starts  for the registrations of all resources: of them, `STARTS_AT_ONCE` may start their servers
    tries   how often it has tried to register
    """

    def __init__(
        self,
        plugin: Plugin,
        kubelet: KubeletSocket,
        starts: asyncio.Semaphore,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        pauses: Pauses = REFUSED,
    ) -> None:
        self.plugin = plugin
        self.progress = Progress(plugin.offer.resource.name, Phase.WAITING)
        self.tries = 0
        self._kubelet = kubelet
        self._starts = starts
        self._on_progress = on_progress
        self._pauses = pauses

    async def serve(self) -> None:
        """Register whenever a kubelet is up that does not know the plugin."""
        failures = 0
        while True:
            incarnation = await self._kubelet.wait_until_there()
            self.tries += 1
            try:
                async with self._server() as endpoint:
                    self._report(Phase.REGISTERING, self.progress.error)
                    await self._register(endpoint, incarnation)
                    await self._first_stream(incarnation)
                    self._report(Phase.REGISTERED)
                    since = asyncio.get_running_loop().time()
                    await self._until_lost(incarnation)
                    lasted = asyncio.get_running_loop().time() - since
                    error = self._why_lost("the kubelet closed the stream")
                    self._report(Phase.WAITING, error)
                failures = 0 if lasted > STEADY_S else failures + 1
            except (grpc.aio.AioRpcError, OSError, TimeoutError) as caught:
                _end_if_cancelled()
                error = _words(caught)
                failures += 1
            self._report(Phase.WAITING, error)
            # A kubelet that comes back ends the pause; what an earlier one refused does not count.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pauses.before_try(failures)):
                    await self._kubelet.wait_until_over(incarnation)
                    failures = 0

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[str]:
        """A running server on a new socket in the kubelet's directory; yields the name of the socket."""
        endpoint = fresh_name()
        path = os.path.join(self._kubelet.directory, endpoint)
        if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
            raise OSError(f"the socket path '{path}' has more than {SOCKET_PATH_LIMIT} bytes")
        async with self._starts:
            await asyncio.sleep(0)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((api.device_plugin_handler(self.plugin),))
        try:
            try:
                try:
                    server.add_insecure_port(f"unix:{path}")
                finally:
                    # grpc frees only a server that has been started, with or without a socket.
                    await _uninterrupted(server.start())
            except RuntimeError as error:
                raise OSError(f"cannot create the socket '{path}': {why_not_bound(path) or error}") from error
            yield endpoint
        finally:
            # The streams end here; only then may the next registration begin.
            await _uninterrupted(self._close(server, path))

    async def _close(self, server: grpc.aio.Server, path: str) -> None:
        grace_s = ANSWER_S if self.plugin.settling.hurry() else None
        stopping = asyncio.ensure_future(server.stop(grace=grace_s))
        # Nobody else refers to it, and asyncio would forget it.
        _stopping.add(stopping)
        stopping.add_done_callback(_stopping.discard)
        await asyncio.wait((stopping,), timeout=STOP_S)
        if stopping.done():
            stopping.result()
        await self.plugin.streams.wait_until(lambda: not self.plugin.streams)
        remove(path)

    async def _register(self, endpoint: str, incarnation: Incarnation) -> None:
        if self._kubelet.incarnation != incarnation:
            # When it started, it removed every socket in the directory, this one too. It would dial for 10 s.
            raise ConnectionError("the kubelet has restarted")
        request = api.RegisterRequest(
            version=api.VERSION,
            endpoint=endpoint,
            resource_name=self.plugin.offer.resource.name,
            options=self.plugin.options(),
        )
        self.plugin.streams.expect_kubelet()
        if not await self._call(request):
            # grpc cancels the call, too, when the channel is closed because the kubelet has restarted.
            _end_if_cancelled()
            raise ConnectionError(self._why_lost("the kubelet stopped meanwhile"))

    async def _call(self, request: api.RegisterRequest) -> bool:
        """Call Register; False if the call was cancelled.

        Nothing is raised then: an exception keeps the frames that it has passed, and a cancelled task keeps
        the exception. The connection of the call would stay open until Python collects garbage.
        """
        register = api.RegistrationStub(self._kubelet.channel()).Register
        try:
            async with enforced(REGISTER_TIMEOUT_S):
                await register(request, timeout=REGISTER_TIMEOUT_S)
        except TimeoutError:
            raise TimeoutError("the kubelet did not answer, and grpc did not give up") from None
        except asyncio.CancelledError:
            return False
        return True

    async def _first_stream(self, incarnation: Incarnation) -> None:
        """Return once the kubelet has opened its stream, or is lost; the stream may have ended by then."""
        try:
            await self._unless_over(incarnation, self.plugin.streams.find_kubelet(self._pauses.stream))
        except TimeoutError:
            raise TimeoutError("the kubelet accepted the registration but did not open a stream") from None

    async def _until_lost(self, incarnation: Incarnation) -> None:
        """Return when the kubelet's stream has ended, or the kubelet is another one or that of another."""
        streams = self.plugin.streams
        await self._unless_over(incarnation, streams.wait_until(lambda: not streams.kubelet_follows))

    async def _unless_over(self, incarnation: Incarnation, wanted: Coroutine[Any, Any, None]) -> None:
        """Wait until it has come, or will not come any more. Raises what it raises."""
        coming = asyncio.ensure_future(wanted)
        over = asyncio.ensure_future(self._kubelet.wait_until_over(incarnation))
        try:
            await asyncio.wait((coming, over), return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                coming.result()
        finally:
            for task in (coming, over):
                task.cancel()
            await asyncio.gather(coming, over, return_exceptions=True)

    def _why_lost(self, otherwise: str) -> str:
        return "another genericdp serves the kubelet" if self._kubelet.rival else otherwise

    def _report(self, phase: Phase, error: str = "") -> None:
        progress = Progress(self.progress.resource, phase, error)
        if progress != self.progress:
            self.progress = progress
            self._on_progress(progress)


def some_still_stop() -> bool:
    """Whether a server of this process waits for a peer. Before it ends, Python would wait with it."""
    return bool(_stopping)


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Finish the work however often cancelled meanwhile: grpc cannot stop a half-started server."""
    task = asyncio.ensure_future(work)
    await _until_done(task)
    await task


async def _until_done(task: asyncio.Future[None]) -> None:
    """Wait for a task. A cancellation takes effect once it is done."""
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError as cancelled:
        await _until_done(task)
        raise cancelled from task.exception()


def _end_if_cancelled() -> None:
    """Raise CancelledError if the task was cancelled, whatever error has come instead."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _words(error: Exception) -> str:
    if not isinstance(error, grpc.aio.AioRpcError):
        return str(error)
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"the kubelet did not answer within {REGISTER_TIMEOUT_S:g} s"
    return error.details() or error.code().name
