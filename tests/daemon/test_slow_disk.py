"""A disk that takes seconds to write holds up no device, and an answer to the kubelet only for a while."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

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
from tests.scenes.slow_disk import SlowDisk, a_slow_disk
from tests.scenes.waiting import idle, until

MINE, OTHER = a_usb_serial(0, serial="A"), a_usb_serial(1, serial="B", port="3")


def saved(scene: Scene) -> Memory:
    return StateFile(scene.settings.state_dir).load()


@asynccontextmanager
async def a_pod_that_waits(root: Path) -> AsyncIterator[tuple[Scene, SlowDisk, "asyncio.Task[PodStatus]"]]:
    """The kubelet has asked for MINE, and the disk has not written yet who has it."""
    async with a_scene(root, MINE) as scene:
        await scene.until_allocatable(1)
        with a_slow_disk() as slow:
            admission = asyncio.create_task(scene.admit())
            await until(lambda: slow.waits)
            yield scene, slow, admission


async def test_devices_come_and_go_while_the_disk_is_slow(short_dir: Path) -> None:
    async with a_pod_that_waits(short_dir) as (scene, slow, admission):
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
    async with a_pod_that_waits(short_dir) as (scene, slow, admission):
        await idle()
        assert not admission.done()
        assert not saved(scene).held
        slow.answer()
        assert_has_mine(await admission)
        assert [*saved(scene).held] == ["ftdi_A"]


async def test_if_the_disk_does_not_answer_at_all_pods_are_admitted_and_status_says_so(
    short_dir: Path,
) -> None:
    time = LoopTime()
    async with a_pod_that_waits(short_dir) as (scene, slow, admission):
        time.advance(LONGEST_S)
        assert_has_mine(await admission)
        failing = scene.daemon.recorder.history.failing
        file = f"{scene.settings.state_dir}/memory.json"
        assert failing[Retried.MEMORY].why == f"cannot save '{file}': the disk has not answered for 10 s"
        slow.answer()
        await until(lambda: not failing)
        assert [*saved(scene).held] == ["ftdi_A"]


async def test_an_answer_that_waits_is_sent_before_the_daemon_ends(short_dir: Path) -> None:
    async with a_pod_that_waits(short_dir) as (scene, slow, admission):
        # The end waits for the disk.
        admission.add_done_callback(lambda _: slow.answer())
        await scene.service.stop()
        assert_has_mine(await admission)
        assert [*saved(scene).held] == ["ftdi_A"]


async def test_an_answer_that_waits_is_sent_before_its_resource_is_registered_again(short_dir: Path) -> None:
    async with a_pod_that_waits(short_dir) as (scene, slow, admission):
        scene.edit_rules(FTDI_RULE + "prestart = {}\n")
        assert_has_mine(await admission)
        slow.answer()


async def test_at_the_end_the_memory_comes_before_what_is_there(short_dir: Path) -> None:
    """The service manager waits ten seconds, and a slow disk may take that for one file."""
    async with a_scene(short_dir, MINE) as scene:
        await scene.until_allocatable(1)
        with a_slow_disk() as slow:
            slow.answer()
            scene.plug(OTHER)
            await scene.until_allocatable(2)
            await scene.service.stop()
        files = [Path(each).name for each in slow.written if each.endswith(".new")]
        assert files.index("memory.json.new") < files.index("presence.json.new")


def assert_has_mine(pod: PodStatus) -> None:
    assert (pod.phase, minors_in(pod.container("main"))) == (Phase.RUNNING, [0])
