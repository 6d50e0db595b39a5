"""Why a device that was offered is not offered now.

The rules of this file:

* The answer follows from what is plugged in now and from what outlives a restart. So `list`, which
  reads the saved memory, gives the same reason as the daemon.
* A device is recognized by the spots of its nodes, not by their sys paths or names: another unit may
  have those by now.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import filterfalse

from genericdp.core.buses.port import Dock
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.part import may_be_twin
from genericdp.core.inventory.place import UNKNOWN, Spot, is_of_node, is_of_path
from genericdp.core.inventory.plugged import BySerial, Plugged
from genericdp.core.memory.remembered import NOTHING_REPLACED, Replaced
from genericdp.core.usb_port import UsbPort

#: How the reason of a device begins of which nothing is plugged in.
UNPLUGGED = "it is unplugged"
#: The reason of one that was not seen since the start while some devices cannot be read.
UNREAD = "it may be one of the devices that cannot be read"
#: The reason of one whose id alone is known.
NOTHING_KNOWN = "only its id is known"
#: The reasons of one that is plugged in, and that no rule takes: at its port, and at another one.
NOT_MATCHED = "the rules no longer match it"
NOT_MATCHED_THERE = f"{UNPLUGGED} at its port, and no rule matches it where it is now"
WITHOUT_RULE = (NOT_MATCHED, NOT_MATCHED_THERE)

#: How many ids one reason names.
_MOST_IDS = 3

_NOTHING: Mapping[str, str] = {}

_WHY_PORTS = "but there were two such units: plug this one in at its old port"
#: Whether a pod may hold a device -> why it is in doubt.
_IN_DOUBT = {
    True: "the device plugged in now may not be the one that a pod got; delete that pod",
    False: "the device plugged in now may not be the one that had this id",
}
_OR_IN_DOUBT = "or it is one of several that look alike: plug it in again at its old port, or delete that pod"


class Absence:
    """Knows which device nodes of absent devices are plugged in all the same."""

    def __init__(
        self,
        plugged: Plugged,
        inventory: Inventory,
        known: Collection[str] = frozenset(),
        *,
        lacking: Mapping[str, str] = _NOTHING,
        also_held: Mapping[str, str] = _NOTHING,
        replaced: Replaced = NOTHING_REPLACED,
    ) -> None:
        """`known`: the ids of devices that are not new; the others: see `Units`, `Renewal` and `Left`."""
        self._lacking, self._also_held, self._replaced = lacking, also_held, replaced
        self._plugged, self._by_serial = plugged, BySerial(plugged)
        self._known = known
        self._inventory = inventory
        self._refusals = {(each.resource, each.node): each.reason for each in inventory.refusals}

    def reason(self, resource: str, device: Device, *, is_held: bool = True) -> str:
        """Why the resource does not offer the device. `is_held`: whether a pod may hold it."""
        if not device.spots:
            return NOTHING_KNOWN
        # Another device has taken its place at the rest of its spots.
        spots = [spot for spot in device.spots if spot not in self._replaced.get(device.id, ())]
        nodes = [node for spot in spots for node in self._nodes_at(spot, device.docks.get(spot))]
        if not nodes and (id_ := self._found_under(device)):
            return f"its id is now {id_}"
        if not nodes and (
            ids := sorted({id_ for spot in device.spots for id_ in self._before.get(spot.of_all, ())})
        ):
            if device.id in ids:
                return _IN_DOUBT[is_held]
            return f"this release tells such devices apart; its id may now be {' or '.join(ids[:_MOST_IDS])}"
        if not nodes:
            # One that was there, and that is not found now, has gone, unless something else may be it.
            may_be_there = any(map(self._plugged.is_unread, device.spots))
            may_be_anywhere = self._plugged.unread and not device.nodes
            return UNREAD if may_be_there or may_be_anywhere else self._unplugged(resource, device)
        if not all(node.initialized for node in nodes):
            return "udev has not finished with it"
        reasons = (self._refusals.get((resource, node.device_node or "")) for node in nodes)
        refusal = next(filter(None, reasons), None)
        if refusal is None and any(map(self._is_in_doubt, device.spots)):
            return _IN_DOUBT[is_held]
        return refusal or self._by_ids(device, nodes, is_held=is_held)

    def also(self, device: Device) -> tuple[Spot, ...]:
        """Where the nodes of the device may be found as well, whatever has become of it.

        While a VFIO group exists, its functions may be replaced one after the other. An early build saved no
        more than the port of a device, so what is new there may be the same device.
        """
        if not device.spots:
            spots = (spot for each in self._may_be.get(device.id, ()) for spot in each.spots)
            # Devices without a port are anywhere.
            new = self._new_at.get(device.port, ()) if device.port else ()
            siblings = self._siblings.get(device.id, ())
            return tuple(dict.fromkeys((*device.also, *new, *spots, *siblings)))
        if not self._also:
            return device.also
        also = dict.fromkeys(device.also)
        for spot in (*device.spots, *device.also):
            other = self._also.get(spot)
            if other is not None:
                also.update(dict.fromkeys((*other.spots, *filterfalse(is_of_node, other.also))))
        return tuple(also)

    def links(self, device: Device) -> tuple[str, ...]:
        """The links that a pod may have got of the device. Where nothing is known, they may be called so."""
        may_be = self._may_be.get(device.id, ()) if not device.spots else ()
        names = (link for each in may_be for link in each.links_under(device.id))
        return tuple(dict.fromkeys((*device.links, *names)))

    def _nodes_at(self, spot: Spot, dock: Dock | None) -> Sequence[UdevDevice]:
        nodes = self._plugged.nodes_at(spot, dock)
        # Udev may have come to know what was a bare node.
        return self._by_path.get(spot.port, ()) if not nodes and is_of_path(spot) else nodes

    def _why_elsewhere(self, resource: str, device: Device) -> str:
        """Why the resource does not offer a device at another port; "" if it is not known to be at one.

        What is offered there may be another unit. Its own id says for which pod it waits.
        """
        found = list[UdevDevice]()
        for spot, model in device.spots_with_models if device.basis != "port" else ():
            is_twin = may_be_twin(self._inventory.twins, spot, model)
            there = [] if is_twin else self._by_serial.nodes_like(spot, model)
            if not there:
                return ""
            found += there
        if not found or any(node.sys_path in self._ids or not node.initialized for node in found):
            return ""
        refusals = (self._refusals.get((resource, node.device_node or "")) for node in found)
        refusal = next(filter(None, refusals), "")
        return f"{UNPLUGGED} at its port; where it is now, {refusal}" if refusal else NOT_MATCHED_THERE

    @cached_property
    def _by_path(self) -> Mapping[str, Sequence[UdevDevice]]:
        """The path of each device node that is plugged in -> the device node."""
        nodes = (node for group in self._plugged.groups.values() for node in group)
        return {node.device_node or "": (node,) for node in nodes}

    def _unplugged(self, resource: str, device: Device) -> str:
        """The reason of a device that has gone, as far as anybody can tell: it may be what looks like it."""
        if device.id in self._lacking:
            return f"{UNPLUGGED}, or it is {self._lacking[device.id]}"
        if any(spot.of_all in self._doubted_homes for spot in device.spots):
            return f"{UNPLUGGED}, {_OR_IN_DOUBT}"
        twins = self._twins.get(device.unit, ()) if device.unit in self._inventory.ties else ()
        twin = next((each.id for each in twins if each.port != device.port and each.id != device.id), "")
        if not twin:
            return self._why_elsewhere(resource, device) or UNPLUGGED
        at = f" (USB port {port.chain})" if (port := UsbPort.of_exact(device.port)) else ""
        return f"{UNPLUGGED}; {twin} has the same identity, {_WHY_PORTS}{at}"

    @cached_property
    def _twins(self) -> Mapping[str, Sequence[Device]]:
        """The plain id of each unit -> the devices of units that have the same one."""
        found: dict[str, list[Device]] = {}
        for device in self._offered:
            found.setdefault(device.unit, []).append(device)
        return found

    def _found_under(self, device: Device) -> str:
        """The id under which a node of the device is offered that is elsewhere now; "" if there is none."""
        for spot in (*device.spots, *device.also):
            if spot in self._also:
                return self._also[spot].id
            if spot in self._by_node:
                return self._by_node[spot]
        nodes = (node for spot in device.also for node in self._plugged.nodes_at(spot))
        return next((id_ for node in nodes for id_ in self._ids.get(node.sys_path, ())), "")

    @cached_property
    def _offered(self) -> Sequence[Device]:
        return [device for offer in self._inventory.offers.values() for device in offer.devices]

    @cached_property
    def _new_at(self) -> Mapping[str, Sequence[Spot]]:
        """Port -> the spots of the new devices that have a node there."""
        found: dict[str, list[Spot]] = {}
        for device in self._offered:
            if device.id not in self._known:
                for port in dict.fromkeys((device.port, *(spot.port for spot in device.spots))):
                    found.setdefault(port, []).extend(device.spots)
        return found

    @cached_property
    def _may_be(self) -> Mapping[str, Sequence[Device]]:
        """An id of which nothing is known -> the new devices that may have had it."""
        offered = {each.id: each for each in self._offered}
        return {
            id_: [offered[each] for each in ids if each in offered and each not in self._known]
            for id_, ids in self._inventory.doubted.items()
        }

    @cached_property
    def _siblings(self) -> Mapping[str, Sequence[Spot]]:
        """An id of which nothing is known -> the siblings one of which may have had it, taken or not."""
        untold = self._inventory.untold
        shared: dict[str, dict[Spot, None]] = {}
        told: set[Spot] = set()
        for device in self._offered if untold else ():
            for id_ in untold.get(device.id, ()):
                shared.setdefault(id_, {}).update((spot.of_all, None) for spot in device.spots)
            if device.id not in untold:
                told.update(device.spots)
        at = {spot for spots in shared.values() for spot in spots}
        siblings = {spot: [*filterfalse(told.__contains__, self._siblings_at(spot))] for spot in at}
        return {id_: [each for spot in spots for each in siblings[spot]] for id_, spots in shared.items()}

    def _siblings_at(self, spot: Spot) -> Iterator[Spot]:
        for number in self._plugged.siblings.get(spot, (0,)):
            yield spot._replace(number=number)

    @cached_property
    def _also(self) -> Mapping[Spot, Device]:
        """Where offered VFIO groups are, and may be found as well. A bare node is what its path is."""
        return {
            spot: device
            for device in self._offered
            if (others := [*filterfalse(is_of_node, device.also)])
            # Otherwise nobody knows which spot is that of which group.
            and len(device.spots) == 1
            and not any(node.is_bare for node in device.nodes)
            for spot in (*device.spots, *others)
        }

    @cached_property
    def _by_node(self) -> Mapping[Spot, str]:
        """Each offered device node that may get another name -> the id that it has now."""
        return {spot: device.id for device in self._offered for spot in filter(is_of_node, device.also)}

    @cached_property
    def _before(self) -> Mapping[Spot, Sequence[str]]:
        """Where an earlier release would have found what is offered -> the ids that it has now."""
        found: dict[Spot, list[str]] = {}
        for device in self._offered:
            for spot in device.before:
                found.setdefault(spot.of_all, []).append(device.id)
        return found

    @cached_property
    def _doubted_homes(self) -> frozenset[Spot]:
        """Where siblings may have been that are at other ports now, and in doubt there."""
        return frozenset(home for at in self._plugged.in_doubt for home in self._plugged.homes.get(at, ()))

    def _is_in_doubt(self, spot: Spot) -> bool:
        return spot.number == UNKNOWN or spot.of_all in self._plugged.in_doubt

    def _by_ids(self, device: Device, nodes: Iterable[UdevDevice], *, is_held: bool) -> str:
        """The reason of a device by the ids that its nodes have now."""
        ids = {id_ for node in nodes for id_ in self._ids.get(node.sys_path, ())}
        if not ids:
            return NOT_MATCHED
        if device.id in self._also_held:
            return f"a pod may still hold one of its device nodes as {self._also_held[device.id]}"
        if len(ids) > 1 and not is_held:
            more = ", …" if len(ids) > _MOST_IDS else ""
            return f"its ids are now {', '.join(sorted(ids)[:_MOST_IDS])}{more}"
        if len(ids) > 1 or device.id in ids or self._is_now_a_sibling(device):
            return _IN_DOUBT[is_held]
        return f"its id is now {ids.pop()}"

    def _is_now_a_sibling(self, device: Device) -> bool:
        """Whether the id is now that of a sibling: nothing but their order says that it is another one."""
        mine = {spot.of_all for spot in device.spots}
        return any(spot.of_all in mine for spot in self._spots_now.get(device.id, ()))

    @cached_property
    def _spots_now(self) -> Mapping[str, Sequence[Spot]]:
        return {each.id: each.spots for each in self._offered}

    @cached_property
    def _ids(self) -> Mapping[str, Sequence[str]]:
        """The sys path of each device node that is offered -> the devices that have it."""
        found: dict[str, list[str]] = {}
        for device in self._offered:
            for node in device.nodes:
                found.setdefault(node.sys_path, []).append(device.id)
        return found
