"""What the daemon reads: rules, devices, hints.

Each is a protocol, so that a test can run a daemon on rules and devices of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Hint
from genericdp.core.rules.resource import Resource
from genericdp.errors import GenericdpError, Problem
from genericdp.files.rulefiles import RuleFile
from genericdp.udev import Monitor


class Rules(Protocol):
    """The rules in effect. The daemon uses `genericdp.files.rulefiles.RuleFiles`.

    unread  not everything could be read, and should be read again
    """

    resources: tuple[Resource, ...]
    problems: tuple[Problem, ...]
    files: tuple[RuleFile, ...]
    unread: bool

    def reload(self) -> None:
        """Read the rules again."""

    def watch(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call `on_change` when the rules may have changed; returns the function that ends it."""


class Devices(Protocol):
    """The udev devices as they are now. The daemon uses `genericdp.udev.UdevDevices`."""

    @property
    def devices(self) -> Mapping[str, UdevDevice]:
        """The devices by sys path."""

    @property
    def unread(self) -> GenericdpError | None:
        """What could not be read the last time, None if everything could."""

    def want(self, attributes: Iterable[str]) -> bool:
        """Read these sysfs attributes, too, from now on; True if anything changed."""

    def resync(self) -> bool:
        """Read every device again; True if anything changed."""

    def apply(self, hint: Hint) -> bool:
        """Read again what the hint points at; True if anything changed."""


#: Starts to call a sink with hints, with rescans at this interval (seconds) if needed; returns the function
#: that ends it.
Listen = Callable[[Callable[[Hint], None], float], Callable[[], None]]


def listen_to_udev(sink: Callable[[Hint], None], rescan_s: float) -> Callable[[], None]:
    """The hints of the real monitor."""
    monitor = Monitor(sink, rescan_s=rescan_s)
    monitor.start()
    return monitor.close
