"""The control socket, on which `genericdp status` and `genericdp monitor` ask the daemon.

A question is one line of JSON, `{"ask": "status"}`; the answer is one line, or, for `{"ask": "events"}`,
a line for each event until the asker hangs up.

The rules of this file:

* Who may ask is what the file's mode says. Nothing can be changed by asking.
* An asker that does not read loses events and is told how many; it never makes the daemon wait.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping

from genericdp.status.listener import Listener, send

#: The socket's name in the run directory.
SOCKET = "control.sock"

#: How long a question may take to arrive, and an answer to be read, in seconds.
PATIENCE_S = 5.0

#: How many events wait for one asker.
WAITING_LIMIT = 1000


class Events:
    """Those who want to hear of every event, and the events on their way to them."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Queue[Mapping[str, object]]] = set()
        self._lost: dict[asyncio.Queue[Mapping[str, object]], int] = {}

    def __bool__(self) -> bool:
        """Whether anybody listens: an event need not be made for nobody."""
        return bool(self._waiting)

    def tell(self, event: Mapping[str, object]) -> None:
        """Tell everybody who listens; never waits."""
        for queue in self._waiting:
            if queue.full():
                self._lost[queue] = self._lost.get(queue, 0) + 1
            else:
                queue.put_nowait(event)

    async def follow(self, writer: asyncio.StreamWriter, begin: Mapping[str, object]) -> None:
        """Send `begin`, then every event, until cancelled or nobody reads."""
        queue: asyncio.Queue[Mapping[str, object]] = asyncio.Queue(WAITING_LIMIT)
        self._waiting.add(queue)
        try:
            event = begin
            while True:
                await send(writer, line_of(event), PATIENCE_S)
                lost = self._lost.pop(queue, 0) if queue.empty() else 0
                event = {"event": "lost", "count": lost} if lost else await queue.get()
        finally:
            self._waiting.discard(queue)
            self._lost.pop(queue, None)


class Control:
    """Answers on the control socket of a run directory."""

    def __init__(
        self,
        run_dir: str,
        *,
        status: Callable[[], Awaitable[Mapping[str, object]]],
        begin: Callable[[], Mapping[str, object]],
        events: Events,
    ) -> None:
        self.listener = Listener(f"unix:{run_dir}/{SOCKET}", self._answer)
        self._status = status
        self._begin = begin
        self._events = events

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PATIENCE_S):
            question = await reader.readline()
        match asked_for(question):
            case "status":
                await send(writer, line_of({"status": await self._status()}), PATIENCE_S)
            case "events":
                await _until_hung_up(reader, self._events.follow(writer, self._begin()))
            case _:
                error = 'ask {"ask": "status"} or {"ask": "events"}'
                await send(writer, line_of({"error": error}), PATIENCE_S)


def asked_for(question: bytes) -> str:
    """What a line asks for; "" when it makes no sense."""
    try:
        asked = json.loads(question)["ask"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return asked if isinstance(asked, str) else ""


def line_of(value: Mapping[str, object]) -> bytes:
    """A value as one line of JSON."""
    return json.dumps(value).encode("ascii") + b"\n"


async def _until_hung_up(reader: asyncio.StreamReader, telling: Awaitable[None]) -> None:
    told = asyncio.ensure_future(telling)
    ended = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((told, ended), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (told, ended):
            task.cancel()
        results = await asyncio.gather(told, ended, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
