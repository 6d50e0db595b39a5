"""The node on which the package is installed: its service, kubelet, files and devices.

Runs inside the machine, on the distribution's own Python and libraries.

The rules of this file:

* Nothing sleeps: cases wait for the kubelet's state, a line of the journal, the end of systemctl.
"""

import asyncio
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from genericdp.simulator import Container, Kubelet, Phase, Pod, PodStatus
from tests.udev.hotplug import Console

UNIT = "genericdp.service"
KUBELET_ROOT = Path("/var/lib/kubelet")
RULES_D = Path("/etc/genericdp/rules.d")
SETTINGS = Path("/etc/genericdp/genericdp.toml")
LINKS = Path("/dev/genericdp")
STATE = Path("/var/lib/genericdp")
DROP_INS = Path(f"/etc/systemd/system/{UNIT}.d")

#: FUSE comes from the steps of docs/install.md, the others from RULES.
FUSE = "genericdp.io/fuse"
SCREEN = "genericdp.io/screen"
TAP = "genericdp.io/tap"

RULES = """\
[[resource]]
name = "screen"
match = {{ SUBSYSTEM = "vc", DEVNAME = "{screen}" }}

[[resource]]
name = "tap"
match = {{ SUBSYSTEM = "macvtap" }}
"""

#: The timeout for anything that the service normally does within milliseconds.
PATIENCE_S = 20.0


class Node:
    """A machine with the package, a simulated kubelet, and a console reserved for this run."""

    def __init__(self, kubelet: Kubelet, console: Console) -> None:
        self.kubelet = kubelet
        self.console = console
        self._cursor = ""

    # Commands.

    async def run(self, *command: str, status: int = 0) -> str:
        """Run a command; returns its output. AssertionError unless it ends with `status`."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        text = output.decode(errors="replace")
        assert process.returncode == status, f"{' '.join(command)}: status {process.returncode}\n{text}"
        return text

    async def show(self, name: str) -> str:
        """A property of the service from `systemctl show`."""
        return (await self.run("systemctl", "show", "--value", f"--property={name}", UNIT)).strip()

    async def pid(self) -> int:
        """The daemon's pid; 0 when it is not running."""
        return int(await self.show("MainPID"))

    # The journal.

    async def listen(self) -> None:
        """From now on, `logged` finds lines of the journal."""
        output = await self.run("journalctl", "--quiet", "--lines=0", "--show-cursor")
        self._cursor = output.rpartition("-- cursor: ")[2].strip()

    async def logged(self, text: str, *, by: str = f"--unit={UNIT}", timeout_s: float = PATIENCE_S) -> str:
        """Wait for a line of the journal with this text; returns it. AssertionError if none comes."""
        process = await asyncio.create_subprocess_exec(
            "journalctl",
            "--follow",
            "--no-tail",
            "--output=cat",
            f"--after-cursor={self._cursor}",
            by,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        lines: list[str] = []
        try:
            async with asyncio.timeout(timeout_s):
                async for line in process.stdout:
                    lines.append(line.decode(errors="replace").rstrip())
                    if text in lines[-1]:
                        return lines[-1]
        except TimeoutError:
            pass
        finally:
            process.kill()
            await process.wait()
        raise AssertionError(f"the journal has no line with '{text}', only:\n" + "\n".join(lines))

    # The kubelet.

    async def wait_until(self, condition: Callable[[], object]) -> None:
        """Return once `condition()` is true, checked after each change of the kubelet."""
        await self.kubelet.wait_until(condition, timeout_s=PATIENCE_S)

    async def until_offered(self, resource: str, allocatable: int) -> None:
        """Return once `allocatable` devices of a resource are Healthy."""
        await self.wait_until(lambda: self.kubelet.allocatable.get(resource) == allocatable)

    def registrations(self, resource: str) -> int:
        """The number of successful registrations of a resource."""
        return sum(
            attempt.resource == resource and attempt.answer == "" for attempt in self.kubelet.registrations
        )

    async def until_registered_again(self, resource: str, before: int) -> None:
        """Return once there is a successful registration beyond `before`, with one open stream."""
        await self.wait_until(
            lambda: self.registrations(resource) > before and self.kubelet.streams(resource) == 1
        )

    async def admit(self, resource: str) -> PodStatus:
        """Admit a pod with one container, `main`, and one device of a resource."""
        self.kubelet.tick()
        pod = await self.kubelet.admit(Pod("app", [Container("main", limits={resource: 1})]))
        assert pod.phase is Phase.RUNNING, f"{pod.phase} {pod.reason} {pod.message} {self.kubelet.describe()}"
        return pod

    # Files.

    def write_rules(self, name: str, text: str) -> None:
        """Write a rule file as an editor does: by rename."""
        draft = RULES_D / f".{name}.draft"
        draft.write_text(text)
        draft.chmod(0o644)
        draft.rename(RULES_D / name)

    def screen_rules(self) -> str:
        """The rules with which cases begin, in addition to those of docs/install.md."""
        return RULES.format(screen=self.console.node)

    async def write_drop_in(self, name: str, text: str) -> None:
        """Add a drop-in to the unit and restart the service, which puts it in effect."""
        DROP_INS.mkdir(exist_ok=True)
        (DROP_INS / name).write_text(text)
        await self.run("systemctl", "daemon-reload")
        await self.run("systemctl", "restart", UNIT)

    def links(self) -> dict[str, str]:
        """The stable links: name -> target."""
        with os.scandir(LINKS) as entries:
            return {entry.name: os.readlink(entry.path) for entry in entries if entry.is_symlink()}

    # Between the cases.

    async def begin(self) -> None:
        """Set up a case: service and kubelet are running, rules are the initial ones, there are no pods."""
        for pod in self.kubelet.pods:
            self.kubelet.delete(pod)
        if DROP_INS.exists():
            shutil.rmtree(DROP_INS)
            await self.run("systemctl", "daemon-reload")
            await self.run("systemctl", "restart", UNIT)
        for path in RULES_D.iterdir():
            if path.name not in ("50-fuse.toml", "60-test.toml"):
                path.unlink()
        self.write_rules("60-test.toml", self.screen_rules())
        if not self.kubelet.running:
            await self.kubelet.start()
        if await self.show("ActiveState") != "active":
            await self.run("systemctl", "start", UNIT)
        wanted = {FUSE, SCREEN, TAP}
        await self.wait_until(
            lambda: (
                self.kubelet.allocatable.get(FUSE) == 100
                and wanted <= self.kubelet.capacity.keys()
                and all(self.kubelet.streams(name) == 1 for name in wanted)
            )
        )
        await self.listen()


def make_device_nodes() -> None:
    """Make the terminals behind the consoles, which a container's /dev lacks, without udev."""
    for number in range(64):
        path = f"/dev/tty{number}"
        if not os.path.exists(path):
            os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(4, number))
