"""The names of the links of a group.

The rules of this file:

* Links are named after the places of the nodes. So the link of one node never becomes that of another,
  whichever nodes are missing.
* Nodes that look alike get longer names. Among twins, only the one that was there first keeps the short name.
  If a pod got that for a model, that model's node has it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

from genericdp.core.fillers import why_filler
from genericdp.core.hostile import for_path
from genericdp.core.inventory.group import Group
from genericdp.core.inventory.identity import Identity, hash_of
from genericdp.core.inventory.part import twin_of
from genericdp.core.inventory.past import NO_TWINS, Past, Ties, Twin, Twins, as_whole, with_wholes
from genericdp.core.inventory.place import Spot, may_be_model
from genericdp.core.rules.grouping import NODE

#: How many characters of a hash tell the units of one device apart; there are few.
_MARK_LENGTH = 6

#: The same for nodes that look alike.
_LONG_MARK_LENGTH = 10


@dataclass(frozen=True, slots=True)
class Links:
    """The names of the links of a group.

    names    the link of each member: `<id>`, or `<id>@<place>` where there may be several. `@` occurs in no
             id, so no link of one device is ever that of another
    by_unit  those names that a unit has by its serial number alone, or would have if it had no twin
    ties     such a name -> the exact port of the twin that had it first, "" if none had
    plain    such a name of a filler -> the exact port where it is remembered
    twins    what the units named so would have in common with twins
    forged   such a name, with spot and model of a node that does not have it: a pod got it for another unit
    models   such a name, or a long one -> the model of the unit for which a pod got it
    """

    names: Sequence[str]
    by_unit: Collection[str] = ()
    ties: Ties = field(default_factory=dict)
    plain: Mapping[str, str] = field(default_factory=dict)
    twins: Twins = NO_TWINS
    forged: Collection[tuple[str, Spot, str]] = ()
    models: Mapping[str, str] = field(default_factory=dict)


def links_of(group: Group, identity: Identity, id_: str, past: Past) -> Links:
    """The names of the links of a group, with what they depend on."""
    if group.resource.group_by == NODE:
        return Links([id_])
    places = [member.place for member in group.members]
    spots = [place.spot for place in places]
    names = [_name(group, identity, id_, spot) for spot in spots]
    rivals: dict[str, dict[Spot, Twin | None]] = {}
    plain: dict[str, str] = {}
    for name, spot, place in zip(names, spots, places, strict=True):
        if _is_by_unit(group, identity, spot):
            rivals.setdefault(name, {})[spot] = twin_of(place)
            if why_filler(spot.serial):
                plain[name] = past.port_at(name, ())
    ties = _tie_links(rivals, past)
    # The mark in a name is short, and a serial number can be made for it.
    by_unit = [(name, place.spot, place.model) for name, place in zip(names, places, strict=True)]
    forged = frozenset(each for each in by_unit if each[0] in rivals and past.leads_elsewhere(*each))
    models = {name: past.given_model(name) for name in ties}
    owners = {**ties, **plain, **_ports_given(models, by_unit, rivals, past)}
    has_it = [owners.get(each[0], each[1].port) == each[1].port and each not in forged for each in by_unit]
    times = Counter(compress(names, has_it))
    links = [
        name if mine and times[name] == 1 else _long_name_of(name, spot, model, models, past)
        for (name, spot, model), mine in zip(by_unit, has_it, strict=True)
    ]
    twins = with_wholes(twin for spots in rivals.values() for twin in spots.values())
    return Links(links, rivals.keys(), ties, plain, twins, forged, models)


def _long_name_of(name: str, spot: Spot, model: str, models: dict[str, str], past: Past) -> str:
    """The long name of a node, unless a pod got that for another model, which was at the same spot.

    models  see `Links.models`; what is asked for here is added
    """
    longer, longest = long_name(name, spot), long_name(name, spot, model)
    models |= {each: past.given_model(each) for each in (longer, longest)}
    # Once a node has the longest name, the next pod gets that.
    has_longest = models[longest] == model
    return longest if has_longest or not may_be_model(models[longer], model) else longer


def _name(group: Group, identity: Identity, id_: str, spot: Spot) -> str:
    """The link of the node at a spot, if it belongs to that node alone."""
    name = f"{id_}@{for_path(spot.within)}"
    if _is_foreign(group, identity, spot):
        # Another unit may have the same place, so the link says which unit it is.
        is_by_unit = _is_by_unit(group, identity, spot)
        by_serial, by_port = marks_of(spot)
        name += f"@{by_serial if is_by_unit else by_port}"
    return f"{name}@{spot.number + 1}" if spot.number else name


def marks_of(spot: Spot) -> tuple[str, str]:
    """What a link may say of the unit at a spot: a hash of its serial number, or of its port.

    Both are short, so others may have the same.
    """
    # A device may call itself like the port of another one.
    kind = ("serial",) if spot.serial.startswith("/") else ()
    return hash_of(*kind, spot.serial)[:_MARK_LENGTH], hash_of(spot.port)[:_MARK_LENGTH]


def _is_by_unit(group: Group, identity: Identity, spot: Spot) -> bool:
    """Whether the link of the node at a spot names its unit by the serial number, wherever it is."""
    return spot.serial != "" and group.resource.identity == "serial" and _is_foreign(group, identity, spot)


def _is_foreign(group: Group, identity: Identity, spot: Spot) -> bool:
    """Whether a spot may be on another unit than the one that the group is about."""
    return group.subject is None or spot.port != identity.port.exact


def _tie_links(rivals: Mapping[str, Mapping[Spot, Twin | None]], past: Past) -> Ties:
    """The ties of these names, with new ones for twins in one group, and where only one is in it."""
    ties = {name: past.ties[name] for name in rivals if name in past.ties}
    new = {name: past.port_at(name, spots) for name, spots in rivals.items() if name not in ties}
    for name, port in new.items():
        ports = {spot.port for spot in rivals[name]}
        if len(ports) > 1 or not past.twins.isdisjoint(with_wholes(rivals[name].values())):
            # If only one of the twins is in this group, the name is its own.
            ties[name] = port or (ports.pop() if len(ports) == 1 else "")
    return ties | dict.fromkeys(_mixed(new, rivals), "")


def _mixed(ports: Mapping[str, str], rivals: Mapping[str, Mapping[Spot, Twin | None]]) -> Iterator[str]:
    """The names of a unit that are remembered at several ports, now that it has a twin in the group.

    One came without some of its nodes while the other was away: nobody can tell which of them it is.

    ports  name -> the port where it is remembered, "" if it is not
    """
    units = {name: frozenset(map(as_whole, filter(None, rivals[name].values()))) for name in ports}
    twins = {unit for name in ports if len(rivals[name]) > 1 for unit in units[name]}
    for unit in twins:
        names = [name for name, port in ports.items() if port and unit in units[name]]
        if len({ports[name] for name in names}) > 1:
            yield from names


def _ports_given(
    models: Mapping[str, str],
    by_unit: Sequence[tuple[str, Spot, str]],
    rivals: Mapping[str, Mapping[Spot, Twin | None]],
    past: Past,
) -> Mapping[str, str]:
    """Link -> the exact port of the only node of the model for which a pod got it.

    models   name -> the model of the unit for which a pod got it, "" if that is not known
    by_unit  name, spot and model of each node. If several are of the model, or it has twins, ports tell them
    """
    by_name: dict[str, list[tuple[Spot, str]]] = {}
    for name, spot, model in by_unit if models else ():
        by_name.setdefault(name, []).append((spot, model))
    found: dict[str, str] = {}
    for name, model in models.items():
        spots = [spot for spot, other in by_name.get(name, ()) if other == model != ""]
        if len(spots) == 1 and past.twins.isdisjoint(with_wholes([rivals[name][spots[0]]])):
            found[name] = spots[0].port
    return found


def long_name(name: str, spot: Spot, model: str = "") -> str:
    """The link of the node at a spot whose short name another node has.

    model  given if a pod got the name without it for another model at this spot
    """
    return f"{name}@{hash_of(*spot, *([model] if model else []))[:_LONG_MARK_LENGTH]}"


def short_name(link: str) -> str:
    """The name that `long_name` extended to this link. Meaningless if the link is not a long name."""
    return link.rpartition("@")[0]
