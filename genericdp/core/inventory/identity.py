"""Device ids: readable, at most 63 characters, unique on the node, a function of identity alone.

The form of an id:  NAME _ KEY [. PLACE]            ftdi_A50285BI     camera_7F3A.index1
             or:    NAME                            videocore, everything that a resource takes
             or:    NAME _ SHORTENED _ HASH         modem_port-1-4_q3kd7hvxza

An id takes the last form when the first two would be too long, would have to leave characters out, or
could be read in two ways. `_` never occurs inside a part of these, and the hash covers the whole identity.
So two identities never share an id.

A device chooses its serial number, and may choose the name of a virtual device. So what looks like a
name that the kernel gives is in the first form only if it is one; anything else only if it is a serial
number. Ports and properties never take the first form.

Twins are units that claim the same serial number. The first one keeps the plain id and is tied to its port
from the moment when the second one appears; ties are remembered for ever (`Ties`). Every other one has its
port in its id. So has each of them if a pod holds such an id of which nothing is known. Twins that several
resources take each keep the plain id, and are tied nevertheless: an edit may bring them together.

A filler such as `0001` is the serial number of too many units: each of them has its port in its id. One that
got the plain id from an earlier release keeps it at its port for as long as it is remembered.
"""

import base64
import hashlib
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from genericdp.core.buses.kernel_name import may_be_kernel_name
from genericdp.core.buses.port import Port, is_place
from genericdp.core.fillers import why_filler
from genericdp.core.hostile import for_id
from genericdp.core.inventory.past import NO_TWINS, Past, Ties, Twins, lost_among, seated, untold_among
from genericdp.core.inventory.place import Spot

#: The comment in the device plugin API allows 63 characters for Device.ID.
ID_LIMIT = 63

#: Room for the number of a replica: a dot and five digits.
REPLICA_ROOM = 6

_HASH_LENGTH = 10
_NAME_LENGTH = 20
_PLAIN_NAME = re.compile(r"[A-Za-z0-9.-]+")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9-]+")

#: The end of an id that has a number of a replica, or looks as if it had one.
_REPLICA = re.compile(r"(?:.*\.)?[0-9]+")

_DIGITS = re.compile(r"([0-9]+)")

#: The number of a HID in its name, see hid_add_device() in the kernel.
_HID = re.compile(r"(?<=/[0-9A-F]{4}:[0-9A-F]{4}:[0-9A-F]{4}\.)[0-9A-F]{4,8}(?=/|$)")


@dataclass(frozen=True, slots=True)
class Identity:
    """Which physical device it is, whatever the kernel calls it today.

    basis     what `key` is: "serial", "port", "name", "all", or what `basis_of` makes of names of properties
    key       the serial number, port, kernel name or property values, exactly as found
    readable  the same for people; equal to `key` when nothing had to be left out
    place     the place within the unit, "" for the unit as a whole
    port      where the unit is connected
    order     `order_of` it, used only for siblings that nothing else tells apart
    spots     where its nodes are, or were before they came to another port: by them, siblings keep their ids
    is_spread whether its parts may be at several ports: then no port, and no number of a sibling, is its own
    twins     what it would have in common with twins, whether it has any or not
    """

    basis: str
    key: str
    readable: str
    place: str
    port: Port
    order: str
    spots: tuple[Spot, ...] = field(default=(), compare=False)
    is_spread: bool = False
    twins: Twins = field(default=NO_TWINS, compare=False)

    @property
    def is_filler(self) -> bool:
        """Whether it is a serial number that tells nothing without the port."""
        return self.basis == "serial" and why_filler(self.key) != ""

    @property
    def value_hash(self) -> str:
        """What the same values of the same properties have in common in every resource; "" without any."""
        return hash_of(self.basis, self.key) if names_of(self.basis) else ""


#: The identity of everything that a resource takes, wherever its parts are.
OF_ALL = Identity("all", "all", "all", "", Port("", ""), "", is_spread=True)


class UnidentifiedError(LookupError):
    """Nothing tells which device it is; the message says why, and what to do."""


def basis_of(*properties: str) -> str:
    """The basis of what these properties identify. The same values of others may be another device's."""
    return " ".join(("property", *properties))


def names_of(basis: str) -> tuple[str, ...]:
    """The names of the properties that a basis is made of, see `basis_of`; () if it is another one."""
    kind, _, names = basis.partition(" ")
    return (*names.split(),) if kind == "property" else ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """The ids of one resource.

    ids     an id for each identity, in the same order
    units   for each identity, the plain id of its unit: twins have the same one
    alike   for each identity, the ids that it and those that it is not told from may have
    ties    unit -> exact port of the twin that has the plain ids
    unsure  the ids of siblings that only their order tells apart
    seats   the ids that siblings may have had before, each with the spots that were remembered of it
    rivals  those of them of which it depends on pods who gets which
    plain   the ids without a port that fillers may have had before, each with the port that was remembered
    doubted the ids of which nothing is known that pods hold -> those that these devices may have now
    untold  the ids of siblings that may be what pods hold -> the ids of such pods
    """

    ids: tuple[str, ...]
    units: tuple[str, ...]
    alike: Sequence[tuple[str, ...]]
    ties: Ties
    unsure: tuple[str, ...] = ()
    seats: Mapping[str, Sequence[Spot]] = field(default_factory=dict)
    rivals: Collection[str] = frozenset()
    plain: Mapping[str, str] = field(default_factory=dict)
    doubted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    untold: Mapping[str, Sequence[str]] = field(default_factory=dict)


def assign(
    resource: str,
    identities: Sequence[Identity],
    domain: str,
    past: Past,
    count_at: Callable[[Spot], int] = lambda _: 1,
) -> Assignment:
    """Give each identity of one resource its id. The order of `identities` does not matter.

    domain    the default domain of resource names: only names in it make ids of the first form
    count_at  how many numbers siblings at a spot may have
    """
    spell = Speller(resource, domain)
    units = tuple(spell.unit(identity) for identity in identities)
    ties = _tie(units, identities, past, spell)
    siblings: dict[tuple[str, str, str], list[int]] = {}
    for index, (unit, identity) in enumerate(zip(units, identities, strict=True)):
        siblings.setdefault((unit, identity.place, identity.port.exact), []).append(index)
    ids = [""] * len(identities)
    alike: list[tuple[str, ...]] = [()] * len(identities)
    unsure, rivals = list[str](), set[str]()
    seats: dict[str, Sequence[Spot]] = {}
    plain: dict[str, str] = {}
    doubted: dict[str, list[str]] = {}
    untold: dict[str, Sequence[str]] = {}
    for (unit, _, port), indexes in siblings.items():
        if len(indexes) > 1:
            indexes.sort(key=lambda index: in_path_order(identities[index].order))
        mine = [identities[index] for index in indexes]
        is_twin = ties.get(unit, port) != port and not mine[0].is_spread
        if unit not in ties and mine[0].is_filler:
            id_ = spell.device(mine[0])
            plain[id_] = past.port_of(id_)
            is_twin = plain[id_] != port
        count = max((len(mine), *(count_at(spot) for each in mine for spot in each.spots)))
        ranks = partial(spell.device, mine[0], at_port=is_twin)
        spots = [each.spots for each in mine]
        whose, seats_there = ("", 1) if mine[0].is_spread else (unit, count)
        may_have, known, among = seated(spots, whose, seats_there, map(ranks, itertools.count()), past)
        rivals |= among
        untold |= untold_among(dict(zip(may_have, spots, strict=True)), known, count, ranks, past)
        if len(known) > 1:
            seats |= known
        if len(indexes) > 1:
            unsure += may_have
        for index, id_ in zip(indexes, may_have, strict=True):
            ids[index], alike[index] = id_, tuple(known)
        lost = lost_among(partial(spell.device, mine[0]), past) if ties.get(unit) == "" else ()
        for each in (*lost, *_lost_across(mine[0], spell, past)):
            doubted.setdefault(each, []).extend(id_ for id_ in may_have if id_ not in past.unknown)
    return Assignment((*ids,), units, alike, ties, (*sorted(unsure),), seats, rivals, plain, doubted, untold)


def _lost_across(identity: Identity, spell: "Speller", past: Past) -> Iterator[str]:
    """The ids of which nothing is known that pods may have got for it at the other port of its socket."""
    port = identity.port.across if past.unknown else None
    if port is not None:
        if identity.basis == "port":
            identity = replace(identity, key=port.exact, readable=port.readable)
        other = replace(identity, port=port)
        for at_port in (False, True) if identity.basis == "port" else (True,):
            yield from lost_among(partial(spell.device, other, at_port=at_port), past)


def _tie(units: Sequence[str], identities: Sequence[Identity], past: Past, spell: "Speller") -> Ties:
    """The ties, with new ones for twins that this resource takes for the first time under this name.

    If a pod holds an id with the port of a unit, that unit has a twin, too.
    """
    ports: dict[str, set[str]] = {}
    plain, told, twins = set[str](), set[str](), set[str]()
    for unit, identity in zip(units, identities, strict=True):
        if not (identity.is_filler or identity.is_spread):
            ports.setdefault(unit, set()).add(identity.port.exact)
            if lost_among(partial(spell.device, identity), past):
                plain.add(unit)
            if lost_among(partial(spell.device, identity, at_port=True), past):
                told.add(unit)
            if not identity.twins.isdisjoint(past.twins):
                twins.add(unit)
    new = {}
    for unit, rivals in ports.items():
        are_here = len(rivals) > 1 or unit in told
        if (are_here or unit in twins) and unit not in past.ties:
            known = past.known_ports.get(unit, "")
            # If none of them is where the unit was, nobody can tell which one it is.
            is_unclear = all(map(is_place, (known, *rivals))) or (are_here and unit in plain | told)
            new[unit] = known if known in rivals or is_unclear else min(rivals)
    return {**past.ties, **new} if new else past.ties


class Speller:
    """Spells the ids of one resource: at most ID_LIMIT - REPLICA_ROOM characters of `[A-Za-z0-9._-]`."""

    def __init__(self, resource: str, domain: str) -> None:
        prefix, _, self._short = resource.partition("/")
        self._resource = resource
        self._may_be_plain = prefix == domain and _PLAIN_NAME.fullmatch(self._short) is not None
        self._name = for_id(self._short.replace("_", "-"))[:_NAME_LENGTH].rstrip("-.")

    def unit(self, identity: Identity) -> str:
        """The plain id of the unit as a whole, which does not depend on its port."""
        return self._spell(identity, "")

    def device(self, identity: Identity, rank: int = 0, *, at_port: bool = False) -> str:
        """The id of a device. That of a twin includes the port; siblings are numbered from 0."""
        return self._spell(identity, identity.place, identity.port if at_port else None, rank)

    def _spell(self, identity: Identity, place: str, port: Port | None = None, rank: int = 0) -> str:
        if self._may_be_plain and port is None and not rank:
            text = self._plain(identity, place)
            if 0 < len(text) <= ID_LIMIT - REPLICA_ROOM:
                return text
        key = identity.readable
        at_port = port.exact if port else ""
        mark = hash_of(self._resource, identity.basis, identity.key, place, at_port, rank)[:_HASH_LENGTH]
        room = ID_LIMIT - REPLICA_ROOM - len(self._name) - len(mark) - 2
        words = (for_id(key), for_id(port.readable) if port else "", for_id(place))
        shown = "-".join(filter(None, words)).replace(".", "-")
        return f"{self._name}_{shown[:room].strip('-')}_{mark}"

    def _plain(self, identity: Identity, place: str) -> str:
        """The id without a hash, however long; "" if it could be read in two ways."""
        key = identity.readable
        if identity == OF_ALL:
            return "" if _REPLICA.fullmatch(self._short) else self._short
        if (
            key == identity.key
            and identity.basis == ("name" if may_be_kernel_name(key) else "serial")
            and _PLAIN_KEY.fullmatch(key) is not None
            and for_id(key) == key
            and for_id(place) == place
            and _REPLICA.fullmatch(place) is None
        ):
            return f"{self._short}_{key}.{place}" if place else f"{self._short}_{key}"
        return ""


def hash_of(*parts: str | int) -> str:
    """SHA-256 of all parts in lower-case letters and digits, for names. It may be shortened."""
    # ascii() keeps the parts apart, which a separator would not, and is the same in every Python.
    digest = hashlib.sha256(ascii(parts).encode("ascii")).digest()
    return base64.b32encode(digest).decode("ascii").lower()


def in_path_order(order: str) -> tuple[object, ...]:
    """A sort key for `order_of`: natural, but HIDs have hexadecimal numbers (`0003:046D:C52B.000A`)."""
    return natural(_HID.sub(lambda found: str(int(found[0], 16)), order))


def natural(text: str) -> tuple[tuple[str, ...], str]:
    """A sort key that puts `ttyUSB10` after `ttyUSB9`. Different texts never have the same key."""
    parts = _DIGITS.split(text)
    for index in range(1, len(parts), 2):
        digits = parts[index].lstrip("0")
        # The longer number is the greater one. int() refuses very long ones, and a device may invent them.
        parts[index] = chr(len(digits)) + digits
    return tuple(parts), text
