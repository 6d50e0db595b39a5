"""The `uevent` file of a device: which of its lines the kernel wrote for itself.

The rules of this file:

* The kernel writes what some devices call themselves as it is. A name with line feeds adds lines, and libudev
  takes them for properties, and, if they say MAJOR, for whose entry in udev's database to read.
* The order decides: only what comes after such a text can come from it. From the first of the lines that may
  hold one, a property counts only if its subsystem writes it there, and if there is one line of it.
* The kernel also knows the device node. Udev's database may name another one, if a program of udev's rules
  prints what a device calls itself as it is: older versions of v4l_id did.
"""

import re
from collections import Counter

#: Subsystem -> the properties that its part of the kernel writes, from the first one on that a device or card
#: may choose (hid_uevent, input_dev_uevent, mmc_bus_uevent, rc_dev_uevent, sdio_bus_uevent).
_FROM_THE_FIRST_TEXT = {
    "hid": re.compile(rb"HID_(?:NAME|PHYS|UNIQ|FIRMWARE_VERSION)|MODALIAS"),
    "input": re.compile(rb"NAME|PHYS|UNIQ|PROP|EV|KEY|REL|ABS|MSC|LED|SND|FF|SW|MODALIAS"),
    "mmc": re.compile(rb"SDIO_INFO[0-9]+|MMC_NAME|MODALIAS"),
    "rc": re.compile(rb"NAME|DRV_NAME|DEV_NAME"),
    "sdio": re.compile(rb"SDIO_INFO[0-9]+|MODALIAS"),
}

#: The subsystems of which a `uevent` file may have such lines.
WITH_TEXTS = frozenset(_FROM_THE_FIRST_TEXT)

#: Where libudev ends a line.
_LINE_ENDS = re.compile(rb"[\r\n\0]")


def node_name(text: bytes) -> bytes:
    """The name of the device node, below /dev; b"" without one. The kernel writes it first (dev_uevent)."""
    lines = _LINE_ENDS.split(text)
    return next((line.removeprefix(b"DEVNAME=") for line in lines if line.startswith(b"DEVNAME=")), b"")


def without_forged(text: bytes, subsystem: str) -> dict[bytes, bytes] | None:
    """The properties that the kernel wrote, if the `uevent` file of a device has any others; None if not.

    subsystem  of the device, one of WITH_TEXTS
    """
    written = _FROM_THE_FIRST_TEXT[subsystem]
    lines = [tuple(line.split(b"=", 1)) for line in _LINE_ENDS.split(text) if b"=" in line]
    counts = Counter(name for name, _ in lines)
    found: dict[bytes, bytes] = {}
    is_forged = False
    is_after_text = False
    for name, value in lines:
        is_text = written.fullmatch(name) is not None
        is_after_text = is_after_text or is_text
        if not is_after_text or (is_text and counts[name] == 1):
            found[name] = value
        else:
            is_forged = True
    return found if is_forged else None
