"""What the daemon reads: rules, devices, hints; and how it takes the inventory of them.

Each is a protocol, so that a test can run a daemon on rules and devices of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Hint
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.plugged import ALL_READ, Plugged
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.take import is_hasty, take_inventory
from genericdp.core.rules.resource import Resource
from genericdp.errors import GenericdpError, Problem, UnreadError
from genericdp.files.last_good import LastGood
from genericdp.files.rulefiles import RuleFile


class Rules(Protocol):
    """The rules in effect. The daemon uses `genericdp.files.rulefiles.RuleFiles`.

    unread  not everything could be read, and should be read again
    """

    resources: tuple[Resource, ...]
    problems: tuple[Problem, ...]
    files: tuple[RuleFile, ...]
    unread: bool

    def resume(self, state_dir: str, /) -> LastGood:
        """With the next `reload`, use what is kept of these rules; returns where it is kept from then on."""

    def reload(self) -> None:
        """Read the rules again."""

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change` when the rules may have changed; returns the function that ends it."""


class Devices(Protocol):
    """The devices as they are now. The daemon uses `genericdp.machine.devices.MachineDevices`."""

    @property
    def devices(self) -> Mapping[str, UdevDevice]:
        """The devices by sys path, a bare node by its path."""

    @property
    def unread(self) -> UnreadError | None:
        """What could not be read the last time, None if everything could."""

    @property
    def unseen(self) -> GenericdpError | None:
        """That udevd has not looked at most of the devices, None if it has or will do so by itself."""

    def remember(self, devices: Callable[[], Mapping[str, Remembered]], /) -> None:
        """From the next look on, look for the bare nodes of what is then remembered, too."""

    def want(self, resources: Iterable[Resource], /) -> bool:
        """Look at what these rules look at from now on; True if anything changed."""

    def resync(self) -> bool:
        """Look at every device again; True if anything changed."""

    def apply(self, *hints: Hint) -> bool:
        """Look again where the hints point; True if anything changed."""

    def listen(self, sink: Callable[[Hint], None], rescan_s: float) -> Callable[[], None]:
        """Call `sink` with hints from now on, with rescans at this interval (seconds) if needed; returns the
        function that ends it.
        """


def take(
    builder: Builder, devices: Devices, memory: Memory, now: float, answer: Answer | None = None
) -> tuple[Inventory, Memory]:
    """The inventory of the devices as they are now, and the memory after it; see `take_inventory`.

    If that `is_hasty`, all devices are read again first: what seems to be a twin may be a unit that has been
    plugged in elsewhere, whose `remove` has not been heard yet, and what seems to be that unit a twin.
    """

    def look() -> tuple[Inventory, Memory]:
        return take_inventory(builder, devices.devices, memory, now, answer, unread=_unread(devices))

    taken = look()
    if not is_hasty(memory, taken[1]):
        return taken
    # Even if nothing has changed, something may turn out to be there that cannot be read.
    devices.resync()
    return look()


def plugged_in(builder: Builder, devices: Devices) -> Plugged:
    """The device nodes that `take` has found plugged in, and what could not be read."""
    return builder.claims.plugged.with_unread(_unread(devices))


def _unread(devices: Devices) -> Mapping[str, str]:
    return ALL_READ if devices.unread is None else devices.unread.paths
