"""A gRPC server whose socket file outlives the process, as a kubelet's does.

The rules of this file:

* It refuses services and methods that it does not know with grpc-go's texts, not with those of C-core.
* A kubelet never removes its sockets, not even when it stops, and plugins have to cope with that.
  gRPC's C-core would unlink them, so the server binds through a descriptor of the directory, and
  redirects that descriptor elsewhere before it stops.
"""

import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import grpc
import grpc.aio

#: Any directory that has no file with the name of our socket.
_NOWHERE = "/proc/self/fdinfo"


class Server:
    """One server on one socket. Call `start` and `stop` once each."""

    def __init__(self, *handlers: grpc.GenericRpcHandler) -> None:
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((*handlers, _Unknown(handlers)))
        self._directory = -1

    async def start(self, path: Path, *, rename_from: str = "") -> None:
        """Bind and listen. With `rename_from`, bind under that name first, then rename to `path`."""
        self._directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
        name = rename_from or path.name
        self._server.add_insecure_port(f"unix:/proc/self/fd/{self._directory}/{name}")
        await self._server.start()
        if rename_from:
            (path.parent / rename_from).replace(path)

    async def stop(self) -> None:
        """Break every connection; the socket's file stays, and connecting to it is refused."""
        if self._directory < 0:
            return
        nowhere = os.open(_NOWHERE, os.O_PATH | os.O_DIRECTORY)
        os.dup2(nowhere, self._directory)
        os.close(nowhere)
        await self._server.stop(grace=None)
        os.close(self._directory)
        self._directory = -1


class _Unknown(grpc.GenericRpcHandler):
    """Refuses every call that the handlers before it do not serve."""

    def __init__(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        self._known = {
            handler.service_name() for handler in handlers if isinstance(handler, grpc.ServiceRpcHandler)
        }

    def service(self, call: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        service, _, method = call.method.removeprefix("/").rpartition("/")
        text = f"unknown service {service}"
        if service in self._known:
            text = f"unknown method {method} for service {service}"

        async def refuse(
            _requests: AsyncIterator[bytes], context: "grpc.aio.ServicerContext[bytes, bytes]"
        ) -> None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)

        return grpc.stream_stream_rpc_method_handler(refuse)
