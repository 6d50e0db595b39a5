"""An answer that costs something, for many who ask.

The rules of this file:

* It is made when somebody asks, once for all who ask meanwhile, and again when it is too old for somebody.
* Who hangs up does not interrupt it: a crowd that comes and goes would keep it from ever being made.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


class Lasting(Generic[_Answer]):
    """Makes the answer.

    make  called with nobody else calling it
    now   a clock, in seconds
    """

    def __init__(self, make: Callable[[], Awaitable[_Answer]], now: Callable[[], float]) -> None:
        self._make = make
        self._now = now
        self._made: tuple[float, _Answer] | None = None
        self._making: asyncio.Task[_Answer] | None = None

    async def get(self, max_age_s: float) -> _Answer:
        """The answer, made at most `max_age_s` ago."""
        if self._made is not None and self._now() - self._made[0] <= max_age_s:
            return self._made[1]
        if self._making is None or self._making.done():
            self._making = asyncio.get_running_loop().create_task(self._make_it())
        return await asyncio.shield(self._making)

    async def close(self) -> None:
        """Make no answer any more."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait((self._making,))

    async def _make_it(self) -> _Answer:
        answer = await self._make()
        self._made = (self._now(), answer)
        return answer
