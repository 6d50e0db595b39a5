"""What the parts of a device are for, in a word or two.

The rules of this file:

* What the names of the device nodes say already is not said again.
"""

import re
from collections.abc import Sequence

from genericdp.core.device import UdevDevice
from genericdp.core.suggest.units.camera import has_pictures, is_infrared, is_stream
from genericdp.core.suggest.units.disks import about_rest
from genericdp.core.suggest.units.siblings import Siblings, is_printer

#: What a part of a device is for, by the beginning of the names of its nodes.
_FOR = {
    "dri/renderD": "enough for programs that show nothing on a display",
    "tpmrm": "through the kernel's resource manager, as most programs do",
    "tpm": "for one program at a time",
    "cdc-wdm": "the control port",
    "gpiochip": "the pins alone",
    "tty": "without the rest",
    "hidraw": "raw HID reports",
    "input/event": "key and touch events",
}

#: The USB class of printers.
_PRINTERS = "07"

#: What ModemManager's udev rules say of a modem's ports.
_PORTS = {
    "ID_MM_PORT_TYPE_AT_PRIMARY": "the AT port",
    "ID_MM_PORT_TYPE_AT_SECONDARY": "the second AT port",
    "ID_MM_PORT_TYPE_GPS": "the GPS port",
    "ID_MM_PORT_TYPE_QCDM": "the diagnosis port",
}

#: The same of a modem that is not on USB, by the protocol in the name of the port (driver-api/wwan.rst).
_WWAN_PORT = re.compile(r"wwan\d+([a-z]+)\d+")
_WWAN_PORTS = {
    "at": "an AT port",
    "mbim": "the control port",
    "qmi": "the control port",
    "qcdm": "the diagnosis port",
}


def purpose_of(part: Sequence[UdevDevice], group: Siblings) -> str:
    """What a part of a device is for; "" when its names say it."""
    first = part[0]
    if is_stream(first):
        return "infrared" if is_infrared(first) else "" if has_pictures(group.nodes[0]) else "the pictures"
    if is_printer(group.nodes[0]):
        return _about_printer(first)
    if group.nodes[0].subsystem == "block":
        return about_rest(first, group.nodes[0])
    if first.subsystem == "dvb":
        is_tuner = len(part) < len([node for node in group.nodes if node.subsystem == "dvb"])
        return "its number follows the order of arrival, unless the driver's adapter_nr fixes it" * is_tuner
    ttys = [node for node in group.nodes if node.subsystem == "tty"]
    if first.subsystem == "tty" and len(part) < len(ttys):
        words = [word for name, word in _PORTS.items() if first.properties.get(name) == "1"]
        return words[0] if words else ""
    if port := _WWAN_PORT.fullmatch(first.sys_name):
        return _WWAN_PORTS.get(port[1], "")
    return next((text for name, text in _FOR.items() if first.devname.startswith(name)), "")


def _about_printer(node: UdevDevice) -> str:
    interface = node.usb_interface
    if node.usb_device is node:
        kinds = set(node.properties.get("ID_USB_INTERFACES", "").strip(":").split(":"))
        scans = any(not kind.startswith(_PRINTERS) for kind in kinds - {""})
        return f"for programs that use libusb{', such as those that scan' * scans}"
    over_usb = interface is not None and interface.properties.get("INTERFACE") == "7/1/4"
    # The USB class of printers has this protocol.
    return "IPP over USB" if over_usb else ""
