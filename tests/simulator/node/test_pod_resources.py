"""The simulated PodResources API: its answers and its rate limit."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from genericdp.kubelet.api import deviceplugin
from genericdp.kubelet.api import podresources as api
from genericdp.simulator import Container, Kubelet, ManualClock, Pod, Point
from tests.simulator.small_plugin import RESOURCE, SmallPlugin, device


@asynccontextmanager
async def lister(kubelet: Kubelet) -> AsyncIterator[api.PodResourcesListerStub]:
    async with grpc.aio.insecure_channel(f"unix:{kubelet.pod_resources_socket}") as channel:
        yield api.PodResourcesListerStub(channel)


def shape(devices: object) -> list[tuple[str, list[str], list[int]]]:
    return [
        (one.resource_name, list(one.device_ids), [node.ID for node in one.topology.nodes])
        for one in devices  # type: ignore[attr-defined]
    ]


async def test_a_list_has_one_entry_for_each_device_and_numa_node(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", device("b", numa=(0, 1))).join(kubelet)
        await kubelet.admit(
            Pod(
                "p",
                [Container("c", limits={RESOURCE: 2}), Container("bare")],
                init_containers=[
                    Container("init", limits={RESOURCE: 1}),
                    Container("sidecar", restartable=True),
                ],
                namespace="ns",
            )
        )
        async with lister(kubelet) as stub:
            (pod,) = (await stub.List(api.ListPodResourcesRequest())).pod_resources
            assert (pod.name, pod.namespace) == ("p", "ns")
            assert [container.name for container in pod.containers] == ["sidecar", "c", "bare"]
            assert sorted(shape(pod.containers[1].devices)) == [
                (RESOURCE, ["a"], []),
                (RESOURCE, ["b"], [0]),
                (RESOURCE, ["b"], [1]),
            ]
            got = await stub.Get(api.GetPodResourcesRequest(pod_name="p", pod_namespace="ns"))
            assert got.pod_resources == pod
        await plugin.stop()


async def test_list_frees_the_devices_of_dead_pods(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        pod = await kubelet.admit(Pod("p", [Container("c", limits={RESOURCE: 1})]))
        kubelet.finish(pod)
        assert kubelet.allocated(RESOURCE) == {"a"}
        async with lister(kubelet) as stub:
            assert list((await stub.List(api.ListPodResourcesRequest())).pod_resources) == []
        assert kubelet.allocated(RESOURCE) == set()
        await plugin.stop()


async def test_get_allocatable_returns_healthy_devices_except_those_with_an_empty_topology(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin(
            "a",
            device("b", numa=(1,)),
            device("vanishes", numa=()),
            device("sick", deviceplugin.UNHEALTHY),
        ).join(kubelet)
        async with lister(kubelet) as stub:
            answer = await stub.GetAllocatableResources(api.AllocatableResourcesRequest())
            assert shape(answer.devices) == [(RESOURCE, ["a"], []), (RESOURCE, ["b"], [1])]
        await plugin.stop()


async def test_a_numa_node_of_minus_one_is_allocatable_as_listed_and_held_without_topology(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin(device("a", numa=(-1,))).join(kubelet)
        await kubelet.admit(Pod("p", [Container("c", limits={RESOURCE: 1})]))
        async with lister(kubelet) as stub:
            answer = await stub.GetAllocatableResources(api.AllocatableResourcesRequest())
            assert shape(answer.devices) == [(RESOURCE, ["a"], [-1])]
            (pod,) = (await stub.List(api.ListPodResourcesRequest())).pod_resources
            assert shape(pod.containers[0].devices) == [(RESOURCE, ["a"], [])]
        await plugin.stop()


async def test_list_does_not_have_a_pod_whose_admission_waits_for_allocate(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        async with lister(kubelet) as stub:
            with kubelet.faults.hold(Point.ALLOCATE) as gate:
                admitting = asyncio.create_task(
                    kubelet.admit(Pod("p", [Container("c", limits={RESOURCE: 1})]))
                )
                await gate.reached()
                assert list((await stub.List(api.ListPodResourcesRequest())).pod_resources) == []
                assert kubelet.allocated(RESOURCE) == {"a"}, "List frees nothing that is being allocated"
                gate.open()
                await admitting
            (pod,) = (await stub.List(api.ListPodResourcesRequest())).pod_resources
            assert shape(pod.containers[0].devices) == [(RESOURCE, ["a"], [])]
        await plugin.stop()


async def test_an_unknown_pod_is_not_found(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet, lister(kubelet) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Get(api.GetPodResourcesRequest(pod_name="x", pod_namespace="y"))
        assert caught.value.code() is grpc.StatusCode.UNKNOWN
        assert caught.value.details() == "pod x in namespace y not found"


async def test_ten_calls_pass_at_once_and_then_a_hundred_per_second(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet, lister(kubelet) as stub:
        for _ in range(10):
            await stub.List(api.ListPodResourcesRequest())
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetAllocatableResources(api.AllocatableResourcesRequest())
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert caught.value.details() == "rejected by rate limit"
        clock.advance(0.011)
        await stub.List(api.ListPodResourcesRequest())
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.List(api.ListPodResourcesRequest())


async def test_the_socket_outlives_the_kubelet_too(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        await kubelet.stop()
        assert stat.S_ISSOCK(os.stat(kubelet.pod_resources_socket).st_mode)
        await kubelet.start()
        async with lister(kubelet) as stub:
            await stub.List(api.ListPodResourcesRequest())
