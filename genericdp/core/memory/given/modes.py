"""The parts of units that a pod got, where another model with the same serial number may be now.

The rules of this file:

* A unit may change its model at its port: a modem does with its mode. It may also be another unit. That shows
  once the unit that the pod got is at another port.
* So what a pod got stays in mind (`Remembered.given`) until the next pod gets the device.
"""

from collections.abc import Iterable, Mapping
from itertools import islice

from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.part import Part, is_twin, may_be_twin
from genericdp.core.inventory.past import Ties, Twins
from genericdp.core.inventory.place import Spot, may_be_model
from genericdp.core.memory.given.units import Units
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.room import HELD_LINK_LIMIT
from genericdp.core.rules.resource import Resource


def given_of(device: Device, known: Remembered, resource: Resource) -> Mapping[str, Part]:
    """`Remembered.given` of a device that a pod holds.

    device    what is offered under its id now
    resource  see `is_another_unit`
    """
    if resource.identity != "serial" or known.given or _is_same(device, known.device):
        return known.given
    return dict(islice(known.parts.items(), HELD_LINK_LIMIT))


def _is_same(device: Device, was: Device) -> bool:
    return (device.spots, device.models, device.links) == (was.spots, was.models, was.links)


def is_another_unit(
    known: Remembered, device: Device, resource: Resource, units: Units, twins: Twins
) -> bool:
    """Whether a link that a pod got for one unit leads to another one.

    device    what the resource offers under the id now
    resource  if it names the properties that identify a device, their values decide
    """
    if (known.device is device and not known.given) or resource.identity != "serial":
        return False
    parts, models, led = known.parts, known.spots, known.led
    if device.basis == "serial" and any(
        (was := led.get(link)) is not None and was.port != spot.port and is_twin(twins, spot, model)
        for link, (spot, model) in zip(device.links, device.spots_with_models, strict=False)
    ):
        return True  # of twins, the port decides
    if device.basis == "serial" and parts and models and _is_wholly_another(device, models, parts):
        return True
    for link, (spot, model) in zip(device.links, device.spots_with_models, strict=False):
        part = parts.get(link)
        if part is None or may_be_model(part[1], model):
            continue
        was = led.get(link)
        # A unit that changes its mode stays at its port.
        if was and was.port != spot.port and not may_be_model(models[was], model):
            return True
        if not may_be_twin(twins, spot, part[1]) and units.ports_of(spot.serial, part[1]):
            return True
    return False


def is_that_of_another_pod(known: Remembered, device: Device, held: Iterable[tuple[str, str]]) -> bool:
    """Whether another model is where a link of a pod leads, and another pod got that model at another port.

    held  see `is_of_another_model`
    """
    parts = known.parts
    others = {*held} - {(spot.port, model) for spot, model in known.spots.items()}
    return any(
        link in parts
        and not may_be_model(parts[link][1], model)
        and any(port != spot.port and may_be_model(model, other) for port, other in others)
        for link, (spot, model) in zip(device.links, device.spots_with_models, strict=False)
    )


def _is_wholly_another(device: Device, was: Mapping[Spot, str], parts: Mapping[str, Part]) -> bool:
    """Whether nothing of what a pod got was at a port where the device is, or of a model that it is."""
    ports, models = {spot.port for spot in was}, {*was.values(), *(model for _, model in parts.values())}
    return ports.isdisjoint(spot.port for spot in device.spots) and not any(
        may_be_model(model, other) for model in device.models for other in models
    )


def is_of_another_model(device: Device, held: Iterable[tuple[str, str]], ties: Ties) -> bool:
    """Whether the unit of a device has the ids of another model with its serial number, which pods hold.

    held  port and model of what pods hold of the same unit. Two units that were seen side by side have a tie:
          their ids differ
    """
    # At its port, a unit may change its model.
    return device.unit not in ties and any(
        spot.port != port and not may_be_model(model, other)
        for port, other in held
        for spot, model in device.spots_with_models
    )
