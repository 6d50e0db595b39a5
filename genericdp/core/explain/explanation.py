"""Why one udev device goes where it goes."""

from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.explain.opinion import Opinion, opinion
from genericdp.core.inventory.build import Inventory
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.rules.resource import Resource


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one udev device.

    opinions  of every resource: those that take it in file order, then from the nearest miss on
    offer     the resource that offers it, with all its devices; None when none does
    device    the device that its node belongs to; None when it is not offered
    refusal   why it is not offered although a resource takes it, or ""
    """

    subject: UdevDevice
    opinions: tuple[Opinion, ...]
    offer: Offer | None = None
    device: Device | None = None
    refusal: str = ""

    @property
    def taken_by(self) -> tuple[Resource, ...]:
        """The resources that take it; the first one has it."""
        return tuple(each.resource for each in self.opinions if each.takes)


def explain(subject: UdevDevice, claims: Claims, inventory: Inventory) -> Explanation:
    """What becomes of a udev device, and why."""
    opinions = [opinion(resource, subject, claims) for resource in claims.resources]
    # Sorting is stable: what is equally near stays in file order, and so do the resources that take it.
    opinions.sort(key=lambda each: (not each.takes, () if each.takes else each.nearness))
    for offer in inventory.offers.values():
        for device in offer.devices:
            if any(node.sys_path == subject.sys_path for node in device.nodes):
                return Explanation(subject, tuple(opinions), offer, device)
    reasons = [refusal.reason for refusal in inventory.refusals if refusal.node == subject.device_node]
    is_taken = any(each.takes for each in opinions)
    return Explanation(subject, tuple(opinions), refusal=reasons[0] if is_taken and reasons else "")
