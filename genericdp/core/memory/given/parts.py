"""Parts that have come to a device since a pod got it, and were not given to that pod.

The rules of this file:

* A device waits while it contains a unit that another pod holds. So its own pod did not get that unit.
* A pod did not get a device node if the answer to it did not name the link. If the links of an answer are not
  known, the pod may have got any part.
* A part that was there before counts as given, even after it has moved to another port of the device or has
  been renamed. So does one that may be it, because the serial number could not be read then or now.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from genericdp.core.inventory.part import has_serial, is_part, part_of
from genericdp.core.inventory.place import Spot, may_be_model
from genericdp.core.memory.held import Held
from genericdp.core.memory.remembered import Remembered


def with_not_given(
    devices: dict[str, Remembered],
    before: Mapping[str, Remembered],
    held: Held,
    joined: Mapping[str, Sequence[Spot]] | None = None,
) -> dict[str, Remembered]:
    """What is remembered after a step, with the parts that were not given: `Remembered.not_given`.

    before  what was remembered before the step
    joined  id of a device -> where it contains units that other pods hold; None before that is known
    """
    changed: dict[str, Remembered] = {}
    links: Mapping[str, frozenset[str]] | None = None
    for id_, known in devices.items():
        was = before.get(id_)
        if was is None or known.absent_since is not None:
            continue
        # Usually nothing has changed, and there may be thousands.
        if known.device is was.device and not known.not_given and id_ not in (joined or ()):
            continue
        had, others = was.spots, known.not_given if joined is None else joined.get(id_, ())
        now = zip(known.device.spots_with_models, known.device.links, strict=False)
        new = [(*at, link) for at, link in now if not _was_there(had, *at)]
        links = _links(held) if new and links is None else links
        own = (links or {}).get(id_, frozenset())
        has = {*known.device.spots}
        lost = [each for each in had.items() if each[0] not in has]
        not_given = frozenset(
            spot
            for spot, model, link in new
            if (spot in others and not _has_moved(lost, spot, model))
            or (own and link not in own and not _may_be_of(lost, spot, model))
        )
        if not_given != known.not_given:
            changed[id_] = replace(known, not_given=not_given)
    return {**devices, **changed} if changed else devices


def as_given(
    devices: Mapping[str, Remembered], allocated: Mapping[str, str], before: Held
) -> Mapping[str, Remembered]:
    """The memory after Allocate: a pod got these devices as they are now.

    The kubelet allocates an id again only when no container has it any more, or to another container of the
    same pod.

    allocated  id -> device
    before     what pods held before
    """
    found = {id_: devices[id_] for id_ in allocated.values() if id_ in devices}
    as_now = {id_: _as_shared_now(known) for id_, known in found.items()}
    differ = {id_ for id_, known in found.items() if known.earlier or known.given or as_now[id_] is not known}
    # The pod of another id may have a part that has gone. Usually none differs, and there may be thousands.
    others = {
        holding.device
        for id_, holding in (before.items() if differ else ())
        if holding.device in differ and id_ not in allocated
    }
    changed: dict[str, Remembered] = {}
    for id_, known in found.items():
        if id_ in differ - others:
            changed[id_] = replace(as_now[id_], not_given=frozenset(), earlier={}, docks={}, given={})
        elif known.not_given or known.given:
            all_given = replace(known, not_given=frozenset(), given={})
            # Pods of one device may have got different links.
            given = {**all_given.parts, **known.given} if known.given else {}
            changed[id_] = replace(all_given, given=given)
    return {**devices, **changed} if changed else devices


def _as_shared_now(known: Remembered) -> Remembered:
    """The same with only those shared nodes that are given out now."""
    if not known.device.nodes:  # It has not been seen since the start.
        return known
    here = {spot: at for spot, at in known.device.shared_at.items() if at.node is not None}
    is_same = len(here) == len(known.device.shared_at)
    return known if is_same else replace(known, device=replace(known.device, shared_at=here))


def _was_there(had: Mapping[Spot, str], spot: Spot, model: str) -> bool:
    return spot in had and may_be_model(had[spot], model)


def _has_moved(lost: Iterable[tuple[Spot, str]], spot: Spot, model: str) -> bool:
    """Whether a part is one that was at another port, as its serial number says."""
    return has_serial(spot) and any(is_part(part_of(spot, model), part_of(*was)) for was in lost)


def _may_be_of(lost: Iterable[tuple[Spot, str]], spot: Spot, model: str) -> bool:
    """Whether a part may be one that was at another port, or whose serial number could not be read.

    It may have another link now.
    """
    return any(
        (spot[1:3] == was[1:3] or _is_unread(spot, was)) and may_be_model(model, was_model)
        for was, was_model in lost
    )


def _is_unread(spot: Spot, was: Spot) -> bool:
    """Whether a part may be the one that was at its port, whose serial number is unread in one case."""
    return "" in (spot.serial, was.serial) and spot._replace(serial="") == was._replace(serial="")


def _links(held: Held) -> Mapping[str, frozenset[str]]:
    """The links that pods got of each device; none if they are not known of one of its pods."""
    found: dict[str, frozenset[str]] = {}
    for holding in held.values():
        mine = found.get(holding.device)
        is_known = holding.links != () and mine != frozenset()
        found[holding.device] = frozenset(holding.links).union(mine or ()) if is_known else frozenset()
    return found
