"""Pods that hold a device and that no container runtime has: the one that is asked is not the kubelet's.

The rules of this file:

* A pod is listed before its runtime has it. Only what lasts longer than making it says something.
* A pod that has ended holds nothing, so what a runtime has removed is not held against it.
* A runtime that has some pod of the kubelet is the kubelet's, whatever else it lacks.
"""

from collections.abc import Iterable, Mapping

from genericdp.core.status.holdings import PodName

#: How long a pod may be listed without a runtime that has it, in seconds. The kubelet waits four minutes for
#: its runtime to make it (1.36, `RunPodSandbox`).
LONGEST_MAKING_S = 300.0

#: Pod -> since when no runtime has had it, in seconds.
Unknown = Mapping[PodName, float]


def follow(unknown: Unknown, pods: Iterable[PodName], now: float) -> Unknown:
    """After another look: these pods hold a device, and no runtime has any pod of the kubelet."""
    return {pod: unknown.get(pod, now) for pod in pods}


def next_certainty(unknown: Unknown) -> float:
    """When it will be certain that the runtime is not the kubelet's, in seconds; infinity without a pod."""
    return min(unknown.values(), default=float("inf")) + LONGEST_MAKING_S


def certain(unknown: Unknown, now: float) -> PodName | None:
    """A pod that proves it by now."""
    return min((pod for pod, since in unknown.items() if now - since >= LONGEST_MAKING_S), default=None)
