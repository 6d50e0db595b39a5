"""Where the shared nodes are or were that go along with devices: pods got them with these.

The rules of this file:

* A pod that has a device may have every shared node that has gone along with it since the pod got it.
* Only present devices say whether a shared node is there. An absent one may have missed that the node left.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from genericdp.core.inventory.offer import SharedAt
from genericdp.core.inventory.past import Known, Value
from genericdp.core.inventory.place import Spot
from genericdp.core.memory.remembered import Remembered


def shared_spots(devices: Iterable[Remembered]) -> Iterator[tuple[Spot, SharedAt]]:
    """Where the shared nodes of these devices are or were. Those of one resource have them in common."""
    shared = {id(known.device.shared_at): known.device.shared_at for known in devices}
    return (each for spots in shared.values() for each in spots.items())


def known_there(devices: Mapping[str, Remembered], held: Collection[str]) -> Iterator[tuple[Spot, Known]]:
    """What is remembered of each spot of shared nodes. `held` are the devices that pods may hold."""
    found: dict[Spot, dict[str, SharedAt]] = {}
    for id_, known in devices.items():
        for spot, at in known.device.shared_at.items():
            found.setdefault(spot, {})[id_] = at if known.absent_since is None else at.left
    for spot, by_id in found.items():
        there = next((at for at in by_id.values() if at.node is not None), SharedAt())
        node = "" if there.node is None else there.node.port
        ids, models = dict.fromkeys(by_id, Value()), frozenset(at.model for at in by_id.values())
        yield spot, Known(there.sys_path, node, frozenset(ids.keys() & held), ids, models=models)
