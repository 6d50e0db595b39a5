"""Clients of our sockets, as tests play them: connected for the length of a block."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def rest(self) -> bytes:
        """All that still comes; b"" also when it is cut off."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""


@asynccontextmanager
async def connected(address: Path | tuple[str, int]) -> AsyncIterator[Client]:
    """A client of a unix socket, or of a port."""
    if isinstance(address, Path):
        reader, writer = await asyncio.open_unix_connection(str(address))
    else:
        reader, writer = await asyncio.open_connection(*address)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def answer_to(address: Path | tuple[str, int], question: bytes) -> bytes:
    """All that is answered."""
    async with connected(address) as client:
        client.writer.write(question)
        return await client.rest()
