"""What is remembered of a device that is present, and whether it is the one that a pod got under its id.

The rules of this file:

* Edited rules may count other nodes to a device, or give its id to another unit, while a pod holds what it
  got. As long as the pod holds the id, the id means what the pod got.
* A link that a pod got leads to what it led to, or nowhere.
* A device with a node that another pod got is not what the first pod got, whatever else it has.
* A volume may get another name, and another one its name, while a pod has it: then the id means neither. Nor
  does that of a device of several volumes, as long as the link of one would lead to another one.
* An earlier release took several units for one. Such an id means the one with the properties that the rule
  names; if several have them, none of them until the pod has gone.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import filterfalse, islice

from genericdp.core.buses.port import Dock
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Spot, is_of_node, is_of_number, is_of_path
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.memory.given import modes, reasons
from genericdp.core.memory.given.docks import docks_now
from genericdp.core.memory.given.left import Left, is_another_with_its_values
from genericdp.core.memory.given.links import is_elsewhere, leads_to_another, still_plugged, taken_of
from genericdp.core.memory.given.moves import Moves, lost_of
from genericdp.core.memory.given.units import Apart, Units, at_ports, parts_of_units
from genericdp.core.memory.held import Held, links_to_keep
from genericdp.core.memory.remembered import Remembered, Whereabouts, ids_by_spot, siblings_of
from genericdp.core.memory.room import HELD_LINK_LIMIT, LINK_LIMIT, has_no_room
from genericdp.core.rules.resource import Resource


class Renewal:
    """Compares present devices with what is remembered of them."""

    def __init__(
        self,
        devices: Mapping[str, Remembered],
        held: Held,
        plugged: Plugged,
        inventory: Inventory,
        apart: Apart,
    ) -> None:
        """`devices` are all that are remembered, `inventory` what the rules make of what is plugged in."""
        self.devices, self._given = devices, held
        self._offers, self._twins, self._ties = inventory.offers, inventory.twins, inventory.ties
        self._is_shared, self._resources = dict[str, bool](), dict[str, str]()
        for holding in held.values():
            self._resources[holding.device] = holding.resource
            self._is_shared[holding.device] = holding.shared and self._is_shared.get(holding.device, True)
        self.plugged, self.units = plugged, Units(plugged, apart, inventory.new)
        self.left = Left(devices, self._is_shared.keys(), self._offers, plugged)
        #: Devices that have only gained a node which another pod may hold: id -> what that pod holds.
        self.also_held: dict[str, str] = {}

    def why_not(self, resource: str, device: Device) -> str:
        """Why the device must not be offered under its id; "" if it may."""
        if self._is_in_doubt(device):
            return reasons.why_untold(device)
        if self._is_another(resource, device):
            return reasons.why_another(resource, device.id, self._resources.get(device.id, resource))
        if device.across and (why := reasons.why_beside(device, self.devices.get(device.id), self._held)):
            return why
        open_ = self._why_open(device, self._offers[resource].resource)
        if open_ is not None or device.id in self.ambiguous:
            return f"its id, {device.id}, may belong to another unit, which a pod may still hold{open_ or ''}"
        return ""

    def _why_open(self, device: Device, rule: Resource) -> str | None:
        """`Units.why_open` of a held device; of a free one, for what pods hold of its unit at other ports."""
        if device.id in self._is_shared:
            return self.units.why_open(self._held.get(device.id), device, rule)
        # Known twins have ids of their own.
        held = {} if device.unit in self._ties else self._at_ports.get(device.unit, {})
        asked = (self.units.why_open(held[port], device, rule) for port in held if port != device.port)
        return next((why for why in asked if why is not None), None)

    def _is_in_doubt(self, device: Device) -> bool:
        return bool(self.plugged.in_doubt) and any(map(self.plugged.is_in_doubt, device.spots))

    @cached_property
    def ambiguous(self) -> Mapping[str, Remembered]:
        """What is remembered of held devices from an earlier release, where it may be about other units.

        Each stays so when the other unit leaves before the pod does: it is remembered without its unit.
        """
        return {
            device.id: replace(known, device=replace(known.device, unit=""))
            for device in (self._offered if self._held else ())
            if device.before and (known := self._held.get(device.id)) is not None
            if self._is_ambiguous(device, known.device)
        }

    def _is_ambiguous(self, device: Device, known: Device) -> bool:
        before = [spot.of_all for spot in device.before]
        may_be = {spot.of_all for spot in device.spots}
        was_at = {spot.of_all for spot in known.spots}
        # Volumes were told by numbers, which others may have now.
        was_there = was_at.intersection(before) or (was_at if was_at.isdisjoint(may_be) else ())
        if not was_there:
            return False
        new = len(device.spots) - len(before)
        return (
            # It was ambiguous before, and the other unit has left.
            not known.unit
            # An earlier release took several of its own nodes for one.
            or len(may_be) - new > len({*before})
            # A twin is present,
            or any(len(self._present[device.unit, spot.within]) > 1 for spot in may_be)
            # or a device that an earlier release found at the same place,
            or any(len(self._before[device.unit, spot]) > 1 for spot in was_there)
            # or one that was there is missing.
            or any((device.unit, spot) in self._absent for spot in was_there)
        )

    def _is_another(self, resource: str, device: Device) -> bool:
        """Whether a pod holds the id of the device for something else, which it may still have."""
        known = self._held.get(device.id)
        rule = self._offers[resource].resource
        if known and (
            modes.is_another_unit(known, device, rule, self.units, self._twins)
            or is_another_with_its_values(known, device, rule, self._ties)
        ):
            return True
        held = self._with_unit.get(device.unit, ())
        if not known and modes.is_of_another_model(device, held, self._ties):
            return True
        if device.id not in self._is_shared or (known is not None and known.device is device):
            return False
        if known and modes.is_that_of_another_pod(known, device, held):
            return True
        if known and (self._leads_elsewhere(known, device, resource) or has_no_room(known, device)):
            return True
        return self._resources[device.id] != resource or self._is_held_by_others(device)

    def _leads_elsewhere(self, known: Remembered, device: Device, resource: str) -> bool:
        """Whether a link of a held device leads to another node now, or may."""
        if leads_to_another(known, device, self.left.nodes, self.plugged.stayed):
            return True
        if not (led := known.led):
            return False
        leads = dict(zip(device.links, device.spots, strict=False))
        both = led.keys() & leads.keys()
        # Only the link of a device with one node does not say in its name which node that is.
        if not both and (device.id in led) is not (device.id in leads):
            return True
        if device.spots == known.device.spots:
            return False
        if not both:
            stay = (
                at
                for at in taken_of(known, device, self.plugged)
                if not self.left.is_elsewhere(device.id, at)
            )
            return device.id in leads.keys() & {*known.device.links} or any(stay)
        # Of an earlier release. The id is the same only if a property that the rule names says so.
        was_there = {spot.of_all for spot in device.before}
        by_property = isinstance(self._offers[resource].resource.identity, tuple)
        return any(
            is_elsewhere(led[link], leads[link], self.plugged, by_property=by_property)
            for link in both
            if led[link].of_all not in was_there and not self.left.is_elsewhere(device.id, led[link])
        )

    def renewed(self, resource: str, device: Device) -> Remembered:
        """What is remembered of a device, with every link that it ever had: a node may be missing now."""
        known = self.devices.get(device.id)
        if known is None:
            return Remembered(resource, device)
        is_listed = known.resource == resource and known.absent_since is None and known.listed
        if known.device is device and is_listed:
            return known
        is_held = device.id in self._is_shared
        more = [*filterfalse({*device.links}.__contains__, known.device.links)]
        if more:
            room = max(0, LINK_LIMIT - len(device.links))
            kept = links_to_keep(more, known, self._given) if is_held else more[:room]
            shared_at = known.ever_shared_at(device) if is_held else device.shared_at
            device = replace(device, links=(*device.links, *kept), shared_at=shared_at)
        rule = self._offers[resource].resource
        earlier, docks = (
            self._earlier(device, known, rule) if is_held else (lost_of(known, device, self.plugged), {})
        )
        given = modes.given_of(device, known, rule) if is_held else {}
        not_given = known.not_given.intersection(device.spots)
        now = Remembered(resource, device, earlier=earlier, not_given=not_given, docks=docks, given=given)
        # With more links it is an object of its own. The one that is remembered stays if nothing has changed.
        return known if more and now == known else now

    def _earlier(
        self, device: Device, known: Remembered, rule: Resource
    ) -> tuple[Mapping[Spot, str], Mapping[Spot, Dock]]:
        """Where nodes are that a pod may still have although the device lost them, with models and docks."""
        if (device.spots, device.also) == (known.device.spots, known.device.also):
            return known.earlier, known.docks
        here = {*device.spots}
        # A container keeps its number, which any path may get. After a boot, only that of a lost path counts.
        has_lost = any(is_of_path(spot) and spot not in here for spot in known.device.spots)
        may_have = (*known.earlier, *(known.also if has_lost or known.is_of_this_boot else ()))
        numbers = [spot for spot in may_have if is_of_number(spot) and not is_of_node(spot)]
        numbers += still_plugged((*known.also, *known.earlier), self.left.nodes)
        kept, moved = dict[Spot, str](), dict[Spot, Spot | None]()
        moves = Moves(known.device, device, known.earlier, self._twins, rule)
        for spot, model in known.spots.items():
            now = spot if spot in here else self._now_at(spot, model, device, moves)
            # Where a device of another pod has taken its place, it is not.
            now = None if now in self.left.replaced.get(device.id, ()) else now
            moved[spot] = now
            if now is not None and now not in here:
                kept.setdefault(now, model)
        docks = docks_now(known, device, moved, self.plugged)
        # Those that came since a pod holds the device are the last ones: the pod did not get them.
        numbers = [spot for spot in dict.fromkeys(numbers) if spot not in device.also]
        return {**dict(islice(kept.items(), HELD_LINK_LIMIT)), **dict.fromkeys(numbers, "")}, docks

    def _now_at(self, spot: Spot, model: str, device: Device, moves: Moves) -> Spot | None:
        """Where a lost node may be: a unit takes along what edited rules have taken from its device."""
        dock = self.devices[device.id].dock_of(spot)
        if self.plugged.is_taken(spot, dock) and not self.left.is_elsewhere(device.id, spot, is_part=True):
            return spot
        if is_of_number(spot) or any(spot.of_all == each.of_all for each in device.before):
            return None  # an earlier release found the same nodes there
        return moves.of(spot, model)

    def _is_held_by_others(self, device: Device) -> bool:
        is_shared, known = self._is_shared[device.id], self.devices.get(device.id)
        # What it had already is not what another one has lost: where that has gone is only a guess.
        mine = known.device.spots if known is not None and known.absent_since is None else ()
        others = (
            id_
            for spot, id_ in self._holders.at(device, (*device.spots, *filter(is_of_number, device.also)))
            if id_ != device.id and not (is_shared and self._is_shared[id_])
            if not self.left.is_elsewhere(id_, spot) and not self.left.has_made_way(id_, spot, device)
            if spot not in mine or spot not in self.devices[id_].earlier
        )
        if other := next(others, ""):
            self.see_holder(device, other)
        return other != ""

    def see_holder(self, device: Device, other: str) -> None:
        """A device must not be offered because a pod may hold a node of it as another device (`other`)."""
        if (known := self.devices.get(device.id)) and {*known.led.values()} < {*device.spots}:
            self.also_held[device.id] = f"{self._id_of[other]} of {self._resources[other]}"

    @cached_property
    def _id_of(self) -> Mapping[str, str]:
        """Device -> the first of the ids under which pods hold it."""
        return {self._given[id_].device: id_ for id_ in sorted(self._given, reverse=True)}

    @cached_property
    def _held(self) -> Mapping[str, Remembered]:
        return {id_: self.devices[id_] for id_ in self._is_shared if id_ in self.devices}

    @cached_property
    def _with_unit(self) -> Mapping[str, Collection[tuple[str, str]]]:
        return parts_of_units(self._held.values())

    @cached_property
    def _at_ports(self) -> Mapping[str, Mapping[str, Remembered]]:
        return at_ports(self._held.values())

    @cached_property
    def _holders(self) -> Whereabouts:
        return Whereabouts(self._held)

    @cached_property
    def _offered(self) -> tuple[Device, ...]:
        return tuple(device for offer in self._offers.values() for device in offer.devices)

    @cached_property
    def _present(self) -> Mapping[tuple[str, str], set[Spot]]:
        """(unit, place within it) -> the spots of present devices there; twins have the same unit."""
        found: dict[tuple[str, str], set[Spot]] = defaultdict(set)
        for device in self._offered:
            for spot in device.spots:
                found[device.unit, spot.within].add(spot.of_all)
        return found

    @cached_property
    def _before(self) -> Mapping[tuple[str, Spot], set[str]]:
        """(unit, spot of an earlier release) -> the present devices that it may have meant."""
        return ids_by_spot((device, device.before) for device in self._offered)

    @cached_property
    def _absent(self) -> Mapping[tuple[str, Spot], set[str]]:
        """(unit, spot) -> the absent devices that were there."""
        present = {device.id for device in self._offered if not self._is_in_doubt(device)}
        gone = (known.device for id_, known in self.devices.items() if id_ not in present)
        return ids_by_spot((device, device.spots) for device in gone)

    @cached_property
    def witnesses(self) -> frozenset[str]:
        """Absent devices to keep in mind: without them, an absent one that a pod holds would seem unique."""
        unique = (ids for ids in self._absent.values() if not ids.isdisjoint(self._is_shared))
        return frozenset().union(siblings_of(self._held, self.devices, self.plugged), *unique)
