"""Everything that talks to udev: which devices exist, and what happens to them.

Reading order:

    sysfs         which devices exist
    uevent_file   which properties the kernel gave a device, and which its name forged
    snapshot      one device, read from sysfs and the udev database
    bounded       reads that may hang, in a thread
    iommu         which functions the node of a VFIO device hands over
    database      what udev knows about it, and whether that is still valid
    devices       all devices, kept up to date by hints (`core.hint`)
    unread        those that could not be read
    coldplug      whether udevd has looked at those that were there before it
    pending       what several hints amount to
    polling       asks for attributes to be read again, for rules that want it
    hearing       are udev's events arriving? (a pure judgement)
    subscription  one socket for events
    monitor       turns events into hints

pyudev is imported in this folder and nowhere else. The monitor and the polling are loaded on first use: they
need asyncio, which costs a verb more than everything else here.

Does not belong here: what a device is used for. `core` decides that.
"""

from typing import TYPE_CHECKING, Any

from genericdp.udev.devices import UdevDevices
from genericdp.udev.pending import Pending, SeenUevents

if TYPE_CHECKING:
    from genericdp.udev.monitor import Monitor
    from genericdp.udev.polling import Polling

__all__ = ["Monitor", "Pending", "Polling", "SeenUevents", "UdevDevices"]


def __getattr__(name: str) -> Any:
    if name == "Monitor":
        from genericdp.udev.monitor import Monitor  # noqa: PLC0415  (see above)

        return Monitor
    if name == "Polling":
        from genericdp.udev.polling import Polling  # noqa: PLC0415

        return Polling
    raise AttributeError(name)
