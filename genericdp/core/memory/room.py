"""What is kept when there is too much: devices of a resource and their links, ties and twins.

The rules of this file:

* A limit refuses what is new. What pods hold comes first, then what is known, present or absent.
* An id of which nothing is known takes the room of one id: it may be that of another plugin, which had the
  name of the resource before.
* An absent device makes room only when no pod holds it and its grace has passed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.past import Ties, Twin, Twins, with_wholes
from genericdp.core.inventory.place import is_of_node, is_of_number
from genericdp.core.memory.remembered import Remembered, is_unknown
from genericdp.core.words import counted

#: How many ids the devices of one resource make. With as many that are withdrawn, the list for the kubelet
#: stays below 4 MiB; the kubelet ends a stream that sends more (the default of grpc-go).
ID_LIMIT = 20_000

#: How many absent devices of one resource are remembered before new devices are refused. Only a device that
#: invents serial numbers comes near it; each of them is in the list for the kubelet and in the saved memory.
ABSENT_LIMIT = 1000

#: How many links of one device are remembered: a device may also invent the names of its nodes. For a device
#: that a pod holds, the second limit is on the links that it has lost. Those that the pod got always stay.
LINK_LIMIT = 64
HELD_LINK_LIMIT = 1000

#: How many ties of twins are remembered, and how many twins. Beyond that, only those of remembered devices.
TIE_LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class Room:
    """What a resource lists.

    listed   the ids of its devices that are listed
    refusal  why the others are not
    """

    listed: frozenset[str]
    refusal: str


def all_fit(present: int, absent: int, replicas: int | None) -> bool:
    """Whether a resource may list all of so many devices, new or known."""
    return present + absent <= most_devices(replicas) and absent < ABSENT_LIMIT


def room_for(
    present: Mapping[str, bool],
    absent: Mapping[str, float | None],
    held: Collection[str],
    replicas: int | None,
) -> Room:
    """Choose among the devices of a resource with so many replicas.

    present  device -> whether it was listed before
    absent   device -> when it left if it may be forgotten, in seconds on any clock; None: it must stay
    held     the devices that pods hold
    """
    most = most_devices(replicas)
    known = [id_ for id_, was_listed in present.items() if was_listed]
    new = [id_ for id_, was_listed in present.items() if not was_listed]
    staying = [id_ for id_, left in absent.items() if left is None]
    may_go = sorted(absent.keys() - staying, key=lambda id_: (-(absent[id_] or 0.0), id_))
    order = [
        *_ordered(id_ for id_ in (*known, *staying) if id_ in held),
        *_ordered(id_ for id_ in known if id_ not in held),
        *_ordered(id_ for id_ in staying if id_ not in held),
    ]
    refusal = _too_many_ids(most, len(staying))
    if len(staying) < ABSENT_LIMIT:
        order += _ordered(new)
    elif len(order) < most:
        refusal = _too_many_absent(len(staying))
    order += may_go[: max(0, ABSENT_LIMIT - len(staying))]
    return Room(frozenset(order[:most]), refusal)


def lost_replicas(absent: Mapping[str, Remembered], replicas: int | None) -> dict[str, Remembered]:
    """Of devices that pods share, those of which nothing is known: only ids that pods hold are listed."""
    return {
        id_: replace(known, listed=False)
        for id_, known in absent.items()
        if replicas is not None and is_unknown(known.device)
    }


def most_devices(replicas: int | None) -> int:
    """How many devices a resource with so many replicas lists at most."""
    return ID_LIMIT // (replicas or 1)


def _ordered(ids: Iterable[str]) -> list[str]:
    return sorted(ids, key=natural)


def _too_many_ids(most: int, absent: int) -> str:
    absentees = f", {absent} of them absent" if absent else ""
    return (
        f"its resource already has {counted(most, 'device')}{absentees}, "
        f"and a resource has at most {ID_LIMIT} ids; lower 'replicas', or match fewer devices"
    )


def _too_many_absent(absent: int) -> str:
    return (
        f"its resource already has {absent} absent devices that a pod may hold; lower 'unplug_grace', "
        "or match fewer devices"
    )


def ties_worth_keeping(ties: Ties, devices: Mapping[str, Remembered]) -> Ties:
    """The ties to remember when these devices are, by id."""
    if len(ties) <= TIE_LIMIT:
        return ties
    units = {known.device.unit for known in devices.values()}
    # A link begins with the id of its device.
    return {name: port for name, port in ties.items() if name in units or name.partition("@")[0] in devices}


def twins_worth_keeping(twins: Twins, devices: Iterable[Remembered]) -> Twins:
    """The twins to remember when these devices are.

    Beyond TIE_LIMIT, those that only the properties of a rule identify are forgotten: no device says them.
    """
    if len(twins) <= TIE_LIMIT:
        return twins
    spots = (each for known in devices for each in known.device.spots_with_models)
    return twins & with_wholes(Twin("serial", spot.serial, model, spot.within) for spot, model in spots)


def has_no_room(known: Remembered, now: Device) -> bool:
    """Whether a node that a pod may have, or the number of a bare one, would have to be forgotten."""
    if len([spot for spot in known.spots.keys() - now.spots if not is_of_number(spot)]) > HELD_LINK_LIMIT:
        return True
    had = {spot for spot in (*known.earlier, *known.also) if is_of_number(spot) and not is_of_node(spot)}
    return known.is_of_this_boot and len(had.difference(now.also)) > HELD_LINK_LIMIT
