"""What is worth a log line when the inventory changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device, Offer

#: For a new resource, at most this many reasons why devices are Unhealthy are named.
REASON_LIMIT = 3

UNSURE = "only the order of device nodes decides which has this id; give the resource an 'identity'"


@dataclass(frozen=True, slots=True)
class News:
    """One log line: a fixed message, and what it is about as fields."""

    message: str
    fields: Mapping[str, str | int] = field(default_factory=dict)
    warning: bool = False


def news(old: Inventory, new: Inventory) -> Iterator[News]:
    """What changed: resources, devices, conflicting claims, refusals."""
    for name, offer in new.offers.items():
        if name not in old.offers:
            yield _of_resource(offer)
            continue
        before = {device.id: device for device in old.offers[name].devices}
        after = {device.id: device for device in offer.devices}
        for id_, device in after.items():
            yield from _of_device(name, before.get(id_), device)
        yield from _of_waiting(old.offers[name], offer)
        for id_ in before.keys() - after.keys():
            yield News("device forgotten", {"resource": name, "id": id_})
    for name in old.offers.keys() - new.offers.keys():
        yield News("resource is no longer offered", {"resource": name})
    for overlap in new.overlaps:
        if overlap not in old.overlaps:
            fields = {"node": overlap.node, "taken_by": overlap.winner, "not_by": ", ".join(overlap.losers)}
            yield News("several resources match a device node; the first in file order gets it", fields, True)
    for conflict in new.conflicts:
        if conflict not in old.conflicts:
            fields = {
                "node": conflict.node,
                "owned_by": conflict.owner,
                "shared_by": ", ".join(conflict.sharers),
            }
            yield News("a device node for one container at a time is shared by other resources", fields, True)
    for refusal in new.refusals:
        if refusal not in old.refusals:
            fields = {"resource": refusal.resource, "node": refusal.node, "why": refusal.reason}
            yield News("device node is not offered", fields, True)
    for id_ in new.unsure:
        if id_ not in old.unsure:
            yield News(UNSURE, {"id": id_}, True)


def _of_waiting(old: Offer, new: Offer) -> Iterator[News]:
    """What begins or ends to wait although its device is Healthy."""
    if old.refused == new.refused:
        return
    before = {device.id: old.why_waiting(device) for device in old.devices if device.healthy}
    for device in new.devices:
        why = new.why_waiting(device) if device.healthy else ""
        if why and not before.get(device.id):
            fields = {"resource": new.resource.name, "id": device.id, "why": why}
            yield News("new pods have to wait for a device", fields, True)
        elif device.healthy and before.get(device.id) and not why:
            fields = {"resource": new.resource.name, "id": device.id}
            yield News("new pods may have a device again", fields)


def _of_resource(offer: Offer) -> News:
    fields: dict[str, str | int] = {"resource": offer.resource.name, "devices": len(offer.devices)}
    unhealthy = [device.reason for device in offer.devices if not device.healthy]
    if unhealthy:
        reasons = sorted(set(unhealthy))
        more = [f"and {len(reasons) - REASON_LIMIT} other reasons"] if len(reasons) > REASON_LIMIT else []
        fields["unhealthy"] = len(unhealthy)
        fields["why"] = "; ".join([*reasons[:REASON_LIMIT], *more])
    return News("resource is offered", fields)


def _of_device(resource: str, before: Device | None, after: Device) -> Iterator[News]:
    fields = {"resource": resource, "id": after.id}
    nodes = ", ".join(node.path for node in after.nodes)
    if before is None or before.health is not after.health:
        if after.healthy:
            word = "appeared" if before is None else "is back"
            yield News(f"device {word}", {**fields, "nodes": nodes})
        elif before is None:
            # Usually this lasts only an instant: nodes appear one after the other.
            yield News("device appeared, but is unhealthy", {**fields, "why": after.reason})
        else:
            yield News("device is unhealthy", {**fields, "why": after.reason}, True)
    elif before.reason != after.reason:
        yield News("device is still unhealthy", {**fields, "why": after.reason})
    elif before.healthy and [node.path for node in before.nodes] != [node.path for node in after.nodes]:
        yield News("device has different nodes", {**fields, "nodes": nodes})
