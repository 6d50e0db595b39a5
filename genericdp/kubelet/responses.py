"""Values of the core as messages of the device plugin API."""

from collections.abc import Sequence

from genericdp.core.allocate import Allocation
from genericdp.core.inventory.offer import Offer
from genericdp.kubelet.api import deviceplugin as api
from genericdp.messages import appender


def list_of(offer: Offer) -> api.ListAndWatchResponse:
    """The list for the kubelet: every id once, topology only if the NUMA node is known."""
    topologies = {
        device.numa: api.TopologyInfo(nodes=[api.NUMANode(ID=device.numa)])
        for device in offer.ids.values()
        if device.numa is not None
    }
    response = api.ListAndWatchResponse()
    add = appender(response.devices)
    for id_, device in offer.ids.items():
        add(
            ID=id_,
            health=device.health.value,
            topology=None if device.numa is None else topologies[device.numa],
        )
    return response


def add_answer(
    answers: Sequence[api.ContainerAllocateResponse], allocation: Allocation
) -> api.ContainerAllocateResponse:
    """Append the answer for one container to this field of the response. Returns it."""
    answer = appender(answers)(envs=dict(allocation.envs), annotations=dict(allocation.annotations))
    add_device, add_mount = appender(answer.devices), appender(answer.mounts)
    for spec in allocation.devices:
        add_device(container_path=spec.container_path, host_path=spec.host_path, permissions=spec.permissions)
    for mount in allocation.mounts:
        add_mount(container_path=mount.container_path, host_path=mount.host_path, read_only=mount.read_only)
    add_cdi_device = appender(answer.cdi_devices)
    for name in allocation.cdi_devices:
        add_cdi_device(name=name)
    return answer
