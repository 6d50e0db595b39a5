"""The control socket, on which the verbs ask the daemon.

The rules of this file:

* The mode of the socket file decides who may ask. Asking cannot change anything.
* Those who follow events stay for days, so some places are kept for those who ask for the status.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from genericdp.core.status.events import Event
from genericdp.status.broadcast import Broadcast
from genericdp.status.listener import MOST, Listener, send
from genericdp.status.protocol import asked_for, line_of, question, socket_path

#: How long a question may take to arrive, and a client to read the answer, in seconds.
PATIENCE_S = 5.0

#: The most clients that follow events at a time.
FOLLOWERS = MOST - 4


class Control:
    """Answers on the control socket of a run directory.

    verdicts  what a probe asks for, "health" and "readiness": why not, or "" if it is fine
    """

    def __init__(
        self,
        run_dir: str,
        *,
        status: Callable[[], Awaitable[Mapping[str, object]]],
        verdicts: Mapping[str, Callable[[], str]],
        begin: Callable[[], Event],
        events: Broadcast,
    ) -> None:
        full = line_of({"error": f"{MOST} clients are connected already"})
        self.listener = Listener(f"unix:{socket_path(run_dir)}", self._answer, full=full)
        self._status = status
        self._verdicts = verdicts
        self._begin = begin
        self._events = events

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PATIENCE_S):
            line = await reader.readline()
        match asked_for(line):
            case "status":
                await send(writer, line_of({"status": await self._status()}), PATIENCE_S)
            case "events" if len(self._events) >= FOLLOWERS:
                error = f"{FOLLOWERS} clients follow the events already"
                await send(writer, line_of({"error": error}), PATIENCE_S)
            case "events":
                await _until_hung_up(reader, self._events.follow(writer, self._begin()))
            case what if what in self._verdicts:
                await send(writer, line_of({what: self._verdicts[what]()}), PATIENCE_S)
            case _:
                known = ("status", "events", *self._verdicts)
                *most, last = (question(each).decode().strip() for each in known)
                error = f"ask {', '.join(most)} or {last}"
                await send(writer, line_of({"error": error}), PATIENCE_S)


async def _until_hung_up(reader: asyncio.StreamReader, following: Awaitable[None]) -> None:
    followed = asyncio.ensure_future(following)
    ended = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((followed, ended), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (followed, ended):
            task.cancel()
        results = await asyncio.gather(followed, ended, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
