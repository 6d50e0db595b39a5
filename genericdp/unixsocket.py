"""Unix sockets that other processes may listen on."""

import errno
import os
import socket
from contextlib import suppress

#: How connecting fails if nobody listens.
_NOBODY = (errno.ECONNREFUSED, errno.ENOENT, errno.ENOTDIR)


def why_not_bound(path: str) -> str:
    """Why no socket can be bound to a path, as the kernel says it; "" if one can. It does not stay."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.bind(path)
    except OSError as error:
        return error.strerror or ""
    with suppress(OSError):
        os.unlink(path)
    return ""


def accepts(path: str) -> bool:
    """Whether somebody listens on the socket; tried by connecting and closing at once.

    Raises OSError if it cannot be told, for want of descriptors, memory or permission.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:
            return True  # the queue is full: somebody listens, and is busy
        except OSError as error:
            if error.errno not in _NOBODY:
                raise
            return False
        return True
