"""Since when each device is plugged in or unplugged, and whether its containers were judged for that.

The rules of this file:

* Only devices of resources that want it are followed.
* A plug is one stay of a device under the same device numbers, or one absence. What is neither, such as a
  failing health condition, interrupts it: its time starts again, but it remains the same plug.
* The containers of a plug are judged once, on evidence. Until there is evidence, it is asked for again.
* A container is stopped at most once for a plug, also if it was not judged to the end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from genericdp.core.comeback.container import Running
from genericdp.core.device import DeviceNumber
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.memory.absence import UNPLUGGED
from genericdp.core.rules.resource import OnUnplug, Resource

#: How long to wait before evidence is asked for again, in seconds.
ASK_AGAIN_S = 10.0

#: Name of a link -> the device number behind it.
Numbers = Mapping[str, DeviceNumber]

#: (resource, device id)
Key = tuple[str, str]


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
    """

    numbers: Numbers | None
    began: float
    since: float
    lasts: bool = True
    judged: bool = False
    not_before: float = float("-inf")
    stopped: frozenset[tuple[str, str]] = frozenset()


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


def follow(plugs: Plugs, inventory: Inventory, now: float) -> Plugs:
    """The plugs after another look at all devices."""
    offers = {name: offer for name, offer in inventory.offers.items() if offer.resource.follows}
    if offers == {} == plugs.offers:
        return plugs
    by_device: dict[Key, Plug] = {}
    for name, offer in offers.items():
        unchanged = plugs.offers.get(name) is offer
        for device in offer.devices:
            key = name, device.id
            known = plugs.by_device.get(key)
            plug = known if unchanged else _after(known, device, now)
            if plug is not None:
                by_device[key] = plug
    return Plugs(by_device, offers)


def _after(known: Plug | None, device: Device, now: float) -> Plug | None:
    if device.healthy:
        numbers = {node.link: node.number for node in device.nodes_inside if node.sys_path and node.number}
    elif device.reason.startswith(UNPLUGGED):
        numbers = None
    else:
        return None if known is None else replace(known, lasts=False)
    if known is None or known.numbers != numbers:
        return Plug(numbers, now, now)
    return known if known.lasts else replace(known, lasts=True, since=now)


def next_case(plugs: Plugs) -> float | None:
    """When the next case is due, in seconds; None without one."""
    return min((due for _, due in _pending(plugs)), default=None)


def cases(plugs: Plugs, now: float) -> tuple[Case, ...]:
    """The cases that are due."""
    return tuple(case for case, due in _pending(plugs) if due <= now)


def _pending(plugs: Plugs) -> Iterator[tuple[Case, float]]:
    for offer in plugs.offers.values():
        resource = offer.resource
        for device in offer.devices:
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
    plugs: Plugs, stops: Iterable[tuple[Case, Sequence[Running]]], *, again_at: float | None = None
) -> Plugs:
    """After these containers were stopped for these cases. They are judged to the end, or again at a time."""
    by_device = dict(plugs.by_device)
    for case, containers in stops:
        plug = by_device.get(case.key)
        if plug is None or not _is_same(plug, case.plug):
            continue
        by_device[case.key] = replace(
            plug,
            # A stop may have failed meanwhile: then there is more to do.
            judged=again_at is None and plug.stopped == case.plug.stopped,
            not_before=plug.not_before if again_at is None else again_at,
            stopped=plug.stopped | {(each.pod, each.holder.container) for each in containers},
        )
    return replace(plugs, by_device=by_device)


def not_stopped(plugs: Plugs, cases: Iterable[Case], container: Running, again_at: float) -> Plugs:
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
