"""What a device says it is."""

from dataclasses import replace

import pytest

from genericdp.core.explain.model import identification, model_name
from tests.scenes.builders import a_device, a_usb_serial

CARD = a_device(
    "/sys/devices/pci0/0000:01:00.0",
    subsystem="pci",
    properties={"ID_MODEL_FROM_DATABASE": "GP107", "PCI_ID": "10DE:1C82"},
)


def test_a_usb_device_is_identified_by_its_ids_its_name_and_its_serial_number() -> None:
    dongle = a_usb_serial(0)
    named = replace(dongle, properties={**dongle.properties, "ID_MODEL": "FT232R_USB_UART"})

    assert identification(named) == "usb 0403:6001 FT232R_USB_UART serial A50285BI"
    assert identification(a_usb_serial(0, serial=None)) == "usb 0403:6001"


@pytest.mark.parametrize(
    "words", [{"ID_MODEL_FROM_DATABASE": "FT232 Serial (UART) IC"}, {"ID_MODEL": "6001"}]
)
def test_what_others_call_a_usb_device_is_not_its_name(words: dict[str, str]) -> None:
    dongle = a_usb_serial(0)
    named = replace(dongle, properties={**dongle.properties, **words})

    assert identification(named) == "usb 0403:6001 serial A50285BI"


@pytest.mark.parametrize("name", ["2.0 root hub", "Atom Processor Z36xxx/Z37xxx Series USB xHCI"])
def test_a_usb_device_that_does_not_say_its_model_is_not_called_like_its_host_controller(name: str) -> None:
    """Where the hardware database does not know a unit, udev gives it what it knows of the one above."""
    words = {"ID_MODEL": "6001", "ID_MODEL_FROM_DATABASE": name}
    dongle = a_usb_serial(0)
    usb = dongle.usb_device
    assert usb is not None
    assert usb.parent is not None
    above = replace(usb.parent, properties={**usb.parent.properties, **words})
    usb = replace(usb, properties={**usb.properties, **words}, parent=above)
    tty = replace(dongle, properties={**dongle.properties, **words}, parent=usb)

    assert identification(tty) == identification(usb) == "usb 0403:6001 serial A50285BI"
    assert model_name(tty) == ""


def test_a_usb_device_without_a_name_is_called_what_the_hardware_database_calls_it() -> None:
    dongle = a_usb_serial(0)
    usb = dongle.usb_device
    assert usb is not None
    known = replace(usb, properties={**usb.properties, "ID_MODEL_FROM_DATABASE": "FT232 Serial (UART) IC"})
    tty = replace(dongle, parent=known)

    assert identification(tty) == "usb 0403:6001 FT232 Serial (UART) IC serial A50285BI"


def test_a_device_is_called_what_its_pci_function_is_called() -> None:
    node = a_device(f"{CARD.sys_path}/drm/card0", subsystem="drm", node="/dev/dri/card0", parent=CARD)

    assert model_name(node) == "GP107"
    assert identification(node) == "pci 10de:1c82 GP107"


def test_a_function_that_the_hardware_database_does_not_know_is_not_called_what_is_above() -> None:
    # udev asks the database about what is above then, and gives both the same name.
    own = {"ID_MODEL_FROM_DATABASE": "GP107", "PCI_ID": "1AC1:089A"}
    function = a_device(
        f"{CARD.sys_path}/0000:02:00.0", subsystem="pci", driver="apex", properties=own, parent=CARD
    )
    node = a_device(f"{function.sys_path}/apex/apex_0", subsystem="apex", node="/dev/apex_0", parent=function)

    assert model_name(node) == ""
    assert identification(node) == "pci 1ac1:089a apex"


def test_a_device_on_no_usb_bus_may_have_a_name_of_its_own() -> None:
    clock = a_device(
        "/sys/devices/rtc/rtc0", subsystem="rtc", node="/dev/rtc0", attributes={"name": "rtc_cmos"}
    )

    assert model_name(clock) == ""
    assert identification(clock) == "rtc_cmos"
