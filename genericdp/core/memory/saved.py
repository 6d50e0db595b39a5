"""The saved form of the memory, as JSON.

The rules of this file:

* Names in a saved memory go to the kubelet and become links. An entry that this program cannot have
  written makes the whole text unreadable.
* When a device left, or an id was withdrawn, is not saved: after a restart its grace time starts again,
  which errs on the safe side.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from genericdp.core.inventory.identity import may_be_device, may_be_id, may_be_id_of
from genericdp.core.inventory.offer import Device, Health
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.shared import is_shared_link
from genericdp.core.memory.answered import CdiDevice
from genericdp.core.memory.held import Holding
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.withdrawn import Shares, Withdrawn
from genericdp.core.rules.name import why_not_a_resource_name

_FORMAT = 1

#: No NUMA node has a larger number, and no `replicas` may be larger.
_LARGEST = 10_000

_LONGEST_FILE_NAME = 255

#: How much of a reason is shown: it quotes what was saved.
_LONGEST_REASON = 500

#: What follows the id of a device in the name of a link.
_PLACE = re.compile(r"@[A-Za-z0-9._+:@=-]+")


class UnreadableMemoryError(ValueError):
    """What was saved is not a memory of this version; the message says why, as the end of a sentence."""


class Writer:
    """Renders one memory after another. Allocate waits for it: unchanged devices are not rendered again."""

    def __init__(self) -> None:
        self._devices: Mapping[str, Remembered] | None = None
        self._text = ""

    def dump(self, memory: Memory) -> bytes:
        """The memory as JSON. Equal memories give equal bytes."""
        if memory.devices is not self._devices:
            self._devices = memory.devices
            devices = {id_: _render_device(known) for id_, known in memory.devices.items()}
            self._text = json.dumps(devices, sort_keys=True)
        rest = json.dumps(_render_the_rest(memory), sort_keys=True)
        return f'{{"devices": {self._text}, {rest.removeprefix("{")}'.encode("ascii")


def dump(memory: Memory) -> bytes:
    """The memory as JSON. Equal memories give equal bytes."""
    return Writer().dump(memory)


def load(saved: bytes) -> Memory:
    """The memory that was saved. Raises UnreadableMemoryError."""
    try:
        document = json.loads(saved.decode())
        version = document["version"]
        memory = _parse(document) if version == _FORMAT else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = repr(error)
        if len(why) > _LONGEST_REASON:
            why = f"{why[:_LONGEST_REASON]}…"
        raise UnreadableMemoryError(f"is broken: {why}") from error
    if memory is None:
        raise UnreadableMemoryError(
            f"has format {version!r}; this version of genericdp reads format {_FORMAT}"
        )
    return memory


def _render_device(known: Remembered) -> dict[str, Any]:
    return {
        "resource": known.resource,
        "unit": known.device.unit,
        "port": known.device.port,
        "hub": known.device.hub,
        "numa": known.device.numa,
        # An earlier release would refuse links that do not begin with the id.
        "links": [link for link in known.device.links if not is_shared_link(link)],
        "shared": [link for link in known.device.links if is_shared_link(link)],
        "spots": [_render_spot(spot) for spot in known.device.spots],
        "earlier": [_render_spot(spot) for spot in known.earlier],
        "listed": known.listed,
    }


def _render_the_rest(memory: Memory) -> dict[str, Any]:
    return {
        "version": _FORMAT,
        "ties": dict(memory.ties),
        "replicas": dict(memory.shares.replicas),
        "withdrawn": {
            id_: {"resource": one.resource, "device": one.device}
            for id_, one in memory.shares.withdrawn.items()
        },
        "held": {
            id_: {
                "resource": one.resource,
                "device": one.device,
                "shared": one.shared,
            }
            for id_, one in memory.held.items()
        },
        "renamed": dict(memory.renamed),
        # An earlier release did not save it, so this tells what has not been taken over yet.
        **({} if memory.is_of_earlier_release else {"answered": _render_answered(memory)}),
    }


def _render_answered(memory: Memory) -> list[dict[str, Any]]:
    return [{"resource": one.resource, "ids": list(one.ids)} for one in memory.answered.values()]


def _parse(document: Any) -> Memory:
    ties = {_text(unit): _text(port) for unit, port in document["ties"].items()}
    devices = {id_: _parse_device(_device_id(id_), entry) for id_, entry in document["devices"].items()}
    shares = _parse_shares(document)
    for id_, one in shares.withdrawn.items():
        if id_ in devices and id_ != one.device:
            raise ValueError(f"{id_!r} is both a device and a withdrawn id")
    held = {id_: _parse_holding(id_, entry) for id_, entry in document.get("held", {}).items()}
    answered = dict(_parse_answered(entry) for entry in _list(document.get("answered", [])))
    renamed = {_link(old): _link(new) for old, new in document.get("renamed", {}).items()}
    return Memory(devices, ties, shares, held, answered, renamed, "answered" not in document)


def _parse_shares(document: Any) -> Shares:
    replicas = {_resource(name): _count(number) for name, number in document.get("replicas", {}).items()}
    withdrawn = {}
    for id_, entry in document.get("withdrawn", {}).items():
        one = Withdrawn(_resource(entry["resource"]), _device_id(entry["device"]))
        withdrawn[_id_of(one.device, id_)] = one
    return Shares(replicas, withdrawn)


def _parse_device(id_: str, entry: Any) -> Remembered:
    spots = tuple(_spot(spot) for spot in _list(entry.get("spots", [])))
    links = tuple(_link_of(id_, name) for name in _list(entry["links"]))
    shared = tuple(_shared_link(name) for name in _list(entry.get("shared", [])))
    device = Device(
        id=id_,
        health=Health.UNHEALTHY,
        links=(*links[: len(spots)], *shared, *links[len(spots) :]),
        numa=_count(entry["numa"]),
        unit=_text(entry["unit"]),
        port=_text(entry["port"]),
        hub=_text(entry["hub"]),
        spots=spots,
    )
    earlier = tuple(_spot(spot) for spot in _list(entry.get("earlier", [])))
    listed = _truth(entry.get("listed", True))
    return Remembered(_resource(entry["resource"]), device, earlier=earlier, listed=listed)


def _parse_holding(id_: str, entry: Any) -> Holding:
    holding = Holding(_resource(entry["resource"]), _device_id(entry["device"]), _truth(entry["shared"]))
    _id_of(holding.device, id_)
    return holding


def _parse_answered(entry: Any) -> tuple[str, CdiDevice]:
    device = CdiDevice(_resource(entry["resource"]), tuple(_any_id(id_) for id_ in _list(entry["ids"])))
    if not device.ids:
        raise ValueError("a CDI device of no ids")
    return device.name, device


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not true or false")
    return value


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return value


def _count(value: Any) -> int | None:
    if value is not None and (type(value) is not int or not 0 <= value <= _LARGEST):
        raise TypeError(f"{value!r} is not a number from 0 to {_LARGEST}")
    return value


def _name(value: Any) -> str:
    """Any name: none of them has anything but printable ASCII, however a device calls itself."""
    name = _text(value)
    if not name.isascii() or not name.isprintable():
        raise ValueError(f"{name!r} is not a name")
    return name


def _resource(value: Any) -> str:
    name = _name(value)
    if why_not_a_resource_name(name):
        raise ValueError(f"{name!r} is not the name of a resource")
    return name


def _device_id(value: Any) -> str:
    id_ = _name(value)
    if not may_be_device(id_):
        raise ValueError(f"{id_!r} is not the id of a device")
    return id_


def _any_id(value: Any) -> str:
    """An id of any device or replica."""
    id_ = _name(value)
    if not may_be_id(id_):
        raise ValueError(f"{id_!r} is not an id")
    return id_


def _id_of(device: str, value: Any) -> str:
    """An id that the kubelet may have been told for the device: its own, or that of a replica."""
    id_ = _name(value)
    if not may_be_id_of(device, id_):
        raise ValueError(f"{id_!r} is not an id of {device!r}")
    return id_


def _link(value: Any) -> str:
    """The name of a link of any device."""
    return _link_of(_device_id(_name(value).partition("@")[0]), value)


def _shared_link(value: Any) -> str:
    name = _name(value)
    if not is_shared_link(name):
        raise ValueError(f"{name!r} is not a link to a shared node")
    return name


def _link_of(device: str, value: Any) -> str:
    """The name of a link of the device: its id, or its id with a place."""
    name = _name(value)
    if "/" in name or name.startswith(".") or not name or len(name) > _LONGEST_FILE_NAME:
        raise ValueError(f"{name!r} is not a link name")
    if not name.startswith(device) or (name != device and _PLACE.fullmatch(name, len(device)) is None):
        raise ValueError(f"{name!r} is not a link of {device!r}")
    return name


def _render_spot(spot: Spot) -> list[str | int]:
    return list(spot if spot.of > 1 else spot[:3])


def _spot(value: Any) -> Spot:
    parts = _list(value)
    if len(parts) not in (3, 5):
        raise ValueError(f"{value!r} is not a spot")
    port, serial, within = (_text(each) for each in parts[:3])
    number, of = parts[3:] or (0, 1)
    if not (type(number) is type(of) is int and 0 <= number < of):
        raise ValueError(f"{value!r} is not a spot")
    return Spot(port, serial, within, number, of)
