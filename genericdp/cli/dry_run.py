"""A simulation as it runs: the daemon, a kubelet, pods that ask for something, and what is said of them.

The rules of this file:

* The daemon is the very same; only the directories are others, so nothing outside them is touched.
* What is printed is what the kubelet and the container runtime made of what the daemon said.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from genericdp import log
from genericdp.cli.output import Output, Style, Styled
from genericdp.core.reading.source import nearest
from genericdp.core.rules.settings import LogFormat, Settings
from genericdp.daemon import Daemon
from genericdp.files.rulefiles import RuleFiles
from genericdp.simulator import (
    CONTAINERD,
    CRIO,
    Container,
    CreatedContainer,
    DeviceNode,
    Kubelet,
    Phase,
    Pod,
    PodStatus,
)

_RUNTIMES = {"containerd": CONTAINERD, "cri-o": CRIO}

#: How long registering may take before the table is shown without the rest, in seconds.
_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """A resource and how many devices of it a container asks for."""

    resource: str
    count: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a pod that asked for something. `created` is its container, if there is one."""

    pod: str
    wanted: Wanted
    phase: Phase
    message: str = ""
    created: CreatedContainer | None = None

    @property
    def fine(self) -> bool:
        return self.phase is Phase.RUNNING


class Simulation:
    """One simulation. With `json`, one document at its beginning, which is its end too."""

    def __init__(self, output: Output, settings: Settings, *, json: bool = False) -> None:
        self.output = output
        self.settings = settings
        self._json = json
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
                missing = await self._until_registered(kubelet, daemon)
                if self._json:
                    answers = [await ask(kubelet, *each) for each in enumerate(wanted, 1)]
                    self.output.json(as_json(kubelet, missing, answers))
                else:
                    self._show_node(kubelet, missing)
                    answers = [self._show_answer(await ask(kubelet, *each)) for each in enumerate(wanted, 1)]
                    await self._follow(kubelet, serving, seconds)
            finally:
                daemon.stop()
                await serving
        return all(answer.fine for answer in answers)

    async def _until_registered(self, kubelet: Kubelet, daemon: Daemon) -> list[str]:
        """Waits for all resources, but not for ever; those that are not registered then."""
        names = {resource.name for resource in daemon.rules.resources}
        try:
            await kubelet.wait_until(lambda: names <= kubelet.capacity.keys(), timeout_s=_PATIENCE_S)
        except TimeoutError:
            return sorted(names - kubelet.capacity.keys())
        return []

    def _show_node(self, kubelet: Kubelet, missing: Sequence[str]) -> None:
        if missing:
            self.output.paragraph(Styled(f"not registered: {', '.join(missing)}", Style.BAD))
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

    def _show_answer(self, answer: Answer) -> Answer:
        outcome = f"{answer.phase}, {answer.message}" if answer.message else str(answer.phase)
        asks = f"{answer.pod} asks for {answer.wanted.resource}={answer.wanted.count}: "
        self.output.paragraph(asks, Styled(outcome, Style.GOOD if answer.fine else Style.BAD))
        created = answer.created
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
        return answer

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


async def ask(kubelet: Kubelet, number: int, wanted: Wanted) -> Answer:
    """Let a pod ask for something."""
    name = f"pod-{number}"
    if wanted.resource not in kubelet.capacity:
        # A kubelet would start it without a word; no scheduler would send it there.
        hint = nearest(wanted.resource, kubelet.capacity)
        message = f"the node does not offer it{hint and f'; {hint}'}"
        return Answer(name, wanted, Phase.PENDING, message)
    container = Container("main", limits={wanted.resource: wanted.count})
    status = await kubelet.admit(Pod(name, [container]))
    return Answer(name, wanted, status.phase, _message(status), status.containers["main"].created)


def _message(status: PodStatus) -> str:
    return status.message or status.containers["main"].message


def as_json(kubelet: Kubelet, missing: Sequence[str], answers: Sequence[Answer]) -> dict[str, object]:
    """The node and its pods for programs. Keys are only ever added."""
    return {
        "resources": [
            {"name": name, "capacity": capacity, "allocatable": kubelet.allocatable.get(name, 0)}
            for name, capacity in sorted(kubelet.capacity.items())
        ],
        "notRegistered": list(missing),
        "pods": [
            {
                "name": answer.pod,
                "resource": answer.wanted.resource,
                "count": answer.wanted.count,
                "phase": str(answer.phase),
                "message": answer.message,
                "container": None if answer.created is None else _container_json(answer.created),
            }
            for answer in answers
        ],
    }


def _container_json(created: CreatedContainer) -> dict[str, object]:
    return {
        "devices": [
            {
                "containerPath": node.container_path,
                "hostPath": node.host_path,
                "node": node.source,
                "number": f"{node.kind} {node.major}:{node.minor}",
                "permissions": node.permissions,
            }
            for node in created.nodes
        ],
        "mounts": [
            {
                "containerPath": mount.container_path,
                "hostPath": mount.host_path,
                "readOnly": mount.read_only,
            }
            for mount in created.mounts
        ],
        "envs": dict(created.envs),
        "annotations": dict(created.annotations),
        "cdiDevices": list(created.cdi_devices),
    }
