"""The container runtime of a guest, driven over CRI as a kubelet drives it.

The rules of this file:

* The simulator gets every request as well, and must come to the same result: so what the simulator does
  with devices is what the real runtimes do.
* Pods and containers are those of the runtime: no kubelet has to know of them.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.vm.channel import Channel, Document
from tests.vm.seed import HOME, INSIDE

#: How long a request may take, by the host's clock: a container is made and started in an emulator.
_PATIENCE_S = 600.0

#: The runtimes below containerd that make the nodes.
HANDLERS = ("runc", "crun")


class OutcomeError(AssertionError):
    """The runtime could not be asked, or does otherwise than the simulator."""


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device node as a process in a container finds it.

    access    what it could be opened for: "rw"; in place of a letter, - for what the cgroup denied (EPERM)
              and = for what the mode denied (EACCES)
    """

    kind: str
    major: int
    minor: int
    mode: str
    uid: int
    gid: int
    access: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request: an error, or a container and the output of its script."""

    error: str = ""
    nodes: Mapping[str, DeviceNode] = field(default_factory=dict)
    envs: Mapping[str, str] = field(default_factory=dict)
    out: str = ""

    @property
    def numbers(self) -> dict[str, tuple[int, int]]:
        """Container path -> major, minor."""
        return {path: (node.major, node.minor) for path, node in self.nodes.items()}


class ContainerRuntime:
    """containerd of the guest's release. `sh` runs a shell script inside."""

    def __init__(self, channel: Channel, sh: Callable[[str], str]) -> None:
        self._channel = channel
        self._sh = sh
        self._asked = 0

    def begin(self) -> None:
        """Begin with a running containerd that has the images, and with no containers."""
        ready = f"[ -e {HOME}/images-are-there ] && systemctl is-active --quiet containerd"
        self._sh(f"{ready} || python3 {INSIDE}/containerd.py")
        self._sh("systemctl start vm-runtime")
        self._ask({"reset": True})

    def create(self, pod: str, **request: Any) -> Outcome:
        """Make a container in this pod in place of its last one. See `Request` in inside/runtime.py.

        Raises OutcomeError if the simulator's outcome is another one.
        """
        answer = self._ask({"create": {"pod": pod, **request}})
        real, simulated = answer["real"], answer["simulated"]
        agreed = (
            simulated["error"] in real.get("error", "")
            if "error" in simulated
            else {key: value for key, value in real.items() if key != "out"} == simulated
        )
        if not agreed:
            raise OutcomeError(f"{request}\nreal      {real}\nsimulated {simulated}")
        return _outcome(real)

    def create_unsimulated(self, pod: str, **request: Any) -> Outcome:
        """The same where the simulator has no such runtime."""
        return _outcome(self._ask({"create": {"pod": pod, **request}})["real"])

    def run(self, pod: str, script: str) -> str:
        """What a shell script in the container of a pod prints."""
        text: str = self._ask({"run": pod, "script": script})["out"]
        return text

    def stop(self, pod: str, grace_s: int) -> float:
        """End the container of a pod as the kubelet does; returns how long it took, in seconds."""
        seconds: float = self._ask({"stop": pod, "grace_s": grace_s})["seconds"]
        return seconds

    def restarted(self, pod: str, times: int) -> Outcome:
        """The outcome of a container that is kept, once it was restarted this often."""
        return _outcome(self._ask({"restarted": pod, "times": times})["real"])

    def refused(self, pod: str) -> Outcome:
        """The outcome of a container that is kept, once it ended and another one could not be made."""
        return _outcome(self._ask({"refused": pod})["real"])

    def _ask(self, request: Document) -> Document:
        self._asked += 1
        self._channel.send({"id": self._asked, **request})
        until = time.monotonic() + _PATIENCE_S
        # What was asked before may have been given up, and be answered late.
        while True:
            answer = self._channel.receive(until, f"the answer to {request}")
            if answer.pop("id", None) == self._asked:
                break
        if "error" in answer:
            raise OutcomeError(f"{request}: {answer['error']}")
        return answer


def _outcome(document: Document) -> Outcome:
    nodes = {path: DeviceNode(*parts) for path, parts in document.pop("nodes", {}).items()}
    return Outcome(**document, nodes=nodes)
