"""The sockets of genericdp in the kubelet's directory.

The rules of this file:

* Every registration uses a new name, short and recognizable. The sockets of other plugins are never touched.
* A socket on which nobody listens was left by a process that was killed. One on which somebody listens is
  left alone: its name does not say who that is.
"""

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress

from genericdp import log
from genericdp.errors import SHORTAGES
from genericdp.unixsocket import accepts

_PREFIX = "gdp-"
_OURS = re.compile(rf"{_PREFIX}[0-9a-f]{{10}}\.sock")

_log = log.get(__name__)


def fresh_name() -> str:
    """A socket name that was never used before."""
    return f"{_PREFIX}{os.urandom(5).hex()}.sock"


def sweep(directory: str) -> tuple[str, ...]:
    """Remove the sockets of genericdp on which nobody listens; returns the names of the others.

    Only for a directory in which this process has no socket. A directory that cannot be read counts as empty.

    Raises OSError if there are too few descriptors, or too little memory, to tell.
    """
    try:
        names = sorted(name for name in os.listdir(directory) if _OURS.fullmatch(name))
    except OSError as error:
        if error.errno in SHORTAGES:
            raise
        return ()
    return tuple(name for name in names if _is_alive(os.path.join(directory, name)))


def remove(path: str) -> None:
    """Remove a socket on which nobody listens any more. Usually grpc has done so.

    What stays is harmless: the kubelet empties its directory when it starts, and so does `sweep`.
    """
    try:
        os.unlink(path)
    except OSError as error:
        # Where nothing can be written, unlink(2) says so even of a name that does not exist.
        if os.path.lexists(path):
            _log.warning("cannot remove an unused socket", socket=path, error=error.strerror)


def report_strangers(directory: str, names: Iterable[str]) -> None:
    """Log the programs that still listen on sockets with names of genericdp."""
    for path in (os.path.join(directory, name) for name in names):
        with suppress(OSError):
            if accepts(path):
                _log.warning("another program listens on a socket with a name of genericdp", socket=path)


def _is_alive(path: str) -> bool:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
        if accepts(path):
            return True
        os.unlink(path)
    except OSError as error:
        if error.errno in SHORTAGES:
            raise
        # It is gone already, or its removal is not permitted.
    return False
