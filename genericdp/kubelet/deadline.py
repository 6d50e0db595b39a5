"""How long work may take: a call to the kubelet, and a turn in the event loop.

The rules of this file:

* A call ends when its time is up, whatever becomes of grpc.
* Long work is done in pieces. After each one, everything else has its turn if enough time has passed.
"""

import asyncio
import time

#: How much later than grpc to give up.
_LATER_S = 2.0

#: How long nothing else has its turn, in seconds, unless a single piece of work takes longer.
TURN_S = 0.002


def enforced(timeout_s: float) -> asyncio.Timeout:
    """For a call with this timeout: a context that raises TimeoutError if grpc does not.

    Without a thread to run it, grpc's own deadline never comes.
    """
    return asyncio.timeout(timeout_s + _LATER_S)


class Turn:
    """A turn in the event loop, which begins now."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def end_if_long(self) -> None:
        """If it has taken long enough, let everything else have its turn, and begin another one."""
        if time.perf_counter() - self._began > TURN_S:
            await asyncio.sleep(0)
            self._began = time.perf_counter()
