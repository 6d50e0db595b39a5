"""Who may open a device node, and what a pod needs for it."""

from dataclasses import replace

import pytest

from genericdp.core.explain.access import Access, Needs, needs_of
from genericdp.core.inventory.offer import Device, Node
from genericdp.core.rules.resource import NodeTable

TTY = Access(0o20660, 0, "root", 20, "dialout")


def a_node(path: str, permissions: str = "rw") -> Node:
    return Node(path, None, "link", NodeTable(permissions=permissions), {}, (), "/sys/x")


@pytest.mark.parametrize(
    ("access", "permissions", "advice"),
    [
        (TTY, "rw", "a non-root process needs supplementalGroups: [20]"),
        (
            replace(TTY, mode=0o20640),
            "rw",
            "only root can open /dev/a; set GROUP and MODE in a udev rule",
        ),
        (replace(TTY, mode=0o20640), "r", "a non-root process needs supplementalGroups: [20]"),
        (
            replace(TTY, gid=0, group="root"),
            "rw",
            "only root can open /dev/a; set GROUP and MODE in a udev rule",
        ),
        (replace(TTY, mode=0o20666), "rw", ""),
        (replace(TTY, mode=0o20664), "r", ""),
        (None, "rw", ""),
    ],
)
def test_a_user_other_than_root_learns_how_to_open_the_device(
    access: Access | None, permissions: str, advice: str
) -> None:
    device = Device("a", nodes=(a_node("/dev/a", permissions),))

    assert needs_of(device, [access]).advice == advice


def test_a_device_of_several_nodes_needs_the_groups_of_all() -> None:
    device = Device("a", nodes=(a_node("/dev/a"), a_node("/dev/b"), a_node("/dev/c"), a_node("/dev/d")))
    video = Access(0o20660, 0, "root", 44, "video")

    assert needs_of(device, [video, TTY, TTY, None]) == Needs((20, 44))
    assert needs_of(device, [video, TTY, TTY, None]).advice == (
        "a non-root process needs supplementalGroups: [20, 44]"
    )
    closed = replace(TTY, mode=0o20600)
    assert needs_of(device, [closed, TTY, closed, None]).advice == (
        "only root can open /dev/a, /dev/c; set GROUP and MODE in a udev rule"
    )
