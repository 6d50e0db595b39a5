"""Real device nodes in a directory of their own below /dev. Needs root (mknod)."""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: No driver has this major number, so udev knows none of its nodes.
UNKNOWN_MAJOR = 4000


@contextmanager
def a_directory() -> Iterator[Path]:
    """A new directory below /dev, which goes with what is in it."""
    dev = Path(f"/dev/gdp-0{secrets.token_hex(4)}")
    dev.mkdir()
    dev.chmod(0o755)
    try:
        yield dev
    finally:
        shutil.rmtree(dev)


def make_node(path: Path, minor: int, *, major: int = UNKNOWN_MAJOR, kind: int = stat.S_IFCHR) -> None:
    """A device node at a path."""
    os.mknod(path, kind | 0o660, os.makedev(major, minor))
