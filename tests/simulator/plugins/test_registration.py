"""Registration: names, sockets, options, and which client of a resource is current."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import grpc
import grpc.aio
import pytest

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import Container, Generation, Kubelet, ManualClock, Pod, Point
from genericdp.simulator.devices.checkpoint import NAME
from genericdp.simulator.plugins.validation import registration_error
from tests.simulator.small_plugin import RESOURCE, SmallPlugin

ACCEPTED = [
    "example/foo",
    "1.2.3.4/x",
    "example.com/Foo_bar.baz-1",
    "kubernetes.io.example.com/x",
    f"x.io/{'a' * 63}",
    f"{'.'.join(['a' * 60] * 4)}/x",
]
REJECTED = [
    "foo",
    "Example.com/foo",
    "a/b/c",
    "/foo",
    "x/",
    "notkubernetes.io/foo",
    "x.kubernetes.io/foo",
    "requests.x.io/y",
    "ex_ample.com/foo",
    "x.io/-foo",
    "x.io/a@1",
    f"x.io/{'a' * 64}",
    f"{'.'.join(['a' * 60] * 4)}.a/x",
    "",
]
NOT_SUPPORTED = (
    'requested API version "v1beta2" is not supported by kubelet. Supported version is ["v1beta1"]'
)


async def refusal(plugin: SmallPlugin, kubelet: Kubelet, **how: str) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await plugin.register(kubelet, **how)  # type: ignore[arg-type]
    return caught.value.code(), caught.value.details() or ""


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_qualified_name_with_a_domain_is_accepted(name: str) -> None:
    assert registration_error("v1beta1", name) is None


@pytest.mark.parametrize("name", REJECTED)
def test_every_other_name_is_rejected(name: str) -> None:
    assert registration_error("v1beta1", name) == f'the ResourceName "{name}" is invalid'


def test_a_domain_may_have_244_characters_because_a_quota_needs_nine() -> None:
    assert registration_error("v1beta1", f"{'.'.join(['a' * 60] * 4)}/x") is None
    assert len(".".join(["a" * 60] * 4)) == 243
    assert registration_error("v1beta1", f"{'.'.join(['a' * 60] * 3 + ['a' * 61])}/x") is None
    assert registration_error("v1beta1", f"{'.'.join(['a' * 60] * 3 + ['a' * 62])}/x") is not None


async def test_refusals_have_the_code_unknown_and_the_kubelets_text(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = SmallPlugin()
        assert await refusal(plugin, kubelet, version="v1beta2") == (
            grpc.StatusCode.UNKNOWN,
            NOT_SUPPORTED,
        )
        plugin.resource = "foo"
        assert await refusal(plugin, kubelet) == (
            grpc.StatusCode.UNKNOWN,
            'the ResourceName "foo" is invalid',
        )
        assert [attempt.answer for attempt in kubelet.registrations] == [
            NOT_SUPPORTED,
            'the ResourceName "foo" is invalid',
        ]


async def test_a_registered_plugin_has_one_stream_and_its_devices_count(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b").join(kubelet)
        assert kubelet.capacity == {RESOURCE: 2}
        assert kubelet.streams(RESOURCE) == kubelet.connections(RESOURCE) == 1
        assert plugin.called("ListAndWatch") == [None], "the stream has no deadline"
        assert [attempt.answer for attempt in kubelet.registrations] == [""]
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)


async def test_the_kubelet_asks_for_options_before_it_answers_register(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin().serve(kubelet.directory / "p.sock")
        with kubelet.faults.hold(Point.ANSWER) as gate:
            registering = asyncio.create_task(plugin.register(kubelet))
            await gate.reached()
            assert plugin.called("GetDevicePluginOptions") == [None]
            assert not registering.done()
            assert kubelet.registrations[0].answer is None
            gate.open()
            await registering
        await plugin.stop()


async def test_an_error_of_get_device_plugin_options_fails_the_registration(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin().serve(kubelet.directory / "p.sock")
        plugin.on_options = lambda context: context.abort(grpc.StatusCode.UNKNOWN, "boom")
        assert await refusal(plugin, kubelet) == (
            grpc.StatusCode.UNKNOWN,
            "failed to get device plugin options: rpc error: code = Unknown desc = boom",
        )
        await plugin.stop()


async def test_the_kubelet_dials_a_socket_that_does_not_answer_for_ten_seconds(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        registering = asyncio.create_task(refusal(SmallPlugin(), kubelet, endpoint="missing.sock"))
        await kubelet.wait_until(lambda: kubelet.connections(RESOURCE) == 1)
        clock.advance(9.9)
        assert kubelet.registrations[0].answer is None
        clock.advance(0.2)
        assert await registering == (
            grpc.StatusCode.UNKNOWN,
            "failed to dial device plugin: context deadline exceeded",
        )


async def test_the_callers_own_deadline_ends_the_dialling(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await SmallPlugin().register(kubelet, timeout_s=0.1)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await kubelet.wait_until(lambda: kubelet.connections(RESOURCE) == 0)
        assert kubelet.registrations[0].answer == "the caller gave up"


async def test_a_socket_that_appears_while_the_kubelet_dials_is_found(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = SmallPlugin("a")
        registering = asyncio.create_task(plugin.register(kubelet))
        await kubelet.wait_until(lambda: kubelet.connections(RESOURCE) == 1)
        await plugin.serve(kubelet.directory / "p.sock")
        await registering
        await kubelet.wait_until(lambda: kubelet.capacity == {RESOURCE: 1})
        await plugin.stop()


@pytest.mark.parametrize(
    ("endpoint", "where"),
    [("sub/p.sock", "sub/p.sock"), ("../x.sock", "../x.sock"), ("/abs.sock", "abs.sock")],
)
async def test_the_endpoint_is_joined_below_the_directory(short_dir: Path, endpoint: str, where: str) -> None:
    async with Kubelet(short_dir) as kubelet:
        path = kubelet.directory / where
        path.parent.mkdir(exist_ok=True)
        plugin = await SmallPlugin("a").serve(path)
        await plugin.register(kubelet, endpoint=endpoint)
        await plugin.stop()


async def test_a_second_registration_on_one_socket_gives_two_streams_and_the_last_list_wins(
    short_dir: Path,
) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        await plugin.register(kubelet)
        await kubelet.wait_until(lambda: kubelet.messages(RESOURCE) == 2)
        assert kubelet.streams(RESOURCE) == kubelet.connections(RESOURCE) == 2
        plugin.streams[0].put_nowait([])
        await kubelet.wait_until(lambda: kubelet.capacity == {RESOURCE: 0})
        plugin.streams[1].put_nowait(plugin.devices)
        await kubelet.wait_until(lambda: kubelet.capacity == {RESOURCE: 1})
        await plugin.stop()


async def test_up_to_1_36_the_end_of_the_old_stream_disconnects_the_new_client(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        await plugin.register(kubelet)
        await kubelet.wait_until(lambda: kubelet.messages(RESOURCE) == 2)
        plugin.end_stream(0)
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        await plugin.wait_until(lambda: plugin.cancelled == 1)
        assert kubelet.capacity == {RESOURCE: 1}
        assert kubelet.allocatable == {RESOURCE: 0}
        assert kubelet.connections(RESOURCE) == 1, "nobody closes the connection whose stream ended"
        await plugin.stop()


async def test_up_to_1_36_an_old_plugin_that_stops_takes_the_new_one_with_it(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        old = await SmallPlugin("a").join(kubelet, "old.sock")
        new = await SmallPlugin("a").serve(kubelet.directory / "new.sock")
        await new.register(kubelet, endpoint="new.sock")
        await kubelet.wait_until(lambda: kubelet.messages(RESOURCE) == 2)
        await old.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        assert kubelet.allocatable == {RESOURCE: 0}
        await new.wait_until(lambda: new.cancelled == 1)
        assert kubelet.socket.exists()
        await new.stop()


async def test_a_failed_registration_makes_the_kubelet_forget_the_living_plugin(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        registering = asyncio.create_task(refusal(plugin, kubelet, endpoint="missing.sock"))
        await kubelet.wait_until(lambda: kubelet.connections(RESOURCE) == 2)
        clock.advance(11)
        await registering
        await plugin.send(kubelet, "a", "b")
        assert kubelet.allocatable == {RESOURCE: 2}, "lists of the forgotten stream still count"
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        assert kubelet.allocatable == {RESOURCE: 2}, "nobody marks them unhealthy"


async def test_from_1_37_a_connected_socket_is_refused(short_dir: Path) -> None:
    async with Kubelet(short_dir, generation=Generation.NEWER) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        code, details = await refusal(plugin, kubelet)
        assert code is grpc.StatusCode.UNKNOWN
        assert details.startswith("device plugin already connected")
        assert kubelet.allocatable == {RESOURCE: 1}
        await plugin.stop()


async def test_from_1_37_a_survivor_takes_over_and_devices_stay_healthy(short_dir: Path) -> None:
    async with Kubelet(short_dir, generation=Generation.NEWER) as kubelet:
        old = await SmallPlugin("a").join(kubelet, "old.sock")
        new = await SmallPlugin("a", "b").serve(kubelet.directory / "new.sock")
        await new.register(kubelet, endpoint="new.sock")
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 2})
        await new.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 1)
        assert kubelet.allocatable == {RESOURCE: 1}
        await old.send(kubelet, "a", "b", "c")
        assert kubelet.allocatable == {RESOURCE: 3}
        await old.stop()
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 0})


async def test_from_1_37_the_end_of_an_older_client_leaves_the_primary_alone(short_dir: Path) -> None:
    async with Kubelet(short_dir, generation=Generation.NEWER) as kubelet:
        old = await SmallPlugin("a").join(kubelet, "old.sock")
        new = await SmallPlugin("a", "b").serve(kubelet.directory / "new.sock")
        await new.register(kubelet, endpoint="new.sock")
        await kubelet.wait_until(lambda: kubelet.allocatable == {RESOURCE: 2})
        await old.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 1)
        assert kubelet.allocatable == {RESOURCE: 2}
        assert new.cancelled == 0
        await new.stop()


async def test_at_its_start_the_kubelet_removes_every_socket_and_nothing_else(short_dir: Path) -> None:
    directory = short_dir / "device-plugins"
    (directory / "sub").mkdir(parents=True)
    for name in ("old.sock", "kubelet.sock", "sub/inner.sock"):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(directory / name))
    (directory / "link.sock").symlink_to("sub/inner.sock")
    (directory / "dangling").symlink_to("nowhere")
    (directory / "regular").write_text("")
    (directory / NAME).write_text("not a checkpoint")

    async with Kubelet(short_dir) as kubelet:
        assert sorted(path.name for path in directory.iterdir()) == [
            "dangling",
            "kubelet.sock",
            NAME,
            "regular",
            "sub",
        ]
        assert (directory / "sub/inner.sock").exists()
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(kubelet.socket))


async def test_a_stopped_kubelet_leaves_its_socket_which_then_refuses_connections(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        for _ in range(5):
            await kubelet.stop()
            assert stat.S_ISSOCK(os.stat(kubelet.socket).st_mode)
            with socket.socket(socket.AF_UNIX) as probe, pytest.raises(ConnectionRefusedError):
                probe.connect(str(kubelet.socket))
            await kubelet.start()
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(kubelet.socket))


async def test_a_restarted_kubelet_knows_the_resource_but_none_of_its_devices(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        await kubelet.restart()
        await plugin.wait_until(lambda: plugin.cancelled == 1)
        assert kubelet.capacity == {RESOURCE: 0}
        assert not (kubelet.directory / "p.sock").exists(), "the plugin's socket was removed"
        await plugin.stop()
        again = await SmallPlugin("a").join(kubelet, "again.sock")
        assert kubelet.capacity == {RESOURCE: 1}
        await again.stop()


async def test_only_the_exact_word_healthy_is_healthy_and_ids_are_not_validated(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin(api.Device(ID="", health="healthy")).join(kubelet)
        assert kubelet.capacity == {RESOURCE: 1}
        assert kubelet.allocatable == {RESOURCE: 0}
        await plugin.stop()


async def test_devices_of_a_forgotten_plugin_stay_allocatable_but_allocating_them_fails(
    short_dir: Path,
) -> None:
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
