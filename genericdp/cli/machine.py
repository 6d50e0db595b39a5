"""What this machine has and what the rules make of it: read once, without a daemon and without root.

The rules of this file:

* It looks as the daemon looks: the same rules, the same udev, the same pure core, and, where it may
  be read, the daemon's memory. So `list` says what the daemon would offer.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from genericdp.core.claims import Claims
from genericdp.core.device import UdevDevice
from genericdp.core.inventory import Inventory, build
from genericdp.core.memory import Memory, remember
from genericdp.core.rules import Resource
from genericdp.core.settings import Settings


@dataclass(frozen=True, slots=True)
class Machine:
    """One look at the machine.

    devices    every udev device by its sys path
    claims     the rules, ready to be asked about one of the devices
    inventory  what the daemon would offer; unplugged devices that it remembers included
    remarks    what the reader should know about how far this can be trusted
    """

    settings: Settings
    devices: Mapping[str, UdevDevice]
    claims: Claims
    inventory: Inventory
    remarks: tuple[str, ...] = ()

    @property
    def resources(self) -> tuple[Resource, ...]:
        return self.claims.resources


def machine_of(
    settings: Settings,
    resources: tuple[Resource, ...],
    devices: Mapping[str, UdevDevice],
    memory: Memory | None = None,
    *,
    remarks: tuple[str, ...] = (),
) -> Machine:
    """What these rules make of these devices, with what the daemon remembers."""
    known = memory or Memory()
    claims = Claims(resources)
    built = build(claims, devices, settings.domain, ties=known.ties, known_ports=known.known_ports)
    inventory, _ = remember(built, known, time.time(), held=None)
    return Machine(settings, devices, claims, inventory, remarks)


def look(*, rules: list[str], config: str | None, domain: str | None) -> Machine:
    """Read rule files, udev and the daemon's memory. Raises ConfigError, GenericdpError."""
    # Here and not above: `--help` should not have to load libudev.
    from genericdp import rulefiles  # noqa: PLC0415
    from genericdp.core.rules import attributes_of  # noqa: PLC0415
    from genericdp.udev import UdevDevices  # noqa: PLC0415

    opened = rulefiles.open_rules(rules, config=config, domain=domain)
    devices = UdevDevices(attributes_of(opened.resources))
    devices.resync()
    memory, remarks = _memory(opened.settings)
    return machine_of(opened.settings, opened.resources, devices.devices, memory, remarks=remarks)


def _memory(settings: Settings) -> tuple[Memory, tuple[str, ...]]:
    from genericdp.errors import GenericdpError  # noqa: PLC0415
    from genericdp.state import StateFile  # noqa: PLC0415

    try:
        return StateFile(settings.state_dir).load(), ()
    except GenericdpError as error:
        return Memory(), (f"{error}; unplugged devices are left out, and ids of twins may differ",)
