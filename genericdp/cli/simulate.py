"""`genericdp simulate`: the daemon itself, at a kubelet that is only simulated.

The rules of this file:

* The daemon is the very same; only the directories are others, so nothing outside them is touched.
* What is printed is what the kubelet and the container runtime made of what the daemon said.
"""

import argparse
import asyncio
import io
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from genericdp import log
from genericdp.cli.options import add_rule_options, open_rules, seconds
from genericdp.cli.output import Output, Style, Styled
from genericdp.cli.usage import UsageError
from genericdp.core.settings import LogFormat, Settings
from genericdp.core.source import nearest
from genericdp.daemon import Daemon
from genericdp.rulefiles import RuleFiles
from genericdp.simulator import CONTAINERD, CRIO, Container, DeviceNode, Kubelet, Phase, Pod, PodStatus

_RUNTIMES = {"containerd": CONTAINERD, "cri-o": CRIO}

#: How long registering may take before the table is shown without the rest, in seconds.
_PATIENCE_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run the daemon on this machine's devices against a simulated kubelet, and show what a node\n"
        "would offer, as it changes: plug something in, pull it out, edit a rule file. Ctrl-C ends it.\n"
        "Nothing of the machine is changed: sockets, links and memory are in a directory of their own."
    )
    parser.epilog = (
        "examples:\n"
        "  genericdp simulate --rules my.toml\n"
        "  genericdp simulate --rules my.toml --allocate ftdi=2    and what a pod gets\n"
        "  genericdp simulate --rules my.toml --for 5              end after five seconds"
    )
    parser.add_argument(
        "--allocate",
        metavar="NAME=COUNT",
        action="append",
        default=[],
        help="start a container that asks for this, and show what it gets; may be given several times",
    )
    parser.add_argument(
        "--runtime", choices=tuple(_RUNTIMES), default="containerd", help="the container runtime's ways"
    )
    parser.add_argument(
        "--for",
        dest="seconds",
        metavar="SECONDS",
        type=seconds,
        help="end after so long instead of at Ctrl-C",
    )
    add_rule_options(parser)


def run(
    *,
    allocate: list[str],
    runtime: str,
    seconds: float | None,
    rules: list[str],
    config: str | None,
    domain: str | None,
) -> int:
    """Simulate. Returns 0, or 1 when a container did not get what it asked for or a rule file is bad."""
    settings, rule_files = open_rules(rules, config, domain)
    wanted = [_parse_allocate(text, settings.domain) for text in allocate]
    log.configure(LogFormat.TEXT, "warning", stream=sys.stdout)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    output = Output(sys.stdout)
    for problem in rule_files.problems:
        output.problem(problem)
    root = tempfile.mkdtemp(prefix="gdp-")
    try:
        show = Show(output, _below(settings, root))
        fine = asyncio.run(show.run(rule_files, wanted, runtime, seconds))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0 if fine and not rule_files.problems else 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """A resource and how many devices of it a container asks for."""

    resource: str
    count: int


def _parse_allocate(text: str, domain: str) -> Wanted:
    name, separator, count = text.partition("=")
    if not name or (separator and not (count.isascii() and count.isdigit() and int(count) > 0)):
        raise UsageError(f"'{text}' is no NAME=COUNT", hint="for example --allocate ftdi=2")
    return Wanted(name if "/" in name else f"{domain}/{name}", int(count) if separator else 1)


def _below(settings: Settings, root: str) -> Settings:
    """The settings with every directory below `root`."""
    return replace(
        settings,
        kubelet_dir=f"{root}/device-plugins",
        pod_resources_socket=f"{root}/pod-resources/kubelet.sock",
        link_dir=f"{root}/links",
        state_dir=f"{root}/state",
        run_dir=f"{root}/run",
        metrics="",
    )


class Show:
    """One simulation, as it is shown."""

    def __init__(self, output: Output, settings: Settings) -> None:
        self.output = output
        self.settings = settings
        self._shown: dict[str, tuple[int, int]] = {}
        self._ended = asyncio.Event()

    async def run(
        self, rule_files: RuleFiles, wanted: Sequence[Wanted], runtime: str, seconds: float | None
    ) -> bool:
        """Show until Ctrl-C, or for so many seconds. Whether every container got what it wanted."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._ended.set)
        root = os.path.dirname(self.settings.kubelet_dir)
        async with Kubelet(root, runtime=_RUNTIMES[runtime]) as kubelet:
            daemon = Daemon(self.settings, rule_files)
            loop.add_signal_handler(signal.SIGHUP, daemon.reload)
            serving = asyncio.ensure_future(daemon.run())
            try:
                await self._until_registered(kubelet, daemon)
                self._show_node(kubelet)
                fine = [await self._allocate(kubelet, number, each) for number, each in enumerate(wanted, 1)]
                await self._follow(kubelet, serving, seconds)
            finally:
                daemon.stop()
                await serving
        return all(fine)

    async def _until_registered(self, kubelet: Kubelet, daemon: Daemon) -> None:
        names = {resource.name for resource in daemon.rules.resources}
        try:
            await kubelet.wait_until(lambda: names <= kubelet.capacity.keys(), timeout_s=_PATIENCE_S)
        except TimeoutError:
            missing = ", ".join(sorted(names - kubelet.capacity.keys()))
            self.output.paragraph(Styled(f"not registered: {missing}", Style.BAD))

    def _show_node(self, kubelet: Kubelet) -> None:
        self.output.line("The node offers:")
        self.output.line()
        rows = [
            (name, str(capacity), str(kubelet.allocatable.get(name, 0)))
            for name, capacity in sorted(kubelet.capacity.items())
        ]
        if rows:
            self.output.table(("RESOURCE", "CAPACITY", "ALLOCATABLE"), rows, indent=2)
        else:
            self.output.line("  nothing: no rule file names a resource")
        self.output.line()
        self._shown = _counts(kubelet)

    async def _allocate(self, kubelet: Kubelet, number: int, wanted: Wanted) -> bool:
        name = f"pod-{number}"
        asks = f"{name} asks for {wanted.resource}={wanted.count}: "
        if wanted.resource not in kubelet.capacity:
            # A kubelet would start it without a word; no scheduler would send it there.
            hint = nearest(wanted.resource, kubelet.capacity)
            outcome = f"Pending, the node does not offer it{hint and f'; {hint}'}"
            self.output.paragraph(asks, Styled(outcome, Style.BAD))
            self.output.line()
            return False
        container = Container("main", limits={wanted.resource: wanted.count})
        status = await kubelet.admit(Pod(name, [container]))
        fine = status.phase is Phase.RUNNING
        style = Style.GOOD if fine else Style.BAD
        self.output.paragraph(asks, Styled(_outcome(status), style))
        created = status.containers["main"].created
        if created is not None:
            self.output.line()
            rows = [row for node in created.nodes for row in _about(node)]
            rows += [
                ("mount", f"{mount.container_path}  from {mount.host_path}{' (read-only)' * mount.read_only}")
                for mount in created.mounts
            ]
            rows += [("env", f"{key}={value}") for key, value in sorted(created.envs.items())]
            rows += [("annotation", f"{key}={value}") for key, value in sorted(created.annotations.items())]
            rows += [("cdi", name) for name in created.cdi_devices]
            self.output.table((), rows, indent=2)
        self.output.line()
        return fine

    async def _follow(self, kubelet: Kubelet, serving: "asyncio.Future[None]", seconds: float | None) -> None:
        end = "Ctrl-C ends it" if seconds is None else f"It ends after {seconds:g} s"
        log.configure(LogFormat.TEXT, "info", stream=sys.stdout)
        self.output.paragraph(f"Plug something in, pull it out, edit a rule. {end}.")
        watching = asyncio.ensure_future(self._show_changes(kubelet))
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait(
                (watching, ended, serving), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (watching, ended):
                task.cancel()
            await asyncio.gather(watching, ended, return_exceptions=True)

    async def _show_changes(self, kubelet: Kubelet) -> None:
        while True:
            await kubelet.wait_until(lambda: _counts(kubelet) != self._shown, timeout_s=86400.0)
            before, self._shown = self._shown, _counts(kubelet)
            for name in sorted(before.keys() | self._shown.keys()):
                old, new = before.get(name, (0, 0)), self._shown.get(name, (0, 0))
                if old != new:
                    self.output.paragraph(
                        f"{name}: capacity {_change(old[0], new[0])}, allocatable {_change(old[1], new[1])}"
                    )


def _counts(kubelet: Kubelet) -> dict[str, tuple[int, int]]:
    return {name: (capacity, kubelet.allocatable.get(name, 0)) for name, capacity in kubelet.capacity.items()}


def _change(old: int, new: int) -> str:
    return f"{new}" if old == new else f"{old} -> {new}"


def _about(node: DeviceNode) -> Iterator[tuple[str, str]]:
    yield "device", f"{node.container_path}  {node.kind} {node.major}:{node.minor} {node.permissions}"
    yield "  from", f"{node.host_path} -> {node.source}"


def _outcome(status: PodStatus) -> str:
    if status.message:
        return f"{status.phase}, {status.message}"
    container = status.containers["main"]
    return str(status.phase) if not container.message else f"{status.phase}, {container.message}"
