"""What an operator means by a word or a query, on a machine that was surveyed."""

from collections.abc import Iterable, Sequence

from genericdp.core.device import UdevDevice
from genericdp.core.explain.absent import Absent, of_device, of_query, of_resource
from genericdp.core.explain.query import Query
from genericdp.core.explain.survey import Survey
from genericdp.core.inventory.claims import is_dangerous
from genericdp.core.inventory.offer import Device
from genericdp.core.rules.match import Condition, PropertyCondition


def look_up(query: Query, survey: Survey) -> Sequence[UdevDevice] | Absent:
    """The device nodes that a query is true of, the most relevant first; or that there is none."""
    found = query.among(survey.nodes)
    return by_relevance(found, survey) if found else of_query(query, survey)


def known_as(word: str, survey: Survey) -> UdevDevice | Absent | None:
    """What has this device id, link or resource name; None when nothing has."""
    name = word.removeprefix(f"{survey.settings.link_dir}/")
    for offer in survey.inventory.offers.values():
        for node in offer.shared:
            if node.link == name and node.sys_path in survey.devices:
                return survey.devices[node.sys_path]
    device = with_id(word, survey)
    if device is None:
        return of_resource(word, survey)
    for node in device.nodes:
        if node.sys_path in survey.devices:
            return survey.devices[node.sys_path]
    return of_device(device, survey)


def with_id(word: str, survey: Survey) -> Device | None:
    """The device with this id or link, whether it is plugged in or remembered."""
    name = word.removeprefix(f"{survey.settings.link_dir}/")
    for offer in survey.inventory.offers.values():
        for id_, device in offer.ids.items():
            if name in (id_, device.id, *device.links):
                return device
    for known in survey.memory.devices.values():
        if name in (known.device.id, *known.device.links):
            return known.device
    return None


def expected_by(path: str, survey: Survey) -> str:
    """Which rule names this device node: `nvidia.com/gpu shares it (nvidia.toml:2)`; "" if none does."""
    for resource in survey.resources:
        matches = ((False, resource.match), *((table.shared, table.match) for table in resource.nodes))
        for shared, match in matches:
            if any(_names(condition, path) for each in match.alternatives for condition in each):
                where = f"{resource.location.file}:{resource.location.line}"
                return f"{resource.name} {'shares' if shared else 'takes'} it ({where})"
    return ""


def _names(condition: Condition, path: str) -> bool:
    if not isinstance(condition, PropertyCondition) or condition.name != "DEVNAME":
        return False
    return path in (condition.pattern.literals or ())


def nodes_of_usb(usb: UdevDevice, survey: Survey) -> Sequence[UdevDevice]:
    """All device nodes of a USB device, the most relevant first."""
    return by_relevance([node for node in survey.nodes if node.usb_device is usb], survey)


def by_relevance(nodes: Iterable[UdevDevice], survey: Survey) -> Sequence[UdevDevice]:
    """The nodes that a rule takes first, raw USB nodes and dangerous ones last."""

    def order(node: UdevDevice) -> tuple[object, ...]:
        return (not survey.claims.on(node), node.usb_device is node, is_dangerous(node), node.sys_path)

    return sorted(nodes, key=order)
