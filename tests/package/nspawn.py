"""A Debian system in a directory, booted by systemd-nspawn, and commands inside it.

The rules of this file:

* Nothing of a machine outlives its run: killing a run kills the machine, and the next run removes
  what may be left.
* Commands enter by nsenter(1), so neither machined nor a login is needed, inside or outside.
"""

import contextlib
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.package import cgroup

#: How long a boot and a shutdown may take, in seconds; each usually takes one.
BOOT_S = 90.0
HALT_S = 30.0


class MachineError(Exception):
    """The machine does not boot."""


class Machine:
    """A machine, which runs from `boot` to `halt`, any number of times."""

    def __init__(self, tree: Path, *, binds: Mapping[Path, str]) -> None:
        self.tree = tree
        self.console = tree.with_name(f"{tree.name}.console")
        self.console.unlink(missing_ok=True)
        self._binds = binds
        self._name = _name(tree)
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._init = 0

    def boot(self) -> None:
        """Start it; returns once its service manager reports the end of the boot. Raises MachineError."""
        with _notify_socket() as (manager, address), self.console.open("ab") as console:
            groups = cgroup.make(self._name)
            command = [
                "sh",
                "-c",
                'for group in $0; do echo $$ >"$group/cgroup.procs" || exit 1; done; exec "$@"',
                " ".join(map(str, groups)),
                # If this process is killed, so is unshare, and with it its whole pid namespace.
                "setpriv",
                "--pdeathsig=KILL",
                "unshare",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "--pid",
                "systemd-nspawn",
                "--quiet",
                "--boot",
                f"--directory={self.tree}",
                f"--machine={self._name}",
                # The host may not run systemd.
                "--register=no",
                "--keep-unit",
                # Real devices, mounts and a udevd: a machine, not a sandbox.
                "--capability=all",
                # udev's messages stay inside; the kernel's come in.
                "--private-network",
                "--notify-ready=yes",
                "--console=pipe",
                "--resolv-conf=off",
                *(f"--bind-ro={outside}:{inside}" for outside, inside in self._binds.items()),
            ]
            self._nspawn = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env={**os.environ, "NOTIFY_SOCKET": address},
                # Ctrl-C goes to this process only, which then shuts the machine down.
                start_new_session=True,
            )
            try:
                self._until_ready(manager, self._nspawn)
            except MachineError:
                self.halt()
                raise
            self._init = cgroup.init_of(groups[0])

    def _until_ready(self, manager: socket.socket, nspawn: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + BOOT_S
        ended = os.pidfd_open(nspawn.pid)
        try:
            while manager.fileno() in _readable(manager.fileno(), ended, until=deadline):
                if b"READY=1" in manager.recv(65536).splitlines():
                    return
        finally:
            os.close(ended)
        output = self.console.read_text(errors="replace")[-2000:]
        raise MachineError(f"the machine does not boot; the end of {self.console}:\n{output}")

    def halt(self) -> None:
        """Shut it down, or kill it if that takes too long. Does nothing if it is not running."""
        if self._nspawn is None:
            return
        if self._init:
            self.start(["systemctl", "poweroff", "--no-block"]).communicate()
            self._init = 0
        try:
            self._nspawn.wait(HALT_S)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()
        self._nspawn = None
        cgroup.remove(self._name)

    def start(
        self, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a command inside, as root, with stdout and stderr in one pipe."""
        clean = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            **(environment or {}),
        }
        enter = ["nsenter", f"--target={self._init}", "--all", "env", "-i"]
        return subprocess.Popen(
            [*enter, *(f"{key}={value}" for key, value in clean.items()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )


def remove(tree: Path) -> None:
    """Remove the tree of a machine that was halted or left behind by a killed run."""
    cgroup.remove(_name(tree))
    if tree.exists():
        shutil.rmtree(tree)


def _name(tree: Path) -> str:
    return f"genericdp-{tree.name}"


def _readable(*files: int, until: float) -> list[int]:
    """The files that can be read, as soon as there is one; empty after `until`."""
    return select.select(files, [], [], max(0.0, until - time.monotonic()))[0]


@contextlib.contextmanager
def _notify_socket() -> Iterator[tuple[socket.socket, str]]:
    """The socket on which systemd-nspawn reports the end of the boot (--notify-ready), and its path."""
    with tempfile.TemporaryDirectory(prefix="gdp-", dir="/tmp") as directory:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
            manager.bind(f"{directory}/notify")
            yield manager, f"{directory}/notify"
