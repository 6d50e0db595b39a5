"""A socket on which the daemon is asked: a unix socket, or a port of an IP address.

The rules of this file:

* A client never ends the daemon and never makes it wait: slow ones are cut off, excess ones are told why.
* A connection of a port counts until the client has received its answer. What a client does not read stays in
  the kernel, which may count it as memory of the daemon.
* A unix socket has its mode before anybody can connect. A socket on which nobody listens was left by a
  process that was killed, and is replaced; one on which somebody listens is left alone.
"""

import asyncio
import errno
import fcntl
import os
import socket
import stat
import struct
import termios
from collections.abc import Awaitable, Callable
from contextlib import suppress

from genericdp import log
from genericdp.errors import GenericdpError, what_is_short
from genericdp.unixsocket import accepts

#: Who may connect: root, and the group of the process.
MODE = 0o660

#: The mode of a directory made for the socket: everybody may enter; the socket decides who may connect.
DIRECTORY_MODE = 0o755

#: The most connections at a time.
MOST = 16

#: How many connections are accepted in one turn of the event loop. By default, asyncio accepts 100. A kubelet
#: that asks for a device waits for some turns, each of which is as long as what all of these take.
AT_A_TIME = 1

#: How many connections wait to be accepted, in the kernel.
QUEUE = 128

#: How much the kernel keeps for a client of a port, in bytes: twice that, with its own data, and not 4 MiB.
SEND_BUFFER = 1 << 16

#: How long a client may take to receive the end of its answer, in seconds, and how often that is looked at.
PATIENCE_S = 5.0
LOOK_S = 0.02

#: On close, drop what was not received (socket(7)).
_DROP = struct.pack("ii", 1, 0)

#: The longest line of a question, in bytes.
LINE_LIMIT = 8192

#: What an operator can do about errors that do not explain themselves.
_HINTS = {
    errno.EAFNOSUPPORT: "the unit's RestrictAddressFamilies= forbids it; the drop-in metrics.conf permits it",
    errno.EADDRNOTAVAIL: "it must be an address of this machine",
    errno.EROFS: "the unit permits only paths below /run/genericdp; a container needs a volume there",
    errno.EACCES: "ports below 1024 need CAP_NET_BIND_SERVICE, which genericdp does not have",
}

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_log = log.get(__name__)


class Listener:
    """Listens on an address until it is closed.

    address  "unix:/path", or "127.0.0.1:9101", "[::1]:9101"
    answer   called for each connection, which is closed when it returns
    most     the most connections at a time
    oldest_goes  whether an excess connection ends an old one, for answers that take no time: a silent client
             must not lock out a probe. Otherwise the excess connection gets `full` and is closed.
    """

    def __init__(
        self,
        address: str,
        answer: Answer,
        *,
        most: int = MOST,
        oldest_goes: bool = False,
        full: bytes = b"",
    ) -> None:
        self.address = address
        self._answer = answer
        self._most = most
        self._oldest_goes = oldest_goes
        self._full = full
        self._server: asyncio.Server | None = None
        self._made: tuple[int, int] | None = None
        self._asking: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def path(self) -> str:
        """The path of its socket file, "" if it has none."""
        return self.address.removeprefix("unix:") if self.address.startswith("unix:") else ""

    @property
    def listens(self) -> bool:
        """Whether clients can connect: it listens, and nobody removed its socket file."""
        if self._server is None:
            return False
        return not self.path or _identity(self.path) == self._made

    @property
    def was_removed(self) -> bool:
        """Whether it listens, but somebody removed its socket file."""
        return self._server is not None and not self.listens

    async def open(self) -> None:
        """Listen. Does nothing if it listens already. Raises GenericdpError."""
        if self.listens:
            return
        await self.close()
        try:
            listening = _unix_socket(self.path) if self.path else _ip_socket(self.address)
        except OSError as error:
            raise GenericdpError(
                f"cannot listen on '{self.address}': {_words(error)}", hint=self._hint(error)
            ) from error
        if self.path:
            self._made = _identity(self.path)
            server = await asyncio.start_unix_server(
                self._serve, sock=listening, limit=LINE_LIMIT, backlog=AT_A_TIME, start_serving=False
            )
        else:
            server = await asyncio.start_server(
                self._serve, sock=listening, limit=LINE_LIMIT, backlog=AT_A_TIME, start_serving=False
            )
        # Stored before the next point of cancellation, so that it is closed whatever happens.
        self._server = server
        await server.start_serving()
        # To asyncio, the length of the queue and how many are accepted at a time are one number.
        listening.listen(QUEUE)

    def _hint(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE and not self.path:
            return "'ss --listening --tcp --processes' shows who listens there"
        if error.errno == errno.EACCES and self.path:
            return "the directory, or the socket that is there, belongs to another user: choose another path"
        # A socket that nobody serves would have been removed.
        if error.errno in {errno.EADDRINUSE, errno.EEXIST, errno.ENOTDIR} and self.path:
            found = _existing(self.path)
            return f"something else is at '{found}': remove it, or choose another path"
        return _HINTS.get(error.errno or 0) or what_is_short(error)

    async def close(self) -> None:
        """Stop listening and close all connections. May be called twice."""
        server, self._server = self._server, None
        if server is not None:
            # A connection accepted while a server closes is neither served nor closed by asyncio
            # (Python 3.11).
            loop = asyncio.get_running_loop()
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
            for _ in range(2):
                await asyncio.sleep(0)
            server.close()
            if self.path and _identity(self.path) == self._made:
                with suppress(OSError):
                    os.unlink(self.path)
        asking = tuple(self._asking)
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        full = len(self._asking) >= self._most
        if self._server is None:
            writer.transport.abort()
            return
        if full and not self._oldest_goes:
            _log.warning("a client was sent away, as too many are connected", address=self.address)
            writer.write(self._full)
            writer.close()
            return
        if full:
            oldest = self._oldest()
            del self._asking[oldest]
            oldest.cancel()

        def hang_up(task: asyncio.Task[None]) -> None:
            # Not in the task, because a task that is cancelled early never starts. Unsent data is dropped:
            # a client that does not read would keep it.
            self._asking.pop(task, None)
            if not writer.transport.is_closing() or writer.transport.get_write_buffer_size():
                if _not_received(writer):
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP)
                writer.transport.abort()

        task = asyncio.get_running_loop().create_task(self._serve_one(reader, writer))
        self._asking[task] = writer
        task.add_done_callback(hang_up)

    def _oldest(self) -> asyncio.Task[None]:
        """The oldest connection that receives no answer now, unless more than half of them receive one."""
        receiving = [task for task, writer in self._asking.items() if _not_received(writer)]
        if len(receiving) > self._most // 2:
            return receiving[0]
        return next(task for task in self._asking if task not in receiving)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(reader, writer)
            if not self.path:
                await _until_received(writer)
            writer.close()
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass  # gone, too slow, or a line over the limit: nobody is left to answer
        except Exception as error:  # noqa: BLE001  (a bug in an answer must not end the plugin)
            _log.bug("a question could not be answered", error)


async def send(writer: asyncio.StreamWriter, data: bytes, patience_s: float | None) -> None:
    """Send it all. Raises TimeoutError if the client does not read in time, OSError if it is gone."""
    # No more than a piece stays in a buffer of this process: what is sent is in the kernel's.
    writer.transport.set_write_buffer_limits(high=0)
    async with asyncio.timeout(patience_s):
        for at in range(0, len(data), SEND_BUFFER):
            writer.write(memoryview(data)[at : at + SEND_BUFFER])
            await writer.drain()


async def _until_received(writer: asyncio.StreamWriter) -> None:
    """Return once the client has everything. Raises TimeoutError if that takes too long."""
    async with asyncio.timeout(PATIENCE_S):
        while _not_received(writer):  # noqa: ASYNC110  (nobody tells when it was received)
            await asyncio.sleep(LOOK_S)


def _not_received(writer: asyncio.StreamWriter) -> int:
    """How many bytes are in the kernel for the client (SIOCOUTQ); on a unix socket, until it reads them."""
    try:
        answer = fcntl.ioctl(writer.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):  # it is closed
        return 0
    return int(struct.unpack("i", answer)[0])


def _unix_socket(path: str) -> socket.socket:
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        os.makedirs(directory, mode=DIRECTORY_MODE, exist_ok=True)
        os.chmod(directory, DIRECTORY_MODE)
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            if accepts(path):
                raise OSError(0, "another process listens on it")
            os.unlink(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listening.setblocking(False)
        listening.bind(path)
        os.chmod(path, MODE)
        listening.listen(QUEUE)
    except BaseException:
        listening.close()
        raise
    return listening


def _ip_socket(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)  # accepted ones inherit it
        listening.bind((host.strip("[]"), int(port)))
        listening.listen(QUEUE)
    except BaseException:
        listening.close()
        raise
    return listening


def _existing(path: str) -> str:
    """What exists of a path: itself, or the nearest above it."""
    while path not in {"", "/"} and not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _words(error: OSError) -> str:
    return error.strerror or str(error)
