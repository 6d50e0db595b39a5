"""Names of udev properties that are probably misspelled.

The rules of this file:

* A udev rule can set any property, so an unknown name is not an error.
* A name counts as misspelled if it is one edit away from a common property: a character added, removed or
  replaced, or two swapped.
"""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from operator import eq

from genericdp.core.rules.grouping import Nearest, SameProperty
from genericdp.core.rules.match import Condition, Match, ParentCondition, PropertyCondition
from genericdp.core.rules.resource import Resource

#: The properties of the kernel and of udev that rules use most.
_COMMON = (
    "DEVLINKS",
    "DEVNAME",
    "DEVPATH",
    "DEVTYPE",
    "DRIVER",
    "ID_BUS",
    "ID_MODEL",
    "ID_MODEL_ID",
    "ID_PATH",
    "ID_PATH_TAG",
    "ID_SERIAL",
    "ID_SERIAL_SHORT",
    "ID_USB_DRIVER",
    "ID_USB_INTERFACE_NUM",
    "ID_USB_MODEL_ID",
    "ID_USB_VENDOR_ID",
    "ID_VENDOR",
    "ID_VENDOR_ID",
    "MAJOR",
    "MINOR",
    "MODALIAS",
    "PCI_CLASS",
    "PCI_ID",
    "PCI_SLOT_NAME",
    "PCI_SUBSYS_ID",
    "SUBSYSTEM",
)

#: Names from other tools, with udev's own name for the same property.
_OTHER_NAMES = {
    "ID_PRODUCT": "ID_MODEL",
    "ID_PRODUCT_ID": "ID_MODEL_ID",
    "ID_USB_PRODUCT_ID": "ID_USB_MODEL_ID",
}


def misspelled(resource: Resource) -> Iterator[tuple[str, str]]:
    """The misspelled names in a resource's matches, `group_by` and `identity`, each with what was meant."""
    for name in dict.fromkeys(_names_in(resource)):
        if meant := _meant_by(name):
            yield name, meant


def _names_in(resource: Resource) -> Iterator[str]:
    for match in (resource.match, *(table.match for table in resource.nodes)):
        yield from _names_in_match(match)
    if isinstance(resource.group_by, SameProperty):
        yield resource.group_by.name
    elif isinstance(resource.group_by, Nearest):
        yield from _names_in_match(resource.group_by.match)
    if isinstance(resource.identity, tuple):
        yield from resource.identity


def _names_in_match(match: Match) -> Iterator[str]:
    for alternative in match.alternatives:
        yield from _names_in_conditions(alternative)


def _names_in_conditions(conditions: Iterable[Condition]) -> Iterator[str]:
    for condition in conditions:
        if isinstance(condition, PropertyCondition):
            yield condition.name
        elif isinstance(condition, ParentCondition):
            yield from _names_in_match(condition.match)


def _meant_by(name: str) -> str:
    """The common name that was probably meant; "" if the name itself is common or resembles none."""
    if name in _COMMON:
        return ""
    return _OTHER_NAMES.get(name) or next((each for each in _COMMON if _is_one_edit(name, each)), "")


def _is_one_edit(one: str, other: str) -> bool:
    """Whether two different words differ by one edit."""
    one, other = _without_same_start(one, other)
    one, other = _without_same_start(one[::-1], other[::-1])
    return max(len(one), len(other)) == 1 or (len(one) == 2 and one == other[::-1])


def _without_same_start(one: str, other: str) -> tuple[str, str]:
    same = sum(1 for _ in takewhile(bool, map(eq, one, other)))
    return one[same:], other[same:]
