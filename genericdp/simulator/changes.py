"""Waiting until something becomes true, without polling."""

import asyncio
from collections.abc import Callable


class Changes:
    """Wakes all waiters after every change; each checks its own predicate."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """Wake all waiters."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def wait_until(
        self, predicate: Callable[[], object], *, timeout_s: float, describe: Callable[[], str]
    ) -> None:
        """Return once `predicate()` is true. Raises TimeoutError with `describe()` after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                while not predicate():
                    future = asyncio.get_running_loop().create_future()
                    self._waiting.add(future)
                    try:
                        await future
                    finally:
                        self._waiting.discard(future)
        except TimeoutError:
            raise TimeoutError(f"not true after {timeout_s:g} s; {describe()}") from None
