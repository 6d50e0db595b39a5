"""A kubelet that answers Register, and then treats the plugin, as a test tells it to.

The simulated kubelet does what a real one does. This one does what a broken one might do.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import grpc
import grpc.aio

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator.changes import Changes
from tests.scenes.answering import a_grpc_server

Context: TypeAlias = "grpc.aio.ServicerContext[api.RegisterRequest, api.Empty]"

#: What it does before it answers Register. It may abort the call.
Answer = Callable[[api.RegisterRequest, Context], Awaitable[None]]

#: What it does with a plugin whose registration it has answered. The connection ends afterwards.
Then = Callable[[api.RegisterRequest, api.DevicePluginStub], Awaitable[None]]


async def accept(request: api.RegisterRequest, context: Context) -> None:
    """Answer at once."""


class FakeKubelet:
    """A kubelet that is told what to do. Use inside `async with kubelet.serving():`.

    endpoints  resource name -> the sockets under which it was registered, in order
    changes    notified of each call of Register
    """

    def __init__(self, directory: Path, then: Then, answer: Answer = accept) -> None:
        self.endpoints: dict[str, list[str]] = {}
        self.changes = Changes()
        self._directory = directory
        self._then = then
        self._answer = answer
        self._tasks: set[asyncio.Task[None]] = set()

    async def Register(self, request: api.RegisterRequest, context: Context) -> api.Empty:  # noqa: N802
        """As in the proto."""
        self.endpoints.setdefault(request.resource_name, []).append(request.endpoint)
        self.changes.notify()
        await self._answer(request, context)
        self._tasks.add(asyncio.ensure_future(self._treat(request)))
        return api.Empty()

    async def _treat(self, request: api.RegisterRequest) -> None:
        async with grpc.aio.insecure_channel(f"unix:{self._directory}/{request.endpoint}") as channel:
            with suppress(grpc.aio.AioRpcError):
                await self._then(request, api.DevicePluginStub(channel))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """It listens on kubelet.sock, and ends what it does with plugins at the end of the block."""
        try:
            async with a_grpc_server(self._directory / "kubelet.sock", api.registration_handler(self)):
                yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
