"""The number that a driver gives to a part of its unit: the second port of an adapter is `port1`."""

from collections.abc import Sequence

from genericdp.core.device import UdevDevice


def ordinal(own: Sequence[UdevDevice], attribute: str, word: str) -> list[str]:
    """The value of the nearest device that has the attribute (usb-serial keeps it on a parent).

    own  the device and its ancestors up to the unit, without it, nearest first
    """
    for each in own:
        value = each.attributes.get(attribute)
        if value is not None:
            number = value.strip().lstrip("0")
            return [word + number] if number.isascii() and number.isdigit() else []
    return []
