"""What is remembered of a device that was offered, and where the device nodes are that pods may have.

The rules of this file:

* What pods had of absent devices counts as well, and what was taken from a device since a pod has it.
* A unit that was plugged in elsewhere has left its old place. A pod can have nothing there any more.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nlargest
from itertools import islice
from math import inf

from genericdp.core.buses.port import Dock, are_two_docks
from genericdp.core.inventory.offer import Device, Offer, SharedAt
from genericdp.core.inventory.part import Part, are_told_apart, has_serial, missing_of, part_of
from genericdp.core.inventory.past import SIBLING_LIMIT
from genericdp.core.inventory.place import (
    UNKNOWN,
    Spot,
    is_of_node,
    is_of_number,
    may_be_model,
    number_of,
    spot_of,
)
from genericdp.core.inventory.plugged import Plugged

#: Devices that have made way for others -> the spots where those are.
Replaced = Mapping[str, Collection[Spot]]
NOTHING_REPLACED: Replaced = {}


@dataclass(frozen=True, slots=True)
class Remembered:
    """A device that was offered, with what its tombstone needs.

    device           as it was last seen, with every link that it ever had
    absent_since     seconds on the clock of `remember`, None while it is present
    earlier          where its nodes were that it has lost since a pod holds it, and without a pod where
                     siblings were -> the model of the unit there
    listed           False if the list has no room for it; it is remembered only for its withdrawn ids
    is_of_this_boot  False if it was certainly not seen since the last boot: no pod has a node of it
    not_given        spots that came to it since a pod got it, and that the pod did not get
    docks            the docks at the spots in `earlier`, see `Device`; where the serial number of a dock
                     cannot be read now, the last dock of the device that could be read
    given            link -> the node that a pod got under it; {} until the device changes, and if
                     the rule does not identify it by serial number
    """

    resource: str
    device: Device
    absent_since: float | None = None
    earlier: Mapping[Spot, str] = field(default_factory=dict)
    listed: bool = True
    is_of_this_boot: bool = True
    not_given: frozenset[Spot] = frozenset()
    docks: Mapping[Spot, Dock] = field(default_factory=dict)
    given: Mapping[str, Part] = field(default_factory=dict)

    def dock_of(self, spot: Spot) -> Dock | None:
        """The dock at one of its spots.

        What is identified by properties may have been moved to another dock than the last one that could be
        read.
        """
        is_here = self.device.key_hash and spot in self.device.spots
        return self.device.docks.get(spot) if is_here else self.last_dock_of(spot)

    def last_dock_of(self, spot: Spot) -> Dock | None:
        """The dock at one of its spots, or the last one there that could be read."""
        return self.device.docks.get(spot) or self.docks.get(spot)

    def ever_shared_at(self, now: Device) -> Mapping[Spot, SharedAt]:
        """`Device.shared_at` of a held device as it is offered now, with what a pod may have had."""
        shared = self.device.shared_at.items()
        before = ((spot, at.left) for spot, at in shared if spot not in now.shared_at)
        return {**now.shared_at, **dict(islice(before, SIBLING_LIMIT))}

    @property
    def parts(self) -> Mapping[str, Part]:
        """`given` or, before the first change, what the device has now of units with a serial number."""
        if self.given:
            return self.given
        spots = self.spots
        return {link: part_of(at, spots[at]) for link, at in self.led.items() if has_serial(at)}

    @property
    def missing(self) -> Sequence[Part]:
        """The nodes in `given` that the device does not have now, at least not of this model."""
        return missing_of(self.given, self.device.spots_with_models)

    @property
    def spots(self) -> Mapping[Spot, str]:
        """Where nodes of it are or were that a pod may have, each with the model of the unit there."""
        spots = {**self.earlier, **dict(self.device.spots_with_models)}
        if not self.not_given:
            return spots
        return {spot: model for spot, model in spots.items() if spot not in self.not_given}

    @property
    def led(self) -> Mapping[str, Spot]:
        """Where each link led of the nodes that a pod may have."""
        led = zip(self.device.links, self.device.spots, strict=False)
        return {link: spot for link, spot in led if spot not in self.not_given}

    @property
    def also(self) -> Sequence[Spot]:
        """Where those nodes may be found as well (`Device.also`). All these spots of a node have one port."""
        if not self.not_given:
            return self.device.also
        led = zip(self.device.links, self.device.spots, strict=False)
        links = {link for link, spot in led if spot in self.not_given}
        ports = {spot.port for spot in self.device.also if spot.serial in links}
        return [spot for spot in self.device.also if spot.port not in ports]


class Whereabouts:
    """The spots of remembered devices, each with the devices that are or were there."""

    def __init__(self, devices: Mapping[str, Remembered]) -> None:
        self._devices = devices
        self._at: dict[Spot, list[tuple[Spot, str]]] = {}
        for id_, known in devices.items():
            for spot in (*known.spots, *known.also):
                self._at.setdefault(spot.of_all, []).append((spot, id_))

    def at(self, device: Device, spots: Iterable[Spot]) -> Iterator[tuple[Spot, str]]:
        """The devices, by id, that may have or have had a node of this one, each with the spot of that node.

        A node is also known by its number if udev did not know it then, or does not know it now.

        spots  those at which to look
        """
        numbers = [spot_of(node.number) for node in device.nodes if not node.is_bare]
        for spot in (*spots, *numbers):
            for other, id_ in self._at.get(spot.of_all, ()):
                if spot.may_be(other) and not self._are_told_apart(spot, other, device, id_):
                    yield spot, id_
        for spot in device.also if len(numbers) < len(device.nodes) else ():
            for id_ in self._known_to_udev.get(spot, ()):
                yield spot, id_

    def _are_told_apart(self, spot: Spot, other: Spot, device: Device, id_: str) -> bool:
        """Whether another dock is there than when a remembered device (`id_`) was."""
        dock = device.docks.get(spot)
        return dock is not None and are_two_docks(dock, self._devices[id_].dock_of(other))

    def at_other_ports(self, spot: Spot, model: str, device: Device) -> Mapping[str, bool]:
        """The devices that have or had this node of the unit (device, model) at another port.

        With each, whether only property values identify the unit.
        """
        ids: dict[str, bool] = {}
        for key in _keys_of(spot, device.docks.get(spot), device.key_hash):
            for at, other, id_ in self._of_units.get(key, ()):
                # Another mode is another model, with the same values.
                by_values = key[0] == "values"
                is_same = by_values or may_be_model(model, other)
                if at.port != spot.port and is_same and not are_told_apart(at, spot):
                    ids[id_] = ids.get(id_, True) and by_values
        return ids

    @cached_property
    def _known_to_udev(self) -> Mapping[Spot, set[str]]:
        """Device number -> the devices that have or had a node with it that udev knows."""
        found: dict[Spot, set[str]] = defaultdict(set)
        for id_, known in self._devices.items():
            for spot in filter(is_of_node, known.also):
                found[number_of(spot)].add(id_)
        return found

    @cached_property
    def _of_units(self) -> Mapping[tuple[str, ...], Sequence[tuple[Spot, str, str]]]:
        """What tells the unit, and the place within it -> its spot, its model, and the device."""
        found: dict[tuple[str, ...], list[tuple[Spot, str, str]]] = {}
        for id_, known in self._devices.items():
            # Where another model is now, the one that a pod got may come back, too.
            for spot, model in (*known.spots.items(), *known.missing):
                for key in _keys_of(spot, known.last_dock_of(spot), known.device.key_hash):
                    found.setdefault(key, []).append((spot, model, id_))
        return found


def _keys_of(spot: Spot, dock: Dock | None, key_hash: str) -> Iterator[tuple[str, ...]]:
    """The keys that identify a node at any port: serial number, dock, or the property values in the id."""
    if is_of_number(spot):
        return
    if has_serial(spot):
        yield "serial", spot.serial, spot.within
    if dock:
        yield "dock", dock.serial, dock.at, spot.within
    if key_hash:
        yield "values", key_hash, spot.within


def docks_of(every: Iterable[Remembered]) -> Mapping[Spot, Dock]:
    """The docks at the spots of devices, without the numbers of siblings."""
    docks = (docks for known in every for docks in (known.docks, known.device.docks))
    return {spot.of_all: dock for each in docks for spot, dock in each.items()}


def models_of(every: Iterable[Remembered]) -> Mapping[Spot, Collection[str]]:
    """The models that were at the spots of devices, without the numbers of siblings."""
    models: dict[Spot, set[str]] = defaultdict(set)
    for known in every:
        for spot, model in known.spots.items():
            models[spot.of_all].add(model)
    return models


def ids_by_spot(found: Iterable[tuple[Device, Iterable[Spot]]]) -> Mapping[tuple[str, Spot], set[str]]:
    """Unit and spot -> the ids of the devices of the unit there."""
    ids: dict[tuple[str, Spot], set[str]] = defaultdict(set)
    for device, spots in found:
        for spot in spots:
            ids[device.unit, spot.of_all].add(device.id)
    return ids


def siblings_of(
    held: Mapping[str, Remembered], devices: Mapping[str, Remembered], plugged: Plugged
) -> Iterator[str]:
    """The devices that properties identify among the siblings of held ones, at any port: the latest ones.

    If they were forgotten, nobody could tell which of the siblings have come.
    """
    places = {place for known in held.values() for place in _shared_places(known)}
    places &= {(spot.serial, spot.within) for spot in plugged.siblings}
    found: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    for id_, known in devices.items() if places else ():
        since = inf if known.absent_since is None else known.absent_since
        for place in places & _shared_places(known) if known.device.key_hash else ():
            found[place].append((since, id_))
    for siblings in found.values():
        yield from (id_ for _, id_ in nlargest(SIBLING_LIMIT, siblings))


def _shared_places(known: Remembered) -> set[tuple[str, str]]:
    """What siblings have in common at any port: the serial number of their unit, and their place."""
    return {(spot.serial, spot.within) for spot in known.device.spots if has_serial(spot)}


def without_numbers(
    devices: dict[str, Remembered], offers: Iterable[Offer], held: Collection[str], anew: Collection[Spot]
) -> dict[str, Remembered]:
    """What is remembered, without the numbers of siblings that absent devices had under former rules.

    The present rules cannot tell what had them.

    held  the devices that pods hold: what they got has kept its number
    anew  `Plugged.anew`
    """
    bases = {device.basis for offer in offers for device in offer.devices} if anew else set()
    changed = {
        id_: replace(known, device=replace(known.device, spots=_without(known.device.spots, anew)))
        for id_, known in (devices.items() if anew else ())
        if known.absent_since is not None and id_ not in held and known.device.basis not in bases
    }
    return {**devices, **changed} if changed else devices


def _without(spots: Iterable[Spot], anew: Collection[Spot]) -> tuple[Spot, ...]:
    return tuple(spot._replace(number=UNKNOWN) if spot in anew else spot for spot in spots)


def is_unknown(device: Device) -> bool:
    """Whether nothing is known of a device but the id."""
    return not (device.unit or device.port or device.spots)
