"""Takes the inventory: what the rules make of the udev devices, completed from memory.

The rules of this file:

* The daemon, `list`, `explain`, `suggest` and a `monitor` without a daemon all use `take_inventory`. So they
  give a device the same id, the same health and the same reason.
"""

from collections.abc import Mapping

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.memory import Memory, remember


def take_inventory(
    builder: Builder,
    devices: Mapping[str, UdevDevice],
    memory: Memory,
    now: float,
    held: frozenset[str] | None = None,
) -> tuple[Inventory, Memory]:
    """The inventory of these udev devices (sys path -> snapshot) and absent ones, and the memory after it.

    now   seconds on a clock that does not jump, the same one for as long as this memory is in use
    held  the ids that pods hold; None when this is not known, and then nothing is forgotten
    """
    built = builder.build(devices, ties=memory.ties, known_ports=memory.known_ports)
    return remember(built, memory, now, held, devices, place=builder.claims.place)
