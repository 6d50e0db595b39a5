"""Conditions as a rule file writes them: what a match consists of.

The rules of this file:

* They are values. Whether a device satisfies them, only the parser and its rules decide.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from genericdp.core.suggest.quoting import exactly

#: A match as a rule file writes it: globs, lists of them, tables.
Conditions = Mapping[str, "str | tuple[str, ...] | Conditions"]


def one_or_more(values: Iterable[str]) -> str | tuple[str, ...]:
    """What holds for each of these values and no other."""
    return one_or_more_globs(map(exactly, values))


def one_or_more_globs(globs: Iterable[str]) -> str | tuple[str, ...]:
    """What holds where one of these globs does."""
    every = tuple(sorted(globs))
    return every[0] if len(every) == 1 else every


def joined(one: Conditions, other: Conditions) -> Conditions:
    """The conditions of both. When both speak of a parent, the other's is below the one's."""
    result = dict(one)
    for key, wanted in other.items():
        mine = result.get(key)
        if isinstance(mine, Mapping) and isinstance(wanted, Mapping):
            result[key] = joined(wanted, {key: mine}) if key == "parent" else {**mine, **wanted}
        else:
            result[key] = wanted
    return result


def joined_all(one: Conditions, others: Iterable[Conditions]) -> Conditions:
    """The conditions of all."""
    return reduce(joined, others, one)


def labels_in(conditions: Conditions) -> Iterator[str]:
    """What the conditions say that a driver calls its device."""
    for key, wanted in conditions.items():
        if isinstance(wanted, Mapping):
            yield from labels_in(wanted)
        elif isinstance(wanted, str) and key in ("ATTR{name}", "ATTR{identity}"):
            yield wanted
