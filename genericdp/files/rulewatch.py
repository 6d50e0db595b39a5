"""Noticing that a rule file may have changed.

The rules of this file:

* A change is reported when no other change follows it: copying over a file empties it first, and an empty
  file disables others. Changes that never cease are still reported.
"""

import asyncio
import os
from collections.abc import Callable, Iterable

from genericdp.watch import DirectoryWatch

#: How long a change waits for the next one, in seconds, and how long in all.
SETTLE_S = 0.1
LONGEST_SETTLE_S = 1.0


def watch(places: Iterable[str], on_change: Callable[[], None]) -> Callable[[], None]:
    """Call `on_change` when a rule file of these directories and files may have changed.

    Returns the function that ends it. Needs a running event loop.
    """
    places = tuple(places)
    directories = {place if os.path.isdir(place) else os.path.dirname(place) for place in places}
    directories |= {place for place in places if not place.endswith(".toml")}
    debounce = _Debounce(on_change)

    def hear(names: frozenset[str]) -> None:
        # `..data` is the symlink that Kubernetes replaces when a mounted ConfigMap changes.
        if not names or any(name.endswith(".toml") or name == "..data" for name in names):
            debounce.hear()

    watches = [DirectoryWatch(directory or ".", hear) for directory in sorted(directories)]

    def close() -> None:
        for each in watches:
            each.close()
        debounce.close()

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
