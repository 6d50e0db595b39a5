"""A dry run: the daemon with a simulated kubelet.

The rules of this file:

* The daemon is the real one, but has its own directories. Nothing outside them is touched, and no USB device
  is reset: a running container may use it.
* It is imported only when it is run: it loads gRPC, and help must not wait for that.
* What is printed is what the kubelet and the container runtime made of the daemon's answers.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace

from genericdp import log
from genericdp.cli import loop
from genericdp.cli.output import Output
from genericdp.cli.text import dry_run as text
from genericdp.cli.text.dry_run import Outcome, Request
from genericdp.core.hostile import for_terminal
from genericdp.core.limits import SOCKET_PATH_LIMIT
from genericdp.core.rules.settings import LogFormat, Settings
from genericdp.core.words import nearest
from genericdp.daemon import Daemon
from genericdp.errors import GenericdpError
from genericdp.files.rulefiles import RuleFiles
from genericdp.inputs import Devices
from genericdp.kubelet.endpoints import fresh_name
from genericdp.simulator import CONTAINERD, CRIO, Container, Kubelet, Phase, Pod
from genericdp.usb import node_of

_RUNTIMES = {"containerd": CONTAINERD, "cri-o": CRIO}

#: The directory of a dry run, in the temporary directory; the simulated kubelet's sockets in it.
_PREFIX, _KUBELET_DIR = "gdp-", "device-plugins"

#: How long registering may take before the table is shown without the rest, in seconds.
_PATIENCE_S = 10.0


def run(
    settings: Settings,
    rule_files: RuleFiles,
    requests: Iterable[tuple[str, int]],
    runtime: str,
    output: Output,
    *,
    json: bool,
    seconds: float | None,
    options: str,
) -> bool:
    """Run these rules, with a pod for each (resource, count). Returns whether all pods run.

    options  those that a verb in a hint needs (`as_typed`)

    Raises GenericdpError if no temporary directory can be used, or sockets there would have too long a path.
    """
    try:
        _check_length(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise GenericdpError(
            "no file can be made in a temporary directory",
            hint="free some space in /tmp, or set TMPDIR to a directory that can be written",
        ) from error
    # It is the directory of the daemon (`genericdp.files.directories`).
    os.environ.pop("STATE_DIRECTORY", None)
    root = tempfile.mkdtemp(prefix=_PREFIX)
    try:
        dry_run = DryRun(output, _below(settings, root), json=json, options=options)
        pods = [Request(*request) for request in requests]
        return loop.run(dry_run.run(rule_files, pods, runtime, seconds))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _check_length(directory: str) -> None:
    # mkdtemp adds eight characters.
    longest = f"{directory}/{_PREFIX}12345678/{_KUBELET_DIR}/{fresh_name()}"
    if len(os.fsencode(longest)) > SOCKET_PATH_LIMIT:
        raise GenericdpError(
            f"the temporary directory '{for_terminal(directory)}' has too long a name for sockets",
            hint="run it with TMPDIR=/tmp",
        )


def _below(settings: Settings, root: str) -> Settings:
    """The settings with every directory below `root`."""
    return replace(
        settings,
        kubelet_dir=f"{root}/{_KUBELET_DIR}",
        pod_resources_socket=f"{root}/pod-resources/kubelet.sock",
        link_dir=f"{root}/links",
        cdi_dir=f"{root}/cdi",
        runtime_socket=f"{root}/runtime.sock",
        state_dir=f"{root}/state",
        run_dir=f"{root}/run",
        metrics="",
    )


class DryRun:
    """One dry run. It shows changes as they happen or, with `json`, prints one document and ends.

    devices  instead of those of the machine
    """

    def __init__(
        self,
        output: Output,
        settings: Settings,
        *,
        json: bool = False,
        options: str = "",
        devices: Devices | None = None,
    ) -> None:
        self._devices = devices
        self._options = options
        self._output = output
        self._settings = settings
        self._json = json
        self._shown: text.Counts = {}
        self._ended = asyncio.Event()
        self._resets: list[str] = []

    async def run(
        self, rule_files: RuleFiles, requests: Sequence[Request], runtime: str, seconds: float | None
    ) -> bool:
        """Run until Ctrl-C, or for so many seconds. Returns whether every container got its devices.

        It also ends when its terminal is closed (SIGHUP, see signal(7)), unless nohup(1) started it.
        """
        running = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                running.add_signal_handler(number, self._ended.set)
        root = os.path.dirname(self._settings.kubelet_dir)
        # The CDI devices of the machine are those of its pods, too.
        cdi_dirs = ("/etc/cdi", "/var/run/cdi", self._settings.cdi_dir)
        async with Kubelet(root, runtime=replace(_RUNTIMES[runtime], cdi_dirs=cdi_dirs)) as kubelet:
            ready = asyncio.Event()
            daemon = Daemon(
                self._settings,
                rule_files,
                devices=self._devices,
                usb_reset=self._see_reset,
                on_step=lambda _: ready.set(),
            )
            serving = asyncio.ensure_future(daemon.run())
            try:
                missing = await _until_registered(kubelet, daemon, ready)
                if self._json:
                    outcomes = [await self._admit(kubelet, *each) for each in enumerate(requests, 1)]
                    self._output.json(text.as_json(text.counts(kubelet), missing, outcomes))
                else:
                    self._shown = text.counts(kubelet)
                    nothing = text.why_nothing(rule_files.resources, rule_files.problems)
                    text.show_node(self._shown, missing, nothing, self._output)
                    outcomes = [await self._show_pod(kubelet, *each) for each in enumerate(requests, 1)]
                    await self._follow(kubelet, serving, seconds)
            finally:
                daemon.stop()
                await serving
        return all(outcome.is_running for outcome in outcomes)

    async def _admit(self, kubelet: Kubelet, number: int, request: Request) -> Outcome:
        outcome = await admit(kubelet, number, request)
        resets, self._resets = self._resets, []
        return replace(outcome, resets=tuple(resets))

    def _see_reset(self, busnum: int, devnum: int) -> None:
        self._resets.append(node_of(busnum, devnum))

    async def _show_pod(self, kubelet: Kubelet, number: int, request: Request) -> Outcome:
        outcome = await self._admit(kubelet, number, request)
        text.show_outcome(outcome, self._output, self._options)
        return outcome

    async def _follow(self, kubelet: Kubelet, serving: "asyncio.Future[None]", seconds: float | None) -> None:
        end = "Ctrl-C to stop" if seconds is None else f"Stops after {seconds:g} s"
        log.configure(LogFormat.TEXT, "info", stream=sys.stdout)
        self._output.paragraph(f"Plug or unplug a device, or edit a rule file. {end}.")
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
            await kubelet.wait_until(lambda: text.counts(kubelet) != self._shown, timeout_s=86400.0)
            before, self._shown = self._shown, text.counts(kubelet)
            text.show_changes(before, self._shown, self._output)


async def _until_registered(kubelet: Kubelet, daemon: Daemon, ready: asyncio.Event) -> list[str]:
    """Wait until the daemon is ready and all resources are registered, but not forever; returns those
    that are not registered then.
    """
    names = {resource.name for resource in daemon.rules.resources}
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await ready.wait()
            await kubelet.wait_until(lambda: names <= kubelet.capacity.keys(), timeout_s=_PATIENCE_S)
    except TimeoutError:
        return sorted(names - kubelet.capacity.keys())
    return []


async def admit(kubelet: Kubelet, number: int, request: Request) -> Outcome:
    """Run a pod whose one container has the request."""
    name = f"pod-{number}"
    if request.resource not in kubelet.capacity:
        # A kubelet would start it without complaint, but no scheduler would send it there.
        hint = nearest(request.resource, kubelet.capacity)
        message = f"the node does not offer it{hint and f'; {hint}'}"
        return Outcome(name, request, Phase.PENDING, message)
    container = Container("main", limits={request.resource: request.count})
    status = await kubelet.admit(Pod(name, [container]))
    message = status.message or status.containers["main"].message
    return Outcome(name, request, status.phase, message, status.containers["main"].created)
