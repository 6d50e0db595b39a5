"""What is remembered of one device that was offered."""

from dataclasses import dataclass

from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Spot


@dataclass(frozen=True, slots=True)
class Remembered:
    """A device that was offered, with what its tombstone needs.

    device        as it was last seen, with every link that it ever had
    absent_since  seconds on the clock of `remember`, None while it is present
    earlier       where its nodes were that it has lost since a pod holds it
    listed        False if the list has no room for it; it is remembered only for its withdrawn ids
    """

    resource: str
    device: Device
    absent_since: float | None = None
    earlier: tuple[Spot, ...] = ()
    listed: bool = True
