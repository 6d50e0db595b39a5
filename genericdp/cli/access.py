"""Who may open a device node, on the host and so in a container."""

import grp
import os
import stat
from dataclasses import dataclass

from genericdp.core.device import UdevDevice


@dataclass(frozen=True, slots=True)
class Access:
    """Who may open a device node. The container runtime copies it for the node in the container."""

    mode: int
    gid: int
    group: str

    def __str__(self) -> str:
        return f"{stat.filemode(self.mode)}, group {self.group} ({self.gid})"

    @property
    def advice(self) -> str:
        """What a process in a container needs that is not root, or "" when it needs nothing."""
        if self.mode & 0o006 == 0o006:
            return ""
        if self.gid and self.mode & 0o060 == 0o060:
            return f"a process that is not root needs supplementalGroups: [{self.gid}]"
        return "only root can open it for reading and writing"

    @classmethod
    def of(cls, device: UdevDevice) -> "Access | None":
        """That of a device's node as it is now; None when there is no node."""
        try:
            status = os.stat(device.device_node or "")
        except OSError:
            return None
        try:
            group = grp.getgrgid(status.st_gid).gr_name
        except KeyError:
            group = "without a name"
        return cls(status.st_mode, status.st_gid, group)
