"""A volume gets another name while a pod has it: it stays the pod's, and no other volume takes its place.

`zfs rename` and `dmsetup rename` are allowed on volumes in use. The disk keeps its node and number, and udev
announces that its name has changed.
"""

from pathlib import Path

import pytest

from genericdp.core.device import UdevDevice
from genericdp.simulator import ContainerState, Phase, PodStatus
from tests.scenes.scene import Scene, a_scene, minors_in
from tests.scenes.storage import DISK_RULE, a_volume, a_zvol
from tests.scenes.waiting import until

DISK = "example.com/disk"

pytestmark = pytest.mark.usefixtures("pods_leave_at_once")


def reasons(scene: Scene) -> dict[str, str]:
    """What is wrong with the devices that are listed, by id."""
    return {device.id: device.reason for device in scene.daemon.inventory.offers[DISK].devices}


async def until_said(scene: Scene, *said: str) -> None:
    """Wait for these reasons, in any order."""
    await until(lambda: sorted(reasons(scene).values()) == sorted(said))
    await scene.until_allocatable(0, DISK)


async def restarted(scene: Scene, pod: PodStatus) -> list[int] | None:
    """What a container gets when it starts again, None if it cannot."""
    container = await scene.kubelet.restart_container(pod, "main")
    return minors_in(container) if container.state is ContainerState.RUNNING else None


RENAMED = {
    "zfs rename": (a_zvol(0, "tank/vm0"), a_zvol(0, "tank/vm0-old")),
    "zfs rename of the dataset above": (a_zvol(0, "tank/k8s/vm0"), a_zvol(0, "tank/kube/vm0")),
    "dmsetup rename": (a_volume(0, name="scratch"), a_volume(0, name="data")),
    "dmsetup rename --setuuid": (a_volume(0, name="scratch"), a_volume(0, "U-1234-abcd", "scratch")),
}


@pytest.mark.parametrize("is_restarted", [False, True], ids=["", "while the daemon is down"])
@pytest.mark.parametrize(("before", "after"), RENAMED.values(), ids=RENAMED)
async def test_a_renamed_volume_waits_until_its_pod_has_gone(
    short_dir: Path, before: UdevDevice, after: UdevDevice, is_restarted: bool
) -> None:
    async with a_scene(short_dir, before, rules=DISK_RULE) as scene:
        await scene.until_allocatable(1, DISK)
        (old,) = scene.daemon.inventory.offers[DISK].ids
        pod = await scene.admit(resource=DISK)
        if is_restarted:
            await scene.service.stop()
        scene.udev.change(after)
        if is_restarted:
            await scene.service.start()
        await until(lambda: len(reasons(scene)) == 2)
        (new,) = scene.daemon.inventory.offers[DISK].ids.keys() - {old}
        await until_said(scene, f"its id is now {new}", f"a pod may still hold it as {old}")
        second = await scene.admit(resource=DISK, name="second")
        assert second.phase is Phase.FAILED
        scene.kubelet.delete(second)
        scene.kubelet.delete(pod)
        await scene.until_allocatable(1, DISK)
        third = await scene.admit(resource=DISK, name="third")
        assert minors_in(third.container("main")) == [0]


async def test_a_volume_that_takes_the_name_of_one_in_use_is_not_what_its_pod_got(short_dir: Path) -> None:
    async with a_scene(short_dir, a_zvol(0, "tank/vm0"), rules=DISK_RULE) as scene:
        await scene.until_allocatable(1, DISK)
        pod = await scene.admit(resource=DISK)
        with scene.udev.unheard() as hints:
            scene.udev.change(a_zvol(0, "tank/vm0-old"))
            scene.plug(a_zvol(16, "tank/vm0"))
        for hint in hints:
            scene.udev.tell(hint)
        await until(lambda: len(scene.daemon.inventory.refusals) == 1)
        (refusal,) = scene.daemon.inventory.refusals
        assert refusal.node == scene.udev.node(a_zvol(16, "tank/vm0"))
        assert "belongs to another unit, which a pod may still hold" in refusal.reason
        assert await restarted(scene, pod) is None
        scene.kubelet.delete(pod)
        await scene.until_allocatable(2, DISK)


async def test_two_volumes_that_change_their_names_stay_with_their_pods(short_dir: Path) -> None:
    """A roll-back: `zfs rename tank/vm0 tank/vm0-old; zfs rename tank/vm0-new tank/vm0`."""
    async with a_scene(short_dir, a_zvol(0, "tank/vm0"), rules=DISK_RULE) as scene:
        await scene.until_allocatable(1, DISK)
        one = await scene.admit(resource=DISK, name="one")
        scene.plug(a_zvol(16, "tank/vm0-new"))
        await scene.until_allocatable(2, DISK)
        two = await scene.admit(resource=DISK, name="two")
        assert minors_in(two.container("main")) == [16]
        scene.udev.change(a_zvol(0, "tank/vm0-old"))
        scene.udev.change(a_zvol(16, "tank/vm0"))
        await until(lambda: len(reasons(scene)) == 3)
        assert await restarted(scene, one) is None
        assert await restarted(scene, two) is None
        third = await scene.admit(resource=DISK, name="third")
        assert third.phase is Phase.FAILED


async def test_a_volume_that_is_made_again_under_its_name_is_the_same_one(short_dir: Path) -> None:
    async with a_scene(short_dir, a_zvol(0, "tank/vm0"), rules=DISK_RULE) as scene:
        await scene.until_allocatable(1, DISK)
        pod = await scene.admit(resource=DISK)
        scene.unplug(a_zvol(0, "tank/vm0"))
        await scene.until_allocatable(0, DISK)
        scene.plug(a_zvol(16, "tank/vm0"))
        await scene.until_allocatable(1, DISK)
        assert await restarted(scene, pod) == [16]
