"""Where a sibling may be that cannot be read.

The rules of this file:

* What cannot be read may be plugged in all the same. So it is not missing, and what has come is not it, even
  after it has gone. A part of the same unit with a name like those of the siblings is certainly one of them.
* A path on USB says the unit and the interface. Elsewhere, only siblings have the same name
  but for its numbers: a disk that hangs for good must not keep sensors from their pods after each boot.
"""

from collections.abc import Collection, Mapping, Sequence

from genericdp.core.buses.kernel_name import without_numbers
from genericdp.core.buses.port import interface_in, usb_above
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.past import Past
from genericdp.core.inventory.place import Spot, unit_of
from genericdp.core.usb_port import UsbPort


def with_unread(at: Mapping[Spot, Sequence[UdevDevice]], past: Past) -> Mapping[Spot, int]:
    """The spots that siblings share, of those at which nodes are and were, with one that may be unread.

    Each with how many of the siblings certainly are.
    """
    if not past.unread:
        return {}
    names = _Names(past.unread)
    return {
        spot: _count(nodes[0], past.unread)
        for spot, nodes in at.items()
        if names.may_be_at(spot, nodes) and (spot in past.siblings or past.alike(spot.serial, spot.within))
    }


def _count(sibling: UdevDevice, unread: Collection[str]) -> int:
    """How many siblings of a node are among these paths."""
    unit, interface = f"{unit_of(sibling).sys_path}/", interface_in(sibling.sys_path)
    mine = (path for path in unread if path.startswith(unit) and interface_in(path) == interface)
    # Its parent may have the same name, and be unread as well.
    return len({path.rpartition("/")[2] for path in mine if _name_of(path) == _name_of(sibling.sys_path)})


class _Names:
    """What paths say that cannot be read."""

    def __init__(self, paths: Collection[str]) -> None:
        units = {path: usb_above(path) for path in paths}
        self._parts = {(unit, interface_in(path)) for path, unit in units.items() if unit}
        self._names = {_name_of(path) for path, unit in units.items() if not unit}
        # Of a list of devices, such as a class, everything may be unread.
        self._may_be_any = any(not path.startswith(("/sys/devices/", "/dev/")) for path in paths)

    def may_be_at(self, spot: Spot, siblings: Sequence[UdevDevice]) -> bool:
        if self._may_be_any:
            return True
        if UsbPort.of_exact(spot.port) is not None:
            unit, interface = usb_above(siblings[0].sys_path), interface_in(siblings[0].sys_path)
            return not self._parts.isdisjoint(((unit, ""), (unit, interface)))
        return any(_name_of(node.sys_path) in self._names for node in siblings)


def _name_of(path: str) -> str:
    return without_numbers(path.rpartition("/")[2])
