"""One device of pyudev, read into a frozen `UdevDevice`.

The rules of this file:

* Anything in sysfs may vanish between two reads, and a device may say anything: bytes that are not UTF-8
  become surrogates, long values are cut, an attribute that its driver does not supply is absent.
* Only the errors in GONE prove that something does not exist. Any other one is raised: a device without the
  part that could not be read would be taken for another one. libudev silently leaves such parts out.
* The `uevent` file has what a device calls itself, line feeds included, so it may say anything
  (`uevent_file`). What sysfs has elsewhere is read there: a device has the number in its `dev` file, or none.
* The device node is examined with stat and never opened: opening a device can change it.
* libudev reads the devices but does not find them: it would enumerate thousands that have neither a
  device node nor a descendant with one (memory blocks, ACPI objects), and enumerating one takes 4 times
  as long as reading it.
"""

import ctypes
import errno
import os
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from itertools import islice
from operator import attrgetter

import pyudev

from genericdp.core.device import PEER, DeviceNumber, UdevDevice, attributes_by_name
from genericdp.errors import MORE_THREADS, SHORTAGES, GenericdpError, what_is_short
from genericdp.udev.sysfs import GONE, incarnation, is_device, names_in, number_of, peer_of, uevent
from genericdp.udev.uevent_file import WITH_TEXTS, node_name, without_forged

#: Names that cannot lead to a device node, whatever is plugged in.
_NO_NODE = GONE | {errno.ELOOP, errno.ENAMETOOLONG}

# A sysfs attribute fits into one page of the kernel; anything longer is an attack, not a value.
_VALUE_LIMIT = 4096
_PROPERTIES_LIMIT = 1024

#: Properties that hold a set: its form, and the separator of its members.
_SETS = (("DEVLINKS", "{}", " "), ("TAGS", ":{}:", ":"), ("CURRENT_TAGS", ":{}:", ":"))

#: Properties of an event, not of its device.
_OF_THE_EVENT = frozenset({"ACTION", "SEQNUM", "DEVPATH_OLD", "INTERFACE_OLD", "USEC_INITIALIZED"})


_compared = attrgetter(*(field.name for field in fields(UdevDevice) if field.name != "parent"))


@cache
def context() -> pyudev.Context:
    """The connection to libudev; made once, because finding the library starts a process."""
    try:
        return pyudev.Context()
    except OSError as error:
        raise GenericdpError(f"libudev cannot be loaded: {error}", hint=what_is_short(error)) from error
    except ImportError as error:
        # A process that cannot be started finds no library, either.
        try:
            threading.Thread(target=int).start()
        except RuntimeError as short:
            raise GenericdpError(f"libudev cannot be loaded: {short}", hint=MORE_THREADS) from error
        raise GenericdpError(
            "libudev cannot be loaded", hint="install the library of udev (Debian: libudev1)"
        ) from error


def find(sys_path: str) -> pyudev.Device | None:
    """The device at a sys path, None without one (any more). Raises OSError."""
    number = 0
    # A device may go, and its successor appear, between libudev's look and ours: libudev looks once more.
    for _ in range(2):
        ctypes.set_errno(0)
        try:
            return pyudev.Devices.from_sys_path(context(), sys_path)
        except pyudev.DeviceNotFoundError:
            number = ctypes.get_errno()
            if not is_device(sys_path):
                return None
        except ValueError:
            return None  # no name of a device
    raise _unread(sys_path, number)


def look_at(sys_path: str, attributes: frozenset[str]) -> UdevDevice | None:
    """What sysfs and the udev database say about a device now, without its parents; None without one.

    `initialized` says whether the database has an entry for it; `database` judges what that is worth.
    Raises OSError if a part of it cannot be read.
    """
    device = find(sys_path)
    return None if device is None else _snapshot(device, attributes)


def _snapshot(device: pyudev.Device, attributes: frozenset[str]) -> UdevDevice | None:
    """None if it disappears meanwhile."""
    with suppress(UnicodeDecodeError):
        sys_path = device.sys_path
        inode = incarnation(sys_path)
        # Reading the subsystem also adds it to the properties.
        subsystem = _word(device, "subsystem")
        text = uevent(sys_path)
        own = _without_forged(text, subsystem)
        ctypes.set_errno(0)
        listed = _properties(device)
        number_of_error = ctypes.get_errno()
        is_complete, driver = "DEVPATH" in listed, _word(device, "driver")
        # What the database says about a device that forged a line may be about another device.
        properties = listed if own is None else own
        links = {"DEVPATH": sys_path.removeprefix("/sys"), "SUBSYSTEM": subsystem, "DRIVER": driver}
        for name, value in links.items():
            if value and name in listed:
                properties[name] = value
            else:
                properties.pop(name, None)
        if "DEVNAME" in properties and (name := _text(node_name(text))):
            properties["DEVNAME"] = sys.intern(name if name.startswith("/dev/") else f"/dev/{name}")
        node, number = _node(properties, subsystem)
        if number is not None and number_of(sys_path) != f"{number.major}:{number.minor}":
            node = number = None
        there, gid = _look_at(node, number)
        found = UdevDevice(
            sys_path=sys_path,
            subsystem=subsystem,
            devtype=properties.get("DEVTYPE", ""),
            driver=driver,
            incarnation=inode or 0,
            device_node=node,
            number=number,
            node_is_there=there,
            gid=gid,
            devlinks=tuple(properties.get("DEVLINKS", "").split()),
            initialized=own is None and device.is_initialized,
            properties=properties,
            attributes=_attributes(device, sys_path, attributes),
            tags=_tags(properties),
        )
        # Another inode now: the values come partly from one device and partly from another.
        if inode is None or incarnation(sys_path) != inode:
            return None
        if subsystem and not is_complete:
            # libudev lists no property if it could not read one of its sources. What has no subsystem
            # has no entry in the database, and libudev never lists its properties.
            raise _unread(sys_path, number_of_error)
        return found
    return None


def is_same(one: UdevDevice, other: UdevDevice) -> bool:
    """Whether two snapshots say the same, and hang below the same snapshots."""
    return one.parent is other.parent and bool(_compared(one) == _compared(other))


def attributes(sys_path: str, names: frozenset[str]) -> dict[str, str]:
    """Those of these sysfs attributes that the device at a sys path has now. Raises OSError."""
    device = find(sys_path)
    return {} if device is None else _attributes(device, sys_path, names)


def message(device: pyudev.Device) -> UdevDevice:
    """The device as an event describes it. Raises UnicodeDecodeError for a name that is not UTF-8."""
    properties = {
        name: value
        for name, value in _properties(device).items()
        if name not in _OF_THE_EVENT and not name.startswith("SYNTH_")
    }
    subsystem = properties.get("SUBSYSTEM", "")
    node, number = _node(properties, subsystem)
    return UdevDevice(
        sys_path=device.sys_path,
        subsystem=subsystem,
        devtype=properties.get("DEVTYPE", ""),
        driver=properties.get("DRIVER", ""),
        device_node=node,
        number=number,
        node_is_there=False,
        devlinks=tuple(properties.get("DEVLINKS", "").split()),
        properties=properties,
        tags=_tags(properties),
    )


def _unread(path: str, number: int) -> OSError:
    """The error for something that exists but cannot be read; `number` is the errno, 0 if unknown."""
    number = number if number not in GONE | {0} else errno.EIO
    return OSError(number, os.strerror(number), path)


def _without_forged(text: bytes, subsystem: str) -> dict[str, str] | None:
    """The kernel's own properties of a device that forged others, None for any other device."""
    own = without_forged(text, subsystem) if subsystem in WITH_TEXTS else None
    return None if own is None else {sys.intern(_text(name)): _text(value) for name, value in own.items()}


def _word(device: pyudev.Device, name: str) -> str:
    # No rule can match a kernel name that is not UTF-8.
    ctypes.set_errno(0)
    try:
        value: str | None = getattr(device, name)
    except UnicodeDecodeError:
        return ""
    _check_shortage(device, value)
    return value or ""


def _attribute(device: pyudev.Device, name: str) -> bytes | None:
    ctypes.set_errno(0)
    value: bytes | None = device.attributes.get(name)
    _check_shortage(device, value)
    return value


def _check_shortage(device: pyudev.Device, value: object) -> None:
    """Raises OSError if libudev has just left out a value because of a shortage."""
    number = ctypes.get_errno()
    # Any other error of an attribute is its driver's answer.
    if value is None and number in SHORTAGES:
        raise _unread(device.sys_path, number)


def _properties(device: pyudev.Device) -> dict[str, str]:
    # pyudev's own mapping decodes strictly, so one bad byte (a Bluetooth name that the kernel cut
    # in the middle of a character) would hide the whole device; it also looks up each value again.
    properties = {
        sys.intern(_text(name)): _text(value) for name, value in islice(_entries(device), _PROPERTIES_LIMIT)
    }
    # libudev keeps these as sets and lists them in a different order each time.
    for name, form, separator in _SETS:
        value = properties.get(name)
        if value is not None:
            members = sorted(value.strip(separator).split(separator))
            properties[name] = form.format(separator.join(members))
    return properties


def _entries(device: pyudev.Device) -> Iterator[tuple[bytes, bytes]]:
    libudev = device._libudev  # noqa: SLF001  (there is no public way to the bytes)
    entry = libudev.udev_device_get_properties_list_entry(device)
    while entry:
        name, value = libudev.udev_list_entry_get_name(entry), libudev.udev_list_entry_get_value(entry)
        if name is not None and value is not None:
            yield name, value
        entry = libudev.udev_list_entry_get_next(entry)


def _attributes(device: pyudev.Device, sys_path: str, wanted: frozenset[str]) -> dict[str, str]:
    # Asking libudev for each name costs 6 times as much as listing the directory first.
    there = wanted.intersection(names_in(sys_path))
    deeper = [*(name for name in wanted if "/" in name), *attributes_by_name(sys_path)]
    values = ((name, _attribute(device, name)) for name in (*there, *deeper) if name != PEER)
    found = {name: _text(value) for name, value in values if value is not None}
    # A link, which libudev does not follow.
    if PEER in deeper and (peer := peer_of(sys_path)) is not None:
        found[PEER] = peer
    return found


def _node(properties: Mapping[str, str], subsystem: str) -> tuple[str | None, DeviceNumber | None]:
    path = properties.get("DEVNAME", "")
    if not path.startswith("/dev/") or path != os.path.normpath(path):
        return None, None
    try:
        major, minor = int(properties["MAJOR"]), int(properties["MINOR"])
    except (KeyError, ValueError):
        return None, None
    return path, DeviceNumber("b" if subsystem == "block" else "c", major, minor)


def _look_at(node: str | None, number: DeviceNumber | None) -> tuple[bool, int | None]:
    """(whether a path is the device node with that number, and if so its group)."""
    try:
        status = os.stat(node or "")
    except ValueError:
        return False, None
    except OSError as error:
        if error.errno not in _NO_NODE:
            raise
        return False, None
    kind = "b" if stat.S_ISBLK(status.st_mode) else "c" if stat.S_ISCHR(status.st_mode) else ""
    there = number == DeviceNumber(kind, os.major(status.st_rdev), os.minor(status.st_rdev))
    return there, status.st_gid if there else None


def _tags(properties: Mapping[str, str]) -> frozenset[str]:
    return frozenset(tag for tag in properties.get("TAGS", "").split(":") if tag)


def _text(value: bytes) -> str:
    return value[:_VALUE_LIMIT].decode("utf-8", "surrogateescape")
