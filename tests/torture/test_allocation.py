"""Allocations at a bad moment, repeated, in large numbers, or by an outdated id."""

import asyncio
from pathlib import Path

import pytest

from genericdp.core.device import UdevDevice
from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import Container, ContainerState, Phase, Pod, Point, Runtime
from tests.scenes.builders import a_device, a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import Scene, a_scene, both_runtimes, ids_told, minors_in
from tests.scenes.service import settings_below
from tests.scenes.waiting import idle

ONE_PATH = FTDI_RULE.replace("/dev/serial{index}", "/dev/modem")


class Context:
    """The context of a call without a socket; aborting it fails the test."""

    async def abort(self, code: object, details: str) -> None:
        raise AssertionError(f"{code}: {details}")


async def answers(scene: Scene, *requests: list[str]) -> list[api.ContainerAllocateResponse]:
    """The plugin's answers to one Allocate with these container requests."""
    asked = [api.ContainerAllocateRequest(devices_ids=ids) for ids in requests]
    plugin = scene.daemon.plugins.plugins[FTDI]
    answer = await plugin.Allocate(api.AllocateRequest(container_requests=asked), Context())  # type: ignore[arg-type]
    return list(answer.container_responses)


def paths(answer: api.ContainerAllocateResponse) -> list[tuple[str, str]]:
    return [(spec.container_path, spec.host_path.rpartition("/")[2]) for spec in answer.devices]


async def test_each_container_request_has_its_answer_in_order(short_dir: Path) -> None:
    a, b = a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial="B", port="2")
    async with a_scene(short_dir, a, b) as scene:
        first, none, second = await answers(scene, ["ftdi_B"], [], ["ftdi_A"])
        assert paths(first) == [("/dev/serial0", "ftdi_B")]
        assert paths(none) == []
        assert paths(second) == [("/dev/serial0", "ftdi_A")]


async def test_an_id_requested_twice_is_allocated_once(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0, serial="A")) as scene:
        (twice,) = await answers(scene, ["ftdi_A", "ftdi_A"])
        (single,) = await answers(scene, ["ftdi_A"])
        assert twice == single


async def test_the_same_request_gets_the_same_answer_after_a_replug_and_after_a_restart(
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, a_usb_serial(0, serial="A")) as scene:
        before = await answers(scene, ["ftdi_A"])
        scene.unplug(a_usb_serial(0, serial="A"))
        scene.plug(a_usb_serial(4, serial="A", port="7"))
        await idle()
        assert await answers(scene, ["ftdi_A"]) == before
        await scene.service.stop()
        await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)
        await scene.service.start()
        assert await answers(scene, ["ftdi_A"]) == before


@both_runtimes
async def test_an_init_container_and_the_app_after_it_get_the_same_device(
    short_dir: Path, runtime: Runtime
) -> None:
    """The kubelet assigns it to both, and calls Allocate once for each."""
    async with a_scene(short_dir, a_usb_serial(0), runtime=runtime) as scene:
        await scene.until_allocatable(1)
        pod = await scene.kubelet.admit(
            Pod(
                "app",
                [Container("main", limits={FTDI: 1})],
                init_containers=[Container("init", limits={FTDI: 1})],
            )
        )
        assert pod.phase is Phase.RUNNING
        assert ids_told(pod.container("init")) == ids_told(pod.container("main")) == ["ftdi_A50285BI"]
        assert minors_in(pod.container("init")) == minors_in(pod.container("main")) == [0]


@both_runtimes
async def test_two_devices_with_one_container_path_get_distinct_paths_that_the_container_learns(
    short_dir: Path, runtime: Runtime
) -> None:
    a, b = a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial="B", port="2")
    async with a_scene(short_dir, a, b, rules=ONE_PATH, runtime=runtime) as scene:
        await scene.until_allocatable(2)
        created = (await scene.admit(2)).container("main").created
        assert created is not None
        told = created.envs["GENERICDP_EXAMPLE_COM_FTDI"].split(",")
        assert sorted(told) == ["/dev/modem", "/dev/modem-1"]
        assert [node.container_path for node in created.nodes] == told
        assert {node.minor for node in created.nodes} == {0, 1}


async def test_a_rule_removed_during_allocate_fails_the_pod_with_a_message_and_does_not_crash_the_kubelet(
    short_dir: Path,
) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        with scene.kubelet.faults.hold(Point.ALLOCATE) as gate:
            admitting = asyncio.ensure_future(scene.admit())
            await gate.reached()
            scene.edit_rules("")
            await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)
            gate.open()
            pod = await admitting
        assert pod.phase is Phase.FAILED
        assert pod.reason == "UnexpectedAdmissionError"
        # The rule returns, and with it the device; nothing has leaked.
        scene.edit_rules(FTDI_RULE)
        await scene.until_allocatable(1, capacity=1)
        assert minors_in((await scene.admit(name="second")).container("main")) == [0]


async def test_a_rule_edited_to_take_another_device_does_not_give_it_to_a_pod_admitted_before(
    short_dir: Path,
) -> None:
    a, b = a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial="B", port="2")
    only_a, only_b = (
        FTDI_RULE.replace('vendor = "0403"', f'vendor = "0403", serial = "{each}"') for each in "AB"
    )
    async with a_scene(short_dir, a, b, rules=only_a) as scene:
        await scene.until_allocatable(1)
        pod = await scene.admit()
        scene.edit_rules(only_b)
        await scene.until_allocatable(1, capacity=2)
        assert scene.kubelet.resource_health(pod, "main") == {FTDI: {"ftdi_A": "Unhealthy"}}
        status = await scene.kubelet.restart_container(pod, "main")
        assert status.state is ContainerState.WAITING


# In a storm


async def test_pods_are_admitted_with_their_own_device_while_others_flap_without_a_pause(
    short_dir: Path,
) -> None:
    flapping = [a_usb_serial(10 + n, serial=f"F{n}", port=f"2.{n + 1}", vendor="10c4") for n in range(4)]
    both = FTDI_RULE + FTDI_RULE.replace('"ftdi"', '"flapping"').replace("0403", "10c4")

    async with a_scene(
        short_dir, a_usb_serial(3), *flapping, rules=both, settings=settings_below(short_dir, coalesce_s=0.01)
    ) as scene:
        await scene.until_allocatable(1)
        events = 0

        async def storm() -> None:
            nonlocal events
            while True:
                for each in flapping:
                    scene.unplug(each)
                    await asyncio.sleep(0)
                    scene.plug(each)
                    await asyncio.sleep(0)
                    events += 2

        raging = asyncio.ensure_future(storm())
        for round_ in range(20):
            pod = await scene.admit(name=f"pod-{round_}")
            assert minors_in(pod.container("main")) == [3], pod.message
            scene.kubelet.delete(pod)
        raging.cancel()
        await asyncio.wait((raging,))
        scene.plug(*(each for each in flapping if each.sys_path not in scene.udev.devices))
        # Each admission waited for some of the events, and none for all of them.
        assert events > 100
        await scene.until_allocatable(4, "example.com/flapping")
        assert scene.kubelet.messages(FTDI) == 1


# In large numbers


def many(count: int) -> list[UdevDevice]:
    return [
        a_device(
            f"/sys/devices/virtual/bulk/bulk{number}",
            subsystem="bulk",
            node=f"/dev/bulk{number}",
            number=f"c 240:{number}",
        )
        for number in range(count)
    ]


@pytest.mark.timeout_s(100)
async def test_a_hundred_resources_with_a_thousand_devices_are_registered_and_follow_a_change(
    short_dir: Path,
) -> None:
    rules = "".join(
        f'[[resource]]\nname = "bulk-{n}"\nmatch = {{ SUBSYSTEM = "bulk", DEVNAME = "*-{n:03}" }}\n'
        for n in range(100)
    )
    devices = [
        a_device(
            f"/sys/devices/virtual/bulk/bulk{unit}-{n:03}",
            subsystem="bulk",
            node=f"/dev/bulk{unit}-{n:03}",
            number=f"c 240:{n * 10 + unit}",
        )
        for n in range(100)
        for unit in range(10)
    ]

    async with a_scene(short_dir, *devices, rules=rules) as scene:
        names = [f"example.com/bulk-{n}" for n in range(100)]
        await scene.kubelet.wait_until(
            lambda: all(scene.kubelet.allocatable.get(name) == 10 for name in names), timeout_s=80
        )
        sent = sum(scene.kubelet.messages(name) for name in names)
        scene.unplug(devices[-1])
        await scene.until_allocatable(9, names[-1])
        assert sum(scene.kubelet.messages(name) for name in names) == sent + 1


@pytest.mark.parametrize("count", [1, 100])
async def test_a_device_shared_a_thousand_times_and_a_hundred_of_its_shares_in_one_container(
    short_dir: Path, count: int
) -> None:
    bulk = "example.com/bulk"
    rules = '[[resource]]\nname = "bulk"\nmatch = { SUBSYSTEM = "bulk" }\nreplicas = 1000\n'

    async with a_scene(short_dir, *many(2), rules=rules) as scene:
        await scene.until_allocatable(2000, bulk)
        created = (await scene.admit(count, bulk)).container("main").created
        assert created is not None
        assert len(created.envs["GENERICDP_EXAMPLE_COM_BULK_IDS"].split(",")) == count
        # The container has the node once, however many shares it holds.
        assert 1 <= len(created.nodes) <= 2
