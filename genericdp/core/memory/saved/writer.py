"""The memory as JSON.

The rules of this file:

* When a device left, or an id was withdrawn, is not saved: after a restart its grace time starts again,
  which errs on the safe side.
* A field unknown to an earlier release is left out if it is empty.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from genericdp.core.inventory.past import Siblings
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.shared import is_shared_link
from genericdp.core.memory.held import Holding
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered

#: The version of the format, which `reader` checks.
FORMAT = 1


class Writer:
    """Renders one memory after another. Allocate waits for it: only devices that changed are rendered again.

    boot  the id of this boot, "" if it is not known
    """

    def __init__(self, boot: str = "") -> None:
        self._boot = boot
        self._devices: Mapping[str, Remembered] | None = None
        self._texts: Mapping[str, tuple[Remembered, str]] = {}

    def prepare(self, memory: Memory) -> None:
        """Render the devices that changed, so that the next `dump` need not."""
        if memory.devices is not self._devices:
            self._devices = memory.devices
            self._texts = {id_: self._rendered(id_, known) for id_, known in sorted(memory.devices.items())}

    def dump(self, memory: Memory) -> bytes:
        """The memory as JSON. Equal memories give equal bytes."""
        self.prepare(memory)
        devices = ", ".join(text for _, text in self._texts.values())
        rest = json.dumps({"boot": self._boot, **_render_the_rest(memory)}, sort_keys=True)
        return f'{{"devices": {{{devices}}}, {rest.removeprefix("{")}'.encode("ascii")

    def _rendered(self, id_: str, known: Remembered) -> tuple[Remembered, str]:
        before = self._texts.get(id_)
        if before is not None and _is_same(before[0], known):
            return before
        return known, f"{json.dumps(id_)}: {json.dumps(_render_device(known), sort_keys=True)}"


def _is_same(one: Remembered, other: Remembered) -> bool:
    """Whether both have one text. The order in which nodes were lost counts, too."""
    return one is other or (one == other and [*one.earlier] == [*other.earlier])


def dump(memory: Memory, boot: str = "") -> bytes:
    """The memory as JSON. Equal memories give equal bytes."""
    return Writer(boot).dump(memory)


def _render_device(known: Remembered) -> dict[str, Any]:
    device = known.device
    unread = {spot: dock for spot, dock in known.docks.items() if spot in device.spots}
    docks = {**known.docks, **device.docks}
    return {
        "resource": known.resource,
        "unit": device.unit,
        "port": device.port,
        "hub": device.hub,
        "numa": device.numa,
        # An earlier release would refuse links that do not begin with the id.
        "links": [link for link in device.links if not is_shared_link(link)],
        "shared": [link for link in device.links if is_shared_link(link)],
        "spots": [_render_spot(spot) for spot in device.spots],
        "also": [_render_spot(spot) for spot in device.also],
        "earlier": [_render_spot(spot) for spot in known.earlier],
        "listed": known.listed,
        **_unless_empty(
            basis=device.basis,
            key_hash=device.key_hash,
            models=_unless_unknown(device.models),
            earlier_models=_unless_unknown(known.earlier.values()),
            docks=[[_render_spot(at), docks[at]] for at in sorted(docks.keys() - unread.keys())],
            unread_docks=[[_render_spot(at), dock] for at, dock in sorted(unread.items())],
            shared_spots=[*map(_render_spot, device.shared_at)],
            shared_models=_unless_unknown(at.model for at in device.shared_at.values()),
            shared_docks=[
                [_render_spot(spot), at.dock]
                for spot, at in sorted(device.shared_at.items())
                if at.dock is not None
            ],
            given={link: [_render_spot(at), of] for link, (at, of) in known.given.items()},
            not_given=[*map(_render_spot, sorted(known.not_given))],
        ),
        **({} if known.is_of_this_boot else {"of_this_boot": False}),
    }


def _render_the_rest(memory: Memory) -> dict[str, Any]:
    return {
        "version": FORMAT,
        "ties": dict(memory.ties),
        "replicas": dict(memory.shares.replicas),
        "withdrawn": {
            id_: {"resource": one.resource, "device": one.device}
            for id_, one in memory.shares.withdrawn.items()
        },
        "held": {id_: _render_holding(one) for id_, one in memory.held.items()},
        "siblings": _render_siblings(memory.siblings),
        "late": _render_late(memory.siblings),
        "renamed": dict(memory.renamed),
        # An earlier release did not save it, so this tells what has not been taken over yet.
        **({} if memory.is_of_earlier_release else {"answered": _render_answered(memory)}),
        **_unless_empty(
            untold=memory.is_untold,
            apart={slow: [each.fast, each.is_crossed] for slow, each in memory.apart.items()},
            twins=[list(twin) for twin in sorted(memory.twins)],
            guesses=[list(twin) for twin in sorted(memory.guesses)],
            sibling_models=_render_models(memory.siblings),
            left=[list(unit) for unit in sorted(memory.left)],
            doubtful=[
                [*spot[:3], list(each.unit), [list(node) for node in sorted(each.nodes)]]
                for spot, each in sorted(memory.doubtful.items())
            ],
        ),
    }


def _unless_unknown(models: Iterable[str]) -> list[str]:
    found = [*models]
    return found if any(found) else []


def _unless_empty(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value}


def _render_holding(one: Holding) -> dict[str, Any]:
    # Allocate waits for this, and there may be thousands.
    rendered = {"resource": one.resource, "device": one.device, "shared": one.shared}
    return {**rendered, "links": list(one.links)} if one.links else rendered


def _render_answered(memory: Memory) -> list[dict[str, Any]]:
    return [{"resource": one.resource, "ids": list(one.ids)} for one in memory.answered.values()]


def _render_spot(spot: Spot) -> list[str | int]:
    return list(spot if spot.number else spot[:3])


def _render_siblings(siblings: Siblings) -> list[Any]:
    return [
        [*spot[:3], [[number, *seen[:2]] for number, seen in sorted(numbers.items())]]
        for spot, numbers in sorted(siblings.items())
    ]


def _render_late(siblings: Siblings) -> list[Any]:
    late = {
        spot: sorted(number for number, seen in numbers.items() if seen.is_late)
        for spot, numbers in siblings.items()
    }
    return [[*spot[:3], numbers] for spot, numbers in sorted(late.items()) if numbers]


def _render_models(siblings: Siblings) -> list[Any]:
    models = {
        spot: [[number, seen.model] for number, seen in sorted(numbers.items()) if seen.model]
        for spot, numbers in siblings.items()
    }
    return [[*spot[:3], numbers] for spot, numbers in sorted(models.items()) if numbers]
