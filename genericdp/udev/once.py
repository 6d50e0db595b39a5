"""A uevent that is heard several times is one: of both sources, and again while udev cannot be heard."""

from genericdp.udev.hint import Uevent

#: So many numbers are remembered; whoever repeats an older one is counted twice.
REMEMBERED = 1000


class Once:
    """Tells what is heard for the first time, by the kernel's numbers."""

    def __init__(self) -> None:
        self._seen: dict[int, None] = {}

    def first(self, uevent: Uevent) -> bool:
        """Whether it was not heard before. One without a number never was."""
        number = uevent.seqnum
        if not number:
            return True
        if number in self._seen:
            return False
        self._seen[number] = None
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return True
