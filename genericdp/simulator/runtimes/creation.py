"""The creation of a container, step by step.

The rules of this file:

* The order is the runtimes': devices and mounts of the request, the host's devices for a privileged
  container, CDI edits, the low-level runtime.
"""

from genericdp.simulator.runtimes import cdi, containerd, crio, runc
from genericdp.simulator.runtimes.filesystem import PathError, exists, is_link, resolve
from genericdp.simulator.runtimes.oci import OciDevice
from genericdp.simulator.runtimes.runtime import (
    ContainerConfig,
    CreateContainerError,
    CreatedContainer,
    CreatedMount,
    Personality,
    RequestedMount,
    Runtime,
)


def create(runtime: Runtime, config: ContainerConfig) -> CreatedContainer:
    """The container as its process would find it. CreateContainerError with the runtime's text."""
    personality = crio if runtime.personality is Personality.CRIO else containerd
    devices = [_owned(runtime, config, device) for device in personality.devices(config)]
    if config.privileged and runtime.host_dev:
        devices = personality.with_the_hosts(devices, runtime.host_dev)
    mounts = [_mount(runtime, mount) for mount in config.mounts]
    edits = cdi.inject(runtime, config)
    kept = [device for device in devices if device.path not in edits.devices]
    spec_devices = [*kept, *edits.devices.values()]
    mounts = [mount for mount in mounts if mount.container_path not in edits.mounts]
    return CreatedContainer(
        nodes=runc.make_nodes(runtime, config, spec_devices),
        mounts=(*mounts, *map(_mount_of_cdi, edits.mounts.values())),
        envs={**config.envs, **edits.envs},
        annotations=dict(config.annotations),
        cdi_devices=config.cdi_devices,
        groups=tuple(edits.groups),
        spec_devices=tuple(spec_devices),
        config=config,
    )


def _owned(runtime: Runtime, config: ContainerConfig, device: OciDevice) -> OciDevice:
    """`device_ownership_from_security_context`: the process's user and group, where set and not 0."""
    if not runtime.device_ownership or (runtime.personality is Personality.CRIO and device.from_directory):
        return device
    return device.owned_by(config.run_as_user or device.uid, config.run_as_group or device.gid)


def _mount(runtime: Runtime, mount: RequestedMount) -> CreatedMount:
    """Both runtimes follow a link at the source, and create a missing source as a directory."""
    path = mount.host_path
    try:
        source = resolve(path, strict=False)
    except PathError:
        if runtime.personality is Personality.CRIO:
            reason = f'failed to resolve symlink "{path}": EvalSymlinks: too many links'
        else:
            reason = f'failed to stat "{path}": stat {path}: too many levels of symbolic links'
        raise CreateContainerError(reason) from None
    if is_link(path) and not exists(path):
        raise CreateContainerError(f'failed to mkdir "{path}": mkdir {path}: file exists')
    return CreatedMount(source, mount.container_path, mount.read_only, made_directory=not exists(source))


def _mount_of_cdi(mount: RequestedMount) -> CreatedMount:
    """CDI leaves the source to the low-level runtime: a missing one is an error."""
    try:
        source = resolve(mount.host_path, strict=True)
    except PathError as error:
        why = "too many levels of symbolic links" if error.loop else "no such file or directory"
        raise CreateContainerError(
            f'error mounting "{mount.host_path}" to rootfs at "{mount.container_path}": {why}'
        ) from None
    return CreatedMount(source, mount.container_path, mount.read_only)
