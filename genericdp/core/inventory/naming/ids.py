"""What an id may look like, to check those from the kubelet or from a saved memory."""

import re

from genericdp.core.inventory.identity import ID_LIMIT, REPLICA_ROOM

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
