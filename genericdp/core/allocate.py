"""What a container gets for the devices that the kubelet chose. Pure, idempotent, never empty.

The rules of this file:

* The same ids give the same answer, in any order and any number of times. The kubelet asks again for
  an init container, for a sidecar, and after it has lost its checkpoint.
* host_path is always a stable link. The kubelet keeps the answer over container restarts, re-plugs
  and reboots, and the runtime resolves the link each time it creates the container.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from genericdp.core.container_paths import ContainerPaths, as_chosen, why_impossible
from genericdp.core.hostile import cdi_name, for_cdi, for_env_name, for_path, for_quote, for_value
from genericdp.core.inventory.offer import Device, Node, Offer
from genericdp.core.rules.name import CDI_ANNOTATION, env_names, kubevirt_env
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.template import MissingPropertyError, Template


# Both are tuples, because one answer may take 20,000 of each: a dataclass takes twice as long to make.
class DeviceSpec(NamedTuple):
    """A device node for the container, as in the device plugin API."""

    container_path: str
    host_path: str
    permissions: str


class MountSpec(NamedTuple):
    """A mount for the container, as in the device plugin API."""

    container_path: str
    host_path: str
    read_only: bool


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
    STOPPED = "stopped"
    IMPOSSIBLE = "impossible"


class RefusedError(LookupError):
    """The kubelet asks for an id that was never offered, that cannot be described, or that has to wait.

    Or its plugin is being stopped.
    """

    def __init__(self, message: str, reason: RefusalReason) -> None:
        super().__init__(message)
        self.reason = reason


def allocate(offer: Offer, ids: Iterable[str], link_dir: str) -> Allocation:
    """The answer for these ids of one resource. Raises RefusedError with a message for the pod.

    An Unhealthy device gets an answer, too. Its links make the runtime refuse the container, and the
    kubelet tries again. An error here would end the pod.
    """
    chosen = _chosen(offer, ids)
    with _refusing(offer.resource, chosen):
        return _answer(offer.resource, chosen, link_dir)


def device_specs(offer: Offer, ids: Iterable[str], link_dir: str) -> tuple[DeviceSpec, ...]:
    """The device nodes of that answer. Raises RefusedError."""
    chosen = _chosen(offer, ids)
    with _refusing(offer.resource, chosen):
        return _nodes(chosen, link_dir)[0]


def _answer(resource: Resource, chosen: Mapping[str, Device], link_dir: str) -> Allocation:
    specs, announced = _nodes(chosen, link_dir)
    paths_env, ids_env = env_names(resource.name)
    envs = {paths_env: ",".join(announced), ids_env: ",".join(chosen)}
    if resource.kubevirt:
        numbers = dict.fromkeys(f"{bus}:{number}" for device in chosen.values() for bus, number in device.usb)
        envs[kubevirt_env(resource.name)] = ",".join(numbers)
    texts = _Texts(link_dir)
    if resource.device_templates:
        for index, (id_, device) in enumerate(chosen.items()):
            texts.add_row(str(index), id_, device.nodes[0], device.values)
    mounts, envs = _mounts(resource, texts), _envs(resource, texts, envs)
    inside = dict.fromkeys(spec.container_path for spec in specs)
    if why := why_impossible(inside, [(mount.container_path, mount.host_path) for mount in mounts], envs):
        raise RefusedError(f"{resource.name}: {why}", RefusalReason.IMPOSSIBLE)
    return Allocation(
        devices=specs,
        mounts=mounts,
        envs=envs,
        annotations={
            name: ",".join(texts.cdi_names(value)) if name.startswith(CDI_ANNOTATION) else texts.joined(value)
            for name, value in resource.annotations
        },
        cdi_devices=tuple(
            dict.fromkeys(name for template in resource.cdi for name in texts.cdi_names(template))
        ),
    )


@contextmanager
def _refusing(resource: Resource, chosen: Collection[str]) -> Iterator[None]:
    """Refuse if a template needs a value that a device lacks: an edit may add one while it is Unhealthy."""
    try:
        yield
    except MissingPropertyError as error:
        which = f"one of {len(chosen)} devices" if len(chosen) > 1 else f"device '{next(iter(chosen))}'"
        raise RefusedError(
            f"{resource.name}: the rule uses '{{{error.name}}}', which {which} lacks; plug it in again if it "
            f"is unplugged, or write a default, '{{{error.name}|default}}'",
            RefusalReason.UNPLUGGED,
        ) from error


def _chosen(offer: Offer, ids: Iterable[str]) -> dict[str, Device]:
    """The devices behind the ids, in natural order of these."""
    known = offer.ids
    chosen: dict[str, Device] = {}
    shared: tuple[Node, ...] = ()
    lacks_one = _lacks_one(offer.resource, shared)
    for id_ in offer.in_order(ids):
        device = known.get(id_)
        if device is None:
            raise RefusedError(
                f"{offer.resource.name} has no device '{for_quote(id_)}'", RefusalReason.UNKNOWN
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
        if device.shared is not shared:
            shared = device.shared
            lacks_one = _lacks_one(offer.resource, shared)
        if lacks_one:
            # The kubelet would save an answer without the node, for when it is there.
            raise RefusedError(
                f"device '{id_}' of {offer.resource.name} is not available: {device.reason}",
                RefusalReason.UNPLUGGED,
            )
        chosen[id_] = device
    return chosen


def _lacks_one(resource: Resource, shared: Iterable[Node]) -> bool:
    """Whether one of the shared nodes is missing that every container must get."""
    tables = [node.table for node in shared]
    return any(not table.optional and table not in tables for table in resource.shared_nodes)


class _Texts:
    """What templates become for some rows: devices, or the device nodes to which one node table applies.

    Everything is in columns of strings. An object for each row would cost more than its texts: Python's
    garbage collector looks at objects, but not at strings.
    """

    def __init__(self, link_dir: str) -> None:
        self._link_dir = link_dir
        self._nodes: list[Node] = []
        self._values: list[Mapping[str, str]] = []
        self._columns: dict[str, list[str]] = {"index": [], "id": []}

    def add_row(self, index: str, id_: str, node: Node, values: Mapping[str, str]) -> None:
        """Another row, before any text is made."""
        self._columns["index"].append(index)
        self._columns["id"].append(id_)
        self._nodes.append(node)
        self._values.append(values)

    def of(self, template: Template, clean: Callable[[str], str]) -> list[str]:
        """The text of each row."""
        return template.expand(len(self._nodes), self._column, clean)

    def of_all(self, templates: Iterable[Template]) -> Iterator[tuple[str, ...]]:
        """The container paths that these become in each row, row by row."""
        return zip(*map(self.container_paths, templates), strict=True)

    def container_paths(self, template: Template) -> Sequence[str]:
        """The container path of each row."""
        paths = self.of(template, for_path)
        return [as_chosen(path, template.beginning) for path in paths] if template.names_properties else paths

    def joined(self, template: Template) -> str:
        """The texts of all rows; equal texts only once."""
        return ",".join(dict.fromkeys(self.of(template, for_value)))

    def cdi_names(self, template: Template) -> Iterable[str]:
        """The CDI names of all rows, each once. The template of an annotation has several, with commas."""

        def column(name: str) -> list[str]:
            # Nobody else cleans the kernel's names and our links. They may have slashes.
            values = self._column(name)
            return list(map(for_cdi, values)) if name in ("devname", "link") else values

        texts = dict.fromkeys(template.expand(len(self._nodes), column, for_cdi))
        return dict.fromkeys(cdi_name(name) for text in texts for name in text.split(","))

    def _column(self, name: str) -> list[str]:
        if name not in self._columns:
            self._columns[name] = self._made(name)
        return self._columns[name]

    def _made(self, name: str) -> list[str]:
        match name:
            case "link":
                return [f"{self._link_dir}/{node.link}" for node in self._nodes]
            case "devname":
                return [node.path.removeprefix("/dev/") for node in self._nodes]
            case _:
                return [values.get(name, "") for values in self._values]


def _nodes(chosen: Mapping[str, Device], link_dir: str) -> tuple[tuple[DeviceSpec, ...], Iterable[str]]:
    """The device nodes of the devices, and the container paths that an env announces.

    The shared ones come first: so their paths do not depend on the devices.
    """
    shared = _shared_nodes(chosen.values())
    # By the identity of the node tables: comparing what they mean takes longer than all the rest.
    tables = {id(node.table): node.table for device in chosen.values() for node in device.nodes}
    tables.update((id(node.table), node.table) for node in shared)
    texts = {table: _Texts(link_dir) for table in tables}
    for node in shared:
        texts[id(node.table)].add_row("", "", node, node.values)
    for index, (id_, device) in enumerate(chosen.items()):
        for node in device.nodes:
            texts[id(node.table)].add_row(str(index), id_, node, node.values)
    rows = {key: texts[key].of_all(table.container_paths) for key, table in tables.items()}
    places = ContainerPaths[str]()
    firsts: list[str] = []
    for node in (*shared, *(node for device in chosen.values() for node in device.nodes)):
        table = node.table
        link, (first, *others) = f"{link_dir}/{node.link}", next(rows[id(table)])
        firsts.append(places.place(first, link, table.permissions))
        for name in (*others, *(as_chosen(each, "/dev/") for each in node.devlinks)):
            places.place(name, link, table.permissions)
    return tuple(map(DeviceSpec._make, places)), dict.fromkeys(firsts[len(shared) :])


def _shared_nodes(devices: Iterable[Device]) -> Sequence[Node]:
    """The nodes that go along with the devices, each once."""
    nodes: dict[str, Node] = {}
    before: tuple[Node, ...] = ()
    for device in devices:
        if device.shared is not before:
            before = device.shared
            for node in before:
                nodes.setdefault(node.link, node)
    return tuple(nodes.values())


def _envs(resource: Resource, texts: _Texts, envs: Mapping[str, str]) -> dict[str, str]:
    """The envs of an answer, given those that genericdp sets itself.

    A name without fields is the operator's choice, so it always counts. A name with fields may be a device's
    choice, so it never replaces another one. Devices that give one name share the env.
    """
    named = {**envs, **{name.text: texts.joined(value) for name, value in resource.env if not name.fields}}
    for name, value in resource.env:
        if name.fields:
            values: dict[str, dict[str, None]] = {}
            for each, text in zip(texts.of(name, str), texts.of(value, for_value), strict=True):
                values.setdefault(for_env_name(each), {})[text] = None
            named = {**{each: ",".join(some) for each, some in values.items()}, **named}
    return named


def _mounts(resource: Resource, texts: _Texts) -> tuple[MountSpec, ...]:
    places = ContainerPaths[bool](nested=True)
    for mount in resource.mounts:
        inside, outside = texts.container_paths(mount.container_path), texts.of(mount.host_path, for_path)
        for container_path, host_path in zip(inside, outside, strict=True):
            places.place(container_path, host_path, mount.read_only)
    return tuple(map(MountSpec._make, places))
