"""Who holds a device: a container, by the names that Kubernetes has for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """A container that holds a device."""

    namespace: str
    pod: str
    container: str


#: (resource, id as the kubelet knows it) -> who holds it.
Holdings = dict[tuple[str, str], tuple[Holder, ...]]
