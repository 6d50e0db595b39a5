"""What rules may say but hardly mean, for `genericdp check`.

The rules of this file:

* Only what is so on every machine counts. So it is about names of udev properties, and about device nodes
  that a table names in full, by DEVNAME alone.
* Nothing here keeps a rule from being used.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from genericdp.core.device import UdevDevice
from genericdp.core.rules.grouping import ALL
from genericdp.core.rules.match import Match, PropertyCondition
from genericdp.core.rules.resource import NodeTable, Resource
from genericdp.core.rules.template import FIELDS, Field
from genericdp.core.rules.typos import misspelled
from genericdp.core.words import listing

#: Of more nodes than this, the rest is counted.
_MOST_NAMES = 5


def pitfalls(resources: Sequence[Resource]) -> tuple[str, ...]:
    """A sentence about each, in file order."""
    owners: dict[str, Resource] = {}
    for resource in resources:
        for name in _names_in(resource.match):
            if _owns(resource, name):
                owners.setdefault(name, resource)
    return tuple(
        f"{resource.name}: {each}"
        for resource in resources
        for each in (
            *_in_names(resource),
            *_in_tables(resource),
            *_in_sharing(resource, owners),
            *_in_paths(resource),
        )
    )


def _in_names(resource: Resource) -> Iterator[str]:
    """Properties that are probably not there under this name."""
    for name, meant in misspelled(resource):
        yield f"'{name}' is not a standard udev property; did you mean '{meant}'?"


def _in_tables(resource: Resource) -> Iterator[str]:
    """Tables that never get a node, and those that are content with one of several nodes."""
    for table in resource.nodes:
        names = _names_in(table.match if table.match.alternatives else resource.match)
        outside = () if table.shared else _outside(resource, names)
        inside = dict.fromkeys(names).keys() - {*outside}
        left = [name for name in names if name in inside and _table_of(name, resource) is table]
        if outside and not left:
            yield (
                f"'match' does not hold for {_listed(outside, 'or')}, so no device has it; "
                "write 'shared = true' in the [[resource.node]] for what goes along with every device"
            )
        elif names and not left:
            yield f"the [[resource.node]] for {_listed(names, 'or')} never gets a node: another one takes it"
        elif len(left) > 1 and not table.optional and (table.shared or resource.group_by == ALL):
            yield (
                f"one of {_listed(left)} is enough; "
                "write a [[resource.node]] for each node that must be there"
            )


def _listed(names: Sequence[str], conjunction: str = "and") -> str:
    if len(names) <= _MOST_NAMES:
        return listing(names, conjunction)
    first = ", ".join(f"'{name}'" for name in names[:_MOST_NAMES])
    return f"{first} {conjunction} {len(names) - _MOST_NAMES} more"


def _outside(resource: Resource, names: Iterable[str]) -> tuple[str, ...]:
    """Those of these nodes that the resource does not take."""
    taken = frozenset(_names_in(resource.match))
    return tuple(name for name in names if taken and name not in taken)


def _in_sharing(resource: Resource, owners: Mapping[str, Resource]) -> Iterator[str]:
    """Nodes that it shares although another resource gives them to one container at a time.

    owners  device node -> the first resource that has it
    """
    for table in resource.shared_nodes:
        for name in _names_in(table.match):
            owner = owners.get(name)
            if owner is not None and owner.is_exclusive:
                yield (
                    f"it shares '{name}', which {owner.name} gives to one container at a time; "
                    "that limit does not hold for shared nodes"
                )


def _in_paths(resource: Resource) -> Iterator[str]:
    """Container paths in which a device chooses the whole name below / or /dev."""
    nodes = (path for table in resource.nodes for path in table.container_paths)
    mounts = (mount.container_path for mount in resource.mounts)
    for path in {path.text: path for path in (*nodes, *mounts)}.values():
        above, *rest = path.parts
        name = [*takewhile(lambda part: isinstance(part, Field), rest)]
        is_whole = len(name) == len(rest) or str(rest[len(name)]).startswith("/")
        is_chosen = any(isinstance(part, Field) and part.name not in FIELDS for part in name)
        if above in ("/", "/dev/") and is_whole and is_chosen:
            _, _, short = resource.name.partition("/")
            yield (
                f"in '{path.text}', the device chooses the whole name, and may take that of something else "
                f"in the container; write '{above}{short}-{path.text.removeprefix(above)}'"
            )


def _owns(resource: Resource, name: str) -> bool:
    """Whether a node that its match names is one of its own."""
    table = _table_of(name, resource)
    return table is not None and not table.shared


def _table_of(name: str, resource: Resource) -> NodeTable | None:
    """The table that applies to a node: a shared one, or else the first of the others."""
    device = _device_at(name)
    return next(
        (table for table in (*resource.shared_nodes, *resource.own_nodes) if table.match.matches(device)),
        None,
    )


def _names_in(match: Match) -> tuple[str, ...]:
    """The device nodes that a match names; () if it may hold for others, or only for some of them."""
    names: dict[str, None] = {}
    for alternative in match.alternatives:
        match alternative:
            case (PropertyCondition(name="DEVNAME", pattern=pattern),) if pattern.literals is not None:
                names.update(dict.fromkeys(sorted(pattern.literals)))
            case _:
                return ()
    return tuple(names)


def _device_at(path: str) -> UdevDevice:
    return UdevDevice(path, device_node=path)
