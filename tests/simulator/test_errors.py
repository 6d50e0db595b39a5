"""The texts of errors, as a kubelet 1.36.2 and grpc-go print them: people search for them."""

import asyncio
import re
from pathlib import Path
from typing import Any

import grpc
import pytest

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import Container, Kubelet, Pod, Point
from genericdp.simulator.errors import DeviceError
from genericdp.simulator.plugins.dialling import dialled_path
from tests.scenes.running import run
from tests.scenes.scene import LoopTime
from tests.simulator.small_plugin import RESOURCE, SmallPlugin

ONE = Pod("p", [Container("c", limits={RESOURCE: 1})])

#: Go prints the whole endpoint, of which the mutex, the name, the client and the time of the stop are left.
STOPPED = rf"endpoint &\{{\{{\{{\}} \{{0 0\}}\}} {RESOURCE} 0xc[0-9a-f]{{9}} \{{\d{{20}} \d+ 0x[0-9a-f]{{7}}\}} <nil>\}} has been stopped"  # noqa: E501


def failed_allocate(text: str) -> str:
    return f"Pod was rejected: Allocate failed due to {text}, which is unexpected"


async def refusal(plugin: SmallPlugin, kubelet: Kubelet, endpoint: str) -> str | None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await plugin.register(kubelet, endpoint=endpoint)
    assert caught.value.code() is grpc.StatusCode.UNKNOWN
    return caught.value.details()


async def test_allocate_at_a_stopped_endpoint_prints_the_endpoint_as_go_does(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", "b", get_preferred_allocation_available=True).join(kubelet)
        with kubelet.faults.hold(Point.PREFERRED_ANSWERED) as gate:
            admitting = asyncio.create_task(kubelet.admit(ONE))
            await gate.reached()
            plugin.end_stream(0)
            await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
            gate.open()
            pod = await admitting
        prefix, suffix = failed_allocate("|").split("|")
        assert re.fullmatch(re.escape(prefix) + STOPPED + re.escape(suffix), pod.message), pod.message
        await plugin.stop()


async def test_pre_start_at_a_stopped_endpoint_prints_the_endpoint_as_go_does(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)
        pod = await kubelet.admit(ONE)
        await plugin.stop()
        await kubelet.wait_until(lambda: kubelet.streams(RESOURCE) == 0)
        message = (await kubelet.restart_container(pod, "c")).message
        prefix = "device plugin PreStartContainer rpc failed with err: "
        assert re.fullmatch(prefix + STOPPED, message), message


async def test_a_plugin_that_answers_deadline_exceeded_keeps_its_own_words(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a", pre_start_required=True).join(kubelet)

        def slow(_ids: Any, context: Any) -> Any:
            return context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, words)

        plugin.on_pre_start = slow
        for words in ("slow plugin", "Deadline Exceeded", ""):
            pod = await kubelet.admit(ONE)
            assert pod.container("c").message == (
                "device plugin PreStartContainer rpc failed with err: "
                f"rpc error: code = DeadlineExceeded desc = {words}"
            )
            kubelet.delete(pod)
        plugin.on_allocate = slow
        words = "slow plugin"
        assert (await kubelet.admit(ONE)).message == failed_allocate(
            "rpc error: code = DeadlineExceeded desc = slow plugin"
        )
        await plugin.stop()


async def test_every_status_of_a_plugin_has_gos_name_and_the_plugins_words(short_dir: Path) -> None:
    names = [
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    ]
    codes = sorted((code for code in grpc.StatusCode if code.value[0]), key=lambda code: code.value[0])
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        for code, name in zip(codes, names, strict=True):
            plugin.on_allocate = lambda _ids, context, code=code: context.abort(code, "its own words")  # type: ignore[misc]
            assert (await kubelet.admit(ONE)).message == failed_allocate(
                f"rpc error: code = {name} desc = its own words"
            )
        await plugin.stop()


async def test_a_stream_that_ends_during_a_call_closes_the_connection_under_it(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        never = asyncio.Event()

        async def end_the_stream(_ids: list[str], _context: Any) -> None:
            plugin.end_stream(0)
            await never.wait()

        plugin.on_allocate = end_the_stream
        pod = await kubelet.admit(ONE)
        assert pod.message == failed_allocate(
            "rpc error: code = Canceled desc = grpc: the client connection is closing"
        )
        await plugin.stop()


async def test_an_empty_answer_ends_in_the_empty_text_of_the_message(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").join(kubelet)
        plugin.on_allocate = lambda _ids, _context: api.AllocateResponse()
        pod = await kubelet.admit(ONE)
        assert pod.message == failed_allocate("no containers return in allocation response ")
        await plugin.stop()


async def test_an_endpoint_that_is_not_a_url_is_refused_without_dialling(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").serve(kubelet.directory / "x%zz.sock")
        assert await refusal(plugin, kubelet, "x%zz.sock") == (
            f'failed to dial device plugin: parse "passthrough:///{kubelet.directory}/x%zz.sock": '
            'invalid URL escape "%zz"'
        )
        assert plugin.calls == []
        await plugin.stop()


async def test_an_escape_in_an_endpoint_is_decoded_before_dialling(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        plugin = await SmallPlugin("a").serve(kubelet.directory / "x y.sock")
        await plugin.register(kubelet, endpoint="x%20y.sock")
        await kubelet.wait_until(lambda: kubelet.capacity == {RESOURCE: 1})
        await plugin.stop()


@pytest.mark.parametrize(
    ("path", "dialled"),
    [
        ("/d/p.sock", "/d/p.sock"),
        ("/d/a%2Fb.sock", "/d/a/b.sock"),
        ("/d/a+b~_-.sock", "/d/a+b~_-.sock"),
        ("/d/p.sock?x=%zz", "/d/p.sock"),
        ("/d/p.sock#x", "/d/p.sock"),
        ("/d/ü.sock", "/d/ü.sock"),
    ],
)
def test_what_is_dialled_is_the_path_of_the_endpoint_as_a_url(path: str, dialled: str) -> None:
    assert dialled_path(path) == dialled


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/d/%", 'invalid URL escape "%"'),
        ("/d/a%4", 'invalid URL escape "%4"'),
        ("/d/%4gab", 'invalid URL escape "%4g"'),
        ("/d/p#%zz", 'invalid URL escape "%zz"'),
        ("/d/a\tb", "net/url: invalid control character in URL"),
        ("/d/a\x7fb", "net/url: invalid control character in URL"),
    ],
)
def test_what_is_not_a_url_cannot_be_dialled(path: str, why: str) -> None:
    with pytest.raises(DeviceError) as caught:
        dialled_path(path)
    quoted = path.replace("\t", r"\t").replace("\x7f", r"\x7f")
    assert str(caught.value) == f'failed to dial device plugin: parse "passthrough:///{quoted}": {why}'


async def test_the_kubelets_own_socket_as_endpoint_knows_no_such_service(short_dir: Path) -> None:
    async with Kubelet(short_dir) as kubelet:
        assert await refusal(SmallPlugin("a"), kubelet, "kubelet.sock") == (
            "failed to get device plugin options: "
            "rpc error: code = Unimplemented desc = unknown service v1beta1.DevicePlugin"
        )


@pytest.mark.parametrize(
    ("method", "details"),
    [
        ("/v1beta1.Registration/Unregister", "unknown method Unregister for service v1beta1.Registration"),
        ("/v1beta9.Registration/Register", "unknown service v1beta9.Registration"),
    ],
)
async def test_a_server_names_what_it_does_not_know_as_a_go_server_does(
    short_dir: Path, method: str, details: str
) -> None:
    async with (
        Kubelet(short_dir) as kubelet,
        grpc.aio.insecure_channel(f"unix:{kubelet.socket}") as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(method, request_serializer=bytes)(b"")
        assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.UNIMPLEMENTED, details)


def test_an_allocate_of_35_seconds_is_waited_for(short_dir: Path) -> None:
    """As a real kubelet waits, which is declared unhealthy only after five minutes in one call."""

    async def scene() -> None:
        time = LoopTime()
        async with Kubelet(short_dir) as kubelet:
            plugin = await SmallPlugin("a").join(kubelet)
            answer = plugin.on_allocate

            async def slow(ids: list[str], context: Any) -> Any:
                time.advance(35)
                await asyncio.sleep(0.05)
                return answer(ids, context)

            plugin.on_allocate = slow
            assert (await kubelet.admit(ONE)).message == ""
            await plugin.stop()

    run(scene(), timeout_s=600)
