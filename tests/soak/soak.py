"""A soak: rounds of random operations, each followed by a rest in which the node is compared and measured.

The rules of this file:

* The operations of a round depend on the seed and on its number.
* What goes wrong is reported with the seed, the last operations and the end of the log.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter, deque
from collections.abc import Iterator

from genericdp.simulator import Phase
from tests.soak import rules
from tests.soak.figures import Row
from tests.soak.node import Node
from tests.soak.operations import chosen
from tests.soak.peak import Peak
from tests.soak.state import State

#: The mean time between two operations, in seconds.
PAUSE_S = 0.02

#: How often each latency is measured in a rest.
SAMPLES = 30

#: How much memory the daemon may take in its busiest moment, in MiB.
MOST_MIB = 100

#: How much of the past is shown when something goes wrong.
LAST = 25


class SoakError(AssertionError):
    """The node is not as it was."""


class Soak:
    """A soak of a node that has just started. `done`: how often each operation was done."""

    def __init__(self, node: Node, seed: int) -> None:
        self.done: Counter[str] = Counter()
        self._node = node
        self._seed = seed
        self._lines = 0
        self._last: deque[str] = deque(maxlen=LAST)
        self._at_rest: State | None = None

    async def begin(self) -> None:
        """Bring the node to rest for the first time: this is what later rests are compared with."""
        with self._reported():
            await self._node.rest()
            wrong = await self._node.until(self._incomplete)
            if wrong:
                raise SoakError(wrong)
            # Whatever is opened at the first use is open from now on.
            await self._sample(1)
            # While the daemon asks who holds what, it has a connection more; a rest waits until it has not.
            seen = []
            for _ in range(5):
                seen.append(await self._node.state())
                await asyncio.sleep(0.5)
            self._at_rest = min(seen, key=lambda state: sum(state.descriptors.values()))

    async def round(self, number: int, *, operations: int, until: float = 0.0, samples: int = SAMPLES) -> Row:
        """Do at least so many operations, and go on until then (monotonic time); rest, compare, measure."""
        peak = Peak(self._node.process.pid, MOST_MIB)
        with self._reported(), peak.looking():
            rng = random.Random(f"{self._seed} {number}")  # noqa: S311  (nothing secret depends on it)
            self._node.process.forget_peak()
            count, work = 0, self._node.process.work()
            while count < operations or time.monotonic() < until:
                operation = chosen(rng)
                self._last.append(operation.__name__)
                await operation(self._node, rng)
                self.done[operation.__name__] += 1
                count += 1
                await asyncio.sleep(rng.expovariate(1 / PAUSE_S))
            await self._rest()
            busy_s = (self._node.process.work() - work).busy_s
            lines = self._new_lines()
            await self._node.reset()
            await self._rest()
            plugs, admissions = await self._sample(samples)
            await self._rest()
            memory = self._node.process.memory()
            if memory.peak > MOST_MIB:
                took = f"the daemon took {memory.peak:.0f} MiB for a moment, at rest {memory.resident:.0f}"
                raise SoakError("\n".join((f"{took}; the log says where it was then", *peak.found)))
        return Row(
            operations=self.done.total(),
            descriptors=self._node.process.descriptors().total(),
            threads=self._node.process.threads(),
            resident=memory.resident,
            anonymous=memory.anonymous,
            peak=memory.peak,
            saved=self._node.saved(),
            lines=lines / max(1, count),
            busy_s=busy_s / max(1, count),
            plugs=plugs,
            admissions=admissions,
        )

    async def _rest(self) -> None:
        assert self._at_rest is not None
        await self._node.rest()
        wrong = await self._node.until(self._at_rest.difference)
        if wrong:
            raise SoakError(f"at rest, the node is not as it was.\n{wrong}")

    def _incomplete(self, state: State) -> str:
        """What is still missing at the beginning."""
        healthy = {
            name: [*health.values()] == ["Healthy"] * len(health) for name, health in state.listed.items()
        }
        screens = len(state.listed.get(rules.SCREEN, ()))
        complete = (
            screens == len(self._node.consoles)
            and all(healthy.values())
            and state.streams == dict.fromkeys(sorted(rules.AT_REST), 1)
            and not state.complaints
            and {*state.remembered} == state.links.keys() - {".lock", ".state_dir", ".cdi_dir", ".memory"}
            and any("/state/last-good/" in file and file.endswith(f"/{rules.MAIN}") for file in state.files)
        )
        return "" if complete else f"the node is not complete: {state}"

    async def _sample(self, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (
            tuple([await self._plug() for _ in range(count)]),
            tuple([await self._admission() for _ in range(count)]),
        )

    async def _plug(self) -> float:
        """From opening a console to the kubelet's new list, in ms."""
        node, console = self._node, self._node.consoles[0]
        node.unplug(console)
        await node.kubelet.wait_until(lambda: node.kubelet.allocatable[rules.SCREEN] == len(node.plugged))
        started = time.perf_counter()
        node.plug(console)
        await node.kubelet.wait_until(lambda: node.kubelet.allocatable[rules.SCREEN] == len(node.plugged))
        return (time.perf_counter() - started) * 1000

    async def _admission(self) -> float:
        """How long a pod with two of several devices takes to start, in ms."""
        started = time.perf_counter()
        pod = await self._node.admit(rules.CONSOLE, 2)
        took = (time.perf_counter() - started) * 1000
        if pod.phase is not Phase.RUNNING:
            raise SoakError(f"a pod does not start: {pod.phase} {pod.message} {pod.container('main')}")
        self._node.delete(pod)
        return took

    def _new_lines(self) -> int:
        """How many lines of the log are new. Raises SoakError if one of them reports a bug."""
        log = self._node.log()
        new, self._lines = log[self._lines :], len(log)
        if any(line.startswith("Traceback") for line in new):
            raise SoakError("the daemon logged a traceback")
        return len(new)

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            error.add_note(f"SEED={self._seed}, after {self.done.total()} operations, the last of them:")
            error.add_note("  " + ", ".join(self._last))
            if self._node.process.runs:
                error.add_note("unix sockets of the daemon:")
                for connection in self._node.process.connections():
                    error.add_note(f"  {connection}")
            error.add_note("udev:")
            for line in self._node.udev():
                error.add_note(f"  {line}")
            error.add_note("the end of the log:")
            for line in self._node.log()[-LAST:]:
                error.add_note(f"  {line}")
            raise
