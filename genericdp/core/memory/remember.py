"""Remembers devices, so that no id is dropped and no device node is given out twice while a pod may hold it.

The rules of this file:

* A device that has left stays in the inventory as Unhealthy. It is forgotten only when PodResources says
  that no pod holds it and its grace time has passed: a dropped id crashes kubelet 1.36 and makes the
  status of its pod say Healthy.
* No limit makes an exception: it refuses new devices (`room`).
* Its links stay even when its resource has left the rules. Without them, CRI-O would start the container
  of a pod that holds the device as if nothing were missing.
* Everything here outlives a reboot (`genericdp.files.state` saves it): the kubelet saves its answers, and
  they name links of devices that may not be back yet.
"""

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from genericdp.core.inventory.inventory import NO_RULE, Inventory, Orphan, Refusal
from genericdp.core.inventory.offer import Device, Health, Offer, in_order
from genericdp.core.inventory.past import Siblings
from genericdp.core.inventory.plugged import NOTHING_PLUGGED, Plugged
from genericdp.core.memory.absence import WITHOUT_RULE, Absence
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.answered import (
    held_links,
    learn_links,
    learn_names,
    still_held,
    with_led,
    with_links,
)
from genericdp.core.memory.given.parts import with_not_given
from genericdp.core.memory.held import learn, with_lost
from genericdp.core.memory.lasting import TWO_AFTER_S, apart_from_unread
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered, docks_of, models_of, without_numbers
from genericdp.core.memory.renamed import after_upgrade, leading, still_renamed
from genericdp.core.memory.renewal import Renewal
from genericdp.core.memory.room import (
    Room,
    all_fit,
    lost_replicas,
    room_for,
    ties_worth_keeping,
    twins_worth_keeping,
)
from genericdp.core.memory.waiting.other_ids import ids_that_wait, with_waiting
from genericdp.core.memory.waiting.unread import Unread
from genericdp.core.memory.withdrawn import next_dropping, withdraw, without_needless
from genericdp.core.rules.resource import Resource, grace_s


def remember(
    inventory: Inventory,
    memory: Memory,
    now: float,
    answer: Answer | None = None,
    plugged: Plugged = NOTHING_PLUGGED,
) -> tuple[Inventory, Memory]:
    """The inventory with its absent devices as Unhealthy, and the memory afterwards.

    now      seconds, on a clock that does not jump
    answer   of PodResources, if there is a new one; nothing is forgotten without a complete one
    plugged  the device nodes that are plugged in: they may be plugged in and yet not offered
    """
    if memory.is_of_earlier_release:
        memory = after_upgrade(memory, inventory.offers, plugged)
    memory = memory if answer is None else _told(memory, answer, inventory.offers)
    held, held_devices = memory.held, memory.held_devices
    unknown, forget = _unknown(memory, answer, plugged), answer is not None and answer.complete
    every = with_lost(memory.devices, unknown, inventory.offers)
    renewal = Renewal(every, held, plugged, inventory, apart_from_unread(memory, now))
    gone = _by_resource({**unknown, **memory.devices, **renewal.ambiguous})
    unread = Unread(memory.devices, held, inventory, renewal, memory.apart)
    others, refusals = list[str](), list[Refusal]()
    present: dict[str, dict[str, Remembered]] = {name: {} for name in inventory.offers}
    for name, offer in inventory.offers.items():
        for device in offer.devices:
            refusal = (
                _why_untold(inventory, device)
                or renewal.why_not(name, device)
                or unread.why_not(name, device)
            )
            if refusal:
                others.append(device.id)
                refusals += [Refusal(name, node.path, refusal, device.id) for node in device.nodes]
            else:
                known = memory.devices.get(device.id)
                gone.get(name if known is None else known.resource, {}).pop(device.id, None)
                present[name][device.id] = renewal.renewed(name, device)
    absence = Absence(
        plugged,
        inventory,
        memory.devices.keys(),
        lacking=renewal.units.lacking,
        also_held=renewal.also_held,
        replaced=renewal.left.replaced,
    )
    leaving = _Leaving(now, held_devices, forget, absence, renewal)
    offers: dict[str, Offer] = {}
    devices, crowded = dict[str, Remembered](), dict[str, Remembered]()
    for name, offer in inventory.offers.items():
        absent = leaving.absent(gone.pop(name, {}), offer.resource)
        lost = lost_replicas(absent, offer.resource.replicas)
        absent = {id_: known for id_, known in absent.items() if id_ not in lost} if lost else absent
        crowded |= lost
        mine, without_room = {**present[name], **absent}, [known.device for known in lost.values()]
        if not all_fit(len(present[name]), len(absent), offer.resource.replicas):
            room = leaving.room(present[name], absent, memory.devices, offer.resource)
            for id_ in mine.keys() - room.listed:
                known = mine.pop(id_)
                if id_ in present[name]:
                    refusals += [Refusal(name, node.path, room.refusal) for node in known.device.nodes]
                if id_ in memory.devices:
                    crowded[id_] = replace(leaving.tombstone(known, room.refusal), listed=False)
                    without_room.append(known.device)
        devices |= mine
        offers[name] = _with_devices(offer, [known.device for known in mine.values()], without_room)
    orphans = {id_: known for mine in gone.values() for id_, known in leaving.absent(mine, None).items()}
    devices |= orphans
    shared, shares = withdraw(
        offers,
        memory.shares,
        _by_resource({**devices, **crowded} if crowded else devices),
        before=memory.devices,
        now=now,
        held=held,
        forget=forget,
    )
    if crowded:
        devices, shared = without_needless({**devices, **crowded}, crowded.keys(), shared, shares)
    # A guess does not tell units apart. Usually there is none, and there may be thousands of twins.
    certain = replace(inventory, twins=inventory.twins - memory.guesses) if memory.guesses else inventory
    final, moved, joined = with_waiting(
        shared, held, with_not_given(devices, memory.devices, held), certain, renewal
    )
    devices = with_not_given(devices, memory.devices, held, joined)
    complete = replace(
        inventory,
        offers=final,
        waiting=tuple(sorted({*ids_that_wait(shared, final), *others, *inventory.waiting})),
        refusals=tuple(sorted((*inventory.refusals, *refusals))) if refusals else inventory.refusals,
        orphans=tuple(sorted(Orphan(orphans[id_].resource, id_) for id_ in orphans.keys() & held_devices)),
        orphaned_links=tuple(sorted({link for known in orphans.values() for link in known.device.links})),
        held_links=held_links(held, devices, plugged, moved, renewal.left.replaced),
        renamed_links=leading(still_renamed(memory.renamed, held_devices), final, devices),
    )
    return complete, Memory(
        without_numbers(devices, inventory.offers.values(), held_devices, plugged.anew),
        ties_worth_keeping(inventory.ties, devices),
        shares,
        held,
        _siblings(plugged, devices, memory),
        still_held(memory.answered, held),
        still_renamed(memory.renamed, held_devices),
        twins=twins_worth_keeping(inventory.twins, devices.values()),
    )


def next_forgetting(memory: Memory, inventory: Inventory) -> float | None:
    """When the first grace of an absent device or a withdrawn id ends, on the clock of `remember`.

    Or the minute after which two units that may be one are two. None when there is nothing of all this. In
    the past for what is still held, or may be.
    """
    ends = [
        known.absent_since + grace_s(offer.resource if offer is not None else None)
        for known in memory.devices.values()
        if known.absent_since is not None
        for offer in (inventory.offers.get(known.resource),)
    ]
    begun = (*(since for since, _ in memory.two.values()), *memory.beside.values())
    ends += [since + TWO_AFTER_S for since in begun]
    dropping = next_dropping(memory.shares, inventory.offers)
    return min(ends if dropping is None else [*ends, dropping], default=None)


def _why_untold(inventory: Inventory, device: Device) -> str:
    lost = inventory.untold.get(device.id)
    return f"it cannot be told apart from a device that a pod may still hold as {lost[0]}" if lost else ""


def _told(memory: Memory, answer: Answer, offers: Mapping[str, Offer]) -> Memory:
    """The memory with what an answer says of pods: what they hold, and what they got under these ids."""
    held = learn_links(learn(memory.held, answer, offers, memory.devices), answer)
    devices = with_links(memory.devices, memory.held, held)
    return replace(memory, devices=devices, held=held, answered=learn_names(memory.answered, answer, held))


def _unknown(memory: Memory, answer: Answer | None, plugged: Plugged) -> Mapping[str, Remembered]:
    """What pods hold although nothing is remembered of it: its id must be listed, and its links dead."""
    lost = [holding for holding in memory.held.values() if holding.device not in memory.devices]
    links: dict[str, dict[str, None]] = {}
    for holding in lost:
        links.setdefault(holding.device, {}).update(dict.fromkeys(holding.links or (holding.device,)))
    unknown = {
        holding.device: Remembered(
            holding.resource, Device(holding.device, links=tuple(links[holding.device]))
        )
        for holding in lost
    }
    return with_led(unknown, answer, plugged)


def _siblings(plugged: Plugged, devices: Mapping[str, Remembered], memory: Memory) -> Siblings:
    if not plugged.siblings:
        return plugged.siblings
    moved = [each for known in devices.values() for each in known.earlier.items()]
    spots = (spot for known in devices.values() for spot in known.device.spots_with_shared)
    every = (*memory.devices.values(), *devices.values()) if moved else ()
    return plugged.remembered(spots, moved, memory.siblings, docks_of(every), models_of(every))


@dataclass(frozen=True, slots=True)
class _Leaving:
    """Decides what stays of devices that have left.

    held    the devices that pods hold
    forget  whether it is certain that no pod holds another one
    """

    now: float
    held: Collection[str]
    forget: bool
    absence: Absence
    renewal: Renewal

    def absent(self, gone: Mapping[str, Remembered], resource: Resource | None) -> dict[str, Remembered]:
        """The tombstones of the devices that may not be forgotten yet."""
        absent: dict[str, Remembered] = {}
        for id_, known in gone.items():
            if not self.forget or self.left(known, resource) is None:
                why = self.absence.reason(known.resource, known.device, is_held=id_ in self.held)
                absent[id_] = self.tombstone(
                    known, NO_RULE if resource is None and why in WITHOUT_RULE else why
                )
        return absent

    def left(self, known: Remembered, resource: Resource | None) -> float | None:
        """When a device left that no pod holds and whose grace has passed; None for any other."""
        since = known.absent_since
        if since is None or known.device.id in self.held or self.now - since < grace_s(resource):
            return None
        return None if known.device.id in self.renewal.witnesses else since

    def room(
        self,
        present: Iterable[str],
        absent: Mapping[str, Remembered],
        known: Mapping[str, Remembered],
        resource: Resource,
    ) -> Room:
        """Which of these devices of a resource are listed."""
        may_go = {id_: self.left(each, resource) for id_, each in absent.items()}
        is_known = {id_: id_ in self.held or (id_ in known and known[id_].listed) for id_ in present}
        return room_for(is_known, may_go, self.held, resource.replicas)

    def tombstone(self, known: Remembered, reason: str) -> Remembered:
        """What takes the place of a device that has left."""
        also, links = self.absence.also(known.device), self.absence.links(known.device)
        before = known.device.reason, known.device.also, known.device.links
        if known.absent_since is not None and before == (reason, also, links):
            return known
        # Another device may have its sys paths by now. Allocate still needs the rest of its nodes.
        nodes, shared = (
            tuple(replace(node, sys_path="") for node in these)
            for these in (known.device.nodes, known.device.shared)
        )
        device = replace(
            known.device,
            health=Health.UNHEALTHY,
            reason=reason,
            nodes=nodes,
            shared=shared,
            also=also,
            links=links,
        )
        since = self.now if known.absent_since is None else known.absent_since
        return replace(known, device=device, absent_since=since, listed=True)


def _by_resource(devices: Mapping[str, Remembered]) -> dict[str, dict[str, Remembered]]:
    mine: dict[str, dict[str, Remembered]] = {}
    for id_, known in devices.items():
        mine.setdefault(known.resource, {})[id_] = known
    return mine


def _with_devices(offer: Offer, devices: Sequence[Device], crowded: Sequence[Device]) -> Offer:
    if not crowded and len(devices) == len(offer.devices) and all(map(operator.is_, devices, offer.devices)):
        return offer
    return Offer(offer.resource, in_order(devices), crowded=tuple(crowded))
