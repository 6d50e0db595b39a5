"""Watches a directory that may not exist yet, disappear and come back: the kubelet's, rules.d.

The rules of this file:

* Inotify watches the directory and every directory on the way to it: each ancestor, and the directory of each
  symlink, so that `current -> rev1` may be pointed at rev2. No thread, no polling: the file descriptor is
  part of the event loop.
* Permissions on the way count. But with an ancestor's, the kernel reports those of everything beside the way,
  such as /tmp, whose times any user changes at will. Once that happens, the ancestors' permissions are not
  listened to for a while, at most LONGEST_HUSH_S, and then compared.
* A directory is watched before the next name on the way is looked up in it, so no change of that name is
  missed. Only a mount causes no event. So whenever the mount table changes, the directories on the way are
  compared (`watch.mounts`).
* The kernel has one watch for a directory, whatever paths lead to it, so a watch has a set of names.
* An event is a hint. The callback gets names, or none if anything may have happened (the directory
  appeared or disappeared, the queue overflowed); it looks for itself.
* A directory that cannot be watched (inotify instances are scarce on a busy node) is polled every few
  seconds, and a warning is logged: a watch never ends the daemon, and never keeps it busy.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from genericdp import log
from genericdp.errors import GenericdpError
from genericdp.watch import mounts
from genericdp.watch.mounts import AGAIN_S
from genericdp.watch.queue import Event, EventQueue, flags

#: How long not to listen to permissions on the way, in seconds: the first time, and at most.
FIRST_HUSH_S = 0.01
LONGEST_HUSH_S = 1.0

_IN_DIRECTORY = (
    flags.CREATE
    | flags.DELETE
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.CLOSE_WRITE
    | flags.ATTRIB
    | flags.DELETE_SELF
    | flags.MOVE_SELF
    | flags.ONLYDIR
)
_IN_ANCESTOR = _IN_DIRECTORY & ~flags.CLOSE_WRITE
_IN_HUSHED = _IN_ANCESTOR & ~flags.ATTRIB

#: How many symlinks the kernel follows on one path (path_resolution(7)).
_SYMLINK_LIMIT = 40

#: Stands for all names of a watched directory.
_EVERY = ""

#: Errors that mean that the directory does not exist (yet). Any other error prevents watching.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

#: What an operator can do about other errors (inotify(7)).
_HINTS = {
    errno.EACCES: "genericdp needs permission to read it",
    errno.EMFILE: "raise the sysctl fs.inotify.max_user_instances, or the limit of open files",
    errno.ENOSPC: "raise the sysctl fs.inotify.max_user_watches",
}

#: Called with the names in the directory that changed; empty: anything may have happened.
Callback = Callable[[frozenset[str]], None]

#: Which directory or symlink it is, and its mode, owner and group; None if that cannot be read.
_Status = tuple[int, int, int, int, int] | None

_log = log.get(__name__)


class DirectoryWatch:
    """Calls `on_event` from the running event loop whenever something happens in `directory`.

    Watches from the constructor until `close`. The caller must look at the directory after the
    constructor returned. While the directory cannot be watched, `on_event` is called every `again_s`
    seconds with no names: anything may have happened.

    on_write  called with the names of files that were written, before they are closed
    """

    def __init__(
        self,
        directory: str,
        on_event: Callback,
        *,
        on_write: Callback | None = None,
        again_s: float = AGAIN_S,
    ) -> None:
        # The current directory may have been removed.
        self.directory = directory if os.path.isabs(directory) else os.path.join(os.getcwd(), directory)
        self._on_event, self._on_write = on_event, on_write
        self._again_s = again_s
        self._loop = asyncio.get_running_loop()
        # Each watch with the names that matter in its directory.
        self._watches: dict[int, set[str]] = {}
        # Each ancestor's watch with its path, and what is on the way by path.
        self._ancestors: dict[int, str] = {}
        self._way: dict[str, _Status] = {}
        self._queue: EventQueue | None = None
        self._again: asyncio.TimerHandle | None = None
        self._hush: asyncio.TimerHandle | None = None
        self._hush_s = self._heard_since = 0.0
        self._stop_listening: Callable[[], None] | None = mounts.listen(self._see_mounts)
        self._watch()

    def close(self) -> None:
        """Stop watching. May be called twice."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        self._let_go()

    def _watch(self) -> None:
        """Watch from now on, or log why not and try again later."""
        try:
            if self._queue is None:
                self._queue = _new_queue(self.directory, self._hear)
            self._look_again(self._queue)
        except GenericdpError as error:
            self._let_go()
            self._again = self._loop.call_later(self._again_s, self._try_again)
            _log.warning("cannot watch a directory, polling it instead", why=error, hint=error.hint)

    def _try_again(self) -> None:
        self._again = None
        self._watch()
        if self._again is None:
            _log.info("watching the directory again", directory=self.directory)
        self._on_event(frozenset())

    def _let_go(self) -> None:
        self._watches, self._ancestors = {}, {}
        if self._hush is not None:
            self._hush.cancel()
            self._hush = None
        if self._queue is not None:
            self._queue.close()
            self._queue = None

    def _hear(self, events: Iterable[Event]) -> None:
        names, written = set[str](), set[str]()
        anything = touched = False
        for event in events:
            anything |= bool(event.mask & flags.Q_OVERFLOW)
            matter = self._watches.get(event.watch, set())
            if _EVERY in matter and event.name and event.name not in matter:
                (written if event.mask & flags.MODIFY else names).add(event.name)
            elif event.mask & flags.ATTRIB and event.watch in self._ancestors:
                touched = True
            elif event.name in matter or (matter and not event.name):
                # On the way to the directory, or something that happened to a directory itself.
                anything = True
        if touched and self._hush is None:
            anything |= self._way_changed()
            self._hush_for_a_while()
        if anything:
            self._watch()
            self._on_event(frozenset())
        elif names:
            self._on_event(frozenset(names))
        if written and self._on_write is not None:
            self._on_write(frozenset(written))

    def _see_mounts(self) -> None:
        if self._again is None and self._way_changed():
            self._watch()
            self._on_event(frozenset())

    def _way_changed(self) -> bool:
        return any(_status(path) != before for path, before in self._way.items())

    def _hush_for_a_while(self) -> None:
        now = self._loop.time()
        again = now - self._heard_since < self._hush_s
        self._hush_s = min(2 * self._hush_s, LONGEST_HUSH_S) if again else FIRST_HUSH_S
        self._hush = self._loop.call_later(self._hush_s, self._listen_again)
        self._listen_to_ancestors(_IN_HUSHED)

    def _listen_again(self) -> None:
        self._hush = None
        self._heard_since = self._loop.time()
        self._listen_to_ancestors(_IN_ANCESTOR)
        if self._way_changed():
            self._watch()
            self._on_event(frozenset())
        if self._queue is not None:
            self._queue.read()  # before whoever still touches everything fills it

    def _listen_to_ancestors(self, mask: int) -> None:
        if self._queue is not None:
            for path in self._ancestors.values():
                with suppress(OSError):  # it is not there any more, or not the same, which is heard
                    self._queue.watch(path, mask)

    def _look_again(self, queue: EventQueue) -> None:
        """Watch the directory, if it exists, and everything on the way to it that does."""
        for watch in self._watches:
            queue.unwatch(watch)
        self._watches, self._ancestors = {}, {}
        self._way = {"/": _status("/")}
        at, left, symlinks = "/", _names(self.directory), 0
        while left:
            name = left.pop()
            if name == "..":
                at = os.path.dirname(at)
                continue
            path = os.path.join(at, name)
            refused = self._add(queue, at, name)
            self._way[path] = _status(path)
            try:
                target = _target(path)
            except OSError as error:
                if error.errno in _ABSENT and refused is None:
                    return  # it is heard when it appears
                raise _cannot_watch(at, refused or error) from error
            if target is None:
                at = path
                continue
            symlinks += 1
            if symlinks > _SYMLINK_LIMIT:
                return
            at = "/" if target.startswith("/") else at
            left += _names(target)
        refused = self._add(queue, at, _EVERY)
        if refused is not None:
            raise _cannot_watch(at, refused)

    def _add(self, queue: EventQueue, path: str, name: str) -> OSError | None:
        """Watch for a name, or _EVERY, in a directory; returns the error if this user may not read it.

        What is below can be watched all the same. A directory that is absent by now is heard when it appears.
        Raises GenericdpError.
        """
        mask = _IN_HUSHED if self._hush is not None else _IN_ANCESTOR
        if name == _EVERY:
            mask = _IN_DIRECTORY | (flags.MODIFY if self._on_write else 0)
        try:
            # MASK_ADD: another path to the same directory must not lose its events.
            watch = queue.watch(path, mask | flags.MASK_ADD)
        except OSError as error:
            if error.errno == errno.EACCES:
                return error
            if error.errno not in _ABSENT:
                raise _cannot_watch(path, error) from error
        else:
            matter = self._watches.setdefault(watch, set())
            matter.add(name)
            if _EVERY in matter:
                self._ancestors.pop(watch, None)
            else:
                self._ancestors[watch] = path
        return None


def _new_queue(directory: str, hear: Callable[[Iterable[Event]], None]) -> EventQueue:
    try:
        return EventQueue(hear)
    except OSError as error:
        raise _cannot_watch(directory, error) from error


def _status(path: str) -> _Status:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_gid


def _cannot_watch(path: str, error: OSError) -> GenericdpError:
    return GenericdpError(f"cannot watch the directory '{path}': {error.strerror}", hint=what_to_do(error))


def what_to_do(error: OSError) -> str:
    """What an operator can do if a directory cannot be watched, or ""."""
    return _HINTS.get(error.errno or 0, "")


def _names(path: str) -> list[str]:
    """What a path leads through, the first name last."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _target(path: str) -> str | None:
    """Where a symlink leads; None for anything else. Raises OSError."""
    try:
        return os.readlink(path)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise
