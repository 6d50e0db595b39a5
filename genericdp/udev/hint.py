"""What the monitor tells: that something may have changed, and where to look.

The rules of this file:

* A hint is never the truth. Whoever gets one looks at sysfs and the udev database again
  (`UdevDevices.apply`); a lost hint costs time, not correctness.
"""

from dataclasses import dataclass

from genericdp.core.device import UdevDevice


@dataclass(frozen=True, slots=True)
class Uevent:
    """Something happened to one device.

    action        the kernel's word: add change bind unbind move online offline remove
    source        "udev": after udev has dealt with it; "kernel": before
    seqnum        the kernel's number of the event, the same in both sources; 0 when there is none
    device        what udev's message says (properties, tags, devlinks, node; neither attributes nor
                  parent), None for events of the kernel
    old_sys_path  where the device was before a move, else ""
    """

    action: str
    sys_path: str
    subsystem: str
    source: str
    seqnum: int = 0
    device: UdevDevice | None = None
    old_sys_path: str = ""

    @property
    def node(self) -> str:
        """The device node, "" where it is not said."""
        return (self.device and self.device.device_node) or ""


@dataclass(frozen=True, slots=True)
class Resync:
    """Anything may have happened: look at every device. `reason` says why, for the log."""

    reason: str


@dataclass(frozen=True, slots=True)
class Deafness:
    """Whether udev can be heard has changed: `reason` says why it cannot, "" that it can again."""

    reason: str


Hint = Uevent | Resync | Deafness
