"""What a suggestion says beside its rule: consoles of the kernel, other ways to a unit, ports of a modem."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import suggest
from tests.scenes.builders import a_device, a_usb_device, by_sys_path
from tests.scenes.machines import machine, node
from tests.scenes.suggestions import ATTRIBUTES, DOMAIN, offers_of

TERMINALS = "terminals, and what every container has"

# Consoles of the kernel


def a_uart(name: str, **attributes: str) -> UdevDevice:
    """A serial port of a board."""
    chip = a_device("/sys/devices/platform/soc@0/400e0000.serial", subsystem="platform", driver="stm32-usart")
    return a_device(
        f"{chip.sys_path}/tty/{name}",
        subsystem="tty",
        node=f"/dev/{name}",
        number="c 4:64",
        attributes=attributes,
        parent=chip,
    )


def all_consoles(active: str) -> UdevDevice:
    """The device node with which the kernel lists its consoles."""
    return a_device(
        "/sys/devices/virtual/tty/console",
        subsystem="tty",
        node="/dev/console",
        number="c 5:1",
        attributes={"active": active},
    )


_OF_STM0 = (
    "CAUTION: it is a console of the kernel, which writes its messages there, and a login may wait there. To "
    "free it, remove console=ttySTM0 from the kernel's command line and disable serial-getty@ttySTM0.service."
)


@pytest.mark.parametrize(
    "devices",
    [
        # what every serial port says of itself since Linux 5.9
        (a_uart("ttySTM0", console="Y\n"),),
        # what the kernel says of all
        (a_uart("ttySTM0"), all_consoles("tty0 ttySTM0\n")),
    ],
)
def test_a_console_of_the_kernel_is_suggested_with_a_caution(devices: tuple[UdevDevice, ...]) -> None:
    present = Present(by_sys_path(*devices), DOMAIN)
    assert _OF_STM0 in suggest(devices[0], present).reasons
    assert "/dev/ttySTM0" in dict(starter(present, (), Claims(())).left_out)[TERMINALS]


def test_another_serial_port_is_suggested_without_a_word_about_consoles() -> None:
    devices = (a_uart("ttySTM1", console="N\n"), all_consoles("tty0 ttySTM0\n"))
    assert "console" not in suggest(devices[0], Present(by_sys_path(*devices), DOMAIN)).text


# Raw USB nodes


def a_node_of(usb: UdevDevice, kinds: str, own: str, subsystem: str, name: str) -> UdevDevice:
    """The one device node that a driver has made of a USB device with these kinds of interfaces."""
    unit = a_device(
        usb.sys_path,
        subsystem="usb",
        node=usb.device_node,
        number="c 189:6",
        devtype="usb_device",
        properties={**usb.properties, "ID_USB_INTERFACES": kinds},
        attributes=usb.attributes,
    )
    interface = a_device(
        f"{usb.sys_path}/{usb.sys_name}:1.0",
        subsystem="usb",
        devtype="usb_interface",
        properties={"INTERFACE": own},
        attributes={"bInterfaceNumber": "00"},
        parent=unit,
    )
    return a_device(
        f"{interface.sys_path}/{subsystem}/{name}",
        subsystem=subsystem,
        node=f"/dev/{name}",
        number="c 166:0",
        parent=interface,
    )


@pytest.mark.parametrize(
    ("kinds", "own", "subsystem", "name", "has_hint"),
    [
        # a debug probe with a serial port
        (":020201:0a0000:ff0000:", "2/2/1", "tty", "ttyACM0", True),
        # a weather station: programs use libusb or hidraw
        (":030000:", "3/0/0", "hidraw", "hidraw1", True),
        # a card reader with a keyboard
        (":0b0000:030101:", "3/1/1", "input", "event6", True),
        # a serial adapter whose driver has its only interface
        (":ff0000:", "255/0/0", "tty", "ttyUSB0", False),
        (":020201:0a0000:", "2/2/1", "tty", "ttyACM0", False),
    ],
)
def test_programs_with_a_driver_of_their_own_are_told_of_the_raw_node(
    kinds: str, own: str, subsystem: str, name: str, has_hint: bool
) -> None:
    each = a_node_of(a_usb_device(serial="51009999"), kinds, own, subsystem, name)
    devices = by_sys_path(each)
    raw = each.usb_device.device_node if each.usb_device is not None else None
    hint = f"Programs that use libusb need the raw USB node instead: 'genericdp suggest {raw}'."
    assert (hint in suggest(each, Present(devices, DOMAIN)).reasons) is has_hint


def test_a_raw_node_is_suggested_with_a_word_about_what_drivers_have_made_of_the_unit() -> None:
    each = a_node_of(a_usb_device(serial="51009999"), ":020201:0a0000:ff0000:", "2/2/1", "tty", "ttyACM0")
    assert each.usb_device is not None
    suggestion = suggest(each.usb_device, Present(by_sys_path(each), DOMAIN))
    assert suggestion.rest == ("/dev/ttyACM0",)
    assert (
        "The unit has a further device node: /dev/ttyACM0. For it: 'genericdp suggest /dev/ttyACM0'."
        in suggestion.reasons
    )


# Ports of a modem that is not on USB


def test_the_ports_of_a_modem_on_pci_are_offered_one_by_one() -> None:
    suggestion = suggest(node("laptop-amd", "/dev/wwan0at0"), Present(machine("laptop-amd"), DOMAIN))
    assert [each.remark for each in suggestion.instead] == [
        "/dev/wwan0at0, an AT port:",
        "/dev/wwan0at1, an AT port:",
        "/dev/wwan0mbim0, the control port:",
    ]
    assert suggestion.instead[2].conditions == {
        "SUBSYSTEM": "wwan",
        "parent": {"PCI_ID": "8086:7560"},
        "DEVNAME": "/dev/wwan[0-9]*mbim0",
    }


# Namespaces of a drive


def test_a_namespace_is_known_by_its_number_on_the_drive_where_serial_numbers_are_equal() -> None:
    """Older releases of udev give all namespaces of a drive the same ID_SERIAL."""
    devices = dict(machine("assembly-cell", *ATTRIBUTES))
    drive = next(each for each in devices.values() if each.device_node == "/dev/nvme0")
    disks = [
        a_device(
            each.sys_path,
            subsystem="block",
            devtype="disk",
            node=each.device_node,
            number=f"b 259:{each.attributes['nsid']}",
            properties={"ID_SERIAL": "SAMSUNG_MZPLJ1T6HBJR_S55HNA0R123456"},
            attributes={"nsid": each.attributes["nsid"]},
            parent=drive,
        )
        for each in devices.values()
        if each.device_node in ("/dev/nvme0n1", "/dev/nvme0n2")
    ]
    both = by_sys_path(*disks)
    suggestion = suggest(disks[1], Present(both, DOMAIN))
    assert suggestion.table[2:6] == (
        'match.SUBSYSTEM = "block"',
        'match.DEVTYPE = "disk"',
        'match.ID_SERIAL = "SAMSUNG_MZPLJ1T6HBJR_S55HNA0R123456"',
        'match."ATTR{nsid}" = "2"',
    )
    (offer,) = offers_of(suggestion.text, both)
    assert [each.path for device in offer.devices for each in device.nodes] == ["/dev/nvme0n2"]


# Cameras whose pictures another part of the board makes


def test_a_camera_of_a_board_brings_its_sensor_and_the_image_processor() -> None:
    """Its other media nodes are those of codecs and of the processor, which have no sensor."""
    board = machine("raspberry-pi-5", *ATTRIBUTES)
    suggestion = suggest(node("raspberry-pi-5", "/dev/video0"), Present(board, DOMAIN))
    own = suggestion.table.index("")
    assert suggestion.table[own + 1 :] == (
        "[[resource.node]]",
        'match.SUBSYSTEM = "video4linux"',
        'match.DEVNAME = "/dev/v4l-subdev[0-9]*"',
        'match.parent = { SUBSYSTEM = "i2c" }',
        "shared = true  # its sensor, and what is in between",
        "",
        "[[resource.node]]",
        'match = { SUBSYSTEM = ["media", "video4linux"], parent = { DRIVER = "pispbe" } }',
        "shared = true  # its image processor",
    )
    (offer,) = offers_of(suggestion.text, board)
    (device,) = offer.devices
    inside = {each.path for each in device.nodes_inside}
    assert {"/dev/video0", "/dev/media3", "/dev/v4l-subdev2", "/dev/media0", "/dev/video20"} <= inside
    # a decoder, and a camera on USB
    assert not {"/dev/video19", "/dev/media2", "/dev/video8", "/dev/media4"} & inside
    assert "libcamera" not in suggestion.text


def test_a_draft_is_short_so_it_leaves_a_camera_of_many_parts_to_suggest() -> None:
    draft = starter(Present(machine("raspberry-pi-5", *ATTRIBUTES), DOMAIN), (), Claims(()))
    left = dict(draft.left_out)
    assert {"/dev/video0", "/dev/media3"} <= {*left["cameras with an image processor"]}
    assert left["go along with other devices"] == ("/dev/v4l-subdev2",)


def test_a_camera_that_makes_its_pictures_elsewhere_gets_the_memory_for_them() -> None:
    heap = a_device(
        "/sys/devices/virtual/dma_heap/linux,cma",
        subsystem="dma_heap",
        node="/dev/dma_heap/linux,cma",
        number="c 250:0",
    )
    board = {**machine("raspberry-pi-5"), heap.sys_path: heap}
    suggestion = suggest(node("raspberry-pi-5", "/dev/video0"), Present(board, DOMAIN))
    assert 'match = { DEVNAME = "/dev/dma_heap/linux,cma" }' in suggestion.table


# Cards that call themselves drives


def a_transcoder(slot: str, number: int, serial: str) -> tuple[UdevDevice, ...]:
    """The nodes of a NETINT Quadra, a card that transcodes video."""
    card = a_device(
        f"/sys/devices/pci0000:37/0000:37:01.0/{slot}",
        subsystem="pci",
        driver="nvme",
        properties={"PCI_ID": "1D82:0401", "PCI_SLOT_NAME": slot},
    )
    drive = a_device(
        f"{card.sys_path}/nvme/nvme{number}",
        subsystem="nvme",
        node=f"/dev/nvme{number}",
        number=f"c 243:{number}",
        attributes={"model": "QuadraT1U-2C-FF", "serial": serial},
        parent=card,
    )
    disk = a_device(
        f"{drive.sys_path}/nvme{number}n1",
        subsystem="block",
        devtype="disk",
        node=f"/dev/nvme{number}n1",
        number=f"b 259:{number}",
        properties={"ID_SERIAL": f"QuadraT1U-2C-FF_{serial}", "ID_MODEL": "QuadraT1U-2C-FF"},
        attributes={"nsid": "1"},
        parent=drive,
    )
    other = a_device(
        f"{drive.sys_path}/ng{number}n1",
        subsystem="nvme-generic",
        node=f"/dev/ng{number}n1",
        number=f"c 242:{number}",
        parent=drive,
    )
    return drive, disk, other


@pytest.mark.parametrize("which", [0, 1])
def test_a_transcoder_that_calls_itself_a_drive_is_both_nodes_that_its_library_opens(which: int) -> None:
    nodes = a_transcoder("0000:38:00.0", 0, "Q1U22AC0312345")
    devices = by_sys_path(*nodes)
    suggestion = suggest(nodes[which], Present(devices, DOMAIN))
    assert suggestion.name == "quadrat1u-2c-ff"
    assert suggestion.table[1:] == (
        'name = "quadrat1u-2c-ff"  # pods request example.com/quadrat1u-2c-ff',
        'match = { SUBSYSTEM = ["block", "nvme"], parent = { PCI_ID = "1D82:0401" } }',
        'group_by = { SUBSYSTEM = "pci" }  # all nodes of a unit make one device',
        "allow_dangerous = true  # it gives control of the host",
    )
    (offer,) = offers_of(suggestion.text, devices)
    (device,) = offer.devices
    assert sorted(each.path for each in device.nodes) == ["/dev/nvme0", "/dev/nvme0n1"]
    assert "A container gets these 2 nodes together." in suggestion.reasons


def test_a_second_transcoder_is_another_device_whatever_number_it_gets() -> None:
    first, second = a_transcoder("0000:38:00.0", 0, "A1"), a_transcoder("0000:39:00.0", 1, "B2")
    suggestion = suggest(second[0], Present(by_sys_path(*first, *second), DOMAIN))
    swapped = by_sys_path(*a_transcoder("0000:38:00.0", 1, "A1"), *a_transcoder("0000:39:00.0", 0, "B2"))
    (offer,) = offers_of(suggestion.text, swapped)
    (device,) = offer.devices
    assert sorted(each.path for each in device.nodes) == ["/dev/nvme0", "/dev/nvme0n1"]


# Sensors of one controller


@pytest.mark.parametrize(
    ("attribute", "values"),
    [("label", ("accel-base", "accel-display")), ("location", ("base", "lid")), ("id", ("0", "2"))],
)
def test_sensors_of_a_laptop_s_controller_are_told_apart_by_where_they_are_or_by_their_number(
    attribute: str, values: tuple[str, str]
) -> None:
    """The driver makes a platform device for each, and the kernel numbers both in the order of arrival."""

    def sensors(first: int) -> list[UdevDevice]:
        controller = a_device("/sys/devices/platform/GOOG0004:00", subsystem="platform")
        hub = a_device(
            f"{controller.sys_path}/cros-ec-sensorhub.2.auto", subsystem="platform", parent=controller
        )
        made = []
        for position, value in enumerate(values):
            number = abs(first - position)
            unit = a_device(
                f"{hub.sys_path}/cros-ec-accel.{13 + number}.auto",
                subsystem="platform",
                driver="cros-ec-accel",
                parent=hub,
            )
            made.append(
                a_device(
                    f"{unit.sys_path}/iio:device{number}",
                    subsystem="iio",
                    node=f"/dev/iio:device{number}",
                    number=f"c 244:{number}",
                    attributes={"name": "cros-ec-accel", attribute: value},
                    parent=unit,
                )
            )
        return made

    before, after = sensors(0), sensors(1)
    for which, sensor in enumerate(before):
        suggestion = suggest(sensor, Present(by_sys_path(*before), DOMAIN))
        assert "CAUTION" not in suggestion.text
        (was,), (now,) = (
            offers_of(suggestion.text, by_sys_path(*devices))[0].devices for devices in (before, after)
        )
        assert [each.path for each in was.nodes] == [sensor.device_node]
        assert [each.path for each in now.nodes] == [after[which].device_node]
        assert was.id == now.id


# What is not offered


def test_a_shelf_that_nothing_tells_from_another_is_suggested_with_a_caution() -> None:
    """Neither its transport nor the shelf itself has a name, and its numbers follow the order of arrival."""
    controller = a_device(
        "/sys/devices/pci0000:48/0000:49:00.0", subsystem="pci", properties={"PCI_ID": "9005:028F"}
    )
    shelf = a_device(
        f"{controller.sys_path}/host6/port-6:0/end_device-6:0/target6:0:24/6:0:24:0",
        subsystem="scsi",
        devtype="scsi_device",
        attributes={"model": "D3610           "},
        parent=controller,
    )
    commands = a_device(
        f"{shelf.sys_path}/scsi_generic/sg8",
        subsystem="scsi_generic",
        node="/dev/sg8",
        number="c 21:8",
        parent=shelf,
    )
    suggestion = suggest(commands, Present(by_sys_path(commands), DOMAIN))
    assert suggestion.reasons[1:] == (
        (
            "CAUTION: nothing shows which device it is, so it is not offered until 'identity' names udev "
            "properties that do."
        ),
    )
