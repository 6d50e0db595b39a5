"""The kinds of values, for completion: from a value's name in the help to its candidates.

The rules of this file:

* Every name of a value has a kind here; the generator fails if one is missing.
"""

from enum import StrEnum

from generate.verbs import Option


class Kind(StrEnum):
    """The kind of candidates for a value.

    From RESOURCES on they come from `genericdp complete`. ASSIGNMENTS are RESOURCES with `=`; SUBJECTS
    include NODES.
    """

    NOTHING = "nothing"
    FILES = "files"
    RULES = "rules"
    NODES = "nodes"
    RESOURCES = "resources"
    ASSIGNMENTS = "assignments"
    SUBJECTS = "subjects"
    SERIALS = "serials"
    SUBSYSTEMS = "subsystems"
    USB = "usb"


KINDS = {
    "DEVICE": Kind.NODES,
    "DIR_OR_FILE": Kind.RULES,
    "DOMAIN": Kind.NOTHING,
    "FILE": Kind.FILES,
    "NAME=COUNT": Kind.ASSIGNMENTS,
    "RESOURCE": Kind.RESOURCES,
    "SECONDS": Kind.NOTHING,
    "SERIAL": Kind.SERIALS,
    "SUBSYSTEM": Kind.SUBSYSTEMS,
    "VENDOR:PRODUCT": Kind.USB,
    "WORD": Kind.NOTHING,
}


#: Verbs for which a value name means more than elsewhere.
_OF_VERBS = {("explain", "DEVICE"): Kind.SUBJECTS}


def kind(verb: str, option: Option) -> Kind:
    """The kind of an option's or argument's value."""
    if (verb, option.value) in _OF_VERBS:
        return _OF_VERBS[verb, option.value]
    if option.value not in KINDS:
        raise KeyError(f"generate/kinds.py has no kind for '{option.value}'")
    return KINDS[option.value]
