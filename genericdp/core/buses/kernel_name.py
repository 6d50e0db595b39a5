"""The kernel's name of a device, without what follows the order of arrival: `ttyUSB3` is a `ttyUSB`."""

import re

from genericdp.core.device import UdevDevice

#: A kernel name in three parts: the driver's stem, the number by order of arrival, the rest.
_KERNEL_NAME = re.compile(r"((?:i2c|v4l|[A-Za-z])[A-Za-z:_-]*?)[:_-]?\d+(.*)")
#: The number of a sound card, in the names of its nodes (`pcmC0D3p`) and in its own.
_SOUND_CARD = re.compile(r"C\d+|(?<=^card)\d+")

#: A chip on an I2C bus: the number of the bus, the address.
_I2C_CHIP = re.compile(r"\d+-([0-9a-f]{4})")

#: A channel of a multiplexer of I2C in the device tree.
_I2C_CHANNEL = re.compile(r".*/(i2c@[0-9a-f])")


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
        case "scsi" if device.devtype == "scsi_device":
            # Which one it is, its transport says.
            name = "scsi"
        case "i2c" if (chip := _I2C_CHIP.fullmatch(name)) is not None:
            name = "-".join((*_i2c_channel(device.parent), chip[1]))
        case "bsg" | "vfio" | "vfio-dev":
            # The node of an IOMMU group has no other name than its number.
            name = device.subsystem
        case _:
            found = _KERNEL_NAME.fullmatch(name)
            name = found.group(1) + found.group(2) if found else name
    return re.sub(r"[^A-Za-z0-9.-]", "-", name)


def is_chip(device: UdevDevice) -> bool:
    """Whether it is a chip on an I2C bus."""
    return device.subsystem == "i2c" and _I2C_CHIP.fullmatch(device.sys_name) is not None


def _i2c_channel(bus: UdevDevice | None) -> tuple[str, ...]:
    """Which channel of a multiplexer a bus is. The channels may have chips with the same address."""
    found = _I2C_CHANNEL.fullmatch(bus.property("OF_FULLNAME") or "") if bus is not None else None
    return () if found is None else (found[1],)
