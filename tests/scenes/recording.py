r"""The text form of recorded devices: what `udevadm info --export-db` prints, and what umockdev adds to it.

A block of lines for each device, an empty line between two; a line that begins with `#` is a comment:

    P: /devices/…       its path below /sys
    N: ttyUSB0          its node below /dev
    S: serial/by-id/…   a devlink below /dev
    E: ID_BUS=usb       a property
    A: idVendor=0403    a sysfs attribute, which only umockdev writes (with `\n` at the end of the line)

All other letters are left out here.
"""

from collections.abc import Iterable, Iterator, Mapping

#: A recorded device by the letters of its lines: `E: NAME=value` is under "E".
Lines = Mapping[str, list[str]]


def blocks(text: str) -> Iterator[Lines]:
    """The recorded devices, in the order of the file."""
    for block in text.split("\n\n"):
        lines: dict[str, list[str]] = {}
        for line in block.splitlines():
            letter, colon, value = line.partition(": ")
            if colon and not line.startswith("#"):
                lines.setdefault(letter, []).append(value)
        if "P" in lines:
            yield lines


def properties_of(lines: Lines) -> dict[str, str]:
    """The properties of a recorded device."""
    return pairs(lines.get("E", ()))


def attributes_of(lines: Lines) -> dict[str, str]:
    """The recorded sysfs attributes of a device, without its number."""
    found = {name: value.removesuffix("\\n") for name, value in pairs(lines.get("A", ())).items()}
    found.pop("dev", None)
    return found


def pairs(lines: Iterable[str]) -> dict[str, str]:
    """`name=value`, a line each."""
    parts = [line.partition("=") for line in lines]
    return {name: value for name, _, value in parts}
