"""Which namespace of an NVMe drive a device node is.

The rules of this file:

* `nvme0n2` is the second namespace that was found, and Linux looks for all of them at once. The drive
  has a number for each of them, its nsid, which lasts until the namespace is deleted.
* `ng0n2` is the generic node of the same namespace. Only the disk beside it says the number.
* Most drives have one namespace, whose nsid is 1. In an id, it is the drive.
"""

import re
from collections.abc import Sequence

from genericdp.core.device import UdevDevice, attributes_by_name

#: The place that ids do not mention.
FIRST = "ns1"

_NAMESPACE = re.compile(r"nvme\d+(?:c\d+)?n\d+|ng\d+n\d+")


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
