"""What tells a unit that is plugged in nowhere: a volume, a target of iSCSI, a wireless device."""

from typing import NamedTuple

from genericdp.core.fillers import why_filler


class Address(NamedTuple):
    """What tells a unit from all others, wherever it is.

    exact     different for any two units of the node. It is saved, so its form must not change
    readable  for people
    serial    the serial number of the unit, "" when it has none
    """

    exact: str
    readable: str
    serial: str = ""


def telling(value: str) -> str:
    """A value that a bus gives, on one line; "" if it is one that tells no unit from another."""
    text = "-".join(value.split())
    return "" if why_filler(text.removeprefix("0x")) else text
