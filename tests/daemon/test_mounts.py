"""What is mounted over a directory of the daemon while it runs takes effect at once. The mounts are real."""

import os
import shutil
from pathlib import Path

import pytest

from genericdp import retry
from genericdp.core.cdi import file_name
from genericdp.core.memory.memory import Memory
from genericdp.files.link_upkeep import REVIVE_AGAIN_S
from genericdp.files.state import StateFile
from genericdp.simulator import Runtime
from tests.daemon.test_cdi_answers import a_cdi_scene, named_in
from tests.scenes.builders import a_usb_serial
from tests.scenes.mounts import an_empty_file_system_over, bind_mounted
from tests.scenes.rules import DOMAIN, FTDI
from tests.scenes.scene import LoopTime, a_scene, both_runtimes, minors_in
from tests.scenes.service import Service, links_in
from tests.scenes.state_file import save
from tests.scenes.waiting import idle, until

A = a_usb_serial(0, serial="A")


@both_runtimes
async def test_a_container_finds_its_link_in_what_was_mounted_over_the_link_directory(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_scene(short_dir, A, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        with an_empty_file_system_over(Path(scene.settings.link_dir)):
            await until(lambda: links_in(scene.settings))
            assert minors_in(await scene.kubelet.restart_container(pod, "main")) == [0]


async def test_after_an_unmount_no_link_leads_to_the_device_of_before(short_dir: Path) -> None:
    time = LoopTime()
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        with an_empty_file_system_over(Path(scene.settings.link_dir)):
            await until(lambda: links_in(scene.settings))
            scene.unplug(A)
            await until(lambda: links_in(scene.settings) == {"ftdi_A": "ftdi_A"})
            time.advance(REVIVE_AGAIN_S)
        await until(lambda: links_in(scene.settings) == {"ftdi_A": "ftdi_A"})


@both_runtimes
async def test_a_container_finds_its_cdi_device_in_what_was_mounted_over_the_cdi_directory(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_cdi_scene(short_dir, A, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        with an_empty_file_system_over(Path(scene.settings.cdi_dir)):
            await until(lambda: named_in(scene))
            assert minors_in(await scene.kubelet.restart_container(pod, "main")) == [0]


async def test_what_an_earlier_process_left_in_a_mounted_cdi_directory_goes_at_once(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may lead to other devices by now."""
    monkeypatch.setattr(retry, "FIRST_S", 1000.0)
    other = short_dir / "other"
    other.mkdir(mode=0o755)
    left = other / file_name(f"{DOMAIN}/other")
    left.write_text("{}")
    async with a_cdi_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        before = named_in(scene)
        with bind_mounted(other, Path(scene.settings.cdi_dir)):
            await until(lambda: not left.exists())
            assert named_in(scene) == before


async def test_a_spec_file_on_a_disk_that_is_mounted_late_gives_no_container_another_device(
    short_dir: Path,
) -> None:
    """The power failed, and the device was unplugged meanwhile. Another one is at its node now."""
    disk = short_dir / "disk"
    disk.mkdir(mode=0o755)
    rules = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty", usb = { serial = "A" } }\n'
    async with a_cdi_scene(short_dir, A, rules=rules) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        cdi = Path(scene.settings.cdi_dir)
        left = shutil.copy(cdi / file_name(FTDI), disk)
        await scene.service.stop()
        scene.unplug(A)
        scene.plug(a_usb_serial(0, serial="B", port="3"))
        await scene.service.start()
        await scene.until_allocatable(0, capacity=1)
        with bind_mounted(disk, cdi):
            await until(lambda: not Path(left).exists())
            refused = await scene.kubelet.restart_container(pod, "main")
            assert refused.message.endswith(f"unresolvable CDI devices {FTDI}=ftdi_A")


@pytest.mark.parametrize("mounted", ["nothing", "another memory"])
async def test_the_memory_is_saved_in_what_was_mounted_over_the_state_directory(
    short_dir: Path, mounted: str
) -> None:
    other = short_dir / "other"
    other.mkdir(mode=0o755)
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        if mounted == "another memory":
            save(StateFile(str(other)), Memory())
        with bind_mounted(other, Path(scene.settings.state_dir)):
            await until(lambda: StateFile(str(other)).load().held.keys() == {"ftdi_A"})
            kept = [name for name in os.listdir(other) if name.startswith("memory.json.")]
            assert len(kept) == (mounted == "another memory")


@pytest.mark.parametrize("directory", ["link_dir", "state_dir"])
async def test_a_second_daemon_finds_the_lock_in_what_was_mounted(short_dir: Path, directory: str) -> None:
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        path = Path(getattr(scene.settings, directory))
        with an_empty_file_system_over(path):
            await until((path / ".lock").exists)
            async with Service(scene.settings, scene.rules, scene.udev) as second:
                assert second.statuses[0].startswith("standing by: process ")
                assert not scene.service.has_ended()


async def test_a_kubelet_that_starts_in_what_was_mounted_over_its_directory_is_served(
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, A) as scene:
        await scene.until_allocatable(1)
        await scene.kubelet.stop()
        # While there is a socket that nobody listens on, it is looked at again and again.
        (short_dir / "device-plugins" / "kubelet.sock").unlink()
        await until(lambda: scene.daemon.plugins.kubelet.incarnation is None)
        await idle()
        with an_empty_file_system_over(short_dir / "device-plugins"):
            await scene.kubelet.start()
            await scene.until_allocatable(1)
            await scene.kubelet.stop()
