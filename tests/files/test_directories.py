"""Settings that name other directories take effect once no pod holds a device."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genericdp import forgetting
from genericdp.core.memory import held
from genericdp.core.rules.settings import Settings
from genericdp.core.status import holdings
from genericdp.errors import GenericdpError
from genericdp.files.directories import LINK_DIR, PROVIDED, STATE_DIR, in_force, name_each_other
from genericdp.service.directories import Directories
from genericdp.simulator import ContainerState
from tests.scenes.builders import a_usb_serial
from tests.scenes.scene import Scene, a_scene, ids_told, minors_in
from tests.scenes.service import settings_below
from tests.scenes.waiting import until

A = a_usb_serial(0, serial="A")
B_AS_0 = a_usb_serial(0, serial="B", port="3")
A_AS_1 = a_usb_serial(1, serial="A")
TWINS = a_usb_serial(0, serial="S", port="2"), a_usb_serial(1, serial="S", port="3")


async def edit(scene: Scene, **settings: Any) -> None:
    """Edit the settings and restart the service."""
    await scene.service.stop()
    scene.service.settings = replace(scene.settings, **settings)
    await scene.service.start()


async def test_a_pod_keeps_its_device_after_an_edit_of_link_dir(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While it was unplugged, another one took its number and went to another pod."""
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await edit(scene, link_dir=f"{short_dir}/other")
        assert "'link_dir' stays as it was, because pods hold devices" in caplog.messages
        scene.unplug(A)
        await scene.until_allocatable(0, capacity=1)
        scene.plug(B_AS_0)
        await scene.until_allocatable(1, capacity=2)
        scene.plug(A_AS_1)
        await scene.until_allocatable(2, capacity=2)
        second = await scene.admit(name="second")
        assert ids_told(second.container("main")) == ["ftdi_B"]
        assert minors_in(await scene.kubelet.restart_container(pod, "main")) == [1]


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


def test_each_directory_names_the_other_one(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    name_each_other(settings)
    assert Path(settings.link_dir, STATE_DIR).read_text() == f"{settings.state_dir}\n"
    assert Path(settings.state_dir, LINK_DIR).read_text() == f"{settings.link_dir}\n"


@pytest.mark.parametrize("text", [b"", b"relative", b"/with\nlines", b"/\xff"])
def test_a_file_that_names_no_directory_changes_nothing(tmp_path: Path, text: bytes) -> None:
    settings = settings_below(tmp_path)
    name_each_other(settings)
    Path(settings.state_dir, LINK_DIR).write_bytes(text)
    assert in_force(settings) == settings


def test_who_stood_by_ends_if_pods_got_devices_elsewhere_meanwhile(tmp_path: Path) -> None:
    before = settings_below(tmp_path)
    name_each_other(before)
    standing_by = Directories(replace(before, link_dir=f"{tmp_path}/other"), lambda: None)
    assert not standing_by.waits
    Path(before.state_dir, "memory.json").write_text("{}")
    with pytest.raises(GenericdpError) as caught:
        standing_by.begin()
    assert (str(caught.value), caught.value.hint) == (
        "pods got devices in other directories while this genericdp stood by",
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
        scene.kubelet.delete(pod)
        await until(scene.service.has_ended)
        # The service manager starts it again.
        await scene.service.stop()
        await scene.service.start()
        assert scene.daemon.settings is scene.service.settings
        await scene.until_allocatable(1)


def test_without_directories_the_settings_are_in_force() -> None:
    assert in_force(Settings(link_dir="/nowhere/links", state_dir="/nowhere/state")).link_dir == (
        "/nowhere/links"
    )
