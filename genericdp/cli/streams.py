"""Standard output and error as a shell may leave them: closed, full, or in a limited encoding.

The rules of this file:

* None of this is a bug in genericdp, so none of it ends in a traceback.
* An error of writing is one of the stream itself. Any other call may fail with the same number.
* If both go into one file or pipe, their lines are in the same order as on a terminal.
"""

import contextlib
import errno
import io
import os
import sys
from typing import Any, TextIO

#: Errors of writing to a file that is open.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class OutputError(OSError):
    """The output cannot be written."""


class _File(io.FileIO):
    """The file of a stream. Writing to it raises OutputError for want of room."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise OutputError(error.errno, error.strerror) from error
            raise


def prepare() -> None:
    """Make both streams accept everything that is printed."""
    # A program that was started with `>&-` has no stream at all.
    sys.stdout = _prepared(sys.stdout or open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (it stays open)
    sys.stderr = _prepared(sys.stderr or open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _prepared(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.reconfigure(errors="backslashreplace", line_buffering=True)
    if stream not in (sys.__stdout__, sys.__stderr__):
        return stream
    file = _File(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        # PYTHONUNBUFFERED leaves the buffer out.
        file if isinstance(stream.buffer, io.RawIOBase) else io.BufferedWriter(file),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def give_up() -> None:
    """Drop what could not be written. At its end Python would try again, and complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
