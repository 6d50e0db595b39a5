"""Which units are twins: those that were plugged in at the same time, whatever rules take them.

The rules of this file:

* Two units are twins once they have been plugged in at the same time at two ports, if they are of one model,
  have the same device node, and have the same serial number or the same values of properties that identify
  them. Parts of a dock may share a serial number, but are different models.
* It does not matter whether rules take them: a pod may still have what an edit took from it, and the next
  edit may give the other one to the same resource.
* The properties count that rules name as `identity`, and those that the ids of remembered devices stand for.
* A unit that appears in a USB socket beside another one does not count: both may be one unit at two speeds. A
  unit that udev is still processing does not count either: it may be the one that has just left.
* Hubs count, too, once something is plugged into each of them: a rule may make one device of a dock.
* A unit without a driver has only its USB node. It counts beside a unit that has the other nodes, except at a
  port where it is remembered: there it may be a unit that is being unplugged, and that is elsewhere already.
* Two units that stay side by side for a minute are twins, whichever nodes they have, also if udev has not
  finished with one of them: a program that it runs for the unit may hang.
* An event costs what it touches.
"""

from collections.abc import Collection, Iterable, Iterator

from genericdp.core.buses.port import is_hub, model_of, port_on_a_bus, usb_above
from genericdp.core.device import UdevDevice
from genericdp.core.fillers import why_filler
from genericdp.core.inventory.claims import Claims, Examined, Turnover
from genericdp.core.inventory.group import Group, find_property
from genericdp.core.inventory.identity import Identity, basis_of, names_of
from genericdp.core.inventory.part import twin_of
from genericdp.core.inventory.past import NO_TWINS, WHOLE, Past, Twin, Twins, as_whole, with_wholes
from genericdp.core.inventory.place import USB_NODE, Place
from genericdp.core.rules.resource import Resource

#: The names of the properties that identify a unit.
Names = tuple[str, ...]

#: A device node that is plugged in: its sys path, and the exact port of its unit.
_Seat = tuple[str, str]

#: The place of a hub as a whole. Its own node does not count: while a dock is unplugged, it may be there
#: longer than what is behind it.
HUB = "hub"

#: The place of a unit as a whole with which udev has not finished.
_UNFINISHED = "unfinished"

#: Properties that udev makes of the serial number: two units of one model and serial number have the same.
_OF_SERIAL = frozenset({"ID_SERIAL", "ID_SERIAL_SHORT", "ID_USB_SERIAL", "ID_USB_SERIAL_SHORT"})


class SideBySide:
    """The device nodes that are plugged in, by what each would have in common with a twin.

    twins         what twins have in common that are plugged in
    may_be_twins  what whole units have in common that are twins if they stay side by side
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        identities = (resource.identity for resource in resources)
        self._of_rules = frozenset([names for names in identities if isinstance(names, tuple)])
        self._names = self._of_rules
        self.twins = NO_TWINS
        self.may_be_twins = NO_TWINS
        # Whole unit -> place within it -> the nodes there.
        self._seats: dict[Twin, dict[str, set[_Seat]]] = {}

    def see(self, turnover: Turnover, claims: Claims, past: Past) -> None:
        """Take into account what has left and what has come."""
        names = self._of_rules.union(filter(None, map(names_of, past.bases)))
        if names != self._names:
            self._names, self._seats = names, {}
            self.twins = self.may_be_twins = NO_TWINS
            turnover = Turnover((), [*claims.examined.values()])
        changed: set[Twin] = set()
        for each in turnover.left:
            for twin, port in self._twins_at(each):
                changed.add(twin)
                self._remove(twin, (each.device.sys_path, port), is_finished=each.device.initialized)
        for each in turnover.came:
            if usb_above(each.device.sys_path) not in claims.sockets.new:
                for twin, port in self._twins_at(each):
                    changed.add(twin)
                    self._add(twin, (each.device.sys_path, port), is_finished=each.device.initialized)
        # A unit that comes or leaves may be the twin of one with other nodes.
        for unit in {*map(as_whole, changed)}:
            nodes = self._seats.get(unit, {}).keys() - {_UNFINISHED}
            changed.update(unit._replace(within=within) for within in nodes)
        now = {twin for twin in changed if self._is_plugged_in_twice(twin, claims, past)}
        whole = {twin for twin in now if twin.within == WHOLE}
        self.twins = _renewed(self.twins, changed, now - whole)
        self.may_be_twins = _renewed(self.may_be_twins, changed, whole)

    def _add(self, twin: Twin, seat: _Seat, *, is_finished: bool) -> None:
        if is_finished or twin.within == WHOLE:
            within = twin.within if is_finished else _UNFINISHED
            self._seats.setdefault(as_whole(twin), {}).setdefault(within, set()).add(seat)

    def _remove(self, twin: Twin, seat: _Seat, *, is_finished: bool) -> None:
        unit, within = as_whole(twin), twin.within if is_finished else _UNFINISHED
        nodes = self._seats.get(unit, {})
        seats = nodes.get(within, set())
        seats.discard(seat)
        if not seats:
            nodes.pop(within, None)
        if not nodes:
            self._seats.pop(unit, None)

    def _is_plugged_in_twice(self, twin: Twin, claims: Claims, past: Past) -> bool:
        """Whether units at several ports have this in common, or will have it once they have a driver."""
        nodes = self._seats.get(as_whole(twin), {})
        ports = {port for _, port in nodes.get(twin.within, ())}
        if twin.within == WHOLE:
            ports.update(port for _, port in nodes.get(_UNFINISHED, ()))
        if len(ports) != 1:
            return len(ports) > 1
        lacking = (claims.examined[path].place for path, port in nodes.get(WHOLE, ()) if port not in ports)
        unit = next((unit for unit in lacking if unit is not None and not _may_be_leaving(unit, past)), None)
        # Both have been read, so it does not matter here what cannot be read.
        return unit is not None and not claims.plugged.is_coming(unit.spot._replace(within=twin.within))

    def _twins_at(self, examined: Examined) -> Iterator[tuple[Twin, str]]:
        """What a device node, and the hubs above it, would have in common with twins; each with the port."""
        device, place = examined.device, examined.place
        if place is None or device.device_node is None:
            return
        found = (twin_of(place), *(_told_by(names, device, place) for names in self._names))
        is_unit = place.spot.within == USB_NODE and not is_hub(place.unit)
        for twin in found:
            if twin is not None:
                yield twin, place.port.exact
                if is_unit:
                    yield as_whole(twin), place.port.exact
        # A hub within a dock may outlive what is behind it, too.
        above = place.unit.parent if place.usb and not is_hub(place.unit) else None
        hub = above and above.usb_device
        while hub is not None:
            for twin in _twins_of_hub(hub, self._names, device):
                yield twin, port_on_a_bus(hub).exact
            hub = hub.parent and hub.parent.usb_device


def _may_be_leaving(unit: Place, past: Past) -> bool:
    """Whether it may be what is left of a unit that is being unplugged."""
    # An earlier release did not save the model.
    known = {(unit.model, unit.spot.serial), ("", unit.spot.serial)}
    return not known.isdisjoint(past.at.units(unit.port.exact))


def _renewed(twins: Twins, changed: Collection[Twin], now: Collection[Twin]) -> Twins:
    """The twins after these changes; the same object if they are the same."""
    return twins if twins.intersection(changed) == now else twins.difference(changed).union(now)


def twins_of(group: Group, identity: Identity) -> Twins:
    """What a device would have in common with twins."""
    names = group.resource.identity
    if isinstance(names, str) and identity.basis != "serial":
        return NO_TWINS
    here = [member for member in group.members if member.place.port.exact == identity.port.exact]
    if not here and group.subject is not None:
        subject, _ = group.subject
        by = frozenset() if isinstance(names, str) else frozenset((names,))
        nodes = (member.device for member in group.members)
        return frozenset(_twins_of_hub(subject, by, *nodes))
    found: list[Twin | None] = []
    if isinstance(names, tuple):
        found += [_told_by(names, member.device, member.place) for member in here]
    if isinstance(names, str) or _OF_SERIAL.issuperset(names):
        found += [twin_of(member.place) for member in here]
    return with_wholes(found)


def _told_by(names: Names, device: UdevDevice, place: Place) -> Twin | None:
    values = [find_property(name, device, within_unit=True) for name in names]
    return Twin(basis_of(*names), ascii(values), place.model, place.spot.within) if all(values) else None


def _twins_of_hub(hub: UdevDevice, by: Collection[Names], *nodes: UdevDevice) -> Iterator[Twin]:
    """What a hub would have in common with twins.

    by     the properties that may identify it, if it or one of these nodes behind it has them
    """
    serial = hub.attributes.get("serial", "").strip()
    if serial and not why_filler(serial):
        yield Twin("serial", serial, model_of(hub), HUB)
    for names in by:
        values = [find_property(name, hub, *nodes, within_unit=True) for name in names]
        if all(values):
            yield Twin(basis_of(*names), ascii(values), model_of(hub), HUB)
