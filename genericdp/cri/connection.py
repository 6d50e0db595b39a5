"""Connections to container runtimes.

The rules of this file:

* What asks the runtime is loaded when it is first needed. That can fail during a shortage, as connecting can.
* A stop may last as long as a pod likes. All stops share one connection: each costs memory and a file
  descriptor.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from genericdp.core.rules.settings import Settings
from genericdp.cri.sockets import RuntimeUnavailableError
from genericdp.errors import what_is_short

if TYPE_CHECKING:
    from genericdp.cri.choice import Choice
    from genericdp.cri.runtime import ContainerRuntime


def chosen(settings: Settings) -> "AbstractAsyncContextManager[Choice]":
    """See `genericdp.cri.choice.chosen`. Raises RuntimeUnavailableError."""
    with _loading():
        from genericdp.cri import choice  # noqa: PLC0415  (see the rules of this file)
    return choice.chosen(settings)


def connected(socket: str) -> "AbstractAsyncContextManager[ContainerRuntime]":
    """See `genericdp.cri.runtime.connected`. Raises RuntimeUnavailableError."""
    with _loading():
        from genericdp.cri import runtime  # noqa: PLC0415  (see the rules of this file)
    return runtime.connected(socket)


@contextmanager
def _loading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RuntimeUnavailableError(
            f"cannot load the client for the container runtime: {error.strerror}", hint=what_is_short(error)
        ) from error


class Shared:
    """A connection to the runtime on a socket while anybody needs one."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._stack = AsyncExitStack()
        self._opening: asyncio.Task[ContainerRuntime] | None = None
        self._users = 0

    @asynccontextmanager
    async def connected(self) -> "AsyncIterator[ContainerRuntime]":
        """The runtime. Raises RuntimeUnavailableError."""
        self._users += 1
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="connection to the container runtime")
        try:
            yield await asyncio.shield(self._opening)
        finally:
            self._users -= 1
            if not self._users:
                await self._close()

    async def _open(self) -> "ContainerRuntime":
        return await self._stack.enter_async_context(connected(self._socket))

    async def _close(self) -> None:
        opening, self._opening = self._opening, None
        stack, self._stack = self._stack, AsyncExitStack()
        if opening is not None:
            opening.cancel()
            await asyncio.wait((opening,))
        await stack.aclose()
