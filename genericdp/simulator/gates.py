"""Points at which a test can hold the simulated kubelet, to put races in order."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class Point(StrEnum):
    """A point at which the kubelet can be held."""

    LISTEN = "before kubelet.sock is bound"
    ACCEPT = "between bind and listen, when kubelet.sock refuses connections"
    DIAL = "before the plugin's socket is dialled"
    OPTIONS = "before GetDevicePluginOptions"
    ANSWER = "before Register is answered"
    LIST = "before ListAndWatch is opened"
    PREFERRED = "before GetPreferredAllocation"
    PREFERRED_ANSWERED = "between the plugin's answer to GetPreferredAllocation and its use"
    ALLOCATE = "before Allocate"
    ALLOCATED = "between the plugin's answer to Allocate and its use"
    PRE_START = "before PreStartContainer"
    SANDBOX = "inside RunPodSandbox, when the runtime does not list the pod yet"
    CREATE = "inside CreateContainer, when the runtime has looked at the devices and lists no container yet"
    START = "between CreateContainer and StartContainer"


class Gate:
    """A closed gate: `await gate.reached()`, then `open()` it."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._open = asyncio.Event()

    async def reached(self) -> None:
        """Return once the kubelet waits at the gate."""
        await self._reached.wait()

    def open(self) -> None:
        """Let the kubelet continue."""
        self._open.set()

    async def wait(self) -> None:
        """Wait until the gate is open; the kubelet calls this."""
        self._reached.set()
        await self._open.wait()


class Gates:
    """The gates of one kubelet, all open unless held."""

    def __init__(self) -> None:
        self._held: dict[Point, Gate] = {}

    @contextmanager
    def hold(self, point: Point) -> Iterator[Gate]:
        """Hold the kubelet at `point` until the gate is opened or the block ends."""
        gate = self._held[point] = Gate()
        try:
            yield gate
        finally:
            if self._held.get(point) is gate:
                del self._held[point]
            gate.open()

    def holds(self, point: Point) -> bool:
        """Whether the point is held."""
        return point in self._held

    async def passes(self, point: Point) -> None:
        """Wait while the point is held."""
        gate = self._held.get(point)
        if gate is not None:
            await gate.wait()
