"""One process of the kubelet, from its start to its end.

The rules of this file:

* What a restart loses lives here. What outlives a restart (pods, the directories, the node status) is
  passed in.
* It starts in the kubelet's order: checkpoint, directory, cleanup, and only then kubelet.sock.
"""

import contextlib
import os
import random
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from genericdp.kubelet.api import deviceplugin, podresources
from genericdp.simulator.clock import Clock
from genericdp.simulator.devices import checkpoint
from genericdp.simulator.devices.allocation import Allocator
from genericdp.simulator.devices.ledger import Ledger
from genericdp.simulator.devices.topology import Policy
from genericdp.simulator.errors import DeviceError
from genericdp.simulator.faults import DEVICE_PLUGINS_MODE
from genericdp.simulator.gates import Gates, Point
from genericdp.simulator.node.node import Node
from genericdp.simulator.node.pod_resources import PodResourcesLister
from genericdp.simulator.node.worker import ByItself
from genericdp.simulator.node.workload import Workload
from genericdp.simulator.plugins.client_table import Generation
from genericdp.simulator.plugins.lifecycle import Plugins
from genericdp.simulator.plugins.registration import Attempt, Registrations
from genericdp.simulator.plugins.watcher import Watcher
from genericdp.simulator.relay import Relay
from genericdp.simulator.runtimes.runtime import Runtime
from genericdp.simulator.server import Server

#: Where the server really listens while a relay occupies kubelet.sock.
BEHIND_RELAY = "behind-relay.sock"


@dataclass(frozen=True, slots=True)
class Directories:
    """The directories for a kubelet's sockets, below its root directory."""

    root: Path

    @property
    def device_plugins(self) -> Path:
        return self.root / "device-plugins"

    @property
    def pod_resources(self) -> Path:
        return self.root / "pod-resources"

    @property
    def plugins_registry(self) -> Path:
        return self.root / "plugins_registry"

    def make(self) -> None:
        """Make those that do not exist. The real kubelet's checkpoint store makes the first one."""
        for directory, mode in (
            (self.device_plugins, DEVICE_PLUGINS_MODE),
            (self.pod_resources, 0o750),
            (self.plugins_registry, 0o750),
        ):
            directory.mkdir(mode=mode, parents=True, exist_ok=True)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What all processes of one kubelet have in common."""

    directories: Directories
    generation: Generation
    runtime: Runtime
    clock: Clock
    gates: Gates
    policy: Policy
    numa_nodes: tuple[int, ...]
    watchdog_s: float


class Process:
    """A kubelet process, which lives from `start` to `stop`."""

    def __init__(
        self,
        configuration: Configuration,
        node: Node,
        *,
        rng: random.Random,
        attempts: list[Attempt],
        refusal: Callable[[], str | None],
        on_change: Callable[[], None],
        on_news: Callable[[set[str]], None],
        on_failure: Callable[[BaseException], None],
        by_itself: ByItself,
    ) -> None:
        self.sources_ready = not node.active()
        self._configuration = configuration
        self._node = node
        self._on_news = on_news
        directories = configuration.directories
        found = checkpoint.read(directories.device_plugins)
        self.had_checkpoint = found is not None
        self.ledger = Ledger.from_checkpoint(found or checkpoint.Checkpoint(), configuration.clock.now())
        self.plugins = Plugins(
            self.ledger,
            generation=configuration.generation,
            clock=configuration.clock,
            gates=configuration.gates,
            watchdog_s=configuration.watchdog_s,
            on_change=on_change,
            on_list=self._listed,
            on_failure=on_failure,
        )
        allocator = Allocator(self.ledger, rng=rng, free=self.free, save=self.save)
        self.workload = Workload(
            node,
            self.ledger,
            allocator,
            runtime=configuration.runtime,
            gates=configuration.gates,
            policy=configuration.policy,
            numa_nodes=configuration.numa_nodes,
            clock=configuration.clock,
            rng=rng,
            by_itself=by_itself,
        )
        self.watcher = Watcher(directories.plugins_registry, self.plugins, configuration.clock)
        self.pod_resources = PodResourcesLister(
            node,
            self.ledger,
            configuration.clock,
            free=self.free,
            knows_pods=lambda: self.sources_ready,
        )
        self._registrations = Registrations(
            str(directories.device_plugins),
            self.plugins,
            attempts=attempts,
            refusal=refusal,
            on_change=on_change,
        )
        self._servers: list[Server | Relay] = []

    async def start(self) -> None:
        """Clean up the directories, then listen."""
        directories = self._configuration.directories
        directories.make()
        remove_sockets(directories.device_plugins)
        (directories.root / BEHIND_RELAY).unlink(missing_ok=True)
        await self._configuration.gates.passes(Point.LISTEN)
        await self._serve_registration(directories)
        await self._serve(
            Server(podresources.pod_resources_lister_handler(self.pod_resources)),
            directories.pod_resources / "kubelet.sock",
            rename_from="kubelet.sock.new",
        )

    async def stop(self) -> None:
        """End like a killed process: connections break, files stay, and no plugin is notified."""
        for server in self._servers:
            await server.stop()
        self._servers.clear()
        await self.workload.close()
        await self.plugins.close()

    def free(self) -> None:
        """Free the devices of pods that are no longer active, once all pods are known."""
        if self.sources_ready:
            self.ledger.free({pod.uid for pod in self._node.active()})

    def save(self) -> None:
        """Write the checkpoint. Raises DeviceError."""
        checkpoint.write(self._configuration.directories.device_plugins, self.ledger.checkpoint())

    def try_to_save(self) -> None:
        """Write the checkpoint where a kubelet only logs that it cannot."""
        with contextlib.suppress(DeviceError):
            self.save()

    def _listed(self, resource: str, pods: set[str]) -> None:
        del resource
        self.try_to_save()
        if pods:
            self._on_news(pods)

    async def _serve_registration(self, directories: Directories) -> None:
        path = directories.device_plugins / deviceplugin.KUBELET_SOCKET
        server = Server(deviceplugin.registration_handler(self._registrations))
        if not self._configuration.gates.holds(Point.ACCEPT):
            await self._serve(server, path)
            return
        hidden = directories.root / BEHIND_RELAY
        relay = Relay(path, str(hidden))
        self._servers += [relay, server]
        relay.bind()
        await self._configuration.gates.passes(Point.ACCEPT)
        await server.start(hidden)
        relay.listen()

    async def _serve(self, server: Server, path: Path, *, rename_from: str = "") -> None:
        self._servers.append(server)
        await server.start(path, rename_from=rename_from)


def remove_sockets(directory: Path) -> None:
    """`CleanupPluginDirectory`: remove every socket and every link to one; keep everything else."""
    for name in os.listdir(directory):
        path = directory / name
        if name == checkpoint.NAME:
            continue
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if stat.S_ISSOCK(mode):
            # A plugin that ends at the same moment removes its own socket.
            path.unlink(missing_ok=True)
