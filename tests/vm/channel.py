"""Lines of JSON to and from another process, with deadlines.

The rules of this file:

* Every wait has a deadline, and the error of a missed one names what was awaited.
* QEMU connects to this side: the sockets exist before it starts, so no retry is needed.
"""

import contextlib
import json
import select
import socket
import time
from pathlib import Path
from typing import Any

Document = dict[str, Any]


class ChannelError(Exception):
    """The other side is gone, or sent nothing in time."""


class Channel:
    """One connection. It listens from the beginning; `accept` when the other side has been started."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(1)
        self._socket: socket.socket | None = None
        self._buffer = b""

    def accept(self, timeout_s: float) -> None:
        """Wait for the other side to connect. Raises ChannelError."""
        self._listening.settimeout(timeout_s)
        try:
            self._socket, _ = self._listening.accept()
        except TimeoutError:
            raise ChannelError(f"no connection to {self.path.name} within {timeout_s:g} s") from None

    def close(self) -> None:
        """Close both sockets."""
        self._listening.close()
        if self._socket is not None:
            self._socket.close()

    def send(self, document: Document) -> None:
        """Send one document. Raises ChannelError."""
        try:
            self._connected.sendall(json.dumps(document).encode() + b"\n")
        except OSError as error:
            raise ChannelError(f"{self.path.name} is gone: {error}") from error

    def receive(self, until: float, what: str) -> Document:
        """The next document. `until`: on time.monotonic(). Raises ChannelError."""
        while True:
            line = self._next_line(until, what)
            # Skips empty lines and those cut off by a reset: every sender begins with a line end.
            with contextlib.suppress(ValueError):
                document: Document = json.loads(line)
                return document

    def has_news(self) -> bool:
        """Whether there is something to receive."""
        return b"\n" in self._buffer or bool(select.select([self._connected], [], [], 0.0)[0])

    def _next_line(self, until: float, what: str) -> bytes:
        while b"\n" not in self._buffer:
            left = until - time.monotonic()
            ready, _, _ = select.select([self._connected], [], [], max(0.0, left))
            if not ready:
                raise ChannelError(f"{self.path.name} sent nothing in time; waited for {what}")
            try:
                data = self._connected.recv(1 << 16)
            except OSError as error:
                raise ChannelError(f"{self.path.name} is gone: {error}") from error
            if not data:
                raise ChannelError(f"{self.path.name} is gone; waited for {what}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    @property
    def _connected(self) -> socket.socket:
        if self._socket is None:
            raise ChannelError(f"{self.path.name} is not connected")
        return self._socket
