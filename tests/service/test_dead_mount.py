"""A pod notices that the kubelet's directory, which it mounts, was deleted. Real mounts."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from genericdp.kubelet.api.deviceplugin import KUBELET_SOCKET
from genericdp.service.dead_mount import is_dead, until_dead
from tests.scenes.waiting import PATIENCE_S, idle


@pytest.fixture
def host(short_dir: Path) -> Iterator[Path]:
    """A directory of the host that is mounted as `pod` beside it."""
    host, pod = short_dir / "host", short_dir / "pod"
    host.mkdir()
    pod.mkdir()
    (host / KUBELET_SOCKET).touch()
    subprocess.run(["mount", "--bind", host, pod], check=True)
    yield host
    subprocess.run(["umount", "--lazy", pod], check=True)


def test_a_mount_is_dead_when_its_directory_was_deleted_even_if_there_is_a_new_one(host: Path) -> None:
    pod = str(host.with_name("pod"))
    assert not is_dead(pod)
    shutil.rmtree(host)
    assert is_dead(pod)
    host.mkdir()
    assert is_dead(pod)


def test_what_is_below_a_deleted_directory_is_dead_too(short_dir: Path, host: Path) -> None:
    shutil.rmtree(host)
    assert is_dead(f"{short_dir}/pod/device-plugins")


def test_a_directory_that_is_deleted_where_it_is_not_mounted_is_found_by_its_path_again(
    short_dir: Path,
) -> None:
    directory = short_dir / "device-plugins"
    directory.mkdir()
    directory.rmdir()
    assert not is_dead(str(directory))


def test_without_proc_no_mount_is_dead(host: Path, tmp_path: Path) -> None:
    shutil.rmtree(host)
    assert not is_dead(str(host.with_name("pod")), str(tmp_path / "missing"))


async def test_a_deleted_directory_is_noticed_however_late_it_follows_its_files(host: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        noticing = asyncio.create_task(until_dead(str(host.with_name("pod")), lambda: False, again_s=0.001))
        await idle()
        (host / KUBELET_SOCKET).unlink()
        (host / KUBELET_SOCKET).touch()
        (host / KUBELET_SOCKET).unlink()
        await idle()
        assert not noticing.done()
        host.rmdir()
        await noticing


async def test_while_the_kubelet_follows_a_list_nothing_needs_to_end(host: Path) -> None:
    followed = [True, True, True, False]
    async with asyncio.timeout(PATIENCE_S):
        shutil.rmtree(host)
        await until_dead(str(host.with_name("pod")), lambda: followed.pop(0), again_s=0.001)
    assert followed == []
