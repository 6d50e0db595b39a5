"""What is remembered of devices that ids depend on.

An id is a function of the identity alone, but for what nothing tells apart: twins, and siblings. Who came
first is remembered then.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice, takewhile
from operator import itemgetter
from typing import NamedTuple

from genericdp.core.inventory.place import Spot
from genericdp.core.usb_port import At

#: Ties of twins: the plain id of a unit, or a link that says nothing but its serial number -> the exact port
#: of the unit that has it, "" if none has it because nobody can tell which one had it.
Ties = Mapping[str, str]


#: The `within` of what a whole unit would have in common with a twin. No device node has this place.
WHOLE = ""


class Twin(NamedTuple):
    """What units have in common that are twins, whatever resources they are in.

    basis   what shows that they are: "serial", or the properties that rules name (`identity.basis_of`)
    key     the serial number, or the values
    model   see `port.model_of`; "" if they are not on USB
    within  the place of a device node in each of them, in full; WHOLE for whatever they have
    """

    basis: str
    key: str
    model: str
    within: str


#: What twins have in common that have been seen side by side.
Twins = frozenset[Twin]

NO_TWINS: Twins = frozenset()


def as_whole(twin: Twin) -> Twin:
    """What the units of which these are nodes would have in common."""
    return twin._replace(within=WHOLE)


def with_wholes(twins: Iterable[Twin | None]) -> Twins:
    """What nodes would have in common with twins, and their units."""
    found = [twin for twin in twins if twin is not None]
    return frozenset([*found, *map(as_whole, found)])


#: Of how many siblings the ids are looked for that pods hold and of which nothing is known.
SIBLING_LIMIT = 64

#: The incarnation of what is no longer there. No inode has this number.
_GONE = -1

#: The incarnation of one that may be any of several that are there.
_MIXED = -2


class Seen(NamedTuple):
    """The directory in sysfs where a sibling is, or where it was when it was last seen.

    order        `order_of` it, which ends in its sys path; "" if it was not seen since its number was a guess
    incarnation  the inode of that directory, if it is there
    is_late      whether its number does not say where it comes in the order. So when several come together,
                 nobody can tell which of them it is
    model        of its unit (`port.model_of`), if that is on USB; "" if it is not known
    """

    order: str = ""
    incarnation: int = _GONE
    is_late: bool = False
    model: str = ""

    @property
    def is_there(self) -> bool:
        return self.incarnation not in (_GONE, _MIXED)

    @property
    def is_guess(self) -> bool:
        """Whether it was not seen since its number was a guess: it may be any of those that are not there."""
        return self.is_late and not self.order

    @property
    def is_mixed(self) -> bool:
        """Whether it may be one of several that have come in another order, all of which are in doubt."""
        return self.incarnation == _MIXED

    @property
    def mixed(self) -> "Seen":
        return self._replace(incarnation=_MIXED)

    @property
    def elsewhere(self) -> "Seen":
        """The same at a port that its unit has left. Which one it is may have become unknown since."""
        return self if self.is_mixed else self.gone

    @property
    def gone(self) -> "Seen":
        """The same after it has left, or before it is found again."""
        return self._replace(incarnation=_GONE)


#: The spot that siblings share -> the number of each, with where it was seen.
Siblings = Mapping[Spot, Mapping[int, Seen]]


class Doubtful(NamedTuple):
    """Siblings of which nobody could tell which ones they were, when they were last seen.

    unit   the sys path and the inode of their unit
    nodes  their own, as in `Seen`
    """

    unit: tuple[str, int]
    nodes: frozenset[tuple[str, int]]


class Value(NamedTuple):
    """What the id of a device says of properties, in any resource; nothing if they do not identify it.

    basis  the names of the properties (`identity.basis_of`)
    hash   a hash of their values (`Device.key_hash`)
    """

    basis: str = ""
    hash: str = ""


def value_of(basis: str, value_hash: str) -> Value:
    """What an id says of properties, if it is made of any."""
    return Value(basis, value_hash) if value_hash else Value()


class Known(NamedTuple):
    """What is remembered of the device node with a number.

    sys_path  where it is, "" if it has left or was last seen before a restart
    node      which one that is there, as the port of `spot_of_node`; "" without a path
    held      the devices that have or had it and that a pod may hold, by id
    ids       all devices that have or had it, each with what its id says of properties
    is_there  whether one of them has it, as far as is known; otherwise, it had it before it moved here
    models    those of the units there, if they are on USB; "" is one that is not known
    """

    sys_path: str
    node: str
    held: frozenset[str] = frozenset()
    ids: Mapping[str, Value] = {}
    is_there: bool = True
    models: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Past:
    """What is remembered.

    ties         which of several twins has the plain ids
    known_ports  unit -> exact port where it was last seen, which tells the first of two twins
    siblings     the numbers of siblings of remembered devices
    doubtful     those of which nobody could tell which ones they were, by the spot that they share
    known_at     the numbers of remembered devices at a spot that siblings share
    alike        the spots that siblings share where devices are remembered with the same place, and with the
                 same "serial" number, exact "port", "dock" (its serial number, and the port there), or "id",
                 or with "any serial" number. The arguments are this word, what it stands for, and the place
    spots_of     where the nodes of a device are or were, by its id
    port_of      the exact port of a remembered device, by its id; "" for any other
    port_at      the exact port of the node that a remembered link leads to, or did if just one was at one of
                 these spots, or just one with the same serial number and place; "" for any other
    leads_elsewhere  whether a remembered link belongs to another node than the one at a spot: a pod got that
                 node under another link, or the link led to another serial number, or to another model at
                 another port
    given_model  the model of the unit for which a pod got a link or, without a pod, to which it leads; "" if
                 that is not known
    at           what is remembered at ports on USB
    unknown      the devices that pods hold and of which nothing is known but the id
    of_several   those of them that had siblings: the links say so that a pod got, or they were seen
    twins        what twins have in common that have been seen side by side
    bases        what the ids of remembered devices are made of
    unread       the paths of what cannot be read, and of which nothing is known in this look
    unoffered    the spots that siblings share where pods got what is not offered under its id now
    held         the devices that pods may hold, by id
    """

    ties: Ties = field(default_factory=dict)
    known_ports: Ties = field(default_factory=dict)
    siblings: Siblings = field(default_factory=dict)
    doubtful: Mapping[Spot, Doubtful] = field(default_factory=dict)
    known_at: Callable[[Spot], Mapping[int, Known]] = lambda _: {}
    alike: Callable[..., Collection[Spot]] = lambda *_: ()
    spots_of: Callable[[str], Sequence[Spot]] = lambda _: ()
    port_of: Callable[[str], str] = lambda _: ""
    port_at: Callable[[str, Collection[Spot]], str] = lambda *_: ""
    leads_elsewhere: Callable[[str, Spot, str], bool] = lambda *_: False
    given_model: Callable[[str], str] = lambda _: ""
    at: At = field(default_factory=At)
    unknown: Collection[str] = frozenset()
    of_several: frozenset[str] = frozenset()
    twins: Twins = NO_TWINS
    bases: Collection[str] = frozenset()
    unread: Collection[str] = frozenset()
    unoffered: Collection[Spot] = frozenset()
    held: frozenset[str] = frozenset()

    @property
    def at_now(self) -> At:
        """What is remembered at ports on USB, and what cannot be read there."""
        return replace(self.at, unread=self.unread)

    @cached_property
    def beginnings(self) -> Collection[str]:
        """What the ids of which nothing is known say before their hashes."""
        return frozenset(id_.rpartition("_")[0] for id_ in self.unknown)


NO_PAST = Past()


def with_twins(past: Past, twins: Twins) -> Past:
    """What is remembered, with these twins that have just been seen side by side."""
    return past if twins <= past.twins else replace(past, twins=past.twins | twins)


def lost_among(spelled: Callable[[int], str], past: Past) -> tuple[str, ...]:
    """The ids of a device and its siblings that pods hold and of which nothing is known.

    spelled  the id that one of them has, by its rank
    """
    if not past.unknown:
        return ()
    first, second = spelled(0), spelled(1)
    # Those of siblings differ only in their hashes. Most devices have nothing to do with what is lost.
    if first not in past.unknown and second.rpartition("_")[0] not in past.beginnings:
        return ()
    return tuple(id_ for id_ in map(spelled, range(SIBLING_LIMIT)) if id_ in past.unknown)


def untold_among(
    siblings: Mapping[str, Sequence[Spot]],
    known: Mapping[str, Sequence[Spot]],
    count: int,
    spelled: Callable[[int], str],
    past: Past,
) -> Mapping[str, Sequence[str]]:
    """Those of siblings that may be what pods hold unbeknown, each with the ids that such pods have.

    siblings  the id of each -> where it is; `count` is how many there may be
    known     see `seated`
    """
    lost = lost_among(spelled, past)
    is_anonymous = any(spot.is_anonymous for spots in siblings.values() for spot in spots)
    is_alone = count == 1 and not is_anonymous and past.of_several.isdisjoint(lost)
    if not lost or (is_alone and lost == (spelled(0),)):
        return {}
    return {id_: lost for id_, spots in siblings.items() if not {*spots} & {*known.get(id_, ())}}


def seated(
    siblings: Sequence[Sequence[Spot]], unit: str, count: int, spelled: Iterator[str], past: Past
) -> tuple[Sequence[str], Mapping[str, Sequence[Spot]], frozenset[str]]:
    """The ids of siblings at these spots of a unit, and all that they may have, with what is remembered.

    And those of which it depends on pods who gets which: the same sibling is remembered under several, as
    after an edit. It keeps one that a pod holds if that had all of it, or else the first one. The other
    siblings get what is left of the first `count`. `spelled` are the ids, one after the other without end.
    """
    at = {spot: index for index, spots in enumerate(siblings) for spot in spots}
    known = _remembered(unit, at, count, spelled, past)
    first = frozenset(islice(known, count))
    claims = [index for id_ in first for index in {at[spot] for spot in known[id_] if spot in at}]
    rivals = first if len({*claims}) < len(claims) else frozenset()
    kept = {id_ for id_ in rivals & past.held if any(map({*known[id_]}.issuperset, siblings))}
    ids: dict[int, str] = {}
    for id_ in sorted(known, key=lambda id_: id_ not in kept):
        index = next((at[spot] for spot in known[id_] if spot in at and at[spot] not in ids), None)
        if index is not None:
            ids[index] = id_
    taken = {*ids.values()}
    seats = {id_: spots for id_, spots in known.items() if id_ in first or id_ in taken}
    free = (id_ for id_ in seats if id_ not in taken)
    return [ids.get(index) or next(free) for index in range(len(siblings))], seats, rivals


def _remembered(
    unit: str, at: Collection[Spot], count: int, spelled: Iterator[str], past: Past
) -> Mapping[str, Sequence[Spot]]:
    """The first `count` ids of siblings, and those after them that are remembered, each with its spots."""
    found = {id_: past.spots_of(id_) for id_ in islice(spelled, count)}
    if unit not in past.known_ports or (count == 1 and any(spot in at for spot in chain(*found.values()))):
        return found
    # Those that had the first ids may have left since, and may even be forgotten.
    return found | dict(takewhile(itemgetter(1), ((id_, past.spots_of(id_)) for id_ in spelled)))
