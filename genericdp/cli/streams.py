"""Standard output and error as an operator's shell may leave them: closed, full, without our characters.

The rules of this file:

* None of that is a bug of ours, so none of it ends in a traceback.
"""

import contextlib
import errno
import io
import os
import sys

#: What keeps output from being written that was opened.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def prepare() -> None:
    """Make both streams take whatever is printed."""
    # A program that was started with `>&-` has no stream at all.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (it stays open)
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def give_up() -> None:
    """Drop what could not be written; Python would try once more when it ends, and complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_without_room(error: OSError) -> bool:
    """Whether it was raised because what was printed could not be written."""
    return error.filename is None and error.errno in _NO_ROOM
