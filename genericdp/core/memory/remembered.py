"""What is remembered of a device that was offered, and where the device nodes are that pods may have.

The rules of this file:

* What pods had of absent devices counts as well, and what was taken from a device since a pod has it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Spot, is_of_path


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


class Whereabouts:
    """The spots of remembered devices, each with the devices that are or were there."""

    def __init__(self, devices: Mapping[str, Remembered]) -> None:
        self._at: dict[Spot, list[tuple[Spot, str]]] = {}
        for id_, known in devices.items():
            for spot in (*known.device.spots, *known.device.also, *known.earlier):
                self._at.setdefault(spot.of_all, []).append((spot, id_))

    def at(self, spot: Spot) -> Iterator[str]:
        """The devices, by id, that may have or have had the node at this spot."""
        for other, id_ in self._at.get(spot.of_all, ()):
            if spot.may_be(other):
                yield id_


def bare_paths(devices: Mapping[str, Remembered]) -> frozenset[str]:
    """Where the bare nodes of remembered devices are or were."""
    return frozenset(
        spot.port
        for known in devices.values()
        for spot in (*known.device.spots, *known.earlier)
        if is_of_path(spot)
    )
