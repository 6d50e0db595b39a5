"""Only one genericdp serves a node; a second one stands by.

Two run side by side during an upgrade, or because two were installed, as a package and in a container.
They would replace each other's links and registrations. So the second one stands by, READY, until the
first one ends, and then serves within milliseconds. An upgrade that starts the new one first, or waits
for it, goes on.

The rules of this file:

* There is a lock in the link directory and one in the state directory: nobody reads or replaces the memory of
  another one. The kernel releases them when the process ends, however it ends (flock(2)). They work between
  containers, which share the directories, not the process ids.
* Only who runs genericdp can open the file. One that others may open, and have locked, is replaced.
* A lock counts while its file has its name: one whose file was removed is taken again under the name, by the
  holder as soon as it happens. If another one was faster, that one serves, and this one ends.
* During a shortage nothing is decided: whoever holds a lock keeps it, whoever wants one waits, until the
  kernel can tell.
* The lock file names its holder for people; nothing is decided by that.
* A genericdp with other directories is found at the kubelet's directory instead (`genericdp.lock`).
"""

import asyncio
import errno
import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Self

from genericdp import log
from genericdp.core.rules.settings import Settings
from genericdp.errors import SHORTAGES, GenericdpError, what_is_short
from genericdp.files.kept_directory import make_for_all
from genericdp.retry import Retry
from genericdp.watch import DirectoryWatch

#: The name of the lock file. No link has this name, as ids do not begin with a dot.
NAME = ".lock"

#: Only its owner can open it: whoever can read a file can lock it.
_MODE = 0o600

#: The lock file was written by another process, so only so many bytes of it are read.
_HOLDER_LIMIT = 200

#: How often to check whether the other one has ended, in seconds.
AGAIN_S = 0.5

#: How often to take a lock whose file loses its name, or to replace one. Some file systems cannot tell one
#: file from another, or have no modes.
_TRIES = 10

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

#: Errors that prove that the file lost its name. After any other error, it may have it.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})

_log = log.get(__name__)


class _UntoldError(GenericdpError):
    """A shortage keeps the kernel from telling who holds a lock."""


class NodeLock:
    """The lock in a directory. Use as `with NodeLock(directory) as lock:`."""

    def __init__(self, directory: str) -> None:
        """Raises GenericdpError if the directory cannot be locked."""
        self.path = os.path.join(directory, NAME)
        self._file = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def taken(self) -> bool:
        """Take the lock if it is free; whether this process holds it now.

        Raises GenericdpError if its file lost its name and cannot be made again, or if nobody can tell.
        """
        for _ in range(_TRIES):
            if _is_ours_alone(os.fstat(self._file)):
                if not self._locks():
                    return False
                if self._has_its_name():
                    break
            before, self._file = self._file, self._open()
            os.close(before)
        who = f"process {os.getpid()} on {os.uname().nodename}\n"
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, who.encode(), 0)
        return True

    def is_file_of(self, other: Self) -> bool:
        """Whether both have opened the same file."""
        return os.path.samestat(os.fstat(self._file), os.fstat(other._file))

    def kept(self) -> bool:
        """Make the file again if it lost its name; whether this process, which took the lock, holds it still.

        The file that was locked stays so until the new one is. Raises GenericdpError if it cannot be made, or
        if nobody can tell.
        """
        if self._has_its_name():
            return True
        before, self._file = self._file, self._open()
        kept = False
        try:
            kept = self.taken()
        finally:
            if not kept:
                before, self._file = self._file, before
            os.close(before)
        return kept

    def _open(self) -> int:
        try:
            make_for_all(os.path.dirname(self.path))
            for _ in range(_TRIES):
                file = os.open(self.path, _FLAGS, _MODE)
                if _is_ours_alone(os.fstat(file)):
                    return file
                os.close(file)
                with suppress(FileNotFoundError):  # another process has just replaced it
                    if not _is_ours_alone(os.lstat(self.path)):
                        os.unlink(self.path)
            raise PermissionError(errno.EPERM, "other users may open it")
        except OSError as error:
            kind = _UntoldError if error.errno in SHORTAGES else GenericdpError
            raise kind(
                f"cannot lock '{self.path}': {error.strerror}",
                hint=what_is_short(error)
                or "without the lock, a second genericdp on this node would not be noticed",
            ) from error

    def _locks(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in SHORTAGES:
                raise self._untold(error) from error
            # Without locks on this file system, nobody can hold it.
        return True

    def _has_its_name(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), os.lstat(self.path))
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            raise self._untold(error) from error

    def _untold(self, error: OSError) -> GenericdpError:
        kind = _UntoldError if error.errno in SHORTAGES else GenericdpError
        return kind(
            f"cannot tell who holds the lock '{self.path}': {error.strerror}", hint=what_is_short(error)
        )

    @property
    def holder(self) -> str:
        """Who holds it, in words."""
        try:
            holder = os.pread(self._file, _HOLDER_LIMIT, 0).decode("utf-8", "replace").strip()
        except OSError:
            holder = ""
        return holder or "another process"


def _is_ours_alone(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


async def until_alone(
    settings: Settings,
    stack: ExitStack,
    awake: asyncio.Event,
    stopping: Callable[[], bool],
    on_wait: Callable[[str], None],
    *,
    end: Callable[[], None],
) -> None:
    """Return when no other genericdp holds a lock, or when `awake` is set and `stopping` is true.

    This one holds them while `stack` is open. `on_wait` is called with the holder if there is another one,
    `end` if another one took a lock whose file had been removed.
    """
    waited, locks = False, list[NodeLock]()
    for directory in (settings.link_dir, settings.state_dir):
        try:
            lock = stack.enter_context(await _opened(directory, awake, stopping))
            if any(map(lock.is_file_of, locks)):
                # By a symlink, it is the same directory, and this process would wait for itself.
                continue
            locks.append(lock)
            if not stopping() and not _takes(lock):
                if not waited:
                    _log.warning(
                        "another genericdp serves this node; standing by until it ends",
                        who=lock.holder,
                        hint="if this is not an upgrade, remove one of the two",
                    )
                waited = True
                on_wait(lock.holder)
                await _until_taken(lock, directory, awake, stopping)
        except GenericdpError as error:
            _log.warning(str(error), hint=error.hint)
            continue
        if not stopping():
            stack.callback(_Keeper(lock, directory, end).close)
    if waited and not stopping():
        _log.info("this genericdp serves the node now")


async def _opened(directory: str, awake: asyncio.Event, stopping: Callable[[], bool]) -> NodeLock:
    """The lock of a directory, after any shortage. Raises GenericdpError."""
    said = False
    while True:
        try:
            return NodeLock(directory)
        except _UntoldError as error:
            if stopping():
                raise
            if not said:
                _log.warning(f"{error}; waiting", hint=error.hint)
            said = True
        await _pause(awake)


def _takes(lock: NodeLock) -> bool:
    """Whether this process holds the lock now; not while nobody can tell."""
    try:
        return lock.taken()
    except _UntoldError:
        return False


async def _until_taken(
    lock: NodeLock, directory: str, awake: asyncio.Event, stopping: Callable[[], bool]
) -> None:
    watch = DirectoryWatch(directory, lambda _: awake.set())
    try:
        while not stopping() and not _takes(lock):
            # The other one's end shows in the directory just before the kernel releases its lock.
            await _pause(awake)
    finally:
        watch.close()


async def _pause(awake: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(AGAIN_S):
            await awake.wait()
    awake.clear()


class _Keeper:
    """Keeps a lock that was taken until it is closed: makes its file again as soon as somebody removes it."""

    def __init__(self, lock: NodeLock, directory: str, on_lost: Callable[[], None]) -> None:
        self._lock = lock
        self._on_lost = on_lost
        self._said = ""
        self._retry = Retry(self._look)
        self._watch = DirectoryWatch(directory, self._hear)
        self._look()

    def close(self) -> None:
        self._watch.close()
        self._retry.succeeded()

    def _hear(self, names: frozenset[str]) -> None:
        if not names or NAME in names:
            self._look()

    def _look(self) -> None:
        try:
            kept = self._lock.kept()
        except GenericdpError as error:
            self._retry.failed()
            if self._said != str(error):
                self._said = str(error)
                _log.warning(str(error), hint=error.hint)
            return
        self._retry.succeeded()
        self._said = ""
        if not kept:
            self.close()
            _log.error(
                "the lock was removed, and another genericdp has taken it; this one ends",
                lock=self._lock.path,
                hint="if this is not an upgrade, remove one of the two",
            )
            self._on_lost()
