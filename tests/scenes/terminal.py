"""What a program shows at a pseudo-terminal.

The rules of this file:

* No read lasts for ever: a program that does not show what a test waits for fails the test, and so does
  one that does not end.
"""

import os
import select
import time

#: How long a program may take to show something or to end, in seconds.
PATIENCE_S = 30.0


def read_until(terminal: int, mark: str, *, patience_s: float = PATIENCE_S) -> str:
    """What is shown up to a text. Raises AssertionError if it is not shown in time, or never will be."""
    shown = ""
    deadline = time.monotonic() + patience_s
    while mark not in shown:
        block = _read(terminal, deadline)
        assert block, f"the terminal did not show {mark!r}, but {shown!r}"
        shown += block.decode("utf-8", "replace")
    return shown


def read_to_the_end(terminal: int, *, patience_s: float = PATIENCE_S) -> str:
    """Everything that is shown. Raises AssertionError if the last program there does not end in time."""
    shown = b""
    deadline = time.monotonic() + patience_s
    while block := _read(terminal, deadline):
        shown += block
    assert block is not None, f"the program at the terminal did not end, but showed {shown!r}"
    return shown.decode()


def _read(terminal: int, deadline: float) -> bytes | None:
    """The next block; b"" when nobody writes to the terminal any more, None when the time is over."""
    ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
    if not ready or time.monotonic() > deadline:
        return None
    try:
        return os.read(terminal, 65536)
    except OSError:  # EIO: so a terminal says that nobody writes to it any more
        return b""
