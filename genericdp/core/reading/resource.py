"""Reading a `[[resource]]` with the tables in it.

Every key is declared here. The parser, its hints, the schema and the manual follow from the declarations.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from genericdp.core.reading.kind import (
    Kind,
    definition,
    list_schema,
    one_or_more,
    read_list,
)
from genericdp.core.reading.match import GROUPING, IDENTITY, MATCH
from genericdp.core.reading.name import RESOURCE_NAME, full_name
from genericdp.core.reading.pattern import DEVLINKS
from genericdp.core.reading.scalars import (
    BOOLEAN,
    PERMISSIONS,
    TEXT,
    duration,
    member_of,
    whole_number,
)
from genericdp.core.reading.source import At, Mistake
from genericdp.core.reading.table import Key, keys_of, read_table
from genericdp.core.reading.template import ANNOTATIONS, CDI_NAME, ENV, MOUNT_SOURCE, PATH
from genericdp.core.rules.grouping import AllNodes
from genericdp.core.rules.resource import (
    Mount,
    NodeTable,
    OnReplug,
    OnUnplug,
    Prefer,
    PreStart,
    Resource,
    clash_in,
    covering_in,
    polled_attributes,
)
from genericdp.core.rules.settings import LONGEST_BOOT_WAIT_S, AnswerBy

MOST_REPLICAS = 10_000

LONGEST_GRACE_S = 30 * 86400.0

LONGEST_DEBOUNCE_S = 3600.0

SHORTEST_POLL_S, LONGEST_POLL_S = 0.5, 86400.0

#: The kubelet waits 30 s for PreStartContainer (1.36, KubeletPreStartContainerRPCTimeoutInSecs).
LONGEST_PRESTART_S = 25.0


MOUNT_KEYS = keys_of(
    Mount,
    Key("host_path", MOUNT_SOURCE, "the directory or file on the host"),
    Key("container_path", PATH, "its path in the container"),
    Key("read_only", BOOLEAN, "whether the mount is read-only"),
)


def _mount(at: At) -> Mount | None:
    written = read_table(at, MOUNT_KEYS, "a mount")
    return None if written is None else Mount(**written)


_MOUNTS_HINT = 'write mounts = [{ host_path = "/srv/x", container_path = "/srv/x" }]'

_MOUNTS = Kind(lambda at: read_list(at, _mount, _MOUNTS_HINT), list_schema(definition("mount")))

PRESTART_KEYS = keys_of(
    PreStart,
    Key(
        "wait",
        duration(0.1, LONGEST_PRESTART_S),
        "how long to wait for the device",
        field="wait_s",
    ),
    Key("usb_reset", BOOLEAN, "whether to reset the USB device"),
)


def _prestart(at: At) -> PreStart | None:
    written = read_table(at, PRESTART_KEYS, "'prestart'")
    return None if written is None else PreStart(**written)


_PRESTART = Kind(_prestart, definition("prestart"))

#: Keys that a resource sets for all its node tables, and a node table for itself.
_DEFAULT_KEYS = keys_of(
    NodeTable,
    Key(
        "container_path",
        one_or_more(PATH),
        "the path of the node in the container, or several paths",
        field="container_paths",
    ),
    Key("permissions", PERMISSIONS, "what the container may do with the node: any of 'r', 'w' and 'm'"),
    Key("devlinks", DEVLINKS, "which of the node's devlinks the container gets as well"),
    Key("optional", BOOLEAN, "whether the device is Healthy without the node"),
)

NODE_KEYS = (
    *keys_of(NodeTable, Key("match", MATCH, "which nodes of the device the table applies to")),
    *keys_of(
        NodeTable,
        Key("shared", BOOLEAN, "whether its nodes, wherever they are, go along with every device"),
    ),
    *_DEFAULT_KEYS,
)


def _node(at: At) -> Mapping[str, Any] | None:
    """What the table sets; the resource sets the rest."""
    written = read_table(at, NODE_KEYS, "[[resource.node]]", _OF_A_RESOURCE)
    if written is not None and written.get("shared"):
        _check_shared(at, written)
    return written


def _check_shared(at: At, written: Mapping[str, Any]) -> None:
    """Raises Mistake for what cannot be said of nodes that belong to no device."""
    if "match" not in written:
        raise Mistake(
            at.child("shared"),
            "a shared [[resource.node]] needs a 'match' of its own",
            'it is looked for on the whole machine: write match = { DEVNAME = "/dev/kfd" }, for example',
            on_key=True,
        )
    for path in written.get("container_paths", ()):
        for part in path.fields:
            if part.name in ("id", "index"):
                raise Mistake(
                    at.child("container_path"),
                    f"'{{{part.name}}}' is of a device, and a shared node belongs to none",
                    "write a fixed path, or use '{devname}' or '{link}'",
                )


def _nodes(at: At) -> tuple[Mapping[str, Any], ...]:
    if isinstance(at.value, dict):
        raise Mistake(at, "'node' must be a list of tables", "write [[resource.node]]", on_key=True)
    return read_list(at, _node)


_NODES = Kind(_nodes, list_schema(definition("node")))

RESOURCE_KEYS = (
    *keys_of(
        Resource,
        Key("name", RESOURCE_NAME, 'the resource that pods request, "ftdi" or "vendor.example/ftdi"'),
        Key("description", TEXT, "a description for people"),
        Key("match", MATCH, "which device nodes belong to the resource"),
        Key("group_by", GROUPING, "which nodes form one device"),
        Key("identity", IDENTITY, "what the id of a device depends on"),
    ),
    *_DEFAULT_KEYS,
    *keys_of(
        Resource,
        Key(
            "node",
            _NODES,
            "which nodes of a device the container gets, and under which paths",
            field="nodes",
        ),
        Key("replicas", whole_number(1, MOST_REPLICAS), "how many containers may share a device"),
        Key("env", ENV, "environment variables for the container"),
        Key("mounts", _MOUNTS, "directories and files of the host to mount in the container"),
        Key("annotations", ANNOTATIONS, "annotations for the container"),
        Key("cdi", one_or_more(CDI_NAME), "CDI devices of others for the container"),
        Key("answer", member_of(AnswerBy), "how the container gets the device nodes: as devices or by CDI"),
        Key("prefer", member_of(Prefer), "how to choose among the free devices"),
        Key(
            "unplug_grace",
            duration(0.0, LONGEST_GRACE_S),
            "how long an unplugged device stays listed as Unhealthy",
            field="unplug_grace_s",
        ),
        Key(
            "on_unplug",
            member_of(OnUnplug),
            "what to do with the running containers of an unplugged device: keep or stop them",
        ),
        Key(
            "on_replug",
            member_of(OnReplug),
            "what to do with running containers that lack the device as it is now: keep or restart them",
        ),
        Key(
            "debounce",
            duration(0.0, LONGEST_DEBOUNCE_S),
            "how long the device must be plugged in, or unplugged, before containers are stopped",
            field="debounce_s",
        ),
        Key(
            "boot_wait",
            duration(0.0, LONGEST_BOOT_WAIT_S),
            "how long to keep the kubelet waiting after a boot for its devices that were there before",
            field="boot_wait_s",
        ),
        Key("prestart", _PRESTART, "what to do before each start of a container"),
        Key("health", MATCH, "a match that every node of a Healthy device satisfies"),
        Key(
            "health_poll",
            duration(SHORTEST_POLL_S, LONGEST_POLL_S),
            "how often to read again the attributes that 'health' looks at",
            field="health_poll_s",
        ),
        Key("kubevirt", BOOLEAN, "whether to set KubeVirt's USB_RESOURCE_… variables"),
        Key("allow_dangerous", BOOLEAN, "required to offer disks, memory and similar devices"),
    ),
)

_OF_A_RESOURCE = {key.name: "[[resource]]" for key in RESOURCE_KEYS}


def resource(at: At, domain: str) -> Resource | None:
    """A `[[resource]]` table; None after noting what is wrong with it. Raises Mistake."""
    written = read_table(at, RESOURCE_KEYS, "[[resource]]", {"shared": "[[resource.node]]"})
    name = None
    if isinstance(at.value.get("name"), str) and at.value["name"]:
        name = at.child("name").attempt(lambda each: full_name(each, domain))
    if written is None or name is None:
        return None
    defaults = {key.field: written.pop(key.field) for key in _DEFAULT_KEYS if key.field in written}
    tables: tuple[Mapping[str, Any], ...] = written.pop("nodes", ())
    if all(table.get("shared") for table in tables):
        tables = (*tables, {})
    nodes = tuple(NodeTable(**{**_for_table(defaults, table), **table}) for table in tables)
    _check_paths(at, nodes)
    _check_mounts(at, nodes, written.get("mounts", ()))
    _check_identity(at, written)
    location = at.source.location((*at.path, "name"))
    made = Resource(**{**written, "name": name, "nodes": nodes, "location": location})
    if made.health_poll_s is not None and not polled_attributes(made):
        raise Mistake(
            at.child("health_poll"),
            "'health_poll' has nothing to read: "
            + ("'health' looks at no attribute" if made.health else "there is no 'health'"),
            'write health = { "ATTR{temp}" = { at_most = 85000 } }, for example',
            on_key=True,
        )
    return made


def _for_table(defaults: Mapping[str, Any], table: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the resource sets for a node table: its container path is that of a node of the device."""
    if not table.get("shared"):
        return defaults
    return {field: value for field, value in defaults.items() if field != "container_paths"}


def _check_identity(at: At, written: Mapping[str, Any]) -> None:
    """An identity for the one device of a resource: a mistake."""
    if "identity" in written and isinstance(written.get("group_by"), AllNodes):
        raise Mistake(
            at.child("identity"),
            "'identity' has no effect with group_by = \"all\"",
            "leave it out: the id of the device is the name of the resource",
            on_key=True,
        )


def _check_paths(at: At, nodes: Sequence[NodeTable]) -> None:
    """Two nodes at one fixed path, or one below the other: a mistake."""
    clash = clash_in(nodes)
    if clash is None:
        return
    node, other = clash
    if other.is_node and other.path == node.path:
        raise Mistake(
            _container_path_of(at, other.table),
            f"another node of the resource is already at {other.text}",
            "give each [[resource.node]] a 'container_path' of its own",
        )
    raise Mistake(
        _container_path_of(at, node.table),
        f"{node.text} cannot be a device node, because {other.text} is below it",
        "write another 'container_path' for this node",
    )


def _check_mounts(at: At, nodes: Sequence[NodeTable], mounts: Sequence[Mount]) -> None:
    """A mount at the fixed path of a node, or below it: a mistake."""
    if found := covering_in(nodes, mounts):
        index, why = found
        path = at.child("mounts").child(index).child("container_path")
        raise Mistake(path, why, "write another 'container_path' for the mount or for the node")


def _container_path_of(at: At, table: int) -> At:
    """Where the container path of a node table is written."""
    if "container_path" in [*at.value.get("node", ()), {}][table]:
        at = at.child("node").child(table)
    return at.child("container_path")
