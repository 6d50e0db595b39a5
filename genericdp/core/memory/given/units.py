"""Units that are plugged in and may be what a pod got, whether they have its device nodes or not.

The rules of this file:

* As long as udev has not finished with what looks like a unit, or has never been read, that may be the unit,
  wherever it is. But what has hung for a minute beside the unit that a pod got is another one.
* So may what is new in a socket of USB 3, if it would get the same id and is of the same model.
* A free node of a unit waits in the same way. If a pod got it under an id of the unit that another pod has,
  the other pod would lose its id as soon as both units are there.
* A unit without its device nodes is plugged in all the same: no driver may be bound to it. On USB, each unit
  has a node that needs no driver, and which is not the one that the pod got.
* A device may have many units, each with many former ports. Their pairs are too many to compare one by one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from genericdp.core.buses.port import are_two_docks, dock_of, is_hub, model_of, unit_on_usb
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.part import has_serial
from genericdp.core.inventory.place import USB_NODE, Place, Spot, may_be_model
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.grouping import Nearest, SameProperty
from genericdp.core.rules.resource import Resource
from genericdp.core.usb_port import UsbPort

_WHY_LACKING = "{0}, which lacks its device node: bind a driver to {0}, or unplug it"

#: The path of a unit that cannot be read -> the port and serial number of each unit that it is not.
Apart = Mapping[str, Collection[tuple[str, str]]]

#: Where nodes were, and where they may be now: each of them at any of these spots.
Move = tuple[Sequence[Spot], Sequence[Spot]]


class Units:
    """The units that are plugged in and may be what a pod got, whether they have its device nodes or not.

    lacking  the ids that wait for such a unit -> what is the matter with it, and what to do
    """

    def __init__(self, plugged: Plugged, apart: Apart, new: Mapping[str, Sequence[Place]]) -> None:
        """`new`: see `Inventory`."""
        self.lacking: dict[str, str] = {}
        self._plugged, self._new = plugged, new
        self._apart = {unit_on_usb(path): units for path, units in apart.items()}
        self._lack_at: dict[tuple[Spot, str], Sequence[UdevDevice]] = {}
        self._lack_anywhere: dict[tuple[Spot, str], Sequence[UdevDevice]] = {}

    def ports_of(self, serial: str, model: str) -> set[str]:
        """The ports of all units on USB with this serial number and model."""
        return {port for port, _ in self._on_usb.get((serial, model), ())}

    def why_open(self, known: Remembered | None, now: Device, resource: Resource) -> str | None:
        """Why a device may be neither where it was nor where something seems to be it; None if it is.

        known  what is remembered of it; without its spots, it may have been at any port
        now    what the resource offers under its id
        """
        if known is not None and known.device is now:
            return None
        moves: Sequence[Move]
        apart: Mapping[tuple[str, str] | None, Collection[tuple[str, str]]] = {}
        if known is not None and known.device.spots:
            # What hangs where the device is now may be any unit.
            apart = {} if any(map(self._plugged.is_unread, now.spots)) else self._apart
            moves = _moves(known, now, resource)
        else:
            moves = [((spot,), (spot,)) for spot in now.spots if spot.serial]
        told_by = _told_by(resource)
        for befores, spots in moves:
            if unit := self._may_be(befores, spots, told_by, known):
                self.lacking[now.id] = _WHY_LACKING.format(unit)
                return f"; that unit may be {self.lacking[now.id]}"
        had = {
            before: "" if known is None else known.spots.get(before, "")
            for each, _ in moves
            for before in each
        }
        if any(spot[1:3] in self._coming for spot in had) or self._may_be_new(had, known, now):
            return ""
        units = frozenset(before[:2] for before in had)
        strangers = (apart.get(stranger, ()) for stranger in self._strangers)
        return None if all(map(units.issubset, strangers)) else ""

    def _may_be(
        self,
        befores: Sequence[Spot],
        spots: Sequence[Spot],
        told_by: Collection[str],
        known: Remembered | None,
    ) -> str:
        """The kernel's name of a unit that may have been at a spot before and lacks the node that was there.

        spots    where something is now that seems to be it
        told_by  the properties that tell a device of the resource from another one
        known    what is remembered of the device
        """
        found: dict[str, list[tuple[str, UdevDevice]]] = {}
        for spot in spots:
            nodes = self._plugged.nodes_at(spot)
            if nodes and (usb := nodes[0].usb_device) is not None:
                found.setdefault(model_of(usb), []).append((spot.port, usb))
        units = (
            usb.sys_name
            for model, all_now in found.items()
            for before in befores
            for usb in self._without(before, model)
            for port, now in all_now
            # The radio behind which it is now, or the unit itself.
            if (port != before.port or len(spots) == 1)
            and usb.sys_path != now.sys_path
            and not any(_differ(name, usb, now) for name in told_by)
            and not (known is not None and are_two_docks(known.dock_of(before), dock_of(usb)))
        )
        return next(units, "")

    def _without(self, before: Spot, model: str) -> Sequence[UdevDevice]:
        """The units at the port of a spot, and those of a model anywhere, that lack the node at the spot.

        Parts of a dock may share a serial number. They are different models.
        """
        key = before, model
        if key not in self._lack_at:
            at_port = self._plugged.groups.get(before._replace(within=USB_NODE, number=0), ())
            mine = self._lacking(before, ((before.port, usb) for usb in at_port))
            is_usb = UsbPort.of_exact(before.port) is not None
            self._lack_at[key] = (*mine, *self._alike(before._replace(port=""), model)) if is_usb else ()
        return self._lack_at[key]

    def _alike(self, spot: Spot, model: str) -> Sequence[UdevDevice]:
        key = spot, model
        if key not in self._lack_anywhere:
            alike = self._on_usb.get((spot.serial, model), ())
            self._lack_anywhere[key] = (*self._lacking(spot, alike),)
        return self._lack_anywhere[key]

    def _lacking(self, spot: Spot, units: Iterable[tuple[str, UdevDevice]]) -> Iterator[UdevDevice]:
        """Of units, each with its port, those without a node like that at the spot."""
        for port, usb in units:
            # It may have the serial number of what is built into it.
            if not is_hub(usb) and not self._plugged.nodes_at(spot._replace(port=port)):
                yield usb

    @cached_property
    def _coming(self) -> frozenset[tuple[str, str]]:
        return self._plugged.coming()

    def _may_be_new(self, had: Mapping[Spot, str], known: Remembered | None, now: Device) -> bool:
        """Whether a unit that is new in its socket may be the one that a pod got.

        had  where the nodes of that one were -> its model
        """
        return any(
            place.spot[1:3] == spot[1:3]
            and may_be_model(model, place.model)
            and not (known is not None and are_two_docks(known.dock_of(spot), place.dock))
            for place in self._new.get(now.unit, ())
            for spot, model in had.items()
        )

    @cached_property
    def _strangers(self) -> Collection[tuple[str, str]]:
        return self._plugged.strangers()

    @cached_property
    def _on_usb(self) -> Mapping[tuple[str, str], Sequence[tuple[str, UdevDevice]]]:
        """Serial number and model -> the units on USB, each with its port."""
        found: dict[tuple[str, str], list[tuple[str, UdevDevice]]] = {}
        for spot, nodes in self._plugged.groups.items():
            if spot.within == USB_NODE:
                found.setdefault((spot.serial, model_of(nodes[0])), []).append((spot.port, nodes[0]))
        return found


def at_ports(held: Iterable[Remembered]) -> Mapping[str, Mapping[str, Remembered]]:
    """Unit -> port -> one of the devices that pods hold of it there, unless a filler is all that says so."""
    found: dict[str, dict[str, Remembered]] = {}
    for known in held:
        if not _is_by_filler(known.device):
            found.setdefault(known.device.unit, {})[known.device.port] = known
    return found


def parts_of_units(held: Iterable[Remembered]) -> Mapping[str, Collection[tuple[str, str]]]:
    """Unit -> port and model of what pods hold under its ids, if that has a serial number."""
    found: dict[str, set[tuple[str, str]]] = {}
    for known in held:
        mine = found.setdefault(known.device.unit, set())
        mine.update((spot.port, model) for spot, model in known.spots.items() if has_serial(spot))
    return found


def _is_by_filler(device: Device) -> bool:
    """Whether the id of a device stands for a serial number that tells nothing, and for its port."""
    # A dock tells such a unit by its own serial number.
    spots = device.spots if device.basis == "serial" else ()
    return any(spot.serial and not has_serial(spot) for spot in spots if spot not in device.docks)


def _moves(known: Remembered, now: Device, resource: Resource) -> Sequence[Move]:
    """Where the links of a device led, and where they lead now: those that lead to another port."""
    was, led = known.device, known.led
    leads = dict(zip(now.links, now.spots, strict=False))
    if led.keys().isdisjoint(leads) and isinstance(resource.group_by, Nearest):
        moves: list[Move] = [(was.spots, now.spots)]
    else:
        moves = [((led[link],), (spot,)) for link, spot in leads.items() if link in led]
        # The device goes on without a node that has gone. Nobody remembers which link belonged to that node.
        more = {*was.links[len(was.spots) :]}
        dead = _by_place(spot for link, spot in leads.items() if link in more)
        earlier = _by_place(known.earlier if dead else ())
        moves += [(earlier[place], spots) for place, spots in dead.items() if place in earlier]
    return [move for before, spots in moves if (move := (_elsewhere(before, spots), spots))[0]]


def _by_place(spots: Iterable[Spot]) -> Mapping[tuple[str, str, int], Sequence[Spot]]:
    """Spots by all but their ports."""
    found: dict[tuple[str, str, int], list[Spot]] = {}
    for spot in spots:
        found.setdefault(spot[1:], []).append(spot)
    return found


def _elsewhere(before: Sequence[Spot], spots: Sequence[Spot]) -> Sequence[Spot]:
    """Of spots before, those from which something may have moved to one of the others."""
    ports = {spot.port for spot in spots}
    return before if len(ports) > 1 else [spot for spot in before if spot.port not in ports]


def _told_by(resource: Resource) -> tuple[str, ...]:
    """The properties that tell a device of a resource from another one."""
    by = resource.group_by
    names = resource.identity if isinstance(resource.identity, tuple) else ()
    return (*names, by.name) if isinstance(by, SameProperty) else names


def _differ(name: str, one: UdevDevice, other: UdevDevice) -> bool:
    """Whether both have a property, with different values. Many properties are only those of the nodes."""
    values = one.property(name), other.property(name)
    return all(values) and values[0] != values[1]
