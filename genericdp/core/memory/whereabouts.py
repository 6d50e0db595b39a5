"""Where the device nodes are that pods may have.

The rules of this file:

* What pods had of absent devices counts as well, and what was taken from a device since a pod has it.
"""

from collections.abc import Iterator, Mapping

from genericdp.core.inventory.place import Spot
from genericdp.core.memory.remembered import Remembered


class Whereabouts:
    """The spots of remembered devices, each with the devices that are or were there."""

    def __init__(self, devices: Mapping[str, Remembered]) -> None:
        self._at: dict[Spot, list[tuple[Spot, str]]] = {}
        for id_, known in devices.items():
            for spot in (*known.device.spots, *known.earlier):
                self._at.setdefault(spot.of_all, []).append((spot, id_))

    def at(self, spot: Spot) -> Iterator[str]:
        """The devices, by id, that may have or have had the node at this spot."""
        for other, id_ in self._at.get(spot.of_all, ()):
            if spot.may_be(other):
                yield id_
