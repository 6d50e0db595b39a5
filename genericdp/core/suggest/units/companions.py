"""Device nodes that go along with every device of a kind: no program can use the one without the other.

The rules of this file:

* Only what drivers themselves require is here, by the driver or the subsystem of the device.
* NVIDIA's driver has nodes of its own for each GPU. udev does not know them, so nothing shows which of them
  belongs to a node that it does know.
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from genericdp.core.device import UdevDevice
from genericdp.core.suggest.units.camera import is_read_by_libcamera


def _is_of_driver(driver: str) -> Callable[[UdevDevice], bool]:
    return lambda node: any(each.driver == driver for each in node.ancestors())


def _is_of(*subsystems: str) -> Callable[[UdevDevice], bool]:
    return lambda node: node.subsystem in subsystems


_GPU_OF_NVIDIA = re.compile(r"/dev/nvidia\d+")


def is_of_nvidia(node: UdevDevice) -> bool:
    """Whether it is the node by which NVIDIA's libraries use a GPU."""
    return node.is_bare and _GPU_OF_NVIDIA.fullmatch(node.device_node or "") is not None


def is_drawn_by_nvidia(node: UdevDevice) -> bool:
    """Whether it is a graphics node of a GPU which NVIDIA's libraries use by another node."""
    return node.subsystem == "drm" and _is_of_driver("nvidia")(node)


#: Those of them that udev does not know.
BARE_COMPANIONS = ("/dev/nvidiactl", "/dev/nvidia-uvm")

#: What goes along -> with which devices.
_WITH: Mapping[str, Callable[[UdevDevice], bool]] = {
    # ROCm: all compute work of all GPUs is submitted there.
    "/dev/kfd": _is_of_driver("amdgpu"),
    # VFIO: the container to which a program adds its groups (Documentation/driver-api/vfio.rst).
    "/dev/vfio/vfio": _is_of("vfio"),
    # iommufd: the same for VFIO character devices.
    "/dev/iommu": _is_of("vfio-dev"),
    # librdmacm: connections of all adapters are managed there.
    "/dev/infiniband/rdma_cm": _is_of("infiniband_verbs"),
    # libcamera: it has the pictures of a Raspberry Pi's camera there (src/libcamera/dma_buf_allocator.cpp).
    "/dev/dma_heap/vidbuf_cached": is_read_by_libcamera,
    "/dev/dma_heap/linux,cma": is_read_by_libcamera,
    # libcuda: it creates its contexts at the one and maps memory through the other.
    **dict.fromkeys(BARE_COMPANIONS, is_of_nvidia),
    # libsophon: it asks there which accelerators there are.
    "/dev/bmdev-ctl": lambda node: node.subsystem == "bm-sophon" and not node.is_virtual,
}


def companions_of(nodes: Sequence[UdevDevice], present: Container[str]) -> tuple[str, ...]:
    """The paths among those that are present of what goes along with a device of these nodes."""
    return tuple(path for path, goes_with in _WITH.items() if path in present and any(map(goes_with, nodes)))


def is_companion(node: UdevDevice, present: Iterable[UdevDevice]) -> bool:
    """Whether a device node goes along with devices that are present."""
    goes_with = _WITH.get(node.device_node or "")
    return goes_with is not None and any(map(goes_with, present))
