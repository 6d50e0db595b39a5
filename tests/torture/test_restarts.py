"""Two hundred kubelet restarts, each at another moment: nothing is lost, nothing piles up."""

import asyncio
import gc
import os
import random
import threading
from pathlib import Path

import pytest

from genericdp.simulator import Container, Generation, Kubelet, Phase, Pod, PodStatus, Point
from tests.scenes.builders import a_usb_serial
from tests.scenes.machine import (
    SHORT_PAUSES,
    FixedRules,
    a_daemon,
    a_machine,
    settings_below,
    until_allocatable,
)

FTDI, OTHER = "example.com/ftdi", "example.com/other"
RULES = """
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }

[[resource]]
name = "other"
match = { SUBSYSTEM = "tty", usb = { vendor = "10c4" } }
"""

RESTARTS = 200

#: What is compared is what is there after so many restarts and at the end.
WARM = 40

#: Where a registration can be when its kubelet goes away.
REGISTERING = (Point.DIAL, Point.OPTIONS, Point.ANSWER, Point.LIST)
ALLOCATING = (Point.PREFERRED, Point.ALLOCATE, Point.ALLOCATED)

both_generations = pytest.mark.parametrize("generation", list(Generation), ids=lambda each: each.name.lower())


def a_pod(number: int) -> Pod:
    return Pod(f"pod-{number}", [Container("main", limits={FTDI: 1})])


def ids_of(pod: PodStatus) -> list[str]:
    """What its container was told."""
    created = pod.container("main").created
    assert created is not None
    return created.envs["GENERICDP_EXAMPLE_COM_FTDI_IDS"].split(",")


def footprint() -> dict[str, int]:
    """What must not grow: descriptors, threads, and objects that somebody holds on to."""
    gc.collect()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "objects": len(gc.get_objects()),
    }


def resident_kib() -> int:
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])


async def restart_while_registering(kubelet: Kubelet, point: Point) -> None:
    """The kubelet goes away when a registration has come so far, and comes back."""
    with kubelet.faults.hold(point) as gate:
        await kubelet.stop()
        await kubelet.start(readmit=False)
        await gate.reached()
        await kubelet.stop()
    await kubelet.start(readmit=False)


async def restart_while_allocating(kubelet: Kubelet, point: Point, number: int) -> None:
    """The kubelet goes away in the middle of admitting a pod."""
    with kubelet.faults.hold(point) as gate:
        admission = asyncio.ensure_future(kubelet.admit(a_pod(number)))
        reached = asyncio.ensure_future(gate.reached())
        await asyncio.wait((admission, reached), return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        await kubelet.crash()
    await asyncio.gather(admission, reached, return_exceptions=True)
    await kubelet.start(readmit=False)
    for pod in kubelet.pods:
        kubelet.delete(pod)


@both_generations
@pytest.mark.timeout_s(300)
async def test_after_each_of_many_restarts_the_first_hot_plug_arrives_and_nothing_piles_up(
    short_dir: Path, generation: Generation
) -> None:
    rng = random.Random(7)  # noqa: S311  (for phases that anybody may guess)

    async def restart(kubelet: Kubelet, number: int) -> None:
        match rng.randrange(4):
            case 0:
                await kubelet.restart()
            case 1:
                await kubelet.crash()
                await kubelet.start()
            case 2:
                await restart_while_registering(kubelet, rng.choice(REGISTERING))
            case _:
                await restart_while_allocating(kubelet, rng.choice(ALLOCATING), number)

    with a_machine() as machine:
        machine.plug(a_usb_serial(0), a_usb_serial(1, vendor="10c4", serial="X", port="9"))
        flapping = a_usb_serial(2, serial="F", port="5")
        plugged, before, resident = False, footprint(), resident_kib()
        async with (
            Kubelet(short_dir, generation=generation) as kubelet,
            a_daemon(machine, FixedRules(RULES), settings_below(short_dir), pauses=SHORT_PAUSES),
        ):
            await until_allocatable(kubelet, FTDI, 1)
            await until_allocatable(kubelet, OTHER, 1)
            for number in range(RESTARTS):
                await restart(kubelet, number)
                plugged = not plugged
                (machine.plug if plugged else machine.unplug)(flapping)
                await until_allocatable(kubelet, FTDI, 1 + plugged)
                await until_allocatable(kubelet, OTHER, 1)
                assert (kubelet.streams(FTDI), kubelet.streams(OTHER)) == (1, 1)
                if number == WARM:
                    before, resident = footprint(), resident_kib()
            after, grown = footprint(), resident_kib() - resident
            assert after["threads"] <= before["threads"]
            assert after["descriptors"] <= before["descriptors"]
            # Every attempt is kept for the test to look at; nothing else may stay.
            assert after["objects"] - before["objects"] < 20 * (RESTARTS - WARM), (before, after)
            assert grown < 8192, f"{grown} KiB more after {RESTARTS - WARM} restarts"
            failed = {attempt.answer for attempt in kubelet.registrations}
            assert "failed to dial device plugin: context deadline exceeded" not in failed


@both_generations
@pytest.mark.parametrize("point", REGISTERING)
async def test_a_kubelet_that_goes_away_in_the_middle_of_a_registration_ends_nothing(
    short_dir: Path, generation: Generation, point: Point
) -> None:
    """Grpc calls a Register cancelled whose channel is closed; that was taken for our own end once."""
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with (
            Kubelet(short_dir, generation=generation) as kubelet,
            a_daemon(machine, FixedRules(RULES), settings_below(short_dir), pauses=SHORT_PAUSES),
        ):
            for _ in range(5):
                await restart_while_registering(kubelet, point)
                await until_allocatable(kubelet, FTDI, 1)
                assert kubelet.streams(FTDI) == 1


@both_generations
async def test_a_stream_that_ends_before_it_was_open_is_followed_by_another_registration(
    short_dir: Path, generation: Generation
) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with (
            Kubelet(short_dir, generation=generation) as kubelet,
            a_daemon(machine, FixedRules(RULES), settings_below(short_dir), pauses=SHORT_PAUSES),
        ):
            await until_allocatable(kubelet, FTDI, 1)
            for _ in range(3):
                kubelet.faults.end_streams(FTDI)
                await kubelet.wait_until(lambda: kubelet.streams(FTDI) == 0)
                # As soon as the next one is there, before a byte of it is sent.
                await kubelet.wait_until(lambda: kubelet.streams(FTDI) == 1)
                kubelet.faults.end_streams(FTDI)
            await until_allocatable(kubelet, FTDI, 1)


@both_generations
async def test_after_a_reboot_with_the_daemon_first_every_pod_runs_with_its_own_device(
    short_dir: Path, generation: Generation
) -> None:
    count = 8

    settings, rules = settings_below(short_dir), FixedRules(RULES)
    names = [(f"S{number}", f"1.{number + 1}") for number in range(count)]
    sticks = [a_usb_serial(number, serial=each, port=port) for number, (each, port) in enumerate(names)]
    with a_machine() as machine:
        machine.plug(*sticks)
        async with Kubelet(short_dir, generation=generation) as kubelet:
            async with a_daemon(machine, rules, settings):
                await until_allocatable(kubelet, FTDI, count)
                pods = [await kubelet.admit(a_pod(number)) for number in range(count)]
                held = [ids_of(pod) for pod in pods]
            await kubelet.stop()
            machine.unplug(*sticks)
            # The kernel names them in another order this time.
            machine.plug(
                *(
                    a_usb_serial(count - 1 - number, serial=each, port=port)
                    for number, (each, port) in enumerate(names)
                )
            )
            async with a_daemon(machine, rules, settings):
                await kubelet.reboot(wipe=[], readmit=False)
                await until_allocatable(kubelet, FTDI, count)
                await kubelet.readmit()
                assert [pod.phase for pod in pods] == [Phase.RUNNING] * count
                assert [ids_of(pod) for pod in pods] == held
                for pod, (id_,) in zip(pods, held, strict=True):
                    created = pod.container("main").created
                    assert created is not None
                    serial = int(id_.removeprefix("ftdi_S"))
                    assert [node.minor for node in created.nodes] == [count - 1 - serial]


@both_generations
async def test_after_a_reboot_with_the_kubelet_first_new_pods_get_the_devices_of_before(
    short_dir: Path, generation: Generation
) -> None:
    """The kubelet ends the old pods itself, with nobody to ask; whoever replaces them finds the same ids."""
    settings, rules = settings_below(short_dir), FixedRules(RULES)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir, generation=generation) as kubelet:
            async with a_daemon(machine, rules, settings):
                await until_allocatable(kubelet, FTDI, 1)
                old = await kubelet.admit(a_pod(0))
            await kubelet.reboot(wipe=[settings.link_dir])
            assert old.phase is Phase.FAILED
            async with a_daemon(machine, rules, settings):
                await until_allocatable(kubelet, FTDI, 1)
                new = await kubelet.admit(a_pod(1))
                assert (new.phase, ids_of(new)) == (Phase.RUNNING, ["ftdi_A50285BI"])


@both_generations
@pytest.mark.parametrize("number", [0, 9], ids=["same name", "new name"])
async def test_a_device_that_comes_long_after_a_reboot_has_its_id_and_was_listed_all_the_time(
    short_dir: Path, generation: Generation, number: int
) -> None:
    """The kubelet rejects its pod meanwhile, since what it was given is not healthy; nothing crashes."""
    settings, rules = settings_below(short_dir), FixedRules(RULES)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir, generation=generation) as kubelet:
            async with a_daemon(machine, rules, settings):
                await until_allocatable(kubelet, FTDI, 1)
                old = await kubelet.admit(a_pod(0))
            await kubelet.stop()
            machine.unplug(a_usb_serial(0))
            async with a_daemon(machine, rules, settings):
                await kubelet.reboot(wipe=[settings.link_dir], readmit=False)
                await kubelet.wait_until(lambda: kubelet.capacity[FTDI] == 1)
                assert kubelet.allocatable[FTDI] == 0
                await kubelet.readmit()
                assert (old.phase, old.reason) == (Phase.FAILED, "UnexpectedAdmissionError")
                # It may never come; when it does, it is nobody else.
                machine.plug(a_usb_serial(number))
                await until_allocatable(kubelet, FTDI, 1)
                new = await kubelet.admit(a_pod(1))
                assert (new.phase, ids_of(new)) == (Phase.RUNNING, ["ftdi_A50285BI"])
