"""Which namespace of an NVMe drive a device node is.

The rules of this file:

* `nvme0n2` is the second namespace that was found, and Linux looks for all of them at once. The drive
  has a number for each of them, its nsid, which lasts until the namespace is deleted.
* Most drives have one namespace, whose nsid is 1. In an id, it is the drive.
"""

import re
from collections.abc import Sequence

from genericdp.core.device import UdevDevice

#: The place that ids do not mention.
FIRST = "ns1"

_NAMESPACE = re.compile(r"(?:nvme|ng)\d+(?:c\d+)?n\d+")


def place_of(own: Sequence[UdevDevice]) -> list[str]:
    """The place of a namespace, or of a partition on it, within its drive.

    own  the device and its ancestors up to the drive, without it, nearest first
    """
    for each in own:
        if _NAMESPACE.fullmatch(each.sys_name) is not None:
            number = each.attributes.get("nsid", "").strip()
            return [f"ns{number}"] if number.isascii() and number.isdigit() else []
    return []
