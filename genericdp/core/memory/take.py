"""Takes the inventory: what the rules make of the udev devices, completed from memory.

The rules of this file:

* The daemon, `list`, `explain`, `suggest` and a `monitor` without a daemon all use `take_inventory`. So they
  give a device the same id, the same health and the same reason.
* What pods hold is known before the inventory is built: if nothing is remembered of it, ids depend on it.
* An event is a hint. What is for good, and where an id that a pod holds leads to, is decided by all devices.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from operator import itemgetter

from genericdp.core.buses.port import takes_one, usb_above
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.past import NO_TWINS, Seen, Siblings
from genericdp.core.inventory.plugged import ALL_READ
from genericdp.core.inventory.siblings.doubtful import doubtful_among
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.answered import of_several
from genericdp.core.memory.held import new_ids, unknown
from genericdp.core.memory.lasting import (
    TWO_AFTER_S,
    twins_of_unread,
    with_answered,
    with_apart,
    with_beside,
    with_guesses,
    with_lasting,
    with_maybe,
    with_unread,
    without_guesses,
)
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.memory.remembered import Remembered
from genericdp.core.usb_port import Pairs


def take_inventory(
    builder: Builder,
    devices: Mapping[str, UdevDevice],
    memory: Memory,
    now: float,
    answer: Answer | None = None,
    *,
    unread: Mapping[str, str] = ALL_READ,
) -> tuple[Inventory, Memory]:
    """The inventory of these udev devices (sys path -> snapshot) and absent ones, and the memory after it.

    now     seconds on a clock that does not jump, the same one for as long as this memory is in use
    answer  of PodResources, if there is a new one; nothing is forgotten without a complete one
    unread  what cannot be read, and may be there all the same: see `UnreadError.paths`
    """
    resources = [resource.name for resource in builder.resources]
    memory = with_lasting(memory, now)
    if memory.unread:
        memory = with_answered(memory, devices, now)
    if memory.guesses:
        memory = without_guesses(memory, devices)
    if answer is not None and memory.is_untold:
        memory = _told(memory, answer, resources)
    lost = unknown(memory.held, answer, resources, memory.devices)
    several = of_several(lost, memory.held, answer) | _with_siblings(lost, memory.devices)
    # What is known of a device that does not answer is kept, so it is there.
    past = replace(
        memory.past(now - TWO_AFTER_S),
        unknown=lost,
        of_several=several,
        unread=frozenset(unread) - devices.keys(),
    )
    built = builder.build(devices, past)
    plugged = builder.claims.plugged.with_unread(unread)
    complete, after = remember(built, memory, now, answer, plugged)
    after = replace(after, is_untold=memory.is_untold, there=frozenset(plugged.units()))
    if plugged.in_doubt or memory.doubtful:
        doubtful = doubtful_among(plugged, memory.doubtful, past.unread)
        after = replace(after, doubtful=doubtful)
    two = _matched(builder, built, devices)
    if two or memory.two or memory.apart:
        after = with_apart(after, memory, two, now)
    may_be_twins, suspects = builder.side_by_side.may_be_twins, NO_TWINS
    if unread or memory.unread:
        # If the kernel does not say of one part what is beside it, it may have done so of another one.
        found = {usb_above(path): beside for path, beside in sorted(unread.items(), key=itemgetter(1))}
        units = {unit: beside for unit, beside in found.items() if unit and unit not in devices}
        after = with_maybe(after, memory, units, devices.keys(), now)
        suspects = twins_of_unread(after, plugged)
        after = with_unread(after, memory, units, now)
    if may_be_twins or suspects or memory.beside:
        after = with_beside(after, memory, may_be_twins | suspects, now)
    if suspects or memory.guesses:
        after = with_guesses(after, memory, suspects, builder.side_by_side)
    return complete, after


def _with_siblings(ids: Collection[str], devices: Mapping[str, Remembered]) -> frozenset[str]:
    """Those of these unknown devices that may be any of several siblings that have been seen."""
    found: set[str] = set()
    for id_ in ids:
        shared = [spot.of_all for spot in devices[id_].device.also] if id_ in devices else ()
        if len({*shared}) < len(shared):
            found.add(id_)
    return frozenset(found)


def _matched(builder: Builder, built: Inventory, devices: Mapping[str, UdevDevice]) -> Pairs:
    """The sockets with two units if rules match something of both, or of the new one, which waits."""
    sockets = builder.claims.sockets
    if not sockets.two:
        return {}
    ports = {
        spot.port
        for offer in built.offers.values()
        for device in offer.devices
        for spot in device.spots_with_shared
    }
    matched = {
        sockets.new[unit]
        for device in (devices.values() if sockets.new else ())
        if (unit := usb_above(device.sys_path)) in sockets.new and builder.claims.on(device)
    }
    return {slow: pair for slow, pair in sockets.two.items() if ports >= {slow, pair.fast} or slow in matched}


def _told(memory: Memory, answer: Answer, resources: Collection[str]) -> Memory:
    """A memory that began with nothing, once an answer says what pods held then.

    Which twin is which was a guess until then. It is taken back, but for what has been given since.
    """
    memory = replace(memory, is_untold=answer.checkpointed is None and not answer.complete)
    new = new_ids(memory.held, answer, resources, memory.devices)
    if not new:
        return memory
    given = {holding.device for holding in memory.held.values() if holding.given is not None}
    devices = {
        id_: known
        for id_, known in memory.devices.items()
        if id_ in given or (known.absent_since is not None and id_ not in new)
    }
    units = {known.device.unit for known in devices.values()}
    spots = {spot.of_all for id_ in given & devices.keys() for spot in devices[id_].device.spots_with_shared}
    return replace(
        memory,
        devices=devices,
        ties=dict.fromkeys(memory.ties.keys() & units, ""),
        siblings={spot: memory.siblings[spot] for spot in memory.siblings.keys() & spots},
    )


def is_hasty(before: Memory, after: Memory) -> bool:
    """Whether a memory must not count before every device has been read: an event shows only one of them.

    That is so if twins are found or tied and if siblings have come, which get their numbers for good; and if
    an id that a pod holds gets another device node: what has come may only look like the one that the pod
    got, whose own event has not been heard yet.
    """
    if after.ties.keys() - before.ties.keys() or after.twins - before.twins:
        return True
    return _have_siblings_come(before.siblings, after.siblings) or any(
        was is not now and was is not None and now is not None and _has_another_node(was, now)
        for holding in after.held.values()
        for was, now in ((before.devices.get(holding.device), after.devices.get(holding.device)),)
    )


def _have_siblings_come(before: Siblings, after: Siblings) -> bool:
    """Whether a sibling that is there has not been seen under its number before."""
    return any(
        seen.is_there and seen[:2] != before.get(spot, {}).get(number, Seen())[:2]
        for spot, numbers in after.items()
        for number, seen in numbers.items()
    )


def _has_another_node(was: Remembered, now: Remembered) -> bool:
    if now.absent_since is not None:
        return False
    ports = {spot.port for spot in (*was.device.spots, *was.earlier)}
    paths = {node.sys_path for node in was.device.nodes}
    return any(
        spot.port not in ports or (node.sys_path not in paths and not takes_one(spot.port, node.sys_path))
        for spot, node in zip(now.device.spots, now.device.nodes, strict=False)
    )
