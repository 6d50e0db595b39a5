"""Which device node an operator means by a udev device."""

from collections.abc import Iterable

from genericdp.core.device import UdevDevice
from genericdp.core.hostile import for_terminal
from genericdp.core.inventory.identity import natural
from genericdp.core.suggest.siblings import siblings_of
from genericdp.errors import GenericdpError


def subject_of(device: UdevDevice, word: str, devices: Iterable[UdevDevice]) -> UdevDevice:
    """The device node that an operator means by `word`, which named this udev device.

    A USB device, or anything else without a device node, means the device nodes below it; its raw USB
    node is meant only by its own path. Raises GenericdpError when these nodes make several devices.
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
    if not own or len(siblings_of(own[0], own).nodes) != len(own):
        raise GenericdpError(
            f"'{for_terminal(word)}' is not a device node, and has several devices below it",
            hint=f"name one of them: {', '.join(each.device_node or '' for each in own)}",
        )
    return own[0]
