"""The values of a container's creation: the runtime, the request and the result.

The rules of this file:

* Values only; `creation` has the steps.
* Nothing is really created: the result describes the container that would be.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from genericdp.simulator.runtimes.cdi_cache import CdiCache
from genericdp.simulator.runtimes.oci import OciDevice


class Personality(Enum):
    """The runtime that the kubelet calls."""

    CONTAINERD = "containerd"
    CRIO = "cri-o"


class LowLevel(Enum):
    """The runtime that makes the nodes. The two differ in user namespaces."""

    RUNC = "runc"
    CRUN = "crun"


class CdiSupport(Enum):
    """What a runtime does with the CDI devices of a request.

    ON       containerd from 2.0, CRI-O from 1.28: it looks them up
    OFF      containerd from 2.0 with `enable_cdi = false`: it refuses the container
    IGNORED  containerd 1.6, and 1.7 unless `enable_cdi` is set: it creates the container without them
    """

    ON = "on"
    OFF = "off"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Runtime:
    """A container runtime with the settings that matter to devices.

    device_ownership  `device_ownership_from_security_context`
    cgroup            version of the device cgroup, 1 or 2
    host_dev          of which directory privileged containers get all devices; "" for none
                      (`privileged_without_host_devices`)
    cdi_dirs          directories of CDI specs; later ones win
    cdi_cache         what it has read of these; None: it reads them at each creation
    """

    personality: Personality = Personality.CONTAINERD
    low_level: LowLevel = LowLevel.RUNC
    device_ownership: bool = False
    cgroup: int = 2
    host_dev: str = "/dev"
    cdi: CdiSupport = CdiSupport.ON
    cdi_dirs: tuple[str, ...] = ("/etc/cdi", "/var/run/cdi")
    cdi_cache: CdiCache | None = None


#: containerd 2.x with its defaults.
CONTAINERD = Runtime()
#: CRI-O with its defaults, except that runc, which is stricter, replaces crun.
CRIO = Runtime(Personality.CRIO)


@dataclass(frozen=True, slots=True)
class RequestedDevice:
    """`runtime.v1.Device`, verbatim from the plugin."""

    host_path: str
    container_path: str
    permissions: str


@dataclass(frozen=True, slots=True)
class RequestedMount:
    """`runtime.v1.Mount`."""

    host_path: str
    container_path: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    """The part of the kubelet's request that matters to devices."""

    devices: tuple[RequestedDevice, ...] = ()
    mounts: tuple[RequestedMount, ...] = ()
    envs: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()
    privileged: bool = False
    user_namespace: bool = False
    run_as_user: int = 0
    run_as_group: int = 0
    image_files: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device node that a process in the container finds.

    kind         "c" or "b"
    mode         permission bits of the node
    uid, gid     its owner as seen in the container
    permissions  the access that the device cgroup grants, "" for none
    source       the node on the host, links resolved
    host_path    the path that the plugin (or a CDI spec) named
    """

    container_path: str
    kind: str
    major: int
    minor: int
    mode: int
    uid: int
    gid: int
    permissions: str
    source: str
    host_path: str


@dataclass(frozen=True, slots=True)
class CreatedMount:
    """A bind mount. `made_directory`: the source is missing, so the runtime creates an empty directory."""

    host_path: str
    container_path: str
    read_only: bool
    made_directory: bool = False


@dataclass(frozen=True, slots=True)
class CreatedContainer:
    """A container as its process finds it.

    groups        those that CDI adds to the process
    spec_devices  the devices of its OCI spec
    """

    nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[CreatedMount, ...] = ()
    envs: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    spec_devices: tuple[OciDevice, ...] = ()
    config: ContainerConfig = field(default_factory=ContainerConfig, compare=False)

    def node(self, container_path: str) -> DeviceNode | None:
        """The device node at a path, or None."""
        return next((node for node in self.nodes if node.container_path == container_path), None)


class CreateContainerError(Exception):
    """The runtime refuses to create the container; the text is what the kubelet shows."""
