"""A scene of one node: rules, a machine, the daemon, a kubelet; and what a test asks about it.

The rules of this file:

* What a container holds is read from the device numbers of its nodes, which is what the kernel goes by.
* Time passes when a test says so: `LoopTime` moves the clock that every pause and wait of the daemon asks.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from genericdp import usb
from genericdp.core.device import UdevDevice
from genericdp.core.rules.settings import Settings
from genericdp.daemon import Daemon
from genericdp.simulator import (
    CONTAINERD,
    CRIO,
    Clock,
    Container,
    ContainerStatus,
    Generation,
    Kubelet,
    Pod,
    PodStatus,
    Runtime,
)
from tests.scenes.machine import SHORT_PAUSES, FixedRules, Machine, a_daemon, a_machine, settings_below

FTDI = "example.com/ftdi"
SERIAL_PORTS = """
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }
container_path = "/dev/serial{index}"
"""

both_runtimes = pytest.mark.parametrize("runtime", [CONTAINERD, CRIO], ids=["containerd", "cri-o"])
both_generations = pytest.mark.parametrize("generation", list(Generation), ids=lambda each: each.name.lower())


@dataclass(frozen=True, slots=True)
class Scene:
    """What is there. `rules.become(…)` and `daemon.reload()` are an operator's edit."""

    machine: Machine
    kubelet: Kubelet
    daemon: Daemon
    rules: FixedRules
    settings: Settings

    async def admit(self, count: int = 1, resource: str = FTDI, name: str = "app") -> PodStatus:
        """A pod of one container, `main`, that asks for devices."""
        return await self.kubelet.admit(Pod(name, [Container("main", limits={resource: count})]))

    async def until(self, resource: str, *, capacity: int | None = None, allocatable: int) -> None:
        """Return once the API server has been told so."""
        await until_told(self.kubelet, resource, capacity=capacity, allocatable=allocatable)


@asynccontextmanager
async def a_scene(
    root: Path,
    *devices: UdevDevice,
    rules: str = SERIAL_PORTS,
    generation: Generation = Generation.LEGACY,
    runtime: Runtime = CONTAINERD,
    clock: Clock | None = None,
    coalesce_s: float = 0.0,
    seed: int = 0,
    usb_reset: Callable[[Machine, int, int], None] | None = None,
) -> AsyncIterator[Scene]:
    """A node on which everything runs and these devices are plugged."""
    fixed, settings = FixedRules(rules), settings_below(root, coalesce_s=coalesce_s)
    with a_machine() as machine:
        machine.plug(*devices)
        reset = usb.reset if usb_reset is None else partial(usb_reset, machine)
        async with (
            Kubelet(root, generation=generation, runtime=runtime, clock=clock, seed=seed) as kubelet,
            a_daemon(machine, fixed, settings, pauses=SHORT_PAUSES, usb_reset=reset) as daemon,
        ):
            yield Scene(machine, kubelet, daemon, fixed, settings)


async def until_told(
    kubelet: Kubelet, resource: str, *, allocatable: int, capacity: int | None = None
) -> None:
    """Return once the API server has been told so, on the kubelet's next tick."""

    def is_so() -> bool:
        return kubelet.allocatable.get(resource) == allocatable and (
            capacity is None or kubelet.capacity.get(resource) == capacity
        )

    await kubelet.wait_until(is_so)
    kubelet.tick()
    now = kubelet.node_status.now
    assert now.allocatable[resource] == allocatable
    assert capacity is None or now.capacity[resource] == capacity


async def until(predicate: Callable[[], bool]) -> None:
    """Return once it is so; for what nobody is told."""
    while not predicate():  # noqa: ASYNC110
        await asyncio.sleep(0)


def nodes_in(status: ContainerStatus) -> list[tuple[str, int, int]]:
    """(container path, major, minor) of every device node that a container was made with."""
    assert status.created is not None, f"{status.reason}: {status.message}"
    return [(node.container_path, node.major, node.minor) for node in status.created.nodes]


def minors_in(status: ContainerStatus) -> list[int]:
    """The minors of the device nodes that a container was made with."""
    return [minor for _, _, minor in nodes_in(status)]


def ids_told(status: ContainerStatus, resource: str = FTDI) -> list[str]:
    """The ids that a container finds in its environment."""
    assert status.created is not None, f"{status.reason}: {status.message}"
    name = resource.upper().translate(str.maketrans("./-", "___"))
    return status.created.envs[f"GENERICDP_{name}_IDS"].split(",")


class LoopTime:
    """The clock of the running event loop, moved forward by hand. Real time goes on as well."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._real = self._loop.time
        self._moved = 0.0
        self._loop.time = lambda: self._real() + self._moved  # type: ignore[method-assign]

    def advance(self, seconds: float) -> None:
        """What was to happen by then happens in the next rounds of the loop, in order."""
        self._moved += seconds
