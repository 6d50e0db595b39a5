"""What lasts of the names that the kernel gives: some names as they are, of the others all but a number.

The rules of this file:

* A name without a number is written in its driver: there is one such device, `/dev/fuse`.
* A number counts devices in the order of arrival, unless it is known to be the device's own:
  consoles, processors, and what has a fixed minor number (Documentation/admin-guide/devices.txt).
* Of several numbers, only the first one counts units or buses. Those behind it count parts of the unit:
  `nvme3n1` is the first namespace, wherever it is found.
* USB devices and network interfaces name nodes as they like.
"""

import re
from collections.abc import Iterator

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import AUTO_NUMBER
from genericdp.core.suggest.quoting import exactly

#: Names with a number that always means the same.
_NUMBERED = re.compile(
    r"tty\d+|vcs[au]?\d*|[pt]ty[a-ep-z][0-9a-f]|loop\d+|ram\d+|cpu/\d+/\w+|usbmon0|gpiomem\d+"
    r"|rpivid-\w+|z90crypt|v4l2loopback|mpt[23]ctl|(?:nbd|drbd)\d+(?:p\d+)?"
)
#: The number that a device node owes to the order of arrival. A long one is an address or a model.
_NUMBER = re.compile(r"((?:i2c|v4l|\d{4,}|\D)*+)\d+(.*)")
#: The names of disks with a letter in the order of arrival, and of their partitions.
_LETTERED = re.compile(r"(sd|vd|xvd|dasd)[a-z]+(\d*)")
#: Parts of a path in sysfs with numbers in the order of arrival, and as a glob without these. A long number
#: is an address: serial8250.
_COUNTED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\d+-([\d.]+(?::[\d.]+)?|[0-9a-f]{4})"), r"*-\1"),
    (re.compile(r"([0-9A-F]{4}:[0-9A-F]{4}:[0-9A-F]{4})\.[0-9A-F]{4,}"), r"\1.*"),
    # The first number of an address on SCSI is the host adapter's.
    (re.compile(r"(target|r?port-|end_device-|expander-)\d+(:[\d:-]+)"), r"\1*\2"),
    (re.compile(r"\d+(:\d+:\d+:\d+)"), r"*\1"),
    (re.compile(r"(mmc)\d+(:[0-9a-f]{4})"), r"\1*\2"),
    (_LETTERED, r"\1*\2"),
    (re.compile(r"(dvb|spi|spidev|wwan)\d+(\D.*)"), r"\1*\2"),
    (re.compile(r"([A-Za-z][A-Za-z_:-]*)\d{1,3}"), r"\1*"),
)
#: Numbers in the order of arrival in the path of a unit in sysfs: those of remote processors, of the devices
#: through which one talks to these, and of the platform devices that a driver makes of one PCI function (the
#: UART of intel-lpss); there, a long number is an address. The last number of an RPMsg channel is not among
#: them: in `virtio1.rpmsg-pru.-1.30`, the firmware of the remote processor chooses 30.
_ARRIVED = re.compile(
    r"(/remoteproc)\d+(?=/|$)|(/virtio)\d+(?=[/.]|$)"
    r"|(/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/[A-Za-z][A-Za-z0-9_-]*\.)\d{1,3}(?=/|$)"
)
#: Programs and administrators choose these names.
_CHOSEN = frozenset({"cuse", "net", "macvtap", "block", "virtio-ports", "bsg"})


def has_a_fixed_name(node: UdevDevice) -> bool:
    """Whether the kernel gives this name to this device node and to no other, whatever is plugged in."""
    if node.is_bare or node.usb_device is not None:
        return False
    if _NUMBERED.fullmatch(node.devname) is not None:
        return True
    return node.subsystem not in _CHOSEN and re.search(r"\d", node.devname) is None


def names_without_number(node: UdevDevice) -> Iterator[str]:
    """Globs of the names that a device node may have after another boot, the most general one first."""
    number = _NUMBER.fullmatch(node.device_node or "")
    # The names of these are addresses.
    if number is None or node.usb_device is node or node.subsystem == "bsg":
        return
    before, after = exactly(number[1]), exactly(number[2])
    yield f"{before}[0-9]*{after}"
    if node.subsystem == "block" and not after:
        # Without mmcblk0boot0.
        yield f"{before}[0-9]"


def without_numbers(path: str, *, is_class: bool) -> str:
    """A glob of a path of sysfs without the numbers that follow the order of arrival.

    is_class  whether the last part is the kernel's name of a device node, not an address on a bus
    """
    *above, name = lasting_path(path).split("/")
    number = _NUMBER.fullmatch(name) if is_class and not _LETTERED.fullmatch(name) else None
    name = _without_number(name) if number is None else f"{number[1]}*{number[2]}"
    return "/".join([*map(_without_number, above), name])


def _without_number(part: str) -> str:
    for counted, lasting in _COUNTED:
        if counted.fullmatch(part):
            return counted.sub(lasting, part)
    return part


def lasting_path(path: str) -> str:
    """A glob of the path of a unit in sysfs without the numbers in the order of arrival."""
    glob = AUTO_NUMBER.sub(".*.auto", exactly(path))
    return _ARRIVED.sub(lambda found: f"{found[found.lastindex or 0]}*", glob)
