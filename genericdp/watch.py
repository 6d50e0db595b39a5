"""Watch a directory that may not exist yet, vanish and come back: the kubelet's, rules.d.

The rules of this file:

* Inotify watches on the directory and on its nearest ancestor that exists. No thread, no polling:
  the file descriptor joins the event loop.
* An event is a hint. The callback is told names, or nothing when anything may have happened (the
  directory came or went, the queue overflowed); it looks for itself.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from inotify_simple import INotify, flags

from genericdp.errors import GenericdpError

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

#: What says that there is no such directory (yet); anything else is in the way of watching it.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

#: What an operator can do about the others (inotify(7)).
_HINTS = {
    errno.EACCES: "genericdp needs the right to read it",
    errno.EMFILE: "raise the sysctl fs.inotify.max_user_instances, or the limit of open files",
    errno.ENOSPC: "raise the sysctl fs.inotify.max_user_watches",
}

#: Told the names in the directory that something happened to; empty: anything may have happened.
Callback = Callable[[frozenset[str]], None]


class DirectoryWatch:
    """Calls `on_event` from the running event loop whenever something happens in `directory`.

    Begins with the constructor, ends with `close`. What happened before is the caller's to look up,
    after the constructor returned. Raises GenericdpError when the directory cannot be watched.
    """

    def __init__(self, directory: str, on_event: Callback) -> None:
        self.directory = os.path.abspath(directory)
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._watches: dict[int, str] = {}
        try:
            self._inotify = INotify()
        except OSError as error:
            raise _cannot_watch(self.directory, error) from error
        try:
            self._look_again()
        except GenericdpError:
            self._inotify.close()
            raise
        self._loop.add_reader(self._inotify.fileno(), self._read)

    def close(self) -> None:
        """Stop watching. May be called twice."""
        if not self._inotify.closed:
            self._loop.remove_reader(self._inotify.fileno())
            self._inotify.close()

    def _read(self) -> None:
        names: set[str] = set()
        anything = False
        for event in self._inotify.read(timeout=0):
            path = self._watches.get(event.wd)
            if path == self.directory and event.name:
                names.add(event.name)
            elif path == self.directory or event.mask & flags.Q_OVERFLOW:
                anything = True
            elif path is not None:
                # Of an ancestor, only what lies on the way to the directory is of interest.
                anything |= not event.name or event.name == _next_below(path, self.directory)
        if anything:
            try:
                self._look_again()
            finally:
                self._on_event(frozenset())
        elif names:
            self._on_event(frozenset(names))

    def _look_again(self) -> None:
        """Watch the directory if it exists, and the nearest ancestor that does.

        The ancestor tells when the directory is replaced while somebody still holds the old one
        open, which keeps the old one's IN_DELETE_SELF back.
        """
        found = False
        while not found:
            for watch in self._watches:
                with suppress(OSError):  # the kernel dropped the watch of a directory that is gone
                    self._inotify.rm_watch(watch)
            self._watches = {}
            self._add(self.directory, _IN_DIRECTORY)
            above = (path for path in _ancestors(self.directory) if self._add(path, _IN_ANCESTOR))
            ancestor = next(above, "")
            # What came into being before this watch is in no event: climb down again.
            below = os.path.join(ancestor, _next_below(ancestor, self.directory))
            found = below in self._watches.values() or not os.path.isdir(below)

    def _add(self, path: str, mask: int) -> bool:
        try:
            self._watches[self._inotify.add_watch(path, mask)] = path
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            raise _cannot_watch(path, error) from error
        return True


def _cannot_watch(path: str, error: OSError) -> GenericdpError:
    hint = _HINTS.get(error.errno or 0, "")
    return GenericdpError(f"cannot watch the directory '{path}': {error.strerror}", hint=hint)


def _ancestors(path: str) -> Iterable[str]:
    """The directories above, nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _next_below(ancestor: str, path: str) -> str:
    """The next name on the way from the ancestor to the path."""
    return path[len(ancestor) :].lstrip("/").partition("/")[0]
