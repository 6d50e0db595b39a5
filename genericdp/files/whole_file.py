"""A file that is written whole and read whole.

The rules of this file:

* It is written by rename: a power cut during the write leaves the old or the new one, a power cut afterwards
  the new one. If the old one is kept, too, this needs hard links. Without `sync`, this holds after a kill,
  but not after a power cut.
* Nothing is written where others can put a symlink, and nothing is read that others may have written.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, count

from genericdp.errors import LEADS_NOWHERE, GenericdpError, what_is_short, what_to_do
from genericdp.files.trust import UntrustedError, is_absent, open_trusted

#: The longest file that is read, in bytes. With the ids of ten full resources, a memory has a third of this.
LONGEST = 256 << 20

#: What tells a file from another one, or from what somebody else has made of it.
FileIdentity = tuple[int, int, int, int]

#: The end of the year 9999, in seconds since 1970. Files on tmpfs may have a time that gmtime(3) refuses.
_LATEST_S = 253_402_300_799

#: How reading fails what genericdp has not written.
_NOT_OURS = frozenset({errno.EFBIG, errno.EINVAL, errno.EISDIR})

#: What `path_aside` puts behind the name of a file.
_ASIDE = re.compile(r"\.[0-9]{8}T[0-9]{6}Z(-[0-9]+)?")

_MOUNT_AGAIN = (
    "the directory was removed while it was mounted here; a restart of the pod or service mounts a new one"
)

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


def path_aside(path: str, file: FileIdentity) -> str:
    """The path beside another one where the file there is or will be kept, with the time of its last change.

    If its content is kept already, it is that path: somebody may put the same file in place again and again.
    """
    directory, name = os.path.split(path)
    for each in sorted(os.listdir(directory)):
        kept = os.path.join(directory, each)
        if each.startswith(name) and _ASIDE.fullmatch(each[len(name) :]) and _is_same(kept, path):
            return kept
    changed = time.gmtime(min(max(0, file[3] // 10**9), _LATEST_S))
    return free_path(f"{path}.{time.strftime('%Y%m%dT%H%M%SZ', changed)}", file)


def free_path(path: str, file: FileIdentity | None = None) -> str:
    """A path for a file: the first without a number or with one where nothing is, or this file already."""

    def is_free(each: str) -> bool:
        # A try that failed may have kept the file.
        return not os.path.lexists(each) or (file is not None and identity_at(each) == file)

    return next(filter(is_free, chain((path,), (f"{path}-{number}" for number in count(1)))))


def _is_same(path: str, other: str) -> bool:
    with suppress(OSError, UntrustedError):
        same_size = os.stat(path).st_size == os.stat(other).st_size
        return same_size and read_whole(path)[0] == read_whole(other)[0]
    return False


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


def read_if_any(path: str, why: str) -> tuple[bytes, FileIdentity] | None:
    """The content of a file, and which one it is; None if it is absent. Raises GenericdpError.

    why  it is needed, for the hint
    """
    try:
        return read_whole(path)
    except OSError as error:
        if is_absent(path):
            return None
        cure = what_is_short(error)
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            cure = LEADS_NOWHERE
        elif error.errno in _NOT_OURS:
            cure = "move it away: genericdp does not write such a file"
        hint = "; ".join(filter(None, (cure, why)))
        raise GenericdpError(f"cannot read '{path}': {error.strerror}", hint=hint) from error
    except UntrustedError as error:
        if is_absent(path):
            return None
        raise GenericdpError(f"'{path}' is refused: {error}", hint=f"{error.hint}; {why}") from error


def unsaved(path: str, error: UntrustedError | OSError, until: str = "") -> GenericdpError:
    """The error to report when a file could not be written. `until` says what that means."""
    directory = os.path.dirname(path)
    if isinstance(error, UntrustedError):
        why, cure = str(error), error.hint
    else:
        why = error.strerror or ""
        cure = _MOUNT_AGAIN if _is_removed(directory) else what_to_do(error, directory)
    return GenericdpError(f"cannot save '{path}': {why}", hint="; ".join(filter(None, (cure, until))))


def _is_removed(directory: str) -> bool:
    """Whether a directory has no name any more where it was mounted from: nothing can be made in it."""
    try:
        return os.stat(directory).st_nlink == 0
    except OSError:
        return False


def _identity(file: os.stat_result) -> FileIdentity:
    return file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns
