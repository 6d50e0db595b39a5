"""The decisions inside the simulated kubelet, by values: clock, client table, topology, merge."""

import asyncio
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
    WallClock,
)
from genericdp.simulator.changes import Changes
from genericdp.simulator.devices.listed import Device, ResourceDevices
from genericdp.simulator.devices.topology import ANY, Hint, Policy, by_affinity, hints, merge
from genericdp.simulator.node.merge import container_config
from genericdp.simulator.plugins.clients import Client, Ended, Generation, table_of
from genericdp.simulator.runtimes.runtime import RequestedDevice, RequestedMount
from tests.simulator.small_plugin import RESOURCE, SmallPlugin, answer

ZERO, ONE, BOTH = frozenset({0}), frozenset({1}), frozenset({0, 1})


def listed(**numa: tuple[int, ...] | None) -> ResourceDevices:
    """Healthy devices by name, with their NUMA nodes."""
    devices = ResourceDevices()
    devices.receive(Device(id_, api.HEALTHY, nodes) for id_, nodes in numa.items())
    return devices


async def test_time_passes_when_told_and_ends_what_is_due_in_order() -> None:
    clock = ManualClock()
    ended: list[str] = []

    async def wait(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        ended.append(name)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with clock.timeout(2):
                await asyncio.Event().wait()
        ended.append("timeout")

    tasks = [asyncio.create_task(one) for one in (wait("late", 3), wait("early", 1), give_up())]
    await asyncio.sleep(0)
    clock.advance(1)
    await tasks[1]
    assert ended == ["early"]
    clock.advance(2)
    await asyncio.gather(*tasks)
    assert ended == ["early", "late", "timeout"]
    assert clock.now() == 3


async def test_real_time_passes_by_itself() -> None:
    clock = WallClock()
    before = clock.now()
    await clock.sleep(0.01)
    assert clock.now() > before
    with pytest.raises(TimeoutError):
        async with clock.timeout(0.01):
            await asyncio.Event().wait()


async def test_what_was_not_true_in_time_is_said_with_the_state() -> None:
    changes = Changes()
    with pytest.raises(TimeoutError, match=r"^not true after 0\.01 s; it is so$"):
        await changes.wait_until(lambda: False, timeout_s=0.01, describe=lambda: "it is so")


def test_a_legacy_table_lets_the_end_of_any_client_hit_the_current_one() -> None:
    table = table_of(Generation.LEGACY)
    old, new = Client("r", "/old"), Client("r", "/new")
    assert table.add(old) is table.add(new) is None
    assert table.ended(old) == Ended(close=new, stopped=True)
    assert table.ended(new) == Ended()


def test_a_newer_table_keeps_clients_apart() -> None:
    table = table_of(Generation.NEWER)
    old, new = Client("r", "/old"), Client("r", "/new")
    for client in (old, new):
        assert table.add(client) is None
        client.connected = True
    assert (table.feeds(old), table.feeds(new)) == (False, True)
    assert table.add(Client("r", "/new")) == ('device plugin already connected: resource "r", socket "/new"')
    failing = Client("r", "/failing")
    assert table.add(failing) is None
    table.failed(failing)
    table.failed(failing)
    assert table.ended(new) == Ended(close=new, promoted=old)
    assert table.ended(new) == Ended()
    assert table.removed("r", "/nobody") == Ended()
    assert table.removed("r", "/old") == Ended(close=old, stopped=True)


def test_a_newer_table_lets_a_client_that_is_still_connecting_be_replaced() -> None:
    table = table_of(Generation.NEWER)
    first, second = Client("r", "/same"), Client("r", "/same")
    assert table.add(first) is table.add(second) is None
    assert table.ended(first) == Ended()


def test_hints_are_the_masks_with_enough_devices_and_the_smallest_possible_are_preferred() -> None:
    devices = listed(a=(0,), b=(0,), c=(1,), d=None)
    found = hints("r", devices, (0, 1), available={"a", "b", "c", "d"}, reusable=(), request=2)
    assert found == [Hint(ZERO, preferred=True), Hint(BOTH, preferred=False)]
    left = hints("r", devices, (0, 1), available={"b", "c"}, reusable=(), request=2)
    assert left == [Hint(BOTH, preferred=False)]
    lent = hints("r", devices, (0, 1), available={"a", "b"}, reusable={"c", "d"}, request=2)
    assert lent == [Hint(BOTH, preferred=False)]


@pytest.mark.parametrize(
    ("policy", "wish", "expected"),
    [
        (Policy.BEST_EFFORT, [Hint(BOTH, preferred=False)], (Hint(BOTH, preferred=False), True)),
        (Policy.RESTRICTED, [Hint(BOTH, preferred=False)], (Hint(BOTH, preferred=False), False)),
        (Policy.RESTRICTED, [Hint(BOTH, preferred=True)], (Hint(BOTH, preferred=True), True)),
        (Policy.SINGLE_NUMA_NODE, [Hint(BOTH, preferred=True)], (Hint(None, preferred=False), False)),
        (Policy.SINGLE_NUMA_NODE, [Hint(ONE, preferred=True)], (Hint(ONE, preferred=True), True)),
        (Policy.SINGLE_NUMA_NODE, [ANY], (Hint(None, preferred=True), True)),
        (Policy.RESTRICTED, [], (Hint(BOTH, preferred=False), False)),
    ],
)
def test_each_policy_has_its_own_idea_of_what_will_do(
    policy: Policy, wish: list[Hint], expected: tuple[Hint, bool]
) -> None:
    assert merge(policy, [wish], (0, 1)) == expected


def test_hints_of_two_resources_that_exclude_each_other_admit_nobody_strictly() -> None:
    wishes = [[Hint(ZERO, preferred=True)], [Hint(ONE, preferred=True)]]
    assert merge(Policy.RESTRICTED, wishes, (0, 1)) == (Hint(BOTH, preferred=False), False)


def test_available_devices_are_split_by_affinity() -> None:
    devices = listed(a=(0,), b=(1,), c=None, d=(0, 1))
    assert by_affinity(devices, set("abcd"), Hint(ONE, preferred=True)) == ({"b", "d"}, {"a"}, {"c"})
    assert by_affinity(devices, set("abcd"), ANY) == (set(), set(), set("abcd"))
    assert by_affinity(listed(a=None), {"a"}, Hint(ONE, preferred=True)) == (set(), set(), {"a"})


def test_the_first_answer_wins_at_each_path_and_key() -> None:
    first, second = (
        api.ContainerAllocateResponse(
            annotations={"k": name},
            mounts=[api.Mount(container_path="/m", host_path=f"/{name}", read_only=True)],
            devices=[api.DeviceSpec(container_path="/dev/x", host_path=f"/dev/{name}", permissions="rw")],
            cdi_devices=[api.CDIDevice(name="v/c=same")],
        )
        for name in ("one", "two")
    )
    config = container_config(Container("c"), [first, second])
    assert config.annotations == {"k": "one"}
    assert config.mounts == (RequestedMount("/one", "/m", read_only=True),)
    assert config.devices == (RequestedDevice("/dev/one", "/dev/x", "rw"),)
    assert config.cdi_devices == ("v/c=same",)


async def test_what_waits_is_tried_again_by_itself_when_the_kubelet_runs_on_a_timer(short_dir: Path) -> None:
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


async def test_the_state_in_one_line_is_for_failing_tests(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        await kubelet.admit(Pod("p", [Container("c")]))
        assert kubelet.describe() == (
            f"capacity {{'{RESOURCE}': 1}}, allocatable {{'{RESOURCE}': 1}}, "
            f"last registrations ['{RESOURCE}: accepted'], pods ['p: Running']"
        )
        with pytest.raises(SimulatorError, match=r"^the kubelet runs already$"):
            await kubelet.start()
        await plugin.stop()


async def test_a_resource_that_was_removed_while_pods_hold_it_is_unregistered(short_dir: Path) -> None:
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


async def test_devices_of_a_forgotten_plugin_are_offered_and_cannot_be_had(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        registering = asyncio.create_task(plugin.register(kubelet, endpoint="missing.sock"))
        await kubelet.wait_until(lambda: kubelet.connections(RESOURCE) == 2)
        clock.advance(11)
        await asyncio.gather(registering, return_exceptions=True)
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        assert kubelet.allocatable == {RESOURCE: 1}
        pod = await kubelet.admit(Pod("p", [Container("c", limits={RESOURCE: 1})]))
        assert pod.message.startswith(
            "Pod was rejected: Allocate failed due to rpc error: code = Unavailable desc = "
        )


async def test_what_goes_wrong_in_the_timer_is_raised_at_the_end(short_dir: Path) -> None:
    with pytest.raises(KeyError, match="other"):  # noqa: PT012  (raised when the kubelet ends)
        clock = ManualClock()
        async with Kubelet(short_dir, clock=clock, status_period_s=10, watchdog_s=0.02) as kubelet:
            plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
            pod = await kubelet.admit(Pod("p", [Container("c", limits={RESOURCE: 1})]))
            assert pod.phase is Phase.RUNNING
            pod.containers["c"].become(ContainerState.WAITING)
            pod.spec = Pod("p", [Container("other")])
            clock.advance(10)
            await kubelet.wait_until(lambda: kubelet.node_status.now.capacity == {RESOURCE: 1})
            await plugin.stop()
