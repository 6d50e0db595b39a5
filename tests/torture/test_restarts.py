"""Two hundred kubelet restarts, each at another moment: nothing is lost and nothing leaks."""

import asyncio
import gc
import logging
import os
import random
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from genericdp.service import heap
from genericdp.simulator import Generation, Kubelet, Phase, Point
from genericdp.simulator.node.node_status import NodeStatusHistory
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import LoopTime, Scene, a_scene, both_generations, ids_told, minors_in
from tests.scenes.service import SHORT_PAUSES

OTHER = "example.com/other"
OTHER_RULE = FTDI_RULE.replace("ftdi", "other").replace("0403", "10c4")

#: The restarts before the first figures are taken, and those after which the last ones are taken. Both even.
WARM, MORE = 40, 60

#: How often figures are taken each time: something may be on its way at any moment.
MEASURED = 5

#: What may be there by chance. The figures at rest differ by less than 100.
CHANCE = 120

#: Longer than anything waits that a kubelet leaves behind when it goes away.
FORGOTTEN_S = 120.0

#: How far a registration can be when its kubelet goes away.
REGISTERING = (Point.DIAL, Point.OPTIONS, Point.ANSWER, Point.LIST)
ALLOCATING = (Point.PREFERRED, Point.ALLOCATE, Point.ALLOCATED)


def footprint() -> dict[str, int]:
    """The figures that must not grow: descriptors, threads, and live objects."""
    gc.collect()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
    }


def least(figures: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
    """The least of each figure."""
    return {name: min(each[name] for each in figures) for name in figures[0]}


def resident_kib() -> int:
    # What is free but not given back depends on how busy the machine was.
    heap.give_back()
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])


async def restart_while_registering(kubelet: Kubelet, point: Point) -> None:
    """Restart the kubelet when a registration has reached this point."""
    with kubelet.faults.hold(point) as gate:
        await kubelet.stop()
        await kubelet.start(readmit=False)
        await gate.reached()
        await kubelet.stop()
    await kubelet.start(readmit=False)


async def restart_while_allocating(scene: Scene, point: Point) -> None:
    """Restart the kubelet while it admits a pod."""
    kubelet = scene.kubelet
    with kubelet.faults.hold(point) as gate:
        admission = asyncio.ensure_future(scene.admit())
        reached = asyncio.ensure_future(gate.reached())
        await asyncio.wait((admission, reached), return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        await kubelet.crash()
    await asyncio.gather(admission, reached, return_exceptions=True)
    await kubelet.start(readmit=False)
    for pod in kubelet.pods:
        kubelet.delete(pod)


async def at_rest(scene: Scene, time: LoopTime) -> Mapping[str, int]:
    """The footprint when nothing that has gone away waits for anything any more."""
    time.advance(FORGOTTEN_S)
    figures = list[dict[str, int]]()
    for _ in range(MEASURED):
        await scene.kubelet.restart()
        # It remembers what its node has been.
        scene.kubelet.node_status = NodeStatusHistory()
        await scene.until_allocatable(1)
        await scene.until_allocatable(1, OTHER)
        scene.kubelet.registrations.clear()
        figures.append(footprint())
    return least(figures)


@both_generations
@pytest.mark.timeout_s(300)
async def test_after_each_of_many_restarts_the_first_hot_plug_arrives_and_nothing_leaks(
    short_dir: Path, caplog: pytest.LogCaptureFixture, generation: Generation
) -> None:
    # pytest keeps every record.
    caplog.set_level(logging.CRITICAL)
    rng = random.Random(7)  # noqa: S311  (for phases that anybody may guess)

    async def restart(scene: Scene) -> None:
        match rng.randrange(4):
            case 0:
                await scene.kubelet.restart()
            case 1:
                await scene.kubelet.crash()
                await scene.kubelet.start()
            case 2:
                await restart_while_registering(scene.kubelet, rng.choice(REGISTERING))
            case _:
                await restart_while_allocating(scene, rng.choice(ALLOCATING))

    flapping, answers = a_usb_serial(2, serial="F", port="5"), set[str | None]()

    async def restarts(scene: Scene, count: int) -> None:
        for number in range(count):
            await restart(scene)
            is_plugged = number % 2 == 0
            (scene.plug if is_plugged else scene.unplug)(flapping)
            await scene.until_allocatable(1 + is_plugged)
            await scene.until_allocatable(1, OTHER)
            assert (scene.kubelet.streams(FTDI), scene.kubelet.streams(OTHER)) == (1, 1)
            answers.update(attempt.answer for attempt in scene.kubelet.registrations)
            scene.kubelet.registrations.clear()

    sticks = (a_usb_serial(0), a_usb_serial(1, vendor="10c4", serial="X", port="9"))
    async with a_scene(
        short_dir, *sticks, rules=FTDI_RULE + OTHER_RULE, generation=generation, pauses=SHORT_PAUSES
    ) as scene:
        time = LoopTime()
        await scene.until_allocatable(1)
        await scene.until_allocatable(1, OTHER)
        await restarts(scene, WARM)
        before, resident = await at_rest(scene, time), resident_kib()
        await restarts(scene, MORE)
        after, grown = await at_rest(scene, time), resident_kib() - resident
        assert after["threads"] <= before["threads"]
        assert after["descriptors"] <= before["descriptors"]
        assert after["objects"] - before["objects"] < CHANCE, (before, after)
        assert grown < 8192, f"{grown} KiB more after {MORE} restarts"
        assert "failed to dial device plugin: context deadline exceeded" not in answers


@both_generations
@pytest.mark.parametrize("point", REGISTERING)
async def test_a_kubelet_that_goes_away_during_a_registration_does_not_end_the_daemon(
    short_dir: Path, generation: Generation, point: Point
) -> None:
    """Grpc reports a Register as cancelled when its channel closes; that must not look like our own end."""
    async with a_scene(short_dir, a_usb_serial(0), generation=generation, pauses=SHORT_PAUSES) as scene:
        for _ in range(5):
            await restart_while_registering(scene.kubelet, point)
            await scene.until_allocatable(1)
            assert scene.kubelet.streams(FTDI) == 1


@both_generations
async def test_a_stream_that_ends_before_it_was_open_is_followed_by_another_registration(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), generation=generation, pauses=SHORT_PAUSES) as scene:
        await scene.until_allocatable(1)
        for _ in range(3):
            scene.kubelet.faults.end_streams(FTDI)
            await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)
            # As soon as the next stream opens, before a byte of it is sent.
            await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 1)
            scene.kubelet.faults.end_streams(FTDI)
        await scene.until_allocatable(1)


@both_generations
async def test_after_a_reboot_with_the_daemon_first_every_pod_runs_with_its_own_device(
    short_dir: Path, generation: Generation
) -> None:
    count = 8

    names = [(f"S{number}", f"1.{number + 1}") for number in range(count)]
    sticks = [a_usb_serial(number, serial=each, port=port) for number, (each, port) in enumerate(names)]
    # After the reboot the kernel names them in another order.
    renamed = [
        a_usb_serial(count - 1 - number, serial=each, port=port) for number, (each, port) in enumerate(names)
    ]
    async with a_scene(short_dir, *sticks, generation=generation) as scene:
        await scene.until_allocatable(count)
        pods = [await scene.admit(name=f"pod-{number}") for number in range(count)]
        held = [ids_told(pod.container("main")) for pod in pods]
        await scene.service.stop()
        await scene.kubelet.stop()
        scene.unplug(*sticks)
        scene.plug(*renamed)
        await scene.service.start()
        await scene.kubelet.reboot(wipe=[], readmit=False)
        await scene.until_allocatable(count)
        await scene.kubelet.readmit()
        assert [pod.phase for pod in pods] == [Phase.RUNNING] * count
        assert [ids_told(pod.container("main")) for pod in pods] == held
        for pod, (id_,) in zip(pods, held, strict=True):
            serial = int(id_.removeprefix("ftdi_S"))
            assert minors_in(pod.container("main")) == [count - 1 - serial]


@both_generations
async def test_after_a_reboot_with_the_kubelet_first_new_pods_get_devices_with_the_same_ids(
    short_dir: Path, generation: Generation
) -> None:
    """The kubelet fails the old pods before the plugin registers; their replacements find the same ids."""
    async with a_scene(short_dir, a_usb_serial(0), generation=generation) as scene:
        await scene.until_allocatable(1)
        old = await scene.admit()
        await scene.service.stop()
        await scene.kubelet.reboot(wipe=[scene.settings.link_dir])
        assert old.phase is Phase.FAILED
        await scene.service.start()
        await scene.until_allocatable(1)
        new = await scene.admit(name="new")
        assert (new.phase, ids_told(new.container("main"))) == (Phase.RUNNING, ["ftdi_A50285BI"])


@both_generations
@pytest.mark.parametrize("number", [0, 9], ids=["same name", "new name"])
async def test_a_device_that_appears_long_after_a_reboot_has_its_id_and_was_listed_all_the_time(
    short_dir: Path, generation: Generation, number: int
) -> None:
    """Until then the kubelet rejects its pod, because the device is Unhealthy; nothing crashes."""
    async with a_scene(short_dir, a_usb_serial(0), generation=generation) as scene:
        await scene.until_allocatable(1)
        old = await scene.admit()
        await scene.service.stop()
        await scene.kubelet.stop()
        scene.unplug(a_usb_serial(0))
        await scene.service.start()
        await scene.kubelet.reboot(wipe=[scene.settings.link_dir], readmit=False)
        await scene.kubelet.wait_until(lambda: scene.kubelet.capacity[FTDI] == 1)
        assert scene.kubelet.allocatable[FTDI] == 0
        await scene.kubelet.readmit()
        assert (old.phase, old.reason) == (Phase.FAILED, "UnexpectedAdmissionError")
        # When it returns, it has the same id.
        scene.plug(a_usb_serial(number))
        await scene.until_allocatable(1)
        new = await scene.admit(name="new")
        assert (new.phase, ids_told(new.container("main"))) == (Phase.RUNNING, ["ftdi_A50285BI"])
