"""Hints that wait to be followed: of many about one device, the one that matters.

The rules of this file:

* The two sources are heard through two sockets, so a `remove` of the kernel may come after udev's
  `add` for the successor at the same place. What happened last is told by the kernel's numbers, not
  by the order of arrival; of one number, udev's hint knows more.
* A Resync goes first and replaces nothing: where the udev database cannot be read, what udev's
  messages say is not found by looking.
"""

from genericdp.udev.hint import Deafness, Hint, Resync, Uevent


class Pending:
    """Collects hints; `take` gives what is to be followed, and begins anew."""

    def __init__(self) -> None:
        self._resync: Resync | None = None
        self._uevents: dict[tuple[str, str], Uevent] = {}

    def __bool__(self) -> bool:
        return self._resync is not None or bool(self._uevents)

    def add(self, hint: Hint) -> None:
        """Keep a hint, unless another one makes it needless."""
        match hint:
            case Resync():
                self._resync = hint
            case Uevent():
                place = (hint.sys_path, hint.old_sys_path)
                known = self._uevents.get(place)
                if known is None or _rank(hint) >= _rank(known):
                    self._uevents[place] = hint
            case Deafness():
                pass  # there is nothing to look at

    def take(self) -> list[Hint]:
        """What is to be followed, in this order; nothing is pending afterwards."""
        hints: list[Hint] = [] if self._resync is None else [self._resync]
        hints += self._uevents.values()
        self._resync = None
        self._uevents = {}
        return hints


def _rank(hint: Uevent) -> tuple[int, bool]:
    return hint.seqnum, hint.source == "udev"
