"""A separate control group for each machine: two machines in one would kill each other's processes.

The rules of this file:

* The host need not run systemd, so groups are made by hand in the hierarchies that systemd uses
  (version 1, version 2 or both), below the group of this process (cgroups(7)).
* A group has the pid of its run in its name, because other checkouts may run machines, too.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")

#: How long a killed process may take to end, in seconds.
_DYING_S = 30.0


def make(machine: str) -> list[Path]:
    """Make the group in each hierarchy. Writing a pid to its `cgroup.procs` moves a process there."""
    groups = [parent / f"{machine}-{os.getpid()}" for parent in _ours()]
    for group in groups:
        group.mkdir(exist_ok=True)
    return groups


def init_of(group: Path) -> int:
    """The pid, on the host, of the init process of the machine that systemd-nspawn booted in a group."""
    return int((group / "payload/init.scope/cgroup.procs").read_text(encoding="ascii").split()[0])


def remove(machine: str) -> None:
    """Remove this run's group and those of killed runs, with all processes in them."""
    for parent in _ours():
        for group in parent.glob(f"{machine}-*"):
            pid = group.name.rpartition("-")[2]
            if pid == str(os.getpid()) or not os.path.exists(f"/proc/{pid}"):
                _kill(group)
                for path, _, _ in os.walk(group, topdown=False):
                    with contextlib.suppress(FileNotFoundError):
                        os.rmdir(path)


def _kill(group: Path) -> None:
    """Kill all processes of a group and wait until they have ended."""
    for listed in group.rglob("cgroup.procs"):
        for pid in listed.read_text(encoding="ascii").split():
            with contextlib.suppress(ProcessLookupError):
                process = os.pidfd_open(int(pid))
                signal.pidfd_send_signal(process, signal.SIGKILL)
                # It becomes readable when the process has ended, see pidfd_open(2).
                select.select([process], [], [], _DYING_S)
                os.close(process)


def _ours() -> Iterator[Path]:
    """The directories of the groups that this process is in."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "name=systemd":
            yield _ROOT / "systemd" / group.lstrip("/")
        elif not controllers:
            hybrid = _ROOT / "unified"
            yield (hybrid if hybrid.is_dir() else _ROOT) / group.lstrip("/")
