"""A `[[resource]]` of a rule file, as values in which nothing can be wrong.

Two resources compare equal when they mean the same, so a reload leaves alone what did not change.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from genericdp.core.container_paths import node_above, why_covered
from genericdp.core.rules.grouping import NODE, Grouping, Nearest
from genericdp.core.rules.match import Match, attributes_wanted
from genericdp.core.rules.pattern import Pattern
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.rules.template import Template, parse
from genericdp.errors import Location


class Prefer(StrEnum):
    """How GetPreferredAllocation chooses among free devices.

    Only SAME_UNIT gives a container two replicas of one device while another device is free.
    """

    FIRST = "first"
    NUMA = "numa"
    SAME_HUB = "same-hub"
    SAME_UNIT = "same-unit"
    SPREAD = "spread"
    LEAST_RECENTLY_USED = "least-recently-used"


class OnUnplug(StrEnum):
    """What happens to the containers of a device that is unplugged."""

    KEEP = "keep"
    STOP = "stop"


class OnReplug(StrEnum):
    """What happens to the containers that still have the device nodes from before."""

    KEEP = "keep"
    RESTART = "restart"


#: The default container path: the node under its own kernel name.
KERNEL_NAME = parse("/dev/{devname}")

#: The match without conditions.
EVERYTHING = Match()

#: For resources that are in no file (in tests).
NOWHERE = Location("", 0)


@dataclass(frozen=True, slots=True)
class NodeTable:
    """A `[[resource.node]]`: which nodes of a device go into the container, and as what.

    match             which of the resource's nodes; the empty match takes every node. That of a shared table
                      is never empty and decides alone
    container_paths   the paths of the node in the container; at least one
    permissions       non-empty subset of "rwm", in that order
    devlinks          the container also gets the node's devlinks that one of these holds for
    optional          the device is Healthy without the node
    shared            its nodes go along with every device of the resource and belong to none
    """

    match: Match = EVERYTHING
    container_paths: tuple[Template, ...] = (KERNEL_NAME,)
    permissions: str = "rw"
    devlinks: tuple[Pattern, ...] = ()
    optional: bool = False
    shared: bool = False

    @property
    def in_words(self) -> str:
        """Which node it is for: by its path in the container if that is fixed, or else by its match."""
        path = self.container_paths[0]
        wanted = self.match.in_words if path.fields else ()
        return " or ".join(wanted) or f"'{path.text}'"


#: The table of a resource without tables: every node, under its kernel name.
EVERY_NODE = NodeTable()


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory or file of the host in the container. A mounted device node could not be opened."""

    host_path: Template
    container_path: Template
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class PreStart:
    """What PreStartContainer does: wait up to `wait_s` seconds for the device, then perhaps reset it."""

    wait_s: float = 10.0
    usb_reset: bool = False


#: What `identity` may be, beside a list of names of udev properties.
IDENTITY = ("serial", "port")

UNPLUG_GRACE_S = 600.0


@dataclass(frozen=True, slots=True)
class Resource:
    """One `[[resource]]` table.

    name           the full resource name, `domain/name`, valid for the kubelet
    group_by       which matching nodes form one device
    identity       one of IDENTITY or names of udev properties: what the id of a device depends on
    nodes          at least one table that is not shared; a resource without such tables has EVERY_NODE
    replicas       how many containers may share a device; None: one, and ids carry no number
    answer         how Allocate names its device nodes; None: as the settings say
    health         every node of a Healthy device matches it; None: no condition
    health_poll_s  how often the attributes that `health` looks at are read again; None: after events only
    unplug_grace_s the minimum time that an unplugged device stays listed as Unhealthy
    debounce_s     how long a device must be plugged in, or unplugged, before containers are stopped for it
    boot_wait_s    how long READY waits after a boot for its devices; None: as the settings say
    location       where the name of the resource is in its file; not part of the meaning
    """

    name: str
    match: Match
    description: str = ""
    group_by: Grouping = NODE
    identity: str | tuple[str, ...] = "serial"
    nodes: tuple[NodeTable, ...] = (EVERY_NODE,)
    replicas: int | None = None
    env: tuple[tuple[Template, Template], ...] = ()
    mounts: tuple[Mount, ...] = ()
    annotations: tuple[tuple[str, Template], ...] = ()
    cdi: tuple[Template, ...] = ()
    answer: AnswerBy | None = None
    prefer: Prefer = Prefer.FIRST
    unplug_grace_s: float = UNPLUG_GRACE_S
    on_unplug: OnUnplug = OnUnplug.KEEP
    on_replug: OnReplug = OnReplug.KEEP
    debounce_s: float = 3.0
    boot_wait_s: float | None = None
    prestart: PreStart | None = None
    health: Match | None = None
    health_poll_s: float | None = None
    kubevirt: bool = False
    allow_dangerous: bool = False
    location: Location = field(default=NOWHERE, compare=False)

    @property
    def short_name(self) -> str:
        """The name without its domain."""
        return self.name.rpartition("/")[2]

    @property
    def own_nodes(self) -> tuple[NodeTable, ...]:
        """The tables of the nodes that belong to a device."""
        return tuple(table for table in self.nodes if not table.shared)

    @property
    def shared_nodes(self) -> tuple[NodeTable, ...]:
        """The tables of the nodes that go along with every device."""
        return tuple(table for table in self.nodes if table.shared)

    @property
    def is_exclusive(self) -> bool:
        """Whether a device is for one container at a time."""
        return (self.replicas or 1) == 1

    @property
    def follows(self) -> bool:
        """Whether containers may be stopped because of a device."""
        return self.on_unplug is OnUnplug.STOP or self.restarts

    @property
    def restarts(self) -> bool:
        """Whether containers that lack the device as it is now are restarted."""
        return self.on_replug is OnReplug.RESTART

    @property
    def matches(self) -> tuple[Match, ...]:
        """Every match of the table, its own first."""
        tables = tuple(node.match for node in self.nodes)
        grouping = (self.group_by.match,) if isinstance(self.group_by, Nearest) else ()
        return (self.match, *tables, *grouping, *((self.health,) if self.health else ()))

    @property
    def device_templates(self) -> tuple[Template, ...]:
        """Every template that is expanded for the device as a whole rather than for one of its nodes."""
        return (
            *(text for pair in self.env for text in pair),
            *(path for mount in self.mounts for path in (mount.host_path, mount.container_path)),
            *(text for _, text in self.annotations),
            *self.cdi,
        )


class FixedPath(NamedTuple):
    """A path in the container, as far as a rule says it.

    path     up to a `/`: the node itself, or the directory in which it is
    is_node  whether it is the node itself
    table    the index of its node table
    text     how the rule says it, in quotes
    """

    path: str
    is_node: bool
    table: int
    text: str


def clash_in(tables: Sequence[NodeTable]) -> tuple[FixedPath, FixedPath] | None:
    """The first node whose path is that of the second one, or a directory on the way to it."""
    # In this order, what is below a path comes right behind it.
    fixed = sorted(
        (each for index, table in enumerate(tables) for each in _fixed_paths(index, table)),
        key=lambda each: (each.path, not each.is_node),
    )
    return next(
        (pair for pair in pairwise(fixed) if pair[0].is_node and pair[1].path.startswith(pair[0].path)), None
    )


def covering_in(tables: Sequence[NodeTable], mounts: Sequence[Mount]) -> tuple[int, str] | None:
    """The index of the first mount that keeps a node out of every container, and how.

    An optional node may be absent. The paths of the nodes do not clash (`clash_in`).
    """
    required = [table for table in tables if not table.optional]
    paths = [path for table in required for path in table.container_paths if not path.fields]
    nodes = sorted(map(_fixed_part, paths))
    for index, mount in enumerate(mounts):
        path = mount.container_path
        if node := node_above(_fixed_part(path), nodes):
            return index, why_covered(path.text if path.fields else path.beginning, node)
    return None


def _fixed_paths(index: int, table: NodeTable) -> Iterator[FixedPath]:
    for path in table.container_paths:
        yield FixedPath(_fixed_part(path), not path.fields, index, f"'{path.text}'")
    for devlink in table.devlinks:
        for beginning in devlink.beginnings or ():
            yield FixedPath(_directory_of(beginning), False, index, devlink.text)


def _fixed_part(path: Template) -> str:
    return f"{path.beginning}/" if not path.fields else _directory_of(path.beginning)


def _directory_of(beginning: str) -> str:
    return beginning[: beginning.rfind("/") + 1]


def attributes_of(resources: Iterable[Resource]) -> frozenset[str]:
    """The sysfs attributes that these rules look at."""
    return attributes_wanted(match for resource in resources for match in resource.matches)


def polled_attributes(resource: Resource) -> frozenset[str]:
    """The sysfs attributes that the health of its devices depends on."""
    return attributes_wanted(() if resource.health is None else (resource.health,))


def grace_s(resource: Resource | None) -> float:
    """The minimum time that an absent device of the resource stays listed; None: the resource is gone."""
    return UNPLUG_GRACE_S if resource is None else resource.unplug_grace_s
