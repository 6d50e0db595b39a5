"""Which namespace of persistent memory a device node is: `/dev/pmem0` is numbered in the order of arrival.

The rules of this file:

* All namespaces of a machine are behind one device of the firmware. The UUID of a namespace is in its label.
* A region without labels is one namespace, whose number the tables of the firmware fix.
"""

from collections.abc import Sequence

from genericdp.core.buses.address import telling
from genericdp.core.device import UdevDevice


def place_of(own: Sequence[UdevDevice]) -> list[str]:
    """The place of a namespace, or of a partition on it.

    own  the device and its ancestors up to the unit, without it, nearest first
    """
    for each in own:
        if each.subsystem == "nd" and (told := telling(each.attributes.get("uuid", "").lower())):
            return [told]
    return []
