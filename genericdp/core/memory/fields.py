"""What a saved memory may say, value by value.

The rules of this file:

* A value that this program cannot have written raises TypeError or ValueError.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from genericdp.core.buses.port import Dock
from genericdp.core.inventory.naming.ids import may_be_device, may_be_id, may_be_id_of
from genericdp.core.inventory.past import Twin
from genericdp.core.inventory.place import UNKNOWN, Spot
from genericdp.core.inventory.shared import is_shared_link
from genericdp.core.rules.name import why_not_a_resource_name
from genericdp.core.usb_port import Pair, UsbPort

#: No NUMA node has a larger number, and no `replicas` may be larger.
_LARGEST = 10_000

_LONGEST_FILE_NAME = 255

#: What follows the id of a device in the name of a link.
_PLACE = re.compile(r"@[A-Za-z0-9._+:@=-]+")


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not true or false")
    return value


def items(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return value


def integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not an integer")
    return value


def count(value: Any) -> int | None:
    if value is not None and (type(value) is not int or not 0 <= value <= _LARGEST):
        raise TypeError(f"{value!r} is not a number from 0 to {_LARGEST}")
    return value


def name(value: Any) -> str:
    """Any name: none of them has anything but printable ASCII, however a device calls itself."""
    name = text(value)
    if not name.isascii() or not name.isprintable():
        raise ValueError(f"{name!r} is not a name")
    return name


def resource(value: Any) -> str:
    found = name(value)
    if why_not_a_resource_name(found):
        raise ValueError(f"{found!r} is not the name of a resource")
    return found


def device_id(value: Any) -> str:
    id_ = name(value)
    if not may_be_device(id_):
        raise ValueError(f"{id_!r} is not the id of a device")
    return id_


def any_id(value: Any) -> str:
    """An id of any device or replica."""
    id_ = name(value)
    if not may_be_id(id_):
        raise ValueError(f"{id_!r} is not an id")
    return id_


def id_of(device: str, value: Any) -> str:
    """An id that the kubelet may have been told for the device: its own, or that of a replica."""
    id_ = name(value)
    if not may_be_id_of(device, id_):
        raise ValueError(f"{id_!r} is not an id of {device!r}")
    return id_


def link(value: Any) -> str:
    """The name of a link of any device."""
    return link_of(device_id(name(value).partition("@")[0]), value)


def shared_link(value: Any) -> str:
    found = name(value)
    if not is_shared_link(found):
        raise ValueError(f"{found!r} is not a link to a shared node")
    return found


def link_in_answer(device: str, value: Any) -> str:
    """The name of a link that an answer may name for the device: one of its own, or that of a shared node."""
    found = name(value)
    return found if is_shared_link(found) else link_of(device, found)


def link_of(device: str, value: Any) -> str:
    """The name of a link of the device: its id, or its id with a place."""
    found = name(value)
    if "/" in found or found.startswith(".") or not found or len(found) > _LONGEST_FILE_NAME:
        raise ValueError(f"{found!r} is not a link name")
    if not found.startswith(device) or (found != device and _PLACE.fullmatch(found, len(device)) is None):
        raise ValueError(f"{found!r} is not a link of {device!r}")
    return found


def models(value: Any, count: int) -> tuple[str, ...]:
    """The models of the units at so many spots; () where none of them is known."""
    found = tuple(text(each) for each in items(value))
    if len(found) not in (0, count):
        raise ValueError(f"{len(found)} models for {count} spots")
    return found if any(found) else ()


def apart(value: Any) -> dict[str, Pair]:
    """Sockets of USB 3 with two units, by their port for USB 2."""
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    found: dict[str, Pair] = {}
    for slow, entry in value.items():
        fast, is_crossed = items(entry)
        if UsbPort.of_exact(text(slow)) is None or UsbPort.of_exact(text(fast)) is None:
            raise ValueError(f"{slow!r} or {fast!r} is not a USB port")
        found[slow] = Pair(fast, truth(is_crossed))
    return found


def twin(value: Any) -> Twin:
    """What twins have in common."""
    basis, key, model, within = (text(each) for each in items(value))
    return Twin(basis, key, model, within)


def spot(value: Any) -> Spot:
    # An earlier build also saved how many siblings there were.
    parts = items(value)
    if len(parts) not in (3, 4, 5):
        raise ValueError(f"{value!r} is not a spot")
    port, serial, within = (text(each) for each in parts[:3])
    number = integer(parts[3]) if len(parts) > 3 else 0
    if number < UNKNOWN:
        raise ValueError(f"{value!r} is not a spot")
    return Spot(port, serial, within, number)


def spots_with_models(spots: Any, its_models: Any) -> Iterable[tuple[Spot, str]]:
    """Each spot with its model, "" where none of them is known."""
    found = [*map(spot, items(spots))]
    return zip(found, models(its_models, len(found)) or repeat(""), strict=False)


def part(value: Any) -> tuple[Spot, str]:
    """A part that a pod got (`part.Part`)."""
    at, model = items(value)
    found = spot(at)
    if found.port or not found.serial:
        raise ValueError(f"{value!r} is not a part")
    return found, text(model)


def spot_with_dock(value: Any) -> tuple[Spot, Dock]:
    at, dock = items(value)
    return spot(at), Dock(*map(text, items(dock)))
