"""What a value is, for completion: what its name in the help means to a shell.

The rules of this file:

* Every name of a value has a kind here; the generator fails if one is missing.
"""

from enum import StrEnum

from generate.verbs import Option


class Kind(StrEnum):
    """What candidates there are for a value.

    The last ones are what `genericdp complete` is asked for; ASSIGNMENTS are RESOURCES with `=`,
    SUBJECTS are NODES too.
    """

    NOTHING = "nothing"
    FILES = "files"
    RULES = "rules"
    NODES = "nodes"
    RESOURCES = "resources"
    ASSIGNMENTS = "assignments"
    SUBJECTS = "subjects"
    SERIALS = "serials"
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
    "VENDOR:PRODUCT": Kind.USB,
}


#: Where the same word means more than elsewhere.
_OF_VERBS = {("explain", "DEVICE"): Kind.SUBJECTS}


def kind(verb: str, option: Option) -> Kind:
    """The kind of an option's or argument's value."""
    if (verb, option.value) in _OF_VERBS:
        return _OF_VERBS[verb, option.value]
    if option.value not in KINDS:
        raise KeyError(f"generate/kinds.py does not say how '{option.value}' is completed")
    return KINDS[option.value]
