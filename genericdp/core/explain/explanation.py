"""Why one udev device goes where it goes."""

from collections.abc import Iterable
from dataclasses import dataclass

from genericdp.core.device import UdevDevice
from genericdp.core.explain.near_misses import near_miss
from genericdp.core.explain.opinion import Opinion, opinion
from genericdp.core.explain.origin import Origin, origins_of
from genericdp.core.explain.survey import Survey
from genericdp.core.inventory.group import in_common
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.rules.resource import Resource


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one udev device.

    opinions  of every resource: those that take or share it in file order, then from the nearest miss on
    below     the device nodes below it, when it has none itself
    offer     the resource that offers it, with all its devices; None when none does
    device    the device that its node belongs to; None when it is not offered
    group     the parent that the nodes of that device have in common, if `group_by` says so
    origins   where the device has the properties that templates name
    refusal   why it is not offered although a resource takes it, or ""
    mistakes  what keeps rule files from being read, or ""; a rule of theirs may take it
    """

    subject: UdevDevice
    opinions: tuple[Opinion, ...]
    below: tuple[str, ...] = ()
    offer: Offer | None = None
    device: Device | None = None
    group: UdevDevice | None = None
    origins: tuple[Origin, ...] = ()
    refusal: str = ""
    mistakes: str = ""

    @property
    def taken_by(self) -> tuple[Resource, ...]:
        """The resources that take it; the first one has it."""
        return tuple(each.resource for each in self.opinions if each.takes)

    @property
    def shared_by(self) -> tuple[Resource, ...]:
        """The resources with whose devices it goes along, unless it is refused."""
        return tuple(each.resource for each in self.opinions if each.shares and not self.refusal)

    @property
    def is_offered(self) -> bool:
        """Whether a container can get it."""
        return self.device is not None or bool(self.shared_by)

    @property
    def why_not_offered(self) -> str:
        """Why it is not offered, with a hint at the nearest resource; "" when it is offered."""
        if self.is_offered:
            return ""
        if self.subject.device_node is None:
            text = "it has no device node, and only device nodes can be offered"
            return f"{text}; below it are {', '.join(self.below)}" if self.below else text
        if not self.subject.initialized:
            return "udev has not finished with it yet"
        if self.refusal:
            takers = (*self.taken_by, *(each.resource for each in self.opinions if each.shares))
            return f"{takers[0].name} matches, but {self.refusal}"
        if self.subject.refusal:
            return self.subject.refusal
        if not self.opinions and self.mistakes:
            return f"no rule file can be used: {self.mistakes}"
        if not self.opinions:
            return "no rule file defines a resource"
        nearest = self.opinions[0]
        miss = near_miss(nearest)
        hint = "" if miss is None else f"; for {nearest.resource.name} it {miss}"
        return f"no rule matches it{hint}{self.mistakes and f'; {self.mistakes}'}"


def explain(subject: UdevDevice, survey: Survey) -> Explanation:
    """What becomes of a udev device, and why."""
    opinions = [opinion(resource, subject, survey.claims) for resource in survey.resources]
    # Sorting is stable: what is equally near stays in file order, and so do the resources that take it.
    opinions.sort(key=_order)
    for offer in survey.inventory.offers.values():
        for device in offer.devices:
            if any(node.sys_path == subject.sys_path for node in device.nodes):
                common = in_common(offer.resource.group_by, subject)
                return Explanation(
                    subject,
                    tuple(opinions),
                    offer=offer,
                    device=device,
                    group=common if isinstance(common, UdevDevice) and common is not subject else None,
                    origins=origins_of(offer.resource, device, survey.devices),
                )
    is_wanted = any(each.takes or each.shares for each in opinions)
    refusals = survey.inventory.refusals if is_wanted else ()
    reasons = [refusal.reason for refusal in refusals if refusal.node == subject.device_node]
    below = nodes_below(subject.sys_path, survey.nodes) if subject.device_node is None else ()
    refusal = reasons[0] if reasons else ""
    return Explanation(subject, tuple(opinions), tuple(below), refusal=refusal, mistakes=survey.mistakes)


def _order(opinion: Opinion) -> tuple[object, ...]:
    if opinion.takes or opinion.shares:
        return (False, not opinion.takes)
    return (True, opinion.nearness)


def nodes_below(sys_path: str, devices: Iterable[UdevDevice]) -> list[str]:
    """The device nodes of what hangs off a udev device."""
    nodes = [
        each.device_node
        for each in devices
        if each.device_node is not None and each.sys_path.startswith(f"{sys_path}/")
    ]
    return sorted(nodes, key=natural)
