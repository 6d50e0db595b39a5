"""While the daemon lacks descriptors or inodes, a pod still gets no other device than its own."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from genericdp.core.device import UdevDevice
from genericdp.kubelet.socket import KubeletSocket
from genericdp.simulator import ContainerState, Runtime
from tests.daemon.test_cdi_answers import a_cdi_scene, named_in
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI
from tests.scenes.scene import Scene, a_scene, both_runtimes
from tests.scenes.service import settings_below
from tests.scenes.shortage import a_file_system_at, descriptors_left, fill_inodes
from tests.scenes.waiting import until


async def exchange(scene: Scene, gone: UdevDevice, comes: UdevDevice) -> None:
    """Unplug a device and plug in another one; return when the daemon has seen both."""
    scene.unplug(gone)
    scene.plug(comes)
    await until(lambda: len(scene.daemon.inventory.offers[FTDI].devices) == 2)


@both_runtimes
async def test_the_link_of_a_device_that_goes_without_a_descriptor_left_does_not_lead_to_another_one(
    short_dir: Path, runtime: Runtime
) -> None:
    mine, other = a_usb_serial(0, serial="A"), a_usb_serial(0, serial="B", port="3")
    async with a_scene(short_dir, mine, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        with descriptors_left(0):
            await exchange(scene, mine, other)
            assert os.readlink(f"{scene.settings.link_dir}/ftdi_A") == "ftdi_A"
        status = await scene.kubelet.restart_container(pod, "main")
        assert status.state is ContainerState.WAITING


@both_runtimes
async def test_nor_does_its_name_in_answers_by_cdi(short_dir: Path, runtime: Runtime) -> None:
    mine, other = a_usb_serial(0, serial="A"), a_usb_serial(0, serial="B", port="3")
    async with a_cdi_scene(short_dir, mine, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        with descriptors_left(0):
            await exchange(scene, mine, other)
        assert named_in(scene) == []
        status = await scene.kubelet.restart_container(pod, "main")
        assert status.state is ContainerState.WAITING


async def test_spec_files_go_when_the_daemon_ends_without_a_descriptor_left(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, a_usb_serial(0, serial="A")) as scene:
        await scene.until_allocatable(1)
        (spec,) = Path(scene.settings.cdi_dir).glob("*.json")
        with descriptors_left(0):
            scene.daemon.stop()
            await until(scene.service.has_ended)
            assert not spec.exists()


async def test_all_is_put_right_before_the_last_object_of_grpc_is_closed(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a shortage of descriptors, gRPC has waited for ever then."""
    left: list[list[str]] = []
    settings, keep = settings_below(short_dir), KubeletSocket.idle_channel

    @asynccontextmanager
    async def keep_and_look(kubelet: KubeletSocket) -> AsyncIterator[None]:
        async with keep(kubelet):
            yield
            names = (*os.listdir(settings.cdi_dir), *os.listdir(settings.kubelet_dir))
            left.append([name for name in names if name.endswith((".json", ".sock"))])

    monkeypatch.setattr(KubeletSocket, "idle_channel", keep_and_look)
    async with a_cdi_scene(short_dir, a_usb_serial(0, serial="A")) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        await scene.service.stop()
    assert left == [["kubelet.sock"]]


@both_runtimes
async def test_nor_does_a_link_where_there_is_no_inode_for_a_second_one(
    short_dir: Path, runtime: Runtime
) -> None:
    mine, other = a_usb_serial(0, serial="A"), a_usb_serial(0, serial="B", port="3")
    settings = settings_below(short_dir)
    with a_file_system_at(Path(settings.link_dir), inodes=40):
        async with a_scene(short_dir, mine, runtime=runtime, settings=settings) as scene:
            await scene.until_allocatable(1)
            pod = await scene.admit()
            fillers = fill_inodes(Path(settings.link_dir))
            await exchange(scene, mine, other)
            assert os.readlink(f"{settings.link_dir}/ftdi_A") == "ftdi_A"
            status = await scene.kubelet.restart_container(pod, "main")
            assert status.state is ContainerState.WAITING
            for each in fillers:
                each.unlink()
