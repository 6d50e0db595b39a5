"""Only one genericdp serves a node; a second one stands by.

Two run side by side during an upgrade, or because two were installed, as a package and in a container.
They would replace each other's links and registrations. So the second one stands by, READY, until the
first one ends, and then serves within milliseconds. An upgrade that starts the new one first, or waits
for it, goes on.

The rules of this file:

* There is a lock (`flock`) in the link directory and one in the state directory: nobody reads or replaces
  the memory of another one. They work between containers, which share the directories, not the process ids.
* The holder makes a lock whose file was removed again as soon as that happens. If another one was faster,
  that one serves, and this one ends.
* When descriptors or memory run out, nothing changes: the holder keeps its lock, and others go on waiting,
  until the kernel can answer.
* If a lock cannot be made, on a full disk for example, this one serves without it and tries again.
* A genericdp with other directories is found at the kubelet's directory instead (`genericdp.lock`).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from genericdp import log
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.retry import Retry
from genericdp.service.flock import NAME, NodeLock, UntoldError
from genericdp.watch import DirectoryWatch

#: How often to check whether the other one has ended, in seconds.
AGAIN_S = 0.5

_log = log.get(__name__)


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
    `end` if another one took a lock whose file had been removed, or for which there was no room.
    """
    waited, locks = False, list[NodeLock]()
    for directory in (settings.link_dir, settings.state_dir):
        taken: NodeLock | None = None
        said = ""
        try:
            lock = stack.enter_context(await _opened(directory, awake, stopping))
            if any(map(lock.is_file_of, locks)):
                # By a symlink, it is the same directory, and this process would wait for itself.
                continue
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
            taken = lock
        except GenericdpError as error:
            said = str(error)
            _log.warning(said, hint=error.hint)
        if not stopping():
            stack.callback(_Keeper(taken, directory, end, but=tuple(locks), said=said).close)
        if taken is not None:
            locks.append(taken)
    if waited and not stopping():
        _log.info("this genericdp serves the node now")


async def _opened(directory: str, awake: asyncio.Event, stopping: Callable[[], bool]) -> NodeLock:
    """The lock of a directory, after any shortage. Raises GenericdpError."""
    said = False
    while True:
        try:
            return NodeLock(directory)
        except UntoldError as error:
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
    except UntoldError:
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
    """Keeps a lock until it is closed: makes its file again as soon as somebody removes it.

    taken  the lock; None if it could not be taken, and that is tried again
    but    the locks of other directories, which may be the same one
    said   the error that was logged last
    """

    def __init__(
        self,
        taken: NodeLock | None,
        directory: str,
        on_lost: Callable[[], None],
        *,
        but: Sequence[NodeLock],
        said: str,
    ) -> None:
        self._lock = taken
        self._directory = directory
        self._on_lost = on_lost
        self._but = but
        self._said = said
        self._opened = ExitStack()
        self._retry = Retry(self._look)
        self._watch = DirectoryWatch(directory, self._hear)
        self._look()

    def close(self) -> None:
        self._watch.close()
        self._retry.succeeded()
        self._opened.close()

    def _hear(self, names: frozenset[str]) -> None:
        if not names or NAME in names:
            self._look()

    def _look(self) -> None:
        try:
            kept = self._take() if self._lock is None else self._lock.kept()
        except GenericdpError as error:
            self._retry.failed()
            if self._said != str(error):
                self._said = str(error)
                _log.warning(str(error), hint=error.hint)
            return
        self._retry.succeeded()
        if kept and self._said:
            _log.info("the lock of this directory can be kept now", directory=self._directory)
        self._said = ""
        if not kept:
            self.close()
            _log.error(
                "another genericdp has taken the lock of this directory; this one ends",
                directory=self._directory,
                hint="if this is not an upgrade, remove one of the two",
            )
            self._on_lost()

    def _take(self) -> bool:
        """Take the lock; False if another process has it. Raises GenericdpError if nobody can tell."""
        with ExitStack() as stack:
            lock = stack.enter_context(NodeLock(self._directory))
            if any(map(lock.is_file_of, self._but)):
                return True
            if not lock.taken():
                return False
            self._lock, self._opened = lock, stack.pop_all()
        return True
