"""A device of several units, of which one goes and comes back."""

from pathlib import Path

import pytest

from genericdp.core.rules.settings import AnswerBy
from genericdp.simulator import ContainerState
from tests.daemon.test_cdi_answers import a_cdi_scene
from tests.daemon.test_comeback import stops, until_running
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import KIT, KIT_RULE
from tests.scenes.scene import minors_in

RULE = KIT_RULE.replace('on_replug = "restart"\n', 'on_replug = "restart"\ndebounce = "20ms"\n')

GPS, RADIO = a_usb_serial(0, port="1", serial="A"), a_usb_serial(1, port="2", serial="B")
RENAMED = a_usb_serial(5, port="2", serial="B")

pytestmark = pytest.mark.usefixtures("kubelet_knows_its_pods")

both_answers = pytest.mark.parametrize("answer", [AnswerBy.DEVICES, AnswerBy.CDI])


@both_answers
async def test_a_container_is_stopped_while_a_part_is_unplugged(short_dir: Path, answer: AnswerBy) -> None:
    async with a_cdi_scene(short_dir, GPS, RADIO, rules=RULE, answer=answer) as scene:
        await scene.until_allocatable(1, KIT)
        pod = await scene.admit(resource=KIT)
        main = pod.container("main")
        scene.unplug(RADIO)
        await scene.kubelet.wait_until(lambda: main.state is ContainerState.WAITING)
        assert stops(scene) == [("app", "main", 30)]
        scene.plug(RENAMED)
        await scene.until_allocatable(1, KIT)
        await scene.kubelet.sync(pod)
        assert sorted(minors_in(main)) == [0, 5]
        assert stops(scene) == [("app", "main", 30)]


@both_answers
async def test_a_container_has_a_part_again_that_returned_under_another_name(
    short_dir: Path, answer: AnswerBy
) -> None:
    rule = RULE.replace('on_unplug = "stop"\n', "")
    async with a_cdi_scene(short_dir, GPS, RADIO, rules=rule, answer=answer) as scene:
        await scene.until_allocatable(1, KIT)
        pod = await scene.admit(resource=KIT)
        scene.unplug(RADIO)
        await scene.until_allocatable(0, KIT, capacity=1)
        scene.plug(RENAMED)
        await until_running(scene, pod, restarts=1)
        assert sorted(minors_in(pod.container("main"))) == [0, 5]
        assert stops(scene) == [("app", "main", 30)]


@both_answers
async def test_a_part_that_leaves_while_the_daemon_is_away_stops_the_container_once(
    short_dir: Path, answer: AnswerBy
) -> None:
    async with a_cdi_scene(short_dir, GPS, RADIO, rules=RULE, answer=answer) as scene:
        await scene.until_allocatable(1, KIT)
        pod = await scene.admit(resource=KIT)
        main = pod.container("main")
        await scene.service.stop()
        scene.unplug(RADIO)
        await scene.service.start()
        await scene.kubelet.wait_until(lambda: main.state is ContainerState.WAITING)
        scene.plug(RENAMED)
        await scene.until_allocatable(1, KIT)
        await scene.kubelet.sync(pod)
        assert sorted(minors_in(main)) == [0, 5]
        assert stops(scene) == [("app", "main", 30)]


@both_answers
async def test_a_daemon_that_restarts_within_the_debounce_time_stops_the_container_all_the_same(
    short_dir: Path, answer: AnswerBy
) -> None:
    async with a_cdi_scene(short_dir, GPS, RADIO, rules=RULE.replace("20ms", "1h"), answer=answer) as scene:
        await scene.until_allocatable(1, KIT)
        pod = await scene.admit(resource=KIT)
        scene.unplug(RADIO)
        await scene.until_allocatable(0, KIT, capacity=1)
        await scene.service.stop()
        scene.edit_rules(RULE)
        await scene.service.start()
        await scene.kubelet.wait_until(lambda: pod.container("main").state is ContainerState.WAITING)
        assert stops(scene) == [("app", "main", 30)]
