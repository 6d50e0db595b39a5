"""What a container gets for the devices that the kubelet chose. Pure, idempotent, never empty.

The rules of this file:

* The same ids give the same answer, in any order and any number of times. The kubelet asks again for
  an init container, for a sidecar, and after it has lost its checkpoint.
* host_path is always a stable link. The kubelet keeps the answer over container restarts, re-plugs
  and reboots, and the runtime resolves the link each time it creates the container.
* Of two DeviceSpecs with the same container path, the kubelet silently drops one. So a path that is
  taken gets a number, `-1`, `-2`, …
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from genericdp.core.hostile import for_path, for_value
from genericdp.core.inventory.offer import Device, Node, Offer
from genericdp.core.rules.name import env_names
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.template import Template


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device node for the container, as in the device plugin API."""

    container_path: str
    host_path: str
    permissions: str

    def at(self, container_path: str) -> "DeviceSpec":
        """The same under another path."""
        return DeviceSpec(container_path, self.host_path, self.permissions)


@dataclass(frozen=True, slots=True)
class MountSpec:
    """A mount for the container, as in the device plugin API."""

    container_path: str
    host_path: str
    read_only: bool

    def at(self, container_path: str) -> "MountSpec":
        """The same under another path."""
        return MountSpec(container_path, self.host_path, self.read_only)


@dataclass(frozen=True, slots=True)
class Allocation:
    """The answer for one container: ContainerAllocateResponse of the device plugin API."""

    devices: tuple[DeviceSpec, ...]
    mounts: tuple[MountSpec, ...]
    envs: Mapping[str, str]
    annotations: Mapping[str, str]
    cdi_devices: tuple[str, ...]


class RefusalReason(StrEnum):
    """Why an allocation is refused. The values are labels of genericdp_allocation_errors_total."""

    UNKNOWN = "unknown device"
    UNPLUGGED = "unplugged"
    HELD = "held"


class RefusedError(LookupError):
    """The kubelet asks for an id that was never offered, that cannot be described, or that has to wait."""

    def __init__(self, message: str, reason: RefusalReason) -> None:
        super().__init__(message)
        self.reason = reason


def kubevirt_env(resource: str) -> str:
    """The env in which KubeVirt looks for the bus and device numbers of USB devices."""
    return "USB_RESOURCE_" + resource.upper().replace("/", "_").replace(".", "_")


def allocate(offer: Offer, ids: Iterable[str], link_dir: str) -> Allocation:
    """The answer for these ids of one resource. Raises RefusedError with a message for the pod.

    An Unhealthy device gets an answer, too. Its links make the runtime refuse the container, and the
    kubelet tries again. An error here would end the pod.
    """
    devices = _devices(offer, ids)
    resource = offer.resource
    specs = _Places[DeviceSpec]()
    announced: dict[str, None] = {}
    for index, (id_, device) in enumerate(devices):
        for node in device.nodes:
            link, permissions = f"{link_dir}/{node.link}", node.table.permissions
            names = _container_paths(node, index, id_, link)
            paths = [specs.place(DeviceSpec(name, link, permissions)) for name in names]
            announced[paths[0]] = None
    values: list[dict[str, str]] = []
    if resource.device_templates:
        values = [_values(device, index, id_, link_dir) for index, (id_, device) in enumerate(devices)]
    paths_env, ids_env = env_names(resource.name)
    envs = {paths_env: ",".join(announced), ids_env: ",".join(id_ for id_, _ in devices)}
    if resource.kubevirt:
        numbers = dict.fromkeys(f"{device.usb[0]}:{device.usb[1]}" for _, device in devices if device.usb)
        envs[kubevirt_env(resource.name)] = ",".join(numbers)
    envs.update({name: _joined(template, values) for name, template in resource.env})
    return Allocation(
        devices=tuple(specs.taken.values()),
        mounts=_mounts(resource, values),
        envs=envs,
        annotations={name: _joined(template, values) for name, template in resource.annotations},
        cdi_devices=tuple(
            dict.fromkeys(template.expand(each, for_path) for template in resource.cdi for each in values)
        ),
    )


def _devices(offer: Offer, ids: Iterable[str]) -> list[tuple[str, Device]]:
    known = offer.ids
    chosen: list[tuple[str, Device]] = []
    for id_ in offer.in_order(ids):
        device = known.get(id_)
        if device is None:
            raise RefusedError(
                f"{offer.resource.name} has no device '{for_value(id_)}'", RefusalReason.UNKNOWN
            )
        if id_ in offer.refused:
            raise RefusedError(
                f"device '{id_}' of {offer.resource.name} is not available: {offer.refused[id_]}",
                RefusalReason.HELD,
            )
        if not device.nodes:
            raise RefusedError(
                f"device '{id_}' of {offer.resource.name} is unplugged; plug it in again",
                RefusalReason.UNPLUGGED,
            )
        chosen.append((id_, device))
    return chosen


def _values(device: Device, index: int, id_: str, link_dir: str) -> dict[str, str]:
    first = device.nodes[0]
    return {
        **device.values,
        "index": str(index),
        "id": id_,
        "link": f"{link_dir}/{first.link}",
        "devname": first.path.removeprefix("/dev/"),
    }


def _container_paths(node: Node, index: int, id_: str, link: str) -> list[str]:
    values = {**node.values, "index": str(index), "id": id_, "link": link}
    paths = [template.expand(values, for_path) for template in node.table.container_paths]
    return paths if len(paths) == 1 and not node.devlinks else list(dict.fromkeys((*paths, *node.devlinks)))


def _mounts(resource: Resource, values: list[dict[str, str]]) -> tuple[MountSpec, ...]:
    mounts = _Places[MountSpec]()
    for mount in resource.mounts:
        for each in values:
            inside = mount.container_path.expand(each, for_path)
            mounts.place(MountSpec(inside, mount.host_path.expand(each, for_path), mount.read_only))
    return tuple(mounts.taken.values())


Spec = TypeVar("Spec", DeviceSpec, MountSpec)


class _Places(Generic[Spec]):
    """The container paths of one answer, each with what of the host is there."""

    def __init__(self) -> None:
        self.taken: dict[str, Spec] = {}
        self._numbers: dict[str, _Numbers] = {}

    def place(self, wanted: Spec) -> str:
        """Enter something of the host under its container path, or under the next free path.

        Returns the path.
        """
        path = wanted.container_path
        there = self.taken.setdefault(path, wanted)
        if there.host_path == wanted.host_path:
            return path
        return self._next_to(path, wanted)

    def _next_to(self, path: str, wanted: Spec) -> str:
        numbers = self._numbers.setdefault(path, _Numbers())
        while wanted.host_path not in numbers.paths:
            numbered = f"{path}-{numbers.next}"
            there = self.taken.setdefault(numbered, wanted.at(numbered))
            numbers.paths.setdefault(there.host_path, numbered)
            numbers.next += 1
        return numbers.paths[wanted.host_path]


@dataclass(slots=True)
class _Numbers:
    """The numbered paths beside a container path, so that none is looked at twice.

    next   the first number that nobody has looked at
    paths  what of the host is under the numbers before it: host path -> container path
    """

    next: int = 1
    paths: dict[str, str] = field(default_factory=dict)


def _joined(template: Template, values: list[dict[str, str]]) -> str:
    """The template expanded for each device; equal texts only once."""
    return ",".join(dict.fromkeys(template.expand(each, for_value) for each in values))
