"""Which running containers of a device to stop.

The rules of this file:

* Only containers that hold the device, by PodResources, and that run, by their runtime.
* What a restart would not mend is left alone. A container that is created again gets the answer that the
  kubelet has saved: links under fixed container paths, or names of CDI devices.
* A name of a CDI device means what is there now: other device numbers, or another container path.
* What is not known is not held against a container.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from genericdp.core.allocate import RefusedError, allocate
from genericdp.core.comeback.container import Inside, Running
from genericdp.core.comeback.plugs import Case
from genericdp.core.inventory.offer import ids_of
from genericdp.core.status.holdings import Holder


@dataclass(frozen=True, slots=True)
class Saved:
    """The answer to Allocate that the kubelet has saved for a container and a resource.

    devices  container path -> path on the host
    cdi      the names of CDI devices
    """

    devices: Mapping[str, str]
    cdi: tuple[str, ...] = ()


#: (UID of the pod, container, resource) -> what the kubelet has saved.
Answers = Mapping[tuple[str, str, str], Saved]


@dataclass(frozen=True, slots=True)
class Judgement:
    """stops: the containers to stop. sure: whether everything was known that matters."""

    stops: tuple[Running, ...] = ()
    sure: bool = True


def holders_in(case: Case, running: Iterable[Running], holders: Sequence[Holder]) -> tuple[Running, ...]:
    """The running containers of these holders that were not stopped for the plug yet.

    PodResources does not tell the UIDs of pods. Of two containers of one name, the newer is the holder: the
    other is of a pod that was deleted by force.
    """
    newest: dict[Holder, Running] = {}
    for each in running:
        if each.holder in holders:
            other = newest.get(each.holder)
            newest[each.holder] = each if other is None or other.created <= each.created else other
    return tuple(
        newest[holder]
        for holder in sorted(newest)
        if (newest[holder].pod, holder.container) not in case.plug.stopped
    )


def judge(
    case: Case, holders: Iterable[Running], inside: Mapping[str, Inside | None], saved: Answers, link_dir: str
) -> Judgement:
    """Which of the containers that hold the device of a case to stop.

    inside  id of a container -> the device nodes that it was created with; not needed for an unplugged device
    saved   what the kubelet would give them again; what is missing is not known
    """
    if case.unplugged:
        return Judgement(tuple(holders))
    stops: list[Running] = []
    sure = True
    for each in holders:
        found = inside.get(each.id)
        if found is None:
            sure = False
        elif _is_outdated(case, found, saved.get((each.pod, each.holder.container, case.key[0])), link_dir):
            stops.append(each)
    return Judgement(tuple(stops), sure)


def _is_outdated(case: Case, inside: Inside, saved: Saved | None, link_dir: str) -> bool:
    """Whether the container would find something else if it were created now."""
    numbers = {f"{link_dir}/{link}": number for link, number in (case.plug.numbers or {}).items()}
    if saved is not None:
        at = {path: numbers[host] for path, host in saved.devices.items() if host in numbers}
        if at:
            return any(inside.get(path) != number for path, number in at.items())
        if not saved.cdi:
            return False
        if not set(_paths_now(case, link_dir)) <= inside.keys():
            return True
    optional = {node.link for node in case.device.nodes_inside if node.table.optional}
    needed = {number for link, number in (case.plug.numbers or {}).items() if link not in optional}
    return not needed <= set(inside.values())


def _paths_now(case: Case, link_dir: str) -> tuple[str, ...]:
    """The container paths of the device, as an answer to Allocate would name them now."""
    ids = ids_of(case.device.id, case.offer.resource.replicas)[:1]
    try:
        return tuple(each.container_path for each in allocate(case.offer, ids, link_dir).devices)
    except RefusedError:
        return ()
