"""The kubelet's request to the container runtime, merged from the plugins' cached answers.

The rules of this file:

* The resources of a container are merged in random order, and the first one wins on an equal key or
  path (kubelet 1.36, `deviceRunContainerOptions`). Plugins should therefore use distinct names.
* Env variables of the pod override those of plugins.
"""

from collections.abc import Sequence

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator.pods import Container
from genericdp.simulator.runtimes.runtime import ContainerConfig, RequestedDevice, RequestedMount


def container_config(
    container: Container,
    responses: Sequence[api.ContainerAllocateResponse],
    *,
    user_namespace: bool = False,
) -> ContainerConfig:
    """The request for one container; earlier `responses` have precedence."""
    envs: dict[str, str] = {}
    annotations: dict[str, str] = {}
    devices: dict[str, RequestedDevice] = {}
    mounts: dict[str, RequestedMount] = {}
    cdi_devices: dict[str, None] = {}
    for response in responses:
        for key, value in response.envs.items():
            envs.setdefault(key, value)
        for key, value in response.annotations.items():
            annotations.setdefault(key, value)
        for device in response.devices:
            devices.setdefault(
                device.container_path,
                RequestedDevice(device.host_path, device.container_path, device.permissions),
            )
        for mount in response.mounts:
            mounts.setdefault(
                mount.container_path,
                RequestedMount(mount.host_path, mount.container_path, mount.read_only),
            )
        for cdi in response.cdi_devices:
            cdi_devices.setdefault(cdi.name)
    return ContainerConfig(
        devices=tuple(devices.values()),
        mounts=tuple(mounts.values()),
        envs={**envs, **container.env},
        annotations=annotations,
        cdi_devices=tuple(cdi_devices),
        privileged=container.privileged,
        user_namespace=user_namespace,
        run_as_user=container.run_as_user,
        run_as_group=container.run_as_group,
        image_files=container.image_files,
    )
