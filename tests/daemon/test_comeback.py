"""Running containers follow their device: the whole daemon, with a kubelet and a container runtime."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from genericdp.core.comeback.container import Inside
from genericdp.core.comeback.plugs import ASK_AGAIN_S, ASK_LATER_S, ASK_OFTEN_S, LONGEST_START_S
from genericdp.core.device import UdevDevice
from genericdp.cri import comeback
from genericdp.cri.runtime import ContainerRuntime
from genericdp.simulator import Container, ContainerState, Phase, Pod, PodStatus, RestartPolicy, Runtime
from genericdp.simulator.node.container_runtime import id_of
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import Scene, a_scene, both_runtimes, minors_in
from tests.scenes.waiting import until

RESTART = FTDI_RULE + 'on_replug = "restart"\ndebounce = "20ms"\n'
STOP = FTDI_RULE + 'on_unplug = "stop"\ndebounce = "20ms"\n'
BOTH = RESTART + 'on_unplug = "stop"\n'

STICK = a_usb_serial(0, serial="A")
RENAMED = a_usb_serial(3, serial="A")
OTHER = a_usb_serial(1, serial="B", port="3")

pytestmark = pytest.mark.usefixtures("kubelet_knows_its_pods")


async def until_judged(scene: Scene, *ids: str) -> None:
    """Until the containers of these devices were judged."""
    plugs = scene.daemon._comeback

    def are_judged() -> bool:
        known = plugs._plugs.by_device
        return all((FTDI, id_) in known and known[FTDI, id_].judged for id_ in ids)

    await until(are_judged)


def stops(scene: Scene) -> list[tuple[str, str, int]]:
    """(pod, container, timeout) of every stop, in order."""
    return [(call.pod.name, call.container, call.timeout_s) for call in scene.kubelet.container_runtime.stops]


async def until_running(scene: Scene, pod: PodStatus, restarts: int, name: str = "main") -> None:
    status = pod.container(name)
    await scene.kubelet.wait_until(
        lambda: status.restarts == restarts and status.state is ContainerState.RUNNING
    )


async def replug(scene: Scene, before: Any = STICK, after: Any = RENAMED) -> None:
    """Pull it out; it comes back under another name."""
    scene.unplug(before)
    await scene.until_allocatable(0, capacity=1)
    scene.plug(after)
    await scene.until_allocatable(1)


@both_runtimes
async def test_a_container_has_its_device_again_after_it_came_back_under_another_name(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_scene(short_dir, STICK, rules=RESTART, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await replug(scene)
        await until_running(scene, pod, restarts=1)
        assert minors_in(pod.container("main")) == [3]
        assert stops(scene) == [("app", "main", 30)]


@both_runtimes
async def test_a_container_of_an_unplugged_device_is_stopped_and_refused_until_it_is_back(
    short_dir: Path, runtime: Runtime
) -> None:
    async with a_scene(short_dir, STICK, rules=STOP, runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        main = pod.container("main")
        scene.unplug(STICK)
        await scene.kubelet.wait_until(lambda: main.reason == "CreateContainerError")
        assert "too many l" in main.message
        assert stops(scene) == [("app", "main", 30)]
        scene.plug(RENAMED)
        await scene.until_allocatable(1)
        await scene.kubelet.sync(pod)
        assert minors_in(main) == [3]
        assert stops(scene) == [("app", "main", 30)]


async def test_without_the_keys_nothing_is_stopped_and_the_runtime_is_not_even_asked(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await replug(scene)
        assert scene.daemon._comeback._plugs.by_device == {}
        assert minors_in(pod.container("main")) == [0]
        assert stops(scene) == []


async def test_the_same_numbers_are_left_alone(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, rules=RESTART) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        await replug(scene, STICK, STICK)
        await until_judged(scene, "ftdi_A")
        assert stops(scene) == []


async def test_containers_whose_shims_hang_delay_no_other_one(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genericdp.cri.runtime._TIMEOUT_S", 0.2)
    async with a_scene(short_dir, STICK, OTHER, rules=RESTART + "replicas = 2\n") as scene:
        await scene.until_allocatable(4)
        pods = [await scene.admit(name=name) for name in ("one", "two", "three", "four")]
        *hanging, other = pods
        for pod in hanging:
            scene.kubelet.container_runtime.hanging.add(id_of(pod, pod.container("main")))
        both = a_usb_serial(3, serial="A"), a_usb_serial(4, serial="B", port="3")
        scene.unplug(STICK, OTHER)
        await scene.until_allocatable(0, capacity=4)
        scene.plug(*both)
        await until_running(scene, other, restarts=1)
        assert stops(scene) == [("four", "main", 30)]


@pytest.mark.usefixtures("evidence_is_asked_for_soon")
async def test_a_container_that_holds_another_device_is_left_alone(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, OTHER, rules=BOTH) as scene:
        await scene.until_allocatable(2)
        pods = [await scene.admit(name="a"), await scene.admit(name="b")]
        holders = {minors_in(pod.container("main"))[0]: pod for pod in pods}
        scene.unplug(STICK)
        await scene.until_allocatable(1, capacity=2)
        await until_judged(scene, "ftdi_A", "ftdi_B")
        scene.plug(RENAMED)
        await scene.until_allocatable(2)
        await until_judged(scene, "ftdi_A", "ftdi_B")
        assert stops(scene) == [(holders[0].name, "main", 30)]


async def test_of_several_containers_of_a_pod_only_the_holder_is_stopped(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, rules=RESTART) as scene:
        await scene.until_allocatable(1)
        beside = Container("beside")
        pod = await scene.kubelet.admit(Pod("app", [Container("main", limits={FTDI: 1}), beside]))
        await replug(scene)
        await until_running(scene, pod, restarts=1)
        assert stops(scene) == [("app", "main", 30)]
        assert pod.container("beside").restarts == 0


async def test_a_container_that_holds_two_devices_is_stopped_once_for_both(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, OTHER, rules=STOP) as scene:
        await scene.until_allocatable(2)
        main = Container("main", limits={FTDI: 2}, ends_after_s=1.0)
        pod = await scene.kubelet.admit(Pod("app", [main]))
        scene.unplug(STICK, OTHER)
        await until_judged(scene, "ftdi_A", "ftdi_B")
        await scene.kubelet.wait_until(lambda: pod.container("main").reason == "CreateContainerError")
        assert stops(scene) == [("app", "main", 30)]
        assert scene.daemon.recorder.history.stops.by_kind == {(FTDI, "unplug"): 1}


async def test_a_stop_that_fails_is_tried_again_for_each_device_that_it_was_for(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them came back meanwhile, so the stop is no longer wanted for that one."""
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)
    monkeypatch.setattr(comeback, "STOP_AGAIN_S", 0.05)
    async with a_scene(short_dir, STICK, OTHER, rules=STOP) as scene:
        await scene.until_allocatable(2)
        main = Container("main", limits={FTDI: 2}, ends_after_s=3600.0)
        await scene.kubelet.admit(Pod("app", [main], grace_period_s=3000))
        scene.unplug(STICK, OTHER)
        await until_judged(scene, "ftdi_A", "ftdi_B")
        await until(lambda: len(stops(scene)) == 1)
        scene.plug(STICK)
        await scene.until_allocatable(1)
        await scene.kubelet.container_runtime.stop()
        await scene.kubelet.container_runtime.start()
        await until(lambda: len(stops(scene)) == 2)


async def test_a_swap_while_the_daemon_was_away_is_seen_when_it_starts(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, rules=RESTART) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await scene.service.stop()
        scene.unplug(STICK)
        scene.plug(RENAMED)
        await scene.service.start()
        await until_running(scene, pod, restarts=1)
        assert minors_in(pod.container("main")) == [3]


@pytest.mark.usefixtures("evidence_is_asked_for_soon")
async def test_a_restarted_daemon_leaves_alone_what_is_right(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, rules=BOTH) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        await scene.service.stop()
        await scene.service.start()
        await scene.until_allocatable(1)
        await until_judged(scene, "ftdi_A")
        assert stops(scene) == []


async def test_a_device_that_flaps_stops_nothing(short_dir: Path) -> None:
    rules = BOTH.replace("20ms", "1h")
    async with a_scene(short_dir, STICK, rules=rules) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        for _ in range(3):
            await replug(scene)
            await replug(scene, RENAMED, STICK)
        assert stops(scene) == []


async def test_the_grace_period_is_that_of_the_pod_and_delays_no_other_stop(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, OTHER, rules=STOP) as scene:
        await scene.until_allocatable(2)
        for name in ("a", "b"):
            main = Container("main", limits={FTDI: 1}, ends_after_s=3600.0)
            await scene.kubelet.admit(Pod(name, [main], grace_period_s=3000))
        scene.unplug(STICK, OTHER)
        await until(lambda: len(stops(scene)) == 2)
        assert sorted(stops(scene)) == [("a", "main", 3000), ("b", "main", 3000)]


async def test_a_pod_that_is_never_restarted_ends(short_dir: Path) -> None:
    async with a_scene(short_dir, STICK, rules=STOP) as scene:
        await scene.until_allocatable(1)
        main = Container("main", limits={FTDI: 1})
        pod = await scene.kubelet.admit(Pod("app", [main], restart_policy=RestartPolicy.NEVER))
        scene.unplug(STICK)
        await scene.kubelet.wait_until(lambda: pod.phase is Phase.FAILED)
        assert stops(scene) == [("app", "main", 30)]


@pytest.mark.usefixtures("pods_leave_at_once")
async def test_a_pod_that_ended_is_not_touched(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for again until it is certain that no pod holds the device any more."""
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)
    async with a_scene(short_dir, STICK, rules=STOP) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.kubelet.finish(pod)
        scene.unplug(STICK)
        await until_judged(scene, "ftdi_A")
        assert stops(scene) == []


async def test_without_the_runtime_nothing_is_stopped_until_it_is_there(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)
    monkeypatch.setattr(comeback, "STOP_AGAIN_S", 0.05)
    async with a_scene(short_dir, STICK, rules=RESTART) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await scene.kubelet.container_runtime.stop()
        await replug(scene)
        await until(lambda: "runtime" in map(str, scene.daemon.recorder.history.failing))
        (failure,) = scene.daemon.recorder.history.failing.values()
        assert failure.why.startswith(
            f"the container runtime does not answer on '{scene.settings.runtime_socket}': "
        )
        await scene.kubelet.container_runtime.start()
        await until_running(scene, pod, restarts=1)
        await until(lambda: not scene.daemon.recorder.history.failing)
        assert minors_in(pod.container("main")) == [3]


async def test_without_a_kubelet_nothing_is_stopped_until_it_is_back(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)
    async with a_scene(short_dir, STICK, rules=RESTART) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        await scene.kubelet.stop()
        scene.unplug(STICK)
        scene.plug(RENAMED)
        await until(
            lambda: any(plug.not_before > 0 for plug in scene.daemon._comeback._plugs.by_device.values())
        )
        assert stops(scene) == []
        await scene.kubelet.start()
        await until_running(scene, pod, restarts=1)
        assert len(stops(scene)) == 1


async def test_a_runtime_that_may_not_be_the_kubelets_settles_nothing(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet does not answer while one is chosen among several, and the first has no such container."""

    async def silent(_: str) -> None:
        return None

    async def none(_: ContainerRuntime) -> tuple[()]:
        return ()

    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)
    passed_s = 0.0
    async with a_scene(short_dir, STICK, rules=STOP, now=lambda: time.monotonic() + passed_s) as scene:
        await scene.until_allocatable(1)
        await scene.admit()
        plugs = scene.daemon._comeback
        with monkeypatch.context() as patch:
            patch.setattr("genericdp.cri.choice.podresources", SimpleNamespace(listed=silent))
            patch.setattr(ContainerRuntime, "containers", none)
            scene.unplug(STICK)
            await scene.until_allocatable(0, capacity=1)
            passed_s = LONGEST_START_S
            began = scene.daemon._now()
            plugs.look_again()
            await until(lambda: plugs._plugs.by_device[FTDI, "ftdi_A"].not_before > began + 0.1)
            assert not plugs._plugs.by_device[FTDI, "ftdi_A"].judged
        await until(lambda: len(stops(scene)) == 1)


@pytest.mark.parametrize(
    ("rules", "after", "minor"), [(STOP, None, None), (RESTART, RENAMED, 3)], ids=["unplug", "replug"]
)
async def test_a_kubelet_that_knows_no_pods_does_not_settle_that_nobody_holds_the_device(
    short_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    rules: str,
    after: UdevDevice | None,
    minor: int | None,
) -> None:
    """It has restarted and cannot reach the API server. Containers run on meanwhile."""
    monkeypatch.setattr(comeback, "ASK_AGAIN_S", 0.05)
    passed_s = 0.0
    async with a_scene(short_dir, STICK, rules=rules, now=lambda: time.monotonic() + passed_s) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        main = pod.container("main")
        await until_judged(scene, *(["ftdi_A"] if after else []))
        monkeypatch.setattr(comeback, "ASK_AGAIN_S", ASK_AGAIN_S)
        await scene.kubelet.restart(readmit=False)
        await scene.until_allocatable(1)
        scene.unplug(STICK)
        await scene.until_allocatable(0, capacity=1)
        if after is not None:
            scene.plug(after)
            await scene.until_allocatable(1)
        plugs = scene.daemon._comeback
        for _ in range(3):
            # It is asked at most once a minute after five minutes.
            passed_s += ASK_OFTEN_S
            plugs.look_again()
            await until(lambda: plugs._plugs.by_device[FTDI, "ftdi_A"].not_before > scene.daemon._now())
        assert not plugs._plugs.by_device[FTDI, "ftdi_A"].judged
        assert stops(scene) == []
        await scene.kubelet.readmit()
        assert main.restarts == 0
        passed_s += ASK_AGAIN_S + ASK_LATER_S
        plugs.look_again()
        await until(lambda: len(stops(scene)) == 1)
        if minor is not None:
            await until_running(scene, pod, restarts=1)
            assert minors_in(main) == [minor]


async def test_a_stop_is_among_the_events_and_is_counted(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_scene(short_dir, STICK, rules=RESTART) as scene:
        await scene.until_allocatable(1)
        events: list[Any] = []
        following = scene.daemon.recorder.events
        monkeypatch.setattr(following, "tell", events.append)
        pod = await scene.admit()
        await replug(scene)
        await until_running(scene, pod, restarts=1)
        assert [event for event in events if event["event"] == "stop"] == [
            {
                "event": "stop",
                "resource": FTDI,
                "device": "ftdi_A",
                "namespace": "default",
                "pod": "app",
                "container": "main",
                "cause": "replug",
                "error": "",
            }
        ]
        assert scene.daemon.recorder.history.stops.by_kind == {(FTDI, "replug"): 1}


async def test_a_container_is_asked_for_once_for_all_its_devices(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    inside = ContainerRuntime.inside

    async def counted(self: ContainerRuntime, container: str) -> Inside | None:
        asked.append(container)
        return await inside(self, container)

    monkeypatch.setattr(ContainerRuntime, "inside", counted)
    rules = RESTART.replace("20ms", "200ms")
    async with a_scene(short_dir, STICK, OTHER, rules=rules) as scene:
        await scene.until_allocatable(2)
        await scene.kubelet.admit(Pod("app", [Container("main", limits={FTDI: 2})]))
        await until_judged(scene, "ftdi_A", "ftdi_B")
        assert len(asked) == 1
