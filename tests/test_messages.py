"""The messages that Python declares are those of proto/, on every supported protobuf."""
# ruff: noqa: N802, ARG002  # spelling and signatures are the API's

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import google.protobuf
import grpc
import grpc.aio
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import Message

from genericdp.cri import api as runtime
from genericdp.kubelet.api import deviceplugin, pluginregistration, podresources
from genericdp.messages import private_channel
from tests.scenes.answering import a_grpc_server
from tests.scenes.waiting import PATIENCE_S
from tests.vm.inside import cri

ROOT = Path(__file__).resolve().parents[1]
APIS: dict[str, tuple[str, tuple[ModuleType, ...]]] = {
    "deviceplugin/v1beta1/api.proto": ("v1beta1", (deviceplugin,)),
    "podresources/v1/api.proto": ("v1", (podresources,)),
    "pluginregistration/v1/api.proto": ("pluginregistration", (pluginregistration,)),
    "runtime/v1/api.proto": ("runtime.v1", (runtime, cri)),
}
FLOOR = os.environ.get("GENERICDP_FLOOR_PYTHON", "")


def compiled(proto: str) -> Any:
    """The file descriptor that protoc makes of a file below proto/."""
    with tempfile.TemporaryDirectory(prefix="gdp") as directory:
        out = Path(directory, "set")
        subprocess.run(
            [
                sys.executable,
                "-m",
                "grpc_tools.protoc",
                f"-I{ROOT / 'proto'}",
                f"--descriptor_set_out={out}",
                proto,
            ],
            check=True,
        )
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(proto)


def plain(descriptor: Any) -> descriptor_pb2.DescriptorProto:
    """A message descriptor without what depends on who made it."""
    copy = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(copy)
    for message in (copy, *copy.nested_type):
        for field in message.field:
            field.ClearField("json_name")
    return copy


def numbers(descriptor: Any) -> dict[str, int]:
    """The fields of a message with their numbers."""
    return {field.name: field.number for field in descriptor.fields}


def declared(package: str, modules: tuple[ModuleType, ...]) -> dict[str, type[Message]]:
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Message) and value is not Message
        if value.DESCRIPTOR.file.package == package
    }


@pytest.mark.parametrize("proto", APIS)
def test_the_declared_messages_are_exactly_those_of_the_proto_file(proto: str) -> None:
    expected = compiled(proto).message_types_by_name
    messages = declared(*APIS[proto])
    assert sorted(messages) == sorted(expected)
    for name, descriptor in expected.items():
        assert numbers(messages[name].DESCRIPTOR) == numbers(descriptor)  # a failure names the field
        assert plain(messages[name].DESCRIPTOR) == plain(descriptor)


@pytest.mark.parametrize("proto", APIS)
def test_the_declared_enums_are_exactly_those_of_the_proto_file(proto: str) -> None:
    _, modules = APIS[proto]
    enums = {
        name: {member.name: member.value for member in value}
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, IntEnum) and value is not IntEnum
    }
    assert enums == {
        name: {value.name: value.number for value in descriptor.values}
        for name, descriptor in compiled(proto).enum_types_by_name.items()
    }


@pytest.mark.parametrize("proto", APIS)
def test_the_declared_methods_are_exactly_those_of_the_proto_file(proto: str) -> None:
    _, modules = APIS[proto]
    methods = [
        value for module in modules for value in vars(module).values() if type(value).__name__ == "Method"
    ]
    assert sorted(
        (m.path, m.request.DESCRIPTOR.name, m.response.DESCRIPTOR.name, m.streams) for m in methods
    ) == sorted(
        (
            f"/{service.full_name}/{method.name}",
            method.input_type.name,
            method.output_type.name,
            method.server_streaming,
        )
        for service in compiled(proto).services_by_name.values()
        for method in service.methods
    )


def a_container_response() -> deviceplugin.ContainerAllocateResponse:
    return deviceplugin.ContainerAllocateResponse(
        envs={"GENERICDP_FTDI": "/dev/ttyUSB0"},
        mounts=[deviceplugin.Mount(container_path="/c", host_path="/h", read_only=True)],
        devices=[deviceplugin.DeviceSpec(container_path="/dev/a", host_path="/dev/b", permissions="rw")],
        annotations={"note": "ü"},
        cdi_devices=[deviceplugin.CDIDevice(name="vendor.example/class=name")],
    )


def test_a_message_survives_the_wire() -> None:
    response = a_container_response()
    assert deviceplugin.ContainerAllocateResponse.FromString(response.SerializeToString()) == response


def test_the_bytes_are_those_of_the_field_numbers() -> None:
    device = deviceplugin.Device(
        ID="a",
        health=deviceplugin.HEALTHY,
        topology=deviceplugin.TopologyInfo(nodes=[deviceplugin.NUMANode(ID=1)]),
    )
    assert device.SerializeToString() == b"\x0a\x01a\x12\x07Healthy\x1a\x04\x0a\x02\x08\x01"


def test_an_absent_topology_is_not_an_empty_one() -> None:
    assert not deviceplugin.Device(ID="a", topology=None).HasField("topology")
    assert deviceplugin.Device(ID="a", topology=deviceplugin.TopologyInfo()).HasField("topology")


def test_an_unknown_field_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no .?devicesIDs"):
        deviceplugin.ContainerAllocateRequest(devicesIDs=["a"])  # type: ignore[call-arg]


class Plugin:
    """Answers each call of the device plugin API with something to recognise."""

    async def GetDevicePluginOptions(
        self, request: deviceplugin.Empty, context: Any
    ) -> deviceplugin.DevicePluginOptions:
        return deviceplugin.DevicePluginOptions(pre_start_required=True)

    async def ListAndWatch(
        self, request: deviceplugin.Empty, context: Any
    ) -> AsyncIterator[deviceplugin.ListAndWatchResponse]:
        yield deviceplugin.ListAndWatchResponse(devices=[deviceplugin.Device(ID="a")])
        yield deviceplugin.ListAndWatchResponse()

    async def GetPreferredAllocation(
        self, request: deviceplugin.PreferredAllocationRequest, context: Any
    ) -> deviceplugin.PreferredAllocationResponse:
        ids = request.container_requests[0].available_deviceIDs
        return deviceplugin.PreferredAllocationResponse(
            container_responses=[deviceplugin.ContainerPreferredAllocationResponse(deviceIDs=ids)]
        )

    async def Allocate(
        self, request: deviceplugin.AllocateRequest, context: Any
    ) -> deviceplugin.AllocateResponse:
        return deviceplugin.AllocateResponse(container_responses=[a_container_response()])

    async def PreStartContainer(
        self, request: deviceplugin.PreStartContainerRequest, context: Any
    ) -> deviceplugin.PreStartContainerResponse:
        return deviceplugin.PreStartContainerResponse()


async def test_all_five_calls_of_a_plugin_pass_through_handler_and_stub(short_dir: Path) -> None:
    path = short_dir / "p.sock"
    async with (
        a_grpc_server(path, deviceplugin.device_plugin_handler(Plugin())),
        grpc.aio.insecure_channel(f"unix:{path}") as channel,
    ):
        stub = deviceplugin.DevicePluginStub(channel)
        options = await stub.GetDevicePluginOptions(deviceplugin.Empty())
        assert options.pre_start_required
        lists = [[d.ID for d in r.devices] async for r in stub.ListAndWatch(deviceplugin.Empty())]
        assert lists == [["a"], []]
        wish = deviceplugin.ContainerPreferredAllocationRequest(available_deviceIDs=["x"], allocation_size=1)
        preferred = await stub.GetPreferredAllocation(
            deviceplugin.PreferredAllocationRequest(container_requests=[wish])
        )
        assert list(preferred.container_responses[0].deviceIDs) == ["x"]
        allocated = await stub.Allocate(deviceplugin.AllocateRequest())
        assert allocated.container_responses[0] == a_container_response()
        await stub.PreStartContainer(deviceplugin.PreStartContainerRequest(devices_ids=["a"]))


#: HTTP/2 frames (RFC 9113, 6.5 and 6.8): what a server begins with, and what it says when it ends.
SETTINGS = bytes.fromhex("000000 04 00 00000000")
GOAWAY = bytes.fromhex("000008 07 00 00000000 00000000 00000002")


async def test_a_call_that_meets_a_connection_which_its_server_is_ending_fails(short_dir: Path) -> None:
    """By default, gRPC repeats every other such call on that connection until the deadline."""

    async def end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SETTINGS + GOAWAY)
        writer.close()

    path = short_dir / "s.sock"
    async with await asyncio.start_unix_server(end, path):
        for _ in range(20):
            async with private_channel(f"unix:{path}") as channel:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await podresources.LIST.unary(channel)(
                        podresources.ListPodResourcesRequest(), timeout=PATIENCE_S
                    )
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


OTHER_GENERATION = """
import sys, grpc, google.protobuf
from genericdp.kubelet.api import deviceplugin
from genericdp.kubelet.api import podresources
from genericdp.kubelet.api import pluginregistration
from genericdp.cri import api
from tests.vm.inside import cri
data = bytes.fromhex(sys.argv[1])
message = deviceplugin.ContainerAllocateResponse.FromString(data)
again = deviceplugin.ContainerAllocateResponse(
    envs=dict(message.envs), mounts=list(message.mounts), devices=list(message.devices),
    annotations=dict(message.annotations), cdi_devices=list(message.cdi_devices))
assert again == message
assert podresources.ClaimResource(share_id="").HasField("share_id")
assert not podresources.ClaimResource().HasField("share_id")
assert pluginregistration.PluginInfo(supported_versions=["v1beta1"]).supported_versions == ["v1beta1"]
running = api.ContainerStateValue(state=api.ContainerState.CONTAINER_RUNNING)
listed = api.ContainerFilter(state=running, label_selector={"a": "b"})
assert listed.SerializeToString().hex() == "1202080122060a0161120162"
config = cri.ContainerConfig(CDI_devices=[cri.CDIDevice(name="a")])
assert config.SerializeToString().hex() == "8a01030a0161"
print(google.protobuf.__version__, again.SerializeToString(deterministic=True).hex())
"""


def test_the_other_protobuf_generation_reads_and_writes_the_same_bytes() -> None:
    assert FLOOR, (
        "set GENERICDP_FLOOR_PYTHON to a Python with grpcio 1.51.1 and protobuf 4.21.12 (make test does)"
    )
    data = a_container_response().SerializeToString(deterministic=True).hex()
    done = subprocess.run(
        [FLOOR, "-c", OTHER_GENERATION, data], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.stderr == ""
    version, seen = done.stdout.split()
    assert version != google.protobuf.__version__, "that is the same protobuf"
    assert seen == data
