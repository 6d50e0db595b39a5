"""Whether udevd has looked at the devices that were there before it (systemd-udev-trigger.service).

The rules of this file:

* At any moment udevd is busy with a few devices. Only when it is idle, and has looked at few of all, is
  something wrong. While it is busy, what was found before stays, so an event does not look like a cure.
"""

from collections.abc import Iterable

from genericdp.core.device import UdevDevice
from genericdp.errors import GenericdpError
from genericdp.udev import sysfs

#: Fewer waiting device nodes are not worth a word: a docking station brings so many.
_MANY = 20


class Coldplug:
    """The device nodes that udevd has not looked at. An event costs no more than the device of the event.

    run  udev's run directory
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._waiting: set[str] = set()
        self._found: GenericdpError | None = None

    def see(self, device: UdevDevice) -> None:
        """A new snapshot of a device."""
        if device.number is not None and not device.initialized:
            self._waiting.add(device.sys_path)
        else:
            self._waiting.discard(device.sys_path)

    def forget(self, sys_path: str) -> None:
        """Forget a device that is gone."""
        self._waiting.discard(sys_path)

    def unseen(self, devices: Iterable[UdevDevice]) -> GenericdpError | None:
        """That udevd has not looked at most of these devices, and what makes it; None if all is well."""
        waiting = len(self._waiting)
        nodes = 0 if waiting < _MANY else sum(device.number is not None for device in devices)
        if not nodes or 2 * waiting < nodes:
            self._found = None
        elif not self._is_busy():
            these = f"{waiting} of {nodes} device nodes"
            self._found = GenericdpError(
                f"udevd runs, but has not looked at {these}, and none of these is offered",
                hint="'udevadm trigger' makes it look at the devices that were there before it",
            )
        return self._found

    def _is_busy(self) -> bool:
        # udevd has this file while it has events to deal with.
        try:
            return sysfs.is_there(f"{self._run}/queue")
        except OSError:
            return True
