"""Connections to the container runtime.

The rules of this file:

* What asks the runtime is loaded when it is first needed. That can fail during a shortage, as connecting can.
* A stop may last as long as a pod likes. All stops share one connection: each costs memory and a file
  descriptor.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from genericdp.cri.sockets import RuntimeUnavailableError
from genericdp.errors import what_is_short

if TYPE_CHECKING:
    from genericdp.cri.runtime import ContainerRuntime


def connected(setting: str) -> "AbstractAsyncContextManager[ContainerRuntime]":
    """See `genericdp.cri.runtime.connected`. Raises RuntimeUnavailableError."""
    try:
        from genericdp.cri import runtime  # noqa: PLC0415  (see the rules of this file)
    except OSError as error:
        raise RuntimeUnavailableError(
            f"cannot load what asks the container runtime: {error.strerror}", hint=what_is_short(error)
        ) from error
    return runtime.connected(setting)


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
