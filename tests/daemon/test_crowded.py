"""An edit of `replicas` that leaves no room for devices that pods hold."""

from pathlib import Path

import pytest

from genericdp import forgetting
from genericdp.core.rules.settings import AnswerBy
from genericdp.core.status import holdings
from genericdp.simulator import ContainerState, Runtime
from tests.daemon.test_cdi_answers import RULE, a_cdi_scene
from tests.scenes.builders import GPU_RULE, a_gpu, a_kfd, a_usb_serial
from tests.scenes.rules import DOMAIN, FTDI
from tests.scenes.scene import a_scene, both_runtimes, ids_told, minors_in
from tests.scenes.service import links_in
from tests.scenes.state_file import lose
from tests.scenes.waiting import until

A, B, C = (a_usb_serial(n, port=str(n + 1), serial=serial) for n, serial in enumerate("ABC"))
CROWDED = RULE + "replicas = 10000\n"


@both_runtimes
@pytest.mark.parametrize("answer", [AnswerBy.CDI, AnswerBy.DEVICES])
async def test_pods_keep_devices_for_which_edited_rules_have_no_room(
    answer: AnswerBy, runtime: Runtime, short_dir: Path
) -> None:
    async with a_cdi_scene(short_dir, A, B, C, answer=answer, rules=RULE, runtime=runtime) as scene:
        await scene.until_allocatable(3)
        pods = [await scene.admit(name=f"pod-{n}") for n in range(3)]
        before = [minors_in(pod.container("main")) for pod in pods]
        scene.edit_rules(CROWDED)
        await until(lambda: scene.daemon.inventory.offers[FTDI].crowded)
        for again in (False, True):
            if again:
                await scene.service.stop()
                await scene.service.start()
                await scene.until_allocatable(0)
            after = [await scene.kubelet.restart_container(pod, "main") for pod in pods]
            assert {container.state for container in after} == {ContainerState.RUNNING}
            assert [minors_in(container) for container in after] == before
        # While it is unplugged, no other one takes its place.
        scene.unplug(C)
        await until(lambda: links_in(scene.settings)["ftdi_C"] == "ftdi_C")
        held_by = next(pod for pod in pods if ids_told(pod.container("main")) == ["ftdi_C"])
        assert (await scene.kubelet.restart_container(held_by, "main")).state is ContainerState.WAITING


@pytest.mark.parametrize("answer", [AnswerBy.CDI, AnswerBy.DEVICES])
async def test_containers_follow_a_device_without_room(
    answer: AnswerBy, short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 0.0)
    follow = 'on_unplug = "stop"\non_replug = "restart"\ndebounce = "20ms"\n'
    async with a_cdi_scene(short_dir, A, B, C, answer=answer, rules=RULE + follow) as scene:
        await scene.until_allocatable(3)
        pods = [await scene.admit(name=f"pod-{n}") for n in range(3)]
        scene.edit_rules(CROWDED + follow)
        await until(lambda: scene.daemon.inventory.offers[FTDI].crowded)
        (crowded,) = scene.daemon.inventory.offers[FTDI].crowded
        number = "ABC".index(crowded.id[-1])
        mine = next(pod for pod in pods if ids_told(pod.container("main")) == [crowded.id]).container("main")
        scene.unplug((A, B, C)[number])
        scene.plug(a_usb_serial(7, port=str(number + 1), serial="ABC"[number]))
        await scene.kubelet.wait_until(lambda: mine.restarts == 1 and minors_in(mine) == [7])
        scene.unplug(a_usb_serial(7, port=str(number + 1), serial="ABC"[number]))
        await scene.kubelet.wait_until(lambda: mine.state is ContainerState.WAITING)
        assert len(scene.kubelet.container_runtime.stops) == 2


async def test_a_device_without_room_keeps_the_node_that_it_shares_with_others_that_leave(
    short_dir: Path,
) -> None:
    gpu, gpus = f"{DOMAIN}/gpu", [a_gpu(number) for number in range(3)]
    crowded = GPU_RULE.replace("group_by", "replicas = 10000\ngroup_by")
    async with a_scene(short_dir, a_kfd(), *gpus[0], *gpus[1], *gpus[2], rules=GPU_RULE) as scene:
        await scene.until_allocatable(3, gpu)
        pods = {
            ids_told(pod.container("main"), gpu)[0]: pod
            for pod in [await scene.admit(resource=gpu, name=f"pod-{n}") for n in range(3)]
        }
        scene.edit_rules(crowded)
        await until(lambda: scene.daemon.inventory.offers[gpu].crowded)
        mine = pods[scene.daemon.inventory.offers[gpu].crowded[0].id]
        before = minors_in(mine.container("main"))
        scene.unplug(*gpus[0], *gpus[1])

        def others_left() -> bool:
            devices = scene.daemon.inventory.offers[gpu].devices
            return not any(node.sys_path for each in devices for node in each.nodes)

        await until(others_left)
        after = await scene.kubelet.restart_container(mine, "main")
        assert (after.state, minors_in(after)) == (ContainerState.RUNNING, before)


async def test_what_pods_hold_has_room_first_also_if_the_memory_was_lost(short_dir: Path) -> None:
    async with a_scene(short_dir, C, rules=CROWDED) as scene:
        await scene.until_allocatable(10_000)
        pod = await scene.admit()
        scene.plug(B)
        await scene.until_allocatable(20_000)
        scene.plug(A)
        await until(lambda: scene.daemon.inventory.refusals)
        await scene.service.stop()
        lose(scene.settings)
        await scene.service.start()
        (mine,) = ids_told(pod.container("main"))
        await until(lambda: mine in scene.daemon.inventory.offers[FTDI].ids)


async def test_once_nobody_may_hold_it_a_device_without_room_is_forgotten(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdings, "KUBELET_SETTLES_S", 0.0)
    monkeypatch.setattr(forgetting, "ASK_AGAIN_S", 0.05)
    async with a_scene(short_dir, A, B, C, rules=RULE) as scene:
        await scene.until_allocatable(3)
        scene.edit_rules(CROWDED + 'unplug_grace = "0s"\n')
        await until(lambda: scene.daemon.inventory.refusals)
        await until(lambda: not scene.daemon.inventory.offers[FTDI].crowded)
        assert {*links_in(scene.settings)} == {"ftdi_A", "ftdi_B"}
