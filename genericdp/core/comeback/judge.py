"""Which containers of a device to stop.

The rules of this file:

* Only containers that hold the device, by PodResources, and that run, by their runtime. One that was
  created is left to start: before that, the runtime would not stop it.
* What a restart would not mend is left alone. A container that is created again gets the answer that the
  kubelet has saved: links under fixed container paths, or names of CDI devices.
* A name of a CDI device means what is there now: other device numbers, or another container path. A path may
  be that of another node now, with a number that the container has there. Which node its program takes it
  for is said by the envs with which it was created: they list the ids, and the paths in the order of these.
* What is not known is not held against a container. Without the saved answer, nobody knows whether a node
  that it lacks was replaced, or was added to the device by an edit of the rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from genericdp.core.allocate import RefusedError, device_specs
from genericdp.core.comeback.container import Container, Inside
from genericdp.core.comeback.plugs import Case
from genericdp.core.device import DeviceNumber
from genericdp.core.inventory.offer import Offer
from genericdp.core.rules.name import cdi_kind, env_names
from genericdp.core.status.holdings import Holder


@dataclass(frozen=True, slots=True)
class Saved:
    """The answer to Allocate that the kubelet has saved for a container and a resource.

    devices  container path -> path on the host
    cdi      the names of CDI devices
    ids      what the container was given
    """

    devices: Mapping[str, str]
    cdi: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


#: (UID of the pod, container, resource) -> what the kubelet has saved.
Answers = Mapping[tuple[str, str, str], Saved]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What follows from the evidence.

    stops     the containers to stop
    sure      whether everything was known of the containers that there are
    starting  whether one may be starting that is to be stopped when it runs
    """

    stops: tuple[Container, ...] = ()
    sure: bool = True
    starting: bool = False


def newest(containers: Iterable[Container]) -> Mapping[Holder, Container]:
    """The newest container of each name.

    PodResources does not tell the UIDs of pods. Of two containers of one name, the newer is the holder: the
    other is of a pod that was deleted by force, or was never started. Within a pod, the one that runs is the
    holder, because the clock may have been set back since the other was created.
    """
    of_pods: dict[tuple[Holder, str], Container] = {}
    for each in sorted(containers, key=lambda each: (each.runs, each.created)):
        of_pods[each.holder, each.pod] = each
    return {each.holder: each for each in sorted(of_pods.values(), key=lambda each: each.created)}


class Evidence:
    """What is known of containers. One may have thousands of devices: each is looked up, never searched.

    inside  id of a container -> what it was created with; not needed for an unplugged device
    saved   what the kubelet would give them again; what is missing is not known
    """

    def __init__(self, inside: Mapping[str, Inside | None], saved: Answers, link_dir: str) -> None:
        self.inside = inside
        self.link_dir = link_dir
        self._saved = saved
        self._named = {(container, resource) for _, container, resource in saved}
        self._numbers: dict[str, frozenset[DeviceNumber]] = {}
        self._paths: dict[tuple[str, str, str], Mapping[str, Sequence[str]]] = {}
        self._given: dict[str, Offer] = {}
        self._told: dict[tuple[str, str], Mapping[str, Sequence[DeviceNumber]]] = {}

    def is_of_a_namesake(self, container: Container, resource: str) -> bool:
        """Whether only containers of other pods got devices of a resource under the name of this container.

        PodResources does not tell the UIDs of pods, and a pod that was deleted by force may still run.
        """
        name = container.holder.container
        return (name, resource) in self._named and self.saved(container, resource) is None

    def numbers(self, container: Container) -> frozenset[DeviceNumber]:
        """The numbers of the device nodes that a container was created with."""
        if container.id not in self._numbers:
            inside = self.inside[container.id]
            self._numbers[container.id] = frozenset(() if inside is None else inside.nodes.values())
        return self._numbers[container.id]

    def is_misled(self, case: Case, container: Container) -> bool:
        """Whether other nodes than those of the device are at the paths that the envs tell for it.

        An optional node may have left since. False if the envs do not tell.
        """
        key = container.id, case.key[0]
        if key not in self._told:
            self._told[key] = _told(self.inside[container.id], case.offer)
        told = self._told[key].get(case.device.id)
        numbers = case.plug.numbers or {}
        rest = iter(told or ())
        return told is not None and not all(
            numbers[node.link] in rest for node in case.device.nodes if node.link in numbers
        )

    def saved(self, container: Container, resource: str) -> Saved | None:
        """The answer that the kubelet has saved for a container and a resource."""
        return self._saved.get((container.pod, container.holder.container, resource))

    def paths(self, container: Container, offer: Offer) -> Mapping[str, Sequence[str]]:
        """Path on the host -> the container paths at which the saved answer has it, as it is meant now."""
        key = (container.pod, container.holder.container, offer.resource.name)
        if key not in self._paths:
            saved = self._saved[key]
            found: dict[str, list[str]] = {}
            for inside, host in (saved.devices or self._meant(saved, offer)).items():
                found.setdefault(host, []).append(inside)
            self._paths[key] = found
        return self._paths[key]

    def _meant(self, saved: Saved, offer: Offer) -> Mapping[str, str]:
        """Container path -> path on the host, as the CDI device of the answer says it now."""
        name = offer.resource.name
        if not any(each.startswith(f"{cdi_kind(name)}=") for each in saved.cdi):
            return {}
        ids = [id_ for id_ in saved.ids if id_ in offer.ids]
        # Ids are refused to new pods only.
        given = self._given.setdefault(name, replace(offer, refused={}) if offer.refused else offer)
        try:
            specs = device_specs(given, ids, self.link_dir)
        except RefusedError:
            return {}
        return {each.container_path: each.host_path for each in specs}


def _told(inside: Inside | None, offer: Offer) -> Mapping[str, Sequence[DeviceNumber]]:
    """Device -> the device numbers at the paths that the envs of a container tell for it, in their order."""
    if inside is None:
        return {}
    paths, ids = (inside.envs.get(name, "").split(",") for name in env_names(offer.resource.name))
    # An env may be the operator's own: then it may list anything.
    devices = {device.id: device for device in map(offer.device, ids) if device is not None}
    numbers = [inside.nodes[path] for path in paths if path in inside.nodes]
    if len(numbers) < len(paths) or any(offer.device(id_) is None for id_ in ids):
        return {}
    if len(devices) == 1:
        return dict.fromkeys(devices, numbers)
    # Also of an absent device, it is remembered how many nodes it has.
    if sum(len(device.spots) for device in devices.values()) != len(numbers):
        return {}
    rest = iter(numbers)
    return {id_: [*islice(rest, len(device.spots))] for id_, device in devices.items()}


def judge(
    case: Case, holders: Iterable[Holder], containers: Mapping[Holder, Container], evidence: Evidence
) -> Judgement:
    """Which of the containers that hold the device of a case to stop.

    containers  the newest of each holder that has one
    """
    stops: list[Container] = []
    sure, starting = True, False
    for holder in sorted(holders):
        found = containers.get(holder)
        if found is None or evidence.is_of_a_namesake(found, case.key[0]):
            starting = True
            continue
        if (found.pod, holder.container) in case.plug.stopped:
            continue
        outdated = case.unplugged or _is_outdated(case, found, evidence)
        if outdated is None:
            sure = False
        elif outdated and found.runs:
            stops.append(found)
        elif outdated:
            starting = True
    return Judgement(tuple(stops), sure, starting)


def _is_outdated(case: Case, container: Container, evidence: Evidence) -> bool | None:
    """Whether the container would find something else if it were created now; None if nobody knows."""
    inside = evidence.inside.get(container.id)
    if inside is None:
        return None
    numbers = case.plug.numbers or {}
    resource = case.key[0]
    saved = evidence.saved(container, resource)
    keeps_its_paths = saved is not None and (saved.devices or not saved.cdi)
    is_misled = not keeps_its_paths and evidence.is_misled(case, container)
    if saved is not None and is_misled:
        return True
    if saved is not None:
        paths = evidence.paths(container, case.offer)
        at = {
            path: number
            for link, number in numbers.items()
            for path in paths.get(f"{evidence.link_dir}/{link}", ())
        }
        if at:
            return any(inside.nodes.get(path) != number for path, number in at.items())
        if not saved.cdi:
            return False
    optional = {node.link for node in case.device.nodes_inside if node.table.optional}
    needed = {number for link, number in numbers.items() if link not in optional}
    found = evidence.numbers(container)
    if needed <= found:
        return None if is_misled else False
    own = {numbers[node.link] for node in case.device.nodes if node.link in numbers}
    return True if saved is not None or own.isdisjoint(found) else None
