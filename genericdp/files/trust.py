"""Opens only files that nobody but root or the current user can change.

A user who can write a rule file can give any device to a container.

The rules of this file:

* The file, each directory above it up to /, and each symlink on the way belong to root or to the user who
  reads them, and nobody else may write the file or the directories.
* In a sticky directory such as /tmp, anybody may add names, but only the owner of a name may change it. So an
  entry is judged by its own owner, and a file with a second hard link is refused: others may have linked it.
* The directory of a ConfigMap may have any mode, where the kubelet mounts it read-only into a pod: it lets
  everybody write it (`const perm os.FileMode = 0777` of pkg/volume/emptydir), below a directory that only
  root can search. That a mount is read-only is not enough: to a service with `ProtectSystem=strict`
  everything is, and so is a directory of the node in a pod, while other users of the node can write it.
* A text is read under a lease (fcntl(2)), which nobody gets while the file is open for writing: half a file
  may say more than the whole one, and look right.
* What is opened is what was checked: each component of the path, relative to the descriptor of its directory.
"""

import codecs
import errno
import fcntl
import os
import re
import signal
import stat
from contextlib import ExitStack
from dataclasses import dataclass

from genericdp.errors import ConfigError, GenericdpError, Location, Problem, what_is_short
from genericdp.files import mountinfo

#: A rule file is written by people; a larger file is something else.
SIZE_LIMIT = 1 << 20

#: How many symlinks the kernel follows on one path (path_resolution(7)).
_SYMLINK_LIMIT = 40

#: What to do about an error that an operator can mend.
_HINTS = {
    errno.EACCES: "run the command as root, or let this user read the file and search its directories",
    errno.ELOOP: "the symlinks on the way lead in a circle; point them at a file",
    errno.ENOENT: "check the spelling; a symlink on the way may lead to nothing",
    errno.ENOTDIR: "check the spelling; something on the way is not a directory",
}

_DEV_NULL = os.makedev(1, 3)

#: How the path of a volume ends that only the kubelet writes, with its name
#: (`GetPodVolumeDir`). The directory of an emptyDir belongs to all containers of the pod.
_VOLUME = re.compile(rb"/volumes/kubernetes\.io~(?:configmap|downward-api|projected|secret)/[^/]+\Z")

#: File systems that may refuse a lease as if the file were open for writing (nfs4_add_lease, cifs_setlease).
_WITHOUT_LEASES = frozenset({b"nfs", b"nfs4", b"cifs", b"smb3"})


class UntrustedError(GenericdpError):
    """Others can change what a path leads to. The message says where, the hint how to end it."""


class BeingWrittenError(ConfigError):
    """Somebody has the file open for writing. What it says may not be all."""


def read_text(path: str, known: str = "") -> str | None:
    """The text of a trusted file, without a byte order mark; None for an empty one and for /dev/null.

    known is a text that is complete, as it was read before.

    Raises ConfigError for a file that is refused or cannot be read, BeingWrittenError for one that is open
    for writing and has another text than `known`.
    """
    try:
        data, is_open = _read(path)
    except UntrustedError as error:
        raise _problem(path, f"refused: {error}", error.hint) from error
    except OSError as error:
        raise unreadable(path, error) from error
    if is_open and (not known or data.removeprefix(codecs.BOM_UTF8) != known.encode()):
        hint = f"it is read once it is closed; to see which process has it open: fuser -v {_typed(path)}"
        raise BeingWrittenError(
            (Problem(Location(path, 0), "is open for writing and may be incomplete", hint),)
        )
    try:
        return data.decode("utf-8-sig") or None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError((Problem(Location(path, line), "not UTF-8", "save the file as UTF-8"),)) from error


def is_open_for_writing(path: str) -> bool:
    """Whether somebody has a file open for writing. False where nobody can tell, and for what is refused."""
    try:
        descriptor = open_trusted(path)
    except (UntrustedError, OSError):
        return False
    try:
        return not _leases(descriptor)
    finally:
        os.close(descriptor)


class UnreadableError(ConfigError):
    """The system cannot read a file or directory. Later it may: a mount, for example, causes no event."""


def unreadable(path: str, error: OSError) -> UnreadableError:
    """The error for a file or directory that the system cannot read."""
    hint = what_is_short(error) or _HINTS.get(error.errno or 0, "")
    return UnreadableError((Problem(Location(path, 0), f"cannot be read: {error.strerror}", hint),))


def is_absent(path: str) -> bool:
    """Whether a name on the way is missing. A symlink that leads to nothing is not: its target may follow."""
    path = path.rstrip("/") or "/"  # with the slash, lstat(2) would follow the symlink
    try:
        os.lstat(path)
    except FileNotFoundError:
        above = os.path.dirname(path) or "."
        return os.path.isdir(above) or is_absent(above)
    except OSError:
        return False
    return False


def open_trusted(path: str) -> int:
    """A descriptor for reading a file or directory that nobody else can have put there or changed.

    Of a device, FIFO or socket, it is one that can only be looked at (O_PATH): opening them may have effects.
    Raises UntrustedError, OSError.
    """
    left = _names(path if os.path.isabs(path) else os.path.join(os.getcwd(), path))
    symlinks = 0
    with ExitStack() as stack:
        at = above = _Entry(-1, "/", os.stat("/"))
        name = "/"
        while left:
            name = left.pop()
            found = _enter(at, name, os.O_PATH)
            stack.callback(os.close, found.descriptor)
            if stat.S_ISLNK(found.status.st_mode):
                symlinks += 1
                if symlinks > _SYMLINK_LIMIT:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                left += _names(os.readlink("", dir_fd=found.descriptor))
            else:
                above, at = at, found
        if at.is_file or at.is_directory:
            return _enter(above, name, os.O_RDONLY | os.O_NONBLOCK).descriptor
        return os.dup(at.descriptor)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something on the way, with the path that leads to it without symlinks."""

    descriptor: int
    path: str
    status: os.stat_result

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def others_write(self) -> bool:
        """Whether others than the owner can write the file or directory."""
        writers = self.status.st_mode & 0o022
        if writers == stat.S_IWGRP and self.status.st_gid == self.status.st_uid:
            # The private group of a user account, unless an access control list lets others in.
            writers = self._has_acl
        return bool(writers)

    @property
    def is_volume(self) -> bool:
        """Whether it is a directory that only the kubelet writes, mounted read-only."""
        if not self.is_directory or not os.fstatvfs(self.descriptor).f_flag & os.ST_RDONLY:
            return False
        return _VOLUME.search(mountinfo.mounted_at(self.descriptor)) is not None

    @property
    def _has_acl(self) -> bool:
        """Whether the bits of the group are the mask of an access control list (acl(5))."""
        try:
            return "system.posix_acl_access" in os.listxattr(f"/proc/self/fd/{self.descriptor}")
        except OSError as error:
            return error.errno != errno.ENOTSUP


def _names(path: str) -> list[str]:
    """What a path leads through, the first name last. What ends in a slash must be a directory."""
    names = [name for name in path.split("/") if name]
    return [
        *(["."] if path.endswith("/") else []),
        *reversed(names),
        *(["/"] if path.startswith("/") else []),
    ]


def _enter(directory: _Entry, name: str, flags: int) -> _Entry:
    """What a directory has under a name, opened. Raises UntrustedError, OSError."""
    match name:
        case "/":
            path = "/"
        case ".":
            path = directory.path
        case "..":
            path = os.path.dirname(directory.path)
        case _:
            path = os.path.join(directory.path, name)
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory.descriptor)
    try:
        found = _Entry(descriptor, path, os.fstat(descriptor))
        _check(found, directory)
    except BaseException:
        os.close(descriptor)
        raise
    return found


def _typed(path: str) -> str:
    """A path as an operator can type it in a shell, in quotes as in all messages."""
    return "'" + path.replace("'", "'\\''") + "'"


def _hint(found: _Entry, cure: str) -> str:
    """How to end that others can change it. A directory may be one that they need, such as their home."""
    instead = "use a directory of root instead; if only genericdp uses it: " if found.is_directory else ""
    return f"{instead}{cure} {_typed(found.path)}"


def _check(found: _Entry, directory: _Entry) -> None:
    """Raises UntrustedError for what others can change, or can have put into the directory."""
    path, status = found.path, found.status
    if status.st_uid not in (0, os.geteuid()):
        is_link = stat.S_ISLNK(status.st_mode)
        what, cure = (f"the symlink '{path}'", "chown -h root") if is_link else (f"'{path}'", "chown root")
        raise UntrustedError(f"{what} belongs to user {status.st_uid}", hint=_hint(found, cure))
    if found.is_directory and status.st_mode & stat.S_ISVTX:
        return
    writable = (found.is_directory or found.is_file) and found.others_write
    if writable and not found.is_volume:
        raise UntrustedError(f"other users can write '{path}'", hint=_hint(found, "chmod go-w"))
    if not found.is_directory and status.st_nlink > 1 and directory.others_write:
        raise UntrustedError(
            f"'{path}' has a second name, and other users can add names to its directory",
            hint="move it to a directory that only its owner can write",
        )


def _read(path: str) -> tuple[bytes, bool]:
    """What a file contains, and whether somebody has it open for writing."""
    descriptor = open_trusted(path)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == _DEV_NULL:
            return b"", False
        if not stat.S_ISREG(status.st_mode):
            hint = "give the path of a TOML file"
            if path.endswith(".toml"):
                hint = "move or rename it: what ends in .toml must be a file"
            raise _problem(path, "is not a regular file", hint)
        if status.st_size > SIZE_LIMIT:
            raise _problem(path, f"is larger than {SIZE_LIMIT >> 20} MiB", "split it into several files")
        is_open = not _leases(descriptor)
        return os.read(descriptor, SIZE_LIMIT + 1), is_open
    finally:
        # Closing releases the lease, and with it any process that is blocked opening the file for writing.
        os.close(descriptor)


def _leases(descriptor: int) -> bool:
    """Take a lease on a file. False if somebody has it open for writing; True where leases do not work."""
    try:
        # A writer waits, and the kernel signals this process: SIGIO would end it, SIGURG is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno != errno.EAGAIN or mountinfo.type_of(descriptor) in _WITHOUT_LEASES
    return True


def _problem(path: str, message: str, hint: str = "") -> ConfigError:
    return ConfigError((Problem(Location(path, 0), message, hint),))
