"""Registration by a socket below plugins_registry."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import grpc

from genericdp.kubelet.api import pluginregistration
from genericdp.simulator import Kubelet, ManualClock
from tests.scenes.waiting import idle
from tests.simulator.small_plugin import RESOURCE, SmallPlugin


async def test_a_socket_in_the_registry_is_registered_and_notified(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        (kubelet.plugins_registry / "deep").mkdir()
        plugin = await SmallPlugin("a").serve(kubelet.plugins_registry / "deep" / "p.sock")
        await kubelet.reconcile()
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 1})
        assert plugin.status == [(True, "")]
        await kubelet.reconcile()
        assert len(plugin.status) == 1
        await plugin.stop()


async def test_hidden_sockets_are_ignored(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").serve(kubelet.plugins_registry / ".p.sock")
        await kubelet.reconcile()
        assert plugin.calls == []
        await plugin.stop()


async def test_a_plugin_with_an_invalid_name_is_notified_and_retried_with_a_doubling_back_off(
    short_dir: Path,
) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a", resource="foo").serve(kubelet.plugins_registry / "p.sock")
        for seconds in (0.0, 0.4, 0.2, 0.9, 0.2):
            clock.advance(seconds)
            await kubelet.reconcile()
        error = (
            "RegisterPlugin error -- plugin validation failed with err: "
            'invalid name of device plugin socket: the ResourceName "foo" is invalid'
        )
        assert plugin.status == [(False, error)] * 3
        await plugin.stop()


async def test_a_plugin_with_an_unsupported_version_is_notified(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").serve(kubelet.plugins_registry / "p.sock")
        plugin.info = pluginregistration.PluginInfo(
            type="DevicePlugin", name=RESOURCE, supported_versions=["v2", "v3"]
        )
        await kubelet.reconcile()
        ((registered, error),) = plugin.status
        assert not registered
        assert error.startswith("RegisterPlugin error -- plugin validation failed with err: ")
        assert kubelet.watcher_errors == [error]
        await plugin.stop()


async def test_after_a_lost_stream_nothing_happens_until_the_socket_is_created_again(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        path = kubelet.plugins_registry / "p.sock"
        plugin = await SmallPlugin("a").serve(path)
        await kubelet.reconcile()
        await kubelet.wait_until(lambda: kubelet.messages(RESOURCE) == 1)
        plugin.end_stream(0)
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 0})
        clock.advance(1000)
        await kubelet.reconcile()
        assert kubelet.streams(RESOURCE) == 0
        await plugin.stop()
        path.unlink(missing_ok=True)
        await kubelet.reconcile()
        again = await SmallPlugin("a").serve(path)
        await kubelet.reconcile()
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 1})
        await again.stop()


async def test_a_removed_socket_disconnects_whichever_plugin_is_current(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        path = kubelet.plugins_registry / "p.sock"
        watched = await SmallPlugin("a").serve(path)
        await kubelet.reconcile()
        await kubelet.wait_until(lambda: kubelet.messages(RESOURCE) == 1)
        classic = await SmallPlugin("a").serve(kubelet.directory / "c.sock")
        await classic.register(kubelet, endpoint="c.sock")
        await kubelet.wait_until(lambda: kubelet.messages(RESOURCE) == 2)
        path.unlink()
        await kubelet.reconcile()
        await classic.wait_until(lambda: classic.cancelled == 1)
        assert kubelet.allocatable == {RESOURCE: 0}
        await watched.stop()
        await classic.stop()


async def test_a_restarted_kubelet_finds_the_socket_by_itself(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").serve(kubelet.plugins_registry / "p.sock")
        await kubelet.reconcile()
        await kubelet.restart()
        await kubelet.reconcile()
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 1})
        assert plugin.status == [(True, "")] * 2
        await plugin.stop()


async def test_get_info_has_a_deadline_of_one_second(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = SmallPlugin("a")
        never = asyncio.Event()

        async def hang(request: object, context: object) -> pluginregistration.PluginInfo:
            del request, context
            await never.wait()
            return pluginregistration.PluginInfo()

        plugin.GetInfo = hang  # type: ignore[method-assign]
        await plugin.serve(kubelet.plugins_registry / "p.sock")
        await kubelet.reconcile()
        (error,) = kubelet.watcher_errors
        assert error == (
            "RegisterPlugin error -- failed to get plugin info using RPC GetInfo "
            f"at socket {kubelet.plugins_registry}/p.sock, err: "
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
        )
        await plugin.stop()


async def test_a_plugin_of_another_type_is_told_its_socket(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        path = kubelet.plugins_registry / "w4.sock"
        plugin = await SmallPlugin("a").serve(path)
        plugin.info = pluginregistration.PluginInfo(
            type="Strange", name=RESOURCE, supported_versions=["v1beta1"]
        )
        await kubelet.reconcile()
        error = f"RegisterPlugin error -- no handler registered for plugin type: Strange at socket {path}"
        assert plugin.status == [(False, error)]
        assert kubelet.watcher_errors == [error]
        await plugin.stop()


async def test_a_plugin_whose_options_fail_is_told_that_its_registration_failed(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").serve(kubelet.plugins_registry / "p.sock")
        plugin.on_options = lambda context: context.abort(grpc.StatusCode.UNKNOWN, "boom")
        await kubelet.reconcile()
        error = (
            "RegisterPlugin error -- plugin registration failed with err: "
            "failed to get device plugin options: rpc error: code = Unknown desc = boom"
        )
        assert plugin.status == [(False, error)]
        assert kubelet.watcher_errors == [error]
        await plugin.stop()


async def test_a_socket_on_which_nobody_listens_is_dialled_for_ten_seconds(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        path = kubelet.plugins_registry / "p.sock"
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
        reconciling = asyncio.create_task(kubelet.reconcile())
        await idle()
        clock.advance(10)
        await reconciling
        (error,) = kubelet.watcher_errors
        assert error == (
            f"RegisterPlugin error -- dial failed at socket {path}, "
            f"err: failed to dial socket {path}, err: context deadline exceeded"
        )


async def test_a_plugin_that_does_not_take_the_notification_is_reported(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        path = kubelet.plugins_registry / "p.sock"
        plugin = SmallPlugin("a")

        async def refuse(request: object, context: Any) -> pluginregistration.RegistrationStatusResponse:
            del request
            await context.abort(grpc.StatusCode.UNAVAILABLE, "no time")
            raise AssertionError("abort raises")

        plugin.NotifyRegistrationStatus = refuse  # type: ignore[method-assign]
        await plugin.serve(path)
        await kubelet.reconcile()
        (error,) = kubelet.watcher_errors
        assert error == (
            f"RegisterPlugin error -- failed to send registration status at socket {path}, "
            "err: : rpc error: code = Unavailable desc = no time"
        )
        await plugin.stop()
