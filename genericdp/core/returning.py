"""Which devices READY waits for at the first start after a boot.

A kubelet that starts rejects a pod for good when its device is not there yet. The kubelet's unit waits for
READY, so READY waits for the devices.

The rules of this file:

* Only devices that were Healthy when the machine went down are waited for, and each for a limited time.
* The rules in effect now decide: a device that no resource offers any more is not waited for.
"""

from collections.abc import Collection
from dataclasses import dataclass

from genericdp.core.inventory.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Returning:
    """A device that READY waits for.

    left_s  how much longer, in seconds
    """

    resource: str
    id: str
    left_s: float


def returning(
    healthy_before: Collection[str], inventory: Inventory, boot_wait_s: float, waited_s: float
) -> tuple[Returning, ...]:
    """The devices to wait for; () when READY can be sent.

    healthy_before  the ids of the devices that were Healthy when the machine went down
    boot_wait_s     the longest wait for devices of resources that set none, in seconds
    waited_s        the time since the start, in seconds
    """
    if not healthy_before:
        return ()
    return tuple(
        Returning(offer.resource.name, device.id, longest - waited_s)
        for offer in inventory.offers.values()
        for longest in (boot_wait_s if offer.resource.boot_wait_s is None else offer.resource.boot_wait_s,)
        if longest > waited_s
        for device in offer.devices
        if device.id in healthy_before and not device.healthy
    )


def healthy_in(inventory: Inventory) -> frozenset[str]:
    """The ids of all Healthy devices."""
    return frozenset(
        device.id for offer in inventory.offers.values() for device in offer.devices if device.healthy
    )
