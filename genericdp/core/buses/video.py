"""Which node of a camera, a codec or an image processor a V4L node is.

The rules of this file:

* The kernel gives it the first index that is free among the nodes of its unit (get_index in v4l2-dev.c).
  Where one driver registers all of them in its own order, on USB and PCI, that tells them.
* On a board, and behind the image processors of Intel, a node is registered when its sensor is found. There
  it is told by what its driver calls it.
* The number of an I2C bus in such a name follows the order of arrival. Where two names differ in nothing
  else, the channels of a multiplexer tell them, or else their order.
"""

import re
from collections.abc import Sequence

from genericdp.core.buses.kernel_name import is_chip, stem_of
from genericdp.core.buses.ordinal import ordinal
from genericdp.core.device import UdevDevice

#: Buses where one driver registers all nodes of a unit, and drivers for PCI that wait for sensors.
_WITH_INDEX = frozenset({"usb", "pci"})
_OF_SENSORS = re.compile(r"(?:intel[-_])?ipu\d.*|atomisp.*")

#: The number of a bus, before the address of a chip on it: `imx219 9-0010`.
_I2C_BUS = re.compile(r"(?<![\w-])\d+-(?=[0-9a-f]{4}(?!\w))")


def is_video(own: Sequence[UdevDevice]) -> bool:
    """Whether it is about a V4L node; `own` is as for `place_of`."""
    return bool(own) and own[0].subsystem == "video4linux"


def place_of(own: Sequence[UdevDevice], unit: UdevDevice) -> list[str]:
    """The place of a V4L node within a unit.

    own  the device and its ancestors up to the unit, without it, nearest first
    """
    if has_index(unit):
        return index_of(own)
    name = "-".join(_I2C_BUS.sub("", _name(own[0])).split())
    return [*([name] if name else []), *(stem_of(each) for each in own[1:] if is_chip(each))]


def has_index(unit: UdevDevice) -> bool:
    """Whether the index of a V4L node is that of a part of its unit, not a number of arrival."""
    return unit.subsystem in _WITH_INDEX and _OF_SENSORS.fullmatch(unit.driver) is None


def index_of(own: Sequence[UdevDevice]) -> list[str]:
    """The place of a V4L node within a unit by its index alone, as earlier releases told it."""
    return ordinal(own, "index", "index")


def order_of(device: UdevDevice) -> str:
    """What decides the order of siblings: of V4L nodes their names, where these have numbers of I2C buses."""
    name = _name(device) if device.subsystem == "video4linux" else ""
    return f"{name} {device.sys_path}" if _I2C_BUS.search(name) else device.sys_path


def _name(device: UdevDevice) -> str:
    return device.attributes.get("name", "")
