"""What a resource offers: its devices, with their device nodes and the ids that the kubelet hears.

The rules of this file:

* The ids of an offer are worked out once, when somebody first asks. A resource may have 20,000, and every
  answer to the kubelet looks them up.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain, repeat
from typing import NamedTuple

from genericdp.core.buses.port import Dock
from genericdp.core.device import DeviceNumber
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.place import Spot
from genericdp.core.rules.resource import NodeTable, Resource


class Health(StrEnum):
    """Exactly the two strings that the kubelet compares with (`v1beta1` constants)."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"


@dataclass(frozen=True, slots=True)
class Node:
    """A device node of a device.

    path      where the kernel has it now
    number    its device number
    link      the name of its stable link, below the link directory
    table     the node table of the resource that applies to it
    values    the udev properties that the container paths name
    devlinks  the devlinks that the table asks for, as container paths
    sys_path  the udev device, of a bare node its path; "" once that is gone
    gid       the group of the node; None while it is missing, and unless the resource may be answered by CDI
    """

    path: str
    number: DeviceNumber | None
    link: str
    table: NodeTable
    values: Mapping[str, str]
    devlinks: tuple[str, ...]
    sys_path: str
    gid: int | None = None

    @property
    def is_bare(self) -> bool:
        """Whether it is a device node that udev does not know."""
        return self.sys_path.startswith("/dev/")


class SharedAt(NamedTuple):
    """What is known of a shared node at a spot.

    sys_path  where it is, "" if that is not known any more
    node      which one it is (`spot_of_node`), None if that is not known any more
    model     of the unit there, as in `Device.models`
    dock      of the unit there, as in `Device.docks`
    """

    sys_path: str = ""
    node: Spot | None = None
    model: str = ""
    dock: Dock | None = None

    @property
    def left(self) -> "SharedAt":
        """What is known of it once no device says any more that it is there."""
        return self._replace(sys_path="", node=None)


@dataclass(frozen=True, slots=True)
class Device:
    """What the kubelet allocates: one or more device nodes that belong together.

    id         stable; replicas add `.0`, `.1`, …
    reason     why it is not Healthy, "" when it is
    nodes      in the order of the node tables; () for a device known only from before a restart
    links      the names of its links: of those in `nodes`, of shared ones, then of nodes that it had before
    numa       its NUMA node, None when it or another device of the resource has none
    unit       the plain id of the physical unit: what twins have in common; "" if nobody can tell which
    basis      what the id is made of, see `Identity`; "" in the memory of an earlier release
    key_hash   a hash of the values of the properties that the id stands for; "" if it stands for none
    port       where the unit is connected, exactly
    hub        the hub above the port, for `prefer = "same-hub"`; "" when not USB
    usb        (bus, device) numbers of its USB devices, for KubeVirt and for a reset
    values     the udev properties that envs, mounts, annotations and CDI names name
    spots      where its nodes sit or sat last, in the same order, to recognize it while it is not offered
    models     the model (`port.model_of`) of the unit at each of these spots, "" for one that is not on USB;
               () in the memory of an earlier release
    docks      of spots where the unit has no serial number and is behind a dock: the dock (`port.Dock`)
    shared     the nodes that go along with every device of the resource: one tuple for all that are present
    shared_at  the spots of those with links that do not name them, also of earlier ones that a pod may have
    also       while it is absent, other spots where it may be: of what was plugged in at its port since
    before     the spots of its nodes in the memory of an earlier release, where those are others
    across     the spots that its nodes would have at the other port of a socket of USB 3
    """

    id: str
    health: Health = Health.HEALTHY
    reason: str = ""
    nodes: tuple[Node, ...] = ()
    links: tuple[str, ...] = ()
    numa: int | None = None
    unit: str = ""
    basis: str = ""
    key_hash: str = ""
    port: str = ""
    hub: str = ""
    usb: tuple[tuple[int, int], ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    spots: tuple[Spot, ...] = ()
    models: tuple[str, ...] = ()
    docks: Mapping[Spot, Dock] = field(default_factory=dict)
    shared: tuple[Node, ...] = ()
    shared_at: Mapping[Spot, SharedAt] = field(default_factory=dict)
    also: tuple[Spot, ...] = ()
    before: tuple[Spot, ...] = ()
    across: tuple[Spot, ...] = ()

    def is_beside(self, spot: Spot, offered: Iterable["Device"]) -> bool:
        """Whether this is a sibling of the node at a spot, which may have the same values of properties.

        That is so unless the id of an offered device says that it has other values of these.
        """
        told = (each for each in offered if each.basis == self.basis and each.key_hash != self.key_hash)
        return any(each.of_all == spot.of_all for each in self.spots) and all(
            spot not in each.spots for each in told
        )

    @property
    def healthy(self) -> bool:
        return self.health is Health.HEALTHY

    @property
    def nodes_inside(self) -> tuple[Node, ...]:
        """All that a container gets: its own device nodes, then the shared ones."""
        return (*self.nodes, *self.shared) if self.shared else self.nodes

    def links_under(self, id_: str) -> Iterator[str]:
        """What its links would be called under another id. Those of shared nodes are called the same."""
        for link in self.links:
            yield id_ + link.removeprefix(self.id) if link.startswith(self.id) else link

    @property
    def spots_with_shared(self) -> Iterator[Spot]:
        """Its spots, and those of the shared nodes that go along."""
        return chain(self.spots, self.shared_at)

    @property
    def spots_with_models(self) -> Iterator[tuple[Spot, str]]:
        """Each spot, with the model of the unit there; "" where that is not known."""
        return zip(self.spots, chain(self.models, repeat("")), strict=False)


# Without slots, because cached_property keeps the value in the object.
@dataclass(frozen=True)
class Offer:
    """One resource and its devices, in the order of their ids.

    withheld  ids that are Unhealthy although their device may be Healthy, each with its device as Unhealthy:
              the rule no longer includes them, or they have to wait
    refused   ids that Allocate refuses, with the reason: they have to wait, or the rule no longer
              includes them and no pod that holds them is being admitted
    crowded   devices of withheld ids for which edited rules have no room, in no order
    """

    resource: Resource
    devices: tuple[Device, ...] = ()
    withheld: Mapping[str, Device] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    crowded: tuple[Device, ...] = ()

    @cached_property
    def ids(self) -> Mapping[str, Device]:
        """Every id that the kubelet is told, one for each replica, with the device behind it."""
        count = self.resource.replicas
        made = {id_: device for device in self.devices for id_ in ids_of(device.id, count)}
        return {**made, **self.withheld} if self.withheld else made

    @property
    def with_crowded(self) -> tuple[Device, ...]:
        """All devices that pods may use: those that are offered, then the crowded ones."""
        return (*self.devices, *self.crowded) if self.crowded else self.devices

    @cached_property
    def _by_id(self) -> Mapping[str, Device]:
        return {device.id: device for device in self.with_crowded}

    def device(self, id_: str) -> Device | None:
        """The device behind an id, withheld or not; None for an unknown id."""
        found = self.ids.get(id_)
        return found and self.called(found.id, found)

    def called(self, id_: str, default: Device | None = None) -> Device | None:
        """The device with an id of its own, whatever ids the kubelet is told of its replicas."""
        return self._by_id.get(id_, default)

    @property
    def shared(self) -> tuple[Node, ...]:
        """The device nodes that go along with every device. One that is absent has them as they were."""
        with_shared = [device.shared for device in self.with_crowded if device.shared]
        is_there = (nodes for nodes in with_shared if all(node.sys_path for node in nodes))
        return next(is_there, with_shared[0] if with_shared else ())

    def why_waiting(self, device: Device) -> str:
        """Why ids of one of its devices have to wait; "" when none has to."""
        if not self.refused:
            return ""
        ids = ids_of(device.id, self.resource.replicas)
        return next((self.refused[id_] for id_ in ids if id_ in self.refused), "")

    @cached_property
    def _ordered_ids(self) -> tuple[str, ...]:
        return tuple(sorted(self.ids, key=natural))

    def in_order(self, ids: Iterable[str]) -> list[str]:
        """These ids, each once: those of the resource in natural order, then the others as plain text.

        A client may make up others for which natural order takes a second.
        """
        wanted = set(ids)
        if len(wanted) < len(self.ids) // 16:
            known = sorted((id_ for id_ in wanted if id_ in self.ids), key=natural)
        else:
            known = [id_ for id_ in self._ordered_ids if id_ in wanted]
        return known if len(known) == len(wanted) else [*known, *sorted(wanted.difference(known))]


def ids_of(device: str, replicas: int | None) -> tuple[str, ...]:
    """The ids that the kubelet is told for one device."""
    return (device,) if replicas is None else tuple(f"{device}.{n}" for n in range(replicas))


def is_id_of(id_: str, device: str, replicas: int | None) -> bool:
    """Whether the id is one of `ids_of`, without making them all."""
    if replicas is None:
        return id_ == device
    owner, _, number = id_.rpartition(".")
    return owner == device and number.isdecimal() and number == str(int(number)) and int(number) < replicas


def in_order(devices: Iterable[Device]) -> tuple[Device, ...]:
    """The devices sorted by id, with a NUMA node for all of them or for none.

    A device without topology gives the kubelet no hint, and that spoils the hints of the others.
    """
    ordered = sorted(devices, key=lambda device: natural(device.id))
    if all(device.numa is not None for device in ordered):
        return tuple(ordered)
    return tuple(device if device.numa is None else replace(device, numa=None) for device in ordered)
