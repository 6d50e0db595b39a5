"""Where a sibling may be that cannot be read.

The rules of this file:

* What cannot be read may be plugged in all the same. So it is not missing, and a node that has come is not
  taken for it.
* A path on USB says the unit and the interface. Elsewhere, only siblings have the same name but for its
  numbers: a disk that hangs for good must not keep sensors from their pods after each boot. And where a port
  is a directory in sysfs, all siblings are below that: a card that hangs must not keep others from theirs.
"""

from collections.abc import Collection, Mapping, Sequence

from genericdp.core.buses.kernel_name import without_numbers
from genericdp.core.buses.port import interface_in, takes_one, usb_above
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.past import Past, Seen
from genericdp.core.inventory.place import Spot
from genericdp.core.usb_port import UsbPort


def with_unread(at: Mapping[Spot, Sequence[UdevDevice]], past: Past) -> frozenset[Spot]:
    """The spots that siblings share, of those at which nodes are and were, with one that may be unread."""
    if not past.unread:
        return frozenset()
    names = _Names(past.unread)
    return frozenset(
        spot
        for spot, nodes in at.items()
        if names.may_be_at(spot, nodes)
        and (spot in past.siblings or past.alike("serial", spot.serial, spot.within))
    )


def unread_among(before: Mapping[int, Seen], past: Past) -> Mapping[int, Seen]:
    """Those of siblings that may still be where they were, because nothing can be read there."""
    return {
        number: seen
        for number, seen in (before.items() if past.unread else ())
        if any(is_at_or_below(seen.order, path) for path in past.unread)
    }


def is_at_or_below(order: str, path: str) -> bool:
    """Whether a sibling (`order_of`) has this path, or one below it."""
    return f"{order[order.find('/') :]}/".startswith(f"{path}/")


class _Names:
    """What paths say that cannot be read."""

    def __init__(self, paths: Collection[str]) -> None:
        units = {path: usb_above(path) for path in paths}
        self._parts = {(unit, interface_in(path)) for path, unit in units.items() if unit}
        self._named: dict[str, list[str]] = {}
        for path in (path for path, unit in units.items() if not unit):
            self._named.setdefault(_name_of(path), []).append(path)
        # Of a list of devices, such as a class, everything may be unread.
        self._may_be_any = any(not path.startswith(("/sys/devices/", "/dev/")) for path in paths)

    def may_be_at(self, spot: Spot, siblings: Sequence[UdevDevice]) -> bool:
        if self._may_be_any:
            return True
        if UsbPort.of_exact(spot.port) is not None:
            unit, interface = usb_above(siblings[0].sys_path), interface_in(siblings[0].sys_path)
            return not self._parts.isdisjoint(((unit, ""), (unit, interface)))
        return any(
            takes_one(spot.port, path) or not takes_one(spot.port, node.sys_path)
            for node in siblings
            for path in self._named.get(_name_of(node.sys_path), ())
        )


def _name_of(path: str) -> str:
    return without_numbers(path.rpartition("/")[2])
