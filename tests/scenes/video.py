"""What the kernel numbers as it finds it: cameras of a board, virtual cameras, watchdogs, virtual input."""

from genericdp.core.device import UdevDevice
from tests.scenes.builders import a_device

#: The video input of a Jetson. Its driver registers a node when it has found a sensor.
VIDEO_INPUT = a_device("/sys/devices/platform/tegra-capture-vi", subsystem="platform")


def a_sensor(name: str, number: int, index: int | None = None, *, on: UdevDevice = VIDEO_INPUT) -> UdevDevice:
    """The node through which one gets the pictures of a sensor, by default with the index of its number."""
    index = number if index is None else index
    return _a_camera(name, number, index, parent=on)


def a_loopback(label: str, number: int) -> UdevDevice:
    """A camera of v4l2loopback with a `card_label`."""
    return _a_camera(label, number, 0)


def a_watchdog(identity: str, number: int) -> UdevDevice:
    """A watchdog whose driver says no parent, such as softdog."""
    return a_device(
        f"/sys/devices/virtual/watchdog/watchdog{number}",
        subsystem="watchdog",
        node=f"/dev/watchdog{number}",
        number=f"c 247:{number}",
        incarnation=3000 + number,
        attributes={"identity": identity},
    )


def a_gamepad(name: str, number: int, **properties: str) -> UdevDevice:
    """The event node of an input device that a program has made with uinput."""
    path = f"/sys/devices/virtual/input/input{number}"
    made = a_device(path, subsystem="input", properties=properties, attributes={"name": name})
    return a_device(
        f"{path}/event{number}",
        subsystem="input",
        node=f"/dev/input/event{number}",
        number=f"c 13:{64 + number}",
        incarnation=4000 + number,
        parent=made,
    )


def _a_camera(name: str, number: int, index: int, parent: UdevDevice | None = None) -> UdevDevice:
    above = "/sys/devices/virtual" if parent is None else parent.sys_path
    return a_device(
        f"{above}/video4linux/video{number}",
        subsystem="video4linux",
        node=f"/dev/video{number}",
        number=f"c 81:{number}",
        incarnation=1000 + number,
        properties={"ID_V4L_CAPABILITIES": ":capture:", "ID_V4L_PRODUCT": name},
        attributes={"name": name, "index": f"{index}"},
        parent=parent,
    )
