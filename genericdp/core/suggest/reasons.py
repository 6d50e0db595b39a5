"""Why a suggested rule is written as it is, in sentences for its comments."""

from collections.abc import Iterator, Sequence

from genericdp.core.inventory.place import unit_of
from genericdp.core.suggest.clues import By, serial_of
from genericdp.core.suggest.siblings import Siblings

#: Serial numbers that makers give to all their units.
_SHARED = frozenset({"0123456789ABCDEF", "123456789ABCDEF", "1234567890", "123456789", "12345678"})

#: More names than this do not help.
_NAMES = 4


def reasons(group: Siblings, by: By, rivals: tuple[str, ...]) -> Iterator[str]:
    """A paragraph for each thing that an operator should know about the rule."""
    unit = unit_of(group.nodes[0])
    usb = unit if unit.subsystem == "usb" else None
    serial = None if usb is None else serial_of(usb)
    match by:
        case By.SERIAL:
            yield f"By serial number: the rule finds this unit wherever it is{' plugged in' if usb else ''}."
            if serial is not None and _is_shared(serial):
                yield (
                    f"Many makers give every unit the serial number '{serial}'. A second unit of this "
                    "model would match, too; the two ids would then differ by port."
                )
        case By.MODEL if usb is not None:
            yield (
                "By model: it has no serial number, and no other unit of the model is plugged in. A "
                "second one would match, too; to exclude it, add "
                f"port = \"{unit.sys_name.partition('-')[2]}\" to 'usb'."
            )
        case By.MODEL:
            yield "By model: this machine has only one."
        case By.PORT | By.PLACE if usb is not None:
            told_by = "port" if by is By.PORT else "controller and port"
            tell, distinguish = ("tells", "distinguishes") if by is By.PORT else ("tell", "distinguish")
            twin = f"its twin ({listed(rivals)})" if rivals else "others"
            if serial is None:
                why = f"it has no serial number, so only the {told_by} {distinguish} it from {twin}"
            else:
                why = f"{twin} has the same serial number, so only the {told_by} {tell} the two apart"
            yield (
                f"By {told_by}: {why}. Any unit of this model matches there, and this one does not match "
                "at another port."
            )
        case By.PORT | By.PLACE:
            yield "By its place in the machine: any device there matches."
        case By.KIND:
            yield "By its kind: this machine has only one."
        case By.INTERFACE:
            yield "By the name of its network interface."
        case By.NAME:
            yield "By name: the kernel always gives it the same name."
        case By.PATH:
            yield "By its path: udev does not know it, nor which unit is behind it."
        case _:
            yield (
                f"CAUTION: nothing permanent distinguishes it from {listed(rivals)}. The rule uses the name "
                "that the kernel has given it for now; after a re-plug or reboot, another device may have "
                "that name."
            )
    if len(group.nodes) > 1:
        yield from _of_groups(group)


def _of_groups(group: Siblings) -> Iterator[str]:
    usb = group.nodes[0].usb_device
    text = f"A container gets these {len(group.nodes)} nodes together."
    if usb is not None and usb.device_node is not None:
        text += (
            f" The raw USB node {usb.device_node} is not among them; programs that use libusb need only "
            f"that one: 'genericdp suggest {usb.device_node}'."
        )
    yield text


def _is_shared(serial: str) -> bool:
    serial = serial.strip().upper()
    return serial in _SHARED or len(set(serial.lstrip("0"))) <= 1


def listed(names: Sequence[str], most: int = _NAMES) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
