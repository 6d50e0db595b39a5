"""Which devices have to wait because they may be a pod's own device whose serial number could not be read.

The rules of this file:

* The kernel reads the serial number of a USB device once, when it is plugged in. If that fails, it has
  none. So a device may be the one that a pod holds if it has the same model and port, and exactly one of the
  two has a serial number. It waits until the held one is found elsewhere.
* A unit in a socket of USB 3 may have another port there once a second one is beside it. So what pods got at
  the other port counts, too, unless a device was there before.
* Where the unit of a pod was last seen is also known from the id that edited rules gave it since. It may
  come back in the mode (as the model) that the pod got, or in its last one.
* None of the nodes of such a unit is offered under a new id, because the unit has to be plugged in again
  anyway. Under an id that was known before, only the node that the pod holds waits. Once that is back under
  its id with a serial number, those with other values of the same properties are free.
* The device descriptor is not evidence: a chip that could not read its configuration reports that it has no
  serial number.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.part import may_be_twin
from genericdp.core.inventory.past import Value, value_of
from genericdp.core.inventory.place import Spot, may_be_model
from genericdp.core.inventory.plugged import BySerial
from genericdp.core.memory.held import Held
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.renewal import Renewal
from genericdp.core.usb_port import Pairs


class _Had(NamedTuple):
    """A node that a pod may have had: the id of its device, its spot, the model of its unit ("": unknown).

    value  what properties say of it, if it is back there
    """

    id_: str
    spot: Spot
    model: str
    value: Value = Value()

    def is_another(self, device: Device) -> bool:
        """Whether properties say that a device is another one."""
        value = value_of(device.basis, device.key_hash)
        return value != self.value and value.basis == self.value.basis != ""


class Unread:
    """Finds devices that may be a pod's own device whose serial number could not be read."""

    def __init__(
        self,
        devices: Mapping[str, Remembered],
        held: Held,
        inventory: Inventory,
        renewal: Renewal,
        apart: Pairs,
    ) -> None:
        """`devices` are all that are remembered, by id; `inventory` is that of what is plugged in.

        apart  the sockets of USB 3 in which two units were at once
        """
        self._devices = devices
        self._offers = inventory.offers
        self._untold, self._twins = inventory.untold, inventory.twins
        self._renewal, self._by_serial = renewal, BySerial(renewal.plugged)
        self._holdings = {holding.device: holding for holding in held.values()}
        self._exclusive = {holding.device for holding in held.values() if not holding.shared}
        fast = {slow: pair.fast for slow, pair in apart.items()}
        self._beside = {**fast, **{port: slow for slow, port in fast.items()}}

    def why_not(self, resource: str, device: Device) -> str:
        """Why the device must not be offered; "" if it may. `resource` is the name of its resource."""
        if not self._holdings or not any(device.models):
            return ""
        known, is_held = self._devices.get(device.id), device.id in self._holdings
        if is_held and known is not None and _has_stayed(known, device):
            return ""
        is_new = known is None and not is_held
        # What cannot be at a port any more may be listed until its event is heard.
        had_at = self._had if is_new else self._lost
        is_shared = not self._offers[resource].resource.is_exclusive
        for spot, model, node in zip(device.spots, device.models, device.nodes, strict=False):
            for had in self._at(spot, had_at) if model else ():
                if (
                    had.id_ != device.id
                    and bool(had.spot.serial) is not bool(spot.serial)
                    and may_be_model(had.model, model)
                    and (is_new or had.spot.within == spot.within)
                    and not (is_held and self._is_told(known, device, spot, model))
                    and (had.id_ in self._exclusive or not is_shared)
                    and not had.is_another(device)
                    and not self._was_there(had.id_, spot)
                ):
                    self._renewal.units.lacking[had.id_] = _what_to_do(spot, node.path)
                    self._renewal.see_holder(device, had.id_)
                    return _why_unread(spot, had.id_, node.path if _has_several_units(device) else "")
        return ""

    def _at(self, spot: Spot, had_at: Mapping[str, Sequence[_Had]]) -> Iterator[_Had]:
        """What pods got where a device is now, or could have been before its socket was apart."""
        yield from had_at.get(spot.port, ())
        beside = self._beside.get(spot.port)
        if beside is not None and spot not in self._there:
            # What is still at the other port is not what has come to this one.
            lost = self._lost.get(beside, ())
            yield from (each for each in lost if not self._renewal.plugged.nodes_at(each.spot))

    @cached_property
    def _there(self) -> Collection[Spot]:
        """Where devices were in the look before, under whatever ids."""
        present = (known.device for known in self._devices.values() if known.absent_since is None)
        return {spot for device in present for spot in device.spots}

    @cached_property
    def _lost(self) -> Mapping[str, Sequence[_Had]]:
        """Port -> the nodes that pods got there and that are not offered under the same id any more."""
        return _by_port(each for id_ in self._holdings for each in self._lost_of(id_))

    @cached_property
    def _had(self) -> Mapping[str, Sequence[_Had]]:
        """Port -> all nodes that pods got there."""
        found = (each for id_ in self._holdings for each in self._present_of(id_))
        return _by_port(chain(found, *self._lost.values()))

    def _lost_of(self, id_: str) -> Iterator[_Had]:
        known, now = self._devices.get(id_), self._now(id_)
        if known is None or (now is known.device and not known.earlier):
            return
        if now is not None and self._is_the_one(now):
            # Where its serial number could not be read, it has been read since: the node is back.
            here = {at._replace(serial="") for at in now.spots}
            told = value_of(now.basis, now.key_hash)
            for spot, model in self._renewal.renewed(known.resource, now).earlier.items():
                yield _Had(id_, spot, model, told if spot in here else Value())
        else:
            yield from _had_of(id_, known.device)
            yield from _in_other_modes(id_, known)
            for spot, model in known.earlier.items():
                yield _Had(id_, spot, model)
        for own in known.spots:
            for spot, model in self._absent.get((own.serial, own.within), ()) if own.serial else ():
                yield _Had(id_, spot, model)

    @cached_property
    def _absent(self) -> Mapping[tuple[str, str], Sequence[tuple[Spot, str]]]:
        """Serial number and place -> where nodes were last seen that are not plugged in, under whatever id.

        After an edit, a unit is remembered under another id than the one that a pod holds.
        """
        found: dict[tuple[str, str], list[tuple[Spot, str]]] = {}
        for id_, known in self._devices.items():
            offer = self._offers.get(known.resource)
            now = None if offer is None else offer.called(id_)
            # An id that says nothing of serial numbers is the same when none could be read.
            there = set[str]() if now is None else {spot.serial for spot in now.spots}
            for spot, model in known.device.spots_with_models:
                if spot.serial not in there and not self._is_elsewhere(spot, model):
                    found.setdefault((spot.serial, spot.within), []).append((spot, model))
        return found

    def _is_elsewhere(self, spot: Spot, model: str) -> bool:
        """Whether the unit seen at a spot is now plugged in at another port, and cannot be a twin of it."""
        # An earlier release did not save the model. Then it may be any unit with that serial number.
        is_known = model != "" and not may_be_twin(self._twins, spot, model)
        return is_known and bool(self._by_serial.nodes_like(spot, model))

    def _present_of(self, id_: str) -> Iterator[_Had]:
        now = self._now(id_)
        if now is not None and self._is_the_one(now):
            yield from _had_of(id_, now)

    def _is_told(self, known: Remembered | None, device: Device, spot: Spot, model: str) -> bool:
        """Whether the serial number of a node of a held device says that it is the one that the pod got."""
        if device.basis == "serial":
            return spot.serial != ""
        return known is not None and any(
            (each.serial, each.within) == (spot.serial, spot.within)
            and may_be_model(was, model)
            and not may_be_twin(self._twins, spot, model)
            for each, was in known.device.spots_with_models
        )

    def _was_there(self, id_: str, spot: Spot) -> bool:
        """Whether the pod of a held id may have had this very spot.

        Then no serial number is in question, and `with_waiting` compares the two.
        """
        known = self._devices.get(id_)
        return known is not None and spot in known.spots

    def _now(self, id_: str) -> Device | None:
        """The device that currently has the id of a held device; None if there is none."""
        offer = self._offers.get(self._holdings[id_].resource)
        return None if offer is None else offer.called(id_)

    def _is_the_one(self, now: Device) -> bool:
        """Whether the device that currently has a held id is the one that the pod got."""
        resource = self._holdings[now.id].resource
        return now.id not in self._untold and not self._renewal.why_not(resource, now)


def _had_of(id_: str, device: Device) -> Iterator[_Had]:
    for spot, model in device.spots_with_models:
        yield _Had(id_, spot, model)


def _in_other_modes(id_: str, known: Remembered) -> Iterator[_Had]:
    """What a pod got of a unit that has changed its model since, at the port where the unit was last."""
    last: dict[Spot, list[Spot]] = {}
    for spot in known.spots if known.given else ():
        last.setdefault(spot._replace(port=""), []).append(spot)
    return (_Had(id_, spot, model) for part, model in known.missing for spot in last.get(part, ()))


def _by_port(found: Iterator[_Had]) -> Mapping[str, Sequence[_Had]]:
    at: dict[str, list[_Had]] = {}
    for each in found:
        at.setdefault(each.spot.port, []).append(each)
    return at


def _has_stayed(known: Remembered, device: Device) -> bool:
    """Whether the device is the very node that it was: nothing has come that may be another one."""
    has_more = not {*device.spots} <= {*known.device.spots}
    return known.absent_since is None and not has_more and not {*known.device.also}.isdisjoint(device.also)


def _has_several_units(device: Device) -> bool:
    return len({spot.port for spot in device.spots}) > 1


def _why_unread(spot: Spot, id_: str, path: str) -> str:
    """`path` names the node in question, for a device of several units; "" for any other device."""
    if spot.serial:
        return (
            f"{path or 'it'} may be {id_}, which a pod may still hold and whose serial number could not be "
            "read; it is offered when that pod is deleted"
        )
    its = f"the serial number of {path}" if path else "its serial number"
    return (
        f"{its} could not be read, so it may be {id_}, which a pod may still hold; unplug it and "
        "plug it in again, at another port if it has no serial number"
    )


def _what_to_do(spot: Spot, path: str) -> str:
    if spot.serial:
        return f"{path}, whose serial number can be read now: delete the pod that holds it"
    return f"{path}, whose serial number could not be read: unplug it and plug it in again"
