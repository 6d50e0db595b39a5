"""Unix sockets that other processes may listen on."""

import socket

from genericdp.errors import SHORTAGES


def accepts(path: str) -> bool:
    """Whether somebody listens on the socket; tried by connecting and closing at once.

    Raises OSError if it cannot be tried, for want of descriptors or memory.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:
            return True  # the queue is full: somebody listens, and is busy
        except OSError as error:
            if error.errno in SHORTAGES:
                raise
            return False
        return True
