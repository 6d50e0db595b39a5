"""Where the nodes are now that a device has lost.

The rules of this file:

* A node goes where its unit goes. The parts of a kit do not move together, and another unit in it is not the
  one that has left.
* If the id is made of properties, they tell which of several siblings a node is. Its number may differ at
  another port.
* A device may have lost many nodes, and have many others now. What is asked for each is looked up.
"""

from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from itertools import islice

from genericdp.core.inventory.identity import names_of
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.part import has_serial, may_be_twin
from genericdp.core.inventory.past import SIBLING_LIMIT, Twins
from genericdp.core.inventory.place import Spot, is_of_path, may_be_model
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.memory.remembered import Remembered
from genericdp.core.rules.grouping import SameProperty
from genericdp.core.rules.resource import Resource


class Moves:
    """Where the nodes of a device have gone.

    was      the device as it is remembered
    now      as it is offered
    earlier  where it had other nodes: one that is back there has not moved
    twins    what twins have in common
    rule     the one by which it is offered
    """

    def __init__(
        self,
        was: Device,
        now: Device,
        earlier: Container[Spot],
        twins: Twins,
        rule: Resource | None = None,
    ) -> None:
        self._was, self._now, self._twins = was, now, twins
        # The id says nothing of a unit, unless the rule names properties that do.
        self._is_kit = (
            rule is not None
            and isinstance(rule.group_by, SameProperty)
            and not isinstance(rule.identity, tuple)
        )
        # They do not tell apart two siblings of one device.
        is_told = names_of(now.basis) != () and not self._is_kit
        self._tells_siblings = is_told and _has_one_each(was) and _has_one_each(now)
        self._had = {*was.spots}
        # The id of one node says its properties, so this is the node, wherever it is.
        is_one_node = self._tells_siblings and len(was.spots) == len(now.spots) == 1
        self._one_node = self._had if is_one_node else set()
        self._ports = {each.port for each in now.spots}
        self._is_back = any(each in earlier for each in now.spots)

    def of(self, spot: Spot, model: str) -> Spot | None:
        """Where the node at a spot is now: at another port if its unit is, or else at this spot.

        None if it is elsewhere and one of those that the device has now.

        model  of the unit that was there, "" if it is not known
        """
        is_the_node = spot in self._one_node
        if self._is_back or (spot.port in self._ports and not is_the_node):
            return spot
        # Any adapter without a serial number has the same place in its unit, and so has a twin.
        is_told = is_the_node or is_of_path(spot) or not may_be_twin(self._twins, spot, model)
        if is_told and any(may_be_model(model, other) for other in self._came.get(self._place_of(spot), ())):
            return None
        if self._of_unit and _is_below(spot, self._of_unit[0]):
            # It is a part of the unit, or behind the hub that the device is.
            here, there = self._of_unit
            at = spot._replace(port=there + spot.port.removeprefix(here))
            models = self._models_at.get(at.port, ())
            return at if not models or any(may_be_model(model, other) for other in models) else spot
        return spot

    @cached_property
    def _came(self) -> Mapping[tuple[object, ...], Sequence[str]]:
        """Where nodes have come (`_place_of`), each place with and without its number -> the models there."""
        found: dict[tuple[object, ...], list[str]] = {}
        for spot, model in self._now.spots_with_models:
            if spot not in self._had:
                for place in (spot[1:], spot[1:3]):
                    found.setdefault(place, []).append(model)
        return found

    def _place_of(self, spot: Spot) -> tuple[object, ...]:
        """A spot without its port, and without its number if properties tell which sibling it is."""
        return spot[1:3] if self._tells_siblings and spot in self._had else spot[1:]

    @cached_property
    def _models_at(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for spot, model in self._now.spots_with_models:
            found.setdefault(spot.port, []).append(model)
        return found

    @cached_property
    def _of_unit(self) -> tuple[str, str] | None:
        """The port of the unit before and now; None if the device is not one unit."""
        ports = _port_of_unit(self._was), _port_of_unit(self._now)
        is_unit = self._was.port and all(
            _is_below(spot, port)
            for device, port in zip((self._was, self._now), ports, strict=True)
            for spot in device.spots
        )
        return ports if is_unit and not self._is_kit else None


def lost_of(known: Remembered, device: Device, plugged: Plugged) -> dict[Spot, str]:
    """Where siblings were that a device no longer has and that no pod holds, with their models.

    If it were forgotten how many there are, one that comes alone would pass for another one.
    """
    if not plugged.siblings or (device.spots == known.device.spots and not known.earlier):
        return {}
    now = {*device.spots}
    here, units = {spot.of_all for spot in now}, {spot[1:3] for spot in now if has_serial(spot)}
    lost = (
        (spot, model)
        for spot, model in known.spots.items()
        if spot.of_all in plugged.siblings and spot not in now
        # A unit takes its siblings along to another port.
        if spot.of_all in here or spot[1:3] not in units
    )
    return dict(islice(lost, SIBLING_LIMIT))


def _port_of_unit(device: Device) -> str:
    """The prefix of the ports of its nodes. A USB 3 hub may itself be at another port."""
    if all(_is_below(spot, device.port) for spot in device.spots):
        return device.port
    found = (spot.port.removesuffix(f".{dock.at}") for spot, dock in device.docks.items())
    return next(found, device.port)


def _has_one_each(device: Device) -> bool:
    """Whether no two nodes of a device differ only in their ports or in their order."""
    return len({(spot.serial, spot.within) for spot in device.spots}) == len(device.spots)


def _is_below(spot: Spot, port: str) -> bool:
    """Whether a spot is in the unit at a port, or behind the hub there."""
    return f"{spot.port}.".startswith(f"{port}.")
