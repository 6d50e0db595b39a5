"""What is remembered of a device that was offered, and where the device nodes are that pods may have.

The rules of this file:

* What pods had of absent devices counts as well, and what was taken from a device since a pod has it.
* A unit that was plugged in elsewhere has left its old place. A pod can have nothing there any more.
* If another one is there now, only the properties tell that the rule names as `identity`. Within a boot, they
  count only once none of the device nodes is there any more that the pod got: properties can change. So they
  do not count if it is not known which device nodes these were.
* As long as udev has not finished with what looks like a unit, or it has never been read, that may be the
  unit, wherever it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Spot, is_of_node, is_of_path
from genericdp.core.inventory.plugged import Plugged


@dataclass(frozen=True, slots=True)
class Remembered:
    """A device that was offered, with what its tombstone needs.

    device           as it was last seen, with every link that it ever had
    absent_since     seconds on the clock of `remember`, None while it is present
    earlier          where its nodes were that it has lost since a pod holds it
    listed           False if the list has no room for it; it is remembered only for its withdrawn ids
    is_of_this_boot  False if it was certainly not seen since the last boot: no pod has a node of it
    """

    resource: str
    device: Device
    absent_since: float | None = None
    earlier: tuple[Spot, ...] = ()
    listed: bool = True
    is_of_this_boot: bool = True


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


def is_unknown(device: Device) -> bool:
    """Whether nothing is known of a device but the id."""
    return not (device.unit or device.port or device.spots)


def bare_paths(devices: Mapping[str, Remembered]) -> frozenset[str]:
    """Where the bare nodes of remembered devices are or were."""
    return frozenset(
        spot.port
        for known in devices.values()
        for spot in (*known.device.spots, *known.earlier)
        if is_of_path(spot)
    )


def has_moved(spot: Spot, was: Sequence[Spot], now: Sequence[Spot]) -> bool:
    """Whether the unit at a spot is plugged in elsewhere, or the bare node there has another path.

    was, now  the spots of its device
    """
    if any(each.port == spot.port for each in now):
        return False
    return any(
        each not in was and (each[1:] == spot[1:] or (spot.serial and each.serial == spot.serial))
        for each in now
    )


def has_left(known: Remembered, now: Device, nodes: frozenset[Spot]) -> bool:
    """Whether a device whose id says its properties is wholly elsewhere.

    now    as it is offered under the same id
    nodes  the device nodes that are plugged in (`spot_of_node`)
    """
    was = known.device
    within = [sorted(spot.within for spot in device.spots) for device in (was, now)]
    return (
        within[0] == within[1]
        and {*was.spots}.isdisjoint(now.spots)
        and (_knows_nodes(was) or not known.is_of_this_boot)
        and nodes.isdisjoint(was.also)
    )


def may_be_elsewhere(known: Remembered, now: Device, plugged: Plugged) -> bool:
    """Whether a device may be neither where it was nor where something seems to be it.

    now  what is offered under its id
    """
    if known.device is now:
        return False
    led = dict(zip(known.device.links, known.device.spots, strict=False))
    spots = ((led.get(link, spot), spot) for link, spot in zip(now.links, now.spots, strict=False))
    return any(before.port != spot.port and plugged.is_coming(before) for before, spot in spots)


def _knows_nodes(device: Device) -> bool:
    """Whether it is known which its device nodes are."""
    return sum(is_of_node(spot) and not spot.serial for spot in device.also) >= len(device.spots)
