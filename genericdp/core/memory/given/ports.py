"""What is remembered at ports: devices, the shared nodes that go along with them, and ties of twins."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain

from genericdp.core.fillers import why_filler
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.past import Ties
from genericdp.core.inventory.place import is_of_node
from genericdp.core.memory.given.shared import shared_spots
from genericdp.core.memory.held import Held
from genericdp.core.memory.remembered import Remembered
from genericdp.core.usb_port import Nodes, Said


class Ports:
    """The ports of these devices and ties, and of what pods hold. Only those on USB are asked about."""

    def __init__(self, devices: Mapping[str, Remembered], ties: Ties, held: Held, left_before: float) -> None:
        """`left_before`: what left earlier, on the clock of `remember`, was not there at the boot."""
        self._devices, self._ties, self._left_before = devices.values(), ties, left_before
        self._held = [(known, each) for each in held.values() if (known := devices.get(each.device))]

    def is_known(self, port: str) -> bool:
        """Whether anything is remembered at a port."""
        return port in self._all

    def units(self, port: str) -> Collection[Said]:
        """What the units at a port said that they are. Only asked when two may be one."""
        return self._units.get(port, ())

    def unseen(self, port: str) -> Collection[Said]:
        """The same of those that were there when the machine booted, perhaps, but not seen since."""
        return self._unseen.get(port, ())

    def held(self, port: str) -> Collection[Said]:
        """The same of those that pods hold and whose ids or links may depend on the port."""
        return self._held_by_port.get(port, ())

    def with_nodes(self, nodes: Nodes) -> Collection[str]:
        """The ports where devices, or what goes along with them, have one of these nodes.

        Only asked when two come to be in one socket.
        """
        return _with_nodes(self._devices, nodes)

    def given_with(self, nodes: Nodes) -> Collection[str]:
        """The same of those that pods got since the daemon has started.

        Not where another unit was in the boot before, if a pod has that and only the port identifies it.
        """
        given = [known for known, holding in self._held if holding.given is not None]
        unseen = [known for known, _ in self._held if not known.is_of_this_boot]
        theirs = {known.device.port for known in unseen if known.device.basis == "port"}
        return _with_nodes(given, nodes) - theirs

    @cached_property
    def _units(self) -> Mapping[str, Collection[Said]]:
        return _said_at_ports(self._devices)

    @cached_property
    def _unseen(self) -> Mapping[str, Collection[Said]]:
        unseen = (known for known in self._devices if not known.is_of_this_boot)
        said = _said_at_ports(
            [each for each in unseen if each.absent_since is None or each.absent_since > self._left_before]
        )
        # A shared node may have been seen with another device.
        seen = shared_spots(known for known in self._devices if known.is_of_this_boot)
        ports = {spot.port for spot, _ in seen}
        return {port: units for port, units in said.items() if port not in ports}

    @cached_property
    def _held_by_port(self) -> Mapping[str, Collection[Said]]:
        return _by_port(_said([known for known, _ in self._held if self._depends_on_port(known.device)]))

    def _depends_on_port(self, device: Device) -> bool:
        """Whether the ids or links of a device may depend on its port. Those of a kit may, or of a twin."""
        names = (device.unit, *device.links)
        return (
            device.basis != "serial"
            or any(name in self._ties for name in names)
            or any(why_filler(spot.serial) for spot in device.spots)
        )

    @cached_property
    def _all(self) -> Collection[str]:
        return ports_of(self._devices).union(self._ties.values())


def ports_of(every: Collection[Remembered]) -> frozenset[str]:
    """The ports at which devices and their shared nodes are remembered.

    Asked in every step, of thousands of devices.
    """
    found = {known.device.port for known in every}
    found |= {spot.port for known in every for spot in known.device.spots}
    found |= {spot.port for known in every if known.earlier for spot in known.earlier}
    found |= {spot.port for spot, _ in shared_spots(every)}
    return frozenset(found)


def _with_nodes(every: Collection[Remembered], nodes: Nodes) -> set[str]:
    shared = {spot.port for spot, at in shared_spots(every) if at.node in nodes}
    own = {
        spot.port
        for known in every
        if any(is_of_node(each) and each._replace(serial="") in nodes for each in known.device.also)
        for spot in known.device.spots
    }
    return shared | own


def _said_at_ports(every: Collection[Remembered]) -> Mapping[str, Collection[Said]]:
    """What the units of these devices, and of the shared nodes along with them, said that they are."""
    shared = ((spot.port, (at.model, spot.serial)) for spot, at in shared_spots(every))
    return _by_port(chain(_said(every), shared))


def _said(every: Collection[Remembered]) -> Iterator[tuple[str, Said]]:
    for known in every:
        for spot, model in known.device.spots_with_models:
            yield spot.port, (model, spot.serial)


def _by_port(every: Iterable[tuple[str, Said]]) -> Mapping[str, Collection[Said]]:
    found: dict[str, set[Said]] = {}
    for port, said in every:
        found.setdefault(port, set()).add(said)
    return found
