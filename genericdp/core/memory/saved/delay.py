"""How long a change of the memory may wait to be saved: the changes of a storm are saved together.

The rules of this file:

* What nothing else tells is saved at once. After a power cut, that is which of two twins came first, who
  holds what, what the names in saved answers mean, which device nodes the id that a pod holds means by now,
  and that these have siblings, or may be any of those. With edited rules, a daemon that is killed would offer
  them to another pod.
"""

from collections.abc import Mapping

from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.past import Seen
from genericdp.core.memory.memory import Memory

#: How long a change may wait, in seconds.
SAVE_WITHIN_S = 1.0


def save_within_s(before: Memory, after: Memory) -> float | None:
    """How long the new memory may wait to be saved, in seconds; None if nothing changed.

    New ties, twins, holdings and CDI devices may not wait, nor may a held device that has other nodes now, or
    is one of several. A holding is new if it says something else of its id.
    """
    if after == before:
        return None
    gained = not after.held.items() <= before.held.items() or after.answered.keys() - before.answered.keys()
    is_tied = (after.ties, after.twins) != (before.ties, before.twins)
    return 0.0 if is_tied or gained or _is_held_another(before, after) else SAVE_WITHIN_S


def _is_held_another(before: Memory, after: Memory) -> bool:
    """Whether a device that a pod holds may be another one now.

    It has other nodes, siblings have come or have other paths, or it has become unknown which sibling it is.
    """
    changed = {
        id_
        for id_, known in after.devices.items()
        if (was := before.devices.get(id_, known)) is not known and _nodes(was.device) != _nodes(known.device)
    }
    open_ = {
        spot
        for spot, numbers in after.siblings.items()
        if numbers != (had := before.siblings.get(spot, {}))
        and (numbers.keys() - had.keys() or _present_or_doubted(numbers).items() - had.items())
    }
    for id_, known in after.devices.items() if open_ else ():
        if not open_.isdisjoint(spot.of_all for spot in known.device.spots_with_shared):
            changed.add(id_)
    return bool(changed) and any(holding.device in changed for holding in after.held.values())


def _present_or_doubted(siblings: Mapping[int, Seen]) -> Mapping[int, Seen]:
    """Those of siblings that are there, and those whose numbers do not say which ones they are."""
    return {n: seen for n, seen in siblings.items() if seen.is_there or seen.is_guess or seen.is_mixed}


def _nodes(device: Device) -> tuple[object, ...]:
    """Where the nodes of a device are and, as `also` has their numbers in this boot, which ones they are."""
    return device.spots, device.also
