"""Takes the inventory: what the rules make of the udev devices, completed from memory.

The rules of this file:

* The daemon, `list`, `explain`, `suggest` and a `monitor` without a daemon all use `take_inventory`. So they
  give a device the same id, the same health and the same reason.
* An event is a hint. What is for good, and where an id that a pod holds leads to, is decided by all devices.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from genericdp.core.buses.port import takes_one
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.held import Answer
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.memory.remembered import Remembered


def take_inventory(
    builder: Builder,
    devices: Mapping[str, UdevDevice],
    memory: Memory,
    now: float,
    answer: Answer | None = None,
    *,
    unread: Collection[str] = (),
) -> tuple[Inventory, Memory]:
    """The inventory of these udev devices (sys path -> snapshot) and absent ones, and the memory after it.

    now     seconds on a clock that does not jump, the same one for as long as this memory is in use
    answer  of PodResources, if there is a new one; nothing is forgotten without a complete one
    unread  the paths of what cannot be read, and may be there all the same
    """
    built = builder.build(devices, memory.past)
    plugged = replace(builder.claims.plugged, unread=frozenset(unread))
    return remember(built, memory, now, answer, plugged)


def is_hasty(before: Memory, after: Memory) -> bool:
    """Whether a memory must not count before every device has been read: an event shows only one of them.

    That is so if twins are tied, which is for good, and if an id that a pod holds gets another device node:
    what has come may only look like the one that the pod got, whose own event has not been heard yet.
    """
    return bool(after.ties.keys() - before.ties.keys()) or any(
        was is not now and was is not None and now is not None and _has_another_node(was, now)
        for holding in after.held.values()
        for was, now in ((before.devices.get(holding.device), after.devices.get(holding.device)),)
    )


def _has_another_node(was: Remembered, now: Remembered) -> bool:
    if now.absent_since is not None:
        return False
    ports = {spot.port for spot in (*was.device.spots, *was.earlier)}
    paths = {node.sys_path for node in was.device.nodes}
    return any(
        spot.port not in ports or (node.sys_path not in paths and not takes_one(spot.port, node.sys_path))
        for spot, node in zip(now.device.spots, now.device.nodes, strict=False)
    )
