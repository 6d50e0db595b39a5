"""The streams of a USB camera, in the order in which an operator expects them; the sensors of others.

The rules of this file:

* Pictures come before data about them, colour before infrared. After that, makers number interfaces in the
  order of importance.
* sysfs does not say which sensor a camera of a board has: any that belongs to no other camera may be it.
* What gives no pictures of its own, a codec or an image processor, has no sensor.
"""

from collections.abc import Iterable, Mapping, Sequence

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import natural

#: All parts of cameras that are set up by themselves.
_PARTS: Mapping[str, str] = {"SUBSYSTEM": "video4linux", "DEVNAME": "/dev/v4l-subdev[0-9]*"}
#: Those of them that are chips beside the board's processor: sensors, lenses, bridges.
_CHIPS: Mapping[str, str | Mapping[str, str]] = {**_PARTS, "parent": {"SUBSYSTEM": "i2c"}}
#: What reads a sensor -> what libcamera passes its pictures through, both by the names of their drivers
#: (src/libcamera/pipeline: rpi/pisp, rpi/vc4, ipu3).
_PROCESSORS: Mapping[str, str] = {
    "rp1-cfe": "pispbe",
    "unicam": "bcm2835-isp",
    "ipu3-cio2": "ipu3-imgu",
}


def is_stream(node: UdevDevice) -> bool:
    """Whether it is a stream of a USB camera."""
    return (
        node.subsystem == "video4linux" and node.sys_name.startswith("video") and node.usb_device is not None
    )


def streams_of(stream: UdevDevice, nodes: Iterable[UdevDevice]) -> list[UdevDevice]:
    """The streams of a camera the one that most pods want first."""
    usb = stream.usb_device
    return sorted(
        (
            each
            for each in nodes
            if is_stream(each)
            and usb is not None
            and each.usb_device is not None
            and each.usb_device.sys_path == usb.sys_path
        ),
        key=_rank,
    )


def is_depth_camera(node: UdevDevice, nodes: Iterable[UdevDevice]) -> bool:
    """Whether it is a stream of a camera that gives several pictures through one interface, such as a depth
    and what it is computed from. The library of such a camera opens all nodes, or the raw USB node instead.
    """
    if not is_stream(node):
        return False
    interfaces = [
        interface.sys_path
        for each in streams_of(node, nodes)
        if has_pictures(each) and (interface := each.usb_interface) is not None
    ]
    return len(interfaces) > len({*interfaces})


def _rank(stream: UdevDevice) -> tuple[object, ...]:
    interface = stream.usb_interface
    number = "" if interface is None else interface.attributes.get("bInterfaceNumber", "")
    return (
        not has_pictures(stream),
        is_infrared(stream),
        number,
        stream.attributes.get("index", ""),
        stream.sys_name,
    )


def has_pictures(stream: UdevDevice) -> bool:
    """Whether a camera's node gives pictures; the others give data about them."""
    capabilities = stream.properties.get("ID_V4L_CAPABILITIES")
    if capabilities is not None:
        return ":capture:" in capabilities
    return stream.attributes.get("index", "0").strip() == "0"


def is_infrared(stream: UdevDevice) -> bool:
    """Whether a camera's node calls itself infrared."""
    name = stream.attributes.get("name", "") or stream.properties.get("ID_V4L_PRODUCT", "")
    words = name.replace("_", " ").replace(":", " ").split()
    # The kernel cuts the names of interfaces: `Integrated Camera: Integrated I`.
    return any(word.casefold() in ("ir", "infrared") for word in words) or words[-1:] == ["I"]


def sensors_beside(camera: Sequence[UdevDevice], nodes: Iterable[UdevDevice]) -> tuple[str, ...]:
    """The nodes of sensors and of what is in between that are set up through none of the media nodes beside
    them: a program may need these for a camera of a board. () for any other device.

    camera  the nodes of a device, the one that it is named after first
    nodes   all device nodes of the machine
    """
    every = tuple(nodes)
    if not has_pictures(camera[0]) or all(node.subsystem != "media" for node in camera):
        return ()
    parents = {_parent_of(node) for node in every if node.subsystem == "media"}
    sensors = (each for each in every if is_subdevice(each) and _parent_of(each) not in parents)
    return tuple(sorted((each.device_node or "" for each in sensors), key=natural))


def all_sensors(
    camera: Sequence[UdevDevice], nodes: Iterable[UdevDevice]
) -> Mapping[str, str | Mapping[str, str]]:
    """The conditions for the sensors beside a camera if they can belong to no other, because the board has
    one media node for sensors; {} if they may, or if there are none.
    """
    every = tuple(nodes)
    if not (sensors := sensors_beside(camera, every)):
        return {}
    pipelines = [node for node in every if node.subsystem == "media" and _reads_sensors(node, every)]
    if len(pipelines) != 1 or not any(node is pipelines[0] for node in camera):
        return {}
    parts = [node for node in every if is_subdevice(node)]
    if len(parts) == len(sensors):
        return _PARTS
    chips = {node.device_node for node in parts if any(each.subsystem == "i2c" for each in node.ancestors())}
    return _CHIPS if chips == set(sensors) else {}


def _reads_sensors(media: UdevDevice, nodes: Iterable[UdevDevice]) -> bool:
    """Whether a camera of a board is set up through a media node, as far as udev knows."""
    if media.usb_device is not None or _drivers_above(media).intersection(_PROCESSORS.values()):
        return False
    videos = [
        each for each in nodes if each.sys_name.startswith("video") and _parent_of(each) == _parent_of(media)
    ]
    return not videos or any(map(has_pictures, videos))


def processor_of(
    camera: Sequence[UdevDevice], nodes: Iterable[UdevDevice]
) -> Mapping[str, str | tuple[str, ...] | Mapping[str, str]]:
    """The conditions for the image processor that programs need with a camera of a board; {} if none."""
    for driver in _drivers_above(camera[0]).intersection(_PROCESSORS):
        processor = _PROCESSORS[driver]
        if any(processor in _drivers_above(each) for each in nodes if each.subsystem == "media"):
            return {"SUBSYSTEM": ("media", "video4linux"), "parent": {"DRIVER": processor}}
    return {}


def is_read_by_libcamera(node: UdevDevice) -> bool:
    """Whether it is a node of what reads a sensor and leaves the rest to an image processor."""
    return node.subsystem == "media" and not _drivers_above(node).isdisjoint(_PROCESSORS)


def _drivers_above(node: UdevDevice) -> frozenset[str]:
    return frozenset(each.driver for each in node.ancestors() if each.driver)


def is_subdevice(node: UdevDevice) -> bool:
    """Whether it is the node of a sensor or of another part of a camera of a board."""
    return node.sys_name.startswith("v4l-subdev")


def _parent_of(node: UdevDevice) -> str:
    return "" if node.parent is None else node.parent.sys_path
