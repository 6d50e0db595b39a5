"""What a killed `node-removed` leaves: a name that was never renamed (`packaging/udev`).

The rules of this file:

* It may be running at this moment. Without the name, it would leave a link at a node that has gone. So the
  name is left until udev itself would have ended the program.
"""

import os
import time

#: udev ends a program after 180 s (udev.conf(5), event_timeout).
_ABANDONED_S = 300.0


def is_abandoned(directory: int, name: str) -> bool:
    """Whether a name in a directory (a descriptor) is so old that nobody will rename it."""
    try:
        return time.time() - os.lstat(name, dir_fd=directory).st_mtime > _ABANDONED_S
    except OSError:
        return False
