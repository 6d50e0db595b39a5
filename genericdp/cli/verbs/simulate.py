"""`genericdp simulate`: the daemon itself, with a simulated kubelet."""

import argparse
import io
import sys

from genericdp import log
from genericdp.cli.options import add_rule_options, as_typed, open_rules, seconds
from genericdp.cli.output import Output
from genericdp.cli.usage import UsageError
from genericdp.core.rules.settings import LogFormat

#: Python converts no more than 4300 digits, and no node has that many devices.
_MOST_DIGITS = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run the daemon on this machine's devices with a simulated kubelet, and show what a node would "
        "offer. To see it change, plug or unplug a device, or edit a rule file. Ctrl-C or closing the "
        "terminal ends it. Nothing on the machine is changed: sockets, links and memory are in a temporary "
        "directory, and no USB device is reset. Exits with status 1 if a container does not get what it "
        "requests or a rule file has a mistake."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp simulate --rules my.toml\n"
        "  genericdp simulate --rules my.toml --allocate ftdi=2    and what a pod gets\n"
        "  genericdp simulate --rules my.toml --for 5              stop after 5 seconds\n"
        "  genericdp simulate --rules my.toml --allocate ftdi --json | jq .pods"
    )
    parser.add_argument(
        "--allocate",
        metavar="NAME=COUNT",
        action="append",
        default=[],
        help="start a container that requests this, and show what it gets; can be repeated",
    )
    parser.add_argument(
        "--runtime",
        choices=("containerd", "cri-o"),
        default="containerd",
        help="the container runtime to simulate",
    )
    parser.add_argument(
        "--for",
        dest="seconds",
        metavar="SECONDS",
        type=seconds,
        help="stop after this many seconds instead of at Ctrl-C",
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON, for programs, and exit as soon as the node is ready"
    )
    add_rule_options(parser)


def run(
    *,
    allocate: list[str],
    runtime: str,
    seconds: float | None,
    json: bool,
    rules: list[str],
    config: str | None,
    domain: str | None,
) -> int:
    """Simulate. Returns 0, or 1 when a container did not get what it requested or a rule file is bad."""
    if json and seconds is not None:
        raise UsageError("--json cannot be combined with --for", hint="it exits as soon as the node is ready")
    settings, rule_files = open_rules(rules, config, domain)
    requests = [_parse_allocate(text, settings.domain) for text in allocate]
    reports = sys.stderr if json else sys.stdout
    log.configure(LogFormat.TEXT, "warning", stream=reports)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    for problem in rule_files.problems:
        Output(reports).problem(problem)
    log.leave_out(problem.summary for problem in rule_files.problems)
    from genericdp.cli import dry_run  # noqa: PLC0415  (see the rules of that file)

    output = Output(sys.stdout)
    options = as_typed(rules, config, domain)
    all_run = dry_run.run(
        settings, rule_files, requests, runtime, output, json=json, seconds=seconds, options=options
    )
    return 0 if all_run and not rule_files.problems else 1


def _parse_allocate(text: str, domain: str) -> tuple[str, int]:
    """Full name of a resource and how many devices of it."""
    name, separator, count = text.partition("=")
    is_count = count.isascii() and count.isdigit() and len(count) <= _MOST_DIGITS and int(count) > 0
    if not name or (separator and not is_count):
        raise UsageError(f"'{text}' is not NAME=COUNT", hint="for example --allocate ftdi=2")
    return (name if "/" in name else f"{domain}/{name}"), int(count) if separator else 1
