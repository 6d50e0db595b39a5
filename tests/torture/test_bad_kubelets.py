"""Kubelets that hang, refuse, stop reading, speak another dialect, or are not there yet."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
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
from genericdp.kubelet.socket import KubeletSocket
from genericdp.simulator import Generation, Kubelet, ManualClock
from tests.scenes.builders import a_usb_serial
from tests.scenes.machine import (
    SHORT_PAUSES,
    FixedRules,
    a_daemon,
    a_machine,
    links_in,
    settings_below,
    until_allocatable,
)

FTDI, OTHER = "example.com/ftdi", "example.com/other"
RULES = """
[[resource]]
name = "ftdi"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403" } }
"""
TWO = RULES + RULES.replace("ftdi", "other").replace("0403", "10c4")

#: A method called with bytes, and answering with bytes.
Call: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"

both_generations = pytest.mark.parametrize("generation", list(Generation), ids=lambda each: each.name.lower())


# Not there, or not yet


async def test_a_directory_that_comes_level_by_level_and_late_is_found(short_dir: Path) -> None:
    settings = replace(settings_below(short_dir), kubelet_dir=f"{short_dir}/var/kubelet/device-plugins")
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with a_daemon(machine, FixedRules(RULES), settings):
            for level in ("var", "var/kubelet"):
                (short_dir / level).mkdir()
                await asyncio.sleep(0)
            async with Kubelet(short_dir / "var/kubelet") as kubelet:
                await until_allocatable(kubelet, FTDI, 1)


@both_generations
async def test_a_directory_that_is_deleted_under_everybody_is_found_again_with_the_next_kubelet(
    short_dir: Path, generation: Generation
) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with (
            Kubelet(short_dir, generation=generation) as kubelet,
            a_daemon(machine, FixedRules(RULES), settings_below(short_dir)),
        ):
            for _ in range(5):
                await until_allocatable(kubelet, FTDI, 1)
                kubelet.faults.remove_directory()
                await kubelet.restart()
            await until_allocatable(kubelet, FTDI, 1)


async def test_a_kubelet_replaced_between_two_looks_is_another_kubelet(short_dir: Path) -> None:
    """Killed and started again before anybody could see that there was none."""
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
        await kubelet.wait_for_another(before)
        assert kubelet.incarnation not in (None, before)
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following


# Hanging and refusing


class HangingKubelet:
    """Never answers the registration of some resources, and opens the streams of the others."""

    def __init__(self, directory: Path, hanging: str) -> None:
        self.endpoints: dict[str, list[str]] = {}
        self.heard: set[str] = set()
        self.changed = asyncio.Event()
        self._directory = directory
        self._hanging = hanging
        self._tasks: set[asyncio.Task[None]] = set()

    async def Register(  # noqa: N802  (the proto's spelling)
        self,
        request: api.RegisterRequest,
        context: "grpc.aio.ServicerContext[api.RegisterRequest, api.Empty]",
    ) -> api.Empty:
        del context
        self.endpoints.setdefault(request.resource_name, []).append(request.endpoint)
        self.changed.set()
        if request.resource_name == self._hanging:
            await asyncio.Event().wait()
        task = asyncio.ensure_future(self._listen(request.resource_name, request.endpoint))
        self._tasks.add(task)
        return api.Empty()

    async def _listen(self, resource: str, endpoint: str) -> None:
        async with grpc.aio.insecure_channel(f"unix:{self._directory}/{endpoint}") as channel:
            with suppress(grpc.aio.AioRpcError):
                async for _ in api.DevicePluginStub(channel).ListAndWatch(api.Empty()):
                    self.heard.add(resource)
                    self.changed.set()

    async def until(self, predicate: Callable[[], bool]) -> None:
        while not predicate():
            await self.changed.wait()
            self.changed.clear()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((api.registration_handler(self),))
        server.add_insecure_port(f"unix:{self._directory}/kubelet.sock")
        await server.start()
        try:
            yield
        finally:
            await server.stop(grace=None)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)


async def test_one_registration_that_hangs_holds_up_no_other_and_is_tried_again_under_a_fresh_name(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registering, "REGISTER_TIMEOUT_S", 0.05)

    settings = settings_below(short_dir)
    os.mkdir(settings.kubelet_dir)
    hanging = HangingKubelet(Path(settings.kubelet_dir), FTDI)
    with a_machine() as machine:
        async with (
            hanging.serving(),
            a_daemon(machine, FixedRules(TWO), settings, pauses=SHORT_PAUSES) as daemon,
        ):
            await hanging.until(lambda: OTHER in hanging.heard)
            await hanging.until(lambda: len(hanging.endpoints[FTDI]) >= 3)
            assert len(set(hanging.endpoints[FTDI])) == len(hanging.endpoints[FTDI])
            assert len(hanging.endpoints[OTHER]) == 1
            assert daemon.plugins.registrations[FTDI].progress.error == "Deadline Exceeded"


@both_generations
async def test_a_kubelet_that_refuses_a_hundred_times_is_asked_until_it_accepts_and_nothing_piles_up(
    short_dir: Path, generation: Generation
) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir, generation=generation) as kubelet:
            kubelet.faults.refuse_registrations("not today")
            async with a_daemon(machine, FixedRules(RULES), settings_below(short_dir), pauses=SHORT_PAUSES):
                await kubelet.wait_until(lambda: len(kubelet.registrations) >= 10)
                before = len(os.listdir("/proc/self/fd"))
                await kubelet.wait_until(lambda: len(kubelet.registrations) >= 100, timeout_s=60)
                assert len(os.listdir("/proc/self/fd")) <= before + 4
                assert len(list(sockets(short_dir))) <= 1
                kubelet.faults.refuse_registrations(None)
                await until_allocatable(kubelet, FTDI, 1)
                endpoints = [attempt.endpoint for attempt in kubelet.registrations]
                assert len(set(endpoints)) == len(endpoints)


def sockets(root: Path) -> list[str]:
    return [name for name in os.listdir(root / "device-plugins") if name.startswith("gdp-")]


# Our own socket


@both_generations
async def test_a_socket_of_ours_that_somebody_deletes_disturbs_nothing_and_is_replaced_when_it_is_needed(
    short_dir: Path, generation: Generation
) -> None:
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with (
            Kubelet(short_dir, generation=generation) as kubelet,
            a_daemon(machine, FixedRules(RULES), settings_below(short_dir)),
        ):
            await until_allocatable(kubelet, FTDI, 1)
            (name,) = sockets(short_dir)
            os.unlink(short_dir / "device-plugins" / name)
            machine.plug(a_usb_serial(1, serial="B", port="3"))
            await until_allocatable(kubelet, FTDI, 2)
            assert len(kubelet.registrations) == 1
            kubelet.faults.end_streams(FTDI)
            await kubelet.wait_until(lambda: kubelet.allocatable[FTDI] == 0)
            await until_allocatable(kubelet, FTDI, 2)
            assert sockets(short_dir) not in ([], [name])


def test_a_directory_that_we_may_not_write_to_is_tried_until_we_may(short_dir: Path) -> None:
    short_dir.chmod(0o755)

    async def main() -> None:
        settings = settings_below(short_dir)
        with a_machine() as machine:
            async with Kubelet(short_dir) as kubelet:
                directory, user = settings.kubelet_dir, os.geteuid()
                os.chmod(directory, 0o755)  # noqa: S103  (who may only look is what this is about)
                os.chmod(f"{directory}/kubelet.sock", 0o777)  # noqa: S103
                async with a_daemon(machine, FixedRules(""), settings, pauses=SHORT_PAUSES) as daemon:
                    daemon.rules.resources = FixedRules(RULES).resources
                    os.seteuid(65534)
                    try:
                        daemon.reload()
                        await an_error(daemon.plugins)
                    finally:
                        os.seteuid(user)
                    error = await an_error(daemon.plugins)
                    assert error.startswith(f"cannot make the socket '{directory}/gdp-")
                    await until_allocatable(kubelet, FTDI, 0)

    # grpc keeps two pollers more after the first bind that failed, and no more after the thousandth.
    asyncio.run(asyncio.wait_for(main(), 60))


async def an_error(plugins: Plugins) -> str:
    """What keeps the resource from being registered, as soon as something does."""
    while FTDI not in plugins.registrations or not plugins.registrations[FTDI].progress.error:  # noqa: ASYNC110
        await asyncio.sleep(0)
    return plugins.registrations[FTDI].progress.error


async def test_a_path_too_long_for_a_socket_is_said_with_the_limit(short_dir: Path) -> None:
    # Short enough for kubelet.sock, too long for our own socket beside it.
    directory = short_dir / ("d" * (91 - len(str(short_dir))))
    directory.mkdir()
    (short_dir / "device-plugins").symlink_to(directory)
    settings = replace(settings_below(short_dir), kubelet_dir=str(directory))
    with a_machine() as machine:
        async with Kubelet(short_dir) as kubelet:
            assert kubelet.running
            async with a_daemon(machine, FixedRules(RULES), settings, pauses=SHORT_PAUSES) as daemon:
                assert "has more than 107 bytes" in await an_error(daemon.plugins)


# Reading slowly


def a_long_list(round_: int) -> Offer:
    """More than what the flow control of HTTP/2 lets through unread: a hundred kilobytes."""
    resource = Resource(name=FTDI, match=Match())
    return Offer(resource, tuple(Device(f"{round_:08}_{number:050}") for number in range(1500)))


async def test_a_kubelet_that_stops_reading_gets_the_newest_list_and_none_of_those_between(
    short_dir: Path,
) -> None:
    plugin = Plugin(a_long_list(0), link_dir="/dev/genericdp", coalesce_s=0.0)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((api.device_plugin_handler(plugin),))
    server.add_insecure_port(f"unix:{short_dir}/p.sock")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{short_dir}/p.sock") as channel:
        stream = api.DevicePluginStub(channel).ListAndWatch(api.Empty())
        assert (await stream.read()) is not grpc.aio.EOF
        for round_ in range(1, 201):
            plugin.update(a_long_list(round_))
            await asyncio.sleep(0)
        sent = plugin.messages
        assert sent < 100, "the flow control does not hold"
        for round_ in range(201, 401):
            plugin.update(a_long_list(round_))
            await asyncio.sleep(0)
        assert plugin.messages == sent, "lists pile up"
        newest = ""
        while not newest.startswith("00000400"):
            answer = await stream.read()
            assert isinstance(answer, api.ListAndWatchResponse)
            newest = answer.devices[0].ID
        assert plugin.messages <= sent + 1
        stream.cancel()
    await server.stop(grace=None)


# Long away


@both_generations
async def test_after_more_than_the_kubelets_grace_the_resource_comes_back(
    short_dir: Path, generation: Generation
) -> None:
    clock, settings, rules = ManualClock(), settings_below(short_dir), FixedRules(RULES)
    with a_machine() as machine:
        machine.plug(a_usb_serial(0))
        async with Kubelet(short_dir, generation=generation, clock=clock) as kubelet:
            async with a_daemon(machine, rules, settings):
                await until_allocatable(kubelet, FTDI, 1)
            await kubelet.wait_until(lambda: kubelet.allocatable[FTDI] == 0)
            clock.advance(301)
            kubelet.tick()
            assert kubelet.node_status.now.capacity == {FTDI: 0}
            async with a_daemon(machine, rules, settings):
                await until_allocatable(kubelet, FTDI, 1)
                assert kubelet.node_status.now.capacity == {FTDI: 1}


# Other dialects


async def test_fields_that_a_newer_kubelet_sends_are_tolerated_and_those_that_an_older_one_lacks_too(
    short_dir: Path,
) -> None:
    unknown = b"\xba\x06\x03new"  # field 103, a string

    plugin = Plugin(a_long_list(0), link_dir="/dev/genericdp", coalesce_s=0.0)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((api.device_plugin_handler(plugin),))
    server.add_insecure_port(f"unix:{short_dir}/p.sock")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{short_dir}/p.sock") as channel:
        for name, request in (
            ("GetDevicePluginOptions", b""),
            ("Allocate", b""),
            ("PreStartContainer", b""),
            ("GetPreferredAllocation", b""),
        ):
            call: Call = channel.unary_unary(f"/v1beta1.DevicePlugin/{name}")
            assert await call(request + unknown) == await call(request)
    await server.stop(grace=None)


# A hub


@both_generations
async def test_a_hub_of_thirty_that_goes_and_comes_back_in_another_order_costs_two_messages_and_no_id(
    short_dir: Path, generation: Generation
) -> None:
    names = [(f"S{number}", f"1.{number + 1}") for number in range(30)]
    before = [a_usb_serial(number, serial=each, port=port) for number, (each, port) in enumerate(names)]
    after = [a_usb_serial(29 - number, serial=each, port=port) for number, (each, port) in enumerate(names)]

    settings = settings_below(short_dir)
    with a_machine() as machine:
        machine.plug(*before)
        async with (
            Kubelet(short_dir, generation=generation) as kubelet,
            a_daemon(machine, FixedRules(RULES), settings),
        ):
            await until_allocatable(kubelet, FTDI, 30)
            ids = set(kubelet.devices(FTDI))
            machine.unplug(*before)
            await until_allocatable(kubelet, FTDI, 0)
            machine.plug(*after)
            await until_allocatable(kubelet, FTDI, 30)
            assert set(kubelet.devices(FTDI)) == ids
            assert kubelet.messages(FTDI) == 3
            assert links_in(settings)["ftdi_S0"] == machine.node(after[0])
