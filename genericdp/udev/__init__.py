"""Everything that speaks to udev: which devices there are, and what happens to them.

Read it in this order: `hint` (what the monitor tells), `pending` (of many hints the one that
matters), `once` (which of them are the same), `snapshot` (one device, read), `said` (what udev said
of it), `devices` (all of them, kept current by hints), `hearing` (can udev be heard at all?),
`subscription` (one socket), `namespace` (one reason for silence), `monitor` (tells).
pyudev is imported here and nowhere else.

Does not belong here: what a device is good for. That is decided in `core`.
"""

from genericdp.udev.devices import UdevDevices
from genericdp.udev.hint import Deafness, Hint, Resync, Uevent
from genericdp.udev.monitor import Monitor
from genericdp.udev.pending import Pending

__all__ = ["Deafness", "Hint", "Monitor", "Pending", "Resync", "UdevDevices", "Uevent"]
