"""Settings that name other directories take effect once no pod holds a device."""

import os
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp import forgetting
from genericdp.core.memory import held
from genericdp.core.memory.answer import Answer
from genericdp.core.rules.settings import Settings
from genericdp.core.status import holdings
from genericdp.errors import GenericdpError
from genericdp.files import directories, whole_file
from genericdp.files.directories import LINK_DIR, PROVIDED, STATE_DIR, Note, notes_of_each_other, write_all
from genericdp.files.whole_file import FileIdentity
from genericdp.kubelet import checkpoint
from genericdp.kubelet.checkpoint import Checkpoint
from genericdp.service.directories import Directories, in_force
from genericdp.simulator import ContainerState, PodStatus
from genericdp.watch import disk
from tests.scenes.builders import a_usb_serial
from tests.scenes.scene import LoopTime, Scene, a_scene, ids_told, minors_in
from tests.scenes.service import settings_below
from tests.scenes.shortage import a_file_system_at, descriptors_left, fill
from tests.scenes.waiting import until

A = a_usb_serial(0, serial="A")
B = a_usb_serial(1, serial="B", port="3")
B_AS_0 = a_usb_serial(0, serial="B", port="3")
A_AS_1 = a_usb_serial(1, serial="A")
TWINS = a_usb_serial(0, serial="S", port="2"), a_usb_serial(1, serial="S", port="3")


async def edit(scene: Scene, **settings: Any) -> None:
    """Edit the settings and restart the service."""
    await scene.service.stop()
    scene.service.settings = replace(scene.settings, **settings)
    await scene.service.start()


async def swapped(scene: Scene, pod: PodStatus) -> None:
    """Another device takes the number of the pod's device, which comes back: the pod has its own again."""
    scene.unplug(A)
    await scene.until_allocatable(0, capacity=1)
    scene.plug(B_AS_0)
    await scene.until_allocatable(1, capacity=2)
    scene.plug(A_AS_1)
    await scene.until_allocatable(2, capacity=2)
    second = await scene.admit(name="second")
    assert ids_told(second.container("main")) == ["ftdi_B"]
    assert minors_in(await scene.kubelet.restart_container(pod, "main")) == [1]


async def test_a_pod_keeps_its_device_after_an_edit_of_link_dir(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While it was unplugged, another one took its number and went to another pod."""
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await edit(scene, link_dir=f"{short_dir}/other")
        assert "'link_dir' stays as it was, because pods may hold devices" in caplog.messages
        await swapped(scene, pod)


@pytest.mark.parametrize("keys", [("link_dir", "state_dir"), ("state_dir", "link_dir")])
async def test_a_pod_keeps_its_device_after_a_second_edit_while_the_first_one_waits(
    keys: tuple[str, str], short_dir: Path
) -> None:
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        before, edited = scene.settings, {key: f"{short_dir}/other/{key}" for key in keys}
        await edit(scene, **{keys[0]: edited[keys[0]]})
        await edit(scene, **edited)
        assert scene.daemon.settings == before
        await scene.until_allocatable(1)
        await swapped(scene, pod)


async def test_an_absent_twin_is_not_replaced_by_the_other_one_after_an_edit_of_state_dir(
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, *TWINS) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name=name) for name in ("one", "two")]
        scene.unplug(TWINS[0])
        await scene.until_allocatable(1, capacity=2)
        await edit(scene, state_dir=f"{short_dir}/other")
        await scene.until_allocatable(1, capacity=2)
        (mine,) = (pod for pod in pods if minors_in(pod.container("main")) == [0])
        assert (await scene.kubelet.restart_container(mine, "main")).state is ContainerState.WAITING


async def test_an_edit_takes_effect_at_once_if_no_pod_holds_a_device(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        await edit(scene, link_dir=f"{short_dir}/other", state_dir=f"{short_dir}/another")
        await scene.until_allocatable(1)
        assert scene.daemon.settings is scene.service.settings
        assert (short_dir / "other/ftdi_A").is_symlink()
    assert caplog.messages == []


async def test_a_state_directory_with_which_it_could_not_start_is_not_in_force_afterwards(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (short_dir / "other/memory.json").mkdir(parents=True)
    (short_dir / "other").chmod(0o755)
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        with pytest.raises(GenericdpError, match=r"cannot read .*/other/memory\.json.: Is a directory"):
            await edit(scene, state_dir=f"{short_dir}/other")
        await edit(scene, state_dir=f"{short_dir}/state")
        await scene.until_allocatable(1)
        assert scene.daemon.settings is scene.service.settings
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("key", "environment", "hint"),
    [
        ("link_dir", {}, "drain the node, or set it back; "),
        ("state_dir", {}, "drain the node before its next boot, or set it back; "),
        ("state_dir", {"STATE_DIRECTORY": "provided"}, "drain the node, or set it back; "),
    ],
)
def test_an_edit_that_waits_says_until_when(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str, environment: dict[str, str], hint: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, directory in environment.items():
            patch.setenv(name, f"{tmp_path}/{directory}")
        an_edit_waits(tmp_path, key)
    (line,) = caplog.records
    assert line.getMessage() == f"'{key}' stays as it was, because pods may hold devices"
    ends = "genericdp starts again once no pod holds a device"
    assert vars(line)["fields"] == {"directory": getattr(settings_below(tmp_path), key), "hint": hint + ends}


def an_edit_waits(tmp_path: Path, key: str) -> None:
    before = settings_below(tmp_path)
    write_all(notes_of_each_other(before))
    Path(before.state_dir, "memory.json").write_text("it cannot be understood")
    edited: dict[str, Any] = {key: f"{tmp_path}/other"}
    Directories(replace(before, **edited), lambda: None).confirm()


def test_a_memory_that_cannot_be_read_any_more_can_be_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", f"{tmp_path}/provided")
    before = settings_below(tmp_path)
    write_all(notes_of_each_other(before))
    Path(before.state_dir, "memory.json").mkdir()
    edited = replace(before, state_dir=f"{tmp_path}/other")
    Directories(edited, lambda: None).confirm()
    (line,) = caplog.records
    hint = vars(line)["fields"]["hint"]
    assert hint == (
        "make the memory there readable; or, if no pod has a device of genericdp: "
        f"rm -f {before.link_dir}/.state_dir {tmp_path}/provided/state_dir"
    )
    subprocess.run(["sh", "-c", hint.partition(": ")[2]], check=True)
    assert in_force(edited) == edited


def test_one_that_cannot_be_read_beside_the_links_is_not_given_up_with_the_state_directory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The next start would read it, too, and says what is wrong with it."""
    before = settings_below(tmp_path)
    write_all(notes_of_each_other(before))
    Path(before.state_dir, "memory.json").write_text("{}")
    Path(before.link_dir, ".memory").mkdir()
    Directories(replace(before, state_dir=f"{tmp_path}/other"), lambda: None).confirm()
    (line,) = caplog.records
    assert vars(line)["fields"]["hint"].startswith("drain the node before its next boot, or set it back; ")


def test_everybody_may_follow_links_in_a_directory_that_a_note_made(tmp_path: Path) -> None:
    settings = settings_below(tmp_path, link_dir=f"{tmp_path}/above/links", state_dir=f"{tmp_path}/state")
    before = os.umask(0o77)
    try:
        write_all(notes_of_each_other(settings))
    finally:
        os.umask(before)
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("above", "above/links", "state")}
    assert modes == {"above": 0o755, "above/links": 0o755, "state": 0o700}


def test_each_directory_names_the_other_one(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    write_all(notes_of_each_other(settings))
    assert Path(settings.link_dir, STATE_DIR).read_text() == f"{settings.state_dir}\n"
    assert Path(settings.state_dir, LINK_DIR).read_text() == f"{settings.link_dir}\n"


@pytest.mark.parametrize("text", [b"", b"relative", b"/with\nlines", b"/\xff"])
def test_a_file_that_names_no_directory_changes_nothing(tmp_path: Path, text: bytes) -> None:
    settings = settings_below(tmp_path)
    write_all(notes_of_each_other(settings))
    Path(settings.state_dir, LINK_DIR).write_bytes(text)
    assert in_force(settings) == settings


def test_who_stood_by_ends_if_pods_got_devices_elsewhere_meanwhile(tmp_path: Path) -> None:
    before = settings_below(tmp_path)
    write_all(notes_of_each_other(before))
    standing_by = Directories(replace(before, link_dir=f"{tmp_path}/other"), lambda: None)
    assert not standing_by.waits
    Path(before.state_dir, "memory.json").write_text("{}")
    with pytest.raises(GenericdpError) as caught:
        standing_by.confirm()
    assert (str(caught.value), caught.value.hint) == (
        "genericdp has served with other directories while this one stood by",
        "start it again",
    )


async def test_a_reboot_does_not_hide_an_edit_of_state_dir(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link directory is in /dev by default, and the memory says which twin was there first."""
    monkeypatch.setenv("STATE_DIRECTORY", f"{short_dir}/var:{short_dir}/more")
    (short_dir / "var").mkdir()
    async with a_scene(short_dir, TWINS[1]) as scene:
        await scene.until_allocatable(1)
        scene.plug(TWINS[0])
        await scene.until_allocatable(2)
        pods = [await scene.admit(name=name) for name in ("one", "two")]
        before = [minors_in(pod.container("main")) for pod in pods]
        assert (short_dir / "var" / PROVIDED).read_text() == f"{scene.settings.state_dir}\n"
        await scene.service.stop()
        shutil.rmtree(scene.settings.link_dir)
        await edit(scene, state_dir=f"{short_dir}/other")
        after = [await scene.kubelet.restart_container(pod, "main") for pod in pods]
        assert {container.state for container in after} == {ContainerState.RUNNING}
        assert [minors_in(container) for container in after] == before


async def test_once_the_node_is_drained_the_next_start_has_the_new_directories(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 0.0)
    monkeypatch.setattr(held, "PODS_SETTLE_S", 0.0)
    monkeypatch.setattr(forgetting, "ASK_AGAIN_S", 0.05)
    monkeypatch.setattr(forgetting, "WRITE_AGAIN_S", 0.0)
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await edit(scene, link_dir=f"{short_dir}/other")
        assert scene.daemon.settings.link_dir == scene.settings.link_dir
        # What was listed is free once it is not, but the checkpoint goes on to name it.
        await until(lambda: scene.daemon.memory.held["ftdi_A"].listed)
        scene.kubelet.delete(pod)
        await until(scene.service.has_ended)
        # The service manager starts it again.
        await scene.service.stop()
        await scene.service.start()
        assert scene.daemon.settings is scene.service.settings
        await scene.until_allocatable(1)


async def test_a_holding_that_was_not_saved_counts_after_an_edit_of_link_dir(short_dir: Path) -> None:
    with a_file_system_at(short_dir / "state"):
        async with a_scene(short_dir, A) as scene:
            await scene.until_allocatable(1)
            await edit(scene)
            await scene.until_allocatable(1)
            fill(short_dir / "state")
            pod = await scene.admit()
            await edit(scene, link_dir=f"{short_dir}/other")
            await until(lambda: scene.daemon.memory.held)
            await swapped(scene, pod)


async def test_a_holding_that_was_not_saved_counts_after_an_edit_of_state_dir(short_dir: Path) -> None:
    """The operator moves the directory because its disk is full."""
    with a_file_system_at(short_dir / "state"):
        async with a_scene(short_dir, *TWINS) as scene:
            await scene.until_allocatable(2)
            await edit(scene)
            await scene.until_allocatable(2)
            fill(short_dir / "state")
            pods = [await scene.admit(name=name) for name in ("one", "two")]
            (mine,) = (pod for pod in pods if minors_in(pod.container("main")) == [0])
            scene.unplug(TWINS[0])
            await scene.until_allocatable(1, capacity=2)
            await edit(scene, state_dir=f"{short_dir}/other")
            await until(lambda: len(scene.daemon.memory.held) == 2)
            # The twin that is left is in the other pod.
            assert (await scene.kubelet.restart_container(mine, "main")).state is ContainerState.WAITING


async def test_a_lost_memory_does_not_free_the_directories(short_dir: Path) -> None:
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await scene.service.stop()
        Path(scene.settings.state_dir, "memory.json").write_bytes(bytes(1000))
        await edit(scene, link_dir=f"{short_dir}/other")
        await until(lambda: scene.daemon.memory.held)
        assert not scene.service.has_ended()
        await swapped(scene, pod)


@pytest.mark.parametrize("when", ["a pod comes", "later"])
async def test_a_directory_that_cannot_be_named_on_a_full_disk_is_named_when_there_is_room(
    when: str, short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    named = short_dir / "state" / LINK_DIR
    with a_file_system_at(short_dir / "state"):
        async with a_scene(short_dir, A) as scene:
            await scene.until_allocatable(1)
            await scene.service.stop()
            named.unlink()
            filler = fill(short_dir / "state")
            await scene.service.start()
            (message,) = caplog.messages
            assert message == (
                f"cannot write '{named}': No space left on device; until then, an edit of 'link_dir' or "
                "'state_dir' is not noticed"
            )
            filler.unlink()
            if when == "a pod comes":
                await scene.until_allocatable(1)
                await scene.admit()
                assert named.exists()
            else:
                LoopTime().advance(1.0)
                await until(named.exists)


async def test_a_note_that_is_lost_while_the_disk_hangs_stops_nothing_else(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        named, answers = short_dir / "state" / LINK_DIR, threading.Event()
        waits = threading.Event()

        def write_whole(path: str, data: bytes, **how: Any) -> FileIdentity:
            assert threading.current_thread() is not threading.main_thread()
            waits.set()
            answers.wait()
            return whole_file.write_whole(path, data, **how)

        monkeypatch.setattr(directories, "write_whole", write_whole)
        monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
        try:
            named.unlink()
            await until(waits.is_set)
            scene.plug(B)
            await scene.until_allocatable(2)
            assert not named.exists()
        finally:
            answers.set()
        await until(named.exists)


def test_a_state_directory_that_was_moved_with_its_files_is_in_force(tmp_path: Path) -> None:
    before = settings_below(tmp_path)
    write_all(notes_of_each_other(before))
    Path(before.state_dir, "memory.json").write_text("{}")
    moved = replace(before, state_dir=f"{tmp_path}/moved")
    assert in_force(moved) == before
    Path(before.state_dir).rename(moved.state_dir)
    # systemd makes it again.
    Path(before.state_dir).mkdir()
    assert in_force(moved) == moved


@pytest.mark.parametrize("text", ["{}", '{"Data": {"PodDeviceEntries": [{}]}}'])
def test_a_checkpoint_that_cannot_be_read_frees_no_directory(tmp_path: Path, text: str) -> None:
    before = settings_below(tmp_path)
    write_all(notes_of_each_other(before))
    edited = replace(before, link_dir=f"{tmp_path}/other")
    assert in_force(edited) == edited
    Path(before.kubelet_dir).mkdir()
    Path(before.kubelet_dir, checkpoint.NAME).write_text(text)
    assert in_force(edited) == before


def test_an_edit_waits_while_the_checkpoint_may_name_one_of_our_links(tmp_path: Path) -> None:
    """Even if no pod is known to hold a device: the resource may have left the rules."""
    before = settings_below(tmp_path)
    write_all(notes_of_each_other(before))
    Path(before.kubelet_dir).mkdir()
    Path(before.kubelet_dir, checkpoint.NAME).write_text("it cannot be read")
    freed: list[str] = []
    waiting = Directories(replace(before, link_dir=f"{tmp_path}/other"), lambda: freed.append("free"))
    nobody = Answer(frozenset(), 0.0, complete=True)
    waiting.see(nobody, {})
    for found in (None, Checkpoint(names_ours=True)):
        waiting.see_saved(found)
        waiting.see(nobody, {})
        assert waiting.waits
    waiting.see_saved(Checkpoint())
    waiting.see(replace(nobody, complete=False), {})
    waiting.see(None, {})
    assert (waiting.waits, freed) == (True, [])
    waiting.see(nobody, {})
    assert (waiting.waits, freed) == (False, ["free"])


def test_without_descriptors_it_does_not_start_with_other_directories(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    write_all(notes_of_each_other(settings))
    with descriptors_left(0), pytest.raises(GenericdpError) as caught:
        Directories(replace(settings, link_dir=f"{tmp_path}/other"), lambda: None)
    assert str(caught.value) == f"cannot read '{tmp_path}/other/{STATE_DIR}': Too many open files"


def test_without_directories_the_settings_are_in_force() -> None:
    assert in_force(Settings(link_dir="/nowhere/links", state_dir="/nowhere/state")).link_dir == (
        "/nowhere/links"
    )


@pytest.mark.parametrize("name", ["link_dir", "link_dir.new"])
def test_a_note_says_what_is_in_its_way(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(GenericdpError) as raised:
        Note(str(tmp_path), "link_dir", ("/dev/genericdp",)).write()
    assert str(raised.value) == f"cannot write '{tmp_path}/link_dir': Is a directory"
    assert raised.value.hint == f"remove '{tmp_path}/{name}'"
