"""Running containers that got their devices by CDI follow them as those do that got device nodes."""

from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.rules.name import env_names
from genericdp.core.rules.settings import AnswerBy
from genericdp.cri import comeback
from genericdp.kubelet import checkpoint
from genericdp.simulator import ContainerState, ContainerStatus
from tests.daemon.test_cdi_answers import a_cdi_scene
from tests.daemon.test_comeback import stops, until_judged, until_running
from tests.scenes.builders import a_kfd, a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import nodes_in
from tests.scenes.waiting import until

BY_NAME = (
    FTDI_RULE.replace("/dev/serial{index}", "/dev/{devname}") + 'on_replug = "restart"\ndebounce = "20ms"\n'
)
RULE = FTDI_RULE.replace("{index}", "-{id}") + 'on_replug = "restart"\ndebounce = "20ms"\n'
both_answers = pytest.mark.parametrize("answer", [AnswerBy.DEVICES, AnswerBy.CDI])

pytestmark = pytest.mark.usefixtures("kubelet_knows_its_pods", "evidence_is_asked_for_soon")


def stick(number: int, serial: str) -> UdevDevice:
    return a_usb_serial(number, serial=serial, port=str("ABC".index(serial) + 1))


@both_answers
async def test_two_devices_of_a_container_that_swapped_their_numbers_are_told_apart(
    short_dir: Path, answer: AnswerBy
) -> None:
    async with a_cdi_scene(short_dir, stick(0, "A"), stick(1, "B"), rules=RULE, answer=answer) as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit(2)
        scene.unplug(stick(0, "A"), stick(1, "B"))
        await scene.until_allocatable(0, capacity=2)
        scene.plug(stick(1, "A"), stick(0, "B"))
        await until_running(scene, pod, restarts=1)
        assert sorted(nodes_in(pod.container("main"))) == [
            ("/dev/serial-ftdi_A", 188, 1),
            ("/dev/serial-ftdi_B", 188, 0),
        ]


def told(container: ContainerStatus) -> dict[str, int]:
    """The minor number of each device, by id, as the envs of a container and its device nodes tell it."""
    assert container.created is not None
    envs, minors = container.created.envs, {path: minor for path, _, minor in nodes_in(container)}
    paths, ids = (envs[name].split(",") for name in env_names(FTDI))
    return {id_: minors[path] for id_, path in zip(ids, paths, strict=True)}


@both_answers
async def test_the_envs_tell_which_of_two_devices_has_the_name_of_the_other(
    short_dir: Path, answer: AnswerBy
) -> None:
    """The container has the same paths with the same numbers as if it were created now."""
    async with a_cdi_scene(short_dir, stick(0, "A"), stick(1, "B"), rules=BY_NAME, answer=answer) as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit(2)
        main = pod.container("main")
        assert told(main) == {"ftdi_A": 0, "ftdi_B": 1}
        scene.unplug(stick(0, "A"), stick(1, "B"))
        await scene.until_allocatable(0, capacity=2)
        scene.plug(stick(1, "A"), stick(0, "B"))
        await until_running(scene, pod, restarts=1)
        assert told(main) == {"ftdi_A": 1, "ftdi_B": 0}
        await scene.service.stop()
        await scene.service.start()
        await scene.until_allocatable(2)
        await until_judged(scene, "ftdi_A", "ftdi_B")
        assert stops(scene) == [("app", "main", 30)]


@both_answers
async def test_a_device_that_has_the_name_of_one_that_stays_away_is_told_from_it_after_a_restart(
    short_dir: Path, answer: AnswerBy
) -> None:
    """Of the other one, the daemon knows no more than what is saved."""
    async with a_cdi_scene(short_dir, stick(0, "A"), stick(1, "B"), rules=BY_NAME, answer=answer) as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit(2)
        await scene.service.stop()
        scene.unplug(stick(0, "A"), stick(1, "B"))
        scene.plug(stick(1, "A"))
        await scene.service.start()
        await until(lambda: pod.container("main").state is ContainerState.WAITING)
        assert stops(scene) == [("app", "main", 30)]


@both_answers
@pytest.mark.parametrize("rule", [RULE, BY_NAME], ids=["by id", "by name"])
async def test_a_number_that_another_device_of_the_container_had_is_another_number(
    short_dir: Path, answer: AnswerBy, rule: str
) -> None:
    """A hub loses power: A returns as what B was, and B stays away."""
    sticks = stick(0, "A"), stick(1, "B"), stick(2, "C")
    async with a_cdi_scene(short_dir, *sticks, rules=rule, answer=answer) as scene:
        await scene.until_allocatable(3)
        one, two = await scene.admit(2, name="one"), await scene.admit(1, name="two")
        scene.unplug(*sticks)
        await scene.until_allocatable(0, capacity=3)
        scene.plug(stick(1, "A"), stick(0, "C"))
        await until_running(scene, two, restarts=1)
        await until(lambda: one.container("main").state is ContainerState.WAITING)
        assert told(two.container("main")) == {"ftdi_C": 0}


@pytest.mark.parametrize("path", ["/dev/{id}", "/dev/port"])
async def test_a_restarted_daemon_leaves_containers_of_replicas_alone(short_dir: Path, path: str) -> None:
    """Each of them has the device at the path of its own id."""
    rule = RULE.replace("/dev/serial-{id}", path) + "replicas = 3\n"
    async with a_cdi_scene(short_dir, stick(0, "A"), rules=rule) as scene:
        await scene.until_allocatable(3)
        for name in "abc":
            await scene.admit(name=name)
        await scene.service.stop()
        await scene.service.start()
        await scene.until_allocatable(3)
        await until_judged(scene, "ftdi_A")
        assert stops(scene) == []


@both_answers
async def test_a_node_that_a_container_may_not_have_got_counts_when_the_kubelet_tells_what_it_got(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, answer: AnswerBy
) -> None:
    """While its checkpoint cannot be read, a number that the container lacks may be new in the rules."""
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)
    rules = RULE + '[[resource.node]]\nmatch = { SUBSYSTEM = "kfd" }\nshared = true\n'
    renumbered = replace(a_kfd(), number=DeviceNumber("c", 511, 0))
    async with a_cdi_scene(short_dir, stick(0, "A"), a_kfd(), rules=rules, answer=answer) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await until_judged(scene, "ftdi_A")
        readable = checkpoint.LONGEST
        monkeypatch.setattr(checkpoint, "LONGEST", 0)
        scene.unplug(a_kfd())
        await scene.until_allocatable(0, capacity=1)
        scene.plug(renumbered)
        await until(
            lambda: any(plug.not_before > 0 for plug in scene.daemon._comeback._plugs.by_device.values())
        )
        assert stops(scene) == []
        monkeypatch.setattr(checkpoint, "LONGEST", readable)
        await until_running(scene, pod, restarts=1)
        assert sorted(number for _, *number in nodes_in(pod.container("main"))) == [[188, 0], [511, 0]]
