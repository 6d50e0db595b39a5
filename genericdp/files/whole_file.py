"""A file that is written whole and read whole.

The rules of this file:

* It is written by rename: a power cut during the write leaves the old or the new one, a power cut afterwards
  the new one. If the old one is kept, too, this needs hard links. Without `sync`, this holds after a kill,
  but not after a power cut.
* Nothing is written where others can put a symlink, and nothing is read that others may have written.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress

from genericdp.files.trust import open_trusted

#: The longest file that is read, in bytes. With the ids of ten full resources, a memory has a third of this.
LONGEST = 256 << 20

#: What tells a file from another one, or from what somebody else has made of it.
FileIdentity = tuple[int, int, int, int]

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def identity_at(path: str) -> FileIdentity | None:
    """Which file is at a path, as far as that can be seen."""
    try:
        return _identity(os.stat(path))
    except OSError:
        return None


def write_whole(
    path: str, data: bytes, *, keep_as: Callable[[], str] = str, mode: int = 0o644, sync: bool = True
) -> FileIdentity:
    """Replace a file by rename. Raises UntrustedError, OSError.

    keep_as  called just before the rename: returns the path under which the old file is kept, in the same
             directory, where a file is replaced; "" if it is not kept
    mode     of the new file, apart from the umask
    sync     wait until it is on the disk
    """
    directory, name = os.path.split(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    at = open_trusted(directory)
    try:
        with suppress(FileNotFoundError):
            os.unlink(f"{name}.new", dir_fd=at)
        try:
            with open(os.open(f"{name}.new", _NEW_FILE, mode, dir_fd=at), "wb") as file:
                file.write(data)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
                identity = _identity(os.fstat(file.fileno()))
            if aside := keep_as():
                _keep(at, name, os.path.basename(aside))
            os.replace(f"{name}.new", name, src_dir_fd=at, dst_dir_fd=at)
        except OSError:
            # What is left of it would take the space that the next try needs.
            with suppress(OSError):
                os.unlink(f"{name}.new", dir_fd=at)
            raise
        # fsync(2): the fsync of the file says nothing about its entry in the directory.
        if sync:
            os.fsync(at)
    finally:
        os.close(at)
    return identity


def sync(path: str) -> None:
    """Make sure that a file written without `sync` is on the disk. Raises UntrustedError, OSError."""
    for each in (path, os.path.dirname(path)):
        descriptor = open_trusted(each)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _keep(at: int, name: str, aside: str) -> None:
    """Give a file another name in its directory.

    Where there are hard links, it has both names until the new file takes the old one: a kill in between must
    leave a file there.
    """
    linked = f"{aside}.new"
    try:
        with suppress(FileNotFoundError):
            os.unlink(linked, dir_fd=at)
        os.link(name, linked, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)
    except OSError:  # the file system has no hard links, or the file is absent
        with suppress(FileNotFoundError):
            os.replace(name, aside, src_dir_fd=at, dst_dir_fd=at)
        return
    try:
        os.replace(linked, aside, src_dir_fd=at, dst_dir_fd=at)
    finally:
        with suppress(FileNotFoundError):  # rename(2): between two names of one file, it does nothing
            os.unlink(linked, dir_fd=at)


def read_whole(path: str) -> tuple[bytes, FileIdentity]:
    """The content of a regular file, and which one it is. Raises UntrustedError, OSError."""
    descriptor = open_trusted(path)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if found.st_size > LONGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(), _identity(found)
    finally:
        os.close(descriptor)


def _identity(file: os.stat_result) -> FileIdentity:
    return file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns
