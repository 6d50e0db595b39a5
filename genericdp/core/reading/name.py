"""Reading the name of a resource, with or without its domain."""

from genericdp.core.reading.kind import Kind
from genericdp.core.reading.scalars import TEXT, text
from genericdp.core.reading.source import At, Mistake
from genericdp.core.rules.name import DNS_LABEL, QUALIFIED_NAME, why_not_a_resource_name

_LABEL = DNS_LABEL.pattern

#: As it is written: `full_name` adds the domain.
RESOURCE_NAME = Kind(
    text,
    {
        "type": "string",
        "pattern": rf"^({_LABEL}(\.{_LABEL})*/)?{QUALIFIED_NAME.pattern}$",
        "not": {"pattern": r"^requests\.[^/]*/|kubernetes\.io/|/[^/]{64}|^[^/]{64,}$"},
    },
)


def full_name(at: At, domain: str) -> str:
    """The name of a resource with its own domain, or with this one. Raises Mistake."""
    name = text(at)
    full = name if "/" in name else f"{domain}/{name}"
    why = why_not_a_resource_name(full)
    if why:
        raise Mistake(at, f"'{name}' is not a valid resource name: {why}")
    return full


def _domain(at: At) -> str:
    word = text(at)
    why = why_not_a_resource_name(f"{word}/x")
    if why:
        raise Mistake(at, f"'{word}' cannot be the domain of resources: {why}")
    return word


DOMAIN = Kind(_domain, TEXT.schema)
