"""Plugins that are no longer served: they give nothing, and nothing is kept of them."""

import asyncio
import gc
import weakref
from itertools import pairwise
from pathlib import Path

import grpc.aio
import pytest

from genericdp.core.allocate import RefusalReason
from genericdp.core.inventory.inventory import Inventory, diff
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.plugin import Allocated
from genericdp.kubelet.plugins import Plugins
from genericdp.kubelet.registration import STARTS_AT_ONCE, Pauses, Phase, Progress
from genericdp.simulator import Kubelet
from tests.scenes.answering import a_grpc_server
from tests.scenes.builders import a_usb_serial
from tests.scenes.inventories import inventory_of
from tests.scenes.kubelets import Context, FakeKubelet
from tests.scenes.rules import FTDI, FTDI_RULE
from tests.scenes.service import settings_below
from tests.scenes.waiting import idle, until


async def test_nothing_is_kept_of_a_plugin_whose_resource_has_left(short_dir: Path) -> None:
    plugins, offered = Plugins(settings_below(short_dir)), inventory_of(FTDI_RULE)
    async with plugins.running():
        plugins.apply(offered, diff(Inventory(), offered))
        plugin = weakref.ref(plugins.plugins[FTDI])
        plugins.apply(Inventory(), diff(offered, Inventory()))
        await until(lambda: gc.collect() >= 0 and plugin() is None, timeout_s=5.0)


async def test_nothing_is_kept_of_the_plugins_that_a_resource_had_before(short_dir: Path) -> None:
    plugins = Plugins(settings_below(short_dir))
    without, with_ = inventory_of(FTDI_RULE), inventory_of(FTDI_RULE + "prestart = {}\n")
    async with plugins.running():
        plugins.apply(without, diff(Inventory(), without))
        earlier = []
        for before, after in ((without, with_), (with_, without), (without, with_)):
            earlier.append(weakref.ref(plugins.plugins[FTDI]))
            plugins.apply(after, diff(before, after))
        await until(lambda: gc.collect() >= 0 and not any(each() for each in earlier), timeout_s=5.0)


async def test_nothing_is_kept_of_a_call_that_was_cancelled(short_dir: Path) -> None:
    """It keeps its connection open, and garbage is collected seldom."""
    called = asyncio.Event()

    async def hang(_: api.RegisterRequest, __: Context) -> None:
        called.set()
        await asyncio.Event().wait()

    settings, offered = settings_below(short_dir), inventory_of(FTDI_RULE, a_usb_serial(0))
    plugins = Plugins(settings)
    directory = Path(settings.kubelet_dir)
    directory.mkdir(parents=True)
    gc.collect()
    gc.disable()
    try:
        async with FakeKubelet(directory, never, hang).serving(), plugins.running():
            plugins.apply(offered, diff(Inventory(), offered))
            await called.wait()
            plugins.apply(Inventory(), diff(offered, Inventory()))
            await until(
                lambda: not any(isinstance(each, grpc.aio.UnaryUnaryCall) for each in gc.get_objects())
            )
    finally:
        gc.enable()


async def test_nothing_is_called_registered_while_its_server_ends(short_dir: Path) -> None:
    """That lasts as long as a peer that does not read."""
    settings, offered = settings_below(short_dir), inventory_of(FTDI_RULE, a_usb_serial(0))
    seen: list[tuple[Phase, int]] = []

    def see(progress: Progress) -> None:
        sockets = Path(settings.kubelet_dir).glob("gdp-*.sock")
        seen.append((progress.phase, len([*sockets])))

    plugins = Plugins(settings, on_progress=see)
    async with Kubelet(short_dir) as kubelet, plugins.running():
        plugins.apply(offered, diff(Inventory(), offered))
        await until(lambda: Phase.REGISTERED in dict(seen))
        await kubelet.stop()
        await until(lambda: seen[-1][0] is not Phase.REGISTERED)
        after = [each for each in seen if each[0] is Phase.WAITING]
        assert after == [(Phase.WAITING, 1)]


async def test_a_kubelet_may_follow_before_it_has_answered_register(short_dir: Path) -> None:
    """Whoever ends because nobody follows has to wait for it (`service.dead_mount`)."""
    called, answers = asyncio.Event(), asyncio.Event()

    async def think(_: api.RegisterRequest, context: Context) -> None:
        called.set()
        await answers.wait()
        await context.abort(grpc.StatusCode.UNKNOWN, "no")

    settings, offered = settings_below(short_dir), inventory_of(FTDI_RULE, a_usb_serial(0))
    plugins = Plugins(settings)
    directory = Path(settings.kubelet_dir)
    directory.mkdir(parents=True)
    async with FakeKubelet(directory, never, think).serving(), plugins.running():
        plugins.apply(offered, diff(Inventory(), offered))
        assert not plugins.may_be_followed()
        await called.wait()
        assert (plugins.registered, plugins.may_be_followed()) == (0, True)
        answers.set()
        await until(lambda: not plugins.may_be_followed())


async def test_a_stop_in_the_moment_in_which_a_pause_ends_is_not_lost(short_dir: Path) -> None:
    """The end of a pause is a cancellation of the task, too, which asyncio takes back."""

    async def refuse(_: api.RegisterRequest, context: Context) -> None:
        await context.abort(grpc.StatusCode.UNKNOWN, "no")

    settings = settings_below(short_dir)
    offered = inventory_of(FTDI_RULE, a_usb_serial(0))
    plugins = Plugins(settings, pauses=Pauses(first=0.0, longest=0.0))
    directory = Path(settings.kubelet_dir)
    directory.mkdir(parents=True)
    async with FakeKubelet(directory, never, refuse).serving(), asyncio.timeout(10.0):
        async with plugins.running():
            plugins.apply(offered, diff(Inventory(), offered))
            (task,) = (each for each in asyncio.all_tasks() if each.get_name() == f"registration of {FTDI}")
            await until(task.cancelling)


@pytest.mark.parametrize("begins", [True, False], ids=["it had begun to wait", "it had not begun"])
async def test_a_resource_waits_for_each_of_its_earlier_registrations(short_dir: Path, begins: bool) -> None:
    """The stream of the first one may still be open when the second one, which waited for it, has ended."""

    async def follow(_: api.RegisterRequest, plugin: api.DevicePluginStub) -> None:
        async for _list in plugin.ListAndWatch(api.Empty()):
            pass

    settings = settings_below(short_dir)
    offered, nothing = inventory_of(FTDI_RULE, a_usb_serial(0)), Inventory()
    plugins = Plugins(settings)
    directory = Path(settings.kubelet_dir)
    directory.mkdir(parents=True)
    async with FakeKubelet(directory, follow).serving(), asyncio.timeout(10.0), plugins.running():
        plugins.apply(offered, diff(nothing, offered))
        await until(lambda: plugins.registered == 1)
        with plugins.plugins[FTDI].streams.opened("one that does not end"):
            for _ in range(2):
                plugins.apply(nothing, diff(offered, nothing))
                plugins.apply(offered, diff(nothing, offered))
                if begins:
                    await idle()
            await idle()
            assert plugins.registrations[FTDI].tries == 0
        await until(lambda: plugins.registered == 1)


async def never(_: api.RegisterRequest, __: api.DevicePluginStub) -> None:
    raise AssertionError("it was refused")


@pytest.mark.parametrize("rules", ["", FTDI_RULE + "prestart = {}\n"], ids=["no rule", "registered again"])
async def test_a_call_that_begins_after_its_plugin_was_told_to_stop_gets_nothing(
    short_dir: Path, rules: str
) -> None:
    """The server ends a moment later, and nobody would remember what was given."""
    allocated: list[Allocated] = []
    plugins = Plugins(settings_below(short_dir), on_allocate=allocated.append)
    before, after = inventory_of(FTDI_RULE, a_usb_serial(0)), inventory_of(rules, a_usb_serial(0))
    (id_,) = before.offers[FTDI].ids
    request = api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=[id_])])
    async with plugins.running():
        plugins.apply(before, diff(Inventory(), before))
        path, plugin = short_dir / "p.sock", plugins.plugins[FTDI]
        async with (
            a_grpc_server(path, api.device_plugin_handler(plugin)),
            grpc.aio.insecure_channel(f"unix:{path}") as channel,
        ):
            stub = api.DevicePluginStub(channel)
            assert (await stub.Allocate(request)).container_responses
            plugins.apply(after, diff(before, after))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Allocate(request)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    error = "example.com/ftdi is no longer offered, or is being registered again; create the pod again"
    assert caught.value.details() == error
    assert allocated == [
        Allocated(FTDI, (id_,)),
        Allocated(FTDI, (id_,), error, RefusalReason.STOPPED),
    ]


async def test_servers_start_a_few_at_a_time_so_that_everything_else_has_its_turn(short_dir: Path) -> None:
    settings = settings_below(short_dir)
    rules = (FTDI_RULE.replace('"ftdi"', f'"ftdi{n}"') for n in range(4 * STARTS_AT_ONCE))
    offered, plugins = inventory_of("".join(rules)), Plugins(settings)
    directory = Path(settings.kubelet_dir)
    async with Kubelet(short_dir) as kubelet, plugins.running():
        plugins.apply(offered, diff(Inventory(), offered))
        started = [0]
        while started[-1] < len(offered.offers):
            await asyncio.sleep(0)
            started.append(len([*directory.glob("gdp-*.sock")]))
        await kubelet.wait_until(lambda: len(kubelet.capacity) == len(offered.offers))
    assert max(after - before for before, after in pairwise(started)) <= STARTS_AT_ONCE
