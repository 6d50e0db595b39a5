"""Disks that the kernel counts in the order of arrival: a pod gets its own after a boot, or none."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.buses import nvme, told
from genericdp.core.device import UdevDevice
from genericdp.simulator import ContainerState
from tests.scenes.scene import a_scene, minors_in
from tests.scenes.storage import (
    DISK_RULE,
    NVME_DRIVES,
    a_cached_disk,
    a_sas_disk,
    a_zvol,
    an_iscsi_disk,
    an_nvme_disk,
    an_nvme_namespace,
)
from tests.scenes.waiting import until

DISK = "example.com/disk"
ONE, TWO = "0x5000c500a1b2c3d4", "0x5000c500a1b2c3d5"
IQN = "iqn.2003-01.org.example"


async def test_a_sas_disk_that_is_missing_at_boot_does_not_shift_the_others(short_dir: Path) -> None:
    one, two = a_sas_disk(0, ONE, 0), a_sas_disk(1, TWO, 1)
    async with a_scene(short_dir, one, two, rules=DISK_RULE) as scene:
        await scene.until_allocatable(2, DISK)
        pods = [await scene.admit(resource=DISK, name=name) for name in "ab"]
        holder = {minors_in(pod.container("main"))[0]: pod for pod in pods}
        await scene.service.stop()
        scene.unplug(one, two)
        scene.plug(a_sas_disk(0, TWO, 2))
        await scene.service.start()
        await scene.until_allocatable(1, DISK)
        for pod in pods:
            await scene.kubelet.restart_container(pod, "main")
        assert holder[0].container("main").state is not ContainerState.RUNNING
        assert minors_in(holder[16].container("main")) == [32]


async def test_a_session_of_iscsi_does_not_take_the_id_of_another(short_dir: Path) -> None:
    one = an_iscsi_disk(2, 1, f"{IQN}:a", 0)
    async with a_scene(short_dir, one, rules=DISK_RULE) as scene:
        await scene.until_allocatable(1, DISK)
        pod = await scene.admit(resource=DISK)
        scene.unplug(one)
        await scene.until_allocatable(0, DISK)
        scene.plug(an_iscsi_disk(3, 2, f"{IQN}:b", 1))
        await scene.until_allocatable(1, DISK)
        await scene.kubelet.restart_container(pod, "main")
        assert pod.container("main").state is not ContainerState.RUNNING
        scene.plug(an_iscsi_disk(4, 3, f"{IQN}:a", 2))
        await scene.until_allocatable(2, DISK)
        await scene.kubelet.restart_container(pod, "main")
        assert minors_in(pod.container("main")) == [32]


drives = pytest.mark.parametrize("drive", NVME_DRIVES, ids=["controller", "subsystem"])


@drives
async def test_namespaces_that_are_found_in_another_order_stay_what_they_are(
    short_dir: Path, drive: UdevDevice
) -> None:
    before = an_nvme_namespace(drive, 1, 1), an_nvme_namespace(drive, 2, 2)
    async with a_scene(short_dir, *before, rules=DISK_RULE) as scene:
        await scene.until_allocatable(2, DISK)
        pods = [await scene.admit(resource=DISK, name=name) for name in "ab"]
        had = [minors_in(pod.container("main")) for pod in pods]
        await scene.service.stop()
        scene.unplug(*before)
        scene.plug(an_nvme_namespace(drive, 1, 2, boot=1), an_nvme_namespace(drive, 2, 1, boot=1))
        await scene.service.start()
        await scene.until_allocatable(2, DISK)
        assert [minors_in(await scene.kubelet.restart_container(pod, "main")) for pod in pods] == had


@drives
async def test_a_namespace_that_comes_when_another_goes_is_another_device(
    short_dir: Path, drive: UdevDevice
) -> None:
    one, two = an_nvme_namespace(drive, 1, 1), an_nvme_namespace(drive, 2, 2)
    async with a_scene(short_dir, one, two, rules=DISK_RULE) as scene:
        await scene.until_allocatable(2, DISK)
        pods = [await scene.admit(resource=DISK, name=name) for name in "ab"]
        (holder,) = (pod for pod in pods if minors_in(pod.container("main")) == [1])
        scene.unplug(one)
        await scene.until_allocatable(1, DISK)
        scene.plug(an_nvme_namespace(drive, 1, 7, boot=1))
        await scene.until_allocatable(2, DISK)
        assert (await scene.kubelet.restart_container(holder, "main")).state is ContainerState.WAITING


@pytest.mark.parametrize(
    "disk",
    [
        lambda number, which: an_nvme_disk(number, "", f"nqn.2014-08.org.example:{which}"),
        lambda number, which: a_zvol(number, f"tank/{which}"),
        lambda number, which: a_cached_disk(number, which * 32),
    ],
    ids=["drives with several controllers", "volumes of ZFS", "cached disks"],
)
async def test_pods_get_their_own_disks_after_a_boot_that_numbers_them_in_another_order(
    short_dir: Path, disk: Callable[[int, str], UdevDevice]
) -> None:
    before = (disk(0, "a"), disk(1, "b"))
    after = [
        replace(each, incarnation=900 + number) for number, each in enumerate((disk(0, "b"), disk(1, "a")))
    ]
    minor_after = {minor_of(one): minor_of(other) for one, other in zip(before, reversed(after), strict=True)}
    async with a_scene(short_dir, *before, rules=DISK_RULE) as scene:
        await scene.until_allocatable(2, DISK)
        pods = [await scene.admit(resource=DISK, name=name) for name in "ab"]
        had = [minors_in(pod.container("main")) for pod in pods]
        await scene.service.stop()
        scene.unplug(*before)
        scene.plug(*after)
        await scene.service.start()
        await scene.until_allocatable(2, DISK)
        now = [minors_in(await scene.kubelet.restart_container(pod, "main")) for pod in pods]
        assert now == [[minor_after[minor] for minor in minors] for minors in had]


def minor_of(device: UdevDevice) -> int:
    assert device.number is not None
    return device.number.minor


@pytest.mark.parametrize("serial", ["S64G1", ""], ids=["with a serial number", "without one"])
async def test_after_an_upgrade_a_held_drive_is_the_same_or_none(
    short_dir: Path, serial: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier release told a drive with several controllers by its number, if not by its serial number."""
    drive = an_nvme_disk(0, serial, "nqn.2014-08.org.example:one")
    with monkeypatch.context() as earlier:
        earlier.delitem(told._UNITS, "nvme-subsystem")
        earlier.setattr(told, "_COUNTED_DRIVES", frozenset())
        async with a_scene(short_dir, drive, rules=DISK_RULE) as scene:
            await scene.until_allocatable(1, DISK)
            pod = await scene.admit(resource=DISK)
            await scene.service.stop()
            earlier.undo()
            await scene.service.start()
            await until(lambda: DISK in scene.kubelet.capacity)
            await scene.until_allocatable(1 if serial else 0, DISK)
            again = await scene.kubelet.restart_container(pod, "main")
            assert again.state is (ContainerState.RUNNING if serial else ContainerState.WAITING)


@pytest.mark.parametrize("nsids", [(1,), (1, 2), (2, 1)], ids=str)
async def test_after_an_upgrade_a_held_namespace_is_the_same_or_none(
    short_dir: Path, nsids: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier release told namespaces by the order in which they were found."""
    found = [an_nvme_namespace(NVME_DRIVES[0], n, nsid) for n, nsid in enumerate(nsids, start=1)]
    with monkeypatch.context() as earlier:
        earlier.setattr(nvme, "place_of", lambda _: [])
        async with a_scene(short_dir, *found, rules=DISK_RULE) as scene:
            await scene.until_allocatable(len(nsids), DISK)
            pods = [await scene.admit(resource=DISK, name=name) for name in "ab"[: len(nsids)]]
            had = [minors_in(pod.container("main")) for pod in pods]
            await scene.service.stop()
            earlier.undo()
            await scene.service.start()
            await until(lambda: DISK in scene.kubelet.capacity)
            await scene.until_allocatable(1 if nsids == (1,) else 0, DISK)
            for pod, minors in zip(pods, had, strict=True):
                again = await scene.kubelet.restart_container(pod, "main")
                assert again.state is ContainerState.WAITING or minors_in(again) == minors
                assert nsids != (1,) or again.state is ContainerState.RUNNING
