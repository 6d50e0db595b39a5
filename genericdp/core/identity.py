"""Device ids: readable, at most 63 characters, unique on the node, a function of identity alone.

The form of an id:  NAME _ KEY [. PLACE]            ftdi_A50285BI     camera_7F3A.index1
             or:    NAME _ SHORTENED _ HASH         modem_port-1.4_q3kd7hvxza

The second form is taken when the first would be too long, would have to leave characters out, or
could be read in two ways. `_` never occurs inside a part of the first form and the hash covers the
whole identity, so two identities never share an id.

Twins are units that claim the same serial number. The first one keeps the plain id and is tied to
its port from the moment the second one appears; ties are remembered for ever (`Ties`). Any other
unit with that serial number has its port in its id.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from genericdp.core.device import UdevDevice
from genericdp.core.hostile import for_id
from genericdp.core.place import Port, place_of, port_of, serial_of, unit_of

#: The comment in the device plugin API allows 63 characters for Device.ID.
ID_LIMIT = 63

#: What ties twins: the plain id of a unit -> the exact port of the unit that has it.
Ties = Mapping[str, str]

#: Room for the number of a replica: a dot and five digits.
REPLICA_ROOM = 6

_HASH_LENGTH = 10
_PLAIN_NAME = re.compile(r"[A-Za-z0-9.-]+")
_PLAIN_PART = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """What a device is, whatever the kernel calls it today.

    basis     "serial", "port", "name" or "property": what `key` is
    key       the serial number, port, kernel name or property values, exactly as found
    readable  the same for people; equal to `key` when nothing had to be left out
    place     the place within the unit, "" for all of it
    port      where the unit is connected
    order     only for siblings that nothing else tells apart
    """

    basis: str
    key: str
    readable: str
    place: str
    port: Port
    order: str = field(compare=False, default="")


class UnidentifiedError(LookupError):
    """The device lacks a property that the rule's identity names."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def identify(subject: UdevDevice, wanted: str | tuple[str, ...], properties: Mapping[str, str]) -> Identity:
    """The identity of the device that `subject` stands for: a node, a USB device or a parent.

    `wanted` is the rule's identity; `properties` are those that a list of names is looked up in.
    Raises UnidentifiedError when one of them is missing.
    """
    unit = unit_of(subject)
    port = port_of(unit)
    place = place_of(subject)
    if isinstance(wanted, tuple):
        values = [_property(properties, name) for name in wanted]
        key = values[0] if len(values) == 1 else "\0".join(values)
        return Identity("property", key, "-".join(values), "", port, subject.sys_path)
    serial = serial_of(subject) if wanted == "serial" else None
    if serial is not None:
        return Identity("serial", serial, serial, place, port, subject.sys_path)
    basis = "name" if port.exact == unit.sys_name else "port"
    return Identity(basis, port.exact, port.readable, place, port, subject.sys_path)


def identity_of_group(value: str, subject: UdevDevice) -> Identity:
    """The identity of a group that a property's value holds together: the value."""
    return Identity("property", value, value, "", port_of(unit_of(subject)), subject.sys_path)


def _property(properties: Mapping[str, str], name: str) -> str:
    value = properties.get(name)
    if not value:
        raise UnidentifiedError(name)
    return value


def device_id(resource: str, identity: Identity, domain: str, *, qualifier: str = "") -> str:
    """The id of a device of a resource (full name). `qualifier` tells twins or siblings apart.

    At most ID_LIMIT - REPLICA_ROOM characters of `[A-Za-z0-9._-]`. Names below `domain`, the one
    that goes without saying, may stand in an id as they are.
    """
    prefix, _, short = resource.partition("/")
    place = for_id(identity.place)
    readable = for_id(identity.readable)
    plain = (
        prefix == domain
        and not qualifier
        and place == identity.place
        and readable == identity.key
        and _PLAIN_NAME.fullmatch(short) is not None
        and _PLAIN_PART.fullmatch(readable) is not None
    )
    text = f"{short}_{readable}" + (f".{place}" if place else "")
    if plain and len(text) <= ID_LIMIT - REPLICA_ROOM:
        return text
    whole = f"{resource}\0{identity.basis}\0{identity.key}\0{identity.place}\0{qualifier}"
    digest = hashlib.sha256(whole.encode("utf-8", "surrogateescape")).digest()
    mark = base64.b32encode(digest).decode("ascii").lower()[:_HASH_LENGTH]
    name = for_id(short.replace("_", "-"))[:20].rstrip("-.")
    room = ID_LIMIT - REPLICA_ROOM - len(name) - len(mark) - 2
    shown = "-".join(part for part in (readable, place) if part).replace(".", "-")
    return f"{name}_{shown[:room].strip('-')}_{mark}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who is called what.

    ids     an id for each identity, in their order
    units   the plain id of the unit that each belongs to: what twins have in common
    ties    unit -> exact port of the one that has the plain ids
    unsure  the ids of siblings that nothing but their order tells apart
    """

    ids: tuple[str, ...]
    units: tuple[str, ...]
    ties: Ties
    unsure: tuple[str, ...] = ()


def assign(
    resource: str, identities: Sequence[Identity], domain: str, ties: Ties, known_ports: Ties
) -> Assignment:
    """Give each identity of one resource its id. Pure: the order of `identities` does not matter.

    ties         as an earlier Assignment gave them
    known_ports  unit -> exact port where it was last seen, so that "the first" of twins is known
    """
    units = tuple(device_id(resource, replace(each, place=""), domain) for each in identities)
    new_ties = dict(ties)
    for unit, ports in _ports_of(units, identities).items():
        if len(ports) > 1 and unit not in new_ties:
            known = known_ports.get(unit)
            new_ties[unit] = known if known in ports else min(ports)
    siblings: dict[tuple[str, str, str], list[int]] = {}
    for index, (unit, identity) in enumerate(zip(units, identities, strict=True)):
        siblings.setdefault((unit, identity.place, identity.port.exact), []).append(index)
    ids = [""] * len(identities)
    unsure: list[str] = []
    for (unit, _, port), indexes in siblings.items():
        is_twin = new_ties.get(unit, port) != port
        ordered = sorted(indexes, key=lambda index: natural(identities[index].order))
        for rank, index in enumerate(ordered):
            ids[index] = _qualified(resource, identities[index], domain, port if is_twin else "", rank)
        if len(ordered) > 1:
            unsure += [ids[index] for index in ordered]
    return Assignment(tuple(ids), units, new_ties, tuple(sorted(unsure)))


def _ports_of(units: Sequence[str], identities: Sequence[Identity]) -> dict[str, set[str]]:
    ports: dict[str, set[str]] = {}
    for unit, identity in zip(units, identities, strict=True):
        ports.setdefault(unit, set()).add(identity.port.exact)
    return ports


def _qualified(resource: str, identity: Identity, domain: str, port: str, rank: int) -> str:
    qualifier = "\0".join(part for part in (port, str(rank) if rank else "") if part)
    if not port:
        return device_id(resource, identity, domain, qualifier=qualifier)
    at_port = replace(identity, readable=f"{identity.readable}-{identity.port.readable}")
    return device_id(resource, at_port, domain, qualifier=qualifier)


@lru_cache(maxsize=8192)  # the same names are sorted after every event
def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts `ttyUSB10` behind `ttyUSB9`."""
    parts = (part for part in re.split(r"([0-9]+)", text) if part)
    return tuple((int(part), "") if part[0] in "0123456789" else (-1, part) for part in parts)
