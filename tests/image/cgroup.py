"""The control groups of a run's pods; another checkout may run pods at the same time."""

import os
from pathlib import Path

#: Set in the namespaces of a run: its process id outside of them.
RUN = "GENERICDP_TEST_IMAGE"


def of(pod: str) -> str:
    """The group of a pod, for runc."""
    return f"{_ours()}/{pod}"


def remove() -> None:
    """Remove the groups above those that runc removed, in all hierarchies (cgroups(7))."""
    root = Path("/sys/fs/cgroup")
    for hierarchy in (root, *root.iterdir()):
        group = Path(f"{hierarchy}{_ours()}")
        if group.is_dir():
            group.rmdir()


def _ours() -> str:
    return f"/genericdp-image-{os.environ[RUN]}"
