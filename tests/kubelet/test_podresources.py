"""Who holds what: asked of a kubelet that is late, old, busy, silent or very full."""

import asyncio
import socket
from pathlib import Path

import grpc
import grpc.aio
import pytest

from genericdp.core.status.holdings import Holder
from genericdp.kubelet import deadline, podresources
from genericdp.kubelet.api import podresources as api
from genericdp.simulator import Container, Kubelet, ManualClock, Pod
from tests.scenes.answering import a_grpc_server
from tests.scenes.builders import a_usb_serial
from tests.scenes.rules import FTDI
from tests.scenes.scene import a_scene


class Lister:
    """A PodResources service that says what a test wants."""

    def __init__(self, answer: api.ListPodResourcesResponse) -> None:
        self.answer = answer

    async def List(  # noqa: N802  (the proto's spelling)
        self, request: api.ListPodResourcesRequest, context: object
    ) -> api.ListPodResourcesResponse:
        del request, context
        return self.answer

    async def GetAllocatableResources(self, request: object, context: object) -> object:  # noqa: N802
        raise NotImplementedError

    async def Get(self, request: object, context: object) -> object:  # noqa: N802
        raise NotImplementedError


async def test_a_held_device_comes_with_its_pod_and_container(short_dir: Path) -> None:
    async with a_scene(short_dir, a_usb_serial(0)) as scene:
        await scene.until_allocatable(1)
        path = str(scene.kubelet.pod_resources_socket)
        assert await podresources.ask(path) == {}
        pod = await scene.kubelet.admit(Pod("app", [Container("main", limits={FTDI: 1})], namespace="lab"))
        assert await podresources.ask(path) == {(FTDI, "ftdi_A50285BI"): (Holder("lab", "app", "main"),)}
        scene.kubelet.finish(pod)
        assert await podresources.ask(path) == {}


async def test_a_socket_that_is_not_there_says_nothing_and_one_that_comes_late_does(short_dir: Path) -> None:
    path = short_dir / "kubelet.sock"
    assert await podresources.ask(str(path)) is None
    handler = api.pod_resources_lister_handler(Lister(api.ListPodResourcesResponse()))  # type: ignore[arg-type]
    async with a_grpc_server(path, handler):
        assert await podresources.ask(str(path)) == {}


async def test_a_kubelet_without_the_api_says_nothing(short_dir: Path) -> None:
    async with a_grpc_server(short_dir / "kubelet.sock"):
        assert await podresources.ask(str(short_dir / "kubelet.sock")) is None


async def test_one_that_is_asked_by_too_many_says_nothing(short_dir: Path) -> None:
    clock = ManualClock()
    async with Kubelet(short_dir, clock=clock) as kubelet:
        path = str(kubelet.pod_resources_socket)
        async with grpc.aio.insecure_channel(
            f"unix:{path}", options=(("grpc.default_authority", "localhost"),)
        ) as channel:
            lister = api.PodResourcesListerStub(channel)
            for _ in range(10):
                await lister.List(api.ListPodResourcesRequest())
        assert await podresources.ask(path) is None
        clock.advance(1)
        assert await podresources.ask(path) == {}


async def test_one_that_accepts_and_never_answers_is_not_waited_for(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(podresources, "_TIMEOUT_S", 0.05)

    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(short_dir / "kubelet.sock"))
        silent.listen()
        assert await podresources.ask(str(short_dir / "kubelet.sock")) is None


def saying(answer: bytes) -> grpc.GenericRpcHandler:
    """A PodResources service that says these bytes."""

    async def say(request: bytes, context: object) -> bytes:
        del request, context
        return answer

    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "List": grpc.unary_unary_rpc_method_handler(say)
    }
    return grpc.method_handlers_generic_handler("v1.PodResourcesLister", methods)


async def test_names_that_are_not_utf_8_hide_no_others(short_dir: Path) -> None:
    """The kubelet passes on what other plugins say: gogo/protobuf does not check it."""
    devices = [
        api.ContainerDevices(resource_name="other.io/thing", device_ids=["a??"]),
        api.ContainerDevices(resource_name=FTDI, device_ids=["ftdi_A50285BI"]),
    ]
    container = api.ContainerResources(name="main", devices=devices)
    pod = api.PodResources(name="app", namespace="lab", containers=[container])
    answer = api.ListPodResourcesResponse(pod_resources=[pod]).SerializeToString()
    async with a_grpc_server(short_dir / "kubelet.sock", saying(answer.replace(b"a??", b"a\xff\xfe"))):
        holder = Holder("lab", "app", "main")
        assert await podresources.ask(str(short_dir / "kubelet.sock")) == {
            ("other.io/thing", "a\\xff\\xfe"): (holder,),
            (FTDI, "ftdi_A50285BI"): (holder,),
        }


async def test_an_answer_that_cannot_be_decoded_says_nothing(short_dir: Path) -> None:
    async with a_grpc_server(short_dir / "kubelet.sock", saying(b"\xff")):
        assert await podresources.ask(str(short_dir / "kubelet.sock")) is None


async def test_an_answer_of_a_very_full_node_is_read(short_dir: Path) -> None:
    ids = [f"{number:0200}" for number in range(30_000)]
    answer = api.ListPodResourcesResponse(
        pod_resources=[
            api.PodResources(
                name="app",
                namespace="lab",
                containers=[
                    api.ContainerResources(
                        name="main",
                        devices=[api.ContainerDevices(resource_name=FTDI, device_ids=ids)],
                    )
                ],
            )
        ]
    )
    assert len(answer.SerializeToString()) > 4 << 20

    handler = api.pod_resources_lister_handler(Lister(answer))  # type: ignore[arg-type]
    async with a_grpc_server(short_dir / "kubelet.sock", handler):
        told = await podresources.ask(str(short_dir / "kubelet.sock"))
        assert told is not None
        assert len(told) == 30_000


def with_pods(*pods: api.PodResources) -> bytes:
    return api.ListPodResourcesResponse(pod_resources=pods).SerializeToString()


def with_devices(ids: int, devices: int = 1, containers: int = 1) -> api.PodResources:
    device = api.ContainerDevices(resource_name=FTDI, device_ids=["x"] * ids)
    container = api.ContainerResources(name="main", devices=[device] * devices)
    return api.PodResources(name="app", namespace="lab", containers=[container] * containers)


@pytest.mark.parametrize(
    ("possible", "impossible"),
    [
        ([with_devices(1, 1, 1)] * 4, [with_devices(1, 1, 1)] * 5),
        ([api.PodResources(name="app")] * 16, [api.PodResources(name="app")] * 17),
        ([with_devices(0, 0, 15)], [with_devices(0, 0, 16)]),
        ([with_devices(0, 14)], [with_devices(0, 15)]),
        ([with_devices(13)], [with_devices(14)]),
    ],
    ids=["all", "pods", "containers", "devices", "ids"],
)
async def test_an_answer_with_more_entries_than_a_node_can_have_says_nothing(
    short_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    possible: list[api.PodResources],
    impossible: list[api.PodResources],
) -> None:
    monkeypatch.setattr(podresources, "_MOST_ENTRIES", 16)
    for pods, is_read in ((possible, True), (impossible, False)):
        async with a_grpc_server(short_dir / "kubelet.sock", saying(with_pods(*pods))):
            answer = await podresources.listed(str(short_dir / "kubelet.sock"))
            assert (answer is not None) is is_read


async def test_everything_else_has_its_turn_after_each_pod_that_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def count() -> None:
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    turns: list[None] = []
    monkeypatch.setattr(deadline, "TURN_S", -1.0)
    other = asyncio.ensure_future(count())
    await podresources.taken(podresources.ListedPods.FromString(with_pods(*[with_devices(1)] * 100)))
    other.cancel()
    assert len(turns) == 100
