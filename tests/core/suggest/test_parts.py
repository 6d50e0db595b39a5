"""What is suggested for units with several functions: serial adapters, printers, grabbers, programmers."""

import pytest

from genericdp.core.inventory.claims import Claims
from genericdp.core.suggest.clues import By
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import Suggestion, suggest
from tests.scenes.builders import a_usb_device, a_usb_node, by_sys_path
from tests.scenes.machines import MACHINES, after_reboot, machine, node
from tests.scenes.suggestions import DOMAIN


def suggested(name: str, path: str) -> Suggestion:
    """The suggestion for a device node of a machine."""
    return suggest(node(name, path), Present(machine(name), DOMAIN))


def test_each_port_of_a_serial_adapter_with_one_interface_is_a_device() -> None:
    suggestion = suggested("workbench", "/dev/ttyCH9344USB3")
    assert suggestion.by is By.ARRIVAL
    assert suggestion.group.paths == ("/dev/ttyCH9344USB3",)
    assert suggestion.table[2:4] == (
        'match.DEVNAME = "/dev/ttyCH9344USB3"',
        'match.usb = { vendor = "1a86", product = "55d9" }',
    )
    assert suggestion.reasons == (
        (
            "CAUTION: nothing permanent distinguishes it from /dev/ttyCH9344USB0, /dev/ttyCH9344USB1, "
            "/dev/ttyCH9344USB2, /dev/ttyCH9344USB4 and 3 more. The rule uses the name that the kernel has "
            "given it for now; after a re-plug or reboot, another node of the unit may have that name."
        ),
        (
            "The unit has further device nodes: /dev/ttyCH9344USB0, /dev/ttyCH9344USB1, /dev/ttyCH9344USB2, "
            "/dev/ttyCH9344USB4 and 4 more. For these: 'genericdp suggest /dev/ttyCH9344USB0'."
        ),
    )


@pytest.mark.parametrize(
    ("name", "path", "told_by"),
    [
        ("industrial-pc", "/dev/ttyUSB6", 'interface = "01"'),
        ("serial-gateway", "/dev/ttyUSB22", 'interface = "01"'),
        ("serial-gateway", "/dev/ttyUSB2", '"ATTR{port_number}" = "2"'),
    ],
)
def test_each_port_of_a_serial_adapter_is_known_by_its_interface_or_its_number(
    name: str, path: str, told_by: str
) -> None:
    suggestion = suggested(name, path)
    assert suggestion.group.paths == (path,)
    assert told_by in "".join(suggestion.table)
    assert len(suggestion.rest) >= 1


def test_the_ports_of_a_modem_remain_one_device() -> None:
    assert len(suggested("serial-gateway", "/dev/ttyUSB11").group.paths) == 6


def test_a_printer_is_one_way_to_print_and_the_others_are_offered_instead() -> None:
    assert suggested("workbench", "/dev/usb/lp0").text.endswith(
        """\

[[resource]]
name = "hp-laserjet-mfp-m28w"  # pods request example.com/hp-laserjet-mfp-m28w
match.SUBSYSTEM = "usbmisc"
match.usb = { vendor = "03f0", product = "5c2a", serial = "VNC5L60718", interface = "01" }
# container_path = "/dev/hp-laserjet-mfp-m28w"  # a fixed name in the container

# For another way to the printer, replace the match by one of these:
#
# /dev/usb/lp1, IPP over USB:
# match.SUBSYSTEM = "usbmisc"
# match.usb = { vendor = "03f0", product = "5c2a", serial = "VNC5L60718", interface = "03" }
#
# /dev/bus/usb/001/007, for programs that use libusb, such as those that scan:
# match.SUBSYSTEM = "usb"
# match.usb = { vendor = "03f0", product = "5c2a", serial = "VNC5L60718" }
"""
    )


def test_a_draft_offers_a_printer_once() -> None:
    draft = starter(Present(machine("workbench"), DOMAIN), (), Claims(()))
    assert "/dev/usb/lp1" in dict(draft.left_out)["further nodes of cameras and printers"]
    (chapter,) = (each for each in draft.chapters if "/dev/usb/lp" in "".join(each))
    assert chapter[1] == 'name = "hp-laserjet-mfp-m28w"  # HP LaserJet MFP M28w (03f0:5c2a): /dev/usb/lp0'


def test_a_grabber_is_its_picture_with_its_controls_instead_and_its_sound_apart() -> None:
    picture = suggested("workbench", "/dev/video0")
    assert picture.group.paths == ("/dev/video0",)
    assert [each.remark for each in picture.instead] == ["/dev/hidraw2, raw HID reports:"]
    assert "# For another part of the camera, replace the match by this:\n" in picture.text
    assert picture.reasons[1:] == (
        (
            "The unit has further device nodes: /dev/snd/controlC1, /dev/snd/pcmC1D0c. For these: 'genericdp "
            "suggest /dev/snd/controlC1'."
        ),
    )
    sound = suggested("workbench", "/dev/snd/controlC1")
    assert sound.group.paths == ("/dev/snd/controlC1", "/dev/snd/pcmC1D0c")


def test_the_port_of_a_programmer_says_that_it_has_a_disk_too() -> None:
    assert suggested("workbench", "/dev/ttyACM4").reasons[1:] == (
        "Programs that use libusb need the raw USB node instead: 'genericdp suggest /dev/bus/usb/001/013'.",
        "The unit has a further device node: /dev/sdc. For it: 'genericdp suggest /dev/sdc'.",
    )
    assert suggested("workbench", "/dev/sdc").reasons[2:] == (
        "The unit has a further device node: /dev/ttyACM4. For it: 'genericdp suggest /dev/ttyACM4'.",
    )
    present = Present(machine("workbench"), DOMAIN)
    by_itself = suggest(node("workbench", "/dev/ttyACM4"), present, by_itself=True)
    assert len(by_itself.reasons) == 1


def test_a_display_on_usb_without_a_render_node_is_offered_whole() -> None:
    usb = a_usb_device(vendor="17e9", product="019e", serial="315045")
    card, screen = a_usb_node(usb, "drm", "dri/card1"), a_usb_node(usb, "graphics", "fb1")
    suggestion = suggest(card, Present(by_sys_path(card, screen), DOMAIN))
    assert suggestion.group.paths == ("/dev/dri/card1", "/dev/fb1")
    assert [each.remark for each in suggestion.instead] == ["/dev/dri/card1:", "/dev/fb1:"]


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_offered_instead_outlasts_a_reboot_that_finds_everything_later(name: str) -> None:
    present, later = Present(machine(name), DOMAIN), after_reboot(name)
    same = {old.device_node: path for old, path in zip(machine(name).values(), later, strict=True)}
    rebooted = Present(later, DOMAIN)
    for each in present.nodes:
        if each.usb_device is not None or each.subsystem == "block":
            suggestion = suggest(each, present)
            for other in suggestion.instead if suggestion.by is not By.ARRIVAL else ():
                if "the order of arrival" in other.about:
                    continue
                assert rebooted.taken_by(other.conditions) == {same[path] for path in other.paths}


def test_each_tuner_of_a_card_is_offered_with_a_word_about_its_number() -> None:
    suggestion = suggested("workstation", "/dev/dvb/adapter1/frontend0")
    assert len(suggestion.group.paths) == 8
    tuner = suggestion.instead[-1]
    assert tuner.remark == (
        "/dev/dvb/adapter1/demux0, /dev/dvb/adapter1/dvr0, /dev/dvb/adapter1/frontend0, "
        "/dev/dvb/adapter1/net0, its number follows the order of arrival, unless the driver's adapter_nr "
        "fixes it:"
    )
    assert tuner.conditions["DEVNAME"] == "/dev/dvb/adapter1/*"


def test_a_tuner_alone_on_its_card_is_offered_without_a_word_about_its_number() -> None:
    assert "order of arrival" not in suggested("industrial-pc", "/dev/dvb/adapter0/frontend0").text
