"""Which device nodes a list shows."""

from collections import Counter

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import NAME_ATTRIBUTES
from genericdp.core.explain.selection import TYPE_ATTRIBUTES, Selection, why_left_out
from tests.scenes.builders import a_device
from tests.scenes.machines import machine


def nodes_of(name: str, *, attributes: bool = True) -> list[UdevDevice]:
    """The devices of a machine that have a device node."""
    found = machine(name, *NAME_ATTRIBUTES, *TYPE_ATTRIBUTES, attributes=attributes)
    return [each for each in found.values() if each.device_node is not None]


@pytest.mark.parametrize("attributes", [True, False], ids=["", "without-attributes"])
def test_what_no_pod_asks_for_is_left_out(attributes: bool) -> None:
    kinds = Counter(why_left_out(each) for each in nodes_of("raspberry-pi-4", attributes=attributes))
    assert kinds == {
        "pseudo-terminals": 512,
        "virtual consoles": 85,
        "loop and RAM disks": 24,
        "nodes that every container has": 8,
        "USB hubs": 3,
        "USB bus monitors": 3,
        "": 77,
    }
    kinds = Counter(why_left_out(each) for each in nodes_of("server", attributes=attributes))
    assert kinds["serial ports without hardware"] == 30
    assert kinds["processor registers"] == 32


def test_a_serial_port_with_hardware_is_shown_wherever_it_is() -> None:
    ports = [each.devname for each in nodes_of("industrial-pc") if each.devname.startswith("ttyS")]
    left = [each.devname for each in nodes_of("industrial-pc") if why_left_out(each).startswith("serial")]
    old = a_device("/sys/devices/platform/serial8250", subsystem="platform")
    path = f"{old.sys_path}/tty/ttyS0"
    found = a_device(path, subsystem="tty", node="/dev/ttyS0", attributes={"type": "4"}, parent=old)

    assert (len(ports), sorted(left)) == (12, ["ttyS2", "ttyS3"])
    assert why_left_out(found) == ""


@pytest.mark.parametrize(
    ("name", "words", "found"),
    [
        ("laptop-amd", ("ir camera",), {"media0", "video0", "video1"}),
        ("workstation", ("GEFORCE", "dri"), {"dri/card1", "dri/card2", "dri/renderD129", "dri/renderD130"}),
        ("workstation", ("nvidia", "audio", "pcm"), {"snd/pcmC1D3p", "snd/pcmC2D3p"}),
        ("industrial-pc", ("zigbee",), {"bus/usb/001/008", "ttyUSB10"}),
        ("industrial-pc", ("ftdi_sio", "DN0123456", "rs-485"), {"gpiochip2", "ttyUSB4", "ttyUSB9"}),
        ("industrial-pc", ("0403:6011", "if03"), {"ttyUSB8"}),
        ("industrial-pc", ("Prolific",), {"bus/usb/001/009", "bus/usb/001/010", "ttyUSB11", "ttyUSB12"}),
        ("industrial-pc", ("xhci",), {"bus/usb/001/001", "bus/usb/002/001"}),
        (
            "laptop-intel",
            ("thunderbolt",),
            {"bus/usb/005/003", "snd/controlC2", "snd/pcmC2D0c", "snd/pcmC2D0p"},
        ),
        ("gpu-server", ("mellanox", "uverbs0"), {"infiniband/uverbs0"}),
        ("raspberry-pi-5", ("hailo",), {"hailo0"}),
    ],
)
def test_words_find_a_device_by_its_name_its_maker_its_driver_and_its_links(
    name: str, words: tuple[str, ...], found: set[str]
) -> None:
    assert {each.devname for each in nodes_of(name) if Selection(words).holds(each)} == found


def test_a_subsystem_is_a_whole_word_and_several_are_any_of_them() -> None:
    selection = Selection(("0",), ("tpm", "tpmrm"))

    assert {each.devname for each in nodes_of("server") if selection.holds(each)} == {"tpm0", "tpmrm0"}
    assert not any(Selection((), ("tp",)).holds(each) for each in nodes_of("server"))
