"""What several hints amount to: which to follow, which to count.

The rules of this file:

* The two sources arrive on two sockets, so the kernel's `remove` may come after udev's `add` for the
  successor at the same place. The kernel's numbers, not the order of arrival, tell what happened last. Of two
  events with one number, udev's contains more.
* A Resync goes first and replaces nothing: where the udev database cannot be read, udev's messages contain
  what a rescan does not find. One that reads only what could not be read replaces no other one, which reads
  that, too.
"""

from genericdp.core.hint import Deafness, Hint, NodeChange, Poll, RescanCause, Resync, Uevent

#: How many numbers `SeenUevents` remembers; an older uevent that is repeated counts as new.
REMEMBERED = 1000


class Pending:
    """Collects hints; `take` returns those to follow and starts again."""

    def __init__(self) -> None:
        self._resync: Resync | None = None
        self._uevents: dict[tuple[str, str], Uevent] = {}
        self._nodes: dict[str, NodeChange] = {}
        self._polled: dict[str, frozenset[str]] = {}

    def __bool__(self) -> bool:
        return self._resync is not None or bool(self._uevents or self._nodes or self._polled)

    def add(self, hint: Hint) -> None:
        """Keep a hint, unless another one makes it superfluous."""
        match hint:
            case Resync():
                if self._resync is None or hint.cause is not RescanCause.UNREAD:
                    self._resync = hint
            case Uevent():
                place = (hint.sys_path, hint.old_sys_path)
                known = self._uevents.get(place)
                if known is None or _rank(hint) >= _rank(known):
                    self._uevents[place] = hint
            case NodeChange():
                self._nodes[hint.path] = hint
            case Poll():
                for path, names in hint.attributes.items():
                    self._polled[path] = self._polled.get(path, frozenset()) | names
            case Deafness():
                pass  # there is nothing to look at

    def take(self) -> list[Hint]:
        """The hints to follow, in this order. Nothing is pending afterwards."""
        hints: list[Hint] = [] if self._resync is None else [self._resync]
        hints += self._uevents.values()
        hints += self._nodes.values()
        hints += [Poll(self._polled)] if self._polled else []
        self._resync = None
        self._uevents, self._nodes, self._polled = {}, {}, {}
        return hints


def _rank(hint: Uevent) -> tuple[int, bool]:
    return hint.seqnum, hint.source == "udev"


class SeenUevents:
    """Recognizes by the kernel's numbers a uevent that arrives several times: from both sources, or
    again and again while udev's events do not arrive.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, None] = {}

    def is_new(self, uevent: Uevent) -> bool:
        """Whether the uevent arrives for the first time. One without a number always does."""
        number = uevent.seqnum
        if not number:
            return True
        if number in self._numbers:
            return False
        self._numbers[number] = None
        if len(self._numbers) > REMEMBERED:
            del self._numbers[next(iter(self._numbers))]
        return True
