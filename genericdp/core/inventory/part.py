"""A part of a unit: a device node known by the serial number, wherever the unit is plugged in.

And what serial numbers say of two units: that they are told apart, or may be twins.

The rules of this file:

* A serial number that tells nothing (`genericdp.core.fillers`) is none.
* Units of different models may share a serial number, as those in a dock do. So a part names the model, too.
* Units of one model may be twins. Then the serial number does not say which one it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap

from genericdp.core.fillers import why_filler
from genericdp.core.inventory.past import WHOLE, Twin, Twins, as_whole
from genericdp.core.inventory.place import Place, Spot, may_be_model

#: A device node of a unit with a serial number, wherever that is plugged in: its spot without the port, and
#: the model, "" if it is not on USB.
Part = tuple[Spot, str]


def part_of(spot: Spot, model: str) -> Part:
    """The part at a spot. `model`: of the unit there."""
    return spot._replace(port=""), model


def is_part(part: Part, other: Part) -> bool:
    """Whether both may be the same part."""
    return part[0] == other[0] and may_be_model(part[1], other[1])


def missing_of(given: Mapping[str, Part], here: Iterable[tuple[Spot, str]]) -> Sequence[Part]:
    """The parts that a pod got under links, of which none is here, at least not of this model."""
    if not given:
        return ()
    models: dict[Spot, list[str]] = {}
    for place, model in starmap(part_of, here):
        models.setdefault(place, []).append(model)
    parts = dict.fromkeys(given.values())
    return [at for at in parts if not any(may_be_model(at[1], model) for model in models.get(at[0], ()))]


def has_serial(spot: Spot) -> bool:
    """Whether the unit at a spot says a serial number that tells which one it is."""
    return spot.serial != "" and not why_filler(spot.serial)


def are_told_apart(spot: Spot, other: Spot) -> bool:
    """Whether the serial numbers at two spots are those of two units, whatever else they have in common."""
    return spot.serial != other.serial and has_serial(spot) and has_serial(other)


def twin_of(place: Place) -> Twin | None:
    """What a device node here would have in common with that of a twin; None if it can have none."""
    spot = place.spot
    if not spot.serial or place.untold or why_filler(spot.serial):
        return None
    return Twin("serial", spot.serial, place.model, spot.within)


def may_be_twin(twins: Twins, spot: Spot, model: str) -> bool:
    """Whether a unit with the serial number of that at a spot may be another one of its model.

    That is so if it says nothing, or if two such units have been seen side by side.
    """
    return spot.serial == "" or why_filler(spot.serial) != "" or is_twin(twins, spot, model)


def is_twin(twins: Twins, spot: Spot, model: str) -> bool:
    """Whether two units of this model, with the serial number at a spot, have been seen side by side."""
    twin = Twin("serial", spot.serial, model, spot.within)
    return not twins.isdisjoint((twin, as_whole(twin)))


def has_twin(twins: Twins, spot: Spot) -> bool:
    """Whether two units with the serial number at a spot have been seen side by side, of whatever model."""
    return any(
        (twin.basis, twin.key) == ("serial", spot.serial) and twin.within in (spot.within, WHOLE)
        for twin in twins
    )
