"""Which NVMe drive a device node belongs to, if the drive is not on PCI, and which of its namespaces it is.

The rules of this file:

* A drive that may have several controllers is a subsystem, which Linux numbers in the order of arrival. It
  is told by its NQN. So is a controller over a network, by the address of that, too.
* NVMe/TCP appends the address that the node connects from, `src_addr`, for as long as there is a connection.
  It may be another one after the next, so it tells nothing.
* An NQN that is nothing but a serial number or a UUID tells as much as that.
* `nvme0n2` is the second namespace that was found, and Linux looks for all of them at once. The drive
  has a number for each of them, its nsid, which lasts until the namespace is deleted.
* `ng0n2` is the generic node of the same namespace. Only the disk beside it says the number.
* Most drives have one namespace, whose nsid is 1. In an id, it is the drive.
"""

import re
from collections.abc import Sequence

from genericdp.core.buses.address import Address, telling
from genericdp.core.device import UdevDevice, attributes_by_name

#: The place that ids do not mention.
FIRST = "ns1"

_NAMESPACE = re.compile(r"nvme\d+(?:c\d+)?n\d+|ng\d+n\d+")

#: The NQN that Linux makes of the serial number and the model of a drive that has none.
_MADE_OF_SERIAL = "nqn.2014.08.org.nvmexpress:"

#: What `nvme_tcp_get_address` in Linux appends.
_OWN_ADDRESS = "src_addr="


def drive_address(device: UdevDevice) -> Address | None:
    """What tells a drive that may have several controllers; None if nothing tells it."""
    serial = device.attributes.get("serial", "").strip()
    told = _told(device.attributes.get("subsysnqn", ""), serial)
    return Address(f"nvme {told}", told.rpartition(":")[2], serial) if told else None


def controller_address(device: UdevDevice) -> Address | None:
    """What tells a controller over a network; None for one on PCI."""
    if device.parent is None or device.parent.subsystem != "nvme-fabrics":
        return None
    drive = drive_address(device)
    if drive is None:
        return None
    parts = device.attributes.get("address", "").split(",")
    at = ",".join("-".join(part.split()) for part in parts if not part.strip().startswith(_OWN_ADDRESS))
    return Address(f"{drive.exact} at {at}", at, drive.serial)


def _told(nqn: str, serial: str) -> str:
    nqn, serial = telling(nqn), telling(serial)
    _, is_uuid, uuid = nqn.partition(":uuid:")
    if not nqn or (is_uuid and not telling(uuid)):
        return f"serial {serial}" if serial else ""
    return nqn if serial or not nqn.startswith(_MADE_OF_SERIAL) else ""


def place_of(own: Sequence[UdevDevice]) -> list[str]:
    """The place of a namespace, or of a partition on it, within its drive.

    own  the device and its ancestors up to the drive, without it, nearest first
    """
    for each in own:
        if _NAMESPACE.fullmatch(each.sys_name) is not None:
            (attribute,) = attributes_by_name(each.sys_path)
            number = each.attributes.get(attribute, "").strip()
            return [f"ns{number}"] if number.isascii() and number.isdigit() else []
    return []
