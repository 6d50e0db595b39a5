"""What lasts of the names that the kernel gives: some names as they are, of the others all but a number.

The rules of this file:

* A name without a number is written in its driver: there is one such device, `/dev/fuse`.
* A number counts devices in the order of arrival, unless it is known to be the device's own:
  consoles, processors, what has a fixed minor number (Documentation/admin-guide/devices.txt), and what the
  configuration of a driver numbers.
* Of several numbers, only the first one counts units or buses. Those behind it count parts of the unit. Of an
  NVMe namespace, both follow the order of arrival: `nvme0n1` may be the second one on the drive.
* A number that the class of a node has, too, is a part of the name. What a driver calls its device does not
  last if the kernel's name of another device is in it.
* USB devices and network interfaces name nodes as they like.
"""

import re
from collections.abc import Container, Iterable, Iterator
from itertools import combinations_with_replacement

from genericdp.core.buses.kernel_name import AUTO_NUMBER
from genericdp.core.device import UdevDevice
from genericdp.core.suggest.quoting import exactly

#: Names with a number that always means the same.
_NUMBERED = re.compile(
    r"tty\d+|vcs[au]?\d*|[pt]ty[a-ep-z][0-9a-f]|loop\d+|ram\d+|cpu/\d+/\w+|usbmon0|gpiomem\d+"
    r"|rpivid-\w+|z90crypt|v4l2loopback|mpt[23]ctl|(?:nbd|drbd)\d+(?:p\d+)?"
)
#: Names with a number from the configuration of a driver: npreal2 of Moxa, tty0tty, n_gsm
#: (driver-api/tty/n_gsm.rst).
_CONFIGURED = re.compile(r"(?:ttyr|cur)[0-9a-f]{2,}|tnt\d+|gsmtty\d+")
#: The number that a device node owes to the order of arrival. A long one is an address or a model.
_NUMBER = re.compile(r"((?:i2c|v4l|\d{4,}|\D)*+)\d+(.*)")
#: The names of disks with a letter in the order of arrival, and of their partitions.
_LETTERED = re.compile(r"(sd|vd|xvd|dasd)[a-z]+(\d*)")
#: The names of NVMe namespaces, and of the partitions on them.
_NAMESPACE = re.compile(r"(nvme|ng)\d+n\d+(p\d+)?")
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
    (_NAMESPACE, r"\1*n*\2"),
    # Those behind a multiplexer; a controller has its own address.
    (re.compile(r"(i2c-)\d+"), r"\1*"),
    (re.compile(r"(dvb|spi|spidev|wwan)\d+(\D.*)"), r"\1*\2"),
    (re.compile(r"([A-Za-z][A-Za-z_:-]*)\d{1,3}"), r"\1*"),
)
#: Numbers in the order of arrival in the path of a unit in sysfs: those of remote processors, of the devices
#: through which one talks to these, of units that somebody makes, and of the platform devices that a driver
#: makes of one PCI function (the UART of intel-lpss); there, a long number is an address. The last number of
#: an RPMsg channel is not among them: in `virtio1.rpmsg-pru.-1.30`, the firmware of the remote processor
#: chooses 30.
_ARRIVED = re.compile(
    r"(/remoteproc)\d+(?=/|$)|(/virtio)\d+(?=[/.]|$)|(/platform/gpio-(?:aggregator|sim)\.)\d+(?=/|$)"
    r"|(/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/[A-Za-z][A-Za-z0-9_-]*\.)\d{1,3}(?=/|$)"
)
#: Units that somebody makes of others (admin-guide/gpio/gpio-aggregator.rst, gpio-sim.rst).
_MADE = re.compile(r"/sys/devices/platform/gpio-(?:aggregator|sim)\.\d+")
#: Programs and administrators choose these names.
_CHOSEN = frozenset({"cuse", "net", "macvtap", "block", "virtio-ports", "bsg"})


#: The kernel's name of a device, with a number in the order of arrival.
_COUNTING_NAME = re.compile(r"(?:i2c|v4l|[A-Za-z])[A-Za-z:_-]*\d{1,3}")
_WORDS = re.compile(r"[A-Za-z0-9]+")


def counted_names(nodes: Iterable[UdevDevice]) -> frozenset[str]:
    """The kernel's names of device nodes and of what they hang off that have a number of arrival."""
    names = {name for node in nodes for name in node.sys_path.split("/")}
    return frozenset(name for name in names if _COUNTING_NAME.fullmatch(name))


def lasts(label: str, counted: Container[str]) -> bool:
    """Whether no part of what a driver calls its device is one of these names: `i2c-1-mux (chan_id 0)`."""
    words = [found.span() for found in _WORDS.finditer(label)]
    parts = combinations_with_replacement(words, 2)
    return not any(label[first:last] in counted for (first, _), (_, last) in parts)


def has_a_fixed_name(node: UdevDevice) -> bool:
    """Whether the kernel gives this name to this device node and to no other, whatever is plugged in."""
    if node.is_bare or node.usb_device is not None:
        return False
    if _NUMBERED.fullmatch(node.devname) is not None or is_configured(node):
        return True
    return node.subsystem not in _CHOSEN and re.search(r"\d", node.devname) is None


def is_configured(node: UdevDevice) -> bool:
    """Whether the configuration of its driver fixes the name of a device node."""
    return node.is_virtual and _CONFIGURED.fullmatch(node.devname) is not None


def is_made(unit: UdevDevice) -> bool:
    """Whether somebody makes a unit, which so is nowhere in the machine and has the number of its turn."""
    return unit.is_virtual or _MADE.fullmatch(unit.sys_path) is not None


def _around_number(name: str, subsystem: str) -> tuple[str, str] | None:
    """What is before and behind the number that the kernel's name of a device node, or the path that ends in
    it, owes to the order of arrival; None without one.
    """
    folder, slash, last = name.rpartition("/")
    # A number that its class has, too, is a part of the name: `hfi1_0` of the class hfi1_user.
    beginnings = (subsystem[:length] for length in range(len(subsystem), -1, -1))
    own = next(beginning for beginning in beginnings if last.startswith(beginning))
    fixed = f"{folder}{slash}{own}" if re.search(r"\d", own) else ""
    found = _NUMBER.fullmatch(name.removeprefix(fixed))
    return None if found is None else (f"{fixed}{found[1]}", found[2])


def names_without_number(node: UdevDevice) -> Iterator[tuple[str, ...]]:
    """Globs of the names that a device node may have after another boot, the most general ones first."""
    around = _around_number(node.device_node or "", node.subsystem)
    is_address = node.usb_device is node or node.subsystem == "bsg"
    if around is None or is_address or _NAMESPACE.fullmatch(node.sys_name):
        return
    before, after = map(exactly, around)
    yield (f"{before}[0-9]*{after}",)
    if node.subsystem in ("block", "scsi_tape") and not after:
        # Without mmcblk0boot0 and nst0a.
        yield f"{before}[0-9]", f"{before}[0-9][0-9]"


def without_numbers(path: str, *, subsystem: str | None) -> str:
    """A glob of a path of sysfs without the numbers that follow the order of arrival.

    subsystem  of the device node whose name is the last part; None if that is an address on a bus
    """
    *above, name = lasting_path(path).split("/")
    is_class = subsystem is not None and not any(form.fullmatch(name) for form in (_LETTERED, _NAMESPACE))
    around = _around_number(name, subsystem or "") if is_class else None
    name = _without_number(name) if around is None else "*".join(around)
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
