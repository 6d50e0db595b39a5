"""A gRPC server on a unix socket as Go's servers behave: its file outlives the process.

The rules of this file:

* The kubelet never removes its sockets, also not when it stops, and plugins live with that; gRPC's
  C-core would unlink them. So it binds through a descriptor of the directory, and that descriptor
  points elsewhere when the server stops.
"""

import os
from pathlib import Path

import grpc
import grpc.aio

#: The link count does not matter here, only that nothing in it is called like a socket of ours.
_NOWHERE = "/proc/self/fdinfo"


class Server:
    """One server on one socket. `start` and `stop` once each."""

    def __init__(self, *handlers: grpc.GenericRpcHandler) -> None:
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers(handlers)
        self._directory = -1

    async def start(self, path: Path, *, rename_from: str = "") -> None:
        """Bind and listen. With `rename_from` it is bound under that name first, then renamed."""
        self._directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        name = rename_from or path.name
        self._server.add_insecure_port(f"unix:/proc/self/fd/{self._directory}/{name}")
        await self._server.start()
        if rename_from:
            (path.parent / rename_from).replace(path)

    async def stop(self) -> None:
        """Break every connection; the socket's file stays and refuses connections from now on."""
        if self._directory < 0:
            return
        nowhere = os.open(_NOWHERE, os.O_PATH | os.O_DIRECTORY)
        os.dup2(nowhere, self._directory)
        os.close(nowhere)
        await self._server.stop(grace=None)
        os.close(self._directory)
        self._directory = -1
