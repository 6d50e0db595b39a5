"""What a container gets when it is allocated one device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from genericdp.core.allocate import Allocation, allocate
from genericdp.core.explain.access import Access, Needs, needs_of
from genericdp.core.inventory.offer import Device, Offer


@dataclass(frozen=True, slots=True)
class Container:
    """What a container gets when it is allocated one device and nothing else.

    id          of the device, as the kubelet would allocate it
    allocation  the answer to the kubelet
    targets     host path of a link -> the device node that it leads to
    devlinks    what else the device nodes are called on the host
    needs       what its processes need unless they are root
    """

    id: str
    allocation: Allocation
    targets: Mapping[str, str]
    devlinks: frozenset[str]
    needs: Needs

    @property
    def renamed(self) -> tuple[str, ...]:
        """The container paths that do not lead to the device on the host."""
        return tuple(
            spec.container_path
            for spec in self.allocation.devices
            if spec.container_path not in (spec.host_path, self.targets.get(spec.host_path), *self.devlinks)
        )


def container_of(offer: Offer, device: Device, link_dir: str, access: Sequence[Access | None]) -> Container:
    """What a container would get of a device of an offer, given the access to each of its nodes."""
    id_ = next(id_ for id_, each in offer.ids.items() if each is device)
    return Container(
        id_,
        allocate(offer, [id_], link_dir),
        targets={f"{link_dir}/{node.link}": node.path for node in device.nodes},
        devlinks=frozenset(devlink for node in device.nodes for devlink in node.devlinks),
        needs=needs_of(device, access),
    )
