"""Admission: the devices that a pod gets, the calls that its plugin gets, the errors of a rejected pod."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import Container, Kubelet, KubeletPanicError, ManualClock, Phase, Pod, Point, Policy
from tests.simulator.small_plugin import RESOURCE, SmallPlugin, answer, device

OTHER = "vendor.example/other"


def a_pod(count: int = 1, name: str = "p", **limits: int) -> Pod:
    return Pod(name, [Container("c", limits={RESOURCE: count, **limits})])


def rejected(error: str) -> tuple[Phase, str, str]:
    return (
        Phase.FAILED,
        "UnexpectedAdmissionError",
        f"Pod was rejected: Allocate failed due to {error}, which is unexpected",
    )


def outcome(pod: Any) -> tuple[Phase, str, str]:
    return pod.phase, pod.reason, pod.message


async def test_a_pod_gets_as_many_devices_as_its_limits_and_the_plugins_answer(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        pod = await kubelet.admit(a_pod())
        assert outcome(pod) == (Phase.RUNNING, "", "")
        created = pod.container("c").created
        assert created is not None
        assert created.envs == {"IDS": "a"}
        assert plugin.called("Allocate") == [["a"]]
        assert plugin.remaining is None, "Allocate has no deadline"
        await plugin.stop()


async def test_each_container_is_a_separate_call_of_allocate_and_zero_is_none(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b", "c").join(kubelet)
        await kubelet.admit(
            Pod(
                "p",
                [
                    Container("one", limits={RESOURCE: 2}),
                    Container("two", limits={RESOURCE: 1}),
                    Container("none", limits={RESOURCE: 0}),
                ],
            )
        )
        assert [len(ids) for ids in plugin.called("Allocate")] == [2, 1]
        assert kubelet.allocated(RESOURCE) == {"a", "b", "c"}
        await plugin.stop()


async def test_the_order_of_devices_depends_on_the_seed_alone(short_dir: Path) -> None:
    async def orders(seed: int) -> list[str]:
        async with Kubelet(short_dir / str(seed), seed=seed) as kubelet:
            plugin = await SmallPlugin(*"abcdef").join(kubelet)
            await kubelet.admit(a_pod(6))
            await plugin.stop()
            (ids,) = plugin.called("Allocate")
            return list(ids)

    assert await orders(1) != await orders(2)
    assert sorted(await orders(3)) == list("abcdef")


async def test_too_few_devices_reject_the_pod(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", device("b", api.UNHEALTHY)).join(kubelet)
        pod = await kubelet.admit(a_pod(2))
        assert outcome(pod) == rejected(
            f"requested number of devices unavailable for {RESOURCE}. Requested: 2, Available: 1"
        )
        await plugin.stop()


async def test_without_any_healthy_device_the_pod_is_rejected(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin(device("a", api.UNHEALTHY)).join(kubelet)
        pod = await kubelet.admit(a_pod())
        assert outcome(pod) == rejected(
            f"no healthy devices present; cannot allocate unhealthy devices {RESOURCE}"
        )
        await plugin.stop()


async def test_an_unknown_resource_is_admitted_without_devices(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        pod = await kubelet.admit(a_pod())
        assert pod.phase is Phase.RUNNING
        assert kubelet.resource_health(pod, "c") == {}


async def test_a_resource_that_only_the_api_server_knows_rejects_the_pod_by_the_predicate(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        kubelet.tick()
        await plugin.stop()
        await kubelet.stop()
        (kubelet.directory / "kubelet_internal_checkpoint").unlink()
        await kubelet.start()
        pod = await kubelet.admit(a_pod())
        message = (
            f"Pod was rejected: Node didn't have enough resource: {RESOURCE}, "
            "requested: 1, used: 0, capacity: 0"
        )
        assert outcome(pod) == (Phase.FAILED, f"OutOf{RESOURCE}", message)


async def test_an_error_of_allocate_is_terminal_for_the_pod_and_leaks_nothing(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        plugin.on_allocate = lambda _ids, context: context.abort(grpc.StatusCode.NOT_FOUND, "no 'a' here")
        pod = await kubelet.admit(a_pod())
        assert outcome(pod) == rejected("rpc error: code = NotFound desc = no 'a' here")
        assert kubelet.allocated(RESOURCE) == set()
        await plugin.stop()


async def test_an_empty_answer_is_an_error_and_leaks_the_devices(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        plugin.on_allocate = lambda _ids, _context: api.AllocateResponse()
        pod = await kubelet.admit(a_pod())
        assert outcome(pod) == rejected("no containers return in allocation response ")
        assert kubelet.allocated(RESOURCE) == {"a"}
        next_pod = await kubelet.admit(a_pod(name="next"))
        assert outcome(next_pod) == rejected(
            f"requested number of devices unavailable for {RESOURCE}. Requested: 1, Available: 0"
        )
        await plugin.stop()


async def test_only_the_first_container_response_counts(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        one, two = (api.ContainerAllocateResponse(envs={"N": n}) for n in "12")
        plugin.on_allocate = lambda _ids, _context: api.AllocateResponse(container_responses=[one, two])
        pod = await kubelet.admit(a_pod())
        assert pod.container("c").created.envs == {"N": "1"}  # type: ignore[union-attr]
        await plugin.stop()


async def test_a_plugin_that_never_answers_allocate_is_named_by_the_watchdog(short_dir: Path) -> None:
    async with Kubelet(short_dir, watchdog_s=0.05) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        never = asyncio.Event()
        plugin.on_allocate = lambda _ids, _context: never.wait()
        with pytest.raises(TimeoutError) as caught:
            await kubelet.admit(a_pod())
        assert str(caught.value) == (
            f"{RESOURCE} has not answered Allocate in 0.05 s; "
            "a real kubelet waits forever and admits no pod meanwhile"
        )
        await plugin.stop()


async def test_pods_are_admitted_one_after_the_other(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b").join(kubelet)
        with kubelet.faults.hold(Point.ALLOCATE) as gate:
            first = asyncio.create_task(kubelet.admit(a_pod(name="first")))
            await gate.reached()
            second = asyncio.create_task(kubelet.admit(a_pod(name="second")))
            await plugin.send(kubelet, "a", "b", "c")
            assert len(kubelet.allocated(RESOURCE)) == 1
            assert plugin.called("Allocate") == []
            gate.open()
            pods = [await first, await second]
        assert [pod.phase for pod in pods] == [Phase.RUNNING, Phase.RUNNING]
        await plugin.stop()


async def test_the_devices_of_a_dead_pod_are_freed_at_the_next_allocate_and_no_plugin_is_told(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        first = await kubelet.admit(a_pod(name="first"))
        calls = len(plugin.calls)
        kubelet.delete(first)
        assert kubelet.allocated(RESOURCE) == {"a"}
        assert len(plugin.calls) == calls
        second = await kubelet.admit(a_pod(name="second"))
        assert second.phase is Phase.RUNNING
        kubelet.finish(second)
        assert (await kubelet.admit(a_pod(name="third"))).phase is Phase.RUNNING
        await plugin.stop()


async def test_later_containers_reuse_the_devices_of_init_containers_but_not_those_of_sidecars(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin(*"abcdef", get_preferred_allocation_available=True).join(kubelet)
        plugin.on_prefer = lambda wish, _: (
            sorted(wish.must_include_deviceIDs)
            + sorted(set(wish.available_deviceIDs) - set(wish.must_include_deviceIDs))
        )
        pod = Pod(
            "p",
            [Container("app1", limits={RESOURCE: 1}), Container("app2", limits={RESOURCE: 2})],
            init_containers=[
                Container("init1", limits={RESOURCE: 1}),
                Container("init2", limits={RESOURCE: 2}),
                Container("sidecar", limits={RESOURCE: 1}, restartable=True),
            ],
        )
        status = await kubelet.admit(pod)
        assert status.phase is Phase.RUNNING
        init1, init2, sidecar, app1, app2 = (set(ids) for ids in plugin.called("Allocate"))
        assert init1 < init2
        assert sidecar < init2
        assert app1 == init2 - sidecar
        assert not app2 & (sidecar | app1)
        wishes = [request.container_requests[0] for request in plugin.called("GetPreferredAllocation")]
        assert [(set(wish.must_include_deviceIDs), wish.allocation_size) for wish in wishes] == [
            (set(), 1),
            (init1, 2),
            (set(), 2),
        ], "no call where the reused devices suffice"
        assert all(set(wish.must_include_deviceIDs) <= set(wish.available_deviceIDs) for wish in wishes)
        await plugin.stop()


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        (["a", "b"], {"a", "b"}),
        (["a", "nobody", "sick"], None),
        (["a"], None),
        ([], None),
        (None, None),
    ],
    ids=["all", "unknown ignored", "too few", "none", "no response"],
)
async def test_a_preference_is_intersected_with_the_available_devices_and_filled_up(
    short_dir: Path, preferred: list[str] | None, expected: set[str] | None
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin(
            "a", "b", "c", "d", device("sick", api.UNHEALTHY), get_preferred_allocation_available=True
        ).join(kubelet)
        plugin.on_prefer = lambda _wish, _context: preferred
        pod = await kubelet.admit(a_pod(2))
        assert pod.phase is Phase.RUNNING
        (ids,) = plugin.called("Allocate")
        assert len(ids) == 2
        assert set(ids) <= {"a", "b", "c", "d"}
        if preferred and "a" in preferred:
            assert "a" in ids
        assert expected is None or set(ids) == expected
        await plugin.stop()


async def test_of_too_many_preferred_devices_only_some_are_taken(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin(*"abcdef", get_preferred_allocation_available=True).join(kubelet)
        plugin.on_prefer = lambda _wish, _context: ["a", "b", "c"]
        await kubelet.admit(a_pod(2))
        (ids,) = plugin.called("Allocate")
        assert set(ids) < {"a", "b", "c"}
        await plugin.stop()


async def test_the_plugin_is_asked_for_its_preference_even_when_every_device_is_needed(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b", get_preferred_allocation_available=True).join(kubelet)
        await kubelet.admit(a_pod(2))
        (request,) = plugin.called("GetPreferredAllocation")
        (wish,) = request.container_requests
        assert sorted(wish.available_deviceIDs) == ["a", "b"]
        assert wish.allocation_size == 2
        await plugin.stop()


async def test_without_the_option_the_plugin_is_not_asked_for_its_preference(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b").join(kubelet)
        await kubelet.admit(a_pod())
        assert plugin.called("GetPreferredAllocation") == []
        await plugin.stop()


async def test_an_error_of_get_preferred_allocation_rejects_the_pod(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b", get_preferred_allocation_available=True).join(kubelet)
        plugin.on_prefer = lambda _wish, context: context.abort(grpc.StatusCode.INTERNAL, "oops")
        pod = await kubelet.admit(a_pod())
        assert outcome(pod) == rejected(
            "device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Internal desc = oops"
        )
        await plugin.stop()


async def test_a_device_that_leaves_the_list_during_allocate_crashes_the_kubelet(short_dir: Path) -> None:
    with pytest.raises(KubeletPanicError) as caught:  # noqa: PT012  (raised when the kubelet ends)
        async with Kubelet(short_dir) as kubelet:
            plugin = await SmallPlugin("a").join(kubelet)
            with kubelet.faults.hold(Point.ALLOCATED) as gate:
                admitting = asyncio.create_task(kubelet.admit(a_pod()))
                await gate.reached()
                await plugin.send(kubelet)
                gate.open()
                with pytest.raises(KubeletPanicError):
                    await admitting
            assert not kubelet.running
            await plugin.stop()
    assert str(caught.value) == (
        f"nil dereference in allocateContainerResources: 'a' of {RESOURCE} left the list "
        "during Allocate; a plugin must list it as Unhealthy instead"
    )


async def test_a_device_that_becomes_unhealthy_during_allocate_does_no_harm(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        with kubelet.faults.hold(Point.ALLOCATED) as gate:
            admitting = asyncio.create_task(kubelet.admit(a_pod()))
            await gate.reached()
            await plugin.send(kubelet, device("a", api.UNHEALTHY))
            gate.open()
            assert (await admitting).phase is Phase.RUNNING
        await plugin.stop()


async def test_a_plugin_that_dies_during_allocate_rejects_the_pod(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        asked, never = asyncio.Event(), asyncio.Event()

        async def hang(_ids: list[str], _context: Any) -> None:
            asked.set()
            await never.wait()

        plugin.on_allocate = hang
        admitting = asyncio.create_task(kubelet.admit(a_pod()))
        await asked.wait()
        await plugin.stop()
        pod = await admitting
        assert pod.phase is Phase.FAILED
        assert pod.reason == "UnexpectedAdmissionError"
        assert pod.message.startswith("Pod was rejected: Allocate failed due to rpc error: code = ")
        assert kubelet.allocated(RESOURCE) == set()


async def test_of_two_resources_with_the_same_env_either_wins_and_the_pods_own_env_wins_over_both(
    short_dir: Path,
) -> None:
    async def envs(seed: int) -> dict[str, str]:
        async with Kubelet(short_dir / str(seed), seed=seed) as kubelet:
            one = await SmallPlugin("a").join(kubelet, "1.sock")
            two = await SmallPlugin("b", resource=OTHER).join(kubelet, "2.sock")
            one.on_allocate = lambda _ids, _context: answer(envs={"SAME": "one", "ONE": "1", "POD": "x"})
            two.on_allocate = lambda _ids, _context: answer(envs={"SAME": "two", "TWO": "2"})
            container = Container("c", limits={RESOURCE: 1, OTHER: 1}, env={"POD": "wins"})
            pod = await kubelet.admit(Pod("p", [container]))
            await one.stop()
            await two.stop()
            created = pod.container("c").created
            assert created is not None
            return dict(created.envs)

    seen = [await envs(seed) for seed in range(8)]
    assert {env.pop("SAME") for env in seen} == {"one", "two"}
    assert all(env == {"ONE": "1", "TWO": "2", "POD": "wins"} for env in seen)


@pytest.mark.parametrize("policy", [Policy.RESTRICTED, Policy.SINGLE_NUMA_NODE])
async def test_a_strict_topology_policy_rejects_a_pod_that_needs_two_numa_nodes(
    short_dir: Path, policy: Policy
) -> None:
    async with Kubelet(short_dir, policy=policy, numa_nodes=(0, 1)) as kubelet:
        plugin = await SmallPlugin(
            device("a", numa=(0,)),
            device("b", numa=(1,)),
            device("c", numa=(0,)),
            get_preferred_allocation_available=True,
        ).join(kubelet)
        plugin.on_prefer = lambda _wish, _context: ["c"]
        assert (await kubelet.admit(a_pod(name="first"))).phase is Phase.RUNNING
        assert kubelet.allocated(RESOURCE) == {"c"}
        assert outcome(await kubelet.admit(a_pod(2, name="second"))) == (
            Phase.FAILED,
            "TopologyAffinityError",
            "Pod was rejected: Resources cannot be allocated with Topology locality",
        )
        await plugin.stop()


async def test_under_a_topology_policy_a_container_gets_devices_of_one_numa_node(short_dir: Path) -> None:
    for seed in range(5):
        async with Kubelet(
            short_dir / str(seed), policy=Policy.BEST_EFFORT, numa_nodes=(0, 1), seed=seed
        ) as kubelet:
            plugin = await SmallPlugin(
                device("a", numa=(1,)), device("b", numa=(0,)), device("c", numa=(1,))
            ).join(kubelet)
            await kubelet.admit(a_pod(2))
            (ids,) = plugin.called("Allocate")
            assert sorted(ids) == ["a", "c"]
            await plugin.stop()


async def test_under_a_strict_policy_a_numa_node_of_minus_one_rejects_the_pod(short_dir: Path) -> None:
    async with Kubelet(short_dir, policy=Policy.RESTRICTED, numa_nodes=(0, 1)) as kubelet:
        plugin = await SmallPlugin(device("a", numa=(-1,))).join(kubelet)
        pod = await kubelet.admit(a_pod())
        assert pod.reason == "TopologyAffinityError"
        await plugin.stop()


async def test_a_held_device_that_left_the_list_crashes_the_kubelet_when_its_pod_is_readmitted(
    short_dir: Path,
) -> None:
    with pytest.raises(KubeletPanicError) as caught:  # noqa: PT012  (raised when the kubelet ends)
        async with Kubelet(short_dir, policy=Policy.BEST_EFFORT, numa_nodes=(0, 1)) as kubelet:
            plugin = await SmallPlugin(device("a", numa=(0,))).join(kubelet)
            await kubelet.admit(a_pod())
            await plugin.send(kubelet, device("b", numa=(0,)))
            with pytest.raises(KubeletPanicError):
                await kubelet.readmit(sources_ready=True)
            await plugin.stop()
    assert str(caught.value) == (
        f"nil dereference in generateDeviceTopologyHints: 'a' of {RESOURCE} is held "
        "by a container and no longer listed"
    )


async def test_a_pod_that_changed_its_request_is_rejected(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b").join(kubelet)
        pod = await kubelet.admit(a_pod())
        pod.spec = a_pod(2)
        await kubelet.readmit(sources_ready=True)
        assert outcome(pod) == rejected(
            f'pod "{pod.uid}" container "c" changed request for resource "{RESOURCE}" from 1 to 2'
        )
        await plugin.stop()


async def test_a_resource_that_was_removed_while_pods_hold_it_counts_as_unregistered(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        spec = Pod("p", [Container("c", limits={RESOURCE: 1})])
        await kubelet.admit(spec)
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        clock.advance(301)
        kubelet.tick()
        pod = await kubelet.admit(spec)
        assert pod.message == (
            f"Pod was rejected: Allocate failed due to cannot allocate unregistered device {RESOURCE}, "
            "which is unexpected"
        )
