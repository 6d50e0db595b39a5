"""What a pod holds is given to no other pod, whatever is edited, restarted or killed."""

import errno
from pathlib import Path
from typing import BinaryIO

import pytest

from genericdp.core.memory.answer import Answer
from genericdp.core.memory.withdrawn import REASON
from genericdp.core.status.history import Retried
from genericdp.files.state import StateFile
from genericdp.kubelet import checkpoint
from genericdp.simulator import Container, ContainerState, Generation, Phase, Pod
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import LoopTime, Scene, a_scene, both_generations
from tests.scenes.service import settings_below
from tests.scenes.shortage import a_file_system_at, fill
from tests.scenes.state_file import lose
from tests.scenes.waiting import until

STICK = a_usb_serial(0, serial="A")
RENAMED = FTDI_RULE.replace('"ftdi"', '"serial"')
SERIAL = "example.com/serial"

pytestmark = pytest.mark.usefixtures("pods_leave_at_once")


async def rename(scene: Scene) -> None:
    """Edit the rules so that the resource has another name, and wait until the kubelet knows it."""
    scene.edit_rules(RENAMED)
    await scene.until_allocatable(0, SERIAL, capacity=1)


@both_generations
async def test_a_device_under_a_new_name_waits_until_its_pod_has_gone(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(short_dir, STICK, generation=generation) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        assert pod.container("main").state is ContainerState.RUNNING
        await rename(scene)
        assert (await scene.admit(resource=SERIAL, name="other")).phase is Phase.FAILED
        scene.kubelet.delete(pod)
        await scene.until_allocatable(1, SERIAL)
        other = await scene.admit(resource=SERIAL, name="another")
        assert other.container("main").state is ContainerState.RUNNING


@pytest.mark.parametrize("memory", ["as it was saved", "lost"])
async def test_a_daemon_that_was_killed_still_knows_who_has_what(short_dir: Path, memory: str) -> None:
    """Allocate saved it. If the memory is lost, the kubelet still knows."""
    async with a_scene(short_dir, STICK) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        saved = Path(scene.settings.state_dir, "memory.json")
        text = saved.read_bytes()
        await scene.service.stop()
        if memory == "lost":
            saved.unlink()
        else:
            saved.write_bytes(text)  # what a stop saves later does not count
        await scene.service.start()
        await until(lambda: "ftdi_A" in scene.daemon.memory.held)
        await scene.until_allocatable(1)
        await rename(scene)


async def test_a_link_says_at_once_that_nobody_shares_the_only_replica(short_dir: Path) -> None:
    rules = FTDI_RULE + "replicas = 1\n"
    async with a_scene(short_dir, STICK, rules=rules) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        assert "held+ftdi_A.0" in {path.name for path in Path(scene.settings.link_dir).iterdir()}
        await scene.service.stop()
        lose(scene.settings)
        scene.edit_rules(FTDI_RULE + "replicas = 2\n")
        await scene.service.start()
        await scene.until_allocatable(1, capacity=2)
        assert (await scene.admit(name="other")).phase is Phase.FAILED
        scene.kubelet.delete(pod)
        await scene.until_allocatable(2)


async def test_who_has_what_is_saved_before_the_kubelet_gets_its_answer(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK) as scene:
        await scene.until_allocatable(1)
        assert StateFile(scene.settings.state_dir).load().held == {}
        await scene.admit()
        assert list(StateFile(scene.settings.state_dir).load().held) == ["ftdi_A"]


async def test_a_full_disk_stops_no_pod_and_who_has_what_is_saved_when_there_is_room(short_dir: Path) -> None:
    state = short_dir / "state"
    with a_file_system_at(state):
        async with a_scene(short_dir, STICK) as scene:
            await scene.until_allocatable(1)
            # The first memory has been saved, and no save is due.
            await scene.service.stop()
            await scene.service.start()
            await scene.until_allocatable(1)
            fill(state)
            pod = await scene.admit()
            assert pod.container("main").state is ContainerState.RUNNING
            assert list(scene.daemon.memory.held) == ["ftdi_A"]
            assert StateFile(scene.settings.state_dir).load().held == {}
            failing = scene.daemon.recorder.history.failing[Retried.MEMORY]
            assert failing.why == f"cannot save '{state}/memory.json': No space left on device"
            (state / "other").unlink()
            LoopTime().advance(1.0)
            await until(lambda: not scene.daemon.recorder.history.failing)
            assert list(StateFile(scene.settings.state_dir).load().held) == ["ftdi_A"]


@pytest.mark.parametrize("who", ["an init container", "a pod of a kubelet without the API server"])
async def test_what_could_not_be_saved_before_a_restart_is_learned_from_the_kubelets_checkpoint(
    short_dir: Path, who: str
) -> None:
    """PodResources lists neither."""
    state = short_dir / "state"
    with a_file_system_at(state):
        async with a_scene(short_dir, STICK) as scene:
            await scene.until_allocatable(1)
            await scene.service.stop()
            await scene.service.start()
            await scene.until_allocatable(1)
            fill(state)
            if "init" in who:
                init = Container("init", limits={FTDI: 1})
                pod = await scene.kubelet.admit(Pod("flash", [Container("main")], init_containers=[init]))
            else:
                pod = await scene.admit()
                await scene.kubelet.restart(readmit=False)
            await scene.service.stop()
            assert StateFile(scene.settings.state_dir).load().held == {}
            await scene.service.start()
            await until(lambda: "ftdi_A" in scene.daemon.memory.held)
            (state / "other").unlink()
            LoopTime().advance(30.0)
            await until(lambda: not scene.daemon.recorder.history.failing)
            await rename(scene)
            await answers(scene, 3)
            assert (await scene.admit(resource=SERIAL, name="other")).phase is Phase.FAILED
            await scene.kubelet.readmit()
            scene.kubelet.delete(pod)
            await scene.until_allocatable(1, SERIAL)


async def test_an_old_checkpoint_holds_no_device_longer_than_until_the_kubelet_has_written_it_again(
    short_dir: Path,
) -> None:
    """It names a pod that has gone, and a daemon that starts cannot know that."""
    async with a_scene(short_dir, STICK) as scene:
        await scene.until_allocatable(1)
        await scene.service.stop()
        saved = Path(scene.settings.state_dir, "memory.json")
        text = saved.read_bytes()
        await scene.service.start()
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await scene.service.stop()
        saved.write_bytes(text)
        scene.kubelet.delete(pod)
        scene.edit_rules(RENAMED)
        await scene.service.start()
        await until(lambda: "ftdi_A" in scene.daemon.memory.held)
        await scene.until_allocatable(1, SERIAL)
        assert not scene.daemon.memory.held


async def test_an_edit_of_replicas_takes_effect_when_the_only_holder_has_gone(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.edit_rules(FTDI_RULE + "replicas = 3\n")
        # The id that the pod holds, and three that wait.
        await scene.until_allocatable(0, capacity=4)
        await scene.kubelet.restart_container(pod, "main")
        assert pod.container("main").state is ContainerState.RUNNING, "its own device stays within reach"
        scene.kubelet.delete(pod)
        await scene.until_allocatable(3)


async def test_a_device_waits_for_who_had_a_replica_of_it_even_if_the_memory_was_lost_while_it_was_absent(
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, STICK, rules=FTDI_RULE + "replicas = 2\n") as scene:
        await scene.until_allocatable(2)
        pod = await scene.admit()
        await scene.service.stop()
        lose(scene.settings)
        scene.edit_rules(FTDI_RULE)
        scene.unplug(STICK)
        await scene.service.start()
        await until(lambda: scene.daemon.memory.held)
        scene.plug(STICK)
        await until(lambda: "ftdi_A" in scene.daemon.inventory.waiting)
        assert scene.kubelet.allocatable[FTDI] == 0
        assert (await scene.kubelet.restart_container(pod, "main")).state is ContainerState.RUNNING


async def test_an_id_that_is_withdrawn_while_its_pod_goes_is_not_given_to_the_next_one(
    short_dir: Path,
) -> None:
    """The kubelet gives it because the list without it has not arrived yet."""
    settings = settings_below(short_dir, coalesce_s=0.1)
    async with a_scene(short_dir, STICK, rules=FTDI_RULE + "replicas = 2\n", settings=settings) as scene:
        await scene.until_allocatable(2)
        one, two = await scene.admit(name="one"), await scene.admit(name="two")
        scene.kubelet.delete(two)
        scene.edit_rules(FTDI_RULE)
        scene.daemon._follow_hints()
        three = await scene.admit(name="three")
        assert one.container("main").state is ContainerState.RUNNING
        assert three.phase is Phase.FAILED
        id_ = ({"ftdi_A.0", "ftdi_A.1"} - scene.kubelet.allocated(FTDI)).pop()
        assert f"device '{id_}' of {FTDI} is not available: {REASON}" in three.message


async def test_what_containers_have_stays_theirs_while_their_kubelet_cannot_reach_the_api_server(
    short_dir: Path,
) -> None:
    """A kubelet that has started without the API server knows no pod; the containers go on running."""
    stick, other = STICK, a_usb_serial(1, port="3", serial="B")
    async with a_scene(short_dir, stick, other, rules=FTDI_RULE + 'unplug_grace = "0s"\n') as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name="a"), await scene.admit(name="b")]
        scene.unplug(other)
        await scene.until_allocatable(1, capacity=2)
        await until(lambda: all(holding.listed for holding in scene.daemon.memory.held.values()))
        await scene.kubelet.restart(readmit=False)
        await until(lambda: not any(holding.listed for holding in scene.daemon.memory.held.values()))
        await scene.until_allocatable(1, capacity=2)
        await rename(scene)
        await answers(scene, 3)
        assert scene.kubelet.allocatable[SERIAL] == 0
        await scene.kubelet.readmit()
        for pod in pods:
            scene.kubelet.delete(pod)
        await scene.until_allocatable(1, SERIAL)


async def test_what_only_an_init_container_got_is_its_pods_until_that_has_gone(short_dir: Path) -> None:
    """No kubelet lists it, and on a quiet node none writes by itself that the pod has gone."""
    async with a_scene(short_dir, STICK, rules=FTDI_RULE + 'unplug_grace = "0s"\n') as scene:
        await scene.until_allocatable(1)
        init = Container("init", limits={FTDI: 1})
        pod = await scene.kubelet.admit(Pod("flash", [Container("main")], init_containers=[init]))
        assert scene.kubelet.allocated(FTDI) == {"ftdi_A"}
        scene.unplug(STICK)
        await scene.until_allocatable(0, capacity=1)
        await answers(scene, 3)
        assert scene.kubelet.capacity[FTDI] == 1
        scene.plug(STICK)
        await rename(scene)
        await answers(scene, 3)
        assert scene.kubelet.allocatable[SERIAL] == 0
        scene.kubelet.delete(pod)
        await scene.until_allocatable(1, SERIAL)


@pytest.mark.parametrize("what", ["a descriptor is missing", "it has another format"])
async def test_a_checkpoint_that_cannot_be_read_for_a_while_frees_nothing(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async with a_scene(short_dir, STICK) as scene:
        await scene.until_allocatable(1)
        init = Container("init", limits={FTDI: 1})
        pod = await scene.kubelet.admit(Pod("flash", [Container("main")], init_containers=[init]))
        await rename(scene)
        path = scene.kubelet.directory / checkpoint.NAME
        error = OSError(errno.EMFILE, "Too many open files") if "descriptor" in what else ValueError()

        def fail(_: str) -> BinaryIO:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "_opened", fail)
            await answers(scene, 3)
            why = "Too many open files" if "descriptor" in what else "it has another format"
            failing = scene.daemon.recorder.history.failing[Retried.CHECKPOINT]
            assert failing.why == f"cannot read '{path}': {why}"
        assert scene.kubelet.allocatable[SERIAL] == 0
        await until(lambda: not scene.daemon.recorder.history.failing)
        await answers(scene, 3)
        assert scene.kubelet.allocatable[SERIAL] == 0
        scene.kubelet.delete(pod)
        await scene.until_allocatable(1, SERIAL)


async def answers(scene: Scene, count: int) -> None:
    """Return once the daemon has heard so many more answers of PodResources."""
    heard = 0
    learn = scene.daemon.step

    def step(answer: Answer | None = None) -> None:
        nonlocal heard
        heard += answer is not None
        learn(answer)

    scene.daemon._forgetting._tell = step
    await until(lambda: heard >= count)
