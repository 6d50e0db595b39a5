"""PreStartContainer: a container starts with the device that it was given, or waits for it."""

import asyncio
from pathlib import Path

from genericdp.simulator import CRIO, ContainerState, ContainerStatus, Generation, PodStatus, Runtime
from tests.scenes.builders import a_usb_serial
from tests.scenes.machine import FixedRules, Machine, a_daemon, links_in
from tests.scenes.scene import (
    FTDI,
    SERIAL_PORTS,
    LoopTime,
    Scene,
    a_scene,
    both_generations,
    both_runtimes,
    ids_told,
    minors_in,
    until,
)

WITH_WAIT = SERIAL_PORTS + 'prestart = { wait = "20s" }\n'
WITH_RESET = SERIAL_PORTS + 'prestart = { wait = "20s", usb_reset = true }\n'


async def a_restart_that_waits(scene: Scene, pod: PodStatus) -> "asyncio.Future[ContainerStatus]":
    """The container restarts, and its plugin has been asked and waits for the device."""
    restarting = asyncio.ensure_future(scene.kubelet.restart_container(pod, "main"))
    await until(lambda: scene.daemon.plugins.plugins[FTDI].starting == 1)
    return restarting


async def test_a_restart_waits_for_the_three_seconds_that_the_device_is_away(short_dir: Path) -> None:
    # CRI-O would start it without the device, and say nothing.
    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_WAIT, runtime=CRIO) as scene:
        await scene.until(FTDI, allocatable=1)
        pod, time = await scene.admit(), LoopTime()
        scene.machine.unplug(a_usb_serial(0))
        await scene.until(FTDI, allocatable=0)
        restarting = await a_restart_that_waits(scene, pod)
        time.advance(3)
        await asyncio.sleep(0)
        assert not restarting.done()
        scene.machine.plug(a_usb_serial(5))
        status = await restarting
        assert minors_in(status) == [5]
        assert ids_told(status) == ["ftdi_A50285BI"]


async def test_a_device_that_is_away_for_longer_is_named_with_what_to_do_and_the_container_starts_when_it_is_back(  # noqa: E501
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_WAIT, runtime=CRIO) as scene:
        await scene.until(FTDI, allocatable=1)
        pod, time = await scene.admit(), LoopTime()
        scene.machine.unplug(a_usb_serial(0))
        await scene.until(FTDI, allocatable=0)
        restarting = await a_restart_that_waits(scene, pod)
        # Within the 30 s that the kubelet gives: its own error would say nothing.
        time.advance(20.1)
        status = await restarting
        assert status.state is ContainerState.WAITING
        assert status.message.endswith(
            "example.com/ftdi: waited 20 s for 'ftdi_A50285BI' (it is unplugged); "
            "plug it in again, the container is started as soon as it is back"
        )
        time.advance(20)
        scene.machine.plug(a_usb_serial(5))
        await scene.until(FTDI, allocatable=1)
        await scene.kubelet.sync(pod)
        assert minors_in(pod.container("main")) == [5]


async def test_another_unit_under_the_same_name_is_not_taken_for_the_one_that_is_waited_for(
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, a_usb_serial(0, serial="A"), rules=WITH_WAIT, runtime=CRIO) as scene:
        await scene.until(FTDI, allocatable=1)
        pod = await scene.admit()
        scene.machine.unplug(a_usb_serial(0, serial="A"))
        await scene.until(FTDI, allocatable=0)
        restarting = await a_restart_that_waits(scene, pod)
        scene.machine.plug(a_usb_serial(0, serial="B"))
        await scene.until(FTDI, allocatable=1, capacity=2)
        assert not restarting.done()
        scene.machine.plug(a_usb_serial(1, serial="A", port="3"))
        assert minors_in(await restarting) == [1]


async def test_a_rule_that_goes_while_a_container_waits_ends_the_wait_with_an_error(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_WAIT, runtime=CRIO) as scene:
        await scene.until(FTDI, allocatable=1)
        pod = await scene.admit()
        scene.machine.unplug(a_usb_serial(0))
        await scene.until(FTDI, allocatable=0)
        restarting = await a_restart_that_waits(scene, pod)
        scene.rules.become("")
        scene.daemon.reload()
        status = await restarting
        assert status.state is ContainerState.WAITING
        assert scene.kubelet.streams(FTDI) == 0


@both_runtimes
@both_generations
async def test_with_it_a_whole_swap_while_the_daemon_is_down_gives_the_own_unit_or_a_refusal(
    short_dir: Path, generation: Generation, runtime: Runtime
) -> None:
    """A leaves, B takes its name, A returns under another: nobody re-points the link of A meanwhile."""
    a, b = a_usb_serial(0, serial="A", port="1"), a_usb_serial(0, serial="B", port="2")

    async with a_scene(short_dir, a, rules=WITH_WAIT, generation=generation, runtime=runtime) as scene:
        await scene.until(FTDI, allocatable=1)
        pod = await scene.admit()
        scene.daemon.stop()
        await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)
        for _ in range(2):
            status = await scene.kubelet.restart_container(pod, "main")
            assert status.state is ContainerState.WAITING
            if a.sys_path in scene.machine.devices:
                scene.machine.unplug(a)
                scene.machine.plug(b, a_usb_serial(1, serial="A", port="1"))
        assert links_in(scene.settings)["ftdi_A"] == scene.machine.node(b), "the trap is not set"
        async with a_daemon(scene.machine, FixedRules(WITH_WAIT), scene.settings):
            await scene.until(FTDI, allocatable=2)
            await scene.kubelet.sync(pod)
            assert minors_in(pod.container("main")) == [1]


# The reset of a USB device


async def test_after_a_reset_a_container_gets_the_node_that_the_device_has_then_before_udev_has_told(
    short_dir: Path,
) -> None:
    resets: list[str] = []

    def reset(machine: Machine, busnum: int, devnum: int) -> None:
        resets.append(f"{busnum}:{devnum}")
        with machine.unheard():
            machine.unplug(a_usb_serial(0))
            machine.plug(a_usb_serial(7, devnum=5))

    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_RESET, usb_reset=reset) as scene:
        await scene.until(FTDI, allocatable=1)
        pod = await scene.admit()
        assert minors_in(pod.container("main")) == [7]
        assert resets == ["1:4"]


async def test_a_device_that_is_away_after_its_reset_is_waited_for(short_dir: Path) -> None:
    """A bootloader that takes its time, and comes back as an application with other numbers."""

    def reset(machine: Machine, busnum: int, devnum: int) -> None:
        del busnum, devnum
        with machine.unheard():
            machine.unplug(a_usb_serial(0))

    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_RESET, usb_reset=reset) as scene:
        await scene.until(FTDI, allocatable=1)
        admitting = asyncio.ensure_future(scene.admit())
        await scene.until(FTDI, allocatable=0)
        assert not admitting.done()
        scene.machine.plug(a_usb_serial(2, devnum=6))
        pod = await admitting
        assert minors_in(pod.container("main")) == [2]
