"""`genericdp monitor`: device events as they happen, and what the kubelet is told.

The rules of this file:

* The daemon reports what it saw and did. Without a daemon, without permission to ask it, or with other rules,
  an observer reports what the rules would do with each uevent and what a kubelet would be told.
* The first line says which of the two it is.
"""

import argparse
import io
import json as json_lines
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from genericdp.cli.options import add_json_option, add_rule_options, open_rules
from genericdp.cli.output import Output, Style, Styled, valid_in_json, wrap
from genericdp.core.status.wording import why_stop
from genericdp.core.words import counted
from genericdp.errors import GenericdpError
from genericdp.files.settings import read_settings
from genericdp.log_lines import rfc3339
from genericdp.status import client

#: The text of an event is not folded into fewer columns than this.
_NARROW = 20

Event = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show each uevent with the devices that it affects, what changes, and what the kubelet is told, one "
        "line each, until Ctrl-C. Asks the running daemon; without one, or with --rules, shows what the "
        "rules would do with this machine's uevents."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp monitor\n"
        "  genericdp monitor --touched           only uevents that affect a resource\n"
        "  genericdp monitor --rules my.toml     with rules that are not installed yet\n"
        "  genericdp monitor --json | jq -c 'select(.event == \"list\")'"
    )
    parser.add_argument(
        "--touched", action="store_true", help="leave out uevents that affect no device of a resource"
    )
    add_json_option(parser)
    add_rule_options(parser)


def run(*, touched: bool, json: bool, rules: list[str], config: str | None, domain: str | None) -> int:
    """Show events until Ctrl-C. Returns 1 for bad rules. Raises GenericdpError when the daemon ends."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    show = Show(Output(sys.stdout), json=json, touched=touched, folded=sys.stdout.isatty())
    if not rules and domain is None:
        settings, first = read_settings(config), dict[str, Any]()
        try:
            for event in client.events(settings):
                first = first or event
                with client.reading(first, settings):
                    show.event(event)
        except (client.NotRunningError, client.NotAllowedError) as error:
            print(f"genericdp: {error}; watching without it", file=sys.stderr)
        else:
            raise GenericdpError(
                "the daemon has ended the connection",
                hint="'genericdp status' shows whether it runs, 'journalctl -u genericdp' why it stopped; "
                "then run 'genericdp monitor' again",
            )
    return watch_alone(show.event, rules=rules, config=config, domain=domain)


class Show:
    """Events as they are shown.

    touched  uevents that touch nothing are left out
    folded   lines that do not fit the screen are folded; in a file, each event is one line
    """

    def __init__(self, output: Output, *, json: bool, touched: bool, folded: bool = False) -> None:
        self._output = output
        self._json = json
        self._touched = touched
        self._folded = folded

    def event(self, event: Event) -> None:
        """Show one."""
        if self._touched and event["event"] == "uevent" and not event["touched"]:
            return
        if self._json:
            print(json_lines.dumps(valid_in_json(event), sort_keys=True))
            return
        kind, words = words_of(event)
        if not words.text:
            return
        clock = datetime.fromisoformat(event["time"]).astimezone().strftime("%H:%M:%S.%f")[:-3]
        margin = f"{clock} {kind:<8} "
        room = max(_NARROW, self._output.width - len(margin))
        first, *more = wrap(words.text, room) if self._folded else [words.text]
        self._output.line(Styled(clock, Style.FAINT), margin[len(clock) :], Styled(first, words.style))
        for line in more:
            self._output.line(" " * len(margin), Styled(line, words.style))


def words_of(event: Event) -> tuple[str, Styled]:
    """An event for people: its kind and its text, which is "" for one that they need not see."""
    make = WORDS.get(event["event"])
    kind, words = make(event) if make is not None else (event["event"], "")
    return kind, words if isinstance(words, Styled) else Styled(words)


def _begin(event: Event) -> tuple[str, str]:
    if event["from"] == "rules":
        return "begin", "without the daemon: what the rules would do on this machine; Ctrl-C to stop"
    what = {"serving": "serves this node", "standing by": "stands by"}[event["state"]]
    return "begin", f"genericdp {event['version']} {what}; Ctrl-C to stop"


def _uevent(event: Event) -> tuple[str, Styled]:
    name = event["node"] or event["sysPath"].rpartition("/")[2]
    text = f"{event['action']} {event['subsystem']} {name}"
    if event["source"] == "kernel":
        text += " (from the kernel)"
    devices = event["touched"]
    if not devices:
        return "uevent", Styled(text, Style.FAINT)
    if len(devices) == 1:
        return "uevent", Styled(f"{text} -> {devices[0]['resource']} {devices[0]['device']}")
    resources = sorted({each["resource"] for each in devices})
    return "uevent", Styled(f"{text} -> {len(devices)} devices of {', '.join(resources)}")


def _change(event: Event) -> tuple[str, Styled]:
    fields = {name: value for name, value in event["fields"].items() if name not in ("resource", "id")}
    subject = " ".join(part for part in (event["resource"], event["device"]) if part)
    words = " ".join(f"{name}={value}" for name, value in fields.items())
    text = f"{subject}: {event['message']}" if subject else event["message"]
    style = Style.BAD if event["level"] == "warning" else Style.GOOD
    return "change", Styled(f"{text}{'; ' if words else ''}{words}", style)


def _list(event: Event) -> tuple[str, str]:
    told = "" if event["sent"] else "would be told "
    changes = [f"{each['device']} {each['health'] or 'gone'}" for each in event["changes"]]
    if event["moreChanges"]:
        changes.append(f"{event['moreChanges']} more")
    text = f"{told}{event['resource']}: {event['healthy']} of {event['ids']} Healthy"
    return "kubelet", f"{text}; {', '.join(changes)}" if changes else text


def _registration(event: Event) -> tuple[str, Styled]:
    if event["registered"]:
        return "kubelet", Styled(f"{event['resource']}: registered", Style.GOOD)
    if event["error"]:
        return "kubelet", Styled(f"{event['resource']}: {event['phase']}: {event['error']}", Style.BAD)
    return "kubelet", Styled(f"{event['resource']}: {event['phase']}")


def _kubelet(event: Event) -> tuple[str, Styled]:
    if event["there"]:
        return "kubelet", Styled("is up", Style.GOOD)
    return "kubelet", Styled("is down", Style.BAD)


def _allocation(event: Event) -> tuple[str, Styled]:
    more = [f"{event['moreIds']} more"] if event.get("moreIds") else []
    text = f"{event['resource']} {', '.join([*event['ids'], *more])}"
    if event["error"]:
        return "allocate", Styled(f"{text}: {event['error']}", Style.BAD)
    return "allocate", Styled(text)


def _stop(event: Event) -> tuple[str, Styled]:
    container = f"{event['namespace']}/{event['pod']} {event['container']}"
    text = f"{event['resource']} {event['device']}: container {container}"
    if event["error"]:
        return "stop", Styled(f"{text}: {event['error']}", Style.BAD)
    return "stop", Styled(f"{text} is stopped: {why_stop(event['cause'])}")


def _rules(event: Event) -> tuple[str, Styled]:
    text = f"reloaded: {counted(event['files'], 'file')}"
    if event["problems"]:
        return "rules", Styled(
            f"{text}, {counted(event['problems'], 'problem')}: see 'genericdp check'", Style.BAD
        )
    return "rules", Styled(text)


def _udev(event: Event) -> tuple[str, Styled]:
    if event["heard"]:
        return "udev", Styled("events arrive again", Style.GOOD)
    return "udev", Styled(f"no events: {event['reason']}", Style.BAD)


def _resync(event: Event) -> tuple[str, Styled]:
    return "udev", Styled(f"reading all devices again: {event['reason']}", Style.FAINT)


def _lost(event: Event) -> tuple[str, Styled]:
    return "lost", Styled(f"{event['count']} events were dropped: they came too fast to show", Style.BAD)


#: Kind of event -> its text, for people.
WORDS: dict[str, Callable[[Event], tuple[str, str | Styled]]] = {
    "begin": _begin,
    "uevent": _uevent,
    "change": _change,
    "list": _list,
    "registration": _registration,
    "kubelet": _kubelet,
    "allocation": _allocation,
    "stop": _stop,
    "rules": _rules,
    "udev": _udev,
    "resync": _resync,
    "lost": _lost,
}


def watch_alone(
    show: Callable[[Event], None], *, rules: list[str], config: str | None, domain: str | None
) -> int:
    """Show what the rules would do with this machine's uevents, until Ctrl-C. Returns 1 for bad rules."""
    settings, files = open_rules(rules, config, domain)
    for problem in files.problems:
        Output(sys.stderr).problem(problem)
    if any(problem.severity == "error" for problem in files.problems):
        return 1
    # Here and not above: neither the help nor the daemon's events need libudev.
    from genericdp.cli.observer import observe  # noqa: PLC0415

    def tell(event: Event) -> None:
        show({"time": rfc3339(time.time()), **event})

    observe(settings, files.resources, tell)
    return 0
