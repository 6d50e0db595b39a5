"""The interface of the simulated kubelet: its timer and its one-line description."""

from pathlib import Path

import pytest

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import (
    Container,
    ContainerState,
    Kubelet,
    ManualClock,
    Phase,
    Pod,
    SimulatorError,
)
from tests.simulator.small_plugin import RESOURCE, SmallPlugin, answer


async def test_with_a_period_the_kubelet_retries_waiting_containers_by_itself(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock, status_period_s=10) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        spec = api.DeviceSpec(host_path=str(short_dir / "x"), container_path="/dev/x", permissions="rw")
        plugin.on_allocate = lambda _ids, _context: answer(devices=[spec])
        pod = await kubelet.admit(Pod("p", [Container("c", limits={RESOURCE: 1})]))
        status = pod.container("c")
        assert status.reason == "CreateContainerError"
        with pytest.raises(SimulatorError, match=r"^container 'c' of pod 'p' has never run; use sync$"):
            await kubelet.restart_container(pod, "c")
        (short_dir / "x").symlink_to("/dev/null")
        clock.advance(10)
        await kubelet.wait_until(lambda: pod.phase is Phase.RUNNING)
        kubelet.finish(pod)
        await kubelet.sync(pod)
        assert status.state is ContainerState.TERMINATED
        await plugin.stop()


async def test_the_description_names_resources_registrations_and_pods_in_one_line(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        await kubelet.admit(Pod("p", [Container("c")]))
        assert kubelet.describe() == (
            f"capacity {{'{RESOURCE}': 1}}, allocatable {{'{RESOURCE}': 1}}, "
            f"last registrations ['{RESOURCE}: accepted'], pods ['p: Running']"
        )
        with pytest.raises(SimulatorError, match=r"^the kubelet is already running$"):
            await kubelet.start()
        await plugin.stop()


async def test_an_error_in_the_timer_is_raised_at_the_end(short_dir: Path) -> None:
    with pytest.raises(KeyError, match="other"):  # noqa: PT012  (raised when the kubelet ends)
        clock = ManualClock()
        async with Kubelet(short_dir, clock=clock, status_period_s=10) as kubelet:
            plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
            pod = await kubelet.admit(Pod("p", [Container("c", limits={RESOURCE: 1})]))
            assert pod.phase is Phase.RUNNING
            pod.containers["c"].become(ContainerState.WAITING)
            pod.spec = Pod("p", [Container("other")])
            clock.advance(10)
            await kubelet.wait_until(lambda: kubelet.node_status.now.capacity == {RESOURCE: 1})
            await plugin.stop()
