"""Runs in the guest as root and acts as a USB device with any descriptors, until SIGTERM unplugs it.

The kernel's dummy_hcd is both ends of a cable; configfs describes the device at the far end
(Documentation/usb/gadget_configfs.rst). The one argument is JSON:

    {"name": text, "controller": "dummy_udc.0", "vendor": "2c7c", "product": "0125",
     "strings": {"serialnumber": text, "manufacturer": text, "product": text},
     "functions": ["gser.0", "acm.1", "qmi", …]}

Functions are the kernel's own or those of OWN_FUNCTIONS: an interface of class, subclass and protocol
ff with any endpoints, which no kernel function offers, by functionfs
(Documentation/usb/functionfs.rst). They are in the order of their interface numbers.

dummy_hcd has three pairs of bulk endpoints and three interrupt endpoints; a fourth one gets an address
that is already in use.
"""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CONFIGFS = Path("/sys/kernel/config/usb_gadget")

#: English, as in USB string descriptors.
LANGUAGE = "0x409"

# struct usb_functionfs_descs_head_v2 and usb_functionfs_strings_head, linux/usb/functionfs.h
_DESCRIPTORS_MAGIC, _STRINGS_MAGIC = 3, 2
_HAS_FULL_SPEED, _HAS_HIGH_SPEED = 1, 2
_BULK, _INTERRUPT = 2, 3
_EVENT = struct.Struct("<BBHHHB3x")
_SETUP = 4
_TO_THE_HOST = 0x80

#: Name -> its endpoints: address (in this driver's numbering) and kind.
OWN_FUNCTIONS = {
    "nothing": (),
    "qmi": ((0x81, _INTERRUPT), (0x82, _BULK), (0x03, _BULK)),
}


class Gadget:
    """One device. Call `make`, `serve_until`, `remove`."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._wanted = wanted
        self._place = CONFIGFS / wanted["name"]
        self._mounts: list[Path] = []
        self._files: list[int] = []

    def make(self) -> None:
        """Describe the device in configfs and plug it in."""
        place, wanted = self._place, self._wanted
        place.mkdir()
        (place / "idVendor").write_text(f"0x{wanted['vendor']}")
        (place / "idProduct").write_text(f"0x{wanted['product']}")
        strings = place / "strings" / LANGUAGE
        strings.mkdir()
        for name, text in wanted["strings"].items():
            (strings / name).write_bytes(text.encode("utf-8", "surrogateescape"))
        configuration = place / "configs" / "c.1"
        configuration.mkdir()
        for function in wanted["functions"]:
            name = function
            if function in OWN_FUNCTIONS:
                name = f"ffs.{wanted['name']}-{function}"
            (place / "functions" / name).mkdir()
            if function in OWN_FUNCTIONS:
                self._describe(name.removeprefix("ffs."), OWN_FUNCTIONS[function])
            (configuration / name).symlink_to(place / "functions" / name)
        (place / "UDC").write_text(wanted["controller"])

    def serve_until(self, stop: int) -> None:
        """Answer the host's drivers until `stop` becomes readable."""
        while True:
            ready, _, _ = select.select([stop, *self._files], [], [])
            if stop in ready:
                return
            for control in ready:
                _answer(control)

    def remove(self) -> None:
        """Unplug the device and remove it from configfs."""
        with contextlib.suppress(OSError):
            (self._place / "UDC").write_text("\n")
        for file in self._files:
            os.close(file)
        configuration = self._place / "configs" / "c.1"
        for entry in configuration.iterdir():
            if entry.is_symlink():
                entry.unlink()
        configuration.rmdir()
        for function in (self._place / "functions").iterdir():
            function.rmdir()
        (self._place / "strings" / LANGUAGE).rmdir()
        self._place.rmdir()
        for mount in self._mounts:
            subprocess.run(["umount", "--lazy", str(mount)], check=True)

    def _describe(self, name: str, endpoints: Sequence[tuple[int, int]]) -> None:
        mount = Path("/run/functionfs") / name
        mount.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "functionfs", name, str(mount)], check=True)
        self._mounts.append(mount)
        control = os.open(mount / "ep0", os.O_RDWR)
        self._files.append(control)
        os.write(control, _descriptors(endpoints))
        os.write(control, struct.pack("<IIII", _STRINGS_MAGIC, 16, 0, 0))


def _descriptors(endpoints: Sequence[tuple[int, int]]) -> bytes:
    def set_of(bulk: int) -> bytes:
        interface = struct.pack("<BBBBBBBBB", 9, 4, 0, 0, len(endpoints), 0xFF, 0xFF, 0xFF, 0)
        return interface + b"".join(
            struct.pack("<BBBBHB", 7, 5, address, kind, *((8, 9) if kind == _INTERRUPT else (bulk, 0)))
            for address, kind in endpoints
        )

    count = 1 + len(endpoints)
    body = struct.pack("<II", count, count) + set_of(64) + set_of(512)
    flags = _HAS_FULL_SPEED | _HAS_HIGH_SPEED
    return struct.pack("<III", _DESCRIPTORS_MAGIC, 12 + len(body), flags) + body


def _answer(control: int) -> None:
    """Accept every control request of a driver."""
    for kind, _, _, _, length, event in _EVENT.iter_unpack(os.read(control, _EVENT.size * 4)):
        # The device may have been unplugged in the meantime.
        with contextlib.suppress(OSError):
            if event == _SETUP and kind & _TO_THE_HOST:
                os.write(control, bytes(length))
            elif event == _SETUP:
                os.read(control, length)


def main() -> None:
    """Stay plugged in until SIGTERM."""
    stop, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    gadget = Gadget(json.loads(sys.argv[1]))
    try:
        gadget.make()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
        gadget.serve_until(stop)
    finally:
        gadget.remove()


if __name__ == "__main__":
    main()
