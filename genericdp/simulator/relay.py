"""A relay to a gRPC server that keeps its socket bound for a while before it listens.

The rules of this file:

* Go binds first and listens a moment later. A client that connects in between is refused, and no
  inotify event tells when that is over. gRPC's C-core does both at once, so the relay stands in front.
* Bytes are passed on unchanged, in both directions.
"""

import asyncio
import contextlib
import socket
from pathlib import Path

_CHUNK = 65536


class Relay:
    """Call `bind`, then `listen`, then `stop`; the socket's file stays."""

    def __init__(self, path: Path, behind: str) -> None:
        self._path = path
        self._behind = behind
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._tasks: set[asyncio.Task[None]] = set()

    def bind(self) -> None:
        """Create the socket's file; connections are refused."""
        self._socket.bind(str(self._path))

    def listen(self) -> None:
        """Accept connections from now on."""
        self._socket.listen()
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    async def stop(self) -> None:
        """Break every connection."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            connection, _ = self._socket.accept()
            task = asyncio.get_running_loop().create_task(self._pass_on(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, connection: socket.socket) -> None:
        near = await asyncio.open_connection(sock=connection)
        far = await asyncio.open_unix_connection(self._behind)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(near[0], far[1]))
                both.create_task(_pump(far[0], near[1]))
        finally:
            near[1].close()
            far[1].close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until either side ends."""
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
