"""What is remembered of a device that is present, and whether it is the one that a pod got under its id.

The rules of this file:

* Edited rules may count other nodes to a device, or give its id to another unit, while a pod holds what it
  got. As long as the pod holds the id, the id means what the pod got.
* A unit that was plugged in elsewhere has left its old place. A pod can have nothing there any more.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Place, Spot
from genericdp.core.memory.absence import nodes_near
from genericdp.core.memory.remembered import Remembered

#: How many links of one device are remembered: a device may also invent the names of its nodes. One that a
#: pod holds may have more, because no link that the pod got may go.
LINK_LIMIT = 64
HELD_LINK_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Renewal:
    """Compares present devices with what is remembered of them.

    devices  all that are remembered, by id
    held     the devices that pods hold
    plugged  all udev devices, by sys path
    place    where a udev device sits
    """

    devices: Mapping[str, Remembered]
    held: Collection[str]
    plugged: Mapping[str, UdevDevice]
    place: Callable[[UdevDevice], Place]

    def is_another(self, device: Device) -> bool:
        """Whether a pod holds the id of the device for another unit, which it may still have."""
        known = self.devices.get(device.id)
        if known is None or device.id not in self.held or device.spots == known.device.spots:
            return False
        had = {*known.device.spots, *known.earlier}
        if not had or not had.isdisjoint(device.spots):
            return False
        return bool(self._plugged_of(known.device.spots)) or self._is_held_by_others(device)

    def renewed(self, resource: str, device: Device) -> Remembered:
        """What is remembered of a device, with every link that it ever had: a node may be missing now."""
        known = self.devices.get(device.id)
        if known is None:
            return Remembered(resource, device)
        is_held = device.id in self.held
        more = [link for link in known.device.links if link not in device.links]
        if more:
            room = max(0, (HELD_LINK_LIMIT if is_held else LINK_LIMIT) - len(device.links))
            device = replace(device, links=(*device.links, *more[:room]))
        earlier = self._earlier(device, known) if is_held else ()
        # What did not change stays the same object, which makes comparing cheap.
        is_same = known.device == device and known.absent_since is None and known.listed
        return (
            known if is_same and known.earlier == earlier else Remembered(resource, device, earlier=earlier)
        )

    def _earlier(self, device: Device, known: Remembered) -> tuple[Spot, ...]:
        """Where nodes are that a pod may still have although they no longer belong to the device."""
        if device.spots == known.device.spots:
            return known.earlier
        lost = dict.fromkeys((*known.device.spots, *known.earlier))
        for spot in device.spots:
            lost.pop(spot, None)
        return self._plugged_of(lost)

    def _plugged_of(self, spots: Collection[Spot]) -> tuple[Spot, ...]:
        nodes = nodes_near(spots, self.plugged, self.place) if spots else {}
        return tuple(spot for spot in spots if spot in nodes)

    def _is_held_by_others(self, device: Device) -> bool:
        spots = frozenset(device.spots)
        others = (self.devices[id_] for id_ in self.held if id_ != device.id and id_ in self.devices)
        return any(not spots.isdisjoint((*known.device.spots, *known.earlier)) for known in others)
