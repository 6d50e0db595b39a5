"""What a pod's worker does by itself: it starts again what could not be started."""

import asyncio
from pathlib import Path
from typing import Any

import grpc

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import Container, ContainerState, Kubelet, ManualClock, Phase, Pod, PodStatus
from tests.scenes.waiting import idle
from tests.simulator.small_plugin import RESOURCE, SmallPlugin, answer

ONE = Pod("p", [Container("c", limits={RESOURCE: 1})])


def refuse(_ids: list[str], context: Any) -> Any:
    return context.abort(grpc.StatusCode.UNAVAILABLE, "not now")


async def calls(kubelet: Kubelet, plugin: SmallPlugin, count: int) -> None:
    """Return once PreStartContainer was called so often and everything that follows from it is done."""
    await kubelet.wait_until(lambda: len(plugin.called("PreStartContainer")) == count)
    await settled(kubelet)


async def settled(kubelet: Kubelet) -> None:
    """Return once nothing more happens by itself while the clock stands still."""
    await idle()
    await kubelet.wait_until(lambda: not kubelet.syncing)


async def test_a_failed_start_is_tried_again_after_half_a_second_and_then_after_10_to_15_s(
    short_dir: Path,
) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        plugin.on_pre_start = refuse
        pod = await kubelet.admit(ONE)
        assert len(plugin.called("PreStartContainer")) == 1
        clock.advance(0.4)
        await settled(kubelet)
        assert len(plugin.called("PreStartContainer")) == 1
        clock.advance(0.1)
        await calls(kubelet, plugin, 2)
        for count in (3, 4):
            clock.advance(9.9)
            await settled(kubelet)
            assert len(plugin.called("PreStartContainer")) == count - 1
            clock.advance(5.1)
            await calls(kubelet, plugin, count)
        plugin.on_pre_start = lambda _ids, _context: None
        clock.advance(15)
        await kubelet.wait_until(lambda: pod.phase is Phase.RUNNING)
        assert pod.container("c").restarts == 0
        clock.advance(100)
        await settled(kubelet)
        assert len(plugin.called("PreStartContainer")) == 5
        await plugin.stop()


async def test_after_a_timeout_the_start_is_tried_again_at_once(short_dir: Path) -> None:
    """The half second of the pod's first event passed while the kubelet waited."""
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        asked, never = asyncio.Event(), asyncio.Event()

        async def hang(_ids: list[str], _context: Any) -> None:
            asked.set()
            await never.wait()

        plugin.on_pre_start = hang
        admitting = asyncio.create_task(kubelet.admit(ONE))
        await asked.wait()
        plugin.on_pre_start = lambda _ids, _context: None
        clock.advance(30)
        pod = await admitting
        await kubelet.wait_until(lambda: pod.phase is Phase.RUNNING)
        assert plugin.called("PreStartContainer") == [["a"], ["a"]]
        await plugin.stop()


async def test_a_container_that_the_runtime_cannot_create_is_tried_again_too(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        spec = api.DeviceSpec(host_path=str(short_dir / "x"), container_path="/dev/x", permissions="rw")
        plugin.on_allocate = lambda _ids, _context: answer(devices=[spec])
        pod = await kubelet.admit(ONE)
        assert pod.container("c").reason == "CreateContainerError"
        (short_dir / "x").symlink_to("/dev/null")
        clock.advance(0.5)
        await kubelet.wait_until(lambda: pod.phase is Phase.RUNNING)
        (short_dir / "x").unlink()
        status = await kubelet.restart_container(pod, "c")
        assert status.reason == "CreateContainerError"
        (short_dir / "x").symlink_to("/dev/null")
        clock.advance(9.9)
        await settled(kubelet)
        assert status.state is ContainerState.WAITING
        clock.advance(5.1)
        await kubelet.wait_until(lambda: status.state is ContainerState.RUNNING)
        assert status.restarts == 1
        await plugin.stop()


async def test_nothing_is_tried_again_of_a_deleted_pod_or_by_a_kubelet_that_has_stopped(
    short_dir: Path,
) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a", "b", pre_start_required=True).join(kubelet)
        plugin.on_pre_start = refuse
        deleted: PodStatus = await kubelet.admit(ONE)
        kubelet.delete(deleted)
        clock.advance(100)
        await settled(kubelet)
        await kubelet.admit(ONE)
        await kubelet.stop()
        clock.advance(100)
        await idle()
        assert len(plugin.called("PreStartContainer")) == 2
        assert deleted.container("c").state is ContainerState.WAITING
        await plugin.stop()


async def test_an_error_of_what_a_worker_does_by_itself_is_raised_at_the_end(short_dir: Path) -> None:
    caught: list[BaseException] = []
    clock = ManualClock()
    kubelet = Kubelet(short_dir, clock=clock)
    try:
        async with kubelet:
            plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
            plugin.on_pre_start = refuse
            pod = await kubelet.admit(ONE)
            pod.spec = Pod("p", [Container("other")])
            clock.advance(0.5)
            await settled(kubelet)
            await plugin.stop()
    except KeyError as error:
        caught.append(error)
    assert [str(error) for error in caught] == ["'other'"]


async def test_a_container_that_waited_when_its_pod_was_rejected_after_a_restart_is_unknown(
    short_dir: Path,
) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a", "b", pre_start_required=True).join(kubelet)
        plugin.on_pre_start = refuse
        waiting = await kubelet.admit(ONE)
        in_init = await kubelet.admit(
            Pod("i", [Container("c")], init_containers=[Container("i", limits={RESOURCE: 1})])
        )
        assert waiting.container("c").reason == "CreateContainerConfigError"
        await kubelet.restart()
        unknown = (
            ContainerState.TERMINATED,
            "ContainerStatusUnknown",
            "The container could not be located when the pod was terminated",
        )
        for pod, name in ((waiting, "c"), (in_init, "i")):
            status = pod.container(name)
            assert pod.phase is Phase.FAILED
            assert (status.state, status.reason, status.message) == unknown
        # It was never initialized, so nobody misses its container.
        status = in_init.container("c")
        assert (status.state, status.reason) == (ContainerState.WAITING, "PodInitializing")
        await plugin.stop()


async def test_a_pod_that_is_rejected_at_first_has_no_container_to_miss(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin(api.Device(ID="a", health=api.UNHEALTHY)).join(kubelet)
        pod = await kubelet.admit(ONE)
        assert pod.phase is Phase.FAILED
        assert (pod.container("c").state, pod.container("c").reason) == (ContainerState.WAITING, "")
        await plugin.stop()
