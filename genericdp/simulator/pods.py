"""Pods: what somebody wants to run, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from genericdp.simulator.runtimes.runtime import CreatedContainer


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod, as far as devices are concerned.

    limits        resource name -> count; only limits count for a kubelet
    restartable   an init container with restartPolicy Always, a sidecar
    env           what the pod itself sets; wins over what a plugin sets
    privileged, run_as_user, run_as_group    the security context
    image_files   paths that are regular files in the image
    """

    name: str
    limits: Mapping[str, int] = field(default_factory=dict)
    restartable: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    privileged: bool = False
    run_as_user: int = 0
    run_as_group: int = 0
    image_files: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pod:
    """What somebody wants to run. `host_users=False` gives it a user namespace."""

    name: str
    containers: Sequence[Container]
    init_containers: Sequence[Container] = ()
    namespace: str = "default"
    host_users: bool = True


class Phase(StrEnum):
    """`pod.status.phase`."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class ContainerState(StrEnum):
    """Which of the three a container status says."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(slots=True, eq=False)
class ContainerStatus:
    """What became of a container.

    created      what the runtime made, at the last creation that worked; None before
    restarts     how often it was created again
    resources    `allocatedResourcesStatus` as last published: resource -> device id -> health
    """

    spec: Container
    state: ContainerState = ContainerState.WAITING
    reason: str = ""
    message: str = ""
    created: CreatedContainer | None = None
    restarts: int = 0
    resources: dict[str, dict[str, str]] = field(default_factory=dict)

    def become(self, state: ContainerState, reason: str = "", message: str = "") -> None:
        """Enter a state; what was said about the one before is over."""
        self.state, self.reason, self.message = state, reason, message


@dataclass(slots=True, eq=False)
class PodStatus:
    """What became of a pod: `phase`, `reason`, `message` as `kubectl get pod -o yaml` would say."""

    spec: Pod
    uid: str
    phase: Phase = Phase.PENDING
    reason: str = ""
    message: str = ""
    containers: dict[str, ContainerStatus] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for container in (*self.spec.init_containers, *self.spec.containers):
            self.containers[container.name] = ContainerStatus(container)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def active(self) -> bool:
        """Whether it still holds what it was given."""
        return self.phase in (Phase.PENDING, Phase.RUNNING)

    def container(self, name: str) -> ContainerStatus:
        """The status of one container."""
        return self.containers[name]

    def is_init(self, container: Container) -> bool:
        """Whether it runs before the others; sidecars do too."""
        return container in self.spec.init_containers

    def reject(self, reason: str, message: str) -> None:
        """Terminal: nothing of the pod runs or ever will."""
        self.phase, self.reason, self.message = Phase.FAILED, reason, f"Pod was rejected: {message}"
        self.stop_containers()

    def stop_containers(self) -> None:
        """Whatever ran does not run any more."""
        for status in self.containers.values():
            if status.state is ContainerState.RUNNING:
                status.become(ContainerState.TERMINATED)
