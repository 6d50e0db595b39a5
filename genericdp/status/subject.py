"""What the answers are about: the parts of the daemon that they need."""

from typing import Protocol

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.rules.settings import Settings
from genericdp.inputs import Rules
from genericdp.kubelet.plugins import Plugins
from genericdp.status.recorder import Recorder
from genericdp.watchdog import Watchdog


class Subject(Protocol):
    """The parts of the daemon that an answer shows.

    standing_by  which other genericdp serves the node; "" if this one does
    """

    settings: Settings
    inventory: Inventory
    plugins: Plugins
    recorder: Recorder
    watchdog: Watchdog
    standing_by: str

    @property
    def rules(self) -> Rules:
        """The rules in effect."""
