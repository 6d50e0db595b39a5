"""The state of the guest's kubelet, as inside/kubelet.py sends it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.vm.channel import Document


@dataclass(frozen=True, slots=True)
class Pod:
    """The status of a pod with one container.

    nodes    container path -> node on the host when the container was created
    numbers  container path -> major, minor
    request  what the kubelet asks of a container runtime, for `ContainerRuntime.create`
    """

    phase: str
    state: str
    message: str
    nodes: Mapping[str, str]
    numbers: Mapping[str, tuple[int, int]]
    env: Mapping[str, str]
    request: Mapping[str, Any]
    health: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class View:
    """The kubelet's state.

    devices      resource -> id -> health
    streams      resource -> number of open ListAndWatch streams
    messages     resource -> lists received
    capacity, allocatable    as in the node status
    """

    devices: Mapping[str, Mapping[str, str]]
    streams: Mapping[str, int]
    messages: Mapping[str, int]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    pods: Mapping[str, Pod]

    def of(self, resource: str) -> Mapping[str, str]:
        """The devices of a resource: id -> health. Empty for one that is not registered."""
        return self.devices.get(resource, {})


#: Before the first message.
NOTHING = View({}, {}, {}, {}, {}, {})


def parse(state: Document) -> View:
    """The value of one message's "state"."""
    pods = {name: _pod(pod) for name, pod in state.pop("pods").items()}
    return View(**state, pods=pods)


def _pod(pod: dict[str, Any]) -> Pod:
    numbers = {path: (major, minor) for path, (major, minor) in pod.pop("numbers").items()}
    return Pod(**pod, numbers=numbers)
