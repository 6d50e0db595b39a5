"""Containers whose device goes or changes while they are being started, and pods that follow each other."""

import asyncio
import time
from pathlib import Path

import pytest

from genericdp.core.comeback.container import Container as Found
from genericdp.core.comeback.plugs import LONGEST_START_S
from genericdp.cri import comeback
from genericdp.cri.runtime import ContainerRuntime
from genericdp.simulator import ContainerState, PodStatus, Point, Runtime
from tests.daemon.test_comeback import (
    BOTH,
    OTHER,
    RESTART,
    STICK,
    STOP,
    replug,
    stops,
    until_judged,
    until_running,
)
from tests.scenes.rules import FTDI
from tests.scenes.scene import Scene, a_scene, both_runtimes, minors_in
from tests.scenes.waiting import until

pytestmark = pytest.mark.usefixtures("kubelet_knows_its_pods")

while_it_starts = pytest.mark.parametrize("point", [Point.CREATE, Point.START], ids=["unlisted", "created"])


@pytest.fixture
def _asks_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)


async def until_asked(scene: Scene, id_: str = "ftdi_A") -> None:
    """Until the containers of a device were looked at since its last plug."""
    known = scene.daemon._comeback

    def is_asked() -> bool:
        plug = known._plugs.by_device[FTDI, id_]
        return plug.judged or plug.not_before > plug.since

    await until(is_asked)


@both_runtimes
@while_it_starts
@pytest.mark.usefixtures("_asks_again_soon")
async def test_a_container_that_starts_with_an_outdated_number_is_restarted(
    short_dir: Path, runtime: Runtime, point: Point
) -> None:
    async with a_scene(short_dir, STICK, rules=RESTART, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        with scene.kubelet.faults.hold(point) as gate:
            admitting = asyncio.ensure_future(scene.admit())
            await gate.reached()
            await replug(scene)
            await until_asked(scene)
            assert stops(scene) == []
            gate.open()
            pod = await admitting
        await until_running(scene, pod, restarts=1)
        assert minors_in(pod.container("main")) == [3]
        await until_judged(scene, "ftdi_A")
        assert stops(scene) == [("app", "main", 30)]


@while_it_starts
@pytest.mark.usefixtures("_asks_again_soon")
async def test_a_container_that_starts_after_its_device_was_unplugged_is_stopped(
    short_dir: Path, point: Point
) -> None:
    async with a_scene(short_dir, STICK, rules=STOP) as scene:
        await scene.until_allocatable(1)
        with scene.kubelet.faults.hold(point) as gate:
            admitting = asyncio.ensure_future(scene.admit())
            await gate.reached()
            scene.unplug(STICK)
            await scene.until_allocatable(0, capacity=1)
            await until_asked(scene)
            gate.open()
            main = (await admitting).container("main")
        await scene.kubelet.wait_until(lambda: main.reason == "CreateContainerError")
        assert stops(scene) == [("app", "main", 30)]


async def test_a_created_container_that_has_its_device_is_not_asked_for_again(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, rules=BOTH) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        with scene.kubelet.faults.hold(Point.START) as gate:
            await scene.service.stop()
            restarting = asyncio.ensure_future(scene.kubelet.restart_container(pod, "main"))
            await gate.reached()
            await scene.service.start()
            await until_judged(scene, "ftdi_A")
            gate.open()
            await restarting
        assert stops(scene) == []


@while_it_starts
@pytest.mark.usefixtures("_asks_again_soon")
async def test_a_container_that_never_starts_is_not_asked_for_for_ever(short_dir: Path, point: Point) -> None:
    passed_s = 0.0
    async with a_scene(short_dir, STICK, rules=BOTH, now=lambda: time.monotonic() + passed_s) as scene:
        await scene.until_allocatable(1)
        with scene.kubelet.faults.hold(point) as gate:
            admitting = asyncio.ensure_future(scene.admit())
            await gate.reached()
            scene.unplug(STICK)
            await scene.until_allocatable(0, capacity=1)
            await until_asked(scene)
            assert not scene.daemon._comeback._plugs.by_device[FTDI, "ftdi_A"].judged
            passed_s = LONGEST_START_S
            await until_judged(scene, "ftdi_A")
            gate.open()
            await admitting


@pytest.mark.usefixtures("pods_leave_at_once")
async def test_a_pod_that_follows_one_of_the_same_name_is_not_taken_for_it(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runtime answers late, and a StatefulSet names its pods alike."""
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)
    successors: list[PodStatus] = []
    containers = ContainerRuntime.containers

    async with a_scene(short_dir, STICK, OTHER, rules=STOP) as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit(name="app-0")
        held = {0: STICK, 1: OTHER}[minors_in(pod.container("main"))[0]]

        async def late(self: ContainerRuntime) -> tuple[Found, ...]:
            if not successors:
                scene.kubelet.delete(pod)
                successors.append(await scene.admit(name="app-0"))
            return await containers(self)

        monkeypatch.setattr(ContainerRuntime, "containers", late)
        scene.unplug(held)
        await until_judged(scene, "ftdi_A" if held is STICK else "ftdi_B")
        await until(lambda: not scene.daemon._comeback._stopping)
        (successor,) = successors
        assert successor.container("main").state is ContainerState.RUNNING
        assert stops(scene) == []
