"""Attacks by shortages: no descriptors, a full disk, no memory, and what happens to the node meanwhile."""

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import cache, partial
from pathlib import Path

from hypothesis import strategies as st

from genericdp.core.memory.saved import delay
from genericdp.core.rules.settings import Settings
from genericdp.errors import GenericdpError
from genericdp.simulator import Container, Kubelet, Pod
from genericdp.status import client
from tests.bench.daemon import a_root, configure, started
from tests.fuzz.target import Target
from tests.scenes.running import run
from tests.udev.hotplug import Console, reserve_console, trigger

#: How long the daemon may take to be as before once the shortage is over, in seconds: until it tries again.
RECOVERED_S = 20.0

#: The processor time that a daemon may take for one attack, its start included, in seconds.
CPU_S = 4.0

_DOMAIN = "genericdp.io"
_ALWAYS = (
    '[[resource]]\nname = "null"\nmatch = { DEVNAME = "/dev/null" }\nanswer = "auto"\non_unplug = "stop"\n'
)
_MORE = '[[resource]]\nname = "zero"\nmatch = { DEVNAME = "/dev/zero" }\n'
_SCREEN = '[[resource]]\nname = "screen"\nmatch = { SUBSYSTEM = "vc", DEVNAME = "NODE" }\n'


@cache
def console() -> Console:
    """The console that comes and goes."""
    return reserve_console()


class Node:
    """A machine with a kubelet and a daemon as a process of its own, of which something runs out."""

    def __init__(self, root: Path, kubelet: Kubelet, stack: AsyncExitStack) -> None:
        self.kubelet = kubelet
        self.more = False
        self._root = root
        self._stack = stack
        self._plugged = stack.enter_context(ExitStack())
        self._is_plugged = False
        self._memory_was_short = False

    async def start(self) -> None:
        """`systemctl start genericdp`."""
        starting = started(self._root, log=subprocess.DEVNULL)
        self._process = (await self._stack.enter_async_context(starting)).process
        self._limits = {
            kind: resource.prlimit(self._pid, kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS)
        }

    async def keep_alive(self) -> None:
        """Start the daemon if it has ended, as systemd does. It may end only for want of memory."""
        if not self._process.runs:
            assert self._memory_was_short, "the daemon has ended"
            await self.start()

    async def follow(self, step: Callable[[], None]) -> None:
        """Take a step. The daemon may end in the middle of it, and then it is over."""
        await self.keep_alive()
        try:
            step()
        except (FileNotFoundError, ProcessLookupError):
            await self.keep_alive()

    @property
    def _pid(self) -> int:
        return self._process.pid

    # Shortages

    def few_descriptors(self, left: int) -> None:
        open_ = len(os.listdir(f"/proc/{self._pid}/fd"))
        self._limit(resource.RLIMIT_NOFILE, open_ + left)

    def little_memory(self, left: int) -> None:
        self._memory_was_short = True
        pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[0])
        self._limit(resource.RLIMIT_AS, pages * resource.getpagesize() + (left << 20))

    def full_disk(self, left: int) -> None:
        with open(self._root / "state/ballast", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1024))
            except OSError:
                file.truncate(max(0, file.tell() - left * 512))

    def end_shortages(self) -> None:
        (self._root / "state/ballast").unlink(missing_ok=True)
        for kind, (soft, hard) in self._limits.items():
            resource.prlimit(self._pid, kind, (soft, hard))

    def _limit(self, kind: int, value: int) -> None:
        hard = self._limits[kind][1]
        resource.prlimit(self._pid, kind, (value if hard == -1 else min(value, hard), hard))

    # What happens

    def plug(self, _: int) -> None:
        if self._is_plugged:
            self._plugged.close()
        else:
            self._plugged.enter_context(console().plugged())
        self._is_plugged = not self._is_plugged

    def edit(self, _: int) -> None:
        self.more = not self.more
        rules = _ALWAYS + _SCREEN.replace("NODE", console().node) + (_MORE if self.more else "")
        (self._root / "rules.d/rules.toml").write_text(rules)

    def reload(self, _: int) -> None:
        os.kill(self._pid, signal.SIGHUP)

    def uevents(self, times: int) -> None:
        trigger(times=1 + times)

    async def allocate(self) -> None:
        """A pod may be refused meanwhile."""
        if self.kubelet.allocatable.get(f"{_DOMAIN}/null"):
            self.kubelet.delete(await self.kubelet.admit(_a_pod()))

    # Laws

    async def assert_as_before(self, complaints: set[str]) -> None:
        """All is as if nothing had run out. `complaints`: what was wrong before, for want of a udevd say."""
        wrong: set[str] = set()
        try:
            async with asyncio.timeout(RECOVERED_S):
                while wrong := await self._wrong() - complaints:
                    await self.keep_alive()
                    await asyncio.sleep(0.05)  # what is wrong is in another process
        except TimeoutError:
            raise AssertionError(f"{RECOVERED_S:g} s after the shortage: {sorted(wrong)}") from None
        busy_s = self._process.work().busy_s
        assert busy_s <= CPU_S, f"{busy_s:.1f} s of processor time"

    async def _wrong(self) -> set[str]:
        expected = {"null": 1, "screen": int(self._is_plugged), "zero": int(self.more)}
        wanted = {f"{_DOMAIN}/{name}": count for name, count in expected.items()}
        if any(self.kubelet.allocatable.get(name, 0) != count for name, count in wanted.items()):
            return {self.kubelet.describe()}
        status = await self.kubelet.admit(_a_pod())
        created = status.containers["main"].created is not None
        self.kubelet.delete(status)
        listed = {id_ for name, count in wanted.items() if count for id_ in self.kubelet.devices(name)}
        return {
            *(() if created else (f"not created: {status}",)),
            *(f"not saved: {id_}" for id_ in listed - {*self._saved()}),
            *await self.complaints(),
        }

    def _saved(self) -> Iterator[str]:
        path = self._root / "state/memory.json"
        if path.exists():
            yield from json.loads(path.read_bytes())["devices"]

    async def complaints(self) -> set[str]:
        """What `status` finds wrong, but for a console that is unplugged."""
        try:
            report = await asyncio.to_thread(client.status, Settings(run_dir=f"{self._root}/run"))
        except GenericdpError as error:
            return {str(error)}
        return {each for each in report["complaints"] if "is Unhealthy: it is unplugged" not in each}


def _a_pod() -> Pod:
    return Pod("app", [Container("main", limits={f"{_DOMAIN}/null": 1})])


@asynccontextmanager
async def a_node() -> AsyncIterator[Node]:
    """A node whose state directory has 64 KiB."""
    with a_root() as root, _a_small_disk(root / "state"):
        runtime = f'runtime_socket = "{root}/runtime.sock"\n'
        configure(root, _ALWAYS + _SCREEN.replace("NODE", console().node), more=f'rescan = "1h"\n{runtime}')
        with socket.socket(socket.AF_UNIX) as stopped:
            stopped.bind(f"{root}/runtime.sock")
        async with Kubelet(root) as kubelet, AsyncExitStack() as stack:
            node = Node(root, kubelet, stack)
            await node.start()
            await kubelet.wait_until(lambda: len(kubelet.capacity) == 2)
            yield node


@contextmanager
def _a_small_disk(path: Path) -> Iterator[None]:
    path.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


Step = Callable[[Node, int], None]

SHORTAGES: dict[str, Step] = {
    "few descriptors": Node.few_descriptors,
    "full disk": Node.full_disk,
    "little memory": Node.little_memory,
}
EVENTS: dict[str, Step] = {
    "plug or unplug": Node.plug,
    "edit the rules": Node.edit,
    "reload": Node.reload,
    "uevents": Node.uevents,
}


def shortages(attack: Sequence[tuple[str, int]]) -> None:
    """Descriptors, disk or memory run out while things happen; once that is over, all is as before."""
    console()  # it stays reserved, and the loop ends
    run(_run_out(attack))


async def _run_out(attack: Sequence[tuple[str, int]]) -> None:
    async with a_node() as node:
        complaints = await node.complaints()
        for what, number in attack:
            match what:
                case "restart the kubelet":
                    await node.kubelet.restart()
                case "allocate":
                    await node.allocate()
                case "let time pass":
                    await asyncio.sleep(delay.SAVE_WITHIN_S * 1.2)
                case _:
                    await node.follow(partial((SHORTAGES | EVENTS)[what], node, number))
            await asyncio.sleep(0.02 * number)  # so that it may, or may not, be followed before the next
        await node.follow(node.end_shortages)
        await node.assert_as_before(complaints)


TARGETS = (
    Target(
        shortages,
        st.lists(
            st.tuples(
                st.sampled_from([*SHORTAGES, *EVENTS, "restart the kubelet", "allocate", "let time pass"]),
                st.integers(0, 9),
            ),
            min_size=1,
            max_size=10,
        ),
        few=2,
    ),
)
