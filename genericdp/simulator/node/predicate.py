"""The scheduler's check of a node's resources, which the kubelet repeats when it admits a pod.

The rules of this file:

* Reasons and messages are those of kubelet 1.36 (`pkg/kubelet/lifecycle/predicate.go`).
* A resource that the node status does not name is not checked.
"""

from collections.abc import Collection, Iterable, Mapping

from genericdp.simulator.pods import Pod, PodStatus


def predicate_failure(
    pod: PodStatus,
    others: Iterable[PodStatus],
    published: Mapping[str, int],
    allocated: Mapping[str, Collection[str]],
) -> tuple[str, str] | None:
    """The reason and the message of a pod that does not fit, or None.

    others       the node's other active pods
    published    allocatable in the node status: resource -> count
    allocated    ids of each resource that containers hold
    """
    used: dict[str, int] = {}
    for other in others:
        for resource, count in requests(other.spec).items():
            used[resource] = used.get(resource, 0) + count
    for resource, requested in sorted(requests(pod.spec).items()):
        if resource not in published:
            continue
        # The kubelet never takes the node to have less than what is allocated.
        capacity = max(published[resource], len(allocated.get(resource, ())))
        if requested > capacity - used.get(resource, 0):
            message = (
                f"Node didn't have enough resource: {resource}, requested: {requested}, "
                f"used: {used.get(resource, 0)}, capacity: {capacity}"
            )
            return f"OutOf{resource}", message
    return None


def requests(pod: Pod) -> dict[str, int]:
    """What a pod needs at its peak: containers plus sidecars, or the largest init container."""
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.init_containers:
        for resource, count in container.limits.items():
            if container.restartable:
                sidecars[resource] = sidecars.get(resource, 0) + count
                peak[resource] = max(peak.get(resource, 0), sidecars[resource])
            else:
                peak[resource] = max(peak.get(resource, 0), sidecars.get(resource, 0) + count)
    running = dict(sidecars)
    for container in pod.containers:
        for resource, count in container.limits.items():
            running[resource] = running.get(resource, 0) + count
    return {resource: max(running.get(resource, 0), peak.get(resource, 0)) for resource in {*running, *peak}}
