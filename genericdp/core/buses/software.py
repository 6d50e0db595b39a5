"""Which device of software a node is: a soft RDMA adapter, the clock of a guest.

The rules of this file:

* Its node is numbered in the order of arrival, among those of hardware: `uverbs2`, `ptp1`. It has a name that
  stays, from its driver or from who has made it (`rdma link add`).
"""

from genericdp.core.buses.address import Address, telling
from genericdp.core.device import UdevDevice

#: The sysfs attribute with the name, by subsystem.
_NAMES = {"infiniband_verbs": "ibdev", "infiniband_mad": "ibdev", "ptp": "clock_name"}


def software_address(device: UdevDevice) -> Address | None:
    """What tells a device of software; None for any other, and if it has no name."""
    attribute = _NAMES.get(device.subsystem)
    if attribute is None or not device.is_virtual:
        return None
    name = telling(device.attributes.get(attribute, ""))
    return Address(f"{device.subsystem} {name}", name) if name else None
