"""One subscription to uevents: a pyudev monitor that survives failures.

The rules of this file:

* After an overflow, every `poll` of pyudev raises, and the loop would spin: libudev leaves the error
  in the socket. Reading SO_ERROR clears it; the messages before it can still be read.
* A closed subscription has closed its file descriptor: nothing keeps the pyudev monitor alive.
"""

import fcntl
import os
import socket
from contextlib import suppress

import pyudev

from genericdp.udev import snapshot

#: What pyudev raises for errors of libudev.
FAILURES = (OSError, ValueError, OverflowError, MemoryError)

# ioctl_ns(2); the inode of the initial user namespace is fixed (linux/proc_ns.h, PROC_USER_INIT_INO).
_NS_GET_USERNS = 0xB701
_INITIAL_USER_NAMESPACE = 0xEFFFFFFD


class Subscription:
    """Receives the events of one source ("udev" or "kernel") from now on. Raises OSError.

    receive_buffer  bytes requested for the socket; without CAP_NET_ADMIN the system limits them
    """

    def __init__(self, source: str, receive_buffer: int) -> None:
        self.source = source
        self._monitor: pyudev.Monitor | None = pyudev.Monitor.from_netlink(snapshot.context(), source)
        # Usually EPERM, but pyudev may raise any errno; 0.24.0 raises even on success.
        with suppress(*FAILURES):
            self._monitor.set_receive_buffer_size(receive_buffer)
        self._monitor.start()
        self.fileno = self._monitor.fileno()

    def close(self) -> None:
        """Unsubscribe. May be called twice."""
        self._monitor = None

    def receive(self) -> pyudev.Device | None:
        """The next event, None without one. Raises any of FAILURES."""
        return None if self._monitor is None else self._monitor.poll(timeout=0)

    def take_error(self) -> int:
        """Clear and return the socket's pending error, an errno or 0."""
        with self._duplicate() as duplicate:
            return duplicate.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    @property
    def hears_nobody(self) -> bool:
        """Whether libudev has silently subscribed to nothing.

        It does so for "udev" if /run/udev/control does not exist and /dev is not a devtmpfs, to hide
        the host's devices from a container (sd-device-monitor).
        """
        try:
            with self._duplicate() as duplicate:
                if duplicate.family != socket.AF_NETLINK:
                    return False
                _, groups = duplicate.getsockname()
                return not groups
        except OSError:
            return False  # no descriptor is left to find out

    def _duplicate(self) -> socket.socket:
        return socket.socket(fileno=os.dup(self.fileno))


def hears_no_uevents(namespace: str = "/proc/self/ns/net") -> bool:
    """Whether the kernel sends no uevents here: since Linux 4.18 (lib/kobject_uevent.c), only a network
    namespace of the initial user namespace gets them. No missing event shows that. False if unknown.
    """
    try:
        network = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        owner = fcntl.ioctl(network, _NS_GET_USERNS)
    except OSError:
        # Not permitted: an outer user namespace owns it, as for a service of the host.
        return False
    finally:
        os.close(network)
    try:
        return os.fstat(owner).st_ino != _INITIAL_USER_NAMESPACE
    finally:
        os.close(owner)
