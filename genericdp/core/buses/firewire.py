"""Which unit a FireWire device is: every reset of the bus may number them anew.

The rules of this file:

* A unit is told by its GUID, which its maker has fixed. A port of the bus has no address.
"""

import re

from genericdp.core.buses.address import Address, telling
from genericdp.core.device import UdevDevice

_UNIT = re.compile(r"fw\d+")


def guid_address(device: UdevDevice) -> Address | None:
    """What tells a FireWire unit; None for any other device, and if it says nothing."""
    guid = telling(device.attributes.get("guid", "")) if _UNIT.fullmatch(device.sys_name) is not None else ""
    told = guid.removeprefix("0x")
    return Address(f"firewire {told}", told, told) if told else None
