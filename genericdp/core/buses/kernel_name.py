"""The kernel's name of a device, without what follows the order of arrival: `ttyUSB3` is a `ttyUSB`.

The rules of this file:

* The firmware and buses fix addresses. What a driver makes on the platform bus is numbered in the order of
  arrival (`ci_hdrc.0`, `xhci-hcd.1.auto`), and so is what has no parent (`/sys/devices/virtual/pps/pps0`).
* A number that stands for something else counts: a console, a processor, a disk that somebody has numbered.
"""

import re

from genericdp.core.device import UdevDevice

#: A kernel name in three parts: the driver's stem, the number by order of arrival, the rest.
_KERNEL_NAME = re.compile(r"((?:i2c|v4l|[A-Za-z])[A-Za-z:_!-]*?)[:_!-]?\d+(.*)")

#: The number of a sound card, in the names of its nodes (`pcmC0D3p`) and in its own.
_SOUND_CARD = re.compile(r"C\d+|(?<=^card)\d+")

#: A chip on an I2C bus: the number of the bus, the address.
_I2C_CHIP = re.compile(r"\d+-([0-9a-f]{4})")

#: A channel of a multiplexer of I2C in the device tree.
_I2C_CHANNEL = re.compile(r".*/(i2c@[0-9a-f])")

#: The same as an earlier release read it.
_KERNEL_NAME_BEFORE = re.compile(r"((?:i2c|v4l|[A-Za-z])[A-Za-z:_-]*?)[:_-]?\d+(.*)")

#: `fuse`, `vhost-net`, `tty63`, `i2c-0`. Next to no maker prints serial numbers that look like this.
_LIKE_A_NAME = re.compile(r"(?:i2c|v4l|[a-z])[A-Za-z-]*[0-9]{0,4}")

#: Platform devices that drivers create are numbered in the order of arrival: `xhci-hcd.1.auto`.
AUTO_NUMBER = re.compile(r"\.\d+\.auto(?=/|$)")

#: `NAME.ID` (platform_device_add), and names that drivers make up. The firmware has no names like the first.
_MADE = re.compile(r"(.*)\.\d+")
_MADE_UP = re.compile(r"(.*[A-Za-z])_\d+")

#: The numbers in the name of what has no parent, if it ends in one. Which of them is the turn, only its
#: driver knows.
_ENDS_IN_NUMBER = re.compile(r"(?=.*\d$).*[A-Za-z].*")
_NUMBERS = re.compile(r"[:_!-]?\d+")

#: Subsystems in which a device without a parent does not get its number by order of arrival: consoles,
#: processors, networks and disks that somebody has named, disks that nothing else tells apart (`volumes`).
_CHOSEN = frozenset({"block", "cpuid", "msr", "net", "raw", "tty", "ublk-char", "vc", "vfio"})


def stem_of(device: UdevDevice, *, before: bool = False) -> str:
    """The kernel name without the numbers that follow the order of arrival.

    before  as an earlier release told it
    """
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
        case "platform" if not before:
            name = platform_name(device)
        case "bsg" | "vfio" | "vfio-dev":
            # The node of an IOMMU group has no other name than its number.
            name = device.subsystem
        case _:
            found = (_KERNEL_NAME_BEFORE if before else _KERNEL_NAME).fullmatch(name)
            name = found.group(1) + found.group(2) if found else name
    return re.sub(r"[^A-Za-z0-9.-]", "-", name)


def platform_name(device: UdevDevice) -> str:
    """The name of a platform device, without the number that a driver has given it."""
    name = device.sys_name
    if AUTO_NUMBER.search(name):
        return AUTO_NUMBER.sub(".auto", name)
    found = _MADE.fullmatch(name)
    if found is None and "OF_FULLNAME" not in device.properties:
        found = _MADE_UP.fullmatch(name)
    return name if found is None else found[1]


def parentless_name(device: UdevDevice) -> str:
    """The name of what has no parent, without its turn. Units with one name are siblings."""
    name = device.sys_name
    has_turn = device.subsystem not in _CHOSEN and _ENDS_IN_NUMBER.fullmatch(name) is not None
    return without_numbers(name) if has_turn else name


def without_numbers(name: str) -> str:
    """A kernel name without any of its numbers."""
    return _NUMBERS.sub("", name)


def is_chip(device: UdevDevice) -> bool:
    """Whether it is a chip on an I2C bus."""
    return device.subsystem == "i2c" and _I2C_CHIP.fullmatch(device.sys_name) is not None


def may_be_kernel_name(text: str) -> bool:
    """Whether a text looks like a name that the kernel gives, not like a serial number."""
    return _LIKE_A_NAME.fullmatch(text) is not None


def _i2c_channel(bus: UdevDevice | None) -> tuple[str, ...]:
    """Which channel of a multiplexer a bus is. The channels may have chips with the same address."""
    found = _I2C_CHANNEL.fullmatch(bus.property("OF_FULLNAME") or "") if bus is not None else None
    return () if found is None else (found[1],)
