"""What ids may look like, to know those of the kubelet and of a saved memory; and long names of links."""

import re

from genericdp.core.inventory.identity import ID_LIMIT, REPLICA_ROOM, hash_of
from genericdp.core.inventory.place import Spot

#: How many characters of a hash tell nodes apart that look alike.
_LONG_MARK_LENGTH = 10

#: What an id of a device looks like, in either form, and what follows it in the id of a replica.
_DEVICE_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{ID_LIMIT - REPLICA_ROOM - 1}}}")
_NUMBERED = re.compile(r"\.(0|[1-9][0-9]{0,3})")


def may_be_device(id_: str) -> bool:
    """Whether a device may have this id."""
    return _DEVICE_ID.fullmatch(id_) is not None


def may_be_id_of(device: str, id_: str) -> bool:
    """Whether the kubelet may have been told this id for the device: its own, or that of a replica."""
    is_numbered = id_.startswith(device) and _NUMBERED.fullmatch(id_, len(device)) is not None
    return id_ == device or is_numbered


def may_be_id(id_: str) -> bool:
    """Whether the kubelet may have been told this id for any device, also by an early build."""
    device = id_.rpartition(".")[0]
    return may_be_device(id_) or (may_be_device(device) and may_be_id_of(device, id_))


def may_be_current_id(id_: str) -> bool:
    """Whether the kubelet may have been told this id for a device whose id does not end like a replica's.

    Only early builds had others.
    """
    device = id_.rpartition(".")[0]
    owner = device if may_be_id_of(device, id_) else id_
    return may_be_device(owner) and not may_be_id_of(owner.rpartition(".")[0], owner)


def long_name(name: str, spot: Spot, model: str = "") -> str:
    """The link of the node at a spot whose short name another node has.

    model  given if a pod got the name without it for another model at this spot
    """
    return f"{name}@{hash_of(*spot, *([model] if model else []))[:_LONG_MARK_LENGTH]}"


def short_name(link: str) -> str:
    """The name that `long_name` extended to this link. Meaningless if the link is not a long name."""
    return link.rpartition("@")[0]
