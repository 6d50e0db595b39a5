"""Containers that end: what their runtime tells, and when their kubelet starts them again."""

import asyncio
import json
from pathlib import Path

import grpc.aio
import pytest

from genericdp.cri import api
from genericdp.kubelet.api import deviceplugin
from genericdp.simulator import (
    CONTAINERD,
    CRIO,
    Container,
    ContainerState,
    Kubelet,
    ManualClock,
    Phase,
    Pod,
    PodStatus,
    Point,
    RestartPolicy,
    Runtime,
)
from genericdp.simulator.node.container_runtime import id_of
from tests.simulator.small_plugin import RESOURCE, SmallPlugin, answer


async def stop(kubelet: Kubelet, pod: PodStatus, timeout_s: int = 30) -> None:
    """Stop the container `c` of a pod as whoever may use the runtime's socket can."""
    async with grpc.aio.insecure_channel(f"unix:{kubelet.runtime_socket}") as channel:
        request = api.StopContainerRequest(container_id=id_of(pod, pod.container("c")), timeout=timeout_s)
        await api.STOP_CONTAINER.unary(channel)(request)


@pytest.mark.parametrize(
    ("runtime", "keys"),
    [
        (
            CONTAINERD,
            [
                "sandboxID",
                "pid",
                "removing",
                "snapshotKey",
                "snapshotter",
                "runtimeType",
                "runtimeOptions",
                "config",
                "runtimeSpec",
            ],
        ),
        (CRIO, ["sandboxID", "pid", "runtimeSpec", "privileged"]),
    ],
    ids=["containerd", "cri-o"],
)
async def test_the_verbose_status_has_the_oci_spec(
    short_dir: Path, runtime: Runtime, keys: list[str]
) -> None:
    async with Kubelet(short_dir, runtime=runtime) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        spec = deviceplugin.DeviceSpec(host_path="/dev/null", container_path="/dev/thing", permissions="rw")
        plugin.on_allocate = lambda _ids, _context: answer(devices=[spec])
        pod = await kubelet.admit(Pod("p", [Container("c", limits={RESOURCE: 1})]))
        async with grpc.aio.insecure_channel(f"unix:{kubelet.runtime_socket}") as channel:
            status_of = api.CONTAINER_STATUS.unary(channel)
            (listed,) = (await api.LIST_CONTAINERS.unary(channel)(api.ListContainersRequest())).containers
            assert listed.labels["io.kubernetes.pod.uid"] == pod.uid
            asked = api.ContainerStatusRequest(container_id=listed.id, verbose=True)
            told = json.loads((await status_of(asked)).info["info"])
            assert list(told) == keys
            (device,) = told["runtimeSpec"]["linux"]["devices"]
            assert (device["path"], device["type"], device["major"], device["minor"]) == (
                "/dev/thing",
                "c",
                1,
                3,
            )
            quiet = api.ContainerStatusRequest(container_id=listed.id)
            assert not (await status_of(quiet)).info
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await status_of(api.ContainerStatusRequest(container_id="none"))
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        await plugin.stop()


async def test_a_container_that_ended_is_started_again_at_once_and_then_with_back_off(
    short_dir: Path,
) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        pod = await kubelet.admit(Pod("p", [Container("c")]))
        main = pod.container("c")
        await stop(kubelet, pod)
        assert (main.state, main.reason, main.exit_code) == (ContainerState.TERMINATED, "Error", 143)
        clock.advance(1.0)
        await kubelet.wait_until(lambda: main.state is ContainerState.RUNNING)
        for pause_s, text in ((10.0, "10s"), (20.0, "20s"), (40.0, "40s")):
            await stop(kubelet, pod)
            await kubelet.sync(pod)
            assert (main.reason, main.message) == (
                "CrashLoopBackOff",
                f"back-off {text} restarting failed container=c pod=p_default({pod.uid})",
            )
            clock.advance(pause_s)
            await kubelet.sync(pod)
            assert main.state is ContainerState.RUNNING
        clock.advance(601.0)
        await stop(kubelet, pod)
        await kubelet.sync(pod)
        assert (main.state, main.restarts) == (ContainerState.RUNNING, 5)


@pytest.mark.parametrize(
    ("policy", "phase"),
    [
        (RestartPolicy.ALWAYS, Phase.RUNNING),
        (RestartPolicy.ON_FAILURE, Phase.RUNNING),
        (RestartPolicy.NEVER, Phase.FAILED),
    ],
)
async def test_the_policy_of_the_pod_says_whether_it_is_started_again(
    short_dir: Path, policy: RestartPolicy, phase: Phase
) -> None:
    async with Kubelet(short_dir) as kubelet:
        pod = await kubelet.admit(Pod("p", [Container("c")], restart_policy=policy))
        await stop(kubelet, pod)
        await kubelet.sync(pod)
        assert pod.phase is phase
        assert pod.container("c").restarts == (phase is Phase.RUNNING)


async def test_what_ended_while_the_kubelet_was_down_is_started_when_it_is_back(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        pod = await kubelet.admit(Pod("p", [Container("c")]))
        await kubelet.stop()
        await stop(kubelet, pod)
        await kubelet.start()
        assert pod.container("c").state is ContainerState.RUNNING


async def test_a_pod_is_listed_once_its_sandbox_is_made_and_no_longer_ready_when_it_has_ended(
    short_dir: Path,
) -> None:
    async with (
        Kubelet(short_dir) as kubelet,
        grpc.aio.insecure_channel(f"unix:{kubelet.runtime_socket}") as channel,
    ):

        async def listed(state: api.PodSandboxState | None = None) -> list[tuple[str, str, str]]:
            wanted = api.PodSandboxFilter()
            if state is not None:
                wanted = api.PodSandboxFilter(state=api.PodSandboxStateValue(state=state))
            request = api.ListPodSandboxRequest(filter=wanted)
            items = (await api.LIST_POD_SANDBOX.unary(channel)(request)).items
            found = [each.metadata or api.PodSandboxMetadata() for each in items]
            return [(each.namespace, each.name, each.uid) for each in found]

        with kubelet.faults.hold(Point.SANDBOX) as gate:
            admitting = asyncio.ensure_future(kubelet.admit(Pod("p", [Container("c")])))
            await gate.reached()
            assert await listed() == []
            gate.open()
            pod = await admitting
        assert (
            await listed() == await listed(api.PodSandboxState.SANDBOX_READY) == [("default", "p", pod.uid)]
        )
        kubelet.finish(pod)
        assert await listed(api.PodSandboxState.SANDBOX_READY) == []
        assert await listed(api.PodSandboxState.SANDBOX_NOTREADY) == [("default", "p", pod.uid)]
