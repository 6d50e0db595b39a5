"""Which card a device is that its driver gives no parent, although it is hardware.

The rules of this file:

* Its node is numbered in the order in which the cards were started. What tells it is where its card is.
* Cards of which the driver does not say it are siblings.
"""

from genericdp.core.buses.address import Address
from genericdp.core.device import UdevDevice


def card_address(device: UdevDevice) -> Address | None:
    """Which card a device is; None if the driver does not say it, and where sysfs shows the parent."""
    place = device.attributes.get("board_location", "").strip()
    if not place or not device.is_virtual:
        return None
    return Address(f"{device.subsystem} {place}", f"port-{place}")
