"""Which ids pods hold, as far as a device plugin can know.

The rules of this file:

* An id that was given by Allocate, or that PodResources lists, is held until a complete answer of
  PodResources no longer lists it. No call of the kubelet says that a device is free again.
* A pod appears in PodResources only after its admission. An answer says nothing about an id that was given
  shortly before the question, or after it: an answer that comes late lists the pod that had the id before.
* PodResources never lists what only an init container got, and a kubelet that has just started knows no pod
  before it has reached the API server, however long that takes. So an id that this kubelet has never listed
  is held for as long as its checkpoint names it, or cannot be read.
* What was given may never have been saved: the disk may have been full. So what the checkpoint names when a
  daemon starts is held, too. Its pod may have gone, and nothing tells. So what this daemon has known to be
  held, and knows to be free, is not held again because the checkpoint still names it.
* Pods of another plugin may hold ids of the same resource that no device can have. They are ignored.
* An answer may name any number of ids of which nothing is known. They are taken while the list has room for
  them, because each of them is listed, saved and looked at in every step.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from genericdp.core.inventory.naming.ids import may_be_current_id, may_be_id, may_be_id_of
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.remembered import Remembered, is_unknown
from genericdp.core.memory.room import HELD_LINK_LIMIT, ID_LIMIT

#: How long the admission of a pod may take after Allocate, in seconds: other plugins are asked, too.
PODS_SETTLE_S = 120.0

#: The prefix of links to device nodes that pods hold although the links of their ids lead nowhere, and of
#: those with the id of a replica that was the only one. No id contains a "+".
HELD = "held+"


@dataclass(frozen=True, slots=True)
class Holding:
    """An id that a pod may hold.

    resource  the name of its resource
    device    the id of the device behind it
    shared    whether other containers may have the device at the same time
    listed    whether the kubelet that runs now has listed it in PodResources since it was given
    given     when Allocate gave it, on the clock of `remember`; None if that was before a restart (`resumed`)
    links     the links that the answer named. () where the answer is not known or named none, and for the
              one link of a device that is not grouped: while the device is Healthy, that leads to it unless
              an edit has made it a group
    """

    resource: str
    device: str
    shared: bool
    listed: bool = False
    given: float | None = field(default=None, compare=False)
    links: tuple[str, ...] = ()


#: Id as the kubelet knows it -> what the pod has.
Held = Mapping[str, Holding]

#: Each is a resource and an id.
_Pairs = Iterable[tuple[str, str]]


def is_being_admitted(holding: Holding, now: float) -> bool:
    """Whether the admission of the pod that got an id may still go on."""
    return holding.given is not None and now - holding.given < PODS_SETTLE_S


def give(held: Held, offer: Offer, ids: Iterable[str], now: float, *, by_cdi: bool = False) -> Held:
    """The holdings after Allocate gave these ids of a resource at `now`, perhaps as a CDI device."""
    # The kubelet allocates only free ids, so earlier holders of these have gone.
    given = {
        id_: _holding(offer, id_, given=now, links=() if by_cdi else _links(offer.ids[id_]))
        for id_ in ids
        if id_ in offer.ids
    }
    return {**held, **given}


def _links(device: Device) -> tuple[str, ...]:
    nodes = device.nodes_inside
    is_alone = len(nodes) == 1 and nodes[0].link == device.id
    return () if is_alone else tuple(node.link for node in nodes)


def learn(held: Held, answer: Answer, offers: Mapping[str, Offer], devices: Mapping[str, Remembered]) -> Held:
    """The holdings after an answer of PodResources.

    offers   what is offered of the present devices, by resource name
    devices  all devices that are remembered, by id
    """
    listed = {id_ for _, id_ in answer.ids}
    kept = {
        id_: replace(holding, listed=is_listed) if holding.listed is not is_listed else holding
        for id_, holding in held.items()
        for is_listed in (_is_listed(id_, listed, holding, answer),)
        if id_ in listed or not _is_released(id_, is_listed, holding, answer)
    }
    ours, with_links = _ours({*offers, *answer.ours}, devices), frozenset(map(device_of, answer.led))
    sure = ours.union(each.resource for each in answer.named if each.cdi)
    after: Held = kept
    for named, known, is_listed in ((answer.ids, kept, True), (answer.earlier, held, False)):
        new = _of_ours((each for each in named if each[1] not in known), ours, devices, with_links)
        after = _with(after, new, offers, devices, sure, listed=is_listed)
    # The links show what pods got. The rules may have changed since.
    alone = _only_ones(answer.led) & (after.keys() - held.keys()) if answer.led else ()
    after = {**after, **{id_: replace(after[id_], shared=False) for id_ in alone}} if alone else after
    return held if after == held else after


def unknown(
    held: Held, answer: Answer | None, resources: Collection[str], devices: Mapping[str, Remembered]
) -> frozenset[str]:
    """The devices that pods hold, also by this answer, and of which nothing is known but the id.

    resources  the names of those that the rules have
    """
    ids = {holding.device for holding in held.values()}
    if answer is not None:
        ids |= new_ids(held, answer, resources, devices)
    # In every step, and there may be thousands.
    found = ((id_, devices.get(id_)) for id_ in ids)
    return frozenset(
        [id_ for id_, known in found if known is None or (not known.device.unit and is_unknown(known.device))]
    )


def with_lost(
    devices: Mapping[str, Remembered], unknown: Mapping[str, Remembered], offers: Mapping[str, Offer]
) -> Mapping[str, Remembered]:
    """All that is remembered. For a device known only by its id: the links and nodes that it no longer has.

    It may be there without a part, or may have been a lone device node when its pod got it.
    """
    lost = {
        id_: known
        for id_, known in unknown.items()
        for offered in (offers[known.resource].called(id_) if known.resource in offers else None,)
        if known.earlier or (offered is not None and not {*known.device.links} <= {*offered.links})
    }
    return {**devices, **lost} if lost else devices


def new_ids(
    held: Held, answer: Answer, resources: Collection[str], devices: Mapping[str, Remembered]
) -> frozenset[str]:
    """The devices of these resources that pods hold as this answer says, and nothing else has said."""
    named = ((name, id_) for name, id_ in (*answer.ids, *answer.earlier) if id_ not in held)
    # A resource that no rule names any more had the same ids if only its domain has been edited.
    ours = _ours({*resources, *answer.ours}, devices)
    found = _of_ours(named, ours, devices, frozenset(map(device_of, answer.led)))
    return frozenset(_unoffered(name, id_, devices, listed=True).device for name, id_ in found)


def may_be_of_the_past(held: Held, answer: Answer) -> bool:
    """Whether the checkpoint may name ids only for pods that have gone: held ones, or any if none is held.

    held  the holdings after this answer
    """
    named = answer.checkpointed or ()
    if not held:
        return answer.complete and bool(named)
    return answer.complete and any(
        id_ in named and not holding.listed and not is_being_admitted(holding, answer.asked)
        for id_, holding in held.items()
    )


def not_taken(held: Held, answer: Answer, offers: Mapping[str, Offer]) -> Mapping[str, int]:
    """How many ids of each offered resource an answer lists that `learn` had no room for."""
    return Counter(name for name, id_ in _of_ours(answer.ids, offers, {}) if id_ not in held)


def device_of(link: str) -> str:
    """The id of the device that a link belongs to."""
    return link.removeprefix(HELD).partition("@")[0]


def _ours(resources: Iterable[str], devices: Mapping[str, Remembered]) -> frozenset[str]:
    return frozenset(resources).union(known.resource for known in devices.values())


def _of_ours(
    named: _Pairs, ours: Collection[str], devices: Mapping[str, Remembered], with_links: Collection[str] = ()
) -> _Pairs:
    """The pairs of resource and id among these that may name a device of this daemon. `ours`: resources."""
    return (
        (name, id_)
        for name, id_ in named
        # Of another name, it is ours only if nothing else has the id: other plugins may spell theirs alike.
        if (name in ours or (_is_known(id_, with_links) and not _is_known(id_, devices)))
        and (may_be_current_id(id_) or (may_be_id(id_) and _is_known(id_, devices)))
    )


def _with(
    held: Held,
    named: _Pairs,
    offers: Mapping[str, Offer],
    devices: Mapping[str, Remembered],
    sure: Collection[str],
    *,
    listed: bool,
) -> Held:
    """The holdings with those that the kubelet names, as resource and id. `sure`: resources of ours."""
    offered: dict[str, Holding] = {}
    others: list[tuple[str, str]] = []
    for name, id_ in sorted(named):
        if id_ in held:
            continue
        if name in offers and id_ in offers[name].ids:
            offered[id_] = _holding(offers[name], id_, listed=listed)
        elif name in sure or not any(id_ in offer.ids for offer in offers.values()):
            others.append((name, id_))
    after = {**held, **offered}
    return {**after, **_with_room(others, after, devices, listed=listed)} if others else after


def _with_room(others: _Pairs, held: Held, devices: Mapping[str, Remembered], *, listed: bool) -> Held:
    """What pods have of devices that are not offered, as far as a list has room: first of remembered ones."""
    ids = Counter(holding.resource for holding in held.values())
    taken: dict[str, Holding] = {}
    for name, id_ in sorted(others, key=lambda each: not _is_known(each[1], devices)):
        if ids[name] < ID_LIMIT:
            ids[name] += 1
            taken[id_] = _unoffered(name, id_, devices, listed=listed)
    return taken


def _only_ones(led: Iterable[str]) -> frozenset[str]:
    """The ids of which each was the only one of its device, as these links say (`held_links`)."""
    return frozenset([link.removeprefix(HELD) for link in led if link.startswith(HELD)])


def _is_known(id_: str, devices: Container[str]) -> bool:
    return id_ in devices or id_.rpartition(".")[0] in devices


def _is_listed(id_: str, listed: Collection[str], holding: Holding, answer: Answer) -> bool:
    """Whether the kubelet has listed an id since it was given; `answer` lists these."""
    if holding.given is not None and holding.given >= answer.asked:
        return holding.listed
    return id_ in listed or (holding.listed and not answer.first)


def _is_released(id_: str, was_listed: bool, holding: Holding, answer: Answer) -> bool:
    """Whether an answer that does not list an id says that no pod holds it."""
    return (
        answer.complete
        and not is_being_admitted(holding, answer.asked)
        and (was_listed or (answer.checkpointed is not None and id_ not in answer.checkpointed))
    )


def _holding(
    offer: Offer, id_: str, *, listed: bool = False, given: float | None = None, links: tuple[str, ...] = ()
) -> Holding:
    device = offer.ids[id_].id
    shared = not offer.resource.is_exclusive and id_ not in offer.withheld
    return Holding(offer.resource.name, device, shared, listed, given, links)


def _unoffered(resource: str, id_: str, devices: Mapping[str, Remembered], *, listed: bool) -> Holding:
    """What a pod has of a device that is not offered now: it may be back later.

    The rules may have had replicas when the pod got it.
    """
    device = id_.rpartition(".")[0]
    is_replica = id_ not in devices and may_be_id_of(device, id_)
    return Holding(resource, device if is_replica else id_, shared=is_replica, listed=listed)


def links_to_keep(lost: Sequence[str], known: Remembered, held: Held) -> Sequence[str]:
    """Of the links that a held device has lost, the newest first: those that pods got, and some others."""
    if len(lost) <= HELD_LINK_LIMIT:
        return lost
    mine = (holding.links for holding in held.values() if holding.device == known.device.id)
    got = {*known.given, *chain.from_iterable(mine)}
    # Where nobody knows what pods got, they got what came first.
    others = [link for link in lost if link not in got]
    return (*filter(got.__contains__, lost), *others[-HELD_LINK_LIMIT:])
