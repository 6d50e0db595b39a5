"""The inventory of a machine, as `list` prints it for programs, and what else of it people see.

The rules of this file:

* Keys are only ever added; docs/json.md says what each of them means.
"""

from collections.abc import Sequence

from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import driver_and_address, identification
from genericdp.core.explain.selection import why_left_out
from genericdp.core.explain.survey import Survey
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.offer import Device, Node, Offer


def as_json(survey: Survey, *, everything: bool = False) -> dict[str, object]:
    """The list for programs. Keys are only ever added."""
    inventory = survey.inventory
    document: dict[str, object] = {
        "resources": [
            {
                "name": offer.resource.name,
                "description": offer.resource.description,
                "replicas": offer.resource.replicas or 1,
                "file": offer.resource.location.file,
                "line": offer.resource.location.line,
                "devices": [
                    _device_json(offer, device, survey.settings.link_dir) for device in offer.devices
                ],
                "shared": [_node_json(node, survey.settings.link_dir) for node in offer.shared],
            }
            for offer in inventory.offers.values()
        ],
        "overlaps": [
            {"node": overlap.node, "goesTo": overlap.winner, "notTo": list(overlap.losers)}
            for overlap in inventory.overlaps
        ],
        "conflicts": [
            {"node": conflict.node, "ownedBy": conflict.owner, "sharedBy": list(conflict.sharers)}
            for conflict in inventory.conflicts
        ],
        "notOffered": [
            {"node": refusal.node, "resource": refusal.resource, "reason": refusal.reason}
            for refusal in inventory.refusals
        ],
        "orphans": [{"resource": orphan.resource, "id": orphan.id} for orphan in inventory.orphans],
        "toldApartByOrder": list(inventory.unsure),
        "bareNodes": [{"node": path, "resource": name} for name, path in bare_nodes(survey)],
    }
    if everything:
        document["notTaken"] = [
            {
                "node": device.device_node,
                "subsystem": device.subsystem,
                "sysPath": device.sys_path,
                "name": identification(device) or driver_and_address(device),
                "reason": device.refusal,
                "leftOut": why_left_out(device),
            }
            for device in unclaimed(survey)
        ]
    return document


def _device_json(offer: Offer, device: Device, link_dir: str) -> dict[str, object]:
    return {
        "id": device.id,
        "health": str(device.health),
        "reason": device.reason,
        "waiting": offer.why_waiting(device),
        "numaNode": device.numa,
        "nodes": [_node_json(node, link_dir) for node in device.nodes],
        "links": [f"{link_dir}/{link}" for link in device.links],
    }


def _node_json(node: Node, link_dir: str) -> dict[str, object]:
    return {
        "path": node.path,
        "number": None if node.number is None else str(node.number),
        "link": f"{link_dir}/{node.link}",
        "permissions": node.table.permissions,
        "sysPath": node.sys_path,
    }


def bare_nodes(survey: Survey) -> list[tuple[str, str]]:
    """The bare nodes that are offered: the resource and the path of each."""
    found = (
        (offer.resource.name, node.path)
        for offer in survey.inventory.offers.values()
        for device in offer.devices
        for node in device.nodes_inside
        if node.is_bare
    )
    return list(dict.fromkeys(found))


def unclaimed(survey: Survey) -> Sequence[UdevDevice]:
    """The device nodes that no rule matches, in the order of their names."""
    judged = ((node, survey.claims.judged(node)) for node in survey.nodes)
    free = [node for node, each in judged if not each.claims and not each.shares]
    return sorted(free, key=lambda device: natural(device.device_node or ""))
