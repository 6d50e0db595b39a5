"""The node of a soak: the daemon as a process, real devices, a simulated kubelet, clients of the daemon.

The rules of this file:

* The daemon is observed from outside: /proc, its links, its sockets, its answers, the kubelet's lists.
* At rest, all consoles are plugged and nothing else is; no pod runs, and nobody is connected.
"""

import asyncio
import contextlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from genericdp.simulator import Container, Generation, Kubelet, Pod, PodStatus
from genericdp.simulator.devices import checkpoint
from genericdp.status.protocol import question, socket_path
from tests.bench.daemon import a_root, daemon
from tests.bench.process import Process
from tests.scenes.asking import Client, answer_to, connected
from tests.soak import rules
from tests.soak.state import State
from tests.udev.hotplug import NULL, Console, Udevd, macvtap, reserve_console, trigger, udevd

CONSOLES = 5

#: How long the node may take to be as it was, in seconds. A registration that failed waits up to 30 s.
PATIENCE_S = 90.0

#: How often another process is looked at, in seconds: it tells nobody.
LOOK_S = 0.02

#: Where the daemon keeps files that have to be the same at each rest.
_PARTS = ("run/*", "state/*", "state/last-good/*", "state/last-good/*/*")


class Node:
    """Everything on the node. `kubelet` is another object after an upgrade."""

    def __init__(
        self, root: Path, process: Process, log: Path, consoles: Sequence[Console], udev: Udevd
    ) -> None:
        self.root = root
        self.process = process
        self.udevd = udev
        self.udevd_was_killed = False
        self.consoles = consoles
        self.kubelet = Kubelet(root)
        self.plugged: dict[Console, contextlib.ExitStack] = {}
        self.taps: list[contextlib.ExitStack] = []
        self.pods: list[PodStatus] = []
        self.clients: list[contextlib.AsyncExitStack] = []
        self._log = log
        self._named = 0

    # Devices

    def plug(self, console: Console) -> None:
        """Make the kernel add a console's screen; nothing if it is there."""
        if console not in self.plugged:
            self.plugged[console] = contextlib.ExitStack()
            self.plugged[console].enter_context(console.plugged())

    def unplug(self, console: Console) -> None:
        """Make the kernel remove it; nothing if it is not there."""
        if console in self.plugged:
            self.plugged.pop(console).close()

    async def plug_stranger(self) -> None:
        """A device that was never here before."""
        stack = contextlib.ExitStack()
        # It starts programs, and the kubelet must not wait for them.
        await asyncio.to_thread(stack.enter_context, macvtap(f"gdp{self.fresh()}"))
        self.taps.append(stack)

    async def unplug_stranger(self, number: int) -> None:
        """One of them leaves for good."""
        await asyncio.to_thread(self.taps.pop(number).close)

    # Rule files

    def write(self, name: str, text: str, *, in_place: bool = False) -> None:
        """Save a rule file, by rename as most editors do, or in place."""
        path = self.root / "rules.d" / name
        if in_place and path.exists():
            path.write_text(text)
            return
        new = path.with_name(f".{name}.new")
        new.write_text(text)
        new.chmod(0o644)
        new.replace(path)

    @property
    def nodes(self) -> list[str]:
        """The nodes of the consoles."""
        return [console.node for console in self.consoles]

    # Pods

    async def admit(self, resource: str, count: int) -> PodStatus:
        """Bind a pod to the node; what it becomes."""
        self.kubelet.tick()
        pod = await self.kubelet.admit(
            Pod(f"pod-{self.fresh()}", [Container("main", limits={resource: count})])
        )
        self.pods.append(pod)
        return pod

    def delete(self, pod: PodStatus) -> None:
        """Delete a pod."""
        self.pods.remove(pod)
        self.kubelet.delete(pod)

    async def upgrade(self) -> None:
        """Drain the node and start a kubelet of the other generation on the same files."""
        other = Generation.NEWER if self.generation is Generation.LEGACY else Generation.LEGACY
        await self._drain()
        await self._start(other)

    async def reset(self) -> None:
        """Drain the node and start a kubelet that remembers nothing.

        A kubelet keeps the name of every resource that it has seen, and takes longer with each. What is
        measured afterwards shows the past of the daemon only.
        """
        await self._drain()
        (self.kubelet.directory / checkpoint.NAME).unlink(missing_ok=True)
        await self._start(self.generation)

    async def _drain(self) -> None:
        for pod in list(self.pods):
            self.delete(pod)
        await self.kubelet.stop()
        self._raise_panics()

    async def _start(self, generation: Generation) -> None:
        self.kubelet = Kubelet(self.root, generation=generation)
        await self.kubelet.start()

    @property
    def generation(self) -> Generation:
        """That of the kubelet."""
        return self.kubelet._configuration.generation

    # Who asks the daemon

    async def connect(self, address: Path, ask: bytes) -> None:
        """A client that asks and stays."""
        stack = contextlib.AsyncExitStack()
        client: Client = await stack.enter_async_context(connected(address))
        client.writer.write(ask)
        self.clients.append(stack)

    async def status(self) -> dict[str, Any]:
        """The report of the daemon."""
        answer: dict[str, dict[str, Any]] = json.loads(await answer_to(self.control, question("status")))
        return answer["status"]

    @property
    def control(self) -> Path:
        """Where `status` and `monitor` ask."""
        return Path(socket_path(f"{self.root}/run"))

    @property
    def metrics(self) -> Path:
        """Where Prometheus asks."""
        return self.root / "run/metrics.sock"

    # At rest

    async def rest(self) -> None:
        """Bring everything back that the operations changed; the daemon follows later."""
        while self.clients:
            await self.clients.pop().aclose()
        for pod in list(self.pods):
            self.delete(pod)
        while self.taps:
            await self.unplug_stranger(0)
        for console in self.consoles:
            self.plug(console)
        for path in (self.root / "rules.d").iterdir():
            if path.name != rules.MAIN:
                path.unlink()
        self.write(rules.MAIN, rules.main(self.nodes))
        # A udevd that was killed took its events with it. The daemon believes in the next one when it speaks.
        trigger(NULL)
        if self.udevd_was_killed:
            for console in self.consoles:
                trigger(console.sys_path, "add")
        self.udevd_was_killed = False

    async def state(self) -> State:
        """What the node is like now."""
        kubelet = self.kubelet
        kubelet.tick()
        # Nobody has triggered the udevd of this machine, so it is said to have looked at few devices.
        complaints = tuple(
            each
            for each in (await self.status())["complaints"]
            if not each.startswith("udevd runs, but has not")
        )
        named = {*kubelet.capacity, *rules.AT_REST}
        return State(
            {
                name: {id_: device.health for id_, device in kubelet.devices(name).items()}
                for name in rules.AT_REST
                if name in kubelet.capacity
            },
            {name: streams for name in sorted(named) if (streams := kubelet.streams(name))},
            _links(self.root / "links"),
            tuple(sorted(str(path) for part in _PARTS for path in self.root.glob(part))),
            self._remembered(),
            len(list(kubelet.directory.glob("gdp-*.sock"))),
            _described(self.process.descriptors()),
            complaints,
        )

    async def until(self, wrong: Callable[[State], str]) -> str:
        """Return once nothing is wrong: "". Otherwise, after a long time, what is."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if not self.process.runs:
                return "the daemon has ended"
            found = wrong(await self.state())
            if not found or time.monotonic() > deadline:
                return found
            await asyncio.sleep(LOOK_S)

    def _remembered(self) -> tuple[str, ...]:
        try:
            saved = json.loads((self.root / "state/memory.json").read_bytes())
        except FileNotFoundError:
            return ()
        return tuple(sorted({*saved["devices"], *saved["withdrawn"]}))

    def udev(self) -> list[str]:
        """For each console: what the kernel has, and what udev knows about it."""
        found = []
        for console in self.consoles:
            number = f"c7:{console.number}"
            entry = Path(f"/run/udev/data/{number}")
            there = [each for each in (console.sys_path, console.node, str(entry)) if os.path.exists(each)]
            words = ["plugged" if console in self.plugged else "unplugged", *there]
            if entry.exists():
                words.append(f"written {time.time() - entry.stat().st_mtime:.3f} s ago")
            found.append(f"{console.node}: {', '.join(words)}")
        return found

    def saved(self) -> int:
        """How many bytes the daemon keeps for a reboot."""
        return sum(path.stat().st_size for path in self.root.glob("state/**/*"))

    def log(self) -> list[str]:
        """All lines that the daemon has logged."""
        return self._log.read_text(errors="replace").splitlines()

    def fresh(self) -> int:
        """A number that was not used before."""
        self._named += 1
        return self._named

    def _raise_panics(self) -> None:
        if self.kubelet.panics:
            raise self.kubelet.panics[0]

    async def close(self) -> None:
        """End what this object started."""
        for client in self.clients:
            await client.aclose()
        for stack in (*self.taps, *self.plugged.values()):
            stack.close()
        if self.kubelet.running:
            await self.kubelet.stop()
        self._raise_panics()


@contextlib.asynccontextmanager
async def a_node(consoles: Sequence[Console], log: Path) -> AsyncIterator[Node]:
    """One whose daemon is READY. Raises AssertionError if the daemon leaves a socket behind when it ends."""
    with a_root() as root, udevd() as udev:
        for sys_path in rules.FIXED:
            trigger(sys_path, "add")
        udev.settle()
        log.parent.mkdir(exist_ok=True)
        with log.open("wb") as file:
            async with _daemon(root, rules.main([console.node for console in consoles]), file) as process:
                node = Node(root, process, log, consoles, udev)
                try:
                    await node.kubelet.start()
                    yield node
                finally:
                    await node.close()
        left = [str(path) for path in root.glob("**/*.sock") if path.name != "kubelet.sock"]
        assert not left, f"sockets left behind: {left}"


@contextlib.asynccontextmanager
async def _daemon(root: Path, text: str, log: BinaryIO) -> AsyncIterator[Process]:
    more = f'log_format = "text"\nmetrics = "unix:{root}/run/metrics.sock"\n'
    async with daemon(root, text, coalesce="5ms", more=more, module="tests.soak.hurried", log=log) as running:
        (root / "rules.d/rules.toml").rename(root / "rules.d" / rules.MAIN)
        yield running.process


def _described(descriptors: Mapping[str, int]) -> dict[str, int]:
    """Descriptors by names that stay the same: each plugin socket has a name of its own."""
    found: Counter[str] = Counter()
    for what, count in descriptors.items():
        found[re.sub(r"gdp-[^/]*\.sock", "gdp-….sock", what)] += count
    return dict(found)


def _links(directory: Path) -> dict[str, str]:
    """Everything in the link directory; "" for what is not a link. It may change meanwhile."""
    found = {}
    for path in sorted(directory.iterdir()):
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = str(path.readlink()) if path.is_symlink() else ""
    return found


def reserve_consoles() -> list[Console]:
    """Some consoles for this process, as long as it lives; fewer if others use them."""
    found = [reserve_console()]
    with contextlib.suppress(RuntimeError):
        while len(found) < CONSOLES:
            found.append(reserve_console())
    return found
