"""The reset of a USB device: what an operator is told when it fails.

The device nodes are the testbed's; libusb's part is played, because nothing here can be reset.
"""

import ctypes.util
import errno
import os
import subprocess
import sys
from threading import Timer
from types import SimpleNamespace

import pytest
import usb.core
import usb.util
from usb.backend import libusb1

from genericdp.errors import GenericdpError
from genericdp.usb import backend, reset
from tests.udev import gadgets
from tests.udev.testbed import Testbed

pytestmark = pytest.mark.testbed


class Unit:
    """A USB device of pyusb, with only what a reset needs."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.resets = 0
        self.disposed = False

    def reset(self) -> None:
        self.resets += 1
        if self._error is not None:
            raise self._error


@pytest.fixture
def plugged(bed: Testbed, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A dongle as bus 1, device 5; `unit` or `error` is what looking for it gives."""
    bed.plug(gadgets.serial_dongle())
    played = SimpleNamespace(unit=Unit(), error=None, asked=[])

    def find(*, backend: object, **numbers: int) -> Unit | None:
        played.asked.append(numbers)
        if played.error is not None:
            raise played.error
        found: Unit | None = played.unit
        return found

    monkeypatch.setattr(usb.core, "find", find)
    monkeypatch.setattr(usb.util, "dispose_resources", lambda unit: setattr(unit, "disposed", True))
    return played


def told(busnum: int = 1, devnum: int = 5) -> tuple[str, str]:
    with pytest.raises(GenericdpError) as caught:
        reset(busnum, devnum)
    return str(caught.value), caught.value.hint


def test_the_device_of_these_numbers_is_reset_once_and_let_go(plugged: SimpleNamespace) -> None:
    reset(1, 5)

    assert plugged.asked == [{"bus": 1, "address": 5}]
    assert plugged.unit.resets == 1
    assert plugged.unit.disposed


def test_a_device_that_is_absent_is_not_looked_for(plugged: SimpleNamespace) -> None:
    assert told(1, 9) == ("cannot reset USB device '/dev/bus/usb/001/009': it does not exist", "")
    assert plugged.asked == []


def test_a_device_that_goes_meanwhile(plugged: SimpleNamespace) -> None:
    plugged.unit = None

    assert told() == ("cannot reset USB device '/dev/bus/usb/001/005': [Errno 19] No such device", "")


def test_a_device_that_we_may_not_open(plugged: SimpleNamespace) -> None:
    plugged.unit = Unit(usb.core.USBError("Access denied", -3, errno.EACCES))

    assert told() == (
        "cannot reset USB device '/dev/bus/usb/001/005': [Errno 13] Access denied",
        "under systemd the service needs DeviceAllow=char-usb_device rw",
    )
    assert plugged.unit.disposed


def test_a_device_that_the_service_manager_keeps_from_us(
    plugged: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under DevicePolicy= opening it is EPERM, of which libusb makes an input/output error."""
    plugged.unit = Unit(usb.core.USBError("Input/output error", -1, errno.EIO))
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)

    assert told() == (
        "cannot reset USB device '/dev/bus/usb/001/005': [Errno 1] Operation not permitted",
        "under systemd the service needs DeviceAllow=char-usb_device rw",
    )


def test_a_device_that_is_another_after_its_reset_is_waited_for_until_it_is_gone(
    bed: Testbed, plugged: SimpleNamespace
) -> None:
    leaving = Timer(0.02, lambda: bed.unplug(gadgets.serial_dongle()))

    class Bootloader(Unit):
        def reset(self) -> None:
            leaving.start()
            super().reset()

    plugged.unit = Bootloader(usb.core.USBError("Entity not found", -5, errno.ENOENT))
    reset(1, 5)

    # Its node goes first, and then the rest of it.
    leaving.join()
    assert told() == ("cannot reset USB device '/dev/bus/usb/001/005': it does not exist", "")
    assert plugged.unit.disposed


def test_any_other_error_of_the_reset_is_reported(plugged: SimpleNamespace) -> None:
    plugged.unit = Unit(usb.core.USBError("Input/output error", -1, errno.EIO))

    assert told() == ("cannot reset USB device '/dev/bus/usb/001/005': [Errno 5] Input/output error", "")


def test_a_system_that_cannot_reset(plugged: SimpleNamespace) -> None:
    plugged.unit = Unit(NotImplementedError("Operation not supported or unimplemented"))

    assert told() == (
        "cannot reset USB device '/dev/bus/usb/001/005': Operation not supported or unimplemented",
        "",
    )


def test_a_machine_without_libusb(plugged: SimpleNamespace) -> None:
    plugged.error = usb.core.NoBackendError("No backend available")

    assert told() == (
        "cannot reset USB device '/dev/bus/usb/001/005': libusb cannot be loaded",
        "install it (Debian: libusb-1.0-0)",
    )


def test_libusb_is_found_without_ldconfig_and_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libusb1, "_lib_object", None)
    monkeypatch.setattr(ctypes.util, "find_library", lambda _: None)

    assert backend() is not None


def test_importing_it_does_not_load_pyusb() -> None:
    code = "import sys, genericdp.usb; assert not [n for n in sys.modules if n.split('.')[0] == 'usb']"

    subprocess.run([sys.executable, "-c", code], check=True)
