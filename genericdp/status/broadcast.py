"""Sends events to the clients that follow them.

The rules of this file:

* A client that does not read, such as one behind a pager, stays connected. It loses events, and gets the
  number of lost ones once it reads again. It never makes the daemon wait.
* Every event is sent with its time.
"""

import asyncio
import time
from collections.abc import Callable

from genericdp.core.status.events import Event, of_lost
from genericdp.log_lines import rfc3339
from genericdp.status.listener import send
from genericdp.status.protocol import line_of

#: How many events wait for one client.
WAITING_LIMIT = 1000


class Broadcast:
    """The clients that follow events, and the events on their way to them. Its length is their number.

    clock  the wall clock, in seconds (Unix time)
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._waiting: set[asyncio.Queue[Event]] = set()
        self._lost: dict[asyncio.Queue[Event], int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def tell(self, event: Event) -> None:
        """Send an event to every client; never waits."""
        if not self._waiting:
            return
        stamped = self._stamped(event)
        for queue in self._waiting:
            if queue.full():
                self._lost[queue] = self._lost.get(queue, 0) + 1
            else:
                queue.put_nowait(stamped)

    async def follow(self, writer: asyncio.StreamWriter, begin: Event) -> None:
        """Send `begin`, then every event, until cancelled. Raises OSError if the client is gone."""
        queue: asyncio.Queue[Event] = asyncio.Queue(WAITING_LIMIT)
        self._waiting.add(queue)
        try:
            event = self._stamped(begin)
            while True:
                await send(writer, line_of(event), None)
                lost = self._lost.pop(queue, 0) if queue.empty() else 0
                event = self._stamped(of_lost(lost)) if lost else await queue.get()
        finally:
            self._waiting.discard(queue)
            self._lost.pop(queue, None)

    def _stamped(self, event: Event) -> Event:
        return {"time": rfc3339(self._clock()), **event}
