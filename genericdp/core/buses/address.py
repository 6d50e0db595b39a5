"""What tells a unit that is plugged in nowhere: a volume, a target of iSCSI, a wireless device."""

from typing import NamedTuple

from genericdp.core.fillers import why_filler


class Address(NamedTuple):
    """What tells a unit from all others, wherever it is.

    exact     different for any two units of the node. It is saved, so its form must not change
    readable  for people
    serial    the serial number of the unit, "" when it has none
    is_given  whether somebody has named it, and may name it otherwise while it is in use
    """

    exact: str
    readable: str
    serial: str = ""
    is_given: bool = False


def telling(value: str) -> str:
    """A value that a bus gives, on one line; "" if it is one that tells no unit from another."""
    text = "-".join(value.split())
    return "" if why_filler(text.removeprefix("0x")) else text
