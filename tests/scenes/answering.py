"""Servers on sockets, as tests play them: there for the length of a block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio


@asynccontextmanager
async def a_grpc_server(path: Path, *handlers: grpc.GenericRpcHandler) -> AsyncIterator[None]:
    """A server of these services on a unix socket."""
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(handlers)
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(grace=None)
