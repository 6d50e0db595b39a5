"""A Debian system in a directory, booted by systemd-nspawn, and commands inside it.

The rules of this file:

* Nothing of a machine outlives its run: a killed run takes the machine along, and what another run
  may have left is ended by the next one.
* Commands enter by nsenter(1): neither machined nor a login is needed, inside or outside.
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

#: How long a boot and a shutdown may take, in seconds. Here it is one second.
BOOT_S = 90.0
HALT_S = 30.0


class MachineError(Exception):
    """The machine does not do what any machine does."""


class Machine:
    """A machine. A context manager: booted inside, ended after. `boot` and `halt` restart it."""

    def __init__(self, tree: Path, *, binds: Mapping[Path, str]) -> None:
        self.tree = tree
        self.console = tree.with_name(f"{tree.name}.console")
        self._binds = binds
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._leader = 0

    def boot(self) -> None:
        """Start it; returns when its service manager says that the boot is done. Raises MachineError."""
        with _notify_socket() as (manager, address), self.console.open("ab") as console:
            command = [
                # It dies with us, and its machine with it.
                "setpriv",
                "--pdeathsig=KILL",
                "systemd-nspawn",
                "--quiet",
                "--boot",
                f"--directory={self.tree}",
                f"--machine=genericdp-{self.tree.name}",
                # There may be no systemd outside.
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
                # Ctrl-C is ours to hear: we shut it down.
                start_new_session=True,
            )
            self._leader = self._until_ready(manager)

    def _until_ready(self, manager: socket.socket) -> int:
        leader = 0
        manager.settimeout(BOOT_S)
        try:
            while True:
                for assignment in manager.recv(65536).decode(errors="replace").splitlines():
                    key, _, value = assignment.partition("=")
                    if key == "X_NSPAWN_LEADER_PID":
                        leader = int(value)
                    elif assignment == "READY=1" and leader:
                        return leader
        except TimeoutError:
            self.halt()
            raise MachineError(f"the machine does not boot; what it said: {self.console}") from None

    def halt(self) -> None:
        """Shut it down in good order, or else end it. Nothing when it does not run."""
        if self._nspawn is None:
            return
        # systemd-nspawn(1): SIGTERM to it is an orderly shutdown inside.
        self._nspawn.terminate()
        try:
            self._nspawn.wait(HALT_S)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()
        self._nspawn = None

    def start(
        self, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Begin a command inside, as root, with both outputs in one pipe."""
        clean = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            **(environment or {}),
        }
        enter = ["nsenter", f"--target={self._leader}", "--all", "env", "-i"]
        return subprocess.Popen(
            [*enter, *(f"{key}={value}" for key, value in clean.items()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )

    def run(self, *command: str) -> str:
        """What a command prints. Raises MachineError with that when it fails."""
        process = self.start(command)
        output, _ = process.communicate()
        if process.returncode:
            raise MachineError(f"{' '.join(command)} ended with status {process.returncode}:\n{output}")
        return output

    def __enter__(self) -> Self:
        self.boot()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.halt()


def end_what_is_left(tree: Path) -> None:
    """End the machine that runs on this tree, if a run was killed in a way of its own; remove the tree."""
    for pid in _runs_on(tree):
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(pid)
            signal.pidfd_send_signal(process, signal.SIGKILL)
            # It becomes readable when the process has ended, see pidfd_open(2).
            select.select([process], [], [], HALT_S)
            os.close(process)
    if tree.exists():
        shutil.rmtree(tree)


def _runs_on(tree: Path) -> Iterator[int]:
    """The systemd-nspawn processes of a tree."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                if arguments[0] == b"systemd-nspawn" and f"--directory={tree}".encode() in arguments:
                    yield int(entry.name)


@contextlib.contextmanager
def _notify_socket() -> Iterator[tuple[socket.socket, str]]:
    """What systemd-nspawn tells the leader's pid and the end of the boot, see its --notify-ready."""
    with tempfile.TemporaryDirectory(prefix="gdp-", dir="/tmp") as directory:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
            manager.bind(f"{directory}/notify")
            yield manager, f"{directory}/notify"
