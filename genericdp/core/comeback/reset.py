"""Whether a USB unit may be reset before a container starts.

The rules of this file:

* A reset takes every device node of the unit from the containers that have it; that of a hub, what is
  plugged in behind it. So there is none while another container may have one of these nodes.
* The kubelet does not say which container is to start, only its ids of one resource. Every other id that is
  held may be another container's.
* What a pod has counts under whatever id it got it, also if edited rules no longer offer it. What is not
  plugged in any more is lost already.
* The reset of a hub resets what is plugged in behind it, too: the kernel disconnects that before
  (`hub_pre_reset`), and it comes back with other numbers.
"""

from collections.abc import Collection, Iterator, Mapping

from genericdp.core.buses.port import is_usb
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.compose import usb_numbers
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.place import Spot, is_of_node, locate, spot_of, spot_of_node
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered


def other_holder(
    numbers: tuple[int, int],
    ids: Collection[str],
    inventory: Inventory,
    memory: Memory,
    devices: Mapping[str, UdevDevice],
) -> str:
    """The first other id than these under which a pod may have a part of a USB unit; "" without one.

    numbers  (bus, device) of the unit
    ids      those of the container that is to start
    devices  all udev devices, by sys path
    """
    others = {id_: holding for id_, holding in sorted(memory.held.items()) if id_ not in ids}
    if not others:
        return ""
    parts = [each for each in devices.values() if _is_part(each, numbers)]
    paths = {each.sys_path for each in parts}
    spots = {spot for each in parts for spot in _spots_of(each)}
    for id_, holding in others.items():
        for device in (holding.device, *inventory.doubted.get(holding.device, ())):
            known = memory.devices.get(device)
            if known is not None and _has_any(known, numbers, paths, spots):
                return id_
    return ""


def with_hubs(
    units: Collection[tuple[int, int]], devices: Mapping[str, UdevDevice]
) -> Mapping[tuple[int, int], frozenset[tuple[int, int]]]:
    """USB units -> the hubs that each is plugged in behind. A hub comes before what is behind it.

    units    (bus, device) of each
    devices  all udev devices, by sys path
    """
    hubs = {
        numbers: frozenset(above for each in device.ancestors() if (above := usb_numbers(each)) is not None)
        for node in devices.values()
        for device in node.self_and_ancestors()
        if is_usb(device) and (numbers := usb_numbers(device)) in units
    }
    found = {each: hubs.get(each, frozenset()) for each in units}
    return dict(sorted(found.items(), key=lambda each: len(each[1])))


def _is_part(device: UdevDevice, numbers: tuple[int, int]) -> bool:
    """Whether a udev device is this USB unit, or hangs off it, perhaps behind other ones."""
    return any(is_usb(each) and usb_numbers(each) == numbers for each in device.self_and_ancestors())


def _spots_of(device: UdevDevice) -> Iterator[Spot]:
    """All spots under which a device node may be remembered, whichever of its siblings it is."""
    yield locate(device).spot.of_all
    if device.number is not None:
        yield spot_of(device.number)
        yield spot_of_node(device)


def _has_any(
    known: Remembered, numbers: tuple[int, int], paths: Collection[str], spots: Collection[Spot]
) -> bool:
    """Whether a device has or had one of these nodes: those of a USB unit."""
    device = known.device
    if known.absent_since is None and numbers in device.usb:
        return True
    if any(node.sys_path in paths for node in device.nodes_inside):
        return True
    return any(_plain(spot) in spots for spot in (*device.spots, *device.also, *known.earlier))


def _plain(spot: Spot) -> Spot:
    """The spot that siblings share; of a node that is known by its number, without the link."""
    return spot._replace(serial="") if is_of_node(spot) else spot.of_all
