"""Takes the inventory: what the rules make of the udev devices, completed from memory.

The rules of this file:

* The daemon, `list`, `explain`, `suggest` and a `monitor` without a daemon all use `take_inventory`. So they
  give a device the same id, the same health and the same reason.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.held import Answer
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember


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
