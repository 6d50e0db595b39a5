"""Places where the simulated kubelet can be made to wait, so that a test can put its races in order."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class Point(StrEnum):
    """Where the kubelet can be held."""

    LISTEN = "before kubelet.sock is bound"
    ACCEPT = "between bind and listen, when kubelet.sock refuses connections"
    DIAL = "before the plugin's socket is dialled"
    OPTIONS = "before GetDevicePluginOptions"
    ANSWER = "before Register is answered"
    LIST = "before ListAndWatch is opened"
    PREFERRED = "before GetPreferredAllocation"
    ALLOCATE = "before Allocate"
    ALLOCATED = "between the plugin's answer to Allocate and its use"
    PRE_START = "before PreStartContainer"


class Gate:
    """A closed door. `await gate.reached()` until somebody stands before it, `open()` to let them pass."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._open = asyncio.Event()

    async def reached(self) -> None:
        """Return once the kubelet waits here."""
        await self._reached.wait()

    def open(self) -> None:
        """Let it go on."""
        self._open.set()

    async def wait(self) -> None:
        """The kubelet's side."""
        self._reached.set()
        await self._open.wait()


class Gates:
    """All doors; open unless held."""

    def __init__(self) -> None:
        self._held: dict[Point, Gate] = {}

    @contextmanager
    def hold(self, point: Point) -> Iterator[Gate]:
        """Hold whoever comes to `point` until the gate is opened or the block is left."""
        gate = self._held[point] = Gate()
        try:
            yield gate
        finally:
            if self._held.get(point) is gate:
                del self._held[point]
            gate.open()

    def holds(self, point: Point) -> bool:
        """Whether somebody who came there now would have to wait."""
        return point in self._held

    async def passes(self, point: Point) -> None:
        """Wait while the point is held."""
        gate = self._held.get(point)
        if gate is not None:
            await gate.wait()
