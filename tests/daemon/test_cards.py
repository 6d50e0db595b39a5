"""Cards that the kernel numbers in the order in which they were started."""

from pathlib import Path

import pytest

from genericdp.simulator import ContainerState, PodStatus
from tests.scenes.cards import a_hailo, a_partition_of_a_gpu
from tests.scenes.scene import Scene, a_scene, minors_in

HAILO = "hailo.ai/h8"
HAILO_RULE = Path("examples/families/hailo.toml").read_text(encoding="utf-8")
PARTITION = "example.com/partition"
PARTITION_RULE = """
[[resource]]
name = "partition"
match = { SUBSYSTEM = "drm", DEVNAME = "/dev/dri/renderD*" }
"""
A, B = "0000:01:00.0", "0000:02:00.0"


async def gets(scene: Scene, pod: PodStatus) -> int | None:
    """The minor number that a container gets when it starts again, None if it cannot start."""
    container = await scene.kubelet.restart_container(pod, "main")
    return minors_in(container)[0] if container.state is ContainerState.RUNNING else None


@pytest.mark.parametrize("after", [[B], [B, A]], ids=["one does not start", "the other one starts first"])
async def test_after_a_boot_a_pod_gets_its_own_card_or_none(short_dir: Path, after: list[str]) -> None:
    before = [a_hailo(0, A), a_hailo(1, B)]
    async with a_scene(short_dir, *before, rules=HAILO_RULE) as scene:
        await scene.until_allocatable(2, HAILO)
        pods = [await scene.admit(resource=HAILO, name=name) for name in "ab"]
        board_of = {pod.name: [A, B][minors_in(pod.container("main"))[0]] for pod in pods}
        await scene.service.stop()
        scene.unplug(*before)
        scene.plug(*(a_hailo(turn, board, boot=1) for turn, board in enumerate(after)))
        await scene.service.start()
        await scene.until_allocatable(len(after), HAILO)
        for pod in pods:
            board = board_of[pod.name]
            assert await gets(scene, pod) == (after.index(board) if board in after else None)


async def test_a_partition_is_not_taken_for_one_of_another_gpu(short_dir: Path) -> None:
    before = [a_partition_of_a_gpu(0), a_partition_of_a_gpu(1)]
    async with a_scene(short_dir, *before, rules=PARTITION_RULE) as scene:
        await scene.until_allocatable(2, PARTITION)
        pods = [await scene.admit(resource=PARTITION, name=name) for name in "ab"]
        await scene.service.stop()
        scene.unplug(*before)
        scene.plug(a_partition_of_a_gpu(0, boot=1))
        await scene.service.start()
        await scene.until_allocatable(0, PARTITION)
        assert [await gets(scene, pod) for pod in pods] == [None, None]
