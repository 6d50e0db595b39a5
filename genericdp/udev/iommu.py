"""IOMMU groups in sysfs: which devices the node of a VFIO device hands over.

The rules of this file:

* Only paths are compared. What the devices are is read as for any other device.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import replace

from genericdp.core.device import UdevDevice
from genericdp.core.vfio import functions_of
from genericdp.udev.sysfs import DEVICES, names_in, unless_gone

#: The node of a group, also of one without an IOMMU, and the node of one function.
_GROUP = re.compile(r"/sys/devices/virtual/vfio/(?:noiommu-)?(\d+)")
_FUNCTION = re.compile(r"(?P<function>.*)/vfio-dev/[^/]+")


class Groups:
    """Remembers the IOMMU group of each VFIO device."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def see(self, sys_path: str) -> bool:
        """Remember it if it is a VFIO device in a group; whether it is. Raises OSError."""
        group = _group_behind(sys_path)
        if group:
            self._of[sys_path] = group
        return group != ""

    def touched_by(self, sys_path: str, devices: Mapping[str, UdevDevice]) -> list[str]:
        """The VFIO devices whose functions are no longer these snapshots, or whose group this device is in.

        Raises OSError.
        """
        self._of = {path: group for path, group in self._of.items() if path in devices}
        group = _group_of(sys_path) if self._of else ""
        return [
            path
            for path, of in self._of.items()
            if of == group
            or any(devices.get(each.sys_path) is not each for each in functions_of(devices[path]))
        ]


def _group_behind(sys_path: str) -> str:
    group = _GROUP.fullmatch(sys_path)
    if group is not None:
        return group.group(1)
    found = _FUNCTION.fullmatch(sys_path)
    return "" if found is None else _group_of(found["function"])


def is_group(sys_path: str) -> bool:
    """Whether it is the sys path of the node of a group: it has no parent of its own."""
    return _GROUP.fullmatch(sys_path) is not None


def members_beside(sys_path: str) -> frozenset[str]:
    """The sys paths of the devices in the group of a VFIO device, without the one that it hangs off.

    None of any other device. Raises OSError if they cannot be listed.
    """
    group = _GROUP.fullmatch(sys_path)
    if group is not None:
        return _members(f"/sys/kernel/iommu_groups/{group.group(1)}/devices")
    found = _FUNCTION.fullmatch(sys_path)
    if found is not None:
        return _members(f"{found['function']}/iommu_group/devices") - {found["function"]}
    return frozenset()


def hung_below(
    device: UdevDevice, parent: UdevDevice | None, functions: tuple[UdevDevice, ...]
) -> UdevDevice:
    """The device below its parent, with the other functions of its group as companions. The node of a group
    hangs below the first of its functions, and is refused without any.
    """
    if is_group(device.sys_path):
        if not functions:
            return replace(device, parent=None, companions=(), refusal="its IOMMU group has no device")
        parent, functions = functions[0], functions[1:]
    return replace(device, parent=parent, companions=functions, refusal="")


def _group_of(sys_path: str) -> str:
    try:
        return os.path.basename(os.readlink(f"{sys_path}/iommu_group"))
    except OSError as error:
        unless_gone(error)
        return ""


def _members(folder: str) -> frozenset[str]:
    found: set[str] = set()
    for name in names_in(folder):
        try:
            found.add(os.path.normpath(f"{os.path.realpath(folder)}/{os.readlink(f'{folder}/{name}')}"))
        except OSError as error:
            unless_gone(error)
    return frozenset(path for path in found if path.startswith(DEVICES))
