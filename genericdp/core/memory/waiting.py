"""Which ids have to wait, because a pod may hold a device node of theirs under another id.

The rules of this file:

* Edited rules give a device another id, another resource or other replicas, while a pod keeps what it got. An
  exclusive device node is never given out again before that pod has gone.
* A shared id does not wait for another shared one.
* Whether a pod holds the id itself does not matter: that pod may have gone, and the kubelet would give the id
  to the next one.
* A unit with a serial number is the same one at another port, unless the ids tell such units apart: those of
  twins stand for the port, and so do those of a rule with `identity = "port"`.
* Usually nothing waits, and finding this out costs one look at each holding.
* The kernel reads the serial number of a USB device once, when it is plugged in. If that fails, it has
  none. So a device may be the one that a pod holds if it has the same model and port, and exactly one of the
  two has a serial number. It waits until the held one is found elsewhere.
* None of the nodes of such a unit is offered under a new id, because the unit has to be plugged in again
  anyway. Under an id that was known before, only the node that the pod holds waits.
* The device descriptor is not evidence: a chip that could not read its configuration reports that it has no
  serial number.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, repeat
from typing import NamedTuple

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device, Health, Offer, ids_of
from genericdp.core.inventory.past import Ties
from genericdp.core.inventory.place import Spot, spot_of
from genericdp.core.memory.held import Held, Holding
from genericdp.core.memory.remembered import Remembered, Whereabouts
from genericdp.core.memory.renewal import Renewal


def with_waiting(
    offers: Mapping[str, Offer], held: Held, devices: Mapping[str, Remembered], ties: Ties
) -> tuple[Mapping[str, Offer], Mapping[str, Sequence[Spot]]]:
    """The offers in which the ids that have to wait are Unhealthy, and where units of pods have moved to.

    The latter is by the id that the pod holds, for units that have another id now.

    devices  all that are remembered, by id
    ties     the units of which there are twins
    """
    elsewhere = {
        id_: holding
        for id_, holding in held.items()
        if not _is_as_given(id_, holding, offers.get(holding.resource), devices.get(holding.device))
    }
    if not elsewhere:
        return offers, {}
    others = _Others(elsewhere, devices, frozenset(holding.device for holding in held.values()), ties)
    after = {name: _with(offer, dict(others.waiting(offer)), others.held) for name, offer in offers.items()}
    return after, others.moved


def ids_that_wait(before: Mapping[str, Offer], after: Mapping[str, Offer]) -> tuple[str, ...]:
    """The ids that `with_waiting` made wait."""
    if after is before:
        return ()
    return tuple(
        sorted(
            id_ for name, offer in after.items() for id_ in offer.refused.keys() - before[name].refused.keys()
        )
    )


def _is_as_given(id_: str, holding: Holding, offer: Offer | None, known: Remembered | None) -> bool:
    """Whether the rules still offer what the pod holds, and all of it, in the same way."""
    return (
        offer is not None
        and known is not None
        and known.absent_since is None
        and not known.earlier
        and id_ in offer.ids
        and id_ not in offer.withheld
        and holding.shared is _is_shared(offer)
    )


def _is_shared(offer: Offer) -> bool:
    return not offer.resource.is_exclusive


def _spots_of(device: Device, *, is_held: bool) -> Iterator[Spot]:
    """Where a pod may have got a node of the device, under its number and from an earlier release as well.

    A unit in a socket of USB 3 may have had the other speed then, unless a pod has it as it is.
    """
    yield from (*device.spots, *device.also, *device.before, *(() if is_held else device.across))
    for node in device.nodes:
        if not node.is_bare:
            yield spot_of(node.number)


class _Others:
    """Devices that pods hold and that are no longer offered in the same way.

    held   all devices that pods hold
    moved  where units of theirs are that have another id at another port, as far as `waiting` has looked
    """

    def __init__(
        self, elsewhere: Held, devices: Mapping[str, Remembered], held: frozenset[str], ties: Ties
    ) -> None:
        self._holders: dict[str, dict[str, Holding]] = {}
        for id_, holding in elsewhere.items():
            self._holders.setdefault(holding.device, {})[id_] = holding
        self._whereabouts = Whereabouts({id_: devices[id_] for id_ in self._holders if id_ in devices})
        self._devices, self.held, self._ties = devices, held, ties
        self.moved: dict[str, list[Spot]] = {}

    def waiting(self, offer: Offer) -> Iterator[tuple[str, str]]:
        """The ids of an offer that have to wait, each with the reason."""
        shared = _is_shared(offer)
        for device in offer.devices:
            if self._devices[device.id].absent_since is not None:
                continue
            is_held = device.id in self.held
            there = map(self._whereabouts.at, _spots_of(device, is_held=is_held))
            others = {
                id_: holding
                for holder in chain(*there, () if is_held else self._plugged_in_elsewhere(offer, device))
                for id_, holding in self._holders[holder].items()
                if not (shared and holding.shared)
            }
            names = sorted(others)
            for id_ in ids_of(device.id, offer.resource.replicas) if others else ():
                if other := next((name for name in names if name != id_), None):
                    yield id_, _reason(offer, other, others[other])

    def _plugged_in_elsewhere(self, offer: Offer, device: Device) -> Iterator[str]:
        """The devices of the same unit that pods got, perhaps while it was at another port."""
        for spot, model in zip(device.spots, chain(device.models, repeat("")), strict=False):
            for id_ in self._whereabouts.at_other_ports(spot, model):
                known, was = self._devices[id_], self._devices[id_].device
                is_twin = was.unit == device.unit and was.unit in self._ties
                # Both have ids of the same properties, whose values differ.
                by_values = known.resource == offer.resource.name and was.basis == device.basis != "serial"
                if not (is_twin or by_values or was.basis == "port"):
                    self.moved.setdefault(id_, []).append(spot)
                    yield id_


def _reason(offer: Offer, id_: str, holding: Holding) -> str:
    of = "" if holding.resource == offer.resource.name else f" of {holding.resource}"
    return f"a pod may still hold it as {id_}{of}"


def _with(offer: Offer, waiting: Mapping[str, str], held_devices: frozenset[str]) -> Offer:
    if not waiting:
        return offer
    devices: list[Device] = []
    withheld = dict(offer.withheld)
    for device in offer.devices:
        reasons = {id_: waiting[id_] for id_ in ids_of(device.id, offer.resource.replicas) if id_ in waiting}
        if reasons and device.id not in held_devices:
            # No pod has it under this id, so its link need not lead anywhere.
            devices.append(_unhealthy(device, next(iter(reasons.values()))))
            continue
        devices.append(device)
        withheld.update({id_: _unhealthy(device, reason) for id_, reason in reasons.items()})
    return replace(offer, devices=tuple(devices), withheld=withheld, refused={**offer.refused, **waiting})


def _unhealthy(device: Device, reason: str) -> Device:
    return replace(device, health=Health.UNHEALTHY, reason=reason)


class _Had(NamedTuple):
    """A node that a pod may have had: the id of its device, its spot, the model of its unit ("": unknown)."""

    id_: str
    spot: Spot
    model: str


class Unread:
    """Finds devices that may be a pod's own device whose serial number could not be read."""

    def __init__(
        self, devices: Mapping[str, Remembered], held: Held, inventory: Inventory, renewal: Renewal
    ) -> None:
        """`devices` are all that are remembered, by id; `inventory` is that of what is plugged in."""
        self._devices = devices
        self._offers = inventory.offers
        self._untold = inventory.untold
        self._renewal = renewal
        self._holdings = {holding.device: holding for holding in held.values()}
        self._exclusive = {holding.device for holding in held.values() if not holding.shared}

    def why_not(self, resource: str, device: Device) -> str:
        """Why the device must not be offered; "" if it may. `resource` is the name of its resource."""
        if not self._holdings or not any(device.models):
            return ""
        known, is_held = self._devices.get(device.id), device.id in self._holdings
        if is_held and known is not None and _has_stayed(known, device):
            return ""
        is_new = known is None and not is_held
        # What cannot be at a port any more may be listed until its event is heard.
        had_at = self._had if is_new else self._lost
        is_shared = _is_shared(self._offers[resource])
        for spot, model, node in zip(device.spots, device.models, device.nodes, strict=False):
            for had in had_at.get(spot.port, ()) if model else ():
                if (
                    had.id_ != device.id
                    and bool(had.spot.serial) is not bool(spot.serial)
                    and had.model in ("", model)
                    and (is_new or had.spot.within == spot.within)
                    # Its serial number says whose it is.
                    and not (spot.serial and is_held)
                    and (had.id_ in self._exclusive or not is_shared)
                    and not self._was_there(had.id_, spot)
                ):
                    self._renewal.units.lacking[had.id_] = _what_to_do(spot, node.path)
                    return _why_unread(spot, had.id_)
        return ""

    @cached_property
    def _lost(self) -> Mapping[str, Sequence[_Had]]:
        """Port -> the nodes that pods got there and that are not offered under the same id any more."""
        return _by_port(each for id_ in self._holdings for each in self._lost_of(id_))

    @cached_property
    def _had(self) -> Mapping[str, Sequence[_Had]]:
        """Port -> all nodes that pods got there."""
        found = (each for id_ in self._holdings for each in self._present_of(id_))
        return _by_port(chain(found, *self._lost.values()))

    def _lost_of(self, id_: str) -> Iterator[_Had]:
        known, now = self._devices.get(id_), self._now(id_)
        if known is None or (now is known.device and not known.earlier):
            return
        if now is not None and self._is_the_one(now):
            earlier = self._renewal.renewed(known.resource, now).earlier
        else:
            earlier = known.earlier
            yield from _had_of(id_, known.device)
        for spot in earlier:
            yield _Had(id_, spot, "")

    def _present_of(self, id_: str) -> Iterator[_Had]:
        now = self._now(id_)
        if now is not None and self._is_the_one(now):
            yield from _had_of(id_, now)

    def _was_there(self, id_: str, spot: Spot) -> bool:
        """Whether the device last seen under a held id had this very spot.

        Then no serial number is in question, and `with_waiting` compares the two.
        """
        known = self._devices.get(id_)
        return known is not None and spot in known.device.spots

    def _now(self, id_: str) -> Device | None:
        """The device that currently has the id of a held device; None if there is none."""
        offer = self._offers.get(self._holdings[id_].resource)
        return None if offer is None else offer.called(id_)

    def _is_the_one(self, now: Device) -> bool:
        """Whether the device that currently has a held id is the one that the pod got."""
        resource = self._holdings[now.id].resource
        return now.id not in self._untold and not self._renewal.why_not(resource, now)


def _had_of(id_: str, device: Device) -> Iterator[_Had]:
    for spot, model in zip(device.spots, chain(device.models, repeat("")), strict=False):
        yield _Had(id_, spot, model)


def _by_port(found: Iterator[_Had]) -> Mapping[str, Sequence[_Had]]:
    at: dict[str, list[_Had]] = {}
    for each in found:
        at.setdefault(each.spot.port, []).append(each)
    return at


def _has_stayed(known: Remembered, device: Device) -> bool:
    """Whether the device is the very node that it was: nothing has come that may be another one."""
    return known.absent_since is None and not {*known.device.also}.isdisjoint(device.also)


def _why_unread(spot: Spot, id_: str) -> str:
    if spot.serial:
        return (
            f"it may be {id_}, which a pod may still hold and whose serial number could not be read; "
            "it is offered when that pod is deleted"
        )
    return (
        f"its serial number could not be read, so it may be {id_}, which a pod may still hold; unplug it and "
        "plug it in again, at another port if it has no serial number"
    )


def _what_to_do(spot: Spot, path: str) -> str:
    if spot.serial:
        return f"{path}, whose serial number can be read now: delete the pod that holds it"
    return f"{path}, whose serial number could not be read: unplug it and plug it in again"
