"""Access to a device node, on the host as in a container."""

import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from genericdp.core.inventory.offer import Device, Node


@dataclass(frozen=True, slots=True)
class Access:
    """Who may open a device node. The container runtime copies it for the node in the container."""

    mode: int
    uid: int
    owner: str
    gid: int
    group: str

    def __str__(self) -> str:
        return f"{stat.filemode(self.mode)}, owner {self.owner} ({self.uid}), group {self.group} ({self.gid})"

    def group_for(self, permissions: str) -> int | None:
        """The group that a process other than root needs for these permissions ("rw"); -1 when it needs
        none, None when no group is enough.
        """
        bits = (4 if "r" in permissions else 0) | (2 if "w" in permissions else 0)
        if self.mode & bits == bits:
            return -1
        return self.gid if self.gid and self.mode >> 3 & bits == bits else None

    def as_json(self) -> dict[str, object]:
        """For programs. Keys are only ever added."""
        return {
            "mode": f"{stat.S_IMODE(self.mode):04o}",
            "uid": self.uid,
            "owner": self.owner,
            "gid": self.gid,
            "group": self.group,
        }


#: How the access to a device node is found out; None when the node does not exist.
AccessOf = Callable[[str], Access | None]


@dataclass(frozen=True, slots=True)
class Needs:
    """What a process in a container needs unless it is root.

    groups   for `securityContext.supplementalGroups` of its pod
    closed   the device nodes that only root can open
    by_udev  whether a udev rule can change that
    """

    groups: tuple[int, ...] = ()
    closed: tuple[str, ...] = ()
    by_udev: bool = True

    @property
    def advice(self) -> str:
        """The same in words, "" when it needs nothing."""
        if self.closed:
            do = (
                "set GROUP and MODE in a udev rule"
                if self.by_udev
                else "set the mode where the node is created"
            )
            return f"only root can open {', '.join(self.closed)}; {do}"
        if not self.groups:
            return ""
        groups = ", ".join(map(str, self.groups))
        return f"a non-root process needs supplementalGroups: [{groups}]"


def needs_of(device: Device, access: Iterable[Access | None]) -> Needs:
    """What is needed to open the nodes that a container gets with a device, given the access to each."""
    groups: set[int] = set()
    closed: list[Node] = []
    for node, each in zip(device.nodes_inside, access, strict=True):
        group = -1 if each is None else each.group_for(node.table.permissions)
        if group is None:
            closed.append(node)
        elif group >= 0:
            groups.add(group)
    by_udev = not all(node.is_bare for node in closed)
    return Needs(tuple(sorted(groups)), tuple(node.path for node in closed), by_udev or not closed)
