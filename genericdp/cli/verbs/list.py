"""`genericdp list`: every device that a rule matches, and why others are not offered."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from genericdp.cli.find import ONLY_NODES, kind_without_node
from genericdp.cli.options import add_json_option, add_rule_options, are_all_rules, as_typed
from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.cli.survey import look, show_reservations
from genericdp.cli.text.inventory import as_json, bare_nodes, unclaimed
from genericdp.cli.usage import UsageError
from genericdp.core.device import UdevDevice
from genericdp.core.explain.model import driver_and_address, identification
from genericdp.core.explain.selection import Selection, narrowed, why_left_out
from genericdp.core.explain.survey import Survey
from genericdp.core.hostile import for_terminal
from genericdp.core.inventory.identity import natural
from genericdp.core.inventory.inventory import ORPHANS
from genericdp.core.inventory.offer import Offer
from genericdp.core.inventory.shared import SHARED
from genericdp.core.rules.node_names import ALL_NAMES, NO_NAMES
from genericdp.core.words import counted
from genericdp.files.rulefiles import RULE_DIRECTORIES

_INSTEAD_OF_ORDER = (
    "set an 'identity' that distinguishes them, or write a resource for each: 'genericdp suggest --node "
    "NODE' finds what else does, if anything"
)


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
        "  genericdp list --all camera        what has this in its name\n"
        "  genericdp list --all --subsystem tty\n"
        "  genericdp list --json | jq -r '.resources[].devices[].id'"
    )
    parser.add_argument(
        "words",
        metavar="WORD",
        nargs="*",
        help="only what each of the words is a part of: of a path, name, maker, driver or resource",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also the device nodes that no rule matches, unless no pod asks for such",
    )
    parser.add_argument(
        "--subsystem",
        metavar="SUBSYSTEM",
        action="append",
        default=[],
        help="only device nodes of this subsystem; can be repeated",
    )
    add_json_option(parser)
    add_rule_options(parser)


def run(
    *,
    words: list[str],
    all: bool,  # noqa: A002  (an option's name)
    subsystem: list[str],
    json: bool,
    rules: list[str],
    config: str | None,
    domain: str | None,
) -> int:
    """Print the list. Returns 0, or 1 when something is wrong with the rule files."""
    for word in words:
        if word.endswith(".toml"):
            name = for_terminal(word)
            raise UsageError(f"unexpected argument '{name}'", hint=f"did you mean --rules {name}?")
    are_all = are_all_rules(rules)
    survey = look(rules=rules, config=config, domain=domain, shown=ALL_NAMES if all else NO_NAMES)
    selection = Selection(tuple(words), tuple(subsystem))
    selected = narrowed(survey, selection)
    output = Output(sys.stdout)
    if json:
        output.json(as_json(selected, everything=all))
    elif selection and not has_any(selected, everything=all, are_all=are_all):
        output.paragraph(_nothing(selection, everything=all))
    else:
        show(
            selected,
            output,
            everything=all,
            selected=bool(selection),
            installed={*rules} <= {*RULE_DIRECTORIES},
            are_all=are_all,
            options=as_typed(rules, config, domain),
        )
    return show_reservations(survey, Output(sys.stderr))


def has_any(survey: Survey, *, everything: bool, are_all: bool) -> bool:
    """Whether anything of the survey is listed."""
    inventory = survey.inventory
    return bool(inventory.offers or (are_all and inventory.orphans) or (everything and unclaimed(survey)))


def _nothing(selection: Selection, *, everything: bool) -> str:
    for word in selection.words:
        if kind := kind_without_node(word):
            return f"'{for_terminal(word)}' is a {kind}; {ONLY_NODES}"
    if everything:
        return f"no device node of this machine matches {selection}"
    return (
        f"no device that a rule matches is found by {selection}; --all looks at the other device nodes, too"
    )


def show(
    survey: Survey,
    output: Output,
    *,
    everything: bool = False,
    selected: bool = False,
    installed: bool = True,
    are_all: bool = True,
    options: str = "",
) -> None:
    """The list for people.

    selected   the survey is narrowed to what somebody asked for: then nothing is left out of it
    installed  these are the rules that the daemon reads
    are_all    these are all of this machine's rules: only then can a resource be called missing
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
    if not rows and not selected:
        why = "no resources: no rule file defines one; 'genericdp suggest' writes rules"
        output.paragraph(f"no rule file can be used: {survey.mistakes}" if survey.mistakes else why)
    overlaps = [
        (f"{overlap.winner}, not {' or '.join(overlap.losers)}", overlap.node)
        for overlap in inventory.overlaps
    ]
    conflicts = [
        (f"owned by {conflict.owner}, shared by {' and '.join(conflict.sharers)}", conflict.node)
        for conflict in inventory.conflicts
    ]
    refusals = [(f"{refusal.resource}: {refusal.reason}", refusal.node) for refusal in inventory.refusals]
    unsure = [(_INSTEAD_OF_ORDER, id_) for id_ in inventory.unsure]
    _show_section(output, "Matched by several rules; the first in file order gets them:", overlaps)
    _show_section(output, "For one container at a time, and yet shared:", conflicts)
    _show_section(output, "Matched by a rule but not offered:", refusals)
    _show_section(output, "Only the order of the device nodes decides which has which id:", unsure)
    _show_section(
        output, "Paths, not physical units; udev does not know these device nodes:", bare_nodes(survey)
    )
    if are_all and inventory.orphans:
        orphans = [(orphan.resource, orphan.id) for orphan in inventory.orphans]
        _show_section(output, ORPHANS, orphans)
    if everything:
        if rows or not selected:
            output.line()
        _show_unclaimed(unclaimed(survey), output, selected=selected)


def _show_unclaimed(nodes: Sequence[UdevDevice], output: Output, *, selected: bool) -> None:
    left_out = Counter(kind for node in nodes if (kind := why_left_out(node)) and not selected)
    shown = [node for node in nodes if selected or not why_left_out(node)]
    if shown or not selected:
        output.line(Styled("Not matched by any rule:", Style.STRONG))
    rows = [(node.device_node or "", node.subsystem or "-", _about(node)) for node in shown]
    output.table((), rows, indent=2)
    if left_out:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in left_out.most_common())
        output.line()
        output.paragraph(f"Left out: {kinds}. 'genericdp list --all /dev' shows them.")


def _about(device: UdevDevice) -> str:
    if device.is_bare:
        return device.refusal or "udev does not know it"
    return identification(device) or driver_and_address(device)


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
        yield Styled(f"    no device matches; 'genericdp explain{options} {word}' shows close matches")


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
        output.paragraph(Styled(title, Style.STRONG))
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
