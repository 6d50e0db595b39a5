"""Answers of Allocate that wait until it is saved who has what.

The rules of this file:

* None waits any more when its server is about to end: the kubelet would take that for a refusal, and fail the
  pod for good. What is not saved yet is kept beside the links (`genericdp.files.state`).
"""

import asyncio
from collections.abc import Awaitable, Callable


async def nothing_to_save() -> None:
    """For plugins of which nothing is remembered."""


class Settling:
    """The answers of one plugin.

    settled  waits until what the plugin gave is saved, or cannot be
    """

    def __init__(self, settled: Callable[[], Awaitable[None]]) -> None:
        self._settled = settled
        self._waiting = 0
        self._hurry = asyncio.Event()

    async def wait(self) -> None:
        """Return once the answer may be sent."""
        settling = asyncio.ensure_future(self._settled())
        hurrying = asyncio.ensure_future(self._hurry.wait())
        self._waiting += 1
        try:
            await asyncio.wait((settling, hurrying), return_when=asyncio.FIRST_COMPLETED)
            if settling.done():
                settling.result()
        finally:
            self._waiting -= 1
            for task in (settling, hurrying):
                task.cancel()
            await asyncio.gather(settling, hurrying, return_exceptions=True)

    def hurry(self) -> bool:
        """Let no answer wait any more. Returns whether there are any, which are sent in a moment."""
        event, self._hurry = self._hurry, asyncio.Event()
        event.set()
        return self._waiting > 0
