"""Noticing that a rule file may have changed.

The rules of this file:

* A change is reported when no other change follows it: copying over a file empties it first, and an empty
  file disables others. Changes that never cease are still reported.
* Writing to an existing file is reported once before the file is closed, so that `status` can name a file
  that stays open. This needs leases (`trust`): without them, half a file would be read.
"""

import asyncio
import os
from collections.abc import Callable, Container, Iterable
from functools import partial

from genericdp.files.trust import is_open_for_writing
from genericdp.watch import DirectoryWatch

#: How long a change waits for the next one, in seconds, and how long in all.
SETTLE_S = 0.1
LONGEST_SETTLE_S = 1.0


def watch(
    places: Iterable[str],
    on_change: Callable[[], None],
    known_open: Callable[[], Container[str]] = lambda: (),
) -> Callable[[], None]:
    """Call `on_change` when a rule file of these directories and files may have changed.

    known_open  the files already known to be open for writing; further writes to them are ignored

    Returns the function that ends it. Needs a running event loop.
    """
    places = tuple(places)
    directories = {place if os.path.isdir(place) else os.path.dirname(place) for place in places}
    directories |= {place for place in places if not place.endswith(".toml")}
    written: set[str] = set()

    def look_at_written() -> None:
        known, paths = known_open(), [*written]
        written.clear()
        if any(path not in known and is_open_for_writing(path) for path in paths):
            on_change()

    debounce, writing = _Debounce(on_change), _Debounce(look_at_written)

    def hear(names: frozenset[str]) -> None:
        # `..data` is the symlink that Kubernetes replaces when a mounted ConfigMap changes.
        if not names or any(name.endswith(".toml") or name == "..data" for name in names):
            debounce.hear()

    def hear_write(directory: str, names: frozenset[str]) -> None:
        found = {os.path.join(directory, name) for name in names if name.endswith(".toml")}
        if found:
            written.update(found)
            writing.hear()

    watches = [
        DirectoryWatch(each or ".", hear, on_write=partial(hear_write, each)) for each in sorted(directories)
    ]

    def close() -> None:
        for each in watches:
            each.close()
        debounce.close()
        writing.close()

    return close


class _Debounce:
    """Calls `on_change` SETTLE_S after the last change, at the latest LONGEST_SETTLE_S after the first."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._timer: asyncio.TimerHandle | None = None
        self._first = 0.0

    def hear(self) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._first = loop.time()
        else:
            self._timer.cancel()
        due = min(loop.time() + SETTLE_S, self._first + LONGEST_SETTLE_S)
        self._timer = loop.call_at(due, self._fire)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        self._timer = None
        self._on_change()
