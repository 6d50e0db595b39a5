"""The saved form of the memory, as JSON.

The rules of this file:

* Names in a saved memory go to the kubelet and become links. An entry that this program cannot have
  written makes the whole text unreadable.
* When a device left, or an id was withdrawn, is not saved: after a restart its grace time starts again,
  which errs on the safe side.
"""

import json
from typing import Any

from genericdp.core.inventory.memory import Memory, Remembered
from genericdp.core.inventory.offer import Device, Health
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.withdrawn import Shares, Withdrawn

_FORMAT = 1

#: No NUMA node has a larger number, and no `replicas` may be larger.
_LARGEST = 10_000

_LONGEST_FILE_NAME = 255


class UnreadableMemoryError(ValueError):
    """What was saved is not a memory of this version; the message says why, as the end of a sentence."""


def dump(memory: Memory) -> bytes:
    """The memory as JSON. Equal memories give equal bytes."""
    return json.dumps(_render(memory), indent=1, sort_keys=True).encode("ascii")


def load(saved: bytes) -> Memory:
    """The memory that was saved. Raises UnreadableMemoryError."""
    try:
        document = json.loads(saved.decode())
        version = document["version"]
        memory = _parse(document) if version == _FORMAT else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnreadableMemoryError(f"is broken: {error!r}") from error
    if memory is None:
        raise UnreadableMemoryError(
            f"has format {version!r}; this version of genericdp reads format {_FORMAT}"
        )
    return memory


def _render(memory: Memory) -> dict[str, Any]:
    return {
        "version": _FORMAT,
        "ties": dict(memory.ties),
        "devices": {
            id_: {
                "resource": known.resource,
                "unit": known.device.unit,
                "port": known.device.port,
                "hub": known.device.hub,
                "numa": known.device.numa,
                "links": sorted(known.device.links),
                "spots": [list(spot) for spot in known.device.spots],
            }
            for id_, known in memory.devices.items()
        },
        "replicas": dict(memory.shares.replicas),
        "withdrawn": {
            id_: {"resource": one.resource, "device": one.device}
            for id_, one in memory.shares.withdrawn.items()
        },
    }


def _parse(document: Any) -> Memory:
    ties = {_text(unit): _text(port) for unit, port in document["ties"].items()}
    devices = {id_: _parse_device(_name(id_), entry) for id_, entry in document["devices"].items()}
    return Memory(devices, ties, _parse_shares(document))


def _parse_shares(document: Any) -> Shares:
    replicas = {_name(name): _count(number) for name, number in document.get("replicas", {}).items()}
    withdrawn = {
        _name(id_): Withdrawn(_name(entry["resource"]), _name(entry["device"]))
        for id_, entry in document.get("withdrawn", {}).items()
    }
    return Shares(replicas, withdrawn)


def _parse_device(id_: str, entry: Any) -> Remembered:
    device = Device(
        id=id_,
        health=Health.UNHEALTHY,
        links=tuple(_link(name) for name in entry["links"]),
        numa=_count(entry["numa"]),
        unit=_text(entry["unit"]),
        port=_text(entry["port"]),
        hub=_text(entry["hub"]),
        spots=tuple(Spot(*map(_text, spot)) for spot in entry.get("spots", ())),
    )
    return Remembered(_name(entry["resource"]), device)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


def _name(value: Any) -> str:
    """The name of a device, an id or a resource: they go to the kubelet, however a device calls itself."""
    name = _text(value)
    if not name.isascii() or not name.isprintable():
        raise ValueError(f"{name!r} is not a name")
    return name


def _count(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or not 0 <= value <= _LARGEST):
        raise TypeError(f"{value!r} is not a number from 0 to {_LARGEST}")
    return value


def _link(value: Any) -> str:
    name = _name(value)
    if "/" in name or name.startswith(".") or not name or len(name) > _LONGEST_FILE_NAME:
        raise ValueError(f"{name!r} is not a link name")
    return name
