"""The model of a unit that a pod got, where another model with its serial number is now.

The rules of this file:

* A unit may change its model at its port: a modem does with its mode. It may also be another unit. That shows
  once the unit that the pod got is at another port.
* So its model stays in mind for as long as the pod holds the device. Such a spot has its port in parentheses.
"""

from collections.abc import Mapping

from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.past import Twins, may_be_twin
from genericdp.core.inventory.place import Spot, may_be_model
from genericdp.core.memory.remembered import Remembered, Units


def first_at(spot: Spot, model: str, here: Mapping[Spot, str], known: Remembered) -> Spot | None:
    """Where the model that a pod got first is remembered, if another one is at its spot; else None.

    spot  one of `here`, or one that this function made
    here  what the device has now, with the models
    """
    if spot not in here:
        is_back = any(each[1:] == spot[1:] and may_be_model(other, model) for each, other in here.items())
        return None if is_back else spot
    first = spot._replace(port=f"({spot.port})")
    is_new = spot.serial and not may_be_model(here[spot], model) and first not in known.earlier
    return first if is_new else None


def is_of_first(spot: Spot) -> bool:
    """Whether `first_at` made this spot."""
    return spot.port.startswith("(")


def is_another_unit(known: Remembered, device: Device, units: Units, twins: Twins) -> bool:
    """Whether another model is where a unit was that a pod got, or has its link, and is not that unit.

    device  what the resource offers under the id now. Where a property identifies it, its value decides
    """
    if known.device is device and not known.earlier:
        return False
    return _has_moved(known, device) or _is_elsewhere(known, device, units, twins)


def _has_moved(known: Remembered, device: Device) -> bool:
    """Whether a link that a serial number names leads to another model, at another port."""
    led, models = known.led, known.spots
    return device.basis == "serial" and any(
        led[link].port != spot.port and not may_be_model(models[led[link]], model)
        for link, (spot, model) in zip(device.links, device.spots_with_models, strict=False)
        if link in led
    )


def _is_elsewhere(known: Remembered, device: Device, units: Units, twins: Twins) -> bool:
    """Whether a unit that a pod got is at another port now, and another model is where it was."""
    if device.basis not in ("serial", "all"):
        return False
    models = dict(device.spots_with_models)
    changed = (
        (spot, model)
        for spot, model in known.spots.items()
        if is_of_first(spot) or not may_be_model(models.get(spot, ""), model)
    )
    return any(
        not may_be_twin(twins, spot, model) and units.ports_of(spot.serial, model) - {spot.port.strip("()")}
        for spot, model in changed
    )
