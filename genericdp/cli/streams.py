"""Standard output and error as a shell may leave them: closed, full, or in a limited encoding.

The rules of this file:

* None of this is a bug in genericdp, so none of it ends in a traceback.
"""

import contextlib
import errno
import io
import os
import sys

#: Errors of writing to a file that is open.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def prepare() -> None:
    """Make both streams accept everything that is printed."""
    # A program that was started with `>&-` has no stream at all.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (it stays open)
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up() -> None:
    """Drop what could not be written. At its end Python would try again, and complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_without_room(error: OSError) -> bool:
    """Whether the error means that the output could not be written."""
    return error.filename is None and error.errno in _NO_ROOM
