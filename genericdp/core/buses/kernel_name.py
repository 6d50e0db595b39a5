"""The kernel's name of a device, without what follows the order of arrival: `ttyUSB3` is a `ttyUSB`."""

import re

from genericdp.core.device import UdevDevice

#: A kernel name in three parts: the driver's stem, the number by order of arrival, the rest.
_KERNEL_NAME = re.compile(r"((?:i2c|v4l|[A-Za-z])[A-Za-z:_-]*?)[:_-]?\d+(.*)")
_SOUND_CARD = re.compile(r"C\d+")


def stem_of(device: UdevDevice) -> str:
    """The kernel name without the numbers that follow the order of arrival."""
    name = device.sys_name
    match device.subsystem:
        case "block" if device.devtype == "partition":
            name = f"part{device.properties.get('PARTN', '')}"
        case "block":
            name = "disk"
        case "sound":
            name = _SOUND_CARD.sub("", name)
        case "hid":
            name = name.rpartition(".")[0]
        case "bsg" | "vfio" | "vfio-dev":
            # The node of an IOMMU group has no other name than its number.
            name = device.subsystem
        case _:
            found = _KERNEL_NAME.fullmatch(name)
            name = found.group(1) + found.group(2) if found else name
    return re.sub(r"[^A-Za-z0-9.-]", "-", name)
