"""PreStartContainer: a container starts with the device that it was allocated, or waits for it."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from genericdp.core.device import UdevDevice
from genericdp.simulator import CRIO, ContainerState, ContainerStatus, Generation, PodStatus, Runtime
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import (
    LoopTime,
    Scene,
    a_scene,
    both_generations,
    both_runtimes,
    ids_told,
    minors_in,
)
from tests.scenes.service import links_in
from tests.scenes.udev import FakeUdev
from tests.scenes.waiting import idle, until

WITH_WAIT = FTDI_RULE + 'prestart = { wait = "20s" }\n'
WITH_RESET = FTDI_RULE + 'prestart = { wait = "20s", usb_reset = true }\n'


async def a_restart_that_waits(
    scene: Scene, pod: PodStatus, stick: UdevDevice
) -> "asyncio.Future[ContainerStatus]":
    """Unplug the device and restart the container; returns once its plugin waits for the device."""
    scene.unplug(stick)
    await scene.until_allocatable(0)
    restarting = asyncio.ensure_future(scene.kubelet.restart_container(pod, "main"))
    await until(lambda: scene.daemon.plugins.plugins[FTDI].starting == 1)
    return restarting


async def test_a_restart_waits_for_the_three_seconds_that_the_device_is_away(short_dir: Path) -> None:
    # CRI-O would silently start it without the device.
    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_WAIT, runtime=CRIO) as scene:
        await scene.until_allocatable(1)
        pod, time = await scene.admit(), LoopTime()
        restarting = await a_restart_that_waits(scene, pod, a_usb_serial(0))
        time.advance(3)
        await idle()
        assert not restarting.done()
        scene.plug(a_usb_serial(5))
        status = await restarting
        assert minors_in(status) == [5]
        assert ids_told(status) == ["ftdi_A50285BI"]


async def test_a_device_that_is_away_for_longer_is_named_with_what_to_do_and_the_container_starts_when_it_is_back(  # noqa: E501
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_WAIT, runtime=CRIO) as scene:
        await scene.until_allocatable(1)
        pod, time = await scene.admit(), LoopTime()
        restarting = await a_restart_that_waits(scene, pod, a_usb_serial(0))
        # Within the kubelet's 30 s: its own error would not name the device.
        time.advance(20.1)
        status = await restarting
        assert status.state is ContainerState.WAITING
        assert status.message.endswith(
            "example.com/ftdi: waited 20 s for 'ftdi_A50285BI' (it is unplugged); "
            "plug it in again: the container starts as soon as it is back"
        )
        time.advance(20)
        scene.plug(a_usb_serial(5))
        await scene.until_allocatable(1)
        await scene.kubelet.sync(pod)
        assert minors_in(pod.container("main")) == [5]


async def test_another_unit_under_the_same_name_does_not_end_the_wait(
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, a_usb_serial(0, serial="A"), rules=WITH_WAIT, runtime=CRIO) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        restarting = await a_restart_that_waits(scene, pod, a_usb_serial(0, serial="A"))
        scene.plug(a_usb_serial(0, serial="B"))
        await scene.until_allocatable(1, capacity=2)
        assert not restarting.done()
        scene.plug(a_usb_serial(1, serial="A", port="3"))
        assert minors_in(await restarting) == [1]


async def test_removing_the_rule_while_a_container_waits_ends_the_wait_with_an_error(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_WAIT, runtime=CRIO) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        restarting = await a_restart_that_waits(scene, pod, a_usb_serial(0))
        scene.edit_rules("")
        status = await restarting
        assert status.state is ContainerState.WAITING
        # The stream may end a moment after the call.
        await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)


@both_runtimes
@both_generations
async def test_with_prestart_a_swap_while_the_daemon_was_down_gives_the_containers_own_unit_or_a_refusal(
    short_dir: Path, generation: Generation, runtime: Runtime
) -> None:
    """A leaves, B takes its name, A returns under another; without the daemon A's link still points to B."""
    a, b = a_usb_serial(0, serial="A", port="1"), a_usb_serial(0, serial="B", port="2")

    async with a_scene(short_dir, a, rules=WITH_WAIT, generation=generation, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await scene.service.stop()
        await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)
        for _ in range(2):
            status = await scene.kubelet.restart_container(pod, "main")
            assert status.state is ContainerState.WAITING
            if a.sys_path in scene.udev.devices:
                scene.unplug(a)
                scene.plug(b, a_usb_serial(1, serial="A", port="1"))
        assert links_in(scene.settings)["ftdi_A"] == scene.udev.node(b), "the trap is not set"
        await scene.service.start()
        await scene.until_allocatable(2)
        await scene.kubelet.sync(pod)
        assert minors_in(pod.container("main")) == [1]


# The reset of a USB device


async def test_after_a_reset_a_container_gets_the_devices_new_node_even_before_udevs_event(
    short_dir: Path,
) -> None:
    resets: list[str] = []

    def reset(udev: FakeUdev, busnum: int, devnum: int) -> None:
        resets.append(f"{busnum}:{devnum}")
        with udev.unheard():
            udev.unplug(a_usb_serial(0))
            udev.plug(a_usb_serial(7, devnum=5))

    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_RESET, usb_reset=reset) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        assert minors_in(pod.container("main")) == [7]
        assert resets == ["1:4"]


async def test_a_device_that_is_away_after_its_reset_is_waited_for(short_dir: Path) -> None:
    """A slow bootloader returns as an application with another USB id."""

    def reset(udev: FakeUdev, busnum: int, devnum: int) -> None:
        del busnum, devnum
        with udev.unheard():
            udev.unplug(a_usb_serial(0))

    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_RESET, usb_reset=reset) as scene:
        await scene.until_allocatable(1)
        admitting = asyncio.ensure_future(scene.admit())
        await scene.until_allocatable(0)
        assert not admitting.done()
        scene.plug(a_usb_serial(2, devnum=6))
        pod = await admitting
        assert minors_in(pod.container("main")) == [2]


class Hanging:
    """A reset that does not end until it is told to, as one in the kernel."""

    def __init__(self) -> None:
        self.begun = 0
        self._goes_on = threading.Event()

    def __call__(self, udev: FakeUdev, busnum: int, devnum: int) -> None:
        del udev, busnum, devnum
        self.begun += 1
        self._goes_on.wait()

    def end(self) -> None:
        self._goes_on.set()


async def test_a_reset_that_hangs_is_named_in_the_refusal(short_dir: Path) -> None:
    hanging = Hanging()
    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_RESET, usb_reset=hanging) as scene:
        await scene.until_allocatable(1)
        time, admitting = LoopTime(), asyncio.ensure_future(scene.admit())
        await until(lambda: hanging.begun)
        time.advance(20.1)
        pod = await admitting
        assert pod.container("main").message.endswith(
            "example.com/ftdi: waited 20 s for the USB reset to end; "
            "plug it in again: the container starts as soon as it is back"
        )
        hanging.end()


async def test_a_stop_during_a_reset_says_which_device_it_is_that_is_being_reset(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hanging = Hanging()
    async with a_scene(short_dir, a_usb_serial(0), rules=WITH_RESET, usb_reset=hanging) as scene:
        await scene.until_allocatable(1)
        admitting = asyncio.ensure_future(scene.admit())
        await until(lambda: hanging.begun)
        await scene.service.stop()
        hanging.end()
        await admitting
    (record,) = (each for each in caplog.records if each.name == "genericdp.usb")
    assert record.message == "a USB reset has not ended; until it does, the kernel may keep this process"
    assert record.__dict__["fields"] == {"device": "/dev/bus/usb/001/004"}


#: A node on which a reset hangs forever, in a process of its own.
HANGS_FOREVER = """
import asyncio
import sys
from pathlib import Path

from tests.scenes.builders import a_usb_serial
from tests.scenes.scene import a_scene
from tests.scenes.waiting import until
from tests.torture.test_pre_start import WITH_RESET, Hanging


async def main() -> None:
    hanging = Hanging()
    async with a_scene(Path(sys.argv[1]), a_usb_serial(0), rules=WITH_RESET, usb_reset=hanging) as scene:
        await scene.until_allocatable(1)
        admitting = asyncio.ensure_future(scene.admit())
        await until(lambda: hanging.begun)
        await scene.service.stop()
        await admitting
    print("stopped", flush=True)


asyncio.run(main())
"""


def test_a_reset_that_never_ends_does_not_keep_the_process(short_dir: Path) -> None:
    command = [sys.executable, "-c", HANGS_FOREVER, str(short_dir)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30.0, check=False)
    assert (ended.returncode, ended.stdout) == (0, "stopped\n"), ended.stderr
