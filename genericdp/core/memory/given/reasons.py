"""Why a device that is plugged in must not be offered: a pod may hold its id, or it, as something else."""

from collections.abc import Mapping

from genericdp.core.inventory.offer import Device
from genericdp.core.memory.remembered import Remembered


def why_untold(device: Device) -> str:
    """Why a device must not be offered that may be another one, which a pod may hold."""
    why = "it cannot be told apart from a device that a pod may still hold"
    if any(spot.is_anonymous for spot in device.spots):
        return f"it has no address (HID_UNIQ), so {why}; it is offered when that pod is deleted"
    return why


def why_another(resource: str, id_: str, holder: str) -> str:
    """Why a device of a resource must not be offered: a pod may hold its id for something else.

    holder  the resource of which the pod got the id. The same id in two resources names one unit, or its twin
    """
    if holder != resource:
        return f"a pod may still hold it as {id_} of {holder}"
    return f"its id, {id_}, belongs to another unit, which a pod may still hold"


def why_beside(device: Device, known: Remembered | None, held: Mapping[str, Remembered]) -> str:
    """Why a new device may be a held one at another speed; "" if it is not new, or beside no such device.

    known  what is remembered under its id; `held` are those that pods hold
    """
    if device.id in held or (known is not None and known.absent_since is None):
        return ""
    across = {(spot.port, spot.within) for spot in device.across}
    return next(
        (
            f"it is in the same USB socket as {id_}, which a pod may still hold, and may be the same unit at "
            "another speed; plug both in for a minute, or delete the pod"
            for id_, each in held.items()
            if not across.isdisjoint((spot.port, spot.within) for spot in each.device.spots)
        ),
        "",
    )
