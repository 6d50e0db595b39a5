"""One look at a machine: what it has, and what the rules make of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.memory import Memory
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import Settings
from genericdp.core.words import counted
from genericdp.errors import Problem


@dataclass(frozen=True, slots=True)
class Survey:
    """One look at a machine.

    resources  those of the rule files, in file order
    devices    every udev device by its sys path
    claims     which resource takes which of the devices
    inventory  what the daemon would offer, with the unplugged devices that it remembers
    memory     what the daemon remembers, with devices of resources that the rules no longer name
    problems   what is wrong with the rule files
    remarks    what the reader should know about the limits of this survey
    """

    settings: Settings
    resources: tuple[Resource, ...]
    devices: Mapping[str, UdevDevice]
    claims: Claims
    inventory: Inventory
    memory: Memory = field(default_factory=Memory)
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def mistakes(self) -> str:
        """`1 rule file has a mistake, see below`: its rules are missing here; "" when none has one."""
        files = {problem.location.file for problem in self.problems if problem.severity == "error"}
        if not files:
            return ""
        have = "has a mistake" if len(files) == 1 else "have mistakes"
        return f"{counted(len(files), 'rule file')} {have}, see below"

    @property
    def nodes(self) -> list[UdevDevice]:
        """The udev devices that have a device node."""
        return [device for device in self.devices.values() if device.device_node is not None]
