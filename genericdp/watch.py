"""Watches a directory that may not exist yet, disappear and come back: the kubelet's, rules.d.

The rules of this file:

* Inotify watches the directory and its nearest existing ancestor. No thread, no polling: the file
  descriptor is part of the event loop.
* Paths that lead to one directory (a symlink or a bind mount) share one watch, so a watch has a set of paths.
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

from inotify_simple import INotify, flags

from genericdp import log
from genericdp.errors import GenericdpError

#: How often to poll, and try to watch, a directory that cannot be watched, in seconds.
AGAIN_S = 5.0

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
_IN_ANCESTOR = (
    flags.CREATE
    | flags.DELETE
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.DELETE_SELF
    | flags.MOVE_SELF
    | flags.ONLYDIR
)

#: How often to start again at once when an ancestor appears meanwhile. Each level of a path may appear once.
_TRIES = 100

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

_log = log.get(__name__)


class DirectoryWatch:
    """Calls `on_event` from the running event loop whenever something happens in `directory`.

    Watches from the constructor until `close`. The caller must look at the directory after the
    constructor returned. While the directory cannot be watched, `on_event` is called every `again_s`
    seconds with no names: anything may have happened.
    """

    def __init__(self, directory: str, on_event: Callback, *, again_s: float = AGAIN_S) -> None:
        self.directory = os.path.abspath(directory)
        self._on_event = on_event
        self._again_s = again_s
        self._loop = asyncio.get_running_loop()
        self._watches: dict[int, set[str]] = {}
        self._inotify: INotify | None = None
        self._again: asyncio.TimerHandle | None = None
        self._watch()

    def close(self) -> None:
        """Stop watching. May be called twice."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        self._let_go()

    def _watch(self) -> None:
        """Watch from now on, or log why not and try again later."""
        try:
            if self._inotify is None:
                self._inotify = _new_inotify(self.directory)
                self._loop.add_reader(self._inotify.fileno(), self._read)
            self._look_again(self._inotify)
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
        self._watches = {}
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify.fileno())
            self._inotify.close()
            self._inotify = None

    def _read(self) -> None:
        names: set[str] = set()
        anything = False
        for event in self._inotify.read(timeout=0) if self._inotify is not None else ():
            anything |= bool(event.mask & flags.Q_OVERFLOW)
            for path in self._watches.get(event.wd, ()):
                if path == self.directory and event.name:
                    names.add(event.name)
                else:
                    # In an ancestor, only the next name on the path to the directory matters.
                    anything |= not event.name or event.name == _next_below(path, self.directory)
        if anything:
            self._watch()
            self._on_event(frozenset())
        elif names:
            self._on_event(frozenset(names))

    def _look_again(self, inotify: INotify) -> None:
        """Watch the directory, if it exists, and the nearest ancestor that does.

        The ancestor shows when the directory is replaced while somebody still holds the old one open, which
        delays the old one's IN_DELETE_SELF.
        """
        for _ in range(_TRIES):
            for watch in self._watches:
                with suppress(OSError):  # the kernel has dropped the watch of a deleted directory
                    inotify.rm_watch(watch)
            self._watches = {}
            self._add(inotify, self.directory, _IN_DIRECTORY)
            above = (path for path in _ancestors(self.directory) if self._add(inotify, path, _IN_ANCESTOR))
            ancestor = next(above, "")
            # No event shows what was created before this watch: climb down again.
            below = os.path.join(ancestor, _next_below(ancestor, self.directory))
            if any(below in paths for paths in self._watches.values()) or not os.path.isdir(below):
                return
        raise GenericdpError(f"cannot watch the directory '{self.directory}': its path keeps changing")

    def _add(self, inotify: INotify, path: str, mask: int) -> bool:
        try:
            # MASK_ADD: another path to the same directory must not lose its events.
            watch = inotify.add_watch(path, mask | flags.MASK_ADD)
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            raise _cannot_watch(path, error) from error
        self._watches.setdefault(watch, set()).add(path)
        return True


def _new_inotify(directory: str) -> INotify:
    try:
        return INotify()
    except OSError as error:
        raise _cannot_watch(directory, error) from error


def _cannot_watch(path: str, error: OSError) -> GenericdpError:
    hint = _HINTS.get(error.errno or 0, "")
    return GenericdpError(f"cannot watch the directory '{path}': {error.strerror}", hint=hint)


def _ancestors(path: str) -> Iterable[str]:
    """The parent directories, nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _next_below(ancestor: str, path: str) -> str:
    """The next name on the path below the ancestor."""
    return path[len(ancestor) :].lstrip("/").partition("/")[0]
