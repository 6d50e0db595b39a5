"""Other clients on the socket of a plugin, and others who can read the kubelet's directory.

They hide nothing and hinder nothing, and nothing is done because of them.
"""

import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import grpc.aio

from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.endpoints import sweep
from genericdp.simulator import Generation
from genericdp.simulator.gates import Point
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI
from tests.scenes.scene import Scene, a_scene, both_generations
from tests.scenes.service import SHORT_PAUSES
from tests.scenes.stranger import as_stranger
from tests.scenes.waiting import until

#: For tests that hold the kubelet before it opens its stream.
PATIENT = replace(SHORT_PAUSES, stream=20.0)


@asynccontextmanager
async def a_stranger_that_asks(scene: Scene) -> AsyncIterator[api.DevicePluginStub]:
    """Another program connects to the plugin's socket and asks for the options; it has the answer."""
    (name,) = sweep(str(scene.kubelet.directory))
    async with grpc.aio.insecure_channel(
        f"unix:{scene.kubelet.directory}/{name}",
        options=(("grpc.primary_user_agent", "agent/1.0"), ("grpc.use_local_subchannel_pool", 1)),
    ) as channel:
        stub = api.DevicePluginStub(channel)
        await stub.GetDevicePluginOptions(api.Empty())
        yield stub


@asynccontextmanager
async def a_stranger(scene: Scene) -> AsyncIterator[None]:
    """Another program that asks for the options, then follows the list; it has the first list."""
    async with a_stranger_that_asks(scene) as stub:
        stream = stub.ListAndWatch(api.Empty())
        try:
            first = await stream.__aiter__().__anext__()
            assert [device.ID for device in first.devices] == ["ftdi_A50285BI"]
            yield
        finally:
            stream.cancel()


async def until_seen(scene: Scene, count: int) -> None:
    """The daemon knows of so many strangers' streams."""
    streams = scene.daemon.plugins.registrations[FTDI].plugin.streams
    await streams.wait_until(lambda: sum(streams.others().values()) == count)
    assert all(client.startswith("agent/1.0 ") for client in streams.others())


@both_generations
async def test_a_stranger_does_not_hide_that_the_kubelet_has_ended_its_stream(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), generation=generation, pauses=SHORT_PAUSES) as scene:
        for count in range(2, 6):
            await scene.until_allocatable(1)
            streams = scene.daemon.plugins.registrations[FTDI].plugin.streams
            # The list reaches the kubelet before the answer to Register reaches the daemon. Until then, the
            # daemon assumes that the latest caller is the kubelet.
            await until(lambda: streams.kubelet_follows)  # noqa: B023 – awaited in this round
            async with a_stranger(scene):
                scene.kubelet.faults.end_streams(FTDI)
                await scene.kubelet.wait_until(lambda: scene.kubelet.streams(FTDI) == 0)
                await scene.until_allocatable(1)
                assert len(scene.kubelet.registrations) == count


@both_generations
async def test_strangers_that_come_and_go_cause_no_registration(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), generation=generation, pauses=SHORT_PAUSES) as scene:
        await scene.until_allocatable(1)
        for _ in range(20):
            async with a_stranger(scene), a_stranger(scene):
                await until_seen(scene, 2)
            await until_seen(scene, 0)
        assert len(scene.kubelet.registrations) == 1
        assert scene.kubelet.streams(FTDI) == 1


@both_generations
async def test_a_stranger_that_is_there_before_the_kubelet_is_not_taken_for_it(
    short_dir: Path, generation: Generation
) -> None:
    """An agent that watches the directory connects to a socket as soon as it is created."""
    async with a_scene(
        short_dir, a_usb_serial(0), generation=generation, pauses=PATIENT, daemon_runs=False
    ) as scene:
        with scene.kubelet.faults.hold(Point.DIAL) as gate:
            await scene.service.start()
            await gate.reached()
            stranger = a_stranger(scene)
            await stranger.__aenter__()
            gate.open()
        await scene.until_allocatable(1)
        await stranger.__aexit__(None, None, None)
        await until_seen(scene, 0)
        async with a_stranger(scene):
            assert len(scene.kubelet.registrations) == 1
            scene.kubelet.faults.end_streams(FTDI)
            await scene.kubelet.wait_until(lambda: len(scene.kubelet.registrations) == 2)
        await scene.until_allocatable(1)


@both_generations
async def test_a_stranger_that_follows_first_does_not_end_the_wait_for_the_kubelet(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(
        short_dir, a_usb_serial(0), generation=generation, pauses=PATIENT, daemon_runs=False
    ) as scene:
        with scene.kubelet.faults.hold(Point.LIST) as gate:
            await scene.service.start()
            await gate.reached()
            # Only after the answer to Register does a question no longer count.
            await until(lambda: scene.daemon.plugins.registrations[FTDI].plugin.streams._answered)
            async with a_stranger(scene):
                assert scene.daemon.plugins.registered == 0
                gate.open()
                await scene.until_allocatable(1)
                assert len(scene.kubelet.registrations) == 1


@both_generations
async def test_a_stranger_that_only_asks_for_the_options_causes_no_registration(
    short_dir: Path, generation: Generation
) -> None:
    """It asks between the kubelet's question and the answer to Register."""
    pauses = replace(SHORT_PAUSES, stream=1.0)
    async with a_scene(
        short_dir, a_usb_serial(0), generation=generation, pauses=pauses, daemon_runs=False
    ) as scene:
        with scene.kubelet.faults.hold(Point.ANSWER) as gate:
            await scene.service.start()
            await gate.reached()
            async with a_stranger_that_asks(scene):
                gate.open()
                await until(lambda: scene.daemon.plugins.registered == 1)
        assert len(scene.kubelet.registrations) == 1
        await until_seen(scene, 0)
        scene.kubelet.faults.end_streams(FTDI)
        await scene.kubelet.wait_until(lambda: len(scene.kubelet.registrations) == 2)
        await scene.until_allocatable(1)


async def test_a_stranger_who_locks_whatever_can_be_read_keeps_nobody_from_serving(short_dir: Path) -> None:
    """At boot, say, before genericdp and the kubelet are there, or when genericdp is restarted."""
    short_dir.chmod(0o755)
    before = os.umask(0o022)
    locked: list[int] = []
    try:
        async with a_scene(short_dir, a_usb_serial(0)) as scene:
            await scene.until_allocatable(1)
            await scene.service.stop()
            with as_stranger():
                locked += locks_below(short_dir)
            assert any(os.path.samestat(os.fstat(each), scene.kubelet.directory.stat()) for each in locked)
            await scene.service.start()
            await scene.until_allocatable(1)
            # The kubelet lists the device before the daemon has its answer.
            await until(lambda: scene.daemon.status_line() == "1 resource, 1 of 1 device healthy; registered")
    finally:
        os.umask(before)
        for each in locked:
            os.close(each)


def locks_below(directory: Path) -> Iterator[int]:
    """Lock whatever can be opened; the descriptors that hold the locks."""
    for path in sorted(directory.rglob("*")):
        with suppress(OSError):
            opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield opened
