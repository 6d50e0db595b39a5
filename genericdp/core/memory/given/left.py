"""Whether what a pod got has left its place, as far as property values tell.

The rules of this file:

* If another unit is at the place now, only the properties tell that the rule names as `identity`.
* Within a boot, they count only once none of the device nodes is there any more that the pod got: properties
  can change. So they do not count if it is not known which device nodes these were.
* Several units may have the same values. Then the port says which one a pod got, unless they form one device.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.inventory.past import Ties
from genericdp.core.inventory.place import Spot, is_of_node, is_of_number, spot_of_node
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.memory.remembered import Remembered, Replaced
from genericdp.core.rules.grouping import SameProperty
from genericdp.core.rules.resource import Resource


class Left:
    """Knows which of the remembered devices that pods hold have left their places.

    devices  all that are remembered, by id
    held     the devices that pods hold
    offers   what the rules make of what is plugged in
    """

    def __init__(
        self,
        devices: Mapping[str, Remembered],
        held: Collection[str],
        offers: Mapping[str, Offer],
        plugged: Plugged,
    ) -> None:
        self._devices, self._held, self._offers, self._plugged = devices, held, offers, plugged

    def is_elsewhere(self, id_: str, spot: Spot, *, is_part: bool = False) -> bool:
        """Whether a device, or a part that an edit took from it, has left a spot and is offered elsewhere."""
        known, now = self._devices[id_], self._by_properties.get(id_)
        if is_of_number(spot) and not (is_of_node(spot) or known.is_of_this_boot):
            return True  # after a boot, another bare node may have its number
        return now is not None and (
            (is_part or _was_at(known, spot))
            and self._is_gone(known, spot)
            and _is_wholly_elsewhere(known.device, now)
            and not now.is_beside(spot, self._offered)
        )

    def has_made_way(self, id_: str, spot: Spot, device: Device) -> bool:
        """Whether a device has left a spot, and another one is there, by the values of the same properties.

        device  the other one, as its rule offers it. Under its id, a pod has to have got a unit with this
                serial number, or one without: otherwise, it may be the same unit with new values
        """
        known, other = self._devices.get(id_), self._devices.get(device.id)
        return (
            known is not None
            and other is not None
            and device.id in self._held
            and device.id in self._by_properties
            and spot[1:3] in {each[1:3] for each in (*other.device.spots, *other.earlier)}
            and _was_at(known, spot)
            and self._is_gone(known, spot)
            # It may be offered at other spots, but not where a part of it was.
            and (id_ not in self._by_id or {*known.device.spots}.isdisjoint(self._by_id[id_].spots))
            and have_other_values(known.device, device)
        )

    @cached_property
    def replaced(self) -> Replaced:
        """Those of the devices that pods hold."""
        # Asked in every step, and hardly any rule names properties.
        held = self._held if self._by_properties else ()
        told = [id_ for id_ in held if id_ in self._devices and self._devices[id_].device.key_hash]
        there = {spot: device for device in (self._offered if told else ()) for spot in device.spots}
        found: dict[str, list[Spot]] = {}
        for id_ in told:
            for spot in self._devices[id_].device.spots:
                if (other := there.get(spot)) and other.id != id_ and self.has_made_way(id_, spot, other):
                    found.setdefault(id_, []).append(spot)
        return found

    @cached_property
    def nodes(self) -> frozenset[Spot]:
        """The device nodes that are plugged in (`spot_of_node`)."""
        return frozenset([spot_of_node(node) for nodes in self._plugged.groups.values() for node in nodes])

    @cached_property
    def _offered(self) -> Sequence[Device]:
        return [device for offer in self._offers.values() for device in offer.devices]

    @cached_property
    def _by_properties(self) -> Mapping[str, Device]:
        """The present devices that properties tell, by id."""
        offers = (offer for offer in self._offers.values() if isinstance(offer.resource.identity, tuple))
        return {device.id: device for offer in offers for device in offer.devices}

    @cached_property
    def _by_id(self) -> Mapping[str, Device]:
        return {device.id: device for device in self._offered}

    def _is_gone(self, known: Remembered, spot: Spot) -> bool:
        """Whether none of the device nodes that a pod got is there any more, nor hangs at a spot."""
        if self._plugged.is_unread(spot):
            return False
        was = known.device
        knows_nodes = sum(is_of_node(spot) and not spot.serial for spot in was.also) >= len(was.spots)
        return (knows_nodes or not known.is_of_this_boot) and self.nodes.isdisjoint(was.also)


def is_another_with_its_values(known: Remembered, device: Device, resource: Resource, ties: Ties) -> bool:
    """Whether a device is another one than what a pod got under its id, although the values are the same.

    known     what is remembered of the device that the pod got
    resource  the one that offers the device now
    ties      of the units that ports tell apart. They never tell apart kits, whose parts may be at several
    """
    is_kit = isinstance(resource.group_by, SameProperty)
    if device.unit not in ties or is_kit or not isinstance(resource.identity, tuple):
        return False
    here = {spot.port for spot in (*device.spots, *device.before)}
    was = {spot.port for spot in known.spots}
    return bool(was) and was.isdisjoint(here)


def have_other_values(one: Device, other: Device) -> bool:
    """Whether the ids of two devices stand for different values of the same properties of one thing."""
    return (
        one.basis == other.basis != "serial"
        and "" not in (one.key_hash, other.key_hash)
        and one.key_hash != other.key_hash
        and _is_of_one_node(one) is _is_of_one_node(other)
    )


def _is_of_one_node(device: Device) -> bool:
    """Whether a device is one device node. The properties of a group may be those of a parent."""
    # Links that it had before, perhaps under another `group_by`, come after those of its nodes.
    return device.id in device.links[: len(device.spots)]


def _was_at(known: Remembered, spot: Spot) -> bool:
    return spot in known.device.spots and spot not in known.earlier


def _is_wholly_elsewhere(was: Device, now: Device) -> bool:
    within: list[Collection[str]] = [sorted(spot.within for spot in device.spots) for device in (was, now)]
    return within[0] == within[1] and {*was.spots}.isdisjoint(now.spots)
