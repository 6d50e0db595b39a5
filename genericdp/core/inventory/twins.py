"""Which units are twins: those that were plugged in at the same time, whatever rules take them.

The rules of this file:

* Two units are twins once they have been plugged in at the same time at two ports, if they are of one model,
  have the same device node, and have the same serial number or the same values of the properties that a rule
  names as `identity`. Parts of a dock may share a serial number, but are different models.
* It is enough that a rule takes one of them: the next edit may give the other one to the same resource.
* A unit that came beside another one in its socket may be the same unit, so it is no twin. Nor is one with
  which udev has not finished: it may be the one that has left.
* An event costs what it touches.
"""

from collections.abc import Collection, Iterable, Iterator

from genericdp.core.buses.port import usb_above
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Examined
from genericdp.core.inventory.group import Group, find_property
from genericdp.core.inventory.identity import Identity, basis_of
from genericdp.core.inventory.past import NO_TWINS, Twin, Twins, twin_of
from genericdp.core.inventory.place import Place
from genericdp.core.rules.resource import Resource

#: The names of the properties that identify a unit.
Names = tuple[str, ...]


class SideBySide:
    """The device nodes that are plugged in, by what each would have in common with a twin.

    twins  what twins have in common of which a rule takes at least one
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        identities = (resource.identity for resource in resources)
        self._names = frozenset([names for names in identities if isinstance(names, tuple)])
        self.twins = NO_TWINS
        self._at: dict[Twin, dict[str, tuple[str, bool]]] = {}

    def see(self, left: Iterable[Examined], came: Iterable[Examined], new: Collection[str]) -> None:
        """Take into account what has left and what has come.

        new  the sys paths of units that came beside others, see `usb_port.Sockets`
        """
        changed: set[Twin] = set()
        for each in left:
            for twin in self._twins_of(each):
                changed.add(twin)
                self._at.get(twin, {}).pop(each.device.sys_path, None)
        for each in came:
            if each.place and each.device.initialized and usb_above(each.device.sys_path) not in new:
                for twin in self._twins_of(each):
                    changed.add(twin)
                    at = each.place.port.exact, bool(each.judged.claims)
                    self._at.setdefault(twin, {})[each.device.sys_path] = at
        for twin in changed:
            if not self._at.get(twin):
                self._at.pop(twin, None)
        now = {twin for twin in changed if self._are_two(twin)}
        if now != self.twins & changed:
            self.twins = self.twins - changed | now

    def _twins_of(self, examined: Examined) -> Iterator[Twin]:
        device, place = examined.device, examined.place
        if place:
            found = (twin_of(place), *(_told_by(names, device, place) for names in self._names))
            yield from (twin for twin in found if twin is not None)

    def _are_two(self, twin: Twin) -> bool:
        there = self._at.get(twin, {}).values()
        return len({port for port, _ in there}) > 1 and any(is_taken for _, is_taken in there)


def twins_of(group: Group, identity: Identity) -> Twins:
    """What a device would have in common with twins."""
    names = group.resource.identity
    if isinstance(names, str) and identity.basis != "serial":
        return NO_TWINS
    found = (
        twin_of(member.place) if isinstance(names, str) else _told_by(names, member.device, member.place)
        for member in group.members
        if member.place.port.exact == identity.port.exact
    )
    return frozenset([twin for twin in found if twin is not None])


def _told_by(names: Names, device: UdevDevice, place: Place) -> Twin | None:
    values = [find_property(name, device, within_unit=True) for name in names]
    return Twin(basis_of(*names), ascii(values), place.model, place.spot.within) if all(values) else None
