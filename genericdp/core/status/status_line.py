"""The one line that `systemctl status` shows."""

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.words import counted


def status_line(inventory: Inventory, registered: int | None, problems: int, *, rival: bool = False) -> str:
    """What is offered, whether the kubelet knows it, and whether the rule files have mistakes.

    registered  the number of registered resources; None without a kubelet
    problems    the number of mistakes in the rule files
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
    line = f"{resources}, {healthy} of {counted(len(devices), 'device')} healthy; {kubelet}"
    return f"{line}; {counted(problems, 'problem')} in rule files" if problems else line
