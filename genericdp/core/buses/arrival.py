"""The path of a unit in sysfs without the numbers that follow the order of arrival.

The rules of this file:

* The firmware and the buses fix addresses. What a driver makes on the platform bus, and what nothing is the
  parent of, is numbered by whoever comes first: `ci_hdrc.0`, `xhci-hcd.1.auto`, `/sys/devices/virtual/pps/pps0`.
* Units that only such a number tells apart have one path, so they are siblings: their order decides.
* A number that stands for something else counts: a console, a processor, a disk that somebody has numbered.
"""

import re

from genericdp.core.device import UdevDevice

#: Platform devices that drivers create are numbered in the order of arrival: `xhci-hcd.1.auto`.
AUTO_NUMBER = re.compile(r"\.\d+\.auto(?=/|$)")

#: `NAME.ID` (platform_device_add), and names that drivers make up. The firmware has no names like the first.
_MADE = re.compile(r"(.*)\.\d+")
_MADE_UP = re.compile(r"(.*[A-Za-z])_\d+")

#: The end of the name of what has no parent.
_NUMBER = re.compile(r"(.*?[A-Za-z][^/]*?)[:_!-]?\d+")

#: Subsystems in which the number of what has no parent is no turn: consoles, processors, disks with numbers
#: that somebody has chosen or that nothing tells (`volumes`).
_NUMBERED = frozenset({"block", "cpuid", "msr", "raw", "tty", "ublk-char", "vc", "vfio"})


def address_path(unit: UdevDevice) -> str:
    """The path of a unit on a bus with addresses."""
    path = unit.sys_path
    for each in unit.self_and_ancestors():
        if each.subsystem == "platform":
            above, _, name = each.sys_path.rpartition("/")
            path = f"{above}/{_without_number(name, each)}{path[len(each.sys_path) :]}"
    return path


def parentless_path(unit: UdevDevice) -> str:
    """The path of a unit that is on no such bus."""
    if unit.subsystem in _NUMBERED:
        return unit.sys_path
    above, _, name = unit.sys_path.rpartition("/")
    found = _NUMBER.fullmatch(name)
    return unit.sys_path if found is None else f"{above}/{found[1]}"


def _without_number(name: str, device: UdevDevice) -> str:
    if AUTO_NUMBER.search(name):
        return AUTO_NUMBER.sub(".auto", name)
    found = _MADE.fullmatch(name)
    if found is None and "OF_FULLNAME" not in device.properties:
        found = _MADE_UP.fullmatch(name)
    return name if found is None else found[1]
