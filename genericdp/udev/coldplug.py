"""Whether udevd has looked at the devices that were there before it (systemd-udev-trigger.service).

The rules of this file:

* At any moment udevd is busy with a few devices. Only when it is idle, and has looked at few of all, is
  something wrong.
"""

from collections.abc import Iterable

from genericdp.core.device import UdevDevice
from genericdp.errors import GenericdpError
from genericdp.udev import sysfs

#: As many devices may wait at once without it being worth a word: a docking station brings so many.
_MANY = 20


def unseen(devices: Iterable[UdevDevice], run: str) -> GenericdpError | None:
    """That udevd has not looked at most of these devices, and what makes it; None if all is well.

    run  udev's run directory
    """
    nodes = [device for device in devices if device.number is not None]
    waiting = sum(not device.initialized for device in nodes)
    if waiting < _MANY or 2 * waiting < len(nodes) or _is_busy(run):
        return None
    these = f"{waiting} of {len(nodes)} device nodes"
    return GenericdpError(
        f"udevd runs, but has not looked at {these}, and none of these is offered",
        hint="'udevadm trigger' makes it look at what was there before it",
    )


def _is_busy(run: str) -> bool:
    # udevd has this file while it has events to deal with.
    try:
        return sysfs.is_there(f"{run}/queue")
    except OSError:
        return True
