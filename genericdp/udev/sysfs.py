"""Paths of sysfs: which devices exist.

The rules of this file:

* Only the errors in GONE prove that something does not exist. Any other error proves nothing and is raised.
"""

import errno
import os
from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator

from genericdp.core.device import DeviceNumber

DEVICES = "/sys/devices/"

#: The errors that prove that something does not exist, or no longer.
GONE = frozenset({errno.ENOENT, errno.ENODEV, errno.ENOTDIR})

#: Not in the `uevent` file of a device; libudev derives them from its path and class.
_NAMED_BY_LIBUDEV = frozenset({"DEVPATH", "SUBSYSTEM"})


def sys_paths_with_node() -> set[str]:
    """The sys path of every device with a device node: the kernel has a link to each under its number.

    Raises OSError if not all of them can be listed.
    """
    found: set[str] = set()
    for folder in ("/sys/dev/char", "/sys/dev/block"):
        for name in names_in(folder):
            try:
                found.add(os.path.normpath(f"{folder}/{os.readlink(f'{folder}/{name}')}"))
            except OSError as error:
                unless_gone(error)
    return {path for path in found if path.startswith(DEVICES)}


def and_above(sys_paths: Iterable[str], without: Container[str] = ()) -> list[str]:
    """These paths and those above them that may be devices, without some and what is above them; sorted."""
    found: set[str] = set()
    for sys_path in sys_paths:
        path = sys_path
        while path.startswith(DEVICES) and path not in found and path not in without:
            found.add(path)
            path = path.rpartition("/")[0]
    return sorted(found)


class SysPaths:
    """Sys paths in their order: what is at and below one is found without looking at all."""

    def __init__(self) -> None:
        self._paths: list[str] = []

    def add(self, path: str) -> None:
        """Add a path that is not among them."""
        insort(self._paths, path)

    def remove(self, path: str) -> None:
        """Remove a path that is among them."""
        del self._paths[bisect_left(self._paths, path)]

    def at_and_below(self, path: str) -> list[str]:
        """Those of them at this path and below it; sorted."""
        # "0" follows "/": no other path lies between the two.
        at, first, end = (bisect_left(self._paths, f"{path}{after}") for after in ("", "/", "0"))
        itself = [path] if self._paths[at : at + 1] == [path] else []
        return itself + self._paths[first:end]


def node_of(number: DeviceNumber) -> str | None:
    """The device node of the device with this number, "" if it names none; None without such a device.

    Raises OSError if that cannot be determined, such as in a container without sysfs.
    """
    folder = "/sys/dev/char" if number.kind == "c" else "/sys/dev/block"
    link = f"{folder}/{number.major}:{number.minor}"
    try:
        with open(f"{link}/uevent", "rb") as lines:
            for line in lines:
                name, _, value = line.rstrip(b"\n").partition(b"=")
                if name == b"DEVNAME":
                    return f"/dev/{os.fsdecode(value)}"
    except OSError as error:
        unless_gone(error)
        if not is_there(folder):
            raise
        # The device of a number may be visible only in another network namespace.
        return "" if os.path.lexists(link) else None
    return ""


def is_there(path: str) -> bool:
    """Whether a path exists. Raises OSError if that cannot be determined."""
    return incarnation(path) is not None


def is_device(sys_path: str) -> bool:
    """Whether a directory in sysfs is a device, or may be a parent: libudev's criterion. Raises OSError."""
    return is_there(f"{sys_path}/uevent")


def has_node(sys_path: str) -> bool:
    """Whether a directory in sysfs is a device with a device node. Raises OSError."""
    return is_there(f"{sys_path}/dev")


def number_of(sys_path: str) -> str:
    """The device number that the kernel gave a device, "major:minor"; "" if it has none. Raises OSError."""
    try:
        with open(f"{sys_path}/dev", encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError as error:
        unless_gone(error)
        return ""


def incarnation(path: str) -> int | None:
    """The inode number of a path, None if it does not exist (any more). Raises OSError."""
    try:
        return os.stat(path).st_ino
    except ValueError:
        return None
    except OSError as error:
        unless_gone(error)
        return None


def is_still(sys_path: str, incarnation_before: int) -> bool:
    """Whether a directory in sysfs is still the device that it was. Raises OSError.

    The kernel removes its files, sends `remove`, and only then removes the directory (device_del).
    """
    return is_device(sys_path) and incarnation(sys_path) == incarnation_before


def names_of_the_kernel(sys_path: str) -> frozenset[str]:
    """The names of the properties that the kernel, not udev, gave a device. Raises OSError."""
    try:
        with open(f"{sys_path}/uevent", encoding="utf-8", errors="replace") as lines:
            return _NAMED_BY_LIBUDEV.union(line.partition("=")[0] for line in lines)
    except OSError as error:
        unless_gone(error)
        return _NAMED_BY_LIBUDEV


def names_in(folder: str) -> list[str]:
    """The names in a directory, none if it does not exist. Raises OSError."""
    try:
        return os.listdir(folder)
    except OSError as error:
        unless_gone(error)
        return []


def peer_of(sys_path: str) -> str | None:
    """The port in the same socket as that of a USB device at a root hub: its sys path, None without one.

    The kernel links the two ports of a socket of USB 3 (Linux 3.16). Raises OSError.
    """
    hub, _, name = sys_path.rpartition("/")
    bus, _, number = name.partition("-")
    port = f"{hub}/{bus}-0:1.0/usb{bus}-port{number}"
    try:
        return os.path.normpath(f"{port}/{os.readlink(f'{port}/peer')}")
    except OSError as error:
        unless_gone(error)
        return None


def drivers_below(usb: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Each interface of a USB device that a driver of the kernel has: its sys path, the driver, and the
    network interfaces and Bluetooth adapters that it has made. Raises OSError.
    """
    for name in sorted(names_in(usb)):
        try:
            driver = os.path.basename(os.readlink(f"{usb}/{name}/driver")) if ":" in name else ""
        except OSError as error:
            unless_gone(error)
            driver = ""
        # That one stands for a program that has the interface.
        if driver not in ("", "usbfs"):
            made = (each for kind in ("net", "bluetooth") for each in names_in(f"{usb}/{name}/{kind}"))
            yield f"{usb}/{name}", driver, tuple(sorted(made))


def unless_gone(error: OSError) -> None:
    """Raises the error unless it proves that something does not exist."""
    if error.errno not in GONE:
        raise error


def uevent(sys_path: str) -> bytes:
    """The kernel's own properties of a device; none if it has gone.

    Raises OSError if they cannot be read: libudev treats EACCES as no properties.
    """
    try:
        with open(f"{sys_path}/uevent", "rb") as file:
            return file.read()
    except OSError as error:
        unless_gone(error)
        return b""
