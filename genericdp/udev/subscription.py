"""One subscription to uevents: a pyudev monitor that survives failures.

The rules of this file:

* After an overflow, every `poll` of pyudev raises, and the loop would spin: libudev leaves the error
  in the socket. Reading SO_ERROR clears it; the messages before it can still be read.
* Unprivileged users cannot flood the sockets. Mounting FUSE file systems in a loop causes 5,000 uevents a
  second, and the `remove` of a device would wait behind them. They belong to the class `bdi`, whose devices
  have no device node, so a socket filter makes the kernel drop them (socket(7)).
* A closed subscription has closed its file descriptor: nothing keeps the pyudev monitor alive.
"""

import ctypes
import fcntl
import os
import socket
import struct
from contextlib import suppress

import pyudev

from genericdp.udev import snapshot

#: What pyudev raises for errors of libudev.
FAILURES = (OSError, ValueError, OverflowError, MemoryError)

# ioctl_ns(2); the inode of the initial user namespace is fixed (linux/proc_ns.h, PROC_USER_INIT_INO).
_NS_GET_USERNS = 0xB701
_INITIAL_USER_NAMESPACE = 0xEFFFFFFD

#: asm-generic/socket.h
_SO_ATTACH_FILTER = 26

# Classic BPF (linux/bpf_common.h): load a byte or a word at k, or at X + k; set X; jump; end.
_BYTE, _WORD, _BYTE_AT_X, _WORD_AT_X = 0x30, 0x20, 0x50, 0x40
_SET_X, _JUMP, _IF_EQUAL, _END = 0x01, 0x05, 0x15, 0x06
_WHOLE = 0xFFFFFFFF

# An instruction: its code, how many to skip if it holds and if not, and k.
_Program = tuple[tuple[int, int, int, int], ...]

# The kernel's messages begin with "add@/devices/…", "remove@/devices/…" or "change@/devices/…". Paths outside
# /devices, such as those of modules, do not belong to devices.
_OF_THE_KERNEL: _Program = (
    (_BYTE, 0, 0, 3),
    (_IF_EQUAL, 0, 2, ord("@")),
    (_SET_X, 0, 0, 4),
    (_JUMP, 0, 0, 3),
    (_BYTE, 0, 0, 6),
    (_IF_EQUAL, 0, 11, ord("@")),
    (_SET_X, 0, 0, 7),
    (_WORD_AT_X, 0, 0, 0),
    (_IF_EQUAL, 0, 9, int.from_bytes(b"/dev")),
    (_WORD_AT_X, 0, 0, 8),
    (_IF_EQUAL, 0, 6, int.from_bytes(b"/vir")),
    (_WORD_AT_X, 0, 0, 12),
    (_IF_EQUAL, 0, 4, int.from_bytes(b"tual")),
    (_WORD_AT_X, 0, 0, 16),
    (_IF_EQUAL, 0, 2, int.from_bytes(b"/bdi")),
    (_BYTE_AT_X, 0, 0, 20),
    (_IF_EQUAL, 1, 0, ord("/")),
    (_END, 0, 0, _WHOLE),
    (_END, 0, 0, 0),
)

# Messages of udev begin with a header of libudev, which has a hash of the subsystem: this is that of "bdi".
_OF_UDEV: _Program = (
    (_WORD, 0, 0, 8),
    (_IF_EQUAL, 0, 2, 0xFEEDCAFE),
    (_WORD, 0, 0, 24),
    (_IF_EQUAL, 1, 0, 0x2A1884A1),
    (_END, 0, 0, _WHOLE),
    (_END, 0, 0, 0),
)

_FILTERS = {"kernel": _OF_THE_KERNEL, "udev": _OF_UDEV}


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
        # Without it, such events are only read for nothing.
        with suppress(OSError), self._duplicate() as duplicate:
            drop_mounts(duplicate, source)

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


def drop_mounts(receiver: socket.socket, source: str) -> None:
    """Make the kernel drop uevents that are caused by mounts or are not about devices. Raises OSError."""
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in _FILTERS[source])
    kept = ctypes.create_string_buffer(program)
    what = struct.pack("HP", len(_FILTERS[source]), ctypes.addressof(kept))
    receiver.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, what)


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
