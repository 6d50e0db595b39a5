"""A runtime's cache of CDI spec files, which follows its directories by inotify.

The rules of this file:

* It reads its directories again at what the library's watch takes for a change: something was renamed away,
  removed, or written under a name that ends in .json or .yaml. A file that is moved in from elsewhere is not
  one (`watch` of pkg/cdi/cache.go, as of fsnotify on Linux).
* A directory that did not exist is looked for at each creation of a container.
* A cache that is `late` uses at each creation what it had read before: the real one reads in a goroutine.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from inotify_simple import INotify, flags

from genericdp.simulator.runtimes.cdi_spec import Known, scan

_WATCHED = (
    flags.MOVED_FROM | flags.DELETE | flags.MODIFY | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR
)


class CdiCache:
    """The devices in these directories, of which later ones win. Close it, or use it in `with`."""

    def __init__(self, directories: Sequence[str], *, late: bool = False) -> None:
        self.late = late
        self._directories = tuple(directories)
        self._inotify = INotify()
        self._watches: dict[int, str] = {}
        self._known: Known = {}
        self._watch_missing()
        self._known = scan(self._directories)

    def close(self) -> None:
        """Stop watching."""
        self._inotify.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def devices(self) -> Known:
        """What a creation of a container finds."""
        before = self._known
        changed = self._watch_missing()
        for event in self._inotify.read(timeout=0):
            if event.mask & (flags.IGNORED | flags.DELETE_SELF | flags.MOVE_SELF):
                self._watches.pop(event.wd, None)
            changed |= event.mask & flags.MODIFY == 0 or event.name.endswith((".json", ".yaml"))
        if changed:
            self._watch_missing()
            self._known = scan(self._directories)
        return before if self.late else self._known

    def _watch_missing(self) -> bool:
        changed = False
        for directory in self._directories:
            if directory not in self._watches.values():
                try:
                    self._watches[self._inotify.add_watch(directory, _WATCHED)] = directory
                except OSError:
                    continue
                changed = True
        return changed
