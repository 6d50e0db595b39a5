"""Our sockets in the kubelet's directory: their names, and those that an earlier process left there.

The rules of this file:

* A name of ours is fresh for every registration, short and recognisable; other plugins' sockets are
  never touched.
* A socket on which nobody listens was left by a process that was killed. One on which somebody
  listens belongs to another genericdp.
"""

import os
import re
import socket
import stat

_PREFIX = "gdp-"
_OURS = re.compile(rf"{_PREFIX}[0-9a-f]{{10}}\.sock")


def fresh_name() -> str:
    """A name for a socket that was never used before."""
    return f"{_PREFIX}{os.urandom(5).hex()}.sock"


def accepts(path: str) -> bool:
    """Whether somebody listens on the socket: a connection, closed at once."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except BlockingIOError:
            return True  # the queue is full: it listens, and is busy
        except OSError:
            return False
        return True


def sweep(directory: str) -> tuple[str, ...]:
    """Remove the sockets of genericdp on which nobody listens; the names of those that are left.

    For a directory in which this process has none. One that cannot be read, or is not there, has none.
    """
    try:
        names = sorted(name for name in os.listdir(directory) if _OURS.fullmatch(name))
    except OSError:
        return ()
    return tuple(name for name in names if _is_alive(os.path.join(directory, name)))


def _is_alive(path: str) -> bool:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
        if accepts(path):
            return True
        os.unlink(path)
    except OSError:
        pass  # gone already, or not ours to remove
    return False
