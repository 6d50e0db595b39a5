"""What the answers are about: the parts of the daemon that they need."""

from typing import Protocol

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.memory import Memory
from genericdp.core.rules.settings import Settings
from genericdp.files.cdi.upkeep import CdiUpkeep
from genericdp.inputs import Rules
from genericdp.kubelet.plugins import Plugins
from genericdp.service.ready import Ready
from genericdp.service.watchdog import Watchdog
from genericdp.status.recorder import Recorder


class Subject(Protocol):
    """The parts of the daemon that an answer shows.

    standing_by  which other genericdp serves the node; "" if this one does
    """

    settings: Settings
    cdi: CdiUpkeep
    inventory: Inventory
    memory: Memory
    plugins: Plugins
    recorder: Recorder
    ready: Ready
    watchdog: Watchdog
    standing_by: str

    @property
    def rules(self) -> Rules:
        """The rules in effect."""
