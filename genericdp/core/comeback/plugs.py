"""Since when each device is plugged in or unplugged, and whether its containers were judged for that.

The rules of this file:

* Only devices of resources that want it are followed.
* A plug is one stay of a device under the same device numbers, or one absence. What is neither, such as a
  failing health condition, interrupts it: its time starts again, but it remains the same plug.
* A device of several nodes is unplugged, too, while one that it needs is not plugged in where it was. If it
  has not been Healthy since the start, what is remembered of it says where that was, but not which nodes it
  needed: nothing counts as unplugged if all that it has lost may be optional, or was taken by an edit.
* The containers of a plug are judged once, on evidence. Until there is evidence, it is asked for again, and
  as long as one may be starting with what it found before the plug. After some minutes it is asked for less
  often: there may never be any.
* A container is stopped at most once for a plug, also if it was not judged to the end.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from genericdp.core.comeback.container import Container
from genericdp.core.device import DeviceNumber
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.inventory.place import Spot, is_of_number
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.memory.absence import UNPLUGGED
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.resource import NodeTable, OnUnplug, Resource

#: How long to wait before evidence is asked for again, in seconds.
ASK_AGAIN_S = 10.0

#: For how long after the beginning of a plug that is enough, and how much longer to wait after that.
ASK_OFTEN_S = 300.0
ASK_LATER_S = 50.0

#: How long a container that the runtime was creating when a plug began may take until it runs, in seconds:
#: the kubelet waits two minutes for it to be created and two for its start (`runtimeRequestTimeout`).
LONGEST_START_S = 240.0

#: Name of a link -> the device number behind it.
Numbers = Mapping[str, DeviceNumber]

NOTHING_REMEMBERED: Mapping[str, Remembered] = {}

#: (resource, device id)
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """A device node that a device needs, and where it was."""

    link: str
    table: NodeTable
    spot: Spot


@dataclass(frozen=True, slots=True)
class Plug:
    """A stay or an absence of a device.

    numbers    its device numbers; None while it is unplugged
    began      when it began, in seconds
    since      since when it lasts without an interruption, in seconds
    lasts      whether it is not interrupted
    judged     whether its containers were judged
    not_before when to ask for evidence again, in seconds
    stopped    the containers that were stopped for it: (UID of the pod, name)
    needed     of a device of several nodes: those that it needs, as they were when it was Healthy last
    """

    numbers: Numbers | None
    began: float
    since: float
    lasts: bool = True
    judged: bool = False
    not_before: float = float("-inf")
    stopped: frozenset[tuple[str, str]] = frozenset()
    needed: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Plugs:
    """The plugs of all devices that are followed.

    offers  what they were seen in
    """

    by_device: Mapping[Key, Plug] = field(default_factory=dict)
    offers: Mapping[str, Offer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """A device whose containers are to be judged."""

    offer: Offer
    device: Device
    plug: Plug

    @property
    def key(self) -> Key:
        return self.offer.resource.name, self.device.id

    @property
    def unplugged(self) -> bool:
        return self.plug.numbers is None

    def has_outlasted_starts(self, now: float) -> bool:
        """Whether no container can be starting any more that found what was there before the plug."""
        return now >= self.plug.began + LONGEST_START_S


def follow(
    plugs: Plugs,
    inventory: Inventory,
    plugged: Plugged,
    now: float,
    devices: Mapping[str, Remembered] = NOTHING_REMEMBERED,
) -> Plugs:
    """The plugs after another look at all devices, at what is plugged in and at what is remembered."""
    offers = {name: offer for name, offer in inventory.offers.items() if offer.resource.follows}
    if offers == {} == plugs.offers:
        return plugs
    by_device: dict[Key, Plug] = {}
    for name, offer in offers.items():
        unchanged = plugs.offers.get(name) is offer
        for device in offer.with_crowded:
            key = name, device.id
            plug = plugs.by_device.get(key)
            if not unchanged:
                if plug is not None and plug.needed:
                    lacks_a_part = _has_lost_a_part(device, plug.needed, plugged)
                else:
                    earlier = devices[device.id].earlier if device.id in devices else {}
                    lacks_a_part = _had_lost_a_part(offer.resource, device, earlier, plugged)
                plug = _after(plug, device, now, lacks_a_part=lacks_a_part)
            if plug is not None:
                by_device[key] = plug
    return Plugs(by_device, offers)


def _after(known: Plug | None, device: Device, now: float, *, lacks_a_part: bool) -> Plug | None:
    needed = () if known is None else known.needed
    if device.healthy:
        numbers = {node.link: node.number for node in device.nodes_inside if node.sys_path and node.number}
        needed = _needed(device)
    elif device.reason.startswith(UNPLUGGED) or lacks_a_part:
        numbers = None
    else:
        return None if known is None else replace(known, lasts=False)
    if known is None or known.numbers != numbers:
        return Plug(numbers, now, now, needed=needed)
    if known.lasts and known.needed == needed:
        return known
    return replace(known, lasts=True, since=known.since if known.lasts else now, needed=needed)


def _needed(device: Device) -> tuple[Part, ...]:
    if len(device.nodes) < 2:
        return ()
    places = zip(device.nodes, device.spots, strict=False)
    return tuple(Part(node.link, node.table, spot) for node, spot in places if not node.table.optional)


def _has_lost_a_part(device: Device, needed: Iterable[Part], plugged: Plugged) -> bool:
    """Whether some of its nodes are there, and one that it needs is not plugged in any more."""
    there = [node for node in device.nodes if node.sys_path]
    return there != [] and any(
        all(node.link != part.link and node.table != part.table for node in there)
        and not plugged.is_taken(part.spot)
        for part in needed
    )


def _had_lost_a_part(resource: Resource, device: Device, earlier: Collection[Spot], plugged: Plugged) -> bool:
    """The same of a device that has not been Healthy since the start.

    A pod got it when it was Healthy. So the nodes that it lacks now are among those that it has lost since.

    earlier  where these were
    """
    if not earlier or plugged.unread or any(is_of_number(spot) or plugged.is_taken(spot) for spot in earlier):
        return False
    there = [node.table for node in device.nodes if node.sys_path]
    lacks = [table for table in resource.own_nodes if table not in there] if there else []
    optional = sum(table.optional for table in lacks)
    # What is plugged in at the place of another one, is it in its stead.
    lost = {(spot.port, spot.within) for spot in earlier}
    lost -= {(spot.port, spot.within) for spot in device.spots}
    return len(lacks) > optional and len(lost) > optional


def next_case(plugs: Plugs) -> float | None:
    """When the next case is due, in seconds; None without one."""
    return min((due for _, due in _pending(plugs)), default=None)


def cases(plugs: Plugs, now: float) -> tuple[Case, ...]:
    """The cases that are due."""
    return tuple(case for case, due in _pending(plugs) if due <= now)


def _pending(plugs: Plugs) -> Iterator[tuple[Case, float]]:
    for offer in plugs.offers.values():
        resource = offer.resource
        for device in offer.with_crowded:
            plug = plugs.by_device.get((resource.name, device.id))
            if plug is not None and plug.lasts and not plug.judged and _matters(resource, plug):
                yield Case(offer, device, plug), max(plug.since + resource.debounce_s, plug.not_before)


def _matters(resource: Resource, plug: Plug) -> bool:
    if plug.numbers is None:
        return resource.on_unplug is OnUnplug.STOP
    return resource.restarts


def is_current(plugs: Plugs, case: Case) -> bool:
    """Whether the plug of a case still lasts."""
    now = plugs.by_device.get(case.key)
    return now is not None and now.lasts and _is_same(now, case.plug)


def judged(
    plugs: Plugs, stops: Iterable[tuple[Case, Sequence[Container]]], *, again_at: float | None = None
) -> Plugs:
    """After these containers were stopped for these cases. They are judged to the end, or again.

    again_at  when, or a while after that for a plug that has lasted for minutes
    """
    by_device = dict(plugs.by_device)
    for case, containers in stops:
        plug = by_device.get(case.key)
        if plug is None or not _is_same(plug, case.plug):
            continue
        by_device[case.key] = replace(
            plug,
            # A stop may have failed meanwhile: then there is more to do.
            judged=again_at is None and plug.stopped == case.plug.stopped,
            not_before=plug.not_before if again_at is None else _not_too_often(plug, again_at),
            stopped=plug.stopped | {(each.pod, each.holder.container) for each in containers},
        )
    return replace(plugs, by_device=by_device)


def _not_too_often(plug: Plug, again_at: float) -> float:
    return again_at if again_at < plug.since + ASK_OFTEN_S else again_at + ASK_LATER_S


def not_stopped(plugs: Plugs, cases: Iterable[Case], container: Container, again_at: float) -> Plugs:
    """After the runtime could not stop a container for these cases: it is tried again at a time."""
    by_device = dict(plugs.by_device)
    for case in cases:
        plug = by_device.get(case.key)
        if plug is not None and _is_same(plug, case.plug):
            stopped = plug.stopped - {(container.pod, container.holder.container)}
            by_device[case.key] = replace(plug, judged=False, not_before=again_at, stopped=stopped)
    return replace(plugs, by_device=by_device)


def _is_same(now: Plug, then: Plug) -> bool:
    return now.numbers == then.numbers and now.began == then.began
