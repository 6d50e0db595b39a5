"""Pods: their spec and their status, as the Kubernetes API has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from genericdp.simulator.runtimes.runtime import CreatedContainer


@dataclass(frozen=True, slots=True)
class Container:
    """The part of a container's spec that matters to devices.

    limits        resource name -> count; a kubelet ignores requests
    restartable   whether an init container is a sidecar (restartPolicy Always)
    env           set by the pod; overrides what a plugin sets
    privileged, run_as_user, run_as_group    the security context
    image_files   paths that are regular files in the image
    ends_after_s  how long its process takes to end when it is told to
    """

    name: str
    limits: Mapping[str, int] = field(default_factory=dict)
    restartable: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    privileged: bool = False
    run_as_user: int = 0
    run_as_group: int = 0
    image_files: frozenset[str] = frozenset()
    ends_after_s: float = 0.0


class RestartPolicy(StrEnum):
    """`pod.spec.restartPolicy`."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


@dataclass(frozen=True, slots=True)
class Pod:
    """The spec of a pod. `host_users=False` gives it a user namespace."""

    name: str
    containers: Sequence[Container]
    init_containers: Sequence[Container] = ()
    namespace: str = "default"
    host_users: bool = True
    restart_policy: RestartPolicy = RestartPolicy.ALWAYS
    grace_period_s: int = 30


class Phase(StrEnum):
    """`pod.status.phase`."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class ContainerState(StrEnum):
    """Which member of `containerStatuses[].state` is set."""

    WAITING = "waiting"
    RUNNING = "running"
    TERMINATED = "terminated"


@dataclass(slots=True, eq=False)
class ContainerStatus:
    """The status of a container.

    created      the result of the last successful creation; None before the first
    started      whether that container was started
    restarts     how often the container was created again
    created_at   when it was created last, in nanoseconds of the kubelet's clock
    exit_code    how its process ended; None while it has not, or was not started since
    ended        when that was, in seconds of the kubelet's clock
    resources    `allocatedResourcesStatus` as last published: resource -> device id -> health
    """

    spec: Container
    state: ContainerState = ContainerState.WAITING
    reason: str = ""
    message: str = ""
    created: CreatedContainer | None = None
    started: bool = False
    restarts: int = 0
    created_at: int = 0
    exit_code: int | None = None
    ended: float = 0.0
    resources: dict[str, dict[str, str]] = field(default_factory=dict)

    def become(self, state: ContainerState, reason: str = "", message: str = "") -> None:
        """Enter a state; reason and message of the previous one are cleared."""
        self.state, self.reason, self.message = state, reason, message

    def exit(self, code: int, now: float) -> None:
        """The process of the container has ended."""
        self.become(ContainerState.TERMINATED, "Error" if code else "Completed")
        self.exit_code, self.ended = code, now


@dataclass(slots=True, eq=False)
class PodStatus:
    """The status of a pod; `phase`, `reason`, `message` are what `kubectl get pod -o yaml` shows.

    admitted    whether a kubelet has ever admitted it
    made_at     when the runtime made its sandbox, in nanoseconds of the kubelet's clock; 0 if it has not
    """

    spec: Pod
    uid: str
    phase: Phase = Phase.PENDING
    reason: str = ""
    message: str = ""
    admitted: bool = False
    made_at: int = 0
    containers: dict[str, ContainerStatus] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for container in (*self.spec.init_containers, *self.spec.containers):
            self.containers[container.name] = ContainerStatus(container)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def active(self) -> bool:
        """Whether the pod still holds its devices."""
        return self.phase in (Phase.PENDING, Phase.RUNNING)

    def container(self, name: str) -> ContainerStatus:
        """The status of one container."""
        return self.containers[name]

    def is_init(self, container: Container) -> bool:
        """Whether a container is listed under initContainers; sidecars are, too."""
        return container in self.spec.init_containers

    def restarts_after(self, status: ContainerStatus) -> bool:
        """Whether a container whose process has ended is to be started again."""
        policy = self.spec.restart_policy
        return policy is RestartPolicy.ALWAYS or (
            policy is RestartPolicy.ON_FAILURE and status.exit_code != 0
        )

    def reject(self, reason: str, message: str) -> None:
        """Fail the pod for good: none of its containers runs again."""
        self.phase, self.reason, self.message = Phase.FAILED, reason, f"Pod was rejected: {message}"
        self.stop_containers()
        if self.admitted:
            self._miss_containers()

    def stop_containers(self) -> None:
        """End every running container."""
        for status in self.containers.values():
            if status.state is ContainerState.RUNNING:
                status.become(ContainerState.TERMINATED)

    def _miss_containers(self) -> None:
        """Mark what waited in a pod that ended, as kubelet 1.36 does (`status_manager.go`, `TerminatePod`).

        Init containers up to the last one that left waiting, and if all of them did, the others too.
        """
        init = [self.containers[container.name] for container in self.spec.init_containers]
        left = [n for n, status in enumerate(init) if status.state is not ContainerState.WAITING]
        missed = init[: max(left, default=0) + 1]
        if len(left) == len(init):
            missed += [self.containers[container.name] for container in self.spec.containers]
        for status in missed:
            if status.state is ContainerState.WAITING:
                status.become(
                    ContainerState.TERMINATED,
                    "ContainerStatusUnknown",
                    "The container could not be located when the pod was terminated",
                )
