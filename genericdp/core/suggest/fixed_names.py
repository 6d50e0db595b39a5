"""Which device nodes the kernel always gives the same name.

The rules of this file:

* A name without a number is written in its driver: there is one such device, `/dev/fuse`.
* A number counts devices in the order of arrival, unless it is known to be the device's own:
  consoles, processors, and what has a fixed minor number (Documentation/admin-guide/devices.txt).
* USB devices and network interfaces name nodes as they like.
"""

import re

from genericdp.core.device import UdevDevice

#: Names with a number that always means the same.
_NUMBERED = re.compile(
    r"tty\d+|vcs[au]?\d*|[pt]ty[a-ep-z][0-9a-f]|loop\d+|ram\d+|cpu/\d+/\w+|usbmon0|gpiomem\d+"
    r"|rpivid-\w+"
)
#: Programs and administrators choose these names.
_CHOSEN = frozenset({"cuse", "net", "macvtap", "block", "virtio-ports", "bsg"})


def has_a_fixed_name(node: UdevDevice) -> bool:
    """Whether the kernel gives this name to this device node and to no other, whatever is plugged in."""
    if node.is_bare or node.usb_device is not None:
        return False
    if _NUMBERED.fullmatch(node.devname) is not None:
        return True
    return node.subsystem not in _CHOSEN and re.search(r"\d", node.devname) is None
