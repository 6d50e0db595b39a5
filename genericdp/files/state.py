"""What must outlive a restart: `core.memory.Memory` in a small JSON file of the state directory.

The rules of this file:

* Written only when what it says changed, whole, by rename: a power cut meanwhile leaves the old or the new
  one, a power cut afterwards the new one.
* A file that cannot be understood is reported and kept aside; the daemon starts with an empty memory.
* When a device left, or an id was withdrawn, is not saved: after a restart its grace begins anew, which
  errs on the safe side.
"""

import errno
import json
import os
import stat
from contextlib import suppress
from typing import Any

from genericdp.core.inventory.memory import Memory, Remembered
from genericdp.core.inventory.offer import Device, Health
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.withdrawn import Shares, Withdrawn
from genericdp.errors import GenericdpError

_VERSION = 1

#: No NUMA node has a larger number, no `replicas` may have one.
_LARGEST = 10_000

_LONGEST_FILE_NAME = 255

_WITHOUT_IT = "without it, ids of twins and of absent devices do not outlive a reboot"


class _OtherVersionError(ValueError):
    """What an upgrade that was taken back leaves."""


class StateFile:
    """`memory.json` in the state directory."""

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, "memory.json")
        self._saved = ""
        self._broken = False

    def load(self) -> Memory:
        """The memory as it was saved; empty without a file. Raises GenericdpError for a broken one,
        which the next `save` keeps aside.
        """
        try:
            text = _read(self.path)
            memory = _parse(json.loads(text))
        except FileNotFoundError:
            return Memory()
        except OSError as error:
            self._broken = True
            raise GenericdpError(f"cannot read '{self.path}': {error.strerror}", hint=_WITHOUT_IT) from error
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            self._broken = True
            why = str(error) if isinstance(error, _OtherVersionError) else f"is broken: {error!r}"
            raise GenericdpError(
                f"nothing is remembered, '{self.path}' {why}",
                hint=f"the daemon keeps it as '{self.path}.broken' and begins anew",
            ) from error
        self._saved = text
        return memory

    def save(self, memory: Memory) -> None:
        """Save the memory if it differs from what was saved last. Raises GenericdpError."""
        text = json.dumps(_render(memory), indent=1, sort_keys=True)
        if text == self._saved:
            return
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            with open(f"{self.path}.new", "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if self._broken:
                with suppress(FileNotFoundError):
                    os.replace(self.path, f"{self.path}.broken")
                self._broken = False
            os.replace(f"{self.path}.new", self.path)
            _sync(os.path.dirname(self.path))
        except OSError as error:
            raise GenericdpError(
                f"cannot save '{self.path}': {error.strerror}",
                hint=_WITHOUT_IT,
            ) from error
        self._saved = text


def _sync(directory: str) -> None:
    # fsync(2): the file's own fsync says nothing about its name.
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: str) -> str:
    """The text of a file; OSError for what is none: a FIFO would keep us waiting."""
    with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read()


def _render(memory: Memory) -> dict[str, Any]:
    return {
        "version": _VERSION,
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


def _parse(saved: Any) -> Memory:
    if saved["version"] != _VERSION:
        raise _OtherVersionError(
            f"is of another genericdp: it has the format {saved['version']!r}, this one reads {_VERSION}"
        )
    ties = {_text(unit): _text(port) for unit, port in saved["ties"].items()}
    devices = {id_: _parse_device(_name(id_), entry) for id_, entry in saved["devices"].items()}
    return Memory(devices, ties, _parse_shares(saved))


def _parse_shares(saved: Any) -> Shares:
    replicas = {_name(name): _count(number) for name, number in saved.get("replicas", {}).items()}
    withdrawn = {
        _name(id_): Withdrawn(_name(entry["resource"]), _name(entry["device"]))
        for id_, entry in saved.get("withdrawn", {}).items()
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
        raise TypeError(f"{value!r} is no text")
    return value


def _name(value: Any) -> str:
    """Of a device, an id or a resource: they go to the kubelet, whatever a device called itself."""
    name = _text(value)
    if not name.isascii() or not name.isprintable():
        raise ValueError(f"{name!r} is no name")
    return name


def _count(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or not 0 <= value <= _LARGEST):
        raise TypeError(f"{value!r} is no number from 0 to {_LARGEST}")
    return value


def _link(value: Any) -> str:
    name = _name(value)
    if "/" in name or name.startswith(".") or not name or len(name) > _LONGEST_FILE_NAME:
        raise ValueError(f"{name!r} is no link name")
    return name
