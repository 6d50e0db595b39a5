"""Writes the log to a stream whose reader may have stopped reading.

The rules of this file:

* The reader cannot stop the daemon: a line that would have to wait is dropped, and the number of
  dropped lines is logged as soon as the reader reads again.
* No thread: the kernel says beforehand whether a write would wait. Each write is at most PIPE_BUF
  bytes, which a pipe with room accepts at once (pipe(7)).
"""

import io
import logging
import os
import select
from typing import TextIO

#: How long to wait for a slow reader, in milliseconds; not again before it has read something.
PATIENCE_MS = 100

_AT_ONCE = select.PIPE_BUF


class Outlet(logging.Handler):
    """Log lines to a stream. A stream without a file descriptor (a StringIO) is simply written to."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._dropped = 0
        try:
            self._fd = stream.fileno()
        except (io.UnsupportedOperation, ValueError, OSError):
            self._fd = -1

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or count it."""
        text = f"{self.format(record)}\n"
        if self._fd < 0:
            self._stream.write(text)
            return
        patience_ms = 0 if self._dropped else PATIENCE_MS
        if self._dropped and self._takes(f"{self.format(self._about_dropped(record))}\n", 0):
            self._dropped = 0
        if self._dropped or not self._takes(text, patience_ms):
            self._dropped += 1

    def _about_dropped(self, record: logging.LogRecord) -> logging.LogRecord:
        fields = {"lines": self._dropped}
        message = "log lines were lost because nobody read the log"
        about = logging.LogRecord(record.name, logging.WARNING, __file__, 0, message, (), None)
        about.fields = fields
        return about

    def _takes(self, text: str, patience_ms: int) -> bool:
        """Whether the stream accepted the whole text. A line that was cut off ends with the next one."""
        data = text.encode(self._stream.encoding or "utf-8", "backslashreplace")
        room = select.poll()
        room.register(self._fd, select.POLLOUT)
        try:
            # Anything else printed on the stream was printed before this.
            self._stream.flush()
            while data:
                if not room.poll(patience_ms):
                    return False
                data = data[os.write(self._fd, data[:_AT_ONCE]) :]
        except BlockingIOError:
            return False
        except (OSError, ValueError):
            # The stream is closed or its disk is full: nobody can be told.
            return True
        return True
