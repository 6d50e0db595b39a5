"""`genericdp suggest DEVICE`: a rule for a device, ready to be saved."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from genericdp.cli.find import bare_node, find
from genericdp.cli.options import add_json_option, add_rule_options
from genericdp.cli.output import Output, Style, Styled
from genericdp.cli.survey import look, show_reservations
from genericdp.cli.usage import UsageError
from genericdp.core.device import UdevDevice
from genericdp.core.hostile import for_terminal
from genericdp.core.rules.node_names import NO_NAMES, names_of
from genericdp.core.suggest.present import Present
from genericdp.core.suggest.reasons import Drivers, drivers_without_node
from genericdp.core.suggest.rule_text import match_lines
from genericdp.core.suggest.starter import starter
from genericdp.core.suggest.suggestion import Suggestion, suggest
from genericdp.core.suggest.title import taken_by
from genericdp.core.suggest.units.companions import BARE_COMPANIONS
from genericdp.core.suggest.units.siblings import subject_of
from genericdp.errors import Problem


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the smallest rule that matches a device and no other that is present, with the reasons "
        "as comments. All nodes of a composite device (a modem's ports, the nodes of a sound card) "
        "form one device; matches for parts of it stand below the rule as comments. Of a camera, the stream "
        "that was named, or else the first one with colours, is the device. A disk, a partition, a slot of a "
        "card reader and a port of a serial adapter are each a device. The output is a complete rule file. "
        "Needs neither the daemon nor root."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp suggest /dev/ttyUSB0\n"
        "  genericdp suggest /dev/ttyUSB0 > /etc/genericdp/rules.d/50-meter.toml\n"
        "  genericdp suggest --node /dev/ttyUSB2   a single port of a modem\n"
        "  genericdp suggest 1-2                   the USB device at port 2\n"
        "  genericdp suggest --all                 a draft for all that no rule matches"
    )
    parser.add_argument(
        "device", metavar="DEVICE", nargs="?", help="a path below /dev or /sys, or a kernel name"
    )
    parser.add_argument("--all", action="store_true", help="rules for everything that no rule matches yet")
    parser.add_argument(
        "--node",
        action="store_true",
        help="a rule for this device node alone, not for the whole device",
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
    if all and device is not None:
        raise UsageError(
            "suggest takes only one of DEVICE and --all",
            hint=f"leave out --all, or '{for_terminal(device)}'",
        )
    if all and node:
        raise UsageError("suggest takes only one of --node and --all", hint="leave out --node, or --all")
    if not all and device is None:
        raise UsageError(
            "suggest needs a DEVICE or --all", hint="'genericdp list --all' shows what no rule matches"
        )
    shown = NO_NAMES if device is None else bare_node(device) | names_of(BARE_COMPANIONS)
    survey = look(rules=rules, config=config, domain=domain, shown=shown)
    survey = replace(survey, problems=tuple(_not_of_its_own_file(survey.problems)))
    output = Output(sys.stdout)
    present = Present(survey.devices, survey.settings.domain)
    if device is None:
        document = starter(present, survey.resources, survey.claims)
        show(document.text, output) if not json else output.json({"text": document.text})
        return show_reservations(survey, Output(sys.stderr))
    found = find(device, survey.devices, survey.settings.link_dir)
    subject = subject_of(found, device, survey.nodes)
    suggestion = suggest(subject, present, taken=taken_by(survey.resources), by_itself=node)
    if subject.usb_device is subject:
        suggestion = replace(suggestion, drivers=drivers_without_node(_drivers_of(subject), survey.nodes))
    remarks = suggestion.remarks(survey.claims)
    if json:
        output.json(as_json(suggestion, remarks))
    else:
        show(suggestion.text, output)
    for remark in remarks:
        Output(sys.stderr).paragraph(f"note: {remark}")
    return show_reservations(survey, Output(sys.stderr))


def _drivers_of(usb: UdevDevice) -> Drivers:
    """The drivers of the kernel that have an interface of a USB device."""
    # Here and not above: other verbs run on machines without libudev.
    from genericdp.udev.sysfs import drivers_below  # noqa: PLC0415

    return tuple(drivers_below(usb.sys_path))


def _not_of_its_own_file(problems: Sequence[Problem]) -> Iterator[Problem]:
    """The problems of files that are not empty.

    An empty one is only being written: the shell opens FILE before it runs `suggest DEVICE > FILE`.
    """
    for problem in problems:
        try:
            is_empty = os.path.getsize(problem.location.file) == 0
        except OSError:
            is_empty = False
        if not is_empty:
            yield problem


def show(text: str, output: Output) -> None:
    """A rule file, with its comments fainter than its rules."""
    for line in text.splitlines():
        output.line(Styled(line, Style.FAINT) if line.startswith("#") else line)


def as_json(suggestion: Suggestion, remarks: Sequence[str]) -> dict[str, object]:
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
        "remarks": list(remarks),
        "furtherNodes": list(suggestion.rest),
        "alternatives": [
            {
                "nodes": list(each.paths),
                "about": each.about,
                "groupBy": each.group_by or suggestion.group.group_by,
                "match": "\n".join(match_lines(each.conditions)),
            }
            for each in suggestion.instead
        ],
    }
