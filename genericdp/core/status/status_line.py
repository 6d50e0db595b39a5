"""The one line that `systemctl status` shows."""

from collections.abc import Iterable, Sequence

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.returning import Returning
from genericdp.core.status.history import Failure
from genericdp.core.words import counted

#: How many devices are named; the log names all.
_NAMED = 3


def status_line(
    inventory: Inventory,
    registered: int | None,
    problems: int,
    failing: Iterable[Failure] = (),
    *,
    rival: bool = False,
    returning: Sequence[Returning] = (),
) -> str:
    """What is offered, whether the kubelet knows it, what fails, and whether the rule files have mistakes.

    registered  the number of registered resources; None without a kubelet
    problems    the number of mistakes in the rule files
    failing     what fails and is tried again
    rival       another genericdp serves the kubelet
    returning   the devices that READY waits for
    """
    devices = [device for offer in inventory.offers.values() for device in offer.devices]
    healthy = sum(device.healthy for device in devices)
    if registered is None:
        kubelet = "another genericdp serves the kubelet" if rival else "no kubelet"
    elif registered < len(inventory.offers):
        kubelet = f"{registered} of them registered"
    else:
        kubelet = "registered"
    resources = counted(len(inventory.offers), "resource")
    parts = [f"{resources}, {healthy} of {counted(len(devices), 'device')} healthy", kubelet]
    if returning:
        parts.insert(0, f"waiting for {_some(returning)}, there before the reboot")
    parts += [failure.why for failure in failing]
    if problems:
        parts.append(f"{counted(problems, 'problem')} in rule files")
    return "; ".join(parts)


def _some(devices: Sequence[Returning]) -> str:
    names = ", ".join(device.id for device in devices[:_NAMED])
    more = len(devices) - _NAMED
    return f"{names} and {more} more" if more > 0 else names
