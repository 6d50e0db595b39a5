"""Kubelets that hang, refuse, stop reading, send unknown fields, or do not exist yet."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import grpc
import grpc.aio
import pytest

from genericdp.core.inventory.offer import Device, Offer
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import Resource
from genericdp.kubelet import registration as registering
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.plugin import Plugin
from genericdp.kubelet.plugins import Plugins
from genericdp.kubelet.registration import Pauses
from genericdp.kubelet.socket import KubeletSocket
from genericdp.simulator import Generation, Kubelet, ManualClock
from tests.scenes.answering import a_grpc_server
from tests.scenes.builders import a_usb_serial
from tests.scenes.kubelets import Context, FakeKubelet
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.scene import a_scene, both_generations, until_allocatable
from tests.scenes.service import SHORT_PAUSES, links_in, settings_below
from tests.scenes.waiting import idle, until

OTHER = "example.com/other"
TWO = FTDI_RULE + FTDI_RULE.replace("ftdi", "other").replace("0403", "10c4")

#: A method whose request and answer are bytes.
Call: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"


# Absent, or not there yet


async def test_a_directory_that_is_created_late_and_level_by_level_is_found(short_dir: Path) -> None:
    settings = settings_below(short_dir, kubelet_dir=f"{short_dir}/var/kubelet/device-plugins")
    async with a_scene(short_dir, a_usb_serial(0), settings=settings, kubelet_runs=False):
        for level in ("var", "var/kubelet"):
            (short_dir / level).mkdir()
            await idle()
        async with Kubelet(short_dir / "var/kubelet") as kubelet:
            await until_allocatable(kubelet, 1)


@both_generations
async def test_a_directory_that_is_deleted_and_created_again_is_found_with_its_next_kubelet(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), generation=generation) as scene:
        for _ in range(5):
            await scene.until_allocatable(1)
            scene.kubelet.faults.remove_directory()
            await scene.kubelet.restart()
        await scene.until_allocatable(1)


async def test_a_kubelet_replaced_between_two_checks_counts_as_another_kubelet(short_dir: Path) -> None:
    """It was killed and started again before the daemon could notice its absence."""
    path = str(short_dir / "kubelet.sock")
    kubelet = KubeletSocket(str(short_dir))
    following = asyncio.ensure_future(kubelet.follow())
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        first.bind(path)
        first.listen()
        before = await kubelet.wait_until_there()
        os.unlink(path)
        second.bind(path)
        second.listen()
        await kubelet.wait_until_over(before)
        assert kubelet.incarnation not in (None, before)
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following


# Hanging and refusing


async def test_a_registration_that_hangs_does_not_delay_others_and_is_retried_under_a_fresh_name(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registering, "REGISTER_TIMEOUT_S", 0.05)

    async def hang(request: api.RegisterRequest, context: Context) -> None:
        del context
        if request.resource_name == FTDI:
            await asyncio.Event().wait()

    async def listen(request: api.RegisterRequest, plugin: api.DevicePluginStub) -> None:
        async for _ in plugin.ListAndWatch(api.Empty()):
            heard.add(request.resource_name)
            hanging.changes.notify()

    heard: set[str] = set()
    directory = short_dir / "device-plugins"
    directory.mkdir()
    hanging = FakeKubelet(directory, listen, hang)
    async with (
        hanging.serving(),
        a_scene(short_dir, rules=TWO, kubelet_runs=False, pauses=SHORT_PAUSES) as scene,
    ):
        await until(lambda: OTHER in heard, hanging.changes)
        await until(lambda: len(hanging.endpoints[FTDI]) >= 3, hanging.changes)
        assert len(set(hanging.endpoints[FTDI])) == len(hanging.endpoints[FTDI])
        assert len(hanging.endpoints[OTHER]) == 1
        progress = scene.daemon.plugins.registrations[FTDI].progress
        assert progress.error == "the kubelet did not answer within 0.05 s"


@both_generations
async def test_registration_is_retried_until_the_kubelet_accepts_and_a_hundred_refusals_leak_nothing(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(
        short_dir, a_usb_serial(0), daemon_runs=False, generation=generation, pauses=SHORT_PAUSES
    ) as scene:
        kubelet = scene.kubelet
        kubelet.faults.refuse_registrations("not today")
        await scene.service.start()
        await kubelet.wait_until(lambda: len(kubelet.registrations) >= 10)
        before = len(os.listdir("/proc/self/fd"))
        await kubelet.wait_until(lambda: len(kubelet.registrations) >= 100, timeout_s=60)
        assert len(os.listdir("/proc/self/fd")) <= before + 4
        assert len(list(sockets(short_dir))) <= 1
        kubelet.faults.refuse_registrations(None)
        await scene.until_allocatable(1)
        endpoints = [attempt.endpoint for attempt in kubelet.registrations]
        assert len(set(endpoints)) == len(endpoints)


@dataclass(frozen=True, slots=True)
class RecordedPauses(Pauses):
    """Short pauses. `failures` has, for each pause, the number of failures in a row before it."""

    failures: list[int] = field(default_factory=list)

    def before_try(self, failures: int) -> float:
        self.failures.append(failures)
        return 0.01


@both_generations
async def test_a_new_kubelet_does_not_wait_for_what_an_earlier_one_refused(
    short_dir: Path, generation: Generation
) -> None:
    pauses = RecordedPauses(first=0.0, longest=0.0, stream=0.1, kubelet=0.0)
    async with a_scene(
        short_dir, a_usb_serial(0), daemon_runs=False, generation=generation, pauses=pauses
    ) as scene:
        scene.kubelet.faults.refuse_registrations("not today")
        await scene.service.start()
        await until(lambda: 20 in pauses.failures)
        pauses.failures.clear()
        await scene.kubelet.restart()
        await until(lambda: 1 in pauses.failures)


def sockets(root: Path) -> list[str]:
    return [name for name in os.listdir(root / "device-plugins") if name.startswith("gdp-")]


# The plugin's own socket


@both_generations
async def test_deleting_a_plugin_socket_disturbs_nothing_and_it_is_replaced_when_it_is_needed(
    short_dir: Path, generation: Generation
) -> None:
    async with a_scene(short_dir, a_usb_serial(0), generation=generation) as scene:
        await scene.until_allocatable(1)
        (name,) = sockets(short_dir)
        os.unlink(short_dir / "device-plugins" / name)
        scene.plug(a_usb_serial(1, serial="B", port="3"))
        await scene.until_allocatable(2)
        assert len(scene.kubelet.registrations) == 1
        scene.kubelet.faults.end_streams(FTDI)
        await scene.kubelet.wait_until(lambda: scene.kubelet.allocatable[FTDI] == 0)
        await scene.until_allocatable(2)
        assert sockets(short_dir) not in ([], [name])


def test_a_directory_without_write_permission_is_retried_until_it_is_writable(short_dir: Path) -> None:
    short_dir.chmod(0o755)

    async def main() -> None:
        async with a_scene(short_dir, rules="", pauses=SHORT_PAUSES) as scene:
            directory, user = scene.settings.kubelet_dir, os.geteuid()
            os.chmod(directory, 0o755)  # noqa: S103  (who may only look is what this is about)
            os.chmod(f"{directory}/kubelet.sock", 0o777)  # noqa: S103
            os.seteuid(65534)
            try:
                scene.edit_rules(FTDI_RULE)
                await an_error(scene.daemon.plugins)
            finally:
                os.seteuid(user)
            error = await an_error(scene.daemon.plugins)
            assert error.startswith(f"cannot create the socket '{directory}/gdp-")
            assert error.endswith(".sock': Permission denied")
            await scene.until_allocatable(0)

    # grpc keeps two more pollers after the first failed bind, and no more even after the thousandth.
    asyncio.run(asyncio.wait_for(main(), 60))


async def an_error(plugins: Plugins) -> str:
    """The first error of the resource's registration."""

    def error() -> str:
        return plugins.registrations[FTDI].progress.error if FTDI in plugins.registrations else ""

    await until(error)
    return error()


async def test_the_error_about_a_socket_path_that_is_too_long_names_the_limit(short_dir: Path) -> None:
    # Short enough for kubelet.sock, too long for the plugin's own socket beside it.
    directory = short_dir / ("d" * (91 - len(str(short_dir))))
    directory.mkdir()
    (short_dir / "device-plugins").symlink_to(directory)
    settings = settings_below(short_dir, kubelet_dir=str(directory))
    async with a_scene(short_dir, settings=settings, pauses=SHORT_PAUSES) as scene:
        assert scene.kubelet.running
        assert "has more than 107 bytes" in await an_error(scene.daemon.plugins)


# Reading slowly


def a_long_list(round_: int) -> Offer:
    """An offer of a hundred kilobytes, more than HTTP/2 flow control lets through unread."""
    resource = Resource(name=FTDI, match=Match())
    return Offer(resource, tuple(Device(f"{round_:08}_{number:050}") for number in range(1500)))


@asynccontextmanager
async def a_plugin(directory: Path) -> AsyncIterator[tuple[Plugin, grpc.aio.Channel]]:
    """A plugin on a socket, with nothing behind it, and a channel to it."""
    plugin, path = Plugin(a_long_list(0), link_dir="/dev/genericdp", coalesce_s=0.0), directory / "p.sock"
    async with (
        a_grpc_server(path, api.device_plugin_handler(plugin)),
        grpc.aio.insecure_channel(f"unix:{path}") as channel,
    ):
        yield plugin, channel


async def test_a_kubelet_that_stops_reading_gets_the_newest_list_and_skips_those_in_between(
    short_dir: Path,
) -> None:
    async with a_plugin(short_dir) as (plugin, channel):
        stream = api.DevicePluginStub(channel).ListAndWatch(api.Empty())
        assert (await stream.read()) is not grpc.aio.EOF
        for round_ in range(1, 201):
            plugin.update(a_long_list(round_))
            await asyncio.sleep(0)
        # How many the buffers of gRPC and of the kernel take does not depend on how many there are.
        newest = ""
        while not newest.startswith("00000200"):
            answer = await stream.read()
            assert isinstance(answer, api.ListAndWatchResponse)
            newest = answer.devices[0].ID
        assert plugin.messages < 100, "lists pile up"
        stream.cancel()


# Absent for a long time


@both_generations
async def test_the_resource_returns_after_more_than_the_kubelets_grace(
    short_dir: Path, generation: Generation
) -> None:
    clock = ManualClock()
    async with a_scene(short_dir, a_usb_serial(0), generation=generation, clock=clock) as scene:
        await scene.until_allocatable(1)
        await scene.service.stop()
        await scene.kubelet.wait_until(lambda: scene.kubelet.allocatable[FTDI] == 0)
        clock.advance(301)
        scene.kubelet.tick()
        assert scene.kubelet.node_status.now.capacity == {FTDI: 0}
        await scene.service.start()
        await scene.until_allocatable(1)
        assert scene.kubelet.node_status.now.capacity == {FTDI: 1}


# Other versions of the API


async def test_unknown_fields_of_a_newer_kubelet_and_missing_fields_of_an_older_one_are_tolerated(
    short_dir: Path,
) -> None:
    unknown = b"\xba\x06\x03new"  # field 103, a string

    async with a_plugin(short_dir) as (_, channel):
        for name, request in (
            ("GetDevicePluginOptions", b""),
            ("Allocate", b""),
            ("PreStartContainer", b""),
            ("GetPreferredAllocation", b""),
        ):
            call: Call = channel.unary_unary(f"/v1beta1.DevicePlugin/{name}")
            assert await call(request + unknown) == await call(request)


# A hub


@both_generations
async def test_replugging_a_hub_of_thirty_devices_in_another_order_costs_two_messages_and_keeps_all_ids(
    short_dir: Path, generation: Generation
) -> None:
    names = [(f"S{number}", f"1.{number + 1}") for number in range(30)]
    before = [a_usb_serial(number, serial=each, port=port) for number, (each, port) in enumerate(names)]
    after = [a_usb_serial(29 - number, serial=each, port=port) for number, (each, port) in enumerate(names)]

    async with a_scene(short_dir, *before, generation=generation) as scene:
        await scene.until_allocatable(30)
        ids = set(scene.kubelet.devices(FTDI))
        scene.unplug(*before)
        await scene.until_allocatable(0)
        scene.plug(*after)
        await scene.until_allocatable(30)
        assert set(scene.kubelet.devices(FTDI)) == ids
        assert scene.kubelet.messages(FTDI) == 3
        assert links_in(scene.settings)["ftdi_S0"] == scene.udev.node(after[0])
