"""A port of a USB hub, as it is saved and as people read it."""

import pytest

from genericdp.core.inventory.place import locate
from genericdp.core.usb_port import UsbPort
from tests.scenes.builders import CONTROLLER, a_fuse, a_usb_serial

PORT = UsbPort(CONTROLLER, "2", "3.1")


def test_the_exact_form_says_all_of_it_and_is_read_back() -> None:
    assert PORT.exact == f"{CONTROLLER} usb2 3.1"
    assert PORT.hub == f"{CONTROLLER} usb2 3"
    assert UsbPort.of_exact(PORT.exact) == PORT


@pytest.mark.parametrize("port", ["2", "3.1.4"])
def test_the_place_of_a_usb_device_is_such_a_port(port: str) -> None:
    place = locate(a_usb_serial(port=port))

    assert UsbPort.of_exact(place.port.exact) == UsbPort(CONTROLLER, "", port)
    assert str(UsbPort.of_exact(place.port.exact)) == f"USB port {port} of {CONTROLLER}"


def test_any_other_place_is_not_a_usb_port() -> None:
    assert UsbPort.of_exact(locate(a_fuse()).port.exact) is None
