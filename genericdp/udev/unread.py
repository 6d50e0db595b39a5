"""Devices that could not be read.

The rules of this file:

* What could not be read is not gone: it is kept here until it can be read again.
* While a driver probes a device, its hub does not answer, either (`bounded`). What comes from the memory of
  the kernel and from udev's database stands for the hub then, so that what else is behind it can be read.
  Every rule holds for it as for the hub, or it is not used. Nobody gets the hub itself.
"""

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from genericdp.core.buses.port import beside_in_socket
from genericdp.core.device import CORE_ATTRIBUTES, DeviceNumber, UdevDevice, at_root_hub
from genericdp.errors import MORE_THREADS, UnreadError, what_is_short
from genericdp.udev.database import Database
from genericdp.udev.sysfs import incarnation, is_there, peer_of, unless_gone

#: What to do if a device cannot be read in time, or because of others, or without a thread.
_CURES = {
    errno.ETIMEDOUT: (
        "a driver may still be busy with it, or its hardware hangs; if this lasts longer than a minute,"
        " unplug it; 'journalctl --dmesg' may say more"
    ),
    errno.ECANCELED: "unplug those; 'journalctl --dmesg' may say which",
    errno.EAGAIN: MORE_THREADS,
}

#: What the kernel says of a hub in any case.
_OF_A_HUB = frozenset(
    {
        "authorized",
        "bDeviceClass",
        "bDeviceProtocol",
        "bDeviceSubClass",
        "bcdDevice",
        "busnum",
        "devnum",
        "idProduct",
        "idVendor",
        "version",
    }
)
_HUB = "09"
_ROOT_HUB = re.compile(r"usb\d+")

#: The numbers that the kernel gives to USB devices: USB_DEVICE_MAJOR, and 128 minor numbers for each bus.
_USB_MAJOR = 189
_DEVICES_OF_A_BUS = 128


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a path of sysfs could not be read, and what udev said about it meanwhile.

    behind  the device above it that is the reason, or ""
    beside  see `UnreadError.paths`
    """

    why: OSError
    message: UdevDevice | None = None
    behind: str = ""
    beside: str = ""


def failure(
    unread: Mapping[str, Unread], path: str, why: OSError, message: UdevDevice | None = None
) -> Unread:
    """That a path could not be read. An error whose file name is unread, too, is that one's."""
    behind = why.filename if why.filename in unread and why.filename != path else ""
    beside = (path in unread and unread[path].beside) or _beside(path)
    return Unread(plain(why), message_of(unread, path, message), behind, beside)


def message_of(unread: Mapping[str, Unread], path: str, message: UdevDevice | None) -> UdevDevice | None:
    """What udev has said last: this message, or without one that of the last time."""
    return unread[path].message if message is None and path in unread else message


def complaint(unread: Mapping[str, Unread]) -> UnreadError | None:
    """What could not be read, for people: sys path -> why. None if there is nothing."""
    if not unread:
        return None
    reasons = {path: each for path, each in unread.items() if each.behind not in unread}
    hanging = [path for path, each in reasons.items() if each.why.errno == errno.ETIMEDOUT]
    hubs = {above for path in hanging for above in _above(path)}.intersection(hanging)
    unasked = {path for path, each in reasons.items() if each.why.errno == errno.ECANCELED}
    others = len(unasked) if reasons.keys() - hubs - unasked else 0
    ignored = hubs | unasked if others else hubs
    named = [path for path in reasons if path not in ignored] or [*unread]
    what = f"'{named[0]}'" if len(named) == 1 else f"{len(named)} devices, such as '{named[0]}'"
    first = unread[named[0]].why
    besides = f"; {others} other{' was' if others == 1 else 's were'} not asked" if others else ""
    return UnreadError(
        f"cannot read {what}: {first.strerror}{besides}",
        hint=what_helps(first),
        paths={path: each.beside for path, each in unread.items()},
    )


def what_helps(error: OSError) -> str:
    """What to do about something that could not be read, or ""."""
    return _CURES.get(error.errno or 0) or what_is_short(error)


def plain(error: OSError) -> OSError:
    """The error without its traceback, which would keep everything that led to it."""
    return OSError(error.errno, error.strerror)


def without_gone(unread: Mapping[str, Unread], sys_path: str) -> dict[str, Unread]:
    """Without what was at or below a sys path and has gone."""
    return {
        path: each
        for path, each in unread.items()
        if not f"{path}/".startswith(f"{sys_path}/") or _may_be_there(path)
    }


def stand_in(
    path: str, unread: Unread, asked: frozenset[str], parent: UdevDevice | None, database: Database
) -> UdevDevice:
    """What stands for a hub that does not answer as the parent of others.

    asked  the attributes that rules ask for: if the hub has one that is not known, nothing stands for it

    Raises the error of anything else that could not be read.
    """
    failed = OSError(unread.why.errno, unread.why.strerror, path)
    if failed.errno != errno.ETIMEDOUT:
        raise failed
    attributes = {name: _value(f"{path}/{name}") for name in _OF_A_HUB} | _of_root_hub(path)
    # Its serial number tells it, if it is the unit of a group.
    unknown = {*asked, "serial"} - attributes.keys()
    is_known = not any(is_there(f"{path}/{name}") for name in unknown)
    if attributes["bDeviceClass"] != _HUB or not all(attributes.values()) or not is_known:
        raise failed
    properties, number = _of_the_kernel(attributes)
    hub = UdevDevice(
        sys_path=path,
        subsystem="usb",
        devtype="usb_device",
        driver="usb",
        incarnation=incarnation(path) or 0,
        number=number,
        node_is_there=False,
        properties=properties,
        attributes={name: value for name, value in attributes.items() if name in CORE_ATTRIBUTES | asked},
        parent=parent,
    )
    return replace(database.described(hub), number=None)


def _of_root_hub(path: str) -> dict[str, str]:
    """What else the kernel says of a root hub: it has no strings of its own (usb_add_hcd)."""
    controller, _, name = path.rpartition("/")
    return {"serial": controller.rpartition("/")[2]} if _ROOT_HUB.fullmatch(name) else {}


def _of_the_kernel(attributes: Mapping[str, str]) -> tuple[dict[str, str], DeviceNumber]:
    """The properties that the kernel gives a USB device with these attributes (usb_uevent), its number."""
    bus, device = int(attributes["busnum"]), int(attributes["devnum"])
    number = DeviceNumber("c", _USB_MAJOR, (bus - 1) * _DEVICES_OF_A_BUS + device - 1)
    codes = (attributes[name].lstrip("0") or "0" for name in ("idVendor", "idProduct", "bcdDevice"))
    classes = (int(attributes[name], 16) for name in ("bDeviceClass", "bDeviceSubClass", "bDeviceProtocol"))
    return {
        "MAJOR": str(number.major),
        "MINOR": str(number.minor),
        "DEVNAME": f"/dev/bus/usb/{bus:03}/{device:03}",
        "DEVTYPE": "usb_device",
        "DRIVER": "usb",
        "PRODUCT": "/".join(codes),
        "TYPE": "/".join(map(str, classes)),
        "BUSNUM": f"{bus:03}",
        "DEVNUM": f"{device:03}",
        "SUBSYSTEM": "usb",
    }, number


def _beside(path: str) -> str:
    """The path that its unit would have at the other port of its socket, which the kernel knows by itself."""
    unit = at_root_hub(path)
    if not unit:
        return ""
    with suppress(OSError):
        return beside_in_socket(path, peer_of(unit) or "")
    return ""


def _may_be_there(path: str) -> bool:
    try:
        return is_there(path)
    except OSError:
        return True


def _value(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError as error:
        unless_gone(error)
        return ""


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path
