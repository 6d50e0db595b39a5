"""A process that lacks descriptors, or room on the disk; a disk that can no longer be written."""

import ctypes
import errno
import os
import platform
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.scenes.mounts import an_empty_file_system_over, bind_mounted


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """In the block, this process can open so many descriptors and no more; those that are open stay."""
    # One of the names is that of the descriptor that lists them.
    is_open = {int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 0
    while count or limit in is_open:
        count -= limit not in is_open
        limit += 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """In the block, this process can write so many bytes to a file and no more, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def a_file_system_at(path: Path, size: str = "64k", inodes: int = 0) -> Iterator[None]:
    """In the block, a file system of this size is mounted on a new directory; 0 inodes are any number."""
    path.mkdir(mode=0o755)
    with an_empty_file_system_over(path, f",size={size},nr_inodes={inodes}"):
        yield


def fill(path: Path) -> Path:
    """Fill the file system at a directory. Returns the file that takes all the room."""
    free, filler = os.statvfs(path), path / "other"
    filler.write_bytes(bytes(free.f_bavail * free.f_frsize))
    return filler


def fill_inodes(path: Path) -> list[Path]:
    """Take all inodes of the file system at a directory. Returns the files that take them."""
    files = [path / f".filler-{number}" for number in range(os.statvfs(path).f_ffree)]
    for each in files:
        each.touch()
    return files


@contextmanager
def a_directory_mounted_at(path: Path, source: Path) -> Iterator[None]:
    """In the block, one new directory is mounted on another, as a volume of the host into a pod."""
    for directory in (path, source):
        directory.mkdir(mode=0o755)
    with bind_mounted(source, path):
        yield


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """In the block, a file system is mounted read-only, as ext4 does itself after an error of its disk."""
    subprocess.run(["mount", "-o", "remount,ro", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", path], check=True)


#: The number of epoll_ctl(2), by the kind of machine.
_EPOLL_CTL = {
    "aarch64": 21,
    "armv7l": 251,
    "i686": 255,
    "ppc64le": 236,
    "riscv64": 21,
    "s390x": 250,
    "x86_64": 233,
}


class _Filter(ctypes.Structure):
    """A line of a BPF program, `struct sock_filter`."""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("len", ctypes.c_uint16), ("filter", ctypes.POINTER(_Filter)))


def watch_nothing_by_epoll() -> None:
    """From now on, the processes of root watch as much by epoll as they may; so it is in this process.

    It has to have one thread. See fs.epoll.max_user_watches in epoll(7).
    """
    lines = (_Filter * 4)(
        _Filter(0x20, 0, 0, 0),  # load the number of the system call
        _Filter(0x15, 0, 1, _EPOLL_CTL[platform.machine()]),
        _Filter(0x06, 0, 0, 0x0005_0000 | errno.ENOSPC),  # fail
        _Filter(0x06, 0, 0, 0x7FFF_0000),  # allow
    )
    program = _Program(len(lines), ctypes.cast(lines, ctypes.POINTER(_Filter)))
    libc = ctypes.CDLL(None, use_errno=True)
    for request in ((38, 1, 0, 0, 0), (22, 2, ctypes.byref(program))):  # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP
        if libc.prctl(*request) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
