"""The one line that `systemctl status` shows."""

from collections.abc import Iterable

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.status.history import Failure
from genericdp.core.words import counted


def status_line(
    inventory: Inventory,
    registered: int | None,
    problems: int,
    failing: Iterable[Failure] = (),
    *,
    rival: bool = False,
) -> str:
    """What is offered, whether the kubelet knows it, what fails, and whether the rule files have mistakes.

    registered  the number of registered resources; None without a kubelet
    problems    the number of mistakes in the rule files
    failing     what fails and is tried again
    rival       another genericdp serves the kubelet
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
    parts += [failure.why for failure in failing]
    if problems:
        parts.append(f"{counted(problems, 'problem')} in rule files")
    return "; ".join(parts)
