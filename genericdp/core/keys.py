"""Every key of every table of rule files and settings, declared once.

The parser, its hints, and whatever documents the keys read these tables. A new key is an entry here
and a field of the value that it goes into.
"""

import re
from collections.abc import Mapping
from typing import Any

from genericdp.core import values
from genericdp.core.conditions import match
from genericdp.core.rules import (
    DNS_LABEL,
    GROUP_BY,
    IDENTITY,
    KERNEL_NAME,
    QUALIFIED_NAME,
    UNPLUG_GRACE_S,
    Mount,
    Prefer,
    PreStart,
    why_not_a_resource_name,
)
from genericdp.core.settings import LogFormat, Settings
from genericdp.core.source import At, Key, Mistake, nearest, read_list, read_table
from genericdp.core.template import FIELDS

# What may be written, as JSON Schema. The name of a definition is what the manual calls such a value;
# those that are not here are in `schema`.
_TEXT = {"type": "string", "minLength": 1}
_FLAG = {"type": "boolean"}
_DURATION = {"$ref": "#/definitions/duration"}
_MATCH = {"$ref": "#/definitions/match"}
_PROPERTY = {"$ref": "#/definitions/property"}
_ABSOLUTE = {"type": "string", "pattern": "^/"}
_TEMPLATE = {"$ref": "#/definitions/template"}
_PATH = {"$ref": "#/definitions/path"}
_FIELD = rf"({'|'.join(FIELDS)}|{values.PROPERTY_NAME.pattern})"
#: What several keys want.
DEFINITIONS: Mapping[str, Mapping[str, Any]] = {
    "duration": {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)$"},
    "property": {"type": "string", "pattern": f"^{values.PROPERTY_NAME.pattern}$"},
    "template": {
        "type": "string",
        "minLength": 1,
        "pattern": rf"^([^{{}}]|\{{\{{|\}}\}}|\{{{_FIELD}(\|[^{{}}]*)?\}})*$",
    },
    "path": {"allOf": [{"type": "string", "pattern": "^(/|\\{link[|}])"}, {"pattern": "[^/]$"}, _TEMPLATE]},
}
_LABEL = DNS_LABEL.pattern
_RESOURCE_NAME = {
    "type": "string",
    "pattern": rf"^({_LABEL}(\.{_LABEL})*/)?{QUALIFIED_NAME.pattern}$",
    "not": {"pattern": r"^requests\.[^/]*/|kubernetes\.io/|/[^/]{64}|^[^/]{64,}$"},
}
_DEVLINK = {"type": "string", "pattern": "^/dev/"}


def _one_or_more(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}


def _texts_by_name(name: re.Pattern[str]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "patternProperties": {f"^{name.pattern}$": _TEMPLATE},
        "additionalProperties": False,
    }


MOST_REPLICAS = 10_000

#: The kubelet waits 30 s for PreStartContainer (1.36, KubeletPreStartContainerRPCTimeoutInSecs).
LONGEST_PRESTART_S = 25.0

LOG_LEVELS = ("debug", "info", "warning", "error")


def _group_by(at: At) -> str:
    word = values.text(at)
    if word in GROUP_BY or values.PROPERTY_NAME.fullmatch(word):
        return word
    hint = nearest(word, GROUP_BY) or "it is 'node', 'usb_device', 'parent' or the name of a udev property"
    raise Mistake(at, f"cannot group by '{word}'", hint)


def _identity(at: At) -> str | tuple[str, ...]:
    if isinstance(at.value, list):
        if not at.value:
            raise Mistake(at, "'identity' must not be an empty list")
        return read_list(at, values.property_name)
    word = values.text(at)
    if word not in IDENTITY:
        hint = nearest(word, IDENTITY) or 'it is "serial", "port" or a list of udev properties'
        if values.PROPERTY_NAME.fullmatch(word):
            hint = f'write ["{word}"]'
        raise Mistake(at, f"'{word}' is no identity", hint)
    return word


def _devlinks(at: At) -> tuple[Any, ...]:
    patterns = at if isinstance(at.value, list) else At(at.source, at.path, [at.value])
    for each in patterns.value:
        if isinstance(each, str) and not each.startswith("/dev/"):
            raise Mistake(
                at, f"'{each}' is no devlink", "devlinks begin with /dev/, for example /dev/serial/by-id/*"
            )
    if patterns is at:
        return read_list(at, values.glob)
    return (values.glob(at),)


def _mount(at: At) -> Mount | None:
    read = read_table(at, MOUNT_KEYS, "a mount")
    return None if read is None else Mount(read["host_path"], read["container_path"], read["read_only"])


def _mounts(at: At) -> tuple[Mount, ...]:
    return read_list(at, _mount)


def _prestart(at: At) -> PreStart | None:
    read = read_table(at, PRESTART_KEYS, "'prestart'")
    return None if read is None else PreStart(read["wait"], read["usb_reset"])


def _cdi(at: At) -> tuple[Any, ...]:
    return values.one_or_more(values.cdi_name)(at)


def _node(at: At) -> dict[str, Any] | None:
    """The written keys only: what is not written comes from the resource."""
    read = read_table(at, NODE_KEYS, "[[resource.node]]")
    return None if read is None else {key: read[key] for key in at.value}


def _nodes(at: At) -> tuple[dict[str, Any], ...]:
    if isinstance(at.value, dict):
        raise Mistake(at, "'node' is a list of tables", "write [[resource.node]]", on_key=True)
    return read_list(at, _node)


def _domain(at: At) -> str:
    word = values.text(at)
    why = why_not_a_resource_name(f"{word}/x")
    if why:
        raise Mistake(at, f"'{word}' cannot be the domain of resources: {why}")
    return word


MOUNT_KEYS = (
    Key("host_path", values.mount_source, "the directory or file on the host", _PATH, required=True),
    Key("container_path", values.path_template, "its path in the container", _PATH, required=True),
    Key("read_only", values.boolean, "whether the mount is read-only", _FLAG, default=True),
)

PRESTART_KEYS = (
    Key(
        "wait",
        values.duration(0.1, LONGEST_PRESTART_S),
        "how long to wait for the device",
        _DURATION,
        default=10.0,
    ),
    Key("usb_reset", values.boolean, "whether to reset the USB device", _FLAG, default=False),
)

#: Keys that a resource may give for all its node tables, and a node table for itself.
_NODE_DEFAULTS = (
    Key(
        "container_path",
        values.one_or_more(values.path_template),
        "the path of the node in the container, or several paths",
        _one_or_more(_PATH),
        default=(KERNEL_NAME,),
    ),
    Key(
        "permissions",
        values.permissions,
        "what the container may do with the node: any of 'r', 'w' and 'm'",
        {"type": "string", "pattern": "^[rwm]+$"},
        default="rw",
    ),
    Key(
        "devlinks",
        _devlinks,
        "which of the node's devlinks the container gets as well",
        {"anyOf": [_DEVLINK, {"type": "array", "items": _DEVLINK}]},
        default=(),
    ),
    Key("optional", values.boolean, "whether the device is Healthy without the node", _FLAG, default=False),
)

NODE_KEYS = (Key("match", match, "which nodes of the device the table is about", _MATCH), *_NODE_DEFAULTS)

RESOURCE_KEYS = (
    Key(
        "name",
        values.text,
        'the resource that pods request, "ftdi" or "vendor.example/ftdi"',
        _RESOURCE_NAME,
        required=True,
    ),
    Key("description", values.text, "a description for people", _TEXT, default=""),
    Key("match", match, "which device nodes belong to the resource", _MATCH, required=True),
    Key(
        "group_by",
        _group_by,
        "which nodes form one device",
        {"anyOf": [{"enum": list(GROUP_BY)}, _PROPERTY]},
        default="node",
    ),
    Key(
        "identity",
        _identity,
        "what the id of a device depends on",
        {"anyOf": [{"enum": list(IDENTITY)}, {"type": "array", "items": _PROPERTY, "minItems": 1}]},
        default="serial",
    ),
    *_NODE_DEFAULTS,
    Key(
        "node",
        _nodes,
        "which nodes of a device go into the container, and under which paths",
        {"type": "array", "items": {"$ref": "#/definitions/node"}},
        default=(),
    ),
    Key(
        "replicas",
        values.whole_number(1, MOST_REPLICAS),
        "how many containers may share a device",
        {"type": "integer", "minimum": 1, "maximum": MOST_REPLICAS},
    ),
    Key(
        "env",
        values.env,
        "environment variables for the container",
        _texts_by_name(values.ENV_NAME),
        default=(),
    ),
    Key(
        "mounts",
        _mounts,
        "directories and files of the host to mount in the container",
        {"type": "array", "items": {"$ref": "#/definitions/mount"}},
        default=(),
    ),
    Key(
        "annotations",
        values.annotations,
        "annotations for the container",
        _texts_by_name(values.ANNOTATION),
        default=(),
    ),
    Key("cdi", _cdi, "CDI devices for the container", _one_or_more(_TEMPLATE), default=()),
    Key(
        "prefer",
        lambda at: Prefer(values.one_of(*Prefer)(at)),
        "how to choose among the free devices",
        {"enum": list(Prefer)},
        default=Prefer.FIRST,
    ),
    Key(
        "unplug_grace",
        values.duration(0.0, 30 * 86400.0),
        "how long an unplugged device stays listed as Unhealthy",
        _DURATION,
        default=UNPLUG_GRACE_S,
    ),
    Key(
        "prestart",
        _prestart,
        "what to do before each start of a container",
        {"$ref": "#/definitions/prestart"},
    ),
    Key("health", match, "a match that every node of a Healthy device satisfies", _MATCH),
    Key(
        "kubevirt", values.boolean, "whether to set KubeVirt's USB_RESOURCE_… variables", _FLAG, default=False
    ),
    Key(
        "allow_dangerous",
        values.boolean,
        "required to hand out disks, memory and similar devices",
        _FLAG,
        default=False,
    ),
)

_DEFAULTS = Settings()

SETTINGS_KEYS = (
    Key("domain", _domain, "the domain of resource names without a domain", _TEXT, default=_DEFAULTS.domain),
    Key(
        "kubelet_dir",
        values.absolute_path,
        "the kubelet's device plugin directory",
        _ABSOLUTE,
        default=_DEFAULTS.kubelet_dir,
    ),
    Key(
        "pod_resources_socket",
        values.absolute_path,
        "the kubelet's PodResources socket",
        _ABSOLUTE,
        default=_DEFAULTS.pod_resources_socket,
    ),
    Key(
        "link_dir", values.own_directory, "where the stable links are", _ABSOLUTE, default=_DEFAULTS.link_dir
    ),
    Key("state_dir", values.absolute_path, "what survives a reboot", _ABSOLUTE, default=_DEFAULTS.state_dir),
    Key(
        "run_dir",
        values.absolute_path,
        "where `genericdp status` and `genericdp monitor` find the daemon",
        _ABSOLUTE,
        default=_DEFAULTS.run_dir,
    ),
    Key(
        "metrics",
        values.listening_address,
        'where to serve metrics over HTTP: a unix socket, "unix:/run/genericdp/metrics.sock", or an IP '
        'address and port, "127.0.0.1:9101"; "" for nowhere',
        {"type": "string", "pattern": f"^{values.LISTENING_ADDRESS.pattern}$"},
        default=_DEFAULTS.metrics,
    ),
    Key(
        "coalesce",
        values.duration(0.0, 10.0),
        "the minimum time between two device lists of a resource",
        _DURATION,
        default=_DEFAULTS.coalesce_s,
    ),
    Key(
        "rescan",
        values.duration(1.0, 3600.0),
        "how often to look at all devices where no udev events arrive",
        _DURATION,
        default=_DEFAULTS.rescan_s,
    ),
    Key(
        "log_format",
        lambda at: LogFormat(values.one_of(*LogFormat)(at)),
        "the format of log lines",
        {"enum": list(LogFormat)},
        default=_DEFAULTS.log_format,
    ),
    Key(
        "log_level",
        values.one_of(*LOG_LEVELS),
        "the least severe messages that are logged",
        {"enum": list(LOG_LEVELS)},
        default=_DEFAULTS.log_level,
    ),
)
