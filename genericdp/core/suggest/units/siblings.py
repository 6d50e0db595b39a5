"""Which device nodes an operator means by one of them: a modem's ports, the nodes of a sound card.

The rules of this file:

* The nodes of one USB device belong together, except its raw USB node: a program that opens that one can
  take the others away from their drivers, so only programs that need it should get it.
* Of a USB camera, each node is a stream of its own: colour, infrared, metadata. A program wants one of them.
* Each port of a serial adapter is a line of its own. They share one USB interface, or the driver tells them
  from those of a modem.
* Of a printer, each node is a way of its own to it, and a program takes one of them.
* A driver of a PCI card that makes a class of its own for its nodes makes them for one program.
* What a driver has in a numbered folder below /dev, and on no bus, belongs together: `/dev/nvgpu/igpu0`.
* A node that gives control of the host is a device by itself: a disk, each partition, a SCSI command node.
  The exception is a transcoder that reports itself as a drive: it is one device with all of its nodes.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.hostile import for_terminal
from genericdp.core.inventory.claims import is_dangerous
from genericdp.core.inventory.identity import natural
from genericdp.core.suggest.units.camera import has_pictures, is_stream, streams_of
from genericdp.core.suggest.units.disks import is_disk
from genericdp.errors import GenericdpError

#: Nodes of these subsystems are useful only with their siblings below the same parent, on any bus: the nodes
#: of a sound card, the two of a graphics card, those of a tuner, of a modem, of a capture card.
_TOGETHER: tuple[frozenset[str], ...] = (
    frozenset({"sound"}),
    frozenset({"drm"}),
    frozenset({"dvb"}),
    frozenset({"wwan"}),
    frozenset({"input"}),
    # A decoder or a camera of a board is set up through the media node.
    frozenset({"video4linux", "media"}),
    # The resource manager is the same chip. Its node alone is enough for those who name it.
    frozenset({"tpm", "tpmrm"}),
    # Programs open the first free channel to the management controller (drivers/misc/hpilo.c).
    frozenset({"iLO"}),
)
#: Classes of the kernel, in which each node is a device, even if a driver has the same name.
_OF_THE_KERNEL = frozenset({"cpuid", "firewire", "gpio", "mei", "msr", "nvme", "nvme-generic", "ptp", "uio"})
#: A touch controller has both, below its device of the subsystem hid.
_OF_HID = frozenset({"hidraw", "input"})
#: The controls of a camera or a grabber: its sound is of use without them.
_OF_CONTROLS = _OF_HID
_BY_HID = '{ SUBSYSTEM = "hid" }'

#: A card that transcodes video calls itself an NVMe drive, and its library opens the drive and its disk:
#: Quadra and T408 of NETINT (libxcoder, "Quadra Integration Guide").
_TRANSCODERS = ("1D82:",)
_OF_TRANSCODER = frozenset({"nvme", "block"})
_BY_CARD = '{ SUBSYSTEM = "pci" }'

_SELDOM_ALONE = frozenset({"bsg", "input", "media", "scsi_generic"})

#: Drivers of serial adapters that have an interface for each port.
_ADAPTERS = frozenset({"cp210x", "ftdi_sio", "xr_serial"})

#: The node with the old name leads to the first of the timers.
_ONE_TIMER = ("watchdog", "watchdog0")


@dataclass(frozen=True, slots=True)
class Siblings:
    """Device nodes that make one device.

    group_by   how a rule says so, a word or a match as TOML; "node" for a single node
    nodes      in the order of their names, the one that the device is named after first
    """

    group_by: str
    nodes: tuple[UdevDevice, ...]

    @property
    def sys_paths(self) -> frozenset[str]:
        return frozenset(node.sys_path for node in self.nodes)

    @property
    def is_one_timer(self) -> bool:
        """Whether the nodes are two names of one thing."""
        return self.group_by == "all" and self.nodes[0].devname in _ONE_TIMER

    @property
    def folder(self) -> str:
        """The folder that has the nodes and nothing else; "" if they do not belong together because of it."""
        return "" if self.group_by != "all" or self.is_one_timer else _folder_of(self.nodes[0])

    @property
    def paths(self) -> tuple[str, ...]:
        """The device nodes."""
        return tuple(node.device_node or "" for node in self.nodes)


def alone(node: UdevDevice) -> Siblings:
    """A device node without siblings."""
    return Siblings("node", (node,))


def siblings_of(node: UdevDevice, devices: Iterable[UdevDevice]) -> Siblings:
    """The device nodes that make one device with this one."""
    if (card := _transcoder_of(node)) is not None:
        return _made(
            _BY_CARD, node, [each for each in _below(card, devices) if each.subsystem in _OF_TRANSCODER]
        )
    if is_dangerous(node) or node.subsystem == "tpmrm":
        # Programs need nothing else of a TPM than its resource manager.
        return alone(node)
    nodes = [each for each in devices if each.device_node is not None]
    if node.devname in _ONE_TIMER:
        return _made("all", node, [each for each in nodes if each.devname in _ONE_TIMER])
    if folder := _folder_of(node):
        return _made("all", node, [each for each in nodes if _folder_of(each) == folder])
    usb = node.usb_device
    if usb is not None:
        below = [*_below(usb, nodes)]
        lines = _lines_of(below)
        if node is usb or is_stream(node) or is_printer(node) or node.sys_path in lines:
            return alone(node)
        apart = _OF_CONTROLS if any(map(is_stream, below)) else frozenset[str]()
        siblings = [
            each
            for each in below
            if _is_with(node, each)
            and each.sys_path not in lines
            and (node.subsystem in apart) is (each.subsystem in apart)
        ]
        return _made("usb_device", node, siblings)
    hid = hid_of(node)
    if hid is not None:
        siblings = [each for each in _below(hid, nodes) if each.subsystem in _OF_HID]
        if len({each.subsystem for each in siblings}) > 1:
            return _made(_BY_HID, node, siblings)
    together = _together_with(node)
    if node.parent is None:
        return alone(node)
    siblings = [
        each
        for each in _below(node.parent, nodes)
        if each.subsystem in together and _same(each.parent, node.parent)
    ]
    pictures = [each for each in siblings if each.sys_name.startswith("video")]
    if len(pictures) > 1 and not any(map(_only_sets_up, siblings)):
        # Nothing connects them: the inputs of a capture card.
        return alone(node)
    return _made("parent", node, siblings)


def _lines_of(nodes: Iterable[UdevDevice]) -> frozenset[str]:
    """The sys paths of those serial ports of a USB device that are the lines of an adapter."""
    ports = [(each, above) for each in nodes if each.subsystem == "tty" and (above := each.usb_interface)]
    sharing = Counter(above.sys_path for _, above in ports)
    return frozenset(
        port.sys_path
        for port, above in ports
        if sharing[above.sys_path] > 1 or (len(ports) > 1 and above.driver in _ADAPTERS)
    )


def _transcoder_of(node: UdevDevice) -> UdevDevice | None:
    """The PCI function of a card that transcodes video, if a device node is one that its library opens."""
    if node.subsystem not in _OF_TRANSCODER:
        return None
    card = next((each for each in node.ancestors() if each.subsystem == "pci"), None)
    is_one = card is not None and card.properties.get("PCI_ID", "").startswith(_TRANSCODERS)
    return card if is_one else None


def is_printer(node: UdevDevice) -> bool:
    """Whether it is a way to a printer on USB."""
    return node.devname.startswith("usb/lp")


def others_of(node: UdevDevice, devices: Iterable[UdevDevice]) -> Iterator[UdevDevice]:
    """The other device nodes of the USB device of a node which one program or another wants by themselves.

    Not its raw USB node, nor what nobody opens without the node that it is about, nor the button of a camera.
    """
    usb = node.usb_device
    if usb is None:
        return
    for each in _below(usb, devices):
        about_pictures = is_stream(each) and not has_pictures(each)
        is_seldom = about_pictures or each.subsystem in _SELDOM_ALONE or each.devtype == "partition"
        if (
            not is_seldom
            and each.device_node
            and each.sys_path != node.sys_path
            and _same(each.usb_device, usb)
        ):
            yield each


def _together_with(node: UdevDevice) -> frozenset[str]:
    """The subsystems of the nodes below the same parent without which this one is of no use."""
    known = next((each for each in _TOGETHER if node.subsystem in each), None)
    if known is not None:
        return known
    card = node.parent
    if card is None or card.subsystem != "pci" or node.subsystem in _OF_THE_KERNEL:
        return frozenset()
    maker, driver = (re.split("[-_]", name)[0] for name in (node.subsystem, card.driver))
    return frozenset({node.subsystem} if maker == driver else ())


def _folder_of(node: UdevDevice) -> str:
    """The folder of a unit, which has the unit's number in its name; "" in any other."""
    folder = (node.device_node or "").rpartition("/")[0]
    if not node.sys_path.startswith("/sys/devices/virtual/") or node.subsystem in _OF_THE_KERNEL:
        return ""
    return folder if folder[-1:].isdigit() else ""


def hid_of(node: UdevDevice) -> UdevDevice | None:
    """The HID device of a node that is not on USB; a USB device has all nodes of its HID devices."""
    if node.subsystem not in _OF_HID or node.usb_device is not None:
        return None
    return next((each for each in node.ancestors() if each.subsystem == "hid"), None)


def _made(group_by: str, node: UdevDevice, siblings: list[UdevDevice]) -> Siblings:
    if len(siblings) < 2:
        return alone(node)
    order = sorted(siblings, key=lambda each: (_only_sets_up(each), natural(each.device_node or "")))
    return Siblings(group_by, tuple(order))


def _only_sets_up(node: UdevDevice) -> bool:
    """Whether a node is there to set the others up, so that the device is not named after it."""
    return node.subsystem == "media" or node.sys_name.startswith("v4l-subdev")


def _below(above: UdevDevice, nodes: Iterable[UdevDevice]) -> Iterator[UdevDevice]:
    return (each for each in nodes if each.sys_path.startswith(f"{above.sys_path}/"))


def _is_with(node: UdevDevice, other: UdevDevice) -> bool:
    """Whether a node below the same USB device is a part of it, not of something in between."""
    return (
        not is_dangerous(other)
        and _same(other.usb_device, node.usb_device)
        and not is_stream(other)
        and not is_printer(other)
        and (node.subsystem == "media") is (other.subsystem == "media")
    )


def _same(one: UdevDevice | None, other: UdevDevice | None) -> bool:
    return one is not None and other is not None and one.sys_path == other.sys_path


def subject_of(device: UdevDevice, word: str, devices: Iterable[UdevDevice]) -> UdevDevice:
    """The device node that an operator means by `word`, which named this udev device.

    A USB device, or anything else without a device node, means the device nodes below it; its raw USB
    node is meant only by its own path. A camera means the stream that most pods want, a drive its one disk.
    Raises GenericdpError when these nodes make several devices.
    """
    has_node = device.device_node is not None
    if has_node and (device.usb_device is not device or "bus/usb/" in word):
        return device
    below = sorted(
        (each for each in devices if each.device_node and each.sys_path.startswith(f"{device.sys_path}/")),
        key=lambda each: natural(each.device_node or ""),
    )
    own = [each for each in below if each.usb_device is device] if has_node else below
    if has_node and not own:
        return device
    streams = [each for each in own if is_stream(each)]
    if streams and len({each.usb_device for each in own}) == 1:
        return streams_of(streams[0], own)[0]
    disks = [each for each in own if is_disk(each)]
    if len(disks) == 1 and all(map(is_dangerous, own)):
        return disks[0]
    if not own or len(siblings_of(own[0], own).nodes) != len(own):
        raise GenericdpError(
            f"'{for_terminal(word)}' is not a device node, and has several devices below it",
            hint=f"name one of them: {', '.join(each.device_node or '' for each in own)}",
        )
    return own[0]
