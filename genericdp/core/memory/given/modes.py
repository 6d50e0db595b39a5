"""The model of a unit that a pod got, where another model with its serial number is now.

The rules of this file:

* A unit may change its model at its port: a modem does with its mode. It may also be another unit. That shows
  once the unit that the pod got is at another port.
* So its model stays in mind (`Remembered.first`) until it is back in the device, or the next pod gets that.
"""

from collections.abc import Iterable, Mapping
from itertools import islice

from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.past import Ties, Twins, may_be_twin
from genericdp.core.inventory.place import Spot, may_be_model
from genericdp.core.memory.remembered import Remembered, Units, has_serial
from genericdp.core.memory.room import HELD_LINK_LIMIT
from genericdp.core.rules.resource import Resource


def first_of(device: Device, known: Remembered, resource: Resource) -> Mapping[Spot, str]:
    """`Remembered.first` of a device that a pod holds.

    device    what is offered under its id now
    resource  see `is_another_unit`
    """
    if resource.identity != "serial":
        return {}
    if (device.spots, device.models) == (known.device.spots, known.device.models):
        return known.first
    here = dict(device.spots_with_models)
    kept = {
        spot: model
        for spot, model in known.first.items()
        if not any(each[1:] == spot[1:] and may_be_model(other, model) for each, other in here.items())
    }
    new = {
        spot: model
        for spot, model in known.spots.items()
        if spot.serial
        and not may_be_model(here.get(spot, ""), model)
        and not known.got_first(spot, here[spot])
    }
    # What the pod got came first. A device may invent the rest.
    return dict(islice({**kept, **new, **kept}.items(), HELD_LINK_LIMIT))


def is_another_unit(
    known: Remembered, device: Device, resource: Resource, units: Units, twins: Twins
) -> bool:
    """Whether another model is where a unit was that a pod got, or has its link, and is not that unit.

    device    what the resource offers under the id now
    resource  if it names the properties that identify a device, their values decide
    """
    if (known.device is device and not known.first) or resource.identity != "serial":
        return False
    return _has_moved(known, device) or _is_elsewhere(known, device, units, twins)


def is_of_another_model(device: Device, held: Iterable[Remembered], ties: Ties) -> bool:
    """Whether the unit of a device has the ids of another model with its serial number, which pods hold.

    held  devices with an id of the same unit. Once the units have been seen side by side, their ids differ
    """
    return (
        device.basis == "serial"
        and device.unit not in ties
        and any(
            spot.port != was.port
            and spot.serial == was.serial
            and has_serial(spot)
            and not may_be_model(model, was_model)
            for each in held
            for was, was_model in each.spots.items()
            for spot, model in device.spots_with_models
        )
    )


def _has_moved(known: Remembered, device: Device) -> bool:
    """Whether a link that a serial number names leads to another model, at another port."""
    led, models = known.led, known.spots
    return device.basis == "serial" and any(
        led[link].port != spot.port
        and not may_be_model(models[led[link]], model)
        and not known.got_first(spot, model)
        for link, (spot, model) in zip(device.links, device.spots_with_models, strict=False)
        if link in led
    )


def _is_elsewhere(known: Remembered, device: Device, units: Units, twins: Twins) -> bool:
    """Whether a unit that a pod got is at another port now, and another model is where it was."""
    models = dict(device.spots_with_models)
    changed = {
        spot: model
        for spot, model in known.spots.items()
        if not may_be_model(models.get(spot, ""), model) and not known.got_first(spot, models[spot])
    }
    return any(
        not may_be_twin(twins, spot, model)
        and units.ports_of(spot.serial, model) - _own_ports(spot, model, models)
        for spot, model in (*changed.items(), *known.first.items())
    )


def _own_ports(spot: Spot, model: str, models: Mapping[Spot, str]) -> set[str]:
    """Where a unit of a device that was at a spot is, unless another model is there now."""
    if spot in models and not may_be_model(models[spot], model):
        return {spot.port}
    return {each.port for each, other in models.items() if each[1:] == spot[1:] and other == model}
