"""A daemon that starts without its memory after an edit that gave devices other ids while pods held them.

Only where the links led tells then what an old id meant.
"""

import os
from pathlib import Path

import pytest

from genericdp.core.rules.settings import AnswerBy
from genericdp.simulator import Container, ContainerState, Pod, PodStatus
from tests.daemon.test_cdi_answers import RULE, A, B, a_cdi_scene
from tests.daemon.test_lost_memory import restart_without
from tests.scenes.rules import DOMAIN, FTDI
from tests.scenes.scene import Scene, minors_in
from tests.scenes.service import links_in
from tests.scenes.waiting import until

pytestmark = pytest.mark.usefixtures("pods_leave_at_once")

#: Edits of RULE that give its device another id -> the rules, and its resource then.
EDITS = {
    "renamed": (RULE.replace("ftdi", "meter"), f"{DOMAIN}/meter"),
    "by port": (RULE + 'identity = "port"\n', FTDI),
    "grouped": (RULE + 'group_by = "usb_device"\nidentity = "port"\n', FTDI),
    "replicated": (RULE.replace("ftdi", "meter") + "replicas = 2\n", f"{DOMAIN}/meter"),
}
by_any_answer = pytest.mark.parametrize("answer", [AnswerBy.DEVICES, AnswerBy.CDI], ids=str)


async def holding(scene: Scene) -> PodStatus:
    """A pod that has A."""
    await scene.until_allocatable(1)
    pod = await scene.admit(name="one")
    assert minors_in(pod.container("main")) == [0]
    return pod


async def check(scene: Scene, pod: PodStatus, resource: str) -> None:
    """Nobody else gets A before the pod has gone, and afterwards somebody does."""
    offer = scene.daemon.inventory.offers[resource]
    waiting = {id_: each.reason for id_, each in offer.ids.items() if id_ in offer.refused}
    (held,) = scene.daemon.memory.held
    of = "" if resource == FTDI else f" of {FTDI}"
    assert waiting
    assert {*waiting.values()} == {f"a pod may still hold it as {held}{of}"}
    await scene.until_allocatable(0, resource)
    again = await scene.kubelet.restart_container(pod, "main")
    assert again.state is ContainerState.WAITING
    scene.kubelet.delete(pod)
    await scene.until_allocatable(len(waiting), resource)
    third = await scene.admit(resource=resource, name="third")
    assert minors_in(third.container("main")) == [0]
    await until(lambda: not any(name.startswith("held+") for name in links_in(scene.settings)))


@by_any_answer
@pytest.mark.parametrize("edit", EDITS)
async def test_the_device_of_a_pod_goes_to_nobody_else_when_the_memory_is_lost_after_an_edit(
    short_dir: Path, edit: str, answer: AnswerBy
) -> None:
    rules, resource = EDITS[edit]
    async with a_cdi_scene(short_dir, A, answer=answer) as scene:
        pod = await holding(scene)
        scene.edit_rules(rules)
        await until(lambda: resource in scene.daemon.inventory.offers)
        await restart_without(scene, Path.unlink)
        await check(scene, pod, resource)


@by_any_answer
@pytest.mark.parametrize("edit", EDITS)
async def test_nor_when_the_edit_is_first_read_without_the_memory(
    short_dir: Path, edit: str, answer: AnswerBy
) -> None:
    rules, resource = EDITS[edit]
    async with a_cdi_scene(short_dir, A, answer=answer) as scene:
        pod = await holding(scene)
        await scene.service.stop()
        scene.rules.become(rules)
        await restart_without(scene, Path.unlink)
        await scene.service.stop()
        await scene.service.start()
        await restart_without(scene, Path.unlink)
        await check(scene, pod, resource)


async def test_nor_when_only_an_init_container_got_it(short_dir: Path) -> None:
    rules, resource = EDITS["renamed"]
    async with a_cdi_scene(short_dir, A, answer=AnswerBy.DEVICES) as scene:
        await scene.until_allocatable(1)
        first, main = Container("first", limits={FTDI: 1}), Container("main")
        await scene.kubelet.admit(Pod("app", [main], init_containers=[first]))
        scene.edit_rules(rules)
        await until(lambda: resource in scene.daemon.inventory.offers)
        await restart_without(scene, Path.unlink)
        await scene.until_allocatable(0, resource)


async def test_after_a_reboot_nothing_waits_and_the_pod_does_not_start(short_dir: Path) -> None:
    """All containers have ended, and no link is left that would lead one to a device."""
    rules, resource = EDITS["by port"]
    async with a_cdi_scene(short_dir, A, B, answer=AnswerBy.DEVICES) as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit(name="one")
        scene.edit_rules(rules)
        await until(lambda: len(scene.daemon.inventory.waiting) == 1)
        await scene.service.stop()
        for link in Path(scene.settings.link_dir).iterdir():
            link.unlink()
        await restart_without(scene, Path.unlink)
        assert scene.daemon.inventory.waiting == ()
        await scene.until_allocatable(2, resource)
        again = await scene.kubelet.restart_container(pod, "main")
        assert again.state is ContainerState.WAITING


async def test_what_others_put_among_the_links_keeps_no_device_from_pods(short_dir: Path) -> None:
    async with a_cdi_scene(short_dir, A, answer=AnswerBy.DEVICES) as scene:
        await scene.until_allocatable(1)
        node = scene.udev.node(A)
        await scene.service.stop()
        for name in ("held+", "held+@", "held+x@+0", "x", "shared+x", "\udcff", "held+\udcff", ".x"):
            os.symlink(node, os.path.join(scene.settings.link_dir, name))
        os.mkdir(os.path.join(scene.settings.link_dir, "held+y"))
        await restart_without(scene, Path.unlink)
        await scene.until_allocatable(1)
