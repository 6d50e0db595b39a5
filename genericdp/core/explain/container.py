"""What a container gets when it is allocated one device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from genericdp.core.allocate import Allocation, RefusedError, allocate
from genericdp.core.cdi import by_names, cdi_device, groups_of
from genericdp.core.explain.access import Access, Needs, needs_of
from genericdp.core.explain.library_paths import library_for
from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.rules.name import kubevirt_env
from genericdp.core.rules.resource import Resource
from genericdp.core.rules.settings import AnswerBy, Settings

#: The fields and properties that say where the kernel has put a device today.
_WHEREABOUTS = frozenset({"devname", "sysname", "DEVNAME", "DEVPATH", "BUSNUM", "DEVNUM", "MAJOR", "MINOR"})

#: Where libusb looks for devices, by the numbers that they have today.
_BUS_USB = "/dev/bus/usb/"


@dataclass(frozen=True, slots=True)
class Container:
    """What a container gets when it is allocated one device and nothing else.

    id          of the device, as the kubelet would allocate it
    allocation  what it gets, as an answer by devices
    by          how the kubelet is answered
    named       the answer by CDI to the same request
    groups      the groups that CDI adds to its process
    stale       the container paths and envs that are wrong after a re-plug, in an answer by devices
    healthy     whether the kubelet allocates it now
    targets     host path of a link -> the device node that it leads to
    devlinks    what else the device nodes are called on the host
    needs       what its processes need unless they are root
    """

    id: str
    allocation: Allocation
    by: AnswerBy
    named: Allocation
    groups: tuple[int, ...]
    stale: tuple[str, ...]
    healthy: bool
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

    @property
    def unfound(self) -> tuple[str, ...]:
        """What programs will not find under its container path, a sentence each."""
        inside: dict[str, list[str]] = {}
        for spec in self.allocation.devices:
            inside.setdefault(self.targets.get(spec.host_path, ""), []).append(spec.container_path)
        return tuple(
            f"{library.name} looks for {node}, not for {', '.join(paths)}"
            for node, paths in inside.items()
            if (library := library_for(node)) is not None and not any(map(library.finds, paths))
        )


def container_of(
    offer: Offer, device: Device, settings: Settings, access: Sequence[Access | None]
) -> Container | None:
    """What a container would get of a device of an offer; None while Allocate would refuse it.

    access  to each of the nodes that it would get
    """
    id_ = next((id_ for id_, each in offer.ids.items() if each is device), None)
    if id_ is None:
        # All its ids wait until pods have gone.
        return None
    try:
        allocation = allocate(offer, [id_], settings.link_dir)
    except RefusedError:
        return None
    return Container(
        id_,
        allocation,
        by=offer.resource.answer or settings.answer,
        named=by_names(allocation, cdi_device(offer, [id_]), offer.resource),
        groups=groups_of(device.nodes_inside),
        stale=_stale(offer.resource, allocation),
        healthy=device.healthy,
        targets={f"{settings.link_dir}/{node.link}": node.path for node in device.nodes_inside},
        devlinks=frozenset(devlink for node in device.nodes_inside for devlink in node.devlinks),
        needs=needs_of(device, access),
    )


def _stale(resource: Resource, allocation: Allocation) -> tuple[str, ...]:
    """What says where the device is today: a link leads elsewhere tomorrow, these stay as they are."""
    paths = [each.container_path for each in allocation.devices if each.container_path.startswith(_BUS_USB)]
    envs = [
        name.text
        for name, value in resource.env
        if any(field.name in _WHEREABOUTS for field in (*name.fields, *value.fields))
    ]
    kubevirt = [kubevirt_env(resource.name)] if resource.kubevirt else []
    return (*paths, *kubevirt, *envs)
