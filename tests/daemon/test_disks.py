"""Disks that the kernel counts in the order of arrival: a pod gets its own after a boot, or none."""

from pathlib import Path

from genericdp.simulator import ContainerState
from tests.scenes.scene import a_scene, minors_in
from tests.scenes.storage import DISK_RULE, a_sas_disk, an_iscsi_disk

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
