"""VFIO: a device node that hands over every function of an IOMMU group.

The rules of this file:

* The number of a group follows the order of arrival. A group is known by its first function, bridges apart.
* The kernel gives a group to a program only while no other driver works with it. A bridge is part of what
  the group hangs off, and is not handed over.
"""

from collections.abc import Iterable, Sequence

from genericdp.core.device import UdevDevice

#: The class of a PCI bridge of any kind to another PCI bus (include/linux/pci_ids.h), as sysfs prints it.
_BRIDGE = "0x0604"


def is_vfio(device: UdevDevice) -> bool:
    """Whether it is the node of an IOMMU group (/dev/vfio/51) or of a function (/dev/vfio/devices/vfio0)."""
    return device.subsystem in ("vfio", "vfio-dev")


def functions_of(device: UdevDevice) -> Sequence[UdevDevice]:
    """The functions that the node of a VFIO device hands over, bridges included; () for any other device."""
    if not is_vfio(device) or device.parent is None:
        return ()
    return (device.parent, *device.companions)


def with_first(functions: Iterable[UdevDevice]) -> tuple[UdevDevice, ...]:
    """The functions of a group by their addresses, the one that the group is known by first."""
    return tuple(sorted(functions, key=lambda each: (is_bridge(each), _address(each))))


def is_bridge(function: UdevDevice) -> bool:
    """Whether it is a bridge to another PCI bus."""
    return function.attributes.get("class", "").strip().startswith(_BRIDGE)


def why_not_viable(device: UdevDevice) -> str:
    """Why no program can use the node of a VFIO device; "" if one can, or for any other device."""
    for function in functions_of(device):
        if not is_bridge(function) and not _is_for_vfio(function):
            bound = f"bound to {function.driver}" if function.driver else "bound to no driver"
            return f"{function.sys_name} of its IOMMU group is {bound}, not to a vfio driver"
    return ""


def _is_for_vfio(function: UdevDevice) -> bool:
    """Whether its driver hands it over. Every driver of a mediated device does, whatever its name is."""
    if function.subsystem == "mdev":
        return bool(function.driver)
    return "vfio" in function.driver


def _address(function: UdevDevice) -> tuple[int, str]:
    # The number of a PCI domain has four digits or more.
    return len(function.sys_name), function.sys_name
