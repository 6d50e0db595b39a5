"""`genericdp list`: every device that a rule matches, and why others are not offered."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence

from genericdp.cli.options import add_json_option, add_rule_options, as_typed
from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.cli.survey import look, show_reservations
from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import identification
from genericdp.core.explain.survey import Survey
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.offer import Device, Node, Offer
from genericdp.core.inventory.shared import SHARED
from genericdp.core.rules.node_names import ALL_NAMES, NO_NAMES
from genericdp.core.words import counted
from genericdp.files.rulefiles import RULE_DIRECTORIES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List every device that a rule matches: the resource it goes to, its id and health, its "
        "device nodes and the stable links to them. Needs neither the daemon nor root."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp list                     with the rules of this machine\n"
        "  genericdp list --rules my.toml     with rules that are not installed yet\n"
        "  genericdp list --all               also the device nodes that no rule matches\n"
        "  genericdp list --json | jq -r '.resources[].devices[].id'"
    )
    parser.add_argument("--all", action="store_true", help="also the device nodes that no rule matches")
    add_json_option(parser)
    add_rule_options(parser)


def run(*, all: bool, json: bool, rules: list[str], config: str | None, domain: str | None) -> int:  # noqa: A002  (an option's name)
    """Print the list. Returns 0, or 1 when something is wrong with the rule files."""
    survey = look(rules=rules, config=config, domain=domain, shown=ALL_NAMES if all else NO_NAMES)
    output = Output(sys.stdout)
    if json:
        output.json(as_json(survey, everything=all))
    else:
        installed = {*rules} <= {*RULE_DIRECTORIES}
        show(survey, output, everything=all, installed=installed, options=as_typed(rules, config, domain))
    return show_reservations(survey, Output(sys.stderr))


def show(
    survey: Survey, output: Output, *, everything: bool = False, installed: bool = True, options: str = ""
) -> None:
    """The list for people.

    installed  these are the rules that the daemon reads
    options    those that a verb needs to see the same (`as_typed`)
    """
    inventory = survey.inventory
    offers = inventory.offers.values()
    rows = [row for offer in offers for row in (*_offer(offer), *_advice(offer, survey, options))]
    if any(not isinstance(row, Styled) for row in rows):
        output.table(("DEVICE", "HEALTH", "NODE", "LINK"), rows, indent=2)
    else:
        output.table((), rows)
    if any(offer.devices for offer in offers):
        output.line()
        output.paragraph(_about_links(survey, installed=installed))
    if not rows:
        why = "no resources: no rule file defines one; 'genericdp suggest' writes rules"
        output.paragraph(f"no rule is in force: {survey.mistakes}" if survey.mistakes else why)
    overlaps = [
        (f"{overlap.winner}, not {' or '.join(overlap.losers)}", overlap.node)
        for overlap in inventory.overlaps
    ]
    conflicts = [
        (f"owned by {conflict.owner}, shared by {' and '.join(conflict.sharers)}", conflict.node)
        for conflict in inventory.conflicts
    ]
    refusals = [(f"{refusal.resource}: {refusal.reason}", refusal.node) for refusal in inventory.refusals]
    unsure = [("set an 'identity' that distinguishes them", id_) for id_ in inventory.unsure]
    _show_section(output, "Matched by several rules; the first in file order gets them:", overlaps)
    _show_section(output, "For one container at a time, and yet shared:", conflicts)
    _show_section(output, "Matched by a rule but not offered:", refusals)
    _show_section(output, "Told apart only by their order:", unsure)
    _show_section(
        output, "Paths, not physical units; udev does not know these device nodes:", bare_nodes(survey)
    )
    if everything:
        output.line()
        output.line(Styled("Not matched by any rule:", Style.STRONG))
        free = [
            (device.device_node or "", device.subsystem or "-", _about(device))
            for device in unclaimed(survey)
        ]
        output.table((), free, indent=2)


def _about(device: UdevDevice) -> str:
    return (device.refusal or "udev does not know it") if device.is_bare else identification(device)


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


def _about_links(survey: Survey, *, installed: bool) -> str:
    devices = [device for offer in survey.inventory.offers.values() for device in offer.devices]
    has_suffixes = any(
        node.link != device.id for device in devices for node in (*device.nodes, *device.shared)
    )
    suffix = ", plus the suffix in the LINK column" if has_suffixes else ""
    return f"Stable links{':' if installed else ' would be'} {survey.settings.link_dir}/DEVICE{suffix}."


def _advice(offer: Offer, survey: Survey, options: str) -> Iterator[Row]:
    """Where to look next when no device node matches the rule of a resource."""
    name = offer.resource.name
    has_lost = any(name in overlap.losers for overlap in survey.inventory.overlaps)
    has_refused = any(refusal.resource == name for refusal in survey.inventory.refusals)
    if not offer.devices and not has_lost and not has_refused:
        word = _word_for(offer, survey)
        yield Styled(f"    no device matches; 'genericdp explain{options} {word}' says what comes near")


def _word_for(offer: Offer, survey: Survey) -> str:
    """The short name of a resource, unless a device has the same name."""
    name = offer.resource.short_name
    is_device = any(name in (device.sys_name, device.devname) for device in survey.devices.values())
    return offer.resource.name if is_device else name


def _show_section(output: Output, title: str, entries: Iterable[tuple[str, str]]) -> None:
    """Entries are (text, device node). A text that several nodes share is printed once."""
    by_text: dict[str, list[str]] = {}
    for text, name in entries:
        by_text.setdefault(text, []).append(name)
    if by_text:
        output.line()
        output.line(Styled(title, Style.STRONG))
    for text, names in by_text.items():
        output.paragraph(f"  {text}")
        output.paragraph(f"    {', '.join(sorted(names, key=natural))}")


def _offer(offer: Offer) -> Iterator[Row]:
    yield Styled(f"{offer.resource.name}: {_summary(offer)}", Style.STRONG)
    for device in offer.devices:
        style = Style.GOOD if device.healthy else Style.BAD
        nodes = [(node.path, node.link.removeprefix(device.id)) for node in device.nodes]
        first, *more = nodes or [("-", "")]
        yield (device.id, Styled(device.health, style), *first)
        for path, link in more:
            yield ("", "", path, link)
        if device.reason:
            yield Styled(f"    {device.reason}", Style.BAD)
        elif offer.why_waiting(device):
            yield Styled(f"    new pods have to wait: {offer.why_waiting(device)}", Style.BAD)
    for node in offer.shared:
        yield (SHARED, "", node.path, node.link.removeprefix(SHARED))


def _summary(offer: Offer) -> str:
    count = len(offer.devices)
    if not count:
        return "no device"
    text = counted(count, "device")
    unhealthy = sum(not device.healthy for device in offer.devices)
    if unhealthy:
        text += f", {unhealthy} Unhealthy"
    if offer.resource.replicas is not None:
        text += f", for {offer.resource.replicas} containers each"
    return text


def unclaimed(survey: Survey) -> Sequence[UdevDevice]:
    """The device nodes that no rule matches, in the order of their names."""
    judged = ((node, survey.claims.judged(node)) for node in survey.nodes)
    free = [node for node, each in judged if not each.claims and not each.shares]
    return sorted(free, key=lambda device: natural(device.device_node or ""))


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
        "toldApartByOrder": list(inventory.unsure),
        "bareNodes": [{"node": path, "resource": name} for name, path in bare_nodes(survey)],
    }
    if everything:
        document["notTaken"] = [
            {
                "node": device.device_node,
                "subsystem": device.subsystem,
                "sysPath": device.sys_path,
                "reason": device.refusal,
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
