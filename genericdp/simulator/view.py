"""The read-only half of a simulated kubelet.

The rules of this file:

* Everything returned is a copy or a number; reading changes nothing.
"""

from collections.abc import Mapping
from pathlib import Path

from genericdp.kubelet.api import deviceplugin
from genericdp.simulator.devices.resource import Device
from genericdp.simulator.errors import SimulatorError
from genericdp.simulator.node.node import Node
from genericdp.simulator.plugins.registration import Attempt
from genericdp.simulator.pods import PodStatus
from genericdp.simulator.process import Directories, Process


class View:
    """What a Kubelet shows. `registrations` holds every call of Register, across restarts."""

    def __init__(self, directories: Directories) -> None:
        self.registrations: list[Attempt] = []
        self._directories = directories
        self._node = Node()
        self._process: Process | None = None

    @property
    def directory(self) -> Path:
        """The device plugin directory."""
        return self._directories.device_plugins

    @property
    def socket(self) -> Path:
        """kubelet.sock"""
        return self.directory / deviceplugin.KUBELET_SOCKET

    @property
    def pod_resources_socket(self) -> Path:
        """The socket of the PodResources API."""
        return self._directories.pod_resources / "kubelet.sock"

    @property
    def plugins_registry(self) -> Path:
        """The directory that the plugin watcher scans."""
        return self._directories.plugins_registry

    @property
    def runtime_socket(self) -> Path:
        """The CRI socket of the container runtime."""
        return self._directories.root / "runtime.sock"

    @property
    def running(self) -> bool:
        """Whether the kubelet has a process."""
        return self._process is not None

    @property
    def capacity(self) -> dict[str, int]:
        """Devices of each resource right now; published only at a tick."""
        return {} if self._process is None else self._process.ledger.counts().capacity

    @property
    def allocatable(self) -> dict[str, int]:
        """Healthy devices of each resource right now; published only at a tick."""
        return {} if self._process is None else self._process.ledger.counts().allocatable

    @property
    def pods(self) -> tuple[PodStatus, ...]:
        """The pods of the node, including finished and failed ones until they are deleted."""
        return tuple(self._node.pods.values())

    @property
    def watcher_errors(self) -> list[str]:
        """The errors of the plugin watcher, oldest first."""
        return self._running.watcher.errors

    @property
    def syncing(self) -> list[str]:
        """The names of the pods whose containers are being started at this moment."""
        return [] if self._process is None else self._process.workload.syncing()

    def devices(self, resource: str) -> Mapping[str, Device]:
        """The devices of the last list of a resource, by id."""
        return dict(self._running.ledger.of(resource).listed)

    def allocated(self, resource: str) -> set[str]:
        """Ids that count as allocated, including leaked ones."""
        return set(self._running.ledger.allocated.get(resource, ()))

    def streams(self, resource: str) -> int:
        """The number of open ListAndWatch streams of a resource."""
        return 0 if self._process is None else self._process.plugins.streams(resource)

    def connections(self, resource: str) -> int:
        """The number of open connections to plugins of a resource."""
        return 0 if self._process is None else self._process.plugins.connections(resource)

    def messages(self, resource: str) -> int:
        """The number of lists that this process has received for a resource."""
        return 0 if self._process is None else self._process.plugins.messages.get(resource, 0)

    def resource_health(self, pod: PodStatus, name: str) -> Mapping[str, Mapping[str, str]]:
        """What `allocatedResourcesStatus` of a container would say now: resource -> id -> health."""
        return self._running.ledger.health(pod.uid, name)

    def describe(self) -> str:
        """The state in one line, for the messages of failing tests."""
        if self._process is None:
            return "the kubelet is stopped"
        answers = [
            f"{one.resource}: {'pending' if one.answer is None else one.answer or 'accepted'}"
            for one in self.registrations[-5:]
        ]
        return (
            f"capacity {self.capacity}, allocatable {self.allocatable}, last registrations {answers}, "
            f"pods {[f'{pod.name}: {pod.phase}' for pod in self.pods]}"
        )

    @property
    def _running(self) -> Process:
        if self._process is None:
            raise SimulatorError("the kubelet is not running")
        return self._process
