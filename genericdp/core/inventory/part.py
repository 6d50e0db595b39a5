"""A part of a unit: a device node known by the serial number, wherever the unit is plugged in.

The rules of this file:

* A serial number that tells nothing (`genericdp.core.fillers`) is none.
* Units of different models may share a serial number, as those in a dock do. So a part names the model, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap

from genericdp.core.fillers import why_filler
from genericdp.core.inventory.place import Spot, may_be_model

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
