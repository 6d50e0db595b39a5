"""Which ids have to wait, because a pod may hold a device node of theirs under another id.

The rules of this file:

* Edited rules give a device another id, another resource or other replicas, while a pod keeps what it got. An
  exclusive device node is never given out again before that pod has gone.
* A shared id does not wait for another shared one.
* Whether a pod holds the id itself does not matter: that pod may have gone, and the kubelet would give the id
  to the next one.
* A unit with a serial number is the same one at another port. So is one without, behind a dock that has one,
  and one whose ids stand for the same values of the same properties. That is not so if what a pod got is
  still where it was, or if the ids tell such units apart: those of twins stand for the port, and so do those
  of a rule with `identity = "port"`.
* Equal values alone do not make it another pod's if its own pod got it there, or with its serial number.
* Usually nothing waits, and finding this out costs one look at each holding.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.naming.links import short_name
from genericdp.core.inventory.offer import Device, Health, Offer, ids_of
from genericdp.core.inventory.part import has_serial, is_part, may_be_twin, part_of
from genericdp.core.inventory.past import Twin
from genericdp.core.inventory.place import Spot, is_of_node, is_of_number, may_be_model
from genericdp.core.inventory.twins import HUB
from genericdp.core.memory.given.left import have_other_values
from genericdp.core.memory.held import Held, Holding
from genericdp.core.memory.remembered import Remembered, Whereabouts
from genericdp.core.memory.renewal import Renewal

#: Spots of units by the id of a device.
ById = Mapping[str, Sequence[Spot]]


def with_waiting(
    offers: Mapping[str, Offer],
    held: Held,
    devices: Mapping[str, Remembered],
    inventory: Inventory,
    renewal: Renewal,
) -> tuple[Mapping[str, Offer], ById, ById]:
    """The offers in which the ids that have to wait are Unhealthy, and where units of pods have moved to.

    The latter is by the id that the pod holds, for units that have another id now, and by the id of a device
    that another pod holds, for those that are part of it now.

    devices    all that are remembered, by id
    inventory  that of what is plugged in: which units have twins, or the same serial number
    """
    elsewhere = {
        id_: holding
        for id_, holding in held.items()
        if not _is_as_given(id_, holding, offers.get(holding.resource), devices.get(holding.device))
    }
    if not elsewhere:
        return offers, {}, {}
    held_devices = frozenset(holding.device for holding in held.values())
    others = _Others(elsewhere, devices, held_devices, inventory, renewal)
    waiting = {name: dict(others.waiting(offer)) for name, offer in offers.items()}
    # A container that starts again would get what another one has.
    held_devices = held_devices - others.joined.keys()
    after = {name: _with(offer, waiting[name], held_devices) for name, offer in offers.items()}
    return after, others.moved, others.joined


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


def _spots_of(device: Device, *, is_held: bool) -> Sequence[Spot]:
    """Where a pod may have got a node of the device, from an earlier release as well.

    A unit in a socket of USB 3 may have had the other speed then, unless a pod has it as it is.
    """
    return (*device.spots, *device.also, *device.before, *(() if is_held else device.across))


class _Others:
    """Devices that pods hold but that are no longer offered as they were.

    held   all devices that pods hold
    moved  where units of theirs are that have another id at another port, as far as `waiting` has looked
    joined devices that pods hold, with the units there that others hold; likewise
    """

    def __init__(
        self,
        elsewhere: Held,
        devices: Mapping[str, Remembered],
        held: frozenset[str],
        inventory: Inventory,
        renewal: Renewal,
    ) -> None:
        self._holders: dict[str, dict[str, Holding]] = {}
        for id_, holding in elsewhere.items():
            self._holders.setdefault(holding.device, {})[id_] = holding
        self._whereabouts = Whereabouts({id_: devices[id_] for id_ in self._holders if id_ in devices})
        self._devices, self.held, self._renewal = devices, held, renewal
        self._ties, self._twins = inventory.ties, inventory.twins
        self.moved: dict[str, list[Spot]] = {}
        self.joined: dict[str, list[Spot]] = {}

    def waiting(self, offer: Offer) -> Iterator[tuple[str, str]]:
        """The ids of an offer that have to wait, each with the reason."""
        shared = _is_shared(offer)
        for device in offer.devices:
            if self._devices[device.id].absent_since is not None:
                continue
            is_held = device.id in self.held
            there = {
                id_
                for spot, id_ in self._whereabouts.at(device, _spots_of(device, is_held=is_held))
                if not self._renewal.left.has_made_way(id_, spot, device)
            }
            # With replicas or without: what pods got of a device is remembered for all of them (`as_given`).
            if device.id in self._holders:
                there.add(device.id)
            moved = [*self._plugged_in_elsewhere(offer, device)]
            elsewhere = {id_ for id_, _ in moved}
            # The reason names a pod that got the device at this very spot, if there is one.
            others = {
                id_: holding
                for holder in (*sorted(there), *sorted(elsewhere))
                for id_, holding in sorted(self._holders[holder].items())
                if not (shared and holding.shared)
            }
            holders = {holding.device for holding in others.values()}
            joined = [spot for id_, spot in moved if id_ in holders]
            if is_held and joined:
                self.joined[device.id] = joined
            for id_ in ids_of(device.id, offer.resource.replicas) if others else ():
                if other := next((name for name in others if name != id_), None):
                    yield id_, _reason(offer, other, others[other])

    def _plugged_in_elsewhere(self, offer: Offer, device: Device) -> Iterator[tuple[str, Spot]]:
        """The other devices of the same unit that pods got, perhaps at another port, and where it is now."""
        for spot, model in device.spots_with_models:
            others = self._whereabouts.at_other_ports(spot, model, device)
            if others.keys() <= {device.id}:
                continue
            # All of them may be twins: what is the same for each is asked once.
            may_be_twin = self._may_be_twin(device, spot, model)
            is_tied = device.id in self.held and self._is_tied(device, spot)
            is_own = self._is_own(device.id, spot)
            has_stayed = self._has_stayed(device, spot)
            is_single = has_serial(spot) and not may_be_twin
            for id_, only_by_values in others.items():
                # A serial number that tells units apart says that both are this one. Values do not.
                is_its_own = (has_stayed and may_be_twin) or (
                    only_by_values and self._is_as_given(device, spot, model, id_, is_single=is_single)
                )
                if id_ == device.id or is_its_own:
                    continue
                known, was = self._devices[id_], self._devices[id_].device
                # Twins are told apart by their ports, whatever the rules call them now. If they became known
                # as twins under other rules, a pod has to have got the id of this one since.
                is_twin = (only_by_values or may_be_twin) and (was.unit in self._ties or is_tied)
                # Both have ids of the same properties of the same devices, whose values differ.
                is_comparable = known.resource == offer.resource.name or is_own
                differ = is_comparable and have_other_values(was, device)
                if not (
                    is_twin or differ or was.basis == "port" or self._is_where_it_was(known, spot, model)
                ):
                    self.moved.setdefault(id_, []).append(spot)
                    yield id_, spot

    def _may_be_twin(self, device: Device, spot: Spot, model: str) -> bool:
        """Whether the unit at a spot of a device may be another one, as far as serial numbers show."""
        if dock := device.docks.get(spot):
            return Twin("serial", dock.serial, dock.model, HUB) in self._twins
        return may_be_twin(self._twins, spot, model)

    def _has_stayed(self, device: Device, spot: Spot) -> bool:
        """Whether the pod of a device has had the very node at a spot since before this step."""
        was = self._renewal.devices.get(device.id) if device.id in self.held else None
        if was is None:
            return False
        links = {link for link, at in zip(device.links, device.spots, strict=False) if at == spot}
        nodes = {each for each in device.also if is_of_node(each) and each.serial in links}
        return bool(nodes) and nodes.issubset(was.also)

    def _is_own(self, id_: str, spot: Spot) -> bool:
        """Whether a pod got an id for a unit with the serial number of the one at a spot."""
        known = self._renewal.devices.get(id_) if id_ in self.held else None
        return known is not None and any(each[1:3] == spot[1:3] for each in known.spots)

    def _is_as_given(self, device: Device, spot: Spot, model: str, other: str, *, is_single: bool) -> bool:
        """Whether a unit is where the pod of a device got one, or has the serial number of that.

        It may be in another mode, but not of the model that the pod of another device has.

        is_single  whether that serial number says which unit it is
        """
        known = self._renewal.devices.get(device.id) if device.id in self.held else None
        if known is None:
            return False
        # Edited rules may give the id to what the other pod has.
        is_own, is_others = (
            any(may_be_model(model, each) for each in every.spots.values())
            for every in (known, self._devices[other])
        )
        if is_others and not is_own:
            return False
        return spot in known.led.values() or (is_single and self._is_own(device.id, spot))

    def _is_tied(self, device: Device, spot: Spot) -> bool:
        """Whether the unit at a spot of a device is a twin that has the id, or a link, of its own."""
        links = [link for link, at in zip(device.links, device.spots, strict=False) if at == spot]
        return not self._ties.keys().isdisjoint((device.unit, *links, *map(short_name, links)))

    def _is_where_it_was(self, known: Remembered, now: Spot, model: str) -> bool:
        """Whether device nodes that a pod got are still there: then what is elsewhere is another unit.

        now, model  where the unit seems to be
        """
        this = part_of(now, model)
        if any(is_part(this, part) for part in known.missing):
            return False
        mine = known.spots.keys()
        ports = {spot.port for spot in mine if spot[1:3] == now[1:3] and spot.serial}
        unit = (spot for spot in mine if spot.port in ports and spot.serial == now.serial)
        if ports and not any(map(self._renewal.plugged.is_taken, unit)):
            return False  # another unit has taken its place
        ports = {spot.port for spot in mine if not is_of_number(spot)}
        there = self._renewal.left.nodes.intersection(
            spot._replace(serial="") for spot in (*known.also, *known.earlier) if is_of_node(spot)
        )
        is_unread = any(map(self._renewal.plugged.is_unread, mine))
        return len(there) >= (1 if len(ports) == 1 else len(mine)) and not is_unread


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
