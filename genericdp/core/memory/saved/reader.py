"""Reads a saved memory.

The rules of this file:

* Names in a saved memory go to the kubelet and become links. An entry that this program cannot have
  written makes the whole text unreadable.
* Inodes in sysfs tell siblings of one boot only. In another boot, where each of them was is all that counts.
* A memory that does not say what pods hold says that they may hold everything.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from genericdp.core.inventory.identity import in_path_order
from genericdp.core.inventory.offer import Device, Health, SharedAt, ids_of
from genericdp.core.inventory.past import Doubtful, Seen, Siblings
from genericdp.core.inventory.place import Spot, is_of_node, is_of_number
from genericdp.core.memory import fields
from genericdp.core.memory.answered import CdiDevice
from genericdp.core.memory.held import Holding
from genericdp.core.memory.memory import Memory, Unit
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.saved.writer import FORMAT
from genericdp.core.memory.withdrawn import Shares, Withdrawn

#: How much of a reason is shown: it quotes what was saved.
_LONGEST_REASON = 500


class UnreadableMemoryError(ValueError):
    """What was saved is not a memory of this version; the message says why, as the end of a sentence."""


def load(saved: bytes, boot: str = "") -> Memory:
    """The memory that was saved, read in the boot with this id. Raises UnreadableMemoryError."""
    try:
        document = json.loads(saved.decode())
        version = document["version"]
        memory = _parse(document, boot) if version == FORMAT else None
    except json.JSONDecodeError as error:
        raise UnreadableMemoryError(f"is not JSON: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else f"{error}"
        if len(why) > _LONGEST_REASON:
            why = f"{why[:_LONGEST_REASON]}…"
        raise UnreadableMemoryError(f"is broken: {why}") from error
    if memory is None:
        raise UnreadableMemoryError(
            f"has format {version!r}; this version of genericdp reads format {FORMAT}"
        )
    return memory


def _parse(document: Any, boot: str) -> Memory:
    ties = {fields.text(unit): fields.text(port) for unit, port in document["ties"].items()}
    saved_in = fields.text(document.get("boot", ""))
    is_same_boot = saved_in == boot
    # Without the id of either, it may be this boot.
    may_be_this_boot = is_same_boot or not saved_in or not boot
    devices = {
        id_: _parse_device(fields.device_id(id_), entry, is_same_boot=is_same_boot)
        for id_, entry in document["devices"].items()
    }
    if not may_be_this_boot:
        devices = {id_: replace(known, is_of_this_boot=False) for id_, known in devices.items()}
    shares = _parse_shares(document)
    for id_, one in shares.withdrawn.items():
        if id_ in devices and id_ != one.device:
            raise ValueError(f"{id_!r} is both a device and a withdrawn id")
    if "held" in document:
        held = {id_: _parse_holding(id_, entry) for id_, entry in document["held"].items()}
    else:
        # An early build did not save it; the first complete answer of PodResources says it.
        held = dict(_all(devices, shares))
    answered = dict(_parse_answered(entry) for entry in fields.items(document.get("answered", [])))
    renamed = {fields.link(old): fields.link(new) for old, new in document.get("renamed", {}).items()}
    siblings = _parse_siblings(
        document.get("siblings", []),
        document.get("late"),
        document.get("sibling_models", []),
        devices.values(),
    )
    left = frozenset(map(_parse_unit, fields.items(document.get("left", []))))
    doubtful = dict(map(_parse_doubtful, fields.items(document.get("doubtful", []))))
    if not is_same_boot:
        left, doubtful = frozenset(), {}
        siblings = {
            spot: {number: seen.gone for number, seen in numbers.items()}
            for spot, numbers in siblings.items()
        }
    return Memory(
        devices,
        ties,
        shares,
        held,
        siblings,
        answered,
        renamed,
        "answered" not in document,
        fields.truth(document.get("untold", False)),
        fields.apart(document.get("apart", {})),
        twins=frozenset(map(fields.twin, fields.items(document.get("twins", [])))),
        guesses=frozenset(map(fields.twin, fields.items(document.get("guesses", [])))),
        there=_there(devices.values()).difference(unit[:2] for unit in left),
        left=left,
        doubtful=doubtful,
    )


def _parse_shares(document: Any) -> Shares:
    replicas = {
        fields.resource(name): fields.count(number) for name, number in document.get("replicas", {}).items()
    }
    withdrawn = {}
    for id_, entry in document.get("withdrawn", {}).items():
        one = Withdrawn(fields.resource(entry["resource"]), fields.device_id(entry["device"]))
        withdrawn[fields.id_of(one.device, id_)] = one
    return Shares(replicas, withdrawn)


def _parse_device(id_: str, entry: Any, *, is_same_boot: bool) -> Remembered:
    def lasts(spot: Spot) -> bool:
        return is_same_boot or not is_of_node(spot)

    spots = tuple(fields.spot(spot) for spot in fields.items(entry.get("spots", [])))
    docks, unread, docks_of_shared = (
        dict(map(fields.spot_with_dock, fields.items(entry.get(name, []))))
        for name in ("docks", "unread_docks", "shared_docks")
    )
    links = tuple(fields.link_of(id_, name) for name in fields.items(entry["links"]))
    shared = tuple(fields.shared_link(name) for name in fields.items(entry.get("shared", [])))
    device = Device(
        id=id_,
        health=Health.UNHEALTHY,
        links=(*links[: len(spots)], *shared, *links[len(spots) :]),
        numa=fields.count(entry["numa"]),
        unit=fields.text(entry["unit"]),
        basis=fields.text(entry.get("basis", "")),
        key_hash=fields.text(entry.get("key_hash", "")),
        port=fields.text(entry["port"]),
        hub=fields.text(entry["hub"]),
        spots=spots,
        models=fields.models(entry.get("models", []), len(spots)),
        shared_at={
            spot: SharedAt(model=model, dock=docks_of_shared.get(spot))
            for spot, model in fields.spots_with_models(
                entry.get("shared_spots", []), entry.get("shared_models", [])
            )
        },
        docks={spot: docks.pop(spot) for spot in spots if spot in docks},
        also=tuple(filter(lasts, map(fields.spot, fields.items(entry.get("also", []))))),
    )
    earlier = fields.spots_with_models(entry.get("earlier", []), entry.get("earlier_models", []))
    return Remembered(
        fields.resource(entry["resource"]),
        device,
        # After a boot, only the last number of a bare node may still say what it is.
        earlier={spot: model for spot, model in earlier if is_same_boot or not is_of_number(spot)},
        listed=fields.truth(entry.get("listed", True)),
        is_of_this_boot=fields.truth(entry.get("of_this_boot", True)),
        not_given=frozenset(map(fields.spot, fields.items(entry.get("not_given", [])))),
        docks={**docks, **unread},
        given={fields.link_of(id_, at): fields.part(each) for at, each in entry.get("given", {}).items()},
    )


def _parse_holding(id_: str, entry: Any) -> Holding:
    device = fields.device_id(entry["device"])
    fields.id_of(device, id_)
    links = tuple(fields.link_in_answer(device, name) for name in fields.items(entry.get("links", [])))
    return Holding(fields.resource(entry["resource"]), device, fields.truth(entry["shared"]), links=links)


def _all(devices: Mapping[str, Remembered], shares: Shares) -> Iterator[tuple[str, Holding]]:
    """Everything that pods may hold: id -> what a pod may have."""
    for device, known in devices.items():
        replicas = shares.replicas.get(known.resource)
        for id_ in ids_of(device, replicas):
            yield id_, Holding(known.resource, device, shared=(replicas or 1) > 1)
    for id_, one in shares.withdrawn.items():
        yield id_, Holding(one.resource, one.device, shared=id_ != one.device)


def _parse_answered(entry: Any) -> tuple[str, CdiDevice]:
    device = CdiDevice(
        fields.resource(entry["resource"]), tuple(fields.any_id(id_) for id_ in fields.items(entry["ids"]))
    )
    if not device.ids:
        raise ValueError("a CDI device without ids")
    return device.name, device


def _there(devices: Iterable[Remembered]) -> frozenset[tuple[str, str]]:
    """What is taken for plugged in, because it was not said to have left."""
    return frozenset((spot.port, spot.serial) for known in devices for spot in known.device.spots)


def _parse_doubtful(value: Any) -> tuple[Spot, Doubtful]:
    *shared, unit, nodes = fields.items(value)
    at = frozenset(map(_parse_node, fields.items(nodes)))
    return fields.spot(shared), Doubtful(_parse_node(unit), at)


def _parse_node(value: Any) -> tuple[str, int]:
    path, inode = fields.items(value)
    return fields.text(path), fields.integer(inode)


def _parse_unit(value: Any) -> Unit:
    port, serial, model = map(fields.text, fields.items(value))
    return Unit(port, serial, model)


def _parse_siblings(value: Any, late: Any, models: Any, devices: Iterable[Remembered]) -> Siblings:
    """The numbers of siblings, with those of these devices."""
    siblings: dict[Spot, dict[int, Seen]] = {}
    for *shared, numbers in map(fields.items, fields.items(value)):
        siblings[fields.spot(shared)] = {
            fields.spot([*shared, number]).number: Seen(fields.text(path), fields.integer(inode))
            for number, path, inode in map(fields.items, fields.items(numbers))
        }
    for spot in _late(late, siblings):
        numbers = siblings[spot.of_all]
        numbers[spot.number] = numbers[spot.number]._replace(is_late=True)
    for *shared, mine in map(fields.items, fields.items(models)):
        numbers = siblings[fields.spot(shared)]
        for number, model in map(fields.items, fields.items(mine)):
            numbers[number] = numbers[number]._replace(model=fields.text(model))
    # What is saved of siblings is all that is known of them; an earlier release left out some.
    if late is not None:
        return siblings
    spots = [spot for each in devices for spot in (*each.device.spots, *each.earlier)]
    for spot in spots:
        if spot.number > 0:
            siblings.setdefault(spot.of_all, {})
    for spot in spots:
        if spot.number >= 0 and spot.of_all in siblings:
            siblings[spot.of_all].setdefault(spot.number, Seen())
    return siblings


def _late(value: Any, siblings: Siblings) -> list[Spot]:
    """Those of siblings that did not come in their order; of an earlier release, those that are not in it."""
    if value is not None:
        return [
            fields.spot([*shared, number])
            for *shared, numbers in map(fields.items, fields.items(value))
            for number in fields.items(numbers)
        ]
    late: list[Spot] = []
    for spot, numbers in siblings.items():
        last = in_path_order("")
        for number in sorted(numbers):
            order = in_path_order(numbers[number].order)
            if order < last:
                late.append(spot._replace(number=number))
            last = max(last, order)
    return late
