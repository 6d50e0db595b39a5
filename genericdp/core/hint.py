"""Hints: where something may have changed.

The rules of this file:

* A hint is never the truth. Its receiver looks at sysfs, the udev database and /dev again
  (`machine.MachineDevices.apply`), so a lost hint costs time, not correctness.
* A cause is a value. `core.status.wording` puts it into words, so the label of a metric never depends on
  the text of a log line.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from genericdp.core.device import UdevDevice


@dataclass(frozen=True, slots=True)
class Uevent:
    """Something happened to one device.

    action        the kernel's word: add change bind unbind move online offline remove
    source        "udev": after udev has processed it; "kernel": before
    seqnum        the kernel's number of the event, the same from both sources; 0 without one
    device        what udev's message contains (properties, tags, devlinks, node; neither attributes nor
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
        """The device node, "" if the event does not name it."""
        return (self.device and self.device.device_node) or ""


@dataclass(frozen=True, slots=True)
class NodeChange:
    """Something happened to a name below /dev, which udev may not tell: to it or to what is below it."""

    path: str


class SilenceCause(StrEnum):
    """What keeps udev's events away."""

    NO_SOCKET = "no socket"
    NO_UDEV = "no udev"
    UNANSWERED = "unanswered"
    USER_NAMESPACE = "user namespace"


@dataclass(frozen=True, slots=True)
class Silence:
    """Why udev's events do not arrive.

    source  NO_SOCKET: whose events, "kernel" or "udev"
    detail  NO_SOCKET: the system's error; NO_UDEV: the control socket that is missing; UNANSWERED: the sys
            path of the device of which udev was to tell first
    """

    cause: SilenceCause
    source: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Deafness:
    """udev's events stopped arriving, or, with `silence` None, arrive again."""

    silence: Silence | None


class RescanCause(StrEnum):
    """Why every device is read again. The values are labels of genericdp_rescans_total."""

    #: The receive buffer of a socket was full: events were lost.
    OVERFLOW = "overflow"
    #: A regular rescan while udev's events do not arrive.
    DEAF = "deaf"
    #: udev's events arrive again.
    HEARD_AGAIN = "heard again"
    #: genericdp reset a USB device.
    USB_RESET = "usb reset"
    #: SIGHUP: the operator wants it.
    RELOAD = "reload"
    #: Something could not be read the last time.
    UNREAD = "unread"
    #: A socket failed, or udev's events stopped arriving.
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Resync:
    """Anything may have happened: read every device again.

    source   the socket that overflowed or failed, "kernel" or "udev"; else ""
    detail   the system's error, if a socket failed
    silence  the one that has begun or ended, if any
    """

    cause: RescanCause
    source: str = ""
    detail: str = ""
    silence: Silence | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """Attributes may have changed, which they do without any event.

    attributes  sys path -> the attributes to read again, of the device and of its ancestors
    """

    attributes: Mapping[str, frozenset[str]]


Hint = Uevent | NodeChange | Resync | Deafness | Poll
