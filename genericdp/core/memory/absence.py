"""Why a device that was offered before is not offered now.

The rules of this file:

* The answer follows from what is plugged in now and from what outlives a restart. So `list`, which
  reads the saved memory, gives the same reason as the daemon.
* A device is recognized by the spots of its nodes, not by their sys paths or names: another unit may
  have those by now.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Refusal
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Place, Spot, locate, sys_path_prefix

#: The reason of a device of which nothing is plugged in.
UNPLUGGED = "it is unplugged"


class Absence:
    """Knows which device nodes of absent devices are plugged in all the same."""

    def __init__(
        self,
        absent: Iterable[Device],
        plugged: Mapping[str, UdevDevice],
        refusals: Sequence[Refusal],
        place: Callable[[UdevDevice], Place] = locate,
    ) -> None:
        """`plugged` are all udev devices by sys path, `place` finds out where one sits."""
        self._refusals = refusals
        self._nodes = nodes_near((spot for device in absent for spot in device.spots), plugged, place)

    def reason(self, resource: str, device: Device) -> str:
        """Why the resource does not offer the device."""
        nodes = [self._nodes[spot] for spot in device.spots if spot in self._nodes]
        if not nodes:
            return UNPLUGGED
        if not all(node.initialized for node in nodes):
            return "udev has not finished with it"
        paths = {node.device_node for node in nodes}
        refused = (each for each in self._refusals if each.resource == resource and each.node in paths)
        return next((each.reason for each in refused), "the rules no longer match it")


def nodes_near(
    spots: Iterable[Spot], plugged: Mapping[str, UdevDevice], place: Callable[[UdevDevice], Place]
) -> Mapping[Spot, UdevDevice]:
    """The device nodes that are plugged in at the ports of these spots, each with its own spot."""
    # Most devices are at other ports. Seeing this costs less than finding out where exactly they sit.
    prefixes = tuple({sys_path_prefix(spot.port) for spot in spots})
    nearby = [sys_path for sys_path in plugged if sys_path.startswith(prefixes)] if prefixes else []
    return {
        place(plugged[sys_path]).spot: plugged[sys_path]
        for sys_path in nearby
        if plugged[sys_path].device_node is not None
    }
