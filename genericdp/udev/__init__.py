"""Everything that speaks to udev: which devices there are, and what happens to them.

Read it in this order: `hint` (what the monitor tells), `pending` (of many hints the one that
matters), `once` (which of them are the same), `snapshot` (one device, read), `said` (what udev said
of it), `devices` (all of them, kept current by hints), `hearing` (can udev be heard at all?),
`subscription` (one socket), `namespace` (one reason for silence), `monitor` (tells).
pyudev is imported here and nowhere else.

The monitor is loaded by who uses it: it needs asyncio, which costs a verb more than all else here.

Does not belong here: what a device is good for. That is decided in `core`.
"""

from typing import TYPE_CHECKING, Any

from genericdp.udev.devices import UdevDevices
from genericdp.udev.hint import Deafness, Hint, Resync, Uevent
from genericdp.udev.pending import Pending

if TYPE_CHECKING:
    from genericdp.udev.monitor import Monitor

__all__ = ["Deafness", "Hint", "Monitor", "Pending", "Resync", "UdevDevices", "Uevent"]


def __getattr__(name: str) -> Any:
    if name == "Monitor":
        from genericdp.udev.monitor import Monitor  # noqa: PLC0415  (see above)

        return Monitor
    raise AttributeError(name)
