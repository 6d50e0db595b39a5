"""What is suggested for devices of many kinds, on machines as an operator has them."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.explain.unfound import unfound
from genericdp.core.inventory.claims import Claims
from genericdp.core.suggest.clues import By
from genericdp.core.suggest.siblings import subject_of
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import Present, Suggestion, suggest
from tests.scenes.builders import a_device, a_usb_device, a_usb_node, a_usb_serial, by_sys_path, resources_of
from tests.scenes.machines import MACHINES, machine, node
from tests.scenes.suggestions import DOMAIN


def suggested(name: str, path: str) -> Suggestion:
    """The suggestion for a device node of a machine."""
    return suggest(node(name, path), Present(machine(name), DOMAIN))


def text_of(devices: dict[str, UdevDevice], device: UdevDevice) -> str:
    return suggest(device, Present(devices, DOMAIN)).text


# One device with its nodes


@pytest.mark.parametrize(
    ("name", "path", "paths"),
    [
        # a modem on PCI
        ("laptop-amd", "/dev/wwan0at1", "/dev/wwan0at0 /dev/wwan0at1 /dev/wwan0mbim0"),
        # a touch pad
        (
            "laptop-amd",
            "/dev/hidraw0",
            "/dev/hidraw0 /dev/input/event4 /dev/input/event5 /dev/input/mouse0 /dev/input/mouse1",
        ),
        # a TPM with its resource manager
        ("laptop-intel", "/dev/tpmrm0", "/dev/tpm0 /dev/tpmrm0"),
        # a GPU
        ("laptop-intel", "/dev/dri/card0", "/dev/dri/card0 /dev/dri/renderD128"),
        ("rockchip-board", "/dev/dri/renderD129", "/dev/dri/card1 /dev/dri/renderD129"),
        # a camera of a board, with the nodes that set it up
        ("raspberry-pi-4", "/dev/video0", "/dev/video0 /dev/video1 /dev/media4 /dev/v4l-subdev0"),
        # one timer with two names
        ("raspberry-pi-4", "/dev/watchdog0", "/dev/watchdog /dev/watchdog0"),
        # of a camera, the stream that was named
        ("laptop-intel", "/dev/video2", "/dev/video2"),
    ],
)
def test_what_belongs_together_makes_one_device(name: str, path: str, paths: str) -> None:
    assert suggested(name, path).group.paths == tuple(paths.split())


def test_a_sound_card_and_a_tuner_are_one_device_each() -> None:
    for name in ("workstation", "industrial-pc", "laptop-intel"):
        for subsystem in ("sound", "dvb"):
            cards = [
                each for each in machine(name).values() if each.subsystem == subsystem and each.device_node
            ]
            for each in cards:
                if each.sys_name not in ("seq", "timer"):
                    paths = suggested(name, each.device_node or "").group.paths
                    assert len(paths) > 1, paths


# What it is known by


def test_udev_s_word_for_no_serial_number_is_none() -> None:
    for name in MACHINES:
        present = Present(machine(name), DOMAIN)
        for each in present.nodes:
            if each.properties.get("ID_SERIAL") == "noserial":
                assert "noserial" not in suggest(each, present).text


@pytest.mark.parametrize(
    ("name", "path", "by"),
    [
        # v4l2loopback and CSI cameras are numbered in the order of arrival.
        ("laptop-intel", "/dev/video4", By.LABEL),
        ("kvm-guest", "/dev/video0", By.LABEL),
        ("raspberry-pi-4", "/dev/video0", By.PLACE),
        ("raspberry-pi-4", "/dev/lirc0", By.PLACE),
        # These have names of their own.
        ("laptop-intel", "/dev/input/mice", By.NAME),
        ("laptop-intel", "/dev/snd/seq", By.NAME),
        ("laptop-intel", "/dev/fuse", By.NAME),
        ("raspberry-pi-4", "/dev/vcio", By.NAME),
        # An SPI device sits at a chip select.
        ("raspberry-pi-4", "/dev/spidev0.1", By.PLACE),
    ],
)
def test_only_a_fixed_name_is_called_one(name: str, path: str, by: By) -> None:
    suggestion = suggested(name, path)
    assert suggestion.by is by
    assert (suggestion.reasons[0] == "By name: the kernel always gives it the same name.") is (by is By.NAME)


def test_boards_with_the_same_serial_number_are_told_apart_by_their_names() -> None:
    boards = []
    for number, name in enumerate(("Isolated_A", "Isolated_B")):
        usb = a_usb_device(str(number + 1), serial="DN01", devnum=number + 2)
        usb = replace(usb, properties={**usb.properties, "ID_MODEL": name})
        boards.append(a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}"))
    suggestion = suggest(boards[0], Present(by_sys_path(*boards), DOMAIN))

    assert suggestion.by is By.SERIAL
    assert 'match.parent = { DEVTYPE = "usb_device", ID_MODEL = "Isolated_A" }' in suggestion.table


def test_a_root_hub_has_no_port_to_exclude_another_by() -> None:
    reasons = " ".join(suggested("laptop-intel", "/dev/bus/usb/005/001").reasons)
    assert 'port = ""' not in reasons


# What it is called


@pytest.mark.parametrize(
    ("name", "path", "title"),
    [
        ("raspberry-pi-5", "/dev/hailo0", "Hailo-8 AI Processor"),
        # The database knows only the root port above it.
        ("workstation", "/dev/apex_0", "apex device of apex (1ac1:089a)"),
        ("laptop-intel", "/dev/dri/card0", "TigerLake-LP GT2 [Iris Xe Graphics]"),
        ("laptop-intel", "/dev/video4", "OBS Virtual Camera"),
        ("laptop-intel", "/dev/i2c-14", "i2c-dev device of i2c_designware"),
        ("laptop-intel", "/dev/hidraw2", "SYNA8004:00 06CB:CD8B"),
        ("raspberry-pi-5", "/dev/video8", "Webcam C270 (046d:0825)"),
    ],
)
def test_the_title_is_the_name_of_the_unit_itself(name: str, path: str, title: str) -> None:
    assert suggested(name, path).text.splitlines()[2].startswith(f"# {title}: {path}")


# What the container gets


def test_no_suggestion_renames_what_libraries_look_for() -> None:
    for name in MACHINES:
        present = Present(machine(name), DOMAIN)
        for each in present.nodes:
            if each.subsystem not in ("tty", "vc", "block", "usbmon"):
                text = suggest(each, present).text.replace("# container_path", "container_path")
                assert [*map(str, unfound(*resources_of(text)))] == []


@pytest.mark.parametrize(
    ("name", "path", "can"),
    [
        (
            "laptop-intel",
            "/dev/uinput",
            "create keyboards and mice, and so type into every console",
        ),
        ("laptop-intel", "/dev/uhid", "create keyboards and mice"),
        ("laptop-intel", "/dev/vhci", "create Bluetooth controllers that the host takes for real ones"),
        ("laptop-intel", "/dev/usbmon0", "read all that is sent over the host's USB buses"),
        ("laptop-intel", "/dev/mei0", "talk to the management engine of the mainboard"),
        ("server", "/dev/ipmi0", "switch the machine off and change who may log in"),
        ("laptop-intel", "/dev/vboxdrv", "run code in the host's kernel through VirtualBox"),
        ("raspberry-pi-4", "/dev/gpiomem", "switch every pin of the board"),
        ("raspberry-pi-4", "/dev/watchdog", "restart the machine: it must write to the timer"),
        (
            "laptop-intel",
            "/dev/cpu/0/cpuid",
            "read the processor's features",
        ),
        ("laptop-intel", "/dev/userfaultfd", "handle page faults of the kernel"),
    ],
)
def test_a_node_that_acts_on_the_host_is_suggested_with_what_a_container_can_do(
    name: str, path: str, can: str
) -> None:
    suggestion = suggested(name, path)
    caution = f"CAUTION: it belongs to the host as a whole. A container with it can {can}"
    assert any(reason.startswith(caution) for reason in suggestion.reasons)
    assert "replicas" not in suggestion.text
    draft = starter(Present(machine(name), DOMAIN), (), Claims(()))
    assert path in dict(draft.left_out)["they act on the whole host"]


# A camera with an infrared sensor


def test_a_camera_means_its_colour_stream_and_the_infrared_one_is_offered_instead() -> None:
    present = Present(machine("laptop-intel"), DOMAIN)
    usb = node("laptop-intel", "/dev/video2").usb_device
    assert usb is not None
    named = subject_of(usb, usb.sys_name, present.nodes)

    assert named.device_node == "/dev/video0"
    assert suggest(named, present).text.endswith(
        """\
# For another stream of the camera, replace the match by:
#
# /dev/video2, infrared:
# match.SUBSYSTEM = "video4linux"
# match.usb = { vendor = "13d3", product = "5405", interface = "02" }
# match."ATTR{index}" = "0"
"""
    )


# A part of a device


def test_the_tty_of_a_board_is_offered_without_its_pins() -> None:
    text = suggested("industrial-pc", "/dev/gpiochip2").text
    assert "# /dev/ttyUSB9, without the rest:\n" in text
    assert "# /dev/gpiochip2, the pins alone:\n" in text


def test_the_ports_of_a_modem_are_offered_one_by_one() -> None:
    remarks = [each.remark for each in suggested("industrial-pc", "/dev/ttyUSB0").instead]
    assert "/dev/cdc-wdm0, the control port:" in remarks
    assert "/dev/ttyUSB2:" in remarks or "/dev/ttyUSB2, the AT port:" in remarks


# A draft


def test_a_draft_leaves_out_what_no_pod_asks_for() -> None:
    draft = starter(Present(machine("raspberry-pi-4"), DOMAIN), (), Claims(()))
    left = {why: len(paths) for why, paths in draft.left_out}
    assert left["terminals, and what every container has"] > 500
    assert "pty" not in "".join(line for chapter in draft.chapters for line in chapter)


def test_a_draft_has_one_resource_for_each_kind_and_model() -> None:
    draft = starter(Present(machine("gpu-server"), DOMAIN), (), Claims(()))
    (gpus,) = [chapter for chapter in draft.chapters if 'SUBSYSTEM = "drm"' in "".join(chapter)]
    (adapters,) = [chapter for chapter in draft.chapters if "infiniband_verbs" in "".join(chapter)]
    assert "units" in gpus[1] or "more" in gpus[1]
    assert "uverbs" in adapters[1]


def test_a_made_up_node_of_no_known_kind_is_in_the_draft() -> None:
    acme = a_device(
        "/sys/devices/platform/acme.0/acme0", subsystem="acme", node="/dev/acme0", number="c 240:0"
    )
    present = Present(by_sys_path(acme, a_usb_serial()), DOMAIN)
    assert "/dev/acme0" in starter(present, (), Claims(())).text
