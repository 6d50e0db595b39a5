"""Containers that get their devices by CDI, after what they were told could not be saved or was lost."""

import contextlib
from pathlib import Path

import pytest

from genericdp.core.cdi import FEW
from genericdp.core.rules.settings import AnswerBy
from genericdp.simulator import Container, ContainerState, Pod, PodStatus
from tests.daemon.test_cdi_answers import RULE, A, B, a_cdi_scene, named_in
from tests.scenes.rules import FTDI
from tests.scenes.scene import Scene, ids_told
from tests.scenes.shortage import a_file_system_at
from tests.scenes.waiting import until

#: What rules say more, how many ids there are then, and how many a container wants.
shared_or_several = pytest.mark.parametrize(
    ("more", "ids", "count"),
    [("replicas = 3", 6, 1), ("", 2, 2), (f"replicas = {FEW}", 2 * FEW, FEW + 1)],
    ids=["replica", "two devices", "many replicas"],
)


async def starts_again(scene: Scene, pod: PodStatus, container: str = "main") -> None:
    """Assert that a container gets again what it was told, as soon as the daemon knows what that means."""
    status = pod.container(container)
    assert status.created is not None
    told = {name.partition("=")[2] for name in status.created.cdi_devices}
    assert told
    await until(lambda: told <= {*named_in(scene)})
    again = await scene.kubelet.restart_container(pod, container)
    assert again.state is ContainerState.RUNNING
    assert ids_told(again) == ids_told(status)


@shared_or_several
async def test_a_name_that_a_full_disk_did_not_take_keeps_its_meaning_over_a_restart(
    short_dir: Path, more: str, ids: int, count: int
) -> None:
    with a_file_system_at(short_dir / "state", "16k"):
        async with a_cdi_scene(short_dir, A, B, rules=RULE + more) as scene:
            await scene.until_allocatable(ids)
            filler = short_dir / "state" / "filler"
            fill(filler)
            pod = await scene.admit(count)
            assert scene.daemon.recorder.history.failing
            await scene.service.stop()
            filler.unlink()
            await scene.service.start()
            await starts_again(scene, pod)


@shared_or_several
async def test_a_name_keeps_its_meaning_when_the_memory_is_lost(
    short_dir: Path, more: str, ids: int, count: int
) -> None:
    async with a_cdi_scene(short_dir, A, B, rules=RULE + more) as scene:
        await scene.until_allocatable(ids)
        pod = await scene.admit(count)
        await restart_without_memory(scene)
        await starts_again(scene, pod)


async def test_when_the_memory_is_lost_a_name_outlasts_rules_that_go_back_to_devices(short_dir: Path) -> None:
    rules = RULE + 'answer = "cdi"'
    async with a_cdi_scene(short_dir, A, B, rules=rules, answer=AnswerBy.DEVICES) as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit()
        scene.edit_rules(RULE)
        await restart_without_memory(scene)
        await starts_again(scene, pod)


async def test_when_the_memory_is_lost_init_containers_keep_their_names(short_dir: Path) -> None:
    first, main = Container("first", limits={FTDI: 1}), Container("main", limits={FTDI: 2})
    async with a_cdi_scene(short_dir, A, B, rules=RULE + "replicas = 3") as scene:
        await scene.until_allocatable(6)
        pod = await scene.kubelet.admit(Pod("app", [main], init_containers=[first]))
        await restart_without_memory(scene)
        for name in ("first", "main"):
            await starts_again(scene, pod, name)


async def test_after_a_restart_a_name_may_be_of_an_init_container_whose_pod_is_being_admitted(
    short_dir: Path,
) -> None:
    """The next Allocate for its pod must not take its name from it."""
    async with a_cdi_scene(short_dir, A, rules=RULE) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        await scene.service.stop()
        await scene.service.start()
        (named,) = scene.daemon.memory.answered.values()
        assert named.given is not None


async def restart_without_memory(scene: Scene) -> None:
    await scene.service.stop()
    (Path(scene.settings.state_dir) / "memory.json").write_text("{")
    await scene.service.start()


def fill(path: Path) -> None:
    """Fill a file system."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
