"""The pods of the node, which outlive each process of the kubelet."""

from dataclasses import dataclass, field

from genericdp.simulator.pods import Pod, PodStatus


@dataclass(slots=True)
class Node:
    """Every pod that was ever bound to this node and not deleted, by uid.

    admitted    how many there have been; makes the next uid
    """

    pods: dict[str, PodStatus] = field(default_factory=dict)
    admitted: int = 0

    def new(self, spec: Pod) -> PodStatus:
        """Add a pod that the kubelet has not seen before."""
        self.admitted += 1
        pod = PodStatus(spec, uid=f"uid-{self.admitted}")
        self.pods[pod.uid] = pod
        return pod

    def remove(self, pod: PodStatus) -> None:
        """Remove a pod that was deleted."""
        self.pods.pop(pod.uid, None)

    def active(self) -> list[PodStatus]:
        """Pods that may still hold devices: neither failed nor finished."""
        return [pod for pod in self.pods.values() if pod.active]
