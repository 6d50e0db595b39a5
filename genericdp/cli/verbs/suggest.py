"""`genericdp suggest DEVICE`: the rule for a device, ready to be saved."""

import argparse
import sys
from collections.abc import Iterator

from genericdp.cli.find import find, nodes_below
from genericdp.cli.options import add_json_option, add_rule_options
from genericdp.cli.output import Output, Style, Styled
from genericdp.cli.survey import Machine, look
from genericdp.cli.usage import UsageError
from genericdp.core.device import UdevDevice
from genericdp.core.hostile import for_terminal
from genericdp.core.suggest.siblings import together
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import Present, Suggestion, suggest
from genericdp.core.suggest.title import taken_by
from genericdp.errors import GenericdpError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the smallest rule that takes a device and no other that is present, with the reasons "
        "for it as comments. All nodes of a composite device (a modem's ports, the nodes of a sound "
        "card) make one device. What is printed is a whole rule file. Needs neither the daemon nor "
        "root."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp suggest /dev/ttyUSB0\n"
        "  genericdp suggest /dev/ttyUSB0 > /etc/genericdp/rules.d/50-meter.toml\n"
        "  genericdp suggest --node /dev/ttyUSB2   one port of a modem, by itself\n"
        "  genericdp suggest 1-2                   what the USB device at port 2 brings\n"
        "  genericdp suggest --all                 a beginning for all that no rule takes"
    )
    parser.add_argument(
        "device", metavar="DEVICE", nargs="?", help="a path below /dev or /sys, or a kernel name"
    )
    parser.add_argument("--all", action="store_true", help="rules for everything that no rule takes yet")
    parser.add_argument(
        "--node",
        action="store_true",
        help="a rule for this device node alone, not for all that belongs to it",
    )
    add_json_option(parser)
    add_rule_options(parser)


def run(
    *,
    device: str | None,
    all: bool,  # noqa: A002  (an option's name)
    node: bool,
    json: bool,
    rules: list[str],
    config: str | None,
    domain: str | None,
) -> int:
    """Print the rule. Returns 0, or 1 when something is wrong with the rule files."""
    if all is (device is not None) or (all and node):
        raise UsageError(
            "suggest takes a DEVICE or --all", hint="'genericdp list --all' shows what no rule takes"
        )
    machine = look(rules=rules, config=config, domain=domain)
    output = Output(sys.stdout)
    present = Present(machine.devices, machine.settings.domain)
    if device is None:
        document = starter(present, machine.claims)
        show(document.text, output) if not json else output.json({"text": document.text})
        return machine.say_reservations(Output(sys.stderr))
    suggestion = suggest(
        subject(device, machine), present, taken=taken_by(machine.claims.resources), by_itself=node
    )
    if json:
        output.json(as_json(suggestion, machine))
    else:
        show(suggestion.text, output)
    for remark in remarks(suggestion, machine):
        Output(sys.stderr).paragraph(f"note: {remark}")
    return machine.say_reservations(Output(sys.stderr))


def subject(word: str, machine: Machine) -> UdevDevice:
    """The device node that somebody means by `word`. Raises GenericdpError.

    A USB device, or anything else that has no node of its own, means the nodes that it brings.
    """
    device = find(word, machine.devices, machine.settings.link_dir)
    named_by_node = device.device_node is not None and (device.usb_device is not device or "bus/usb/" in word)
    if named_by_node:
        return device
    nodes = [
        each
        for path in nodes_below(device.sys_path, machine.devices.values())
        for each in machine.devices.values()
        if each.device_node == path
    ]
    if device.device_node is not None and not any(each.usb_device is device for each in nodes):
        return device
    own = [each for each in nodes if device.device_node is None or each.usb_device is device]
    if not own or len(together(own[0], own).nodes) != len(own):
        raise GenericdpError(
            f"'{for_terminal(word)}' is not a device node, and has several devices below it",
            hint=f"name one of them: {', '.join(each.device_node or '' for each in own)}",
        )
    return own[0]


def show(text: str, output: Output) -> None:
    """A rule file, its comments fainter than its rules."""
    for line in text.splitlines():
        output.line(Styled(line, Style.FAINT) if line.startswith("#") else line)


def remarks(suggestion: Suggestion, machine: Machine) -> Iterator[str]:
    """What rules that are there already have to do with it."""
    takers: dict[str, list[str]] = {}
    for node in suggestion.group.nodes:
        for claim in machine.claims.on(node)[:1]:
            takers.setdefault(claim.resource.name, []).append(node.device_node or "")
    for name, paths in takers.items():
        yield (
            f"{', '.join(paths)} goes to {name} already; where two rules take a node, the first in file "
            "order has it"
        )


def as_json(suggestion: Suggestion, machine: Machine) -> dict[str, object]:
    """The suggestion for programs. Keys are only ever added."""
    return {
        "resource": f"{suggestion.domain}/{suggestion.name}",
        "file": suggestion.file,
        "text": suggestion.text,
        "nodes": list(suggestion.group.paths),
        "groupBy": suggestion.group.group_by,
        "knownBy": str(suggestion.by),
        "rivals": list(suggestion.rivals),
        "reasons": list(suggestion.reasons),
        "remarks": list(remarks(suggestion, machine)),
    }
