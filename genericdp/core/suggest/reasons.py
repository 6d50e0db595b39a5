"""Why a suggested rule is written as it is, in sentences for its comments."""

from collections.abc import Iterable, Iterator, Sequence

from genericdp.core.device import UdevDevice
from genericdp.core.explain.selection import WITHOUT_HARDWARE, is_hub, why_left_out
from genericdp.core.inventory.place import locate, unit_of
from genericdp.core.suggest.cautions import what_it_can_do
from genericdp.core.suggest.clues import By
from genericdp.core.suggest.fixed_names import is_configured, is_made
from genericdp.core.suggest.serials import raw_serial_of, serial_of, why_no_serial
from genericdp.core.suggest.units.camera import has_pictures, is_stream
from genericdp.core.suggest.units.companions import is_drawn_by_nvidia, is_of_nvidia
from genericdp.core.suggest.units.disks import is_card, scsi_device_of, what_of_disk, who_attaches
from genericdp.core.suggest.units.firmware import loaded_of
from genericdp.core.suggest.units.siblings import Siblings

#: For each interface of a USB device that a driver has: its sys path, the driver, and what that made of it.
Drivers = Sequence[tuple[str, str, tuple[str, ...]]]

#: More names than this do not help.
_NAMES = 4


def reasons(
    group: Siblings,
    by: By,
    rivals: tuple[str, ...],
    *,
    beside: tuple[str, ...] = (),
    rest: tuple[str, ...] = (),
    consoles: tuple[str, ...] = (),
    others: tuple[str, ...] = (),
) -> Iterator[str]:
    """A paragraph for each thing that an operator should know about the rule."""
    first = group.nodes[0]
    unit = unit_of(first)
    if group.is_one_timer:
        yield (
            "By name: the kernel gives both names to the first timer that it finds, so one container gets "
            "both."
        )
    elif unit.subsystem == "usb" and by in _OF_USB:
        yield _OF_CARD if by is By.SERIAL and is_card(first) else _of_usb(unit, by, rivals)
    else:
        yield _of_any(first, by, rivals, others)
    if of_disk := what_of_disk(first):
        yield of_disk
    if group.group_by == "node" and by is not By.SERIAL and (what := locate(first).untold):
        what = what if what != "disk" or first.subsystem == "block" else "device"
        yield (
            f"CAUTION: nothing shows which {what} it is, so it is not offered until 'identity' names udev "
            "properties that do."
        )
    if is_of_nvidia(first):
        yield f"A container gets device nodes only. It also needs the libraries of the driver: {_NVIDIA}."
    if is_drawn_by_nvidia(first):
        yield (
            "NVIDIA's libraries use other nodes of the GPU, such as /dev/nvidia0. udev does not know them, "
            "so nothing shows which of them is that of this GPU: 'genericdp suggest /dev/nvidia0', or "
            f"{_NVIDIA}."
        )
    if attached_by := who_attaches(first):
        yield f"CAUTION: the rule takes whatever {attached_by} attaches there."
    if loaded := loaded_of(unit):
        yield (
            f"Its USB ids change when {loaded.what} loads its firmware. The rule takes it before and after "
            f"({', '.join(loaded.ids)}), and its id is that of the port."
        )
    if is_for_libusb(first):
        yield (
            "Its path changes each time it is plugged in, and libusb opens it by that path. With answer = "
            '"cdi", a container that starts again gets the new path, if the container runtime reads CDI.'
        )
    if any(node.properties.get("ID_INPUT_KEYBOARD") == "1" for node in group.nodes):
        yield (
            "CAUTION: the host's console reads what is typed there, too, unless the program grabs the device."
        )
    if is_stream(first) and not has_pictures(first):
        yield "CAUTION: it gives data about the pictures of the camera, not the pictures."
    if why_left_out(first) == WITHOUT_HARDWARE:
        yield "CAUTION: the kernel has found no hardware at this port; reads and writes fail."
    for console in consoles:
        yield (
            "CAUTION: it is a console of the kernel, which writes its messages there, and a login may wait "
            f"there. To free it, remove console={console} from the kernel's command line and disable "
            f"serial-getty@{console}.service."
        )
    if can := next(filter(None, map(what_it_can_do, group.nodes)), ""):
        yield f"CAUTION: it belongs to the host as a whole. A container with it can {can}."
    if len(group.nodes) > 1 and not group.is_one_timer:
        yield from _of_groups(group)
    yield from _of_rest(rest)
    if beside:
        belong = "it belongs" if len(beside) == 1 else "they belong"
        yield (
            "Programs that set the camera up themselves, such as libcamera, also open the nodes of its "
            f"sensor and of what is in between. The rule does not take {listed(beside)}: the kernel does "
            f"not say to which camera {belong}."
        )


def drivers_without_node(
    drivers: Drivers, nodes: Iterable[UdevDevice]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The drivers of a USB device that made no device node of it, and what they made."""
    paths = [node.sys_path for node in nodes]
    with_node = {name for path, name, _ in drivers if any(each.startswith(f"{path}/") for each in paths)}
    without = dict.fromkeys(name for _, name, _ in drivers if name not in with_node)
    return tuple(
        (name, tuple(each for _, driver, made in drivers if driver == name for each in made))
        for name in without
    )


def of_drivers(drivers: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    """A caution for each kernel driver that uses a USB device without a device node.

    drivers  (driver, the names of what it makes instead, such as `can0`)
    """
    for name, made in drivers:
        makes = f"uses it for {listed(made)}. A container cannot get that, because it has no device node"
        yield (
            f"CAUTION: the kernel driver {name} {makes if made else 'uses it'}. A program that opens the "
            "raw USB node takes the device away from that driver."
        )


def is_for_libusb(node: UdevDevice) -> bool:
    """Whether it is the raw node of a USB device, which libusb opens. Nobody opens that of a hub."""
    return node.usb_device is node and not is_hub(node)


_NVIDIA = "see examples/families/nvidia.toml"
_OF_CARD = "By serial number: the rule finds this card in whichever reader it is."
_OF_USB = frozenset({By.SERIAL, By.MODEL, By.PORT, By.PLACE})


def _of_usb(usb: UdevDevice, by: By, rivals: tuple[str, ...]) -> str:
    port = usb.sys_name.partition("-")[2]
    why_none = why_no_serial(usb)
    no_serial = "it has no serial number"
    if why_none:
        no_serial = f"its serial number, '{raw_serial_of(usb)}', tells nothing ({why_none})"
    match by:
        case By.SERIAL:
            return "By serial number: the rule finds this unit wherever it is plugged in."
        case By.MODEL:
            exclude = f"; to exclude it, add port = \"{port}\" to 'usb'" if port else ""
            return (
                f"By model: {no_serial}, and no other unit of the model is plugged in. A second one would "
                f"match, too{exclude}."
            )
        case _:
            told_by = "port" if by is By.PORT else "controller and port" if port else "controller"
            tell, distinguish = ("tell", "distinguish") if " and " in told_by else ("tells", "distinguishes")
            twin = f"its twin ({listed(rivals)})" if rivals else "others"
            if serial_of(usb) is None:
                why = f"{no_serial}, so only the {told_by} {distinguish} it from {twin}"
            else:
                why = f"{twin} has the same serial number, so only the {told_by} {tell} the two apart"
            return (
                f"By {told_by}: {why}. Any unit of this model matches there, and this one does not match "
                "at another port."
            )


def _of_any(node: UdevDevice, by: By, rivals: tuple[str, ...], others: tuple[str, ...]) -> str:
    unit = unit_of(node)
    match by:
        case By.SERIAL if unit.sys_path.startswith("/sys/devices/virtual/block/"):
            return "By its UUID: the rule finds it whatever its number is."
        case By.SERIAL:
            return "By serial number: the rule finds this unit wherever it is."
        case By.TARGET:
            return "By what it leads to: the rule finds it whatever its number is."
        case By.MODEL if others:
            return (
                f"By model, and by what distinguishes it from {listed(others)}. That of a second unit of the "
                "model would match, too."
            )
        case By.MODEL:
            return (
                f"By model: this machine has no other {node.subsystem} device of the model. A second one "
                "would match, too."
            )
        case By.PLACE if "PCI_SLOT_NAME" in unit.properties and scsi_device_of(node) is None:
            return "By model and slot: another unit of the model in this slot matches, too."
        case By.PORT | By.PLACE:
            return "By its place in the machine: any device of this kind in that place matches."
        case By.LABEL:
            return "By the name that its driver gives it: this machine has only one with this name."
        case By.KIND if not unit.is_virtual:
            return (
                "CAUTION: it is numbered in the order in which such devices are made, so the rule takes any "
                "of them. This machine has only one."
            )
        case By.KIND:
            return (
                "By its kind: the kernel does not say which hardware is behind it, if any, and this machine "
                "has only one."
            )
        case By.INTERFACE:
            return "By the name of its network interface."
        case By.NAME if is_configured(node):
            return "By name: the configuration of its driver fixes it."
        case By.NAME:
            return "By name: the kernel always gives it the same name."
        case By.PATH:
            return "By its path: udev does not know it, nor which unit is behind it."
        case _:
            another = "device" if is_made(unit) else "node of the unit"
            return (
                f"CAUTION: nothing permanent distinguishes it from {listed(rivals)}. The rule uses the name "
                f"that the kernel has given it for now; after a re-plug or reboot, another {another} may "
                "have that name."
            )


def _of_groups(group: Siblings) -> Iterator[str]:
    usb = group.nodes[0].usb_device
    text = f"A container gets these {len(group.nodes)} nodes together."
    if usb is not None and usb.device_node is not None:
        text += (
            f" The raw USB node {usb.device_node} is not among them; programs that use libusb and no driver "
            f"of the kernel need that one instead: 'genericdp suggest {usb.device_node}'."
        )
    yield text


def _of_rest(rest: tuple[str, ...]) -> Iterator[str]:
    raw = next((path for path in rest if path.startswith("/dev/bus/usb/")), "")
    rest = tuple(path for path in rest if path != raw)
    if raw:
        yield f"Programs that use libusb need the raw USB node instead: 'genericdp suggest {raw}'."
    if rest:
        nodes, these = (
            ("a further device node", "it") if len(rest) == 1 else ("further device nodes", "these")
        )
        yield f"The unit has {nodes}: {listed(rest)}. For {these}: 'genericdp suggest {rest[0]}'."


def listed(names: Sequence[str], most: int = _NAMES) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
