"""The docks in which nodes of a device are, although the serial numbers of these docks cannot be read now.

The rules of this file:

* The kernel reads the serial number of a dock once, when it is plugged in. If that fails, it may be any dock
  of its model, so also the last one in which the node was.
* What is not behind such a hub has left its dock.
"""

from collections.abc import Iterator, Mapping

from genericdp.core.buses.port import Dock, may_be_in
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
    here = {*device.spots}
    return {
        now: dock
        for was, now in (*moved.items(), *_of_only_node(known.device, device))
        if now is not None and now not in device.docks and (dock := known.last_dock_of(was))
        if (now == was and now not in here) or _may_be_in(dock, now, device, plugged)
    }


def _of_only_node(was: Device, now: Device) -> Iterator[tuple[Spot, Spot]]:
    """Where the only node of a device was, and is. Properties in the id say that it is the same one."""
    if now.key_hash and len(was.spots) == len(now.spots) == 1 and was.spots[0].within == now.spots[0].within:
        yield was.spots[0], now.spots[0]


def _may_be_in(dock: Dock, spot: Spot, device: Device, plugged: Plugged) -> bool:
    """Whether what a device has at the port of a spot, if anything, may be in a dock."""
    there = (node for at in device.spots if at.port == spot.port for node in plugged.nodes_at(at))
    units = [usb for node in there if (usb := node.usb_device) is not None]
    return not units or any(may_be_in(usb, dock) for usb in units)
