"""What is suggested for devices of many kinds, on machines as an operator has them."""

from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.suggest.clues import By, details
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import Suggestion, suggest
from genericdp.core.suggest.units.siblings import subject_of
from tests.scenes.builders import (
    a_device,
    a_function,
    a_usb_device,
    a_usb_node,
    a_usb_serial,
    by_sys_path,
)
from tests.scenes.machines import MACHINES, machine, node
from tests.scenes.suggestions import DOMAIN, offers_of, uncommented


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
        # a TPM with its resource manager, which is enough for those who name it
        ("laptop-intel", "/dev/tpm0", "/dev/tpm0 /dev/tpmrm0"),
        ("laptop-intel", "/dev/tpmrm0", "/dev/tpmrm0"),
        # a GPU
        ("laptop-intel", "/dev/dri/card0", "/dev/dri/card0 /dev/dri/renderD128"),
        ("rockchip-board", "/dev/dri/renderD129", "/dev/dri/card1 /dev/dri/renderD129"),
        # a camera of a board, with the nodes that set it up
        ("raspberry-pi-4", "/dev/video0", "/dev/video0 /dev/video1 /dev/media4 /dev/v4l-subdev0"),
        # one timer with two names
        ("raspberry-pi-4", "/dev/watchdog0", "/dev/watchdog /dev/watchdog0"),
        # an FPGA card with its channels, an accelerator with its cores
        (
            "laboratory-pc",
            "/dev/xdma0_h2c_1",
            """/dev/xdma0_c2h_0 /dev/xdma0_c2h_1 /dev/xdma0_control /dev/xdma0_events_0 /dev/xdma0_events_1
            /dev/xdma0_events_2 /dev/xdma0_events_3 /dev/xdma0_h2c_0 /dev/xdma0_h2c_1 /dev/xdma0_user""",
        ),
        ("accelerator-server", "/dev/memx0", "/dev/memx0 /dev/memx0_feature"),
        # what a driver has in a folder, though sysfs does not say of which device
        (
            "accelerator-server",
            "/dev/rshim0/misc",
            "/dev/rshim0/boot /dev/rshim0/console /dev/rshim0/misc /dev/rshim0/rshim",
        ),
        # of a capture card without a media device, the input that was named
        ("studio", "/dev/video1", "/dev/video1"),
        ("workstation", "/dev/video0", "/dev/vbi0 /dev/video0"),
        # each port of a serial card
        ("serial-gateway", "/dev/ttyMI2", "/dev/ttyMI2"),
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


def test_raw_nodes_of_boards_with_one_serial_number_are_told_apart_by_their_names() -> None:
    (raw,) = [
        each for each in machine("serial-gateway").values() if each.attributes.get("serial") == "00000000"
    ]
    suggestion = suggest(raw, Present(machine("serial-gateway"), DOMAIN))
    assert suggestion.by is By.MODEL
    assert 'match.ID_MODEL = "FT232R_USB_UART"' in suggestion.table


@pytest.mark.parametrize(
    ("name", "path", "match"),
    [
        # A card whose driver does not say which port a node is: at least no other card is taken for it.
        (
            "serial-gateway",
            "/dev/ttyMI2",
            """\
match.DEVNAME = "/dev/ttyMI2"
match.parent = { PCI_ID = "1393:1045", PCI_SLOT_NAME = "0000:04:00.0" }
""",
        ),
        (
            "serial-gateway",
            "/dev/gpiochip1",
            """\
match.DEVNAME = "/dev/gpiochip1"
match.DEVPATH = "/devices/platform/gpio-f7188x.0/*"
""",
        ),
        # Its driver says the port.
        (
            "industrial-pc",
            "/dev/ttyS9",
            '.0/0000:01:00.0/0000:02:00.0/0000:02:00.0:0/0000:02:00.0:0.5/tty/ttyS*"\n',
        ),
        (
            "jetson",
            "/dev/nvgpu/igpu0/ctrl",
            'match = { SUBSYSTEM = "nvidia-gpu-v2", DEVNAME = "/dev/nvgpu/igpu0/*" }\ngroup_by = "all"',
        ),
        # Remote processors, and what one talks to them through, are numbered in the order of arrival.
        (
            "ti-board",
            "/dev/rpmsg_pru30",
            '.icssg/30034000.pru/remoteproc/remoteproc*/rproc-virtio.*.auto/*"\n',
        ),
        # So are the functions that a driver makes of a PCI function.
        (
            "twins",
            "/dev/ttyS5",
            'match.DEVPATH = "/devices/pci0000:00/0000:00:1e.1/dw-apb-uart.*/*"\n',
        ),
        # What hangs off a controller has a model of its own.
        (
            "accelerator-server",
            "/dev/sch0",
            """\
match.SUBSYSTEM = "scsi_changer"
match.parent = { SUBSYSTEM = "scsi", "ATTR{model}" = "3573-TL*" }
""",
        ),
        # A timer of the mainboard, by what its driver calls it.
        (
            "serial-gateway",
            "/dev/watchdog1",
            'match = { SUBSYSTEM = "watchdog", "ATTR{identity}" = "NCT6106D Watchdog" }\n',
        ),
        # The label of a disk of a mainframe is made of its address.
        (
            "mainframe",
            "/dev/dasda",
            'match.DEVTYPE = "disk"\nmatch.DEVPATH = "/devices/css0/0.0.0003/0.0.0201/*"\n',
        ),
        # The sound and the other tuners of a grabber, without its picture.
        (
            "studio",
            "/dev/radio0",
            """\
match.SUBSYSTEM = ["sound", "video4linux"]
match.usb = { vendor = "1b80", product = "e1cc" }
match.DEVNAME = ["/dev/radio[0-9]*", "/dev/snd/controlC[0-9]*", "/dev/snd/pcmC[0-9]*D0c", "/dev/vbi[0-9]*"]
""",
        ),
    ],
)
def test_the_clue_to_a_device_is_what_lasts_of_it(name: str, path: str, match: str) -> None:
    present = Present(machine(name, "identity", "model"), DOMAIN)
    (device,) = [each for each in present.nodes if each.device_node == path]
    assert match in suggest(device, present).text


def test_the_index_of_a_camera_tells_it_only_where_a_driver_orders_its_nodes() -> None:
    def has_index(name: str, path: str) -> bool:
        return any("ATTR{index}" in each for each in details(node(name, path)))

    assert has_index("laptop-intel", "/dev/video1")
    assert not has_index("rockchip-board", "/dev/video1")


def test_the_numbers_of_the_model_are_no_serial_number() -> None:
    (raw,) = [each for each in machine("jetson").values() if each.attributes.get("serial") == "03e72485"]
    suggestion = suggest(raw, Present(machine("jetson"), DOMAIN))
    assert suggestion.by is By.MODEL
    assert "it is the name of the model" in suggestion.reasons[0]


def test_the_name_of_the_controller_is_no_serial_number_of_its_root_hub() -> None:
    suggestion = suggested("rockchip-board", "/dev/bus/usb/001/001")
    assert suggestion.by is By.MODEL
    assert "it is the name of the controller, numbered in the order of arrival" in suggestion.reasons[0]


def test_a_root_hub_has_no_port_to_exclude_another_by() -> None:
    reasons = " ".join(suggested("laptop-intel", "/dev/bus/usb/005/001").reasons)
    assert 'port = ""' not in reasons


# What it is called


@pytest.mark.parametrize(
    ("name", "path", "title"),
    [
        # Its driver makes it without a parent, so nothing leads to the name of the card.
        ("raspberry-pi-5", "/dev/hailo0", "hailo_chardev device"),
        # The database knows only the root port above it.
        ("workstation", "/dev/apex_0", "apex device of apex (1ac1:089a)"),
        ("laptop-intel", "/dev/dri/card0", "Intel Corporation TigerLake-LP GT2 [Iris Xe Graphics]"),
        ("laptop-intel", "/dev/video4", "OBS Virtual Camera"),
        ("laptop-intel", "/dev/i2c-14", "i2c-dev device of i2c_designware"),
        ("laptop-intel", "/dev/hidraw2", "SYNA8004:00 06CB:CD8B"),
        ("raspberry-pi-5", "/dev/video8", "Logitech, Inc. Webcam C270 (046d:0825)"),
    ],
)
def test_the_title_is_the_name_of_the_unit_itself(name: str, path: str, title: str) -> None:
    assert suggested(name, path).text.splitlines()[2].startswith(f"# {title}: {path}")


@pytest.mark.parametrize(
    ("name", "path", "resource"),
    [
        # A clock of a network card is not the card, and the port of a serial card is not its bus.
        ("serial-gateway", "/dev/ptp0", "ptp0"),
        ("industrial-pc", "/dev/ttyS0", "ttys0"),
        # Whole words.
        ("jetson", "/dev/video2", "intel-r-realsense-tm-depth"),
        # What is in a folder of its kind.
        ("laboratory-pc", "/dev/dahdi/ctl", "dahdi-ctl"),
        ("accelerator-server", "/dev/rshim0/boot", "rshim0"),
        ("jetson", "/dev/nvgpu/igpu0/ctrl", "nvgpu-igpu0"),
        # Devices without a driver.
        ("accelerator-server", "/dev/dri/card3", "drm-amdgpu-xcp-1"),
        # Without the address of a part of a chip, or the version of a firmware.
        ("ti-board", "/dev/video0", "ticsi2rx-context-0"),
        ("ti-board", "/dev/counter1", "counter1"),
        ("twins", "/dev/hidraw0", "smart-ups-1500"),
    ],
)
def test_the_name_of_a_resource_says_what_it_is(name: str, path: str, resource: str) -> None:
    assert suggested(name, path).name == resource


@pytest.mark.parametrize(
    ("name", "path", "title"),
    [
        ("jetson", "/dev/video2", "Intel(R) RealSense(TM) Depth Camera 435i (8086:0b3a)"),
        ("serial-gateway", "/dev/ttyUSB10", "SimTech, Incorporated (1e0e:9001)"),
        ("industrial-pc", "/dev/ttyS0", "tty device of serial"),
        # The hardware database has the maker, of a device that does not say it and of a PCI function.
        ("twins", "/dev/ttyUSB1", "QinHeng Electronics USB Serial (1a86:7523)"),
        ("laboratory-pc", "/dev/comedi0", "National Instruments PCI-6229"),
        # Both together would be too long.
        ("laptop-intel", "/dev/snd/pcmC0D0c", "Tiger Lake-LP Smart Sound Technology Audio Controller"),
        # One space between two words.
        ("twins", "/dev/hidraw0", "American Power Conversion Smart-UPS 1500 FW:UPS 04.1 ID=1028 (051d:0003)"),
    ],
)
def test_the_title_names_the_maker_once(name: str, path: str, title: str) -> None:
    assert suggested(name, path).text.splitlines()[2].startswith(f"# {title}:")


@pytest.mark.parametrize(
    ("name", "path", "resource"),
    [
        # Of a part, what it is of the unit, without letters and numbers of the kernel.
        ("twins", "/dev/snd/controlC2", "usb-2-0-camera-control"),
        ("twins", "/dev/snd/pcmC2D0c", "usb-2-0-camera-pcmd0c"),
        ("laptop-intel", "/dev/dri/renderD128", "tigerlake-lp-gt2-iris-xe-renderd"),
        # Without the number that a driver gave it.
        ("ti-board", "/dev/iio:device2", "ti-am335x-adc"),
        # Its own name says which part it is.
        ("accelerator-server", "/dev/memx0_feature", "memx0-feature"),
    ],
)
def test_the_name_of_a_part_says_which_it_is(name: str, path: str, resource: str) -> None:
    present = Present(machine(name), DOMAIN)
    assert suggest(node(name, path), present, by_itself=True).name == resource


@pytest.mark.parametrize(
    ("name", "path", "taken", "resource"),
    [
        # A second unit of the model.
        ("twins", "/dev/ttyUSB1", "usb-serial", "usb-serial-2"),
        ("twins", "/dev/bus/usb/001/001", "xhci-host-controller", "xhci-host-controller-2"),
        ("twins", "/dev/video2", "usb-2-0-camera", "usb-2-0-camera-2"),
        # Another part of the unit.
        ("workbench", "/dev/video0", "usb-capture-hdmi", "usb-capture-hdmi-video"),
        ("workbench", "/dev/video0", "usb-capture-hdmi usb-capture-hdmi-video", "usb-capture-hdmi-2"),
    ],
)
def test_a_second_name_says_the_kind_only_if_one_unit_has_several(
    name: str, path: str, taken: str, resource: str
) -> None:
    present = Present(machine(name), DOMAIN)
    assert suggest(node(name, path), present, taken=taken.split()).name == resource


# What the container gets


def test_the_ports_of_a_modem_are_offered_names_that_say_which_is_which() -> None:
    text = suggested("assembly-cell", "/dev/ttyACM10").text
    assert '# container_path = "/dev/u-blox-modem-if{ID_USB_INTERFACE_NUM}"  # fixed names\n' in text
    (offer,) = offers_of(uncommented(text), machine("assembly-cell"))
    (device,) = offer.devices
    numbers = {node.path: node.values["ID_USB_INTERFACE_NUM"] for node in device.nodes}
    assert numbers == {f"/dev/ttyACM1{n}": f"0{2 * n:x}" for n in range(6)}


def test_a_sensor_keeps_the_name_by_which_libcamera_finds_it() -> None:
    assert "container_path" not in suggested("jetson", "/dev/v4l-subdev0").text


def test_a_decoder_keeps_the_name_by_which_programs_find_it() -> None:
    assert "container_path" not in suggested("rockchip-board", "/dev/video18").text
    decoder = a_device(
        "/sys/devices/platform/soc/ff620000.video-decoder/video4linux/video0",
        subsystem="video4linux",
        node="/dev/video0",
        number="c 81:0",
        properties={"ID_V4L_CAPABILITIES": ":"},
    )
    assert "container_path" not in text_of(by_sys_path(decoder), decoder)


@pytest.mark.parametrize(
    ("name", "path", "is_shared"),
    [
        ("laptop-intel", "/dev/dri/renderD128", True),
        ("ti-board", "/dev/tee0", True),
        ("laptop-intel", "/dev/fuse", True),
        # Only a display, only for one program, and of the host.
        ("ti-board", "/dev/dri/card1", False),
        ("laptop-intel", "/dev/snd/seq", False),
        ("laptop-intel", "/dev/tpmrm0", False),
    ],
)
def test_replicas_are_offered_where_a_driver_keeps_several_programs_apart(
    name: str, path: str, is_shared: bool
) -> None:
    assert ("# replicas = 10" in suggested(name, path).text) is is_shared


def test_a_keyboard_is_suggested_with_a_word_about_the_console() -> None:
    caution = (
        "CAUTION: the host's console reads what is typed there, too, unless the program grabs the device."
    )
    assert caution in suggested("industrial-pc", "/dev/hidraw0").reasons
    assert caution not in suggested("laptop-intel", "/dev/hidraw2").reasons


def test_a_raw_usb_node_is_suggested_with_the_answer_that_follows_a_re_plug() -> None:
    printer = suggested("twins", "/dev/bus/usb/001/007")
    assert printer.reasons[-2] == (
        "Its path changes each time it is plugged in, and libusb opens it by that path. With answer = "
        '"cdi", a container that starts again gets the new path, if the container runtime reads CDI.'
    )
    assert '# answer = "cdi"  # its path follows a re-plug' in printer.table
    # libusb has no use for these.
    for path in ("/dev/usb/lp0", "/dev/bus/usb/001/001"):
        assert "cdi" not in suggested("twins", path).text


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
        ("mainframe", "/dev/chsc", "change the configuration of the machine's channels"),
        (
            "laptop-intel",
            "/dev/tpmrm0",
            "use the keys in the host's TPM that have no password",
        ),
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


@pytest.mark.parametrize(
    ("node", "can"),
    [
        (
            a_device(
                "/sys/devices/virtual/misc/isst_interface", node="/dev/isst_interface", number="c 10:102"
            ),
            "set the clocks of the host's processors and the limits of their power",
        ),
        (
            a_device(
                "/sys/devices/pci0000:00/0000:5a:00.0/mlx5_core.fwctl.0/fwctl/fwctl0",
                subsystem="fwctl",
                node="/dev/fwctl/fwctl0",
                number="c 240:0",
            ),
            "send commands to the firmware of the hardware, for everybody who uses it",
        ),
        (
            a_device(
                "/sys/devices/platform/0.m33/remoteproc/remoteproc0",
                subsystem="remoteproc",
                node="/dev/remoteproc0",
                number="c 241:0",
            ),
            "stop the coprocessor and start it with its firmware again",
        ),
        (
            a_device(
                "/sys/devices/pci0000:00/0000:01:00.2/iLO/hpilo!d0ccb0",
                subsystem="iLO",
                node="/dev/hpilo/d0ccb0",
                number="c 237:0",
            ),
            "switch the machine off and change who may log in to its management controller",
        ),
    ],
)
def test_what_commands_the_machine_or_its_firmware_is_suggested_with_a_caution(
    node: UdevDevice, can: str
) -> None:
    suggestion = suggest(node, Present(by_sys_path(node), DOMAIN))
    caution = f"CAUTION: it belongs to the host as a whole. A container with it can {can}."
    assert caution in suggestion.reasons
    assert "replicas" not in suggestion.text


def test_the_channels_of_a_management_controller_are_one_device() -> None:
    function = a_function("0000:01:00.2", driver="hpilo", pci_id="103C:3307")
    channels = [
        a_device(
            f"{function.sys_path}/iLO/hpilo!d0ccb{number}",
            subsystem="iLO",
            node=f"/dev/hpilo/d0ccb{number}",
            number=f"c 237:{number}",
            parent=function,
        )
        for number in range(24)
    ]
    suggestion = suggest(channels[3], Present(by_sys_path(*channels), DOMAIN))
    assert suggestion.group.nodes == tuple(channels)
    assert suggestion.table[2:] == (
        'match = { SUBSYSTEM = "iLO", parent = { PCI_ID = "103C:3307" } }',
        'group_by = "parent"  # all nodes of a unit make one device',
    )


def test_a_tpm_that_a_program_made_for_a_container_is_not_the_host_s() -> None:
    for subsystem in ("tpm", "tpmrm"):
        made = a_device(
            f"/sys/devices/virtual/{subsystem}/{subsystem}1",
            subsystem=subsystem,
            node=f"/dev/{subsystem}1",
            number="c 10:225",
        )
        assert "CAUTION: it belongs" not in text_of(by_sys_path(made), made)


def test_of_a_tpm_the_node_with_the_resource_manager_is_offered_alone() -> None:
    remarks = [each.remark for each in suggested("ti-board", "/dev/tpm0").instead]
    assert remarks == [
        "/dev/tpm0, for one program at a time:",
        "/dev/tpmrm0, through the kernel's resource manager, as most programs do:",
    ]


def test_a_serial_port_without_hardware_is_called_one() -> None:
    port = a_device(
        "/sys/devices/platform/serial8250/tty/ttyS1",
        subsystem="tty",
        node="/dev/ttyS1",
        number="c 4:65",
        attributes={"type": "0"},
    )
    caution = "# CAUTION: the kernel has found no hardware at this port; reads and writes fail.\n"
    assert caution in text_of(by_sys_path(port), port)
    found = replace(port, attributes={"type": "4"})
    assert caution not in text_of(by_sys_path(found), found)


# Cameras


def test_the_twin_of_a_camera_is_the_node_of_the_other_that_gives_the_same() -> None:
    for path, twin in (("/dev/video0", "/dev/video2"), ("/dev/video1", "/dev/video3")):
        assert suggested("twins", path).rivals == (twin,)


def test_a_node_with_data_about_pictures_is_called_one_and_the_pictures_are_offered_instead() -> None:
    suggestion = suggested("twins", "/dev/video3")
    assert "CAUTION: it gives data about the pictures of the camera, not the pictures." in suggestion.reasons
    assert [each.remark for each in suggestion.instead] == ["/dev/video2, the pictures:"]
    assert suggestion.name.endswith("-metadata")
    assert "CAUTION" not in suggested("twins", "/dev/video2").text


@pytest.mark.parametrize("name", ["ti-board", "jetson"])
def test_sensors_that_can_belong_to_no_other_camera_go_along_with_it(name: str) -> None:
    suggestion = suggested(name, "/dev/video0")
    assert suggestion.table[-3:] == (
        "[[resource.node]]",
        'match = { SUBSYSTEM = "video4linux", DEVNAME = "/dev/v4l-subdev[0-9]*" }',
        "shared = true  # its sensor, and what is in between",
    )
    assert suggestion.beside == ()
    draft = dict(starter(Present(machine(name), DOMAIN), (), Claims(())).left_out)
    assert "/dev/v4l-subdev0" in draft["go along with other devices"]


def a_pipeline_with_parts(*, second: bool = False) -> tuple[UdevDevice, ...]:
    """A camera of a board whose pipeline has parts of its own, beside its sensor and the sensor's lens."""
    pipeline = a_device("/sys/devices/platform/soc@0/48030000.dcmipp", subsystem="platform")
    buses = [
        a_device(f"/sys/devices/platform/soc@0/40130000.i2c/i2c-1/1-00{address}", subsystem="i2c")
        for address in ("1a", "0c")
    ]
    other = a_device("/sys/devices/platform/soc@0/48040000.csi", subsystem="platform")
    parts = [
        ("video4linux", "video0", pipeline),
        ("media", "media0", pipeline),
        ("video4linux", "v4l-subdev0", pipeline),
        ("video4linux", "v4l-subdev1", buses[0]),
        ("video4linux", "v4l-subdev2", buses[1]),
        *([("media", "media1", other)] if second else []),
    ]
    return tuple(
        a_device(
            f"{above.sys_path}/{subsystem}/{name}",
            subsystem=subsystem,
            node=f"/dev/{name}",
            number=f"c 81:{minor}",
            attributes={"name": "imx335 1-001a"} if above is buses[0] else {},
            parent=above,
        )
        for minor, (subsystem, name, above) in enumerate(parts)
    )


def test_a_sensor_goes_along_with_a_camera_that_has_parts_of_its_own() -> None:
    nodes = a_pipeline_with_parts()
    present = Present(by_sys_path(*nodes), DOMAIN)
    suggestion = suggest(nodes[0], present)
    assert suggestion.group.paths == ("/dev/video0", "/dev/media0", "/dev/v4l-subdev0")
    assert suggestion.table[-5:] == (
        "[[resource.node]]",
        'match.SUBSYSTEM = "video4linux"',
        'match.DEVNAME = "/dev/v4l-subdev[0-9]*"',
        'match.parent = { SUBSYSTEM = "i2c" }',
        "shared = true  # its sensor, and what is in between",
    )
    assert suggestion.beside == ()
    (offer,) = offers_of(suggestion.text, by_sys_path(*nodes))
    (device,) = offer.devices
    assert {each.path for each in device.nodes_inside} == {each.device_node for each in nodes}
    draft = starter(present, (), Claims(()))
    assert draft.left_out == (("go along with other devices", ("/dev/v4l-subdev1", "/dev/v4l-subdev2")),)


def test_a_sensor_is_not_taken_where_two_cameras_may_have_it() -> None:
    nodes = a_pipeline_with_parts(second=True)
    suggestion = suggest(nodes[0], Present(by_sys_path(*nodes), DOMAIN))
    assert suggestion.beside == ("/dev/v4l-subdev1", "/dev/v4l-subdev2")
    assert suggestion.reasons[-1].endswith("the kernel does not say to which camera they belong.")
    assert "shared" not in suggestion.text


def test_a_sensor_is_known_by_its_address_whatever_the_number_of_its_bus() -> None:
    nodes = a_pipeline_with_parts()
    suggestion = suggest(nodes[3], Present(by_sys_path(*nodes), DOMAIN))
    assert suggestion.name == "imx335"
    assert suggestion.table[2:] == ('match = { SUBSYSTEM = "video4linux", "ATTR{name}" = "imx335 *-001a" }',)


def test_a_sensor_that_may_belong_to_another_camera_is_mentioned() -> None:
    board = {
        path: each
        for path, each in machine("ti-board").items()
        if each.device_node is None or each.subsystem in ("media", "video4linux")
    }
    bridge = a_device("/sys/devices/platform/soc/csi2", subsystem="platform")
    second = a_device(
        f"{bridge.sys_path}/media1", subsystem="media", node="/dev/media1", number="c 510:1", parent=bridge
    )
    both = {**board, second.sys_path: second}
    suggestion = suggest(node("ti-board", "/dev/video0"), Present(both, DOMAIN))
    assert suggestion.reasons[-1] == (
        "Programs that set the camera up themselves, such as libcamera, also open the nodes of its sensor "
        "and of what is in between. The rule does not take /dev/v4l-subdev0: the kernel does not say to "
        "which camera it belongs."
    )
    # These are parts of the camera itself, or there is no camera.
    for name, path in (("raspberry-pi-4", "/dev/video0"), ("rockchip-board", "/dev/video18")):
        assert "libcamera" not in suggested(name, path).text


def test_a_camera_means_its_colour_stream_and_the_infrared_one_is_offered_instead() -> None:
    present = Present(machine("laptop-intel"), DOMAIN)
    usb = node("laptop-intel", "/dev/video2").usb_device
    assert usb is not None
    named = subject_of(usb, usb.sys_name, present.nodes)

    assert named.device_node == "/dev/video0"
    assert suggest(named, present).text.endswith(
        """\
# For another stream of the camera, replace the match by this:
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


def test_a_draft_gives_each_serial_port_of_a_mainboard_its_own_resource() -> None:
    draft = starter(Present(machine("industrial-pc"), DOMAIN), (), Claims(()))
    ports = ["".join(chapter) for chapter in draft.chapters if "/devices/pnp0/" in "".join(chapter)]
    assert [each.count("DEVPATH") for each in ports] == [1, 1]
    assert 'DRIVER = "port"' not in draft.text


def test_a_draft_offers_a_tape_drive_in_its_usual_modes() -> None:
    draft = starter(Present(machine("accelerator-server"), DOMAIN), (), Claims(()))
    left = {path for _, paths in draft.left_out for path in paths}
    assert {"/dev/st0a", "/dev/nst0l", "/dev/st1m"} <= left
    assert "/dev/nst0" not in left


def test_a_made_up_node_of_no_known_kind_is_in_the_draft() -> None:
    acme = a_device(
        "/sys/devices/platform/acme.0/acme0", subsystem="acme", node="/dev/acme0", number="c 240:0"
    )
    present = Present(by_sys_path(acme, a_usb_serial()), DOMAIN)
    assert "/dev/acme0" in starter(present, (), Claims(())).text


# On the second one, the infrared sensor came first.
@pytest.mark.parametrize(
    ("name", "colours"), [("laptop-intel", "/dev/video0"), ("laptop-amd", "/dev/video2")]
)
def test_the_example_for_cameras_offers_the_colours_and_not_the_infrared_sensor(
    name: str, colours: str
) -> None:
    text = (Path(__file__).parents[3] / "examples" / "70-camera.toml").read_text(encoding="utf-8")
    (offer,) = offers_of(text, machine(name))
    assert [each.path for device in offer.devices for each in device.nodes] == [colours]


def test_what_needs_the_control_node_of_its_driver_gets_it() -> None:
    card = a_function("0000:03:00.0", driver="bmsophon", pci_id="1F1C:1684")
    unit = a_device(
        f"{card.sys_path}/bm-sophon/bm-sophon0",
        subsystem="bm-sophon",
        node="/dev/bm-sophon0",
        number="c 234:0",
        parent=card,
    )
    control = a_device(
        "/sys/devices/virtual/bm-sophon/bmdev-ctl",
        subsystem="bm-sophon",
        node="/dev/bmdev-ctl",
        number="c 233:0",
    )
    devices = by_sys_path(unit, control)
    assert text_of(devices, unit).endswith(
        """\

[[resource.node]]
match = { DEVNAME = "/dev/bmdev-ctl" }
shared = true  # goes along with every device and belongs to none
"""
    )
    assert "[[resource.node]]" not in text_of(devices, control)


def test_a_name_does_not_end_in_the_middle_of_a_phrase() -> None:
    card = a_function("0000:6b:00.0", driver="ice", pci_id="8086:1593")
    model = {"ID_MODEL_FROM_DATABASE": "Ethernet Controller E810-C for SFP"}
    card = replace(card, properties={**card.properties, **model})
    receiver = a_device(
        f"{card.sys_path}/gnss/gnss0", subsystem="gnss", node="/dev/gnss0", number="c 250:0", parent=card
    )
    assert suggest(receiver, Present(by_sys_path(receiver), DOMAIN)).name == "ethernet-controller-e810-c"


def test_a_card_with_several_inputs_is_not_called_the_only_device_of_its_model() -> None:
    assert suggested("studio", "/dev/video0").reasons[0] == (
        "By model, and by what distinguishes it from /dev/video1. That of a second unit of the model would "
        "match, too."
    )
    assert (
        suggested("studio", "/dev/i2c-1")
        .reasons[0]
        .startswith("By model, and by what distinguishes it from /dev/i2c-0.")
    )
