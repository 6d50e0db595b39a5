"""`genericdp status`: what the daemon of this node serves, who holds it, what is wrong."""

import argparse
import io
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any

from genericdp.cli.options import add_config_option, add_json_option
from genericdp.cli.output import Output, Row, Style, Styled
from genericdp.cli.usage import UsageError
from genericdp.core.status.history import Retried
from genericdp.core.words import counted
from genericdp.errors import GenericdpError
from genericdp.files.settings import read_settings
from genericdp.status import client

#: How often `--watch` repeats, in seconds.
WATCH_S = 2.0

#: Control sequences (ECMA-48): go to the top; erase the rest of the line; erase the rest of the screen.
_TOP, _END_LINE, _ERASE_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"

Report = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Ask the daemon of this node for its state: which resources are registered with the kubelet, "
        "their devices, which containers hold them, the rules in effect, and recent warnings and "
        "errors. Exits with status 0 when all is well, and with 1 when something is wrong or no daemon "
        "answers."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp status\n"
        "  genericdp status --watch\n"
        "  genericdp status --quiet || logger --priority user.err 'look at genericdp'\n"
        "  genericdp status --json | jq -r '.complaints[]'"
    )
    parser.add_argument(
        "--watch", action="store_true", help=f"repeat every {WATCH_S:g} seconds, on a terminal"
    )
    parser.add_argument("--quiet", action="store_true", help="print only what is wrong")
    add_json_option(parser)
    add_config_option(parser)


def run(*, watch: bool, quiet: bool, json: bool, config: str | None) -> int:
    """Print the report. Returns 0 when all is well, else 1. Raises GenericdpError without an answer."""
    settings = read_settings(config)
    if watch:
        if json or quiet or not sys.stdout.isatty():
            raise UsageError(
                "--watch needs a terminal and cannot be combined with --json or --quiet",
                hint="programs can follow changes with 'genericdp monitor --json'",
            )
        while True:
            try:
                report = client.status(settings)
                with client.reading(report, settings):
                    text = _screen(report)
            except GenericdpError as error:
                text = f"{error}\n  hint: {error.hint}\n"
            _show_screen(text)
            time.sleep(WATCH_S)
    report = client.status(settings)
    output = Output(sys.stdout)
    with client.reading(report, settings):
        if json:
            output.json(report)
        elif quiet:
            for complaint in report["complaints"]:
                output.paragraph(complaint)
        else:
            show(report, output)
        return 0 if report["well"] else 1


class _Screen(io.StringIO):
    """What a terminal will show."""

    def isatty(self) -> bool:
        return True


def _screen(report: Report) -> str:
    screen = _Screen()
    show(report, Output(screen))
    return screen.getvalue()


def _show_screen(text: str) -> None:
    """As much of the text as the terminal has room for, from its top."""
    lines = text.splitlines()
    room = shutil.get_terminal_size().lines - 2
    if len(lines) > room:
        left = len(lines) - room + 1
        lines = [*lines[: room - 1], f"… and {left} more lines: 'genericdp status' shows all"]
    end = f"Updated every {WATCH_S:g} s; Ctrl-C to stop."
    # Overwriting avoids flicker, and keeps what is above within reach of scrolling.
    shown = "".join(f"{line}{_END_LINE}\n" for line in (*lines, "", end))
    sys.stdout.write(_TOP + shown.removesuffix("\n") + _ERASE_BELOW)
    sys.stdout.flush()


def show(report: Report, output: Output) -> None:
    """The report for people."""
    _show_state(report, output)
    resources = report["resources"]
    rows = [row for resource in resources for row in _resource(resource, report)]
    if rows:
        output.line()
        more = ", plus the suffix in the LINK column" if _show_devices(rows, output) else ""
        if any(resource["devices"] for resource in resources):
            output.line()
            output.line(f"Stable links: {report['linkDirectory']}/DEVICE{more}.")
    elif report["state"] == "serving":
        output.line()
        output.line("no resources: no rule file defines one")
    _show_files(report, output)
    if report["notOffered"]:
        output.line()
        output.line(Styled("Matched by a rule but not offered:", Style.STRONG))
        for refusal in report["notOffered"]:
            output.paragraph(f"  {refusal['node']}: {refusal['resource']}: {refusal['reason']}")
    if report["said"]:
        output.line()
        output.line(Styled("Warnings and errors, latest first:", Style.STRONG))
        output.table((), [_logged(entry, report["time"]) for entry in report["said"]], indent=2)


def _show_state(report: Report, output: Output) -> None:
    what = "serves this node"
    if report["standingByFor"]:
        what = f"stands by while {report['standingByFor']} serves this node"
    age = _age(report["since"], report["time"])
    output.paragraph(f"genericdp {report['version']} {what}; up for {age} as process {report['pid']}")
    if report["well"]:
        output.line(Styled("All is well.", Style.GOOD))
    for complaint in report["complaints"]:
        output.paragraph(Styled(f"- {complaint}", Style.BAD))
    if report["state"] == "serving":
        output.line()
        output.table((), list(_surroundings(report)), indent=2)


def _surroundings(report: Report) -> Iterator[Row]:
    now = report["time"]
    kubelet, udev, pods = report["kubelet"], report["udev"], report["podResources"]
    age = _age(kubelet["since"], now)
    if kubelet["there"]:
        yield ("kubelet", Styled(f"up for {age}", Style.GOOD))
    elif kubelet.get("servedByAnother"):
        yield ("kubelet", Styled("served by another genericdp; waiting until it ends", Style.BAD))
    else:
        yield ("kubelet", Styled(f"down for {age}; waiting for it in {kubelet['directory']}", Style.BAD))
    age = _age(udev["since"], now)
    if udev["heard"]:
        yield ("udev", Styled(f"receiving events for {age}", Style.GOOD))
    else:
        yield ("udev", Styled(f"not receiving events for {age}: {udev['reason']}", Style.BAD))
    if pods["answers"] and kubelet["there"] and not pods.get("complete", True):
        yield ("pods", Styled("the kubelet has just started and may not know all of them yet", Style.NOTE))
    elif pods["answers"]:
        yield ("pods", Styled("known from the kubelet", Style.GOOD))
    else:
        yield ("pods", Styled(f"unknown: no answer on {pods['socket']}", Style.NOTE))
    returning = report.get("returning", ())
    if returning:
        left = max(device["leftSeconds"] for device in returning)
        names = ", ".join(device["id"] for device in returning)
        waiting = f"the kubelet waits up to {left} s more for {names}, there before the reboot"
        yield ("boot", Styled(waiting, Style.NOTE))
    for failing in report.get("failing", ()):
        hint = f": {failing['hint']}" if failing["hint"] else ""
        age = _age(failing["since"], now)
        state = f"failing for {age}, and tried again"
        if failing["what"] == Retried.COLDPLUG:
            # Nothing here can try it.
            state = f"udevd has not looked at most devices for {age}"
        yield (failing["what"], Styled(f"{state}{hint}", Style.BAD))


def _show_devices(rows: Sequence[Row], output: Output) -> bool:
    """Show the table. Returns whether it has a column of links, which is left out if all are empty."""
    headings = ["DEVICE", "HEALTH", "FOR", "NODE", "LINK", "HELD BY"]
    at = headings.index("LINK")
    with_links = any(row[at] for row in rows if not isinstance(row, Styled))
    if not with_links:
        headings.pop(at)
        rows = [row if isinstance(row, Styled) else (*row[:at], *row[at + 1 :]) for row in rows]
    output.table(headings, rows, indent=2)
    return with_links


def _resource(resource: Mapping[str, Any], report: Report) -> Iterator[Row]:
    age = _age(resource["since"], report["time"])
    known = f"registered for {age}" if resource["registered"] else resource["phase"] or "not registered"
    if resource["error"] and not resource["registered"]:
        known += f": {resource['error']}"
    style = Style.STRONG if resource["registered"] else Style.BAD
    yield Styled(f"{resource['name']}: {known}; {_devices(resource)}", style)
    if resource.get("whyNotCdi"):
        why = f'answer = "auto" falls back to device nodes: {resource["whyNotCdi"]}'
        yield Styled(f"    {why}", Style.NOTE)
    for other in resource.get("otherClients", ()):
        who = other["userAgent"] or "a client without a name"
        yield Styled(f"    also followed by {who} ({counted(other['streams'], 'stream')})", Style.NOTE)
    for device in resource["devices"]:
        yield from _device(device, report)


def _devices(resource: Mapping[str, Any]) -> str:
    count = len(resource["devices"])
    text = counted(count, "device") if count else "no device"
    unhealthy = sum(device["health"] != "Healthy" for device in resource["devices"])
    if unhealthy:
        text += f", {unhealthy} Unhealthy"
    if resource["replicas"] > 1:
        text += f", for {resource['replicas']} containers each"
    return text


def _device(device: Mapping[str, Any], report: Report) -> Iterator[Row]:
    plain = f"{report['linkDirectory']}/{device['id']}"
    nodes = [
        (node["path"] if node["present"] else f"was {node['path']}", node["link"].removeprefix(plain))
        for node in device["nodes"]
    ]
    style = Style.GOOD if device["health"] == "Healthy" else Style.BAD
    first: tuple[str | Styled, ...] = (
        device["id"],
        Styled(device["health"], style),
        _age(device["since"], report["time"]),
    )
    for node, holder in zip_longest(nodes or [("-", "")], _holders(device, report)):
        yield (*first, *(node or ("", "")), holder or "")
        first = ("", "", "")
    if device["reason"]:
        yield Styled(f"    {device['reason']}", Style.BAD)
    elif device.get("waiting"):
        yield Styled(f"    new pods have to wait: {device['waiting']}", Style.BAD)


def _holders(device: Mapping[str, Any], report: Report) -> Sequence[str]:
    if not report["podResources"]["answers"]:
        return ["?"]
    held = [f"{each['namespace']}/{each['pod']}/{each['container']}" for each in device["heldBy"]]
    return held or ["-"]


def _show_files(report: Report, output: Output) -> None:
    files = report["rules"]["files"]
    if not files:
        return
    output.line()
    output.line(Styled("Rule files, each with the version in effect:", Style.STRONG))
    output.table((), [_file(file, report["time"]) for file in files], indent=2)


def _file(file: Mapping[str, Any], now: str) -> Row:
    if not file["digest"]:
        return (file["path"], Styled("none", Style.BAD), "has a problem")
    age = f"for {_age(file['since'], now)}"
    if file["outdated"]:
        return (file["path"], file["digest"], Styled(f"{age}; now has a problem", Style.BAD))
    return (file["path"], file["digest"], age)


def _logged(entry: Mapping[str, Any], now: str) -> Row:
    words = " ".join(f"{name}={value}" for name, value in entry["fields"].items() if name != "hint")
    times = f" ({entry['count']} times)" if entry["count"] > 1 else ""
    style = Style.BAD if entry["level"] == "error" else Style.NOTE
    age = f"{_age(entry['time'], now)} ago"
    return (age, Styled(f"{entry['message']}{': ' if words else ''}{words}{times}", style))


def _age(since: str | None, now: str) -> str:
    """How long ago, in the largest unit that is precise enough."""
    if since is None:
        return "-"
    seconds = _seconds(since, now)
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _seconds(since: str, now: str) -> float:
    return (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
