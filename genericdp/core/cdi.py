"""CDI answers: the names that Allocate returns, and the spec files that say what they mean now.

The kubelet saves an answer for as long as its pod exists. A DeviceSpec in it keeps leading to the device, by
its link, but its container path and the envs stay those of its first start. Of a CDI device only the name is
saved: the runtime looks up what it means each time it creates the container.

The rules of this file:

* A CDI device is in a spec file only while all its devices are Healthy. Without it, the runtime refuses to
  create the container.
* `hostPath` is the real node: CDI does not follow links. Its device number is left out, since the CDI library
  looks at the node only if it does not know the number. So a runtime that still has an old spec file in its
  cache, or whose genericdp has been killed, refuses a node that is gone instead of making it anew.
* A spec file has the lowest version that its fields need: a runtime ignores one that is too new for it.
* Several ids of one resource in one container have a CDI device with the envs, numbers and paths of all. It
  comes last, and the last one wins. If they are few, each id is named before it, which brings everything of
  its own device: so the runtime's refusal says which one is absent.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from genericdp.core.allocate import Allocation, RefusedError, allocate
from genericdp.core.device import NOBODY
from genericdp.core.inventory.identity import hash_of
from genericdp.core.inventory.offer import Device, Node, Offer
from genericdp.core.memory.answered import Answered, CdiDevice
from genericdp.core.rules.name import cdi_kind, env_names
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.rules.template import Template

#: How the names of the spec files begin and end.
FILE_PREFIX, FILE_SUFFIX = "genericdp_", ".json"

_LONGEST_FILE_NAME = 200

#: How many ids of a container are few. Nobody reads more of them, but each would take the runtime some time.
FEW = 100

#: The fields of templates that never change for an id. A udev property may.
_LASTING_FIELDS = frozenset({"id", "index", "link"})

_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})")

#: Whether Allocate answers for a resource by CDI.
ByCdi = Callable[[Resource], bool]


def is_spec_file(name: str) -> bool:
    """Whether a file of this name is one of our CDI spec files."""
    return name.startswith(FILE_PREFIX) and name.endswith(FILE_SUFFIX)


def by_cdi(resource: Resource, default: AnswerBy, *, runtime_reads_cdi: bool) -> bool:
    """Whether Allocate answers for this resource by CDI."""
    match resource.answer or default:
        case AnswerBy.DEVICES:
            return False
        case AnswerBy.CDI:
            return True
        case AnswerBy.AUTO:
            return runtime_reads_cdi


def depends_on_runtime(resources: Iterable[Resource], default: AnswerBy) -> bool:
    """Whether the answer for any of these resources depends on what the runtime reads."""
    return any((resource.answer or default) is AnswerBy.AUTO for resource in resources)


def why_not_cdi(name: str, version: str, configuration: Mapping[str, str], directory: str) -> str:
    """Why a container runtime does not read CDI spec files in a directory; "" if it does.

    name, version  what it calls itself over CRI
    configuration  what it says in its verbose status; containerd has its settings in "config", as JSON
    """
    found = _VERSION.match(version)
    release = (int(found[1]), int(found[2])) if found else (0, 0)
    match name:
        case "containerd":
            settings = _settings_of(configuration.get("config", ""))
            enabled = settings.get("enableCDI")
            if release < (1, 7):
                return "CDI needs 1.7 or newer"
            if not (enabled if isinstance(enabled, bool) else release >= (2, 0)):
                return "enable_cdi is not set in its configuration"
            directories = settings.get("cdiSpecDirs")
            if isinstance(directories, list) and _plain(directory) not in map(_plain, map(str, directories)):
                return f"it does not read '{directory}', which is not in its cdi_spec_dirs"
            return ""
        case "cri-o":
            return "" if release >= (1, 28) else "CDI needs 1.28 or newer"
        case _:
            return "it is not known to read CDI"


def _settings_of(text: str) -> Mapping[str, object]:
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return settings if isinstance(settings, dict) else {}


def _plain(directory: str) -> str:
    """A directory by its usual name: /var/run is a link to /run."""
    return directory.rstrip("/").removeprefix("/var") if directory.startswith("/var/run/") else directory


def cdi_device(offer: Offer, ids: Iterable[str]) -> CdiDevice:
    """What a container gets that is allocated these ids of a resource; at least one."""
    return CdiDevice(offer.resource.name, tuple(offer.in_order(ids)))


def by_names(allocation: Allocation, device: CdiDevice, resource: Resource) -> Allocation:
    """The same answer with CDI devices in place of everything that may change.

    What cannot change stays. The kubelet needs the envs for commands, `$(NAME)`, and CDI has no annotations.
    """
    ours = (CdiDevice(device.resource, ids).name for ids in _named(device))
    names = dict.fromkeys((*ours, *allocation.cdi_devices))
    lasting = lasting_envs(resource)
    envs = {name: value for name, value in allocation.envs.items() if name in lasting}
    return replace(allocation, devices=(), mounts=(), envs=envs, cdi_devices=tuple(names))


def _named(device: CdiDevice) -> Iterator[tuple[str, ...]]:
    """The ids of each CDI device that an answer names for this one."""
    if len(device.ids) <= FEW:
        yield from ((id_,) for id_ in device.ids)
    yield device.ids


def lasting_envs(resource: Resource) -> frozenset[str]:
    """The envs of a resource that are the same for as long as a container has its devices."""
    paths, ids = env_names(resource.name)
    lasts = {ids: True, paths: all(_lasts(table.container_paths[0]) for table in resource.own_nodes)}
    # A name with fields is made by the runtime's reading of the spec file alone.
    lasts.update((name.text, not name.fields and _lasts(value)) for name, value in resource.env)
    return frozenset(name for name in lasts if lasts[name])


def _lasts(template: Template) -> bool:
    """Whether a template becomes the same text for as long as a container has the device."""
    return all(field.name in _LASTING_FIELDS for field in template.fields)


def file_name(resource: str) -> str:
    """The name of the spec file of a resource: one file has one kind. Different resources never share one."""
    # The vendor, a domain, has no "_".
    name = FILE_PREFIX + cdi_kind(resource).replace("/", "_")
    if len(name) > _LONGEST_FILE_NAME:
        name = FILE_PREFIX + hash_of(resource)
    return name + FILE_SUFFIX


@dataclass(frozen=True, slots=True)
class _Entry:
    """A CDI device as it was written, and the devices that it was made of."""

    made_of: tuple[Device, ...]
    text: str
    needs: tuple[int, int]


#: The ids of a CDI device -> how it was written.
_Entries = dict[tuple[str, ...], _Entry]


class SpecTexts:
    """The spec files of one inventory after another. What did not change is not rendered again.

    refused  the link of a Healthy device that no container could get now -> why
    """

    def __init__(self, link_dir: str) -> None:
        self._link_dir = link_dir
        self._before: dict[str, tuple[Offer, _Entries]] = {}
        self.refused: dict[str, str] = {}

    def of(self, offers: Iterable[Offer], answered: Answered, by_cdi: ByCdi) -> dict[str, str]:
        """File name -> content; no file for a resource without any CDI device."""
        self.refused = {}
        named: dict[str, list[CdiDevice]] = {}
        for one in answered.values():
            named.setdefault(one.resource, []).append(one)
        self._before = {offer.resource.name: (offer, self._entries(offer, named, by_cdi)) for offer in offers}
        return {file_name(name): _text(name, each) for name, (_, each) in self._before.items() if each}

    def _entries(self, offer: Offer, named: Mapping[str, Sequence[CdiDevice]], by_cdi: ByCdi) -> _Entries:
        resource = offer.resource
        known, before = self._before.get(resource.name, (offer, _Entries()))
        if known is not offer:
            before = {
                ids: entry
                for ids, entry in before.items()
                if known.resource == resource and entry.made_of == self._made_of(offer, ids)
            }
        # To new pods. Those that hold such an id keep the device, as a link keeps leading to it.
        given = replace(offer, refused={}) if offer.refused else offer
        entries: _Entries = {}
        for ids in dict.fromkeys(self._wanted(offer, named.get(resource.name, ()), by_cdi)):
            entry = before.get(ids) or self._entry(given, ids)
            if entry is not None:
                entries[ids] = entry
        return entries

    def _wanted(self, offer: Offer, named: Iterable[CdiDevice], by_cdi: ByCdi) -> Iterator[tuple[str, ...]]:
        """The ids of each CDI device of a resource: that of each device, and those that answers named.

        Of replicas, which may be many, only these.
        """
        if by_cdi(offer.resource) and offer.resource.replicas is None:
            for device in offer.devices:
                yield (device.id,)
        for one in named:
            yield from _named(one)

    def _made_of(self, offer: Offer, ids: Iterable[str]) -> tuple[Device, ...]:
        """The devices behind these ids; none unless all are Healthy."""
        devices = [offer.device(id_) for id_ in ids]
        made_of = tuple(device for device in devices if device is not None and device.healthy)
        return made_of if len(made_of) == len(devices) else ()

    def _entry(self, offer: Offer, ids: tuple[str, ...]) -> _Entry | None:
        """A CDI device; None while a container could not get it."""
        made_of = self._made_of(offer, ids)
        if not made_of:
            return None
        try:
            allocation = allocate(offer, ids, self._link_dir)
        except RefusedError as error:
            if len(ids) == 1:
                # Its own link, not those to shared nodes, which devices of other resources have as well.
                self.refused[made_of[0].links[0]] = str(error).removeprefix(f"{offer.resource.name}: ")
            return None
        edits = edits_of(allocation, made_of, self._link_dir)
        needs = (0, 7) if "additionalGids" in edits else (0, 5)
        name = CdiDevice(offer.resource.name, ids).short_name
        return _Entry(made_of, json.dumps({"name": name, "containerEdits": edits}), needs)


def edits_of(allocation: Allocation, devices: Collection[Device], link_dir: str) -> dict[str, object]:
    """The container edits of an answer by devices: what the container is to get, as CDI says it."""
    nodes = {f"{link_dir}/{node.link}": node for device in devices for node in device.nodes_inside}
    groups = groups_of(nodes.values())
    edits: dict[str, object] = {
        "env": [f"{name}={value}" for name, value in allocation.envs.items()],
        "deviceNodes": [
            {"path": spec.container_path, **_node(nodes[spec.host_path]), "permissions": spec.permissions}
            for spec in allocation.devices
        ],
    }
    if allocation.mounts:
        edits["mounts"] = [
            {
                "hostPath": mount.host_path,
                "containerPath": mount.container_path,
                # As containerd and CRI-O mount what a device plugin names.
                "options": ["rbind", "rprivate", "ro" if mount.read_only else "rw"],
            }
            for mount in allocation.mounts
        ]
    if groups:
        edits["additionalGids"] = groups
    return edits


def groups_of(nodes: Iterable[Node]) -> tuple[int, ...]:
    """The groups of these nodes, except root's, which would give access to more than devices.

    In a user namespace, all groups that it does not have look like nobody's.
    """
    return tuple(sorted({node.gid for node in nodes if node.gid} - {NOBODY}))


def _node(node: Node) -> dict[str, str]:
    return {"hostPath": node.path, **({} if node.number is None else {"type": node.number.kind})}


def _text(resource: str, entries: _Entries) -> str:
    """The text of a spec file.

    It has a line for each device, and one before and after them. The udev rule of the package removes the
    lines of a removed node, without a parser of JSON.
    """
    kind = cdi_kind(resource)
    # Dots in a class need 0.6.0; hostPath needs 0.5.0, additionalGids 0.7.0.
    dotted = (0, 6) if "." in kind.partition("/")[2] else (0, 5)
    major, minor = max(dotted, *(entry.needs for entry in entries.values()))
    devices = ",\n".join(entry.text for entry in entries.values())
    return f'{{"cdiVersion": "{major}.{minor}.0", "kind": "{kind}", "devices": [\n{devices}\n]}}\n'
