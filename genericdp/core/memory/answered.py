"""What answers to pods have named: CDI devices, and links.

The kubelet saves an answer for as long as its pod exists, and the runtime looks the name up at each creation
of a container. So the name must keep its meaning over an edit of `answer`, a restart and a reboot, and a link
must not be missing: CRI-O would start the container without its device.

The rules of this file:

* A CDI device stands for the ids that one container was allocated of one resource.
* It is kept while all its ids are held.
* A name that was not saved, or was lost with the memory, is learned again from the kubelet's checkpoint. It
  counts only if it is the name of the ids of its container and all of them are held.
* The same goes for links. A link counts only if it may be that of a device of these ids, or of a shared node.
* Where the links of such an id led shows which device nodes its pod got. Other pods do not get these. The pod
  itself gets nothing by this, because a link may have led to another unit by then.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from genericdp.core.buses.port import model_of
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import hash_of, natural
from genericdp.core.inventory.place import (
    Spot,
    is_of_node,
    is_of_number,
    spot_of,
    spot_of_node,
    spot_under_link,
)
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.inventory.shared import is_shared_link
from genericdp.core.memory import fields
from genericdp.core.memory.answer import Answer, Named
from genericdp.core.memory.held import HELD, PODS_SETTLE_S, Held, Holding, device_of
from genericdp.core.memory.remembered import Remembered, Replaced
from genericdp.core.memory.room import HELD_LINK_LIMIT, ID_LIMIT
from genericdp.core.rules.name import cdi_kind

#: How many links are learned from one answer, of all pods together. Each of them is wanted and saved.
LEARNED_LIMIT = 10 * ID_LIMIT

_MARK_LENGTH = 10

#: The link to a node that has siblings before it (`links_of`). No hash is as short as such a number.
_NUMBERED = re.compile(r".*@.*@(?:[2-9]|[1-9][0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class CdiDevice:
    """What a container was allocated of one resource.

    ids    in natural order
    given  when Allocate named it or it was learned again, on the clock of `remember`; None: before a restart
    """

    resource: str
    ids: tuple[str, ...]
    given: float | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """Its qualified name, `vendor/class=device`."""
        return f"{cdi_kind(self.resource)}={self.short_name}"

    @property
    def short_name(self) -> str:
        """The name within its kind: the id, or for several ids the first one and a hash of all.

        No id contains a colon.
        """
        first = self.ids[0]
        return first if len(self.ids) == 1 else f"{first}:{hash_of(*self.ids)[:_MARK_LENGTH]}"


#: Qualified name -> what it means.
Answered = Mapping[str, CdiDevice]


def answer(answered: Answered, device: CdiDevice, now: float) -> Answered:
    """The CDI devices after Allocate named this one at `now`."""
    ids = set(device.ids)
    kept = {
        name: each
        for name, each in answered.items()
        # The kubelet allocates free ids, and within the admission of one pod those of its init containers.
        if ids.isdisjoint(each.ids) or (each.given is not None and now - each.given <= PODS_SETTLE_S)
    }
    return {**kept, device.name: CdiDevice(device.resource, device.ids, now)}


def resumed_at(answered: Answered, now: float) -> Answered:
    """The CDI devices at a start: perhaps in the middle of the admission for which they were named."""
    return {name: replace(each, given=now) for name, each in answered.items()}


def learn_names(answered: Answered, answer: Answer, held: Held) -> Answered:
    """The CDI devices after an answer of PodResources, given the holdings after it."""
    learned: dict[str, CdiDevice] = {}
    for named in answer.named:
        if named.ids and all(_is_held_of(named.resource, id_, held) for id_ in named.ids):
            device = CdiDevice(named.resource, tuple(sorted(named.ids, key=natural)), answer.asked)
            if device.name in named.cdi and device.name not in answered:
                learned[device.name] = device
    return {**answered, **learned} if learned else answered


def learn_links(held: Held, answer: Answer) -> Held:
    """The holdings after an answer of PodResources, with the links that it names.

    Known links may be those of an earlier pod: what Allocate has given since may never have been saved.
    """
    learned: dict[str, dict[str, None]] = {}
    room = LEARNED_LIMIT
    for named in answer.named:
        ids = [id_ for id_ in named.ids if _may_lack_links(held.get(id_), named)] if named.links else ()
        own, shared = _by_device(named.links) if ids else ({}, ())
        for id_ in sorted(ids):
            device = held[id_].device
            its_own = own.get(device, [])
            if shared or its_own != [device]:
                mine = learned.setdefault(id_, dict.fromkeys(held[id_].links))
                most = min(room, HELD_LINK_LIMIT - len(mine))
                new = dict.fromkeys(islice(_valid(chain(its_own, shared), device), max(0, most)))
                room -= len(new)
                mine.update(new)
    found = {
        id_: replace(held[id_], links=tuple(links))
        for id_, links in learned.items()
        if len(links) > len(held[id_].links)
    }
    return {**held, **found} if found else held


def _may_lack_links(holding: Holding | None, named: Named) -> bool:
    """Whether the links are not known that a pod got with an id. What this daemon gave is known."""
    return holding is not None and holding.given is None and holding.resource == named.resource


def _by_device(links: Iterable[str]) -> tuple[Mapping[str, list[str]], list[str]]:
    """Device -> its links, and the links of shared nodes."""
    own: dict[str, list[str]] = {}
    shared: list[str] = []
    for link in links:
        if is_shared_link(link):
            shared.append(link)
        else:
            own.setdefault(link.partition("@")[0], []).append(link)
    return own, shared


def _valid(links: Iterable[str], device: str) -> Iterator[str]:
    for link in links:
        with suppress(ValueError):
            yield fields.link_in_answer(device, link)


def with_links(devices: Mapping[str, Remembered], before: Held, held: Held) -> Mapping[str, Remembered]:
    """What is remembered, with the links of which only an answer has told that pods got them.

    An answer that tells of none may have named the link of a lone device node, which has the name of its id.
    before  the holdings before that answer
    """
    if held is before:
        return devices
    more: dict[str, Remembered] = {}
    for id_, holding in held.items():
        known = more.get(holding.device) or devices.get(holding.device)
        if known is not None and (id_ not in before or len(holding.links) > len(before[id_].links)):
            got = holding.links or (holding.device,)
            links = tuple(dict.fromkeys((*known.device.links, *got)))
            if len(links) > len(known.device.links):
                more[holding.device] = replace(known, device=replace(known.device, links=links))
    return {**devices, **more} if more else devices


def with_led(
    unknown: Mapping[str, Remembered],
    answer: Answer | None,
    plugged: Plugged,
) -> Mapping[str, Remembered]:
    """The held devices of which only the ids are known, with the device nodes to which their links led.

    Edited rules may offer these nodes under other ids, and other nodes under these ids.
    """
    if answer is None or not answer.led or not unknown:
        return unknown
    at = {
        node.device_node: (spot._replace(number=plugged.numbers.get(node.sys_path, 0)), node)
        for spot, group in plugged.groups.items()
        for node in group
    }
    led: dict[str, dict[Spot, str]] = {}
    for link, path in answer.led.items():
        if path in at:
            spot, node = at[path]
            usb = node.usb_device
            # A device records the links of its nodes only if udev knows them (`group.Member.also`).
            itself = spot_of(node.number) if node.is_bare else spot_under_link(node, link)
            spots = {spot: "" if usb is None else model_of(usb), itself: ""}
            led.setdefault(device_of(link), {}).update(spots)
    both = led.keys() & unknown.keys()
    more = {id_: replace(unknown[id_], earlier=led[id_]) for id_ in both}
    return {**unknown, **more} if more else unknown


def held_links(
    held: Held,
    devices: Mapping[str, Remembered],
    plugged: Plugged,
    moved: Mapping[str, Sequence[Spot]],
    replaced: Replaced,
) -> Mapping[str, str]:
    """More links to the device nodes of what pods hold: those that no link of the id leads to now.

    Replicas that were the only ones of their devices when pods got them also have such a link, to the first
    node.

    No pod gets these links. If the memory is lost, they show which device nodes an id meant, and that nobody
    may share a device.

    moved     where units of held devices are that have another id at another port
    replaced  `Left.replaced`: other devices have taken these spots
    """
    alone = {id_: each.device for id_, each in held.items() if not each.shared and id_ != each.device}
    mine = {id_: devices[id_] for id_ in {each.device for each in held.values()} if id_ in devices}
    hidden = {
        id_: (*(spot for spot in _hidden(known) if spot not in replaced.get(id_, ())),)
        for id_, known in mine.items()
        if known.absent_since is not None or known.earlier
    }
    by_number: dict[Spot, UdevDevice] = {}
    if any(is_of_number(spot) for spots in hidden.values() for spot in spots):
        nodes = (node for group in plugged.groups.values() for node in group)
        by_number = {spot: node for node in nodes for spot in (spot_of(node.number), spot_of_node(node))}
    found: dict[str, str] = {}
    for id_, spots in hidden.items():
        still = [spot for spot in dict.fromkeys(spots) if is_of_node(spot) and spot in by_number]
        # If all of its nodes are there, what is where they were may be another unit.
        are_all = still and len(still) >= len({*mine[id_].device.spots} - mine[id_].not_given)
        several = (
            (by_number[spot],) if spot in by_number else plugged.nodes_at(spot, mine[id_].dock_of(spot))
            for spot in (*(still if are_all else spots), *moved.get(id_, ()))
        )
        paths = dict.fromkeys(node.device_node for node in chain.from_iterable(several) if node.device_node)
        found |= {f"{HELD}{id_}" + (f"@{n}" if n else ""): path for n, path in enumerate(paths)}
    for id_, device in alone.items():
        spots = (*mine[device].device.spots, *mine[device].earlier) if device in mine else ()
        nodes = (node for spot in spots for node in plugged.nodes_at(spot))
        found |= {f"{HELD}{id_}": node.device_node for node in islice(nodes, 1) if node.device_node}
    return found


def _hidden(known: Remembered) -> Iterator[Spot]:
    """Where a pod may have device nodes to which no link of its device leads."""
    device = known.device
    # Without its spots, `also` is where a device of this id may be. Where links led is certain.
    is_certain = bool(device.spots or not known.earlier)
    own = (*(spot for spot in device.spots if spot not in known.not_given), *known.also)
    mine = own if known.absent_since is not None and is_certain else ()
    # The link that led there is of no use here.
    return (spot._replace(serial="") if is_of_node(spot) else spot for spot in (*mine, *known.earlier))


def of_several(unknown: Collection[str], held: Held, answer: Answer | None) -> frozenset[str]:
    """Those of devices of which nothing is remembered that have siblings, as the links say that pods got."""
    if not unknown:
        return frozenset()
    named = () if answer is None else answer.named
    given = chain((one.links for one in held.values()), (one.links for one in named))
    links = (link for several in given for link in several)
    owners = (link.partition("@")[0] for link in links if _NUMBERED.fullmatch(link))
    return frozenset(id_ for id_ in owners if id_ in unknown)


def still_held(answered: Answered, held: Held) -> Answered:
    """The CDI devices of which pods may hold all ids."""
    kept = {name: each for name, each in answered.items() if _is_held(each.ids, held)}
    return answered if len(kept) == len(answered) else kept


def _is_held_of(resource: str, id_: str, held: Held) -> bool:
    return id_ in held and held[id_].resource == resource


def _is_held(ids: Iterable[str], held: Held) -> bool:
    return all(id_ in held for id_ in ids)
