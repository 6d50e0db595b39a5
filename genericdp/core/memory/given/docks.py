"""The docks in which the nodes of a held device are, or were when that could be told.

The rules of this file:

* The kernel reads the serial number of a dock once, when it is plugged in. If that fails, it may be any dock
  of its model, so also the last one in which the node was.
* What is plugged in where no such hub is has left its dock.
* A node that the device has lost was in the dock in which it was last.
"""

from collections.abc import Iterator, Mapping

from genericdp.core.buses.port import Dock, may_be_in
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.memory.remembered import Remembered


def docks_now(
    known: Remembered, device: Device, moved: Mapping[Spot, Spot | None], plugged: Plugged
) -> Mapping[Spot, Dock]:
    """`Remembered.docks` of a device that a pod holds.

    known   what is remembered of it
    device  as it is offered now
    moved   where nodes were that the pod may have -> where they are now, None if that is not known
    """
    if not (known.docks or known.device.docks):
        return {}
    here, units = {*device.spots}, _units_by_port(device, plugged)
    return {
        now: dock
        for was, now in (*moved.items(), *_of_only_node(known.device, device))
        if now is not None and now not in device.docks and (dock := known.last_dock_of(was))
        if (now == was and now not in here)
        or now.port not in units
        or any(may_be_in(usb, dock) for usb in units[now.port])
    }


def _of_only_node(was: Device, now: Device) -> Iterator[tuple[Spot, Spot]]:
    """Where the only node of a device was, and is. Properties in the id say that it is the same one."""
    if now.key_hash and len(was.spots) == len(now.spots) == 1 and was.spots[0].within == now.spots[0].within:
        yield was.spots[0], now.spots[0]


def _units_by_port(device: Device, plugged: Plugged) -> Mapping[str, list[UdevDevice]]:
    found: dict[str, list[UdevDevice]] = {}
    for spot in device.spots:
        for node in plugged.nodes_at(spot):
            if (usb := node.usb_device) is not None:
                found.setdefault(spot.port, []).append(usb)
    return found
