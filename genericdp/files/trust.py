"""Reading a file that only its owner can change: a user who can write a rule can hand out any device.

The rules of this file:

* The file and its directory belong to root or to the user who reads them, and nobody else may write them.
* What is checked is what is read: one descriptor serves both.
"""

import os
import stat

from genericdp.errors import ConfigError, Location, Problem

#: A rule file is written by people; a larger file is something else.
SIZE_LIMIT = 1 << 20


def read_text(path: str) -> str | None:
    """The text of a trusted file, without a byte order mark; None for an empty one and for /dev/null.

    Raises ConfigError for a file that is refused or cannot be read.
    """
    try:
        data = _read(path)
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        return data.decode("utf-8-sig") or None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError((Problem(Location(path, line), "not UTF-8", "save the file as UTF-8"),)) from error


def unreadable(path: str, error: OSError) -> ConfigError:
    """The error for a file or directory that cannot be read."""
    return _problem(path, f"cannot be read: {error.strerror}")


def _read(path: str) -> bytes:
    # A FIFO must not keep the daemon waiting, hence O_NONBLOCK.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISCHR(status.st_mode) and os.path.realpath(path) == "/dev/null":
            return b""
        if not stat.S_ISREG(status.st_mode):
            raise _problem(path, "is not a regular file")
        _check_trust(path, status)
        if status.st_size > SIZE_LIMIT:
            raise _problem(path, f"is larger than {SIZE_LIMIT >> 20} MiB", "split it into several files")
        return os.read(descriptor, SIZE_LIMIT + 1)
    finally:
        os.close(descriptor)


def _check_trust(path: str, status: os.stat_result) -> None:
    directory = os.path.dirname(os.path.realpath(path))
    for what, found in ((path, status), (directory, os.stat(directory))):
        writers = found.st_mode & 0o022
        if found.st_gid == found.st_uid:
            writers &= ~0o020  # the private group of a user account
        if writers and not (found.st_mode & stat.S_ISVTX and stat.S_ISDIR(found.st_mode)):
            raise _problem(path, f"refused: other users can write '{what}'", f"chmod go-w '{what}'")
        if found.st_uid not in (0, os.geteuid()):
            raise _problem(path, f"refused: '{what}' belongs to user {found.st_uid}", f"chown root '{what}'")


def _problem(path: str, message: str, hint: str = "") -> ConfigError:
    return ConfigError((Problem(Location(path, 1), message, hint),))
