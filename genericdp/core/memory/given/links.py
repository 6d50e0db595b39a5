"""Whether a link was given for a unit, or for another one with its serial number.

The rules of this file:

* A device chooses its serial number, and its hash in the name of a link is short. So the memory of where the
  link led decides, not its name.
* A node keeps the long name of its link while it is remembered, because a pod may have got that name. Where
  the memory knows which links pods got, these decide.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import filterfalse

from genericdp.core.inventory.naming.links import long_name, marks_of
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.part import Part, has_serial, is_part, part_of
from genericdp.core.inventory.past import Ties
from genericdp.core.inventory.place import Spot, is_of_node, is_of_number, may_be_model
from genericdp.core.inventory.plugged import Plugged
from genericdp.core.memory.held import HELD
from genericdp.core.memory.remembered import Remembered


class GivenLinks:
    """For what pods got the links of these devices; `ties` are those of links."""

    def __init__(self, devices: Mapping[str, Remembered], ties: Ties) -> None:
        self._devices, self._ties = devices, ties
        self._parts: dict[str, Mapping[str, Part]] = {}
        # Of each device: link -> where it leads, and to which model; None if nowhere.
        self._links: dict[str, Mapping[str, tuple[Spot, str] | None]] = {}

    def model_of(self, link: str) -> str:
        """`Past.given_model`."""
        id_ = link.partition("@")[0]
        known = self._devices.get(id_)
        if known is None:
            return ""
        if known.given:
            return known.given[link][1] if link in known.given else ""
        # Asked in every step: this is less than to make all parts.
        now = self._links_of(id_, known).get(link)
        return now[1] if now and has_serial(now[0]) and now[0] not in known.not_given else ""

    def leads_elsewhere(self, link: str, spot: Spot, model: str) -> bool:
        """`Past.leads_elsewhere`."""
        id_ = link.partition("@")[0]
        known = self._devices.get(id_)
        if known is None:
            return False
        links = self._links_of(id_, known)
        if link not in links:
            return False
        this, parts = part_of(spot, model), self._parts_of(id_, known)
        if link not in parts:
            if long_name(link, spot) in links:
                return True
        elif is_part(parts[link], this):
            return False
        # What a pod got under another link is not another mode of what it got under this one.
        elif any(is_part(part, this) for part in parts.values()):
            return True
        now = links[link]
        led = self._led(link, spot, known) if now is None else [now]
        if not led:
            return link in parts
        return not any(_may_be_at(spot, model, *each, known) for each in led)

    def _parts_of(self, id_: str, known: Remembered) -> Mapping[str, Part]:
        if id_ not in self._parts:
            self._parts[id_] = known.parts
        return self._parts[id_]

    def _links_of(self, id_: str, known: Remembered) -> Mapping[str, tuple[Spot, str] | None]:
        if id_ not in self._links:
            leads = dict(zip(known.device.links, known.device.spots_with_models, strict=False))
            self._links[id_] = {**dict.fromkeys(known.device.links), **leads}
        return self._links[id_]

    def _led(self, link: str, spot: Spot, known: Remembered) -> list[tuple[Spot, str]]:
        """Where a link that names its unit may have led that leads nowhere now, each with the model."""
        named = frozenset(link.split("@"))
        lost = (each for each in known.earlier.items() if not is_of_number(each[0]))
        earlier = [each for each in lost if not named.isdisjoint(marks_of(each[0]))]
        alike = [each for each in earlier if each[0][1:3] == spot[1:3]]
        tied = [each for each in alike if each[0].port == self._ties.get(link)]
        # The unit at the tied port had the link; without a tie, the unit that was lost first. A unit that was
        # lost later with the same serial number had a long name.
        return (tied or alike)[:1] or earlier


def is_elsewhere(was: Spot, now: Spot, plugged: Plugged, *, by_property: bool) -> bool:
    """Whether a link that led to one spot and leads to another one leads to another device node.

    by_property  whether the rule names properties that tell the unit, wherever it is
    """
    is_moved = (
        was.of_all != now.of_all
        and was.within == now.within
        and was.number == now.number
        # A unit at another port is known by its serial number, one with another number by its port.
        and (by_property or was.port == now.port or was.serial == now.serial)
        # Which of its siblings it is can only be told when all are there.
        and len(plugged.siblings.get(was.of_all, (0,))) == plugged.count_at(now)
    )
    return was != now and not (is_moved and not plugged.is_taken(was))


def leads_to_another(
    known: Remembered, device: Device, nodes: frozenset[Spot], stayed: Mapping[Spot, Collection[int]]
) -> bool:
    """Whether a link leads to another node than before. After a loss, only where links led is known.

    nodes   see `still_plugged`
    stayed  see `Plugged`
    """
    if stayed and _leads_to_sibling(known, device, stayed):
        return True
    led = {} if known.device.spots else known.earlier
    spots = {*filterfalse(is_of_number, led)}
    links = {each.serial for each in led if is_of_node(each)}
    own = {link for link in links if not link.startswith(HELD)}
    if any(each and each.isdisjoint(now) for each, now in ((spots, device.spots), (own, device.links))):
        return True
    # If the id has come to mean something else, links show all that the pod got.
    if own != links and not spots.issuperset(device.spots):
        return True
    return any(
        spot.serial in device.links and spot not in device.also
        for spot in still_plugged((*known.device.also, *known.earlier), nodes)
    )


def still_plugged(also: Iterable[Spot], nodes: frozenset[Spot]) -> list[Spot]:
    """Those of device nodes that may get another name (`spot_of_node`) and are plugged in.

    nodes  the device nodes that are plugged in
    """
    return [spot for spot in also if is_of_node(spot) and spot._replace(serial="") in nodes]


def taken_of(known: Remembered, now: Device, plugged: Plugged) -> Iterator[Spot]:
    """The spots where links of a device led that are in use now, unless another model is there."""
    was, here = known.spots, dict(now.spots_with_models)
    alike = (spot for spot in known.led.values() if may_be_model(was[spot], here.get(spot, "")))
    return (spot for spot in alike if plugged.is_taken(spot, known.dock_of(spot)))


def _leads_to_sibling(known: Remembered, device: Device, stayed: Mapping[Spot, Collection[int]]) -> bool:
    """Whether a link leads to a sibling of the node where it led, which was there before."""
    led = known.led
    both = ((led[link], spot) for link, spot in zip(device.links, device.spots, strict=False) if link in led)
    return any(
        was.of_all == now.of_all and not was.may_be(now) and now.number in stayed.get(now.of_all, ())
        for was, now in both
    )


def _may_be_at(spot: Spot, model: str, was: Spot, was_model: str, known: Remembered) -> bool:
    """Whether a unit may be the one that was at another spot. One that changes its mode stays at its port."""
    if spot.serial != was.serial or may_be_model(model, was_model):
        return spot.serial == was.serial
    # A unit of this model was at another port of the device: that unit has moved, and no mode has changed.
    others = (each for each, other in known.spots.items() if other == model and each.serial == spot.serial)
    return spot.port == was.port and all(each.port == spot.port for each in others)
