"""Which device of software a node is: a soft RDMA adapter, the clock of a guest, a camera of v4l2loopback.

The rules of this file:

* Its node is numbered in the order of arrival, among those of hardware: `uverbs2`, `ptp1`, `video4`. It has a
  name that stays, from its driver or from who has made it (`rdma link add`, `card_label`).
* An RDMA adapter may be renamed while it is in use (`rdma dev set`).
* Two with the same name are siblings: nothing but their order tells them apart.
* An input device that a program has made is the parent of its nodes. The kernel announces what else it is
  called.
"""

import re

from genericdp.core.buses.address import Address
from genericdp.core.device import UdevDevice

#: The sysfs attribute with the name, by subsystem.
_NAMES = {
    "infiniband_verbs": "ibdev",
    "infiniband_mad": "ibdev",
    "ptp": "clock_name",
    "video4linux": "name",
    "watchdog": "identity",
}

_INPUT = re.compile(r"/sys/devices/virtual/input/input\d+")
#: Properties with what an input device is called beside its name: its unit, and where it is connected.
_OF_INPUT = ("UNIQ", "PHYS")


def software_address(device: UdevDevice) -> Address | None:
    """What tells a device of software; None for any other, and if it has no name."""
    if device.subsystem == "input":
        return _input_address(device)
    attribute = _NAMES.get(device.subsystem)
    if attribute is None or not device.is_virtual:
        return None
    name = _on_one_line(device.attributes.get(attribute, ""))
    return Address(f"{device.subsystem} {name}", name) if name else None


def _input_address(device: UdevDevice) -> Address | None:
    name = _on_one_line(device.attributes.get("name", ""))
    if not name or _INPUT.fullmatch(device.sys_path) is None:
        return None
    more = (_on_one_line((device.property(each) or "").strip('"')) for each in _OF_INPUT)
    return Address(" ".join(("input", *filter(None, (name, *more)))), name)


def _on_one_line(value: str) -> str:
    return "-".join(value.split())
