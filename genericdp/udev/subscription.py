"""One subscription to uevents: a pyudev monitor that a failure does not end.

The rules of this file:

* After an overflow pyudev's `poll` raises for ever and the loop would spin: libudev leaves the
  error in the socket. Reading SO_ERROR takes it out; the messages before it are still there.
* A closed subscription has closed its file descriptor: nothing keeps the pyudev monitor alive.
"""

import os
import socket
from contextlib import suppress

import pyudev

from genericdp.udev import snapshot

#: What pyudev makes of the errors of libudev.
FAILURES = (OSError, ValueError, OverflowError, MemoryError)


class Subscription:
    """Hears the events of one source ("udev" or "kernel") from now on. Raises OSError.

    receive_buffer  bytes asked for the socket; without CAP_NET_ADMIN the system gives what it likes
    """

    def __init__(self, source: str, receive_buffer: int) -> None:
        self.source = source
        self._monitor: pyudev.Monitor | None = pyudev.Monitor.from_netlink(snapshot.context(), source)
        # Not permitted, mostly; pyudev may raise any errno for that, and 0.24.0 even when it worked.
        with suppress(*FAILURES):
            self._monitor.set_receive_buffer_size(receive_buffer)
        self._monitor.start()
        self.fileno = self._monitor.fileno()

    def close(self) -> None:
        """Stop hearing. May be called twice."""
        self._monitor = None

    def receive(self) -> pyudev.Device | None:
        """The next event, None when there is none (now). Raises any of FAILURES."""
        return None if self._monitor is None else self._monitor.poll(timeout=0)

    def take_error(self) -> int:
        """The socket's pending error, an errno or 0; it is not pending any more."""
        with self._duplicate() as duplicate:
            return duplicate.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    @property
    def hears_nobody(self) -> bool:
        """Whether libudev has silently subscribed to nothing.

        It does that for "udev" where /run/udev/control is absent and /dev is no devtmpfs, so that
        a container does not learn of the host's devices (sd-device-monitor).
        """
        with self._duplicate() as duplicate:
            if duplicate.family != socket.AF_NETLINK:
                return False
            _, groups = duplicate.getsockname()
            return not groups

    def _duplicate(self) -> socket.socket:
        return socket.socket(fileno=os.dup(self.fileno))
