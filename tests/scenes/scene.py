"""A scene of one node: rules, plugged devices, the daemon, a kubelet; and what a test asks about it.

The rules of this file:

* What a container holds is read from the device numbers of its nodes, which is what the kernel goes by.
* Time passes when a test says so: `LoopTime` moves the clock that every pause and wait of the daemon asks.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

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
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.service import FixedRules, Service, settings_below
from tests.scenes.udev import FakeUdev, a_fake_udev

both_runtimes = pytest.mark.parametrize("runtime", [CONTAINERD, CRIO], ids=["containerd", "cri-o"])
both_generations = pytest.mark.parametrize("generation", list(Generation), ids=lambda each: each.name.lower())


@dataclass(frozen=True, slots=True)
class Scene:
    """A node."""

    udev: FakeUdev
    kubelet: Kubelet
    service: Service
    rules: FixedRules
    settings: Settings

    @property
    def daemon(self) -> Daemon:
        return self.service.daemon

    def plug(self, *devices: UdevDevice) -> None:
        """Put devices in."""
        self.udev.plug(*devices)

    def unplug(self, *devices: UdevDevice) -> None:
        """Pull devices out."""
        self.udev.unplug(*devices)

    def edit_rules(self, text: str) -> None:
        """An operator saves the rule file."""
        self.rules.become(text)
        self.daemon.reload()

    async def admit(self, count: int = 1, resource: str = FTDI, name: str = "app") -> PodStatus:
        """A pod of one container, `main`, that asks for devices."""
        return await self.kubelet.admit(Pod(name, [Container("main", limits={resource: count})]))

    async def until_allocatable(
        self, count: int, resource: str = FTDI, *, capacity: int | None = None
    ) -> None:
        await until_allocatable(self.kubelet, count, resource, capacity=capacity)


async def until_allocatable(
    kubelet: Kubelet, count: int, resource: str = FTDI, *, capacity: int | None = None
) -> None:
    """Return once the kubelet has so many devices and, on its next tick, has told the API server."""

    def is_so() -> bool:
        return kubelet.allocatable.get(resource) == count and (
            capacity is None or kubelet.capacity.get(resource) == capacity
        )

    await kubelet.wait_until(is_so)
    kubelet.tick()
    now = kubelet.node_status.now
    assert now.allocatable[resource] == count
    assert capacity is None or now.capacity[resource] == capacity


@asynccontextmanager
async def a_scene(
    root: Path,
    *devices: UdevDevice,
    rules: str = FTDI_RULE,
    settings: Settings | None = None,
    kubelet_runs: bool = True,
    daemon_runs: bool = True,
    generation: Generation = Generation.LEGACY,
    runtime: Runtime = CONTAINERD,
    clock: Clock | None = None,
    usb_reset: Callable[[FakeUdev, int, int], None] | None = None,
    **daemon: Any,
) -> AsyncIterator[Scene]:
    """A node on which these devices are plugged. What does not run at first, the test starts.

    clock      the kubelet's
    usb_reset  resets the device of these BUSNUM and DEVNUM
    daemon     what `Service` takes: `now`, `pauses`, …
    """
    fixed = FixedRules(rules)
    settings = settings or settings_below(root)
    async with AsyncExitStack() as stack:
        udev = stack.enter_context(a_fake_udev())
        # Below /dev, other tests make and remove nodes meanwhile.
        runtime = replace(runtime, host_dev=str(udev.dev))
        kubelet = Kubelet(root, generation=generation, runtime=runtime, clock=clock)
        reset = usb.reset if usb_reset is None else partial(usb_reset, udev)
        service = Service(settings, fixed, udev, usb_reset=reset, **daemon)
        udev.plug(*devices)
        if kubelet_runs:
            await stack.enter_async_context(kubelet)
        stack.push_async_callback(service.stop)
        if daemon_runs:
            await service.start()
        yield Scene(udev, kubelet, service, fixed, settings)


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
