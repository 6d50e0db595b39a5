"""The daemon restores the notes for its next start when they are removed or mounted over.

The mounts are real.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp.core.rules.settings import AnswerBy, Settings
from genericdp.errors import GenericdpError
from genericdp.files.directories import CDI_DIR, CDI_DIR_BESIDE_LINKS, LINK_DIR, PROVIDED, STATE_DIR
from genericdp.files.state import StateFile
from genericdp.service.directories import AGAIN_S, Directories
from genericdp.simulator import ContainerState
from tests.daemon.test_last_good import BAD, Node, a_node
from tests.files.test_directories import TWINS, A, edit, swapped
from tests.scenes.mounts import an_empty_file_system_over, bind_mounted
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import LoopTime, a_scene, minors_in
from tests.scenes.service import settings_below
from tests.scenes.shortage import descriptors_left
from tests.scenes.slow_disk import a_slow_disk, fails, when_waited_for
from tests.scenes.state_file import save
from tests.scenes.waiting import idle, until


@contextmanager
def _mounted_over(directory: Path) -> Iterator[None]:
    """A directory of the same file system; `test_mounts` also has another file system."""
    other = directory.with_name(f"over-{directory.name}")
    other.mkdir(mode=0o755)
    with bind_mounted(other, directory):
        yield


@contextmanager
def _emptied(directory: Path) -> Iterator[None]:
    """`rm -rf directory/*`, and the hidden files, but not the lock."""
    for each in directory.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        elif each.name != ".lock":
            each.unlink()
    yield


lost = pytest.mark.parametrize("lose", [_mounted_over, _emptied], ids=["mount", "rm"])
Lose = Callable[[Path], Any]


def text(directory: str, name: str) -> str:
    try:
        return Path(directory, name).read_text()
    except FileNotFoundError:
        return ""


@lost
@pytest.mark.parametrize("is_provided", [False, True])
async def test_an_edit_of_link_dir_waits_after_the_note_in_state_dir_was_lost(
    short_dir: Path, lose: Lose, monkeypatch: pytest.MonkeyPatch, *, is_provided: bool
) -> None:
    if is_provided:
        monkeypatch.setenv("STATE_DIRECTORY", f"{short_dir}/state")
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        before = scene.settings
        with lose(Path(before.state_dir)):
            await until(lambda: text(before.state_dir, LINK_DIR) == f"{before.link_dir}\n")
            await edit(scene, link_dir=f"{short_dir}/other")
            assert scene.daemon.settings == before
            await swapped(scene, pod)
            await scene.service.stop()


@lost
async def test_an_edit_of_state_dir_waits_after_the_note_in_link_dir_was_lost(
    short_dir: Path, lose: Lose
) -> None:
    async with a_scene(short_dir, *TWINS) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name=name) for name in ("one", "two")]
        before = scene.settings
        with lose(Path(before.link_dir)):
            await until(lambda: text(before.link_dir, STATE_DIR) == f"{before.state_dir}\n")
            scene.unplug(TWINS[0])
            await scene.until_allocatable(1, capacity=2)
            await edit(scene, state_dir=f"{short_dir}/other")
            await scene.until_allocatable(1, capacity=2)
            (mine,) = (pod for pod in pods if minors_in(pod.container("main")) == [0])
            assert (await scene.kubelet.restart_container(mine, "main")).state is ContainerState.WAITING
            await scene.service.stop()


async def test_the_note_in_the_directory_of_the_service_manager_is_written_again(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", f"{short_dir}/var")
    (short_dir / "var").mkdir(mode=0o755)
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        with _mounted_over(short_dir / "var"):
            await until(lambda: text(f"{short_dir}/var", PROVIDED) == f"{scene.settings.state_dir}\n")


@lost
@pytest.mark.parametrize("key", ["state_dir", "link_dir", "the new link_dir"])
async def test_an_edit_that_waits_goes_on_waiting_after_a_note_was_lost(
    short_dir: Path, lose: Lose, key: str
) -> None:
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        before = scene.settings
        await edit(scene, link_dir=f"{short_dir}/new")
        directory = f"{short_dir}/new" if key == "the new link_dir" else getattr(before, key)
        with lose(Path(directory)):
            name = LINK_DIR if key == "state_dir" else STATE_DIR
            await until(lambda: text(directory, name))
            await scene.service.stop()
            await scene.service.start()
            assert scene.daemon.settings == before
            await swapped(scene, pod)
            await scene.service.stop()


async def test_a_note_that_was_lost_just_before_the_end_is_there_for_the_next_start(short_dir: Path) -> None:
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        before = scene.settings
        # The daemon hears of it only after it has been told to end.
        Path(before.state_dir, LINK_DIR).unlink()
        scene.daemon.stop()
        await edit(scene, link_dir=f"{short_dir}/other")
        assert scene.daemon.settings == before


async def test_what_the_note_in_a_mounted_directory_says_does_not_count(short_dir: Path) -> None:
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        other = short_dir / "other"
        other.mkdir(mode=0o755)
        save(StateFile(str(other)), scene.daemon.memory)
        (other / LINK_DIR).write_text(f"{short_dir}/elsewhere\n")
        with bind_mounted(other, Path(scene.settings.state_dir)):
            await until(lambda: (other / LINK_DIR).read_text() == f"{scene.settings.link_dir}\n")
            await edit(scene)
            assert scene.daemon.settings == scene.settings
            await scene.service.stop()


async def test_after_a_mount_over_both_notes_of_cdi_dir_a_killed_daemon_leaves_no_spec_files(
    short_dir: Path,
) -> None:
    settings = settings_below(
        short_dir, answer=AnswerBy.CDI, link_dir=f"{short_dir}/v/links", state_dir=f"{short_dir}/v/state"
    )
    async with a_scene(short_dir, A, settings=settings) as scene:
        await scene.until_allocatable(1)
        with an_empty_file_system_over(short_dir / "v"):
            noted = f"{settings.cdi_dir}\n"
            await until(lambda: text(settings.state_dir, CDI_DIR) == noted)
            await until(lambda: text(settings.link_dir, CDI_DIR_BESIDE_LINKS) == noted)
            left = {path: path.read_text() for path in Path(settings.cdi_dir).glob("*.json")}
            assert left
            await scene.service.stop()
            for path, spec in left.items():
                path.write_text(spec)
            scene.service.settings = replace(settings, cdi_dir=f"{short_dir}/etc")
            await scene.service.start()
            assert [*Path(settings.cdi_dir).glob("*.json")] == []
            await scene.service.stop()


@contextmanager
def begun(settings: Settings, tried: list[str] | None = None) -> Iterator[Directories]:
    """The directories of a daemon that serves; what was tried is added to `tried`."""

    def note(error: GenericdpError | None) -> None:
        if tried is not None:
            tried.append(str(error or ""))

    with closing(Directories(settings, lambda: None, note)) as directories:
        directories.begin()
        yield directories


async def test_a_note_that_is_removed_again_and_again_is_written_once_in_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    time, settings = LoopTime(), settings_below(tmp_path)
    note = Path(settings.state_dir, LINK_DIR)
    with begun(settings):
        time.advance(AGAIN_S)
        note.unlink()
        await until(note.exists)
        note.unlink()
        await idle()
        assert not note.exists()
        time.advance(AGAIN_S)
        await until(note.exists)
    assert caplog.messages == ["a note for the next start was removed or changed, writing it again"]


async def test_what_it_writes_itself_is_not_written_again(tmp_path: Path) -> None:
    tried: list[str] = []
    with begun(settings_below(tmp_path), tried) as directories:
        time = LoopTime()
        directories.note_cdi_dir()
        for _ in range(3):
            await idle()
            time.advance(AGAIN_S)
    assert tried == [""]


async def test_a_note_that_cannot_be_read_is_not_said_to_be_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[str] = []
    with begun(settings_below(tmp_path), tried) as directories:
        LoopTime().advance(AGAIN_S)
        with descriptors_left(0):
            directories._hear(frozenset({LINK_DIR}))
        assert "Too many open files" in tried[-1]
    assert caplog.messages == []


async def test_a_note_that_cannot_be_written_again_is_tried_again(tmp_path: Path) -> None:
    tried: list[str] = []
    settings = settings_below(tmp_path)
    note = Path(settings.state_dir, LINK_DIR)
    with begun(settings, tried):
        time = LoopTime()
        time.advance(AGAIN_S)
        note.unlink()
        note.mkdir()
        await until(lambda: len(tried) == 2)
        assert tried[1] == (
            f"cannot write '{note}': Is a directory; "
            "until then, an edit of 'link_dir' or 'state_dir' is not noticed"
        )
        note.rmdir()
        time.advance(AGAIN_S)
        await until(note.is_file)
        assert tried[-1] == ""


async def test_a_slow_disk_holds_up_nothing_and_has_every_note_in_the_end(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    notes = [Path(settings.state_dir, LINK_DIR), Path(settings.link_dir, STATE_DIR)]
    with begun(settings):
        time = LoopTime()
        with a_slow_disk() as slow:
            for note in notes:
                time.advance(AGAIN_S)
                note.unlink()
                await until(note.exists)
            await until(lambda: slow.waits == 1)
            slow.answer()
            await until(lambda: {*map(str, notes)} <= {*slow.written}, timeout_s=AGAIN_S / 2)


async def test_a_note_that_the_disk_does_not_take_is_tried_again_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    settings = settings_below(tmp_path)
    note = Path(settings.state_dir, LINK_DIR)
    with begun(settings, tried) as directories:
        time = LoopTime()
        time.advance(AGAIN_S)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fails)
            note.unlink()
            await until(lambda: len(tried) == 2)
            for number, pause in enumerate((1.0, 2.0), 3):
                time.advance(pause - 0.1)
                await idle()
                assert len(tried) == number - 1
                time.advance(0.1)
                await until(lambda: len(tried) == number)  # noqa: B023  (it is asked in this round)
        failure = f"cannot write '{note}': Input/output error"
        assert tried == ["", failure, failure, failure]
        # There is room again: nobody waits for the pause.
        directories.see_room()
        assert tried[4:] == [""]


async def test_notes_that_are_there_cost_the_next_start_nothing(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    with begun(settings):
        pass
    with a_slow_disk() as slow, begun(settings) as directories:
        await until(lambda: not directories._disk.is_busy)
        assert slow.begun == 0


async def test_the_end_waits_until_a_slow_disk_has_the_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_below(tmp_path)
    with a_slow_disk() as slow:
        with begun(settings):
            await until(lambda: slow.waits)
            when_waited_for(monkeypatch, slow.answer)
        for note in (Path(settings.state_dir, LINK_DIR), Path(settings.link_dir, STATE_DIR)):
            assert {str(note), str(note.parent)} <= {*slow.written}


async def test_at_the_end_a_note_is_tried_once_more_that_the_disk_did_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    settings = settings_below(tmp_path)
    note = Path(settings.state_dir, LINK_DIR)
    with begun(settings, tried):
        LoopTime().advance(AGAIN_S)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fails)
            note.unlink()
            await until(lambda: len(tried) == 2)
        assert note.is_file()
    assert tried == ["", f"cannot write '{note}': Input/output error", ""]


async def test_at_the_end_a_note_is_written_that_was_lost_since_the_loop_last_ran(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    note = Path(settings.state_dir, LINK_DIR)
    with begun(settings):
        note.unlink()
    assert note.is_file()


async def test_another_directory_of_spec_files_is_on_the_disk_soon(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    Path(settings.cdi_dir).mkdir()
    with a_slow_disk() as slow:
        slow.answer()
        with begun(settings) as directories:
            await until(lambda: not directories._disk.is_busy)
            other = tmp_path / "other"
            other.mkdir()
            Path(settings.cdi_dir).rmdir()
            Path(settings.cdi_dir).symlink_to(other)
            slow.written.clear()
            directories.note_cdi_dir()
            await until(lambda: not directories._disk.is_busy)
            assert f"{settings.state_dir}/{CDI_DIR}" in slow.written


async def test_who_never_served_writes_no_note_at_its_end(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    Directories(settings, lambda: None).close()
    assert [*tmp_path.iterdir()] == []


async def until_kept(node: Node) -> None:
    await until(lambda: node.kept.exists() and node.kept.read_text() == FTDI_RULE)


@lost
@pytest.mark.parametrize("resumed", [False, True])
async def test_a_last_good_text_is_kept_again_after_it_was_lost(
    short_dir: Path, lose: Lose, *, resumed: bool
) -> None:
    """Also one that an earlier process has kept, and of which this one has only seen the mistake."""
    async with a_node(short_dir) as node:
        good, _ = await node.says()
        if resumed:
            node.write(BAD)
            await node.restart()
            assert await node.says() == (good, True)
        with ExitStack() as stack:
            stack.enter_context(lose(Path(node.settings.state_dir)))
            await until_kept(node)
            node.write(BAD)
            await node.restart()
            assert (node.offers, await node.says()) == ([FTDI], (good, True))
            await node.service.stop()


async def test_a_last_good_text_that_is_removed_again_and_again_is_kept_once_in_a_while(
    short_dir: Path,
) -> None:
    async with a_node(short_dir) as node:
        await node.wait()
        node.kept.unlink()
        await until_kept(node)
        await idle()
        node.kept.unlink()
        await idle()
        assert not node.kept.exists()
        await node.wait()
        await until_kept(node)


async def test_a_last_good_text_that_was_lost_just_before_the_end_is_there_for_the_next_start(
    short_dir: Path,
) -> None:
    async with a_node(short_dir) as node:
        await node.wait()
        node.kept.unlink()
        await node.service.stop()
        assert node.kept.read_text() == FTDI_RULE


async def test_what_is_kept_of_no_file_goes_from_a_mounted_directory(short_dir: Path) -> None:
    async with a_node(short_dir) as node:
        other = short_dir / "other"
        (other / node.kept.parent.relative_to(node.settings.state_dir)).mkdir(parents=True, mode=0o700)
        other.chmod(0o755)
        stale = other / node.kept.parent.relative_to(node.settings.state_dir) / "90-stale.toml"
        stale.write_text(FTDI_RULE)
        with bind_mounted(other, Path(node.settings.state_dir)):
            await until_kept(node)
            await node.wait()
            await until(lambda: not stale.exists())
            await node.service.stop()
