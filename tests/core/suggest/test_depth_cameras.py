"""What is suggested for a depth camera: its library opens all nodes of the USB device, or the raw node."""

from genericdp.core.device import UdevDevice
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.suggestion import suggest
from genericdp.core.suggest.units.siblings import subject_of
from tests.scenes.builders import a_usb_device, a_usb_node, by_sys_path
from tests.scenes.suggestions import DOMAIN, assert_takes_exactly, with_alternative


def a_camera(*, interfaces: tuple[str, str] = ("00", "00")) -> tuple[UdevDevice, ...]:
    """A camera with two pictures at these interfaces, colour at another, data about each, and a gyroscope."""
    usb = a_usb_device(vendor="8086", product="0b5c", serial="151322060254")
    streams = [
        a_usb_node(
            usb,
            "video4linux",
            f"video{number}",
            interface=interface,
            number=f"c 81:{number}",
            attributes={"index": str(index), "name": "Intel(R) RealSense(TM) Depth Ca"},
            properties={"ID_V4L_CAPABILITIES": ":capture:" if number % 2 == 0 else ":"},
        )
        for number, (interface, index) in enumerate(
            [
                (interfaces[0], 0),
                (interfaces[0], 1),
                (interfaces[1], 2),
                (interfaces[1], 3),
                ("03", 0),
                ("03", 1),
            ]
        )
    ]
    sensors = [
        a_usb_node(
            usb, "iio", f"iio:device{n}", interface="05", number=f"c 245:{n}", attributes={"name": name}
        )
        for n, name in ((1, "accel"), (0, "gyro"))
    ]
    return (usb, *streams, *sensors)


def test_all_nodes_of_a_depth_camera_are_offered_instead_of_one_stream() -> None:
    usb, stream, *others = a_camera()
    devices = by_sys_path(usb, stream, *others)
    suggestion = suggest(stream, Present(devices, DOMAIN))
    whole, *_ = suggestion.instead
    assert whole.lines == (
        'match.SUBSYSTEM = ["iio", "video4linux"]',
        'match.usb = { vendor = "8086", product = "0b5c", serial = "151322060254" }',
        'group_by = "usb_device"',
    )
    assert_takes_exactly(with_alternative(suggestion, whole), devices, [stream, *others])
    assert (
        """\
# For more or less of the camera, replace the match by one of these:
#
# /dev/iio:device0, /dev/iio:device1, /dev/video0, /dev/video1 and 4 more, all
# of it, for libraries of depth cameras:
# match.SUBSYSTEM = ["iio", "video4linux"]
# match.usb = { vendor = "8086", product = "0b5c", serial = "151322060254" }
# group_by = "usb_device"
#
"""
        in suggestion.text
    )


def test_the_raw_node_of_a_depth_camera_is_named() -> None:
    usb, stream, *others = a_camera()
    assert (
        "Programs that use libusb need the raw USB node instead: 'genericdp suggest /dev/bus/usb/001/004'."
        in suggest(stream, Present(by_sys_path(usb, stream, *others), DOMAIN)).reasons
    )


def test_further_nodes_are_named_in_the_order_of_their_numbers() -> None:
    usb, stream, *others = a_camera(interfaces=("00", "07"))
    assert suggest(stream, Present(by_sys_path(usb, stream, *others), DOMAIN)).rest == (
        "/dev/iio:device0",
        "/dev/iio:device1",
    )


def test_a_camera_with_one_picture_for_each_interface_is_its_streams() -> None:
    usb, stream, *others = a_camera(interfaces=("00", "07"))
    suggestion = suggest(stream, Present(by_sys_path(usb, stream, *others), DOMAIN))
    assert {each.group_by for each in suggestion.instead} == {""}
    assert "raw USB node" not in suggestion.text


def test_the_usb_device_of_a_camera_means_its_first_picture() -> None:
    usb, stream, *others = a_camera()
    devices = by_sys_path(usb, stream, *others)
    assert subject_of(usb, "1-2", devices.values()) is stream
