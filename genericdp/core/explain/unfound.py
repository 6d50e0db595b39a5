"""What a rule puts where the libraries that need it do not look, found without looking at a machine.

The rules of this file:

* Only what a rule says for certain counts: a match that names the subsystem or the path of its device nodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product

from genericdp.core.explain.library_paths import LIBRARIES, Library
from genericdp.core.rules.match import Alternative, PropertyCondition
from genericdp.core.rules.resource import NodeTable, Resource
from genericdp.core.rules.template import Template

#: A device node of no kind: a condition that holds for it does not say which kind it wants.
_ANY = "/dev/x"


@dataclass(frozen=True, slots=True)
class Unfound:
    """A container path under which a library does not find its device nodes.

    path     as the rule file writes it
    library  what looks elsewhere
    """

    resource: str
    path: str
    library: Library

    def __str__(self) -> str:
        return (
            f"{self.resource}: {self.library.name} looks for the kernel's name, such as "
            f"{self.library.examples[0]}, not for {self.path}"
        )


def unfound(resource: Resource) -> Iterator[Unfound]:
    """The container paths of a resource under which libraries do not find its device nodes."""
    for table in resource.nodes:
        for library in LIBRARIES:
            found = [example for example in library.examples if _takes(resource, table, library, example)]
            if found and not any(_leads(path, library, found[0]) for path in table.container_paths):
                yield Unfound(resource.name, table.container_paths[0].text, library)


def _takes(resource: Resource, table: NodeTable, library: Library, example: str) -> bool:
    """Whether a table certainly means device nodes of this kind."""
    matches = (table.match,) if table.shared else (resource.match, table.match)
    return any(
        _means(tuple(chain.from_iterable(conditions)), library, example)
        for conditions in product(*(match.alternatives or ((),) for match in matches))
    )


def _means(conditions: Alternative, library: Library, example: str) -> bool:
    is_certain = False
    for condition in conditions:
        match condition:
            case PropertyCondition(name="SUBSYSTEM"):
                if not condition.pattern.holds(library.subsystem):
                    return False
                is_certain |= library.subsystem != "misc" and not condition.pattern.holds("")
            case PropertyCondition(name="DEVNAME"):
                if not condition.pattern.holds(example):
                    return False
                is_certain |= not condition.pattern.holds(_ANY)
            case _:
                pass
    return is_certain


def _leads(path: Template, library: Library, example: str) -> bool:
    """Whether a container path is one that the library finds, for a node with this path on the host."""
    bus, number = example.split("/")[-2:]
    fields = {
        "devname": example.removeprefix("/dev/"),
        "DEVNAME": example,
        "sysname": number,
        "BUSNUM": bus,
        "DEVNUM": number,
    }
    parts = (part if isinstance(part, str) else fields.get(part.name, "0") for part in path.parts)
    return library.finds("".join(parts))
