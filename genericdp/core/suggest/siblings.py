"""Which device nodes an operator means by one of them: a modem's ports, the nodes of a sound card.

The rules of this file:

* The nodes of one USB device belong together, except its raw USB node: a program that opens that one can
  take the others away from their drivers, so only programs that need it should get it.
* A node that gives control of the host is never added to others.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import is_dangerous
from genericdp.core.inventory.identity import natural

#: Nodes of these subsystems are useful only with their siblings, on any bus: the control and playback
#: nodes of a sound card, the two of a graphics card, those of a keyboard or a tuner.
_WITH_SIBLINGS = frozenset({"sound", "drm", "input", "dvb"})


@dataclass(frozen=True, slots=True)
class Siblings:
    """Device nodes that make one device.

    group_by   how a rule says so; "node" for a single node
    nodes      in the order of their names
    """

    group_by: str
    nodes: tuple[UdevDevice, ...]

    @property
    def sys_paths(self) -> frozenset[str]:
        return frozenset(node.sys_path for node in self.nodes)

    @property
    def paths(self) -> tuple[str, ...]:
        """The device nodes."""
        return tuple(node.device_node or "" for node in self.nodes)


def alone(node: UdevDevice) -> Siblings:
    """A device node without siblings."""
    return Siblings("node", (node,))


def siblings_of(node: UdevDevice, devices: Iterable[UdevDevice]) -> Siblings:
    """The device nodes that make one device with this one."""
    usb = node.usb_device
    above = usb if usb is not None else node.parent if node.subsystem in _WITH_SIBLINGS else None
    if above is None or above is node:
        return alone(node)
    below = f"{above.sys_path}/"
    siblings = [
        each
        for each in devices
        if each.sys_path.startswith(below) and each.device_node is not None and _are_one(node, each)
    ]
    if len(siblings) < 2:
        return alone(node)
    group_by = "usb_device" if usb is not None else "parent"
    return Siblings(group_by, tuple(sorted(siblings, key=lambda each: natural(each.device_node or ""))))


def _are_one(node: UdevDevice, other: UdevDevice) -> bool:
    """Whether a node below the same USB device or parent belongs to it, not to something in between."""
    if is_dangerous(node) is not is_dangerous(other):
        return False
    if node.usb_device is not None:
        return _same(other.usb_device, node.usb_device)
    return node.subsystem == other.subsystem and _same(other.parent, node.parent)


def _same(one: UdevDevice | None, other: UdevDevice | None) -> bool:
    return one is not None and other is not None and one.sys_path == other.sys_path
