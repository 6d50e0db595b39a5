"""The kubelet's clock, which a test can advance by five minutes at once.

The rules of this file:

* Everything that a kubelet measures (grace periods, deadlines, back-off, the rate limit) uses a Clock;
  nothing else in the simulator reads the time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock with timers."""

    def now(self) -> float:
        """Seconds since an arbitrary moment."""
        ...

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[None]:
        """A context that is cancelled after `seconds` and then raises TimeoutError."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...


class WallClock:
    """Real time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[None]:
        async with asyncio.timeout(seconds):
            yield

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(slots=True, eq=False)
class _Alarm:
    at: float
    ring: Callable[[], None]


class ManualClock:
    """Stands still until `advance` is called."""

    def __init__(self) -> None:
        self._now = 0.0
        self._alarms: list[_Alarm] = []

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the clock; timeouts and sleeps that are due end, in order."""
        self._now += seconds
        for alarm in sorted(self._alarms, key=lambda alarm: alarm.at):
            if alarm.at <= self._now:
                self._alarms.remove(alarm)
                alarm.ring()

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as timeout:
            alarm = self._set(seconds, lambda: timeout.reschedule(loop.time()))
            try:
                yield
            finally:
                self._unset(alarm)

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        alarm = self._set(seconds, awake.set)
        try:
            await awake.wait()
        finally:
            self._unset(alarm)

    def _set(self, seconds: float, ring: Callable[[], None]) -> _Alarm:
        alarm = _Alarm(self._now + seconds, ring)
        self._alarms.append(alarm)
        return alarm

    def _unset(self, alarm: _Alarm) -> None:
        if alarm in self._alarms:
            self._alarms.remove(alarm)
