"""A disk that takes seconds to write holds up no device, and an answer to the kubelet only for a while."""

import asyncio
import time
from pathlib import Path
from threading import Timer

from genericdp.core.memory.memory import Memory
from genericdp.core.status.history import Retried
from genericdp.files.directories import LINK_DIR
from genericdp.files.saving import LONGEST_S
from genericdp.files.state import StateFile
from genericdp.simulator import Phase, PodStatus
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI_RULE
from tests.scenes.scene import LoopTime, Scene, a_scene, minors_in
from tests.scenes.service import links_in
from tests.scenes.slow_disk import a_slow_disk
from tests.scenes.waiting import PATIENCE_S, idle, until

MINE, OTHER = a_usb_serial(0, serial="A"), a_usb_serial(1, serial="B", port="3")


def saved(scene: Scene) -> Memory:
    return StateFile(scene.settings.state_dir).load()


async def test_devices_come_and_go_while_the_disk_is_slow(short_dir: Path) -> None:
    async with a_scene(short_dir, MINE) as scene:
        await scene.until_allocatable(1)
        with a_slow_disk() as slow:
            admission = asyncio.ensure_future(scene.admit())
            await until(lambda: slow.waits)
            scene.plug(OTHER)
            await scene.until_allocatable(2)
            scene.unplug(MINE)
            await scene.until_allocatable(1)
            links = links_in(scene.settings)
            assert links["ftdi_A"] == "ftdi_A"
            assert links["ftdi_B"].endswith("/ttyUSB1")
            slow.answer()
            await admission


async def test_devices_come_while_notes_for_the_next_start_are_written_again(short_dir: Path) -> None:
    async with a_scene(short_dir, MINE) as scene:
        await scene.until_allocatable(1)
        note = Path(scene.settings.state_dir, LINK_DIR)
        with a_slow_disk() as slow:
            note.unlink()
            await until(note.exists)
            await until(lambda: slow.waits)
            scene.plug(OTHER)
            await scene.until_allocatable(2)
            slow.answer()


async def test_the_kubelet_gets_its_answer_once_it_is_saved_who_has_what(short_dir: Path) -> None:
    async with a_scene(short_dir, MINE) as scene:
        await scene.until_allocatable(1)
        with a_slow_disk() as slow:
            admission = asyncio.ensure_future(scene.admit())
            await until(lambda: slow.waits)
            await idle()
            assert not admission.done()
            assert not saved(scene).held
            slow.answer()
            pod = await admission
        assert (pod.phase, minors_in(pod.container("main"))) == (Phase.RUNNING, [0])
        assert [*saved(scene).held] == ["ftdi_A"]


async def test_if_the_disk_does_not_answer_at_all_pods_are_admitted_and_status_says_so(
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, MINE) as scene:
        await scene.until_allocatable(1)
        time = LoopTime()
        with a_slow_disk() as slow:
            admission = asyncio.ensure_future(scene.admit())
            await until(lambda: slow.waits)
            time.advance(LONGEST_S)
            assert (await admission).phase is Phase.RUNNING
            failing = scene.daemon.recorder.history.failing
            file = f"{scene.settings.state_dir}/memory.json"
            assert failing[Retried.MEMORY].why == f"cannot save '{file}': the disk has not answered for 10 s"
            slow.answer()
            await until(lambda: not failing)
        assert [*saved(scene).held] == ["ftdi_A"]


async def test_an_answer_that_waits_is_sent_before_the_daemon_ends(short_dir: Path) -> None:
    async with a_scene(short_dir, MINE) as scene:
        await scene.until_allocatable(1)
        with a_slow_disk() as slow:
            admission = asyncio.ensure_future(scene.admit())
            await until(lambda: slow.waits)

            # The end waits for the disk.
            def answer_later() -> None:
                wait_until_sent(admission)
                slow.answer()

            timer = Timer(0.01, answer_later)
            timer.start()
            await scene.service.stop()
            timer.join()
            pod = await admission
        assert (pod.phase, minors_in(pod.container("main"))) == (Phase.RUNNING, [0])
        assert [*saved(scene).held] == ["ftdi_A"]


def wait_until_sent(admission: "asyncio.Future[PodStatus]") -> None:
    """Return once a pod is admitted. To be called in another thread than that of the event loop."""
    deadline = time.monotonic() + PATIENCE_S
    while not admission.done() and time.monotonic() < deadline:
        time.sleep(0.001)


async def test_an_answer_that_waits_is_sent_before_its_resource_is_registered_again(short_dir: Path) -> None:
    async with a_scene(short_dir, MINE) as scene:
        await scene.until_allocatable(1)
        with a_slow_disk() as slow:
            admission = asyncio.ensure_future(scene.admit())
            await until(lambda: slow.waits)
            scene.edit_rules(FTDI_RULE + "prestart = {}\n")
            pod = await admission
            assert (pod.phase, minors_in(pod.container("main"))) == (Phase.RUNNING, [0])
            slow.answer()
