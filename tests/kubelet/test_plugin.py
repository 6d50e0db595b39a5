"""The DevicePlugin service, called over a real socket as a kubelet calls it."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import grpc.aio
import pytest

from genericdp.core.allocate import Allocation, DeviceSpec, MountSpec, RefusalReason
from genericdp.core.inventory.offer import Device, Health, Node, Offer
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import EVERY_NODE, PreStart, Resource
from genericdp.errors import GenericdpError
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.plugin import Allocated, Plugin, UsbReset
from genericdp.kubelet.responses import add_answer
from tests.scenes.answering import a_grpc_server

NAME = "example.com/ftdi"


def a_resource(**more: object) -> Resource:
    return Resource(name=NAME, match=Match(), **more)  # type: ignore[arg-type]


def a_ftdi(id_: str = "ftdi_A", *, health: Health = Health.HEALTHY, numa: int | None = None) -> Device:
    node = Node("/dev/ttyUSB0", None, id_, EVERY_NODE, {"devname": "ttyUSB0"}, (), "/sys/x")
    reason = "" if health is Health.HEALTHY else "it is unplugged"
    return Device(id_, health, reason, (node,), (id_,), numa=numa)


def an_offer(*devices: Device, resource: Resource | None = None) -> Offer:
    return Offer(resource or a_resource(), devices)


@asynccontextmanager
async def served(plugin: Plugin, directory: Path) -> AsyncIterator[api.DevicePluginStub]:
    path = directory / "p.sock"
    async with (
        a_grpc_server(path, api.device_plugin_handler(plugin)),
        grpc.aio.insecure_channel(f"unix:{path}") as channel,
    ):
        yield api.DevicePluginStub(channel)


async def no_reset(units: Collection[tuple[int, int]], ids: Collection[str], *, reset: bool) -> None:
    assert not reset, f"nobody asked for a reset of {units} for {ids}"


def a_plugin(
    offer: Offer,
    *,
    coalesce_s: float = 0.0,
    allocated: list[Allocated] | None = None,
    usb_reset: UsbReset = no_reset,
) -> Plugin:
    answers = [] if allocated is None else allocated
    return Plugin(
        offer,
        link_dir="/dev/genericdp",
        coalesce_s=coalesce_s,
        on_allocate=answers.append,
        usb_reset=usb_reset,
    )


def healths(message: api.ListAndWatchResponse) -> dict[str, str]:
    return {device.ID: device.health for device in message.devices}


async def test_a_stream_begins_with_the_whole_list_even_if_it_is_empty(short_dir: Path) -> None:
    async with served(a_plugin(an_offer()), short_dir) as stub:
        stream = stub.ListAndWatch(api.Empty())
        assert healths(await stream.__aiter__().__anext__()) == {}
        stream.cancel()


async def test_every_stream_hears_a_change_also_when_another_died(short_dir: Path) -> None:
    plugin = a_plugin(an_offer(a_ftdi()))
    async with served(plugin, short_dir) as stub:
        dying, living = stub.ListAndWatch(api.Empty()), stub.ListAndWatch(api.Empty())
        dying_messages, messages = dying.__aiter__(), living.__aiter__()
        await dying_messages.__anext__()
        assert healths(await messages.__anext__()) == {"ftdi_A": "Healthy"}
        dying.cancel()
        await plugin.streams.wait_until(lambda: len(plugin.streams) == 1)
        plugin.update(an_offer(a_ftdi(health=Health.UNHEALTHY)))
        assert healths(await messages.__anext__()) == {"ftdi_A": "Unhealthy"}
        living.cancel()
        await plugin.streams.wait_until(lambda: not plugin.streams)


async def test_a_list_is_sent_again_when_the_kubelet_is_to_write_its_checkpoint(short_dir: Path) -> None:
    plugin = a_plugin(an_offer(a_ftdi()))
    async with served(plugin, short_dir) as stub:
        stream = stub.ListAndWatch(api.Empty())
        messages = stream.__aiter__()
        await messages.__anext__()
        plugin.send_again()
        plugin.send_again()
        assert healths(await messages.__anext__()) == {"ftdi_A": "Healthy"}
        plugin.update(an_offer(a_ftdi(health=Health.UNHEALTHY)))
        assert healths(await messages.__anext__()) == {"ftdi_A": "Unhealthy"}
        assert plugin.messages == 3
        stream.cancel()


async def test_nothing_is_sent_when_the_list_is_the_same(short_dir: Path) -> None:
    plugin = a_plugin(an_offer(a_ftdi()))
    async with served(plugin, short_dir) as stub:
        stream = stub.ListAndWatch(api.Empty())
        messages = stream.__aiter__()
        await messages.__anext__()
        moved = Device("ftdi_A", nodes=(), links=("ftdi_A",))
        plugin.update(an_offer(moved))
        plugin.update(an_offer(a_ftdi(), a_ftdi("ftdi_B")))
        assert healths(await messages.__anext__()) == {"ftdi_A": "Healthy", "ftdi_B": "Healthy"}
        assert plugin.messages == 2
        stream.cancel()


async def test_within_the_coalescing_time_nothing_more_is_sent(short_dir: Path) -> None:
    plugin = a_plugin(an_offer(), coalesce_s=3600.0)
    async with served(plugin, short_dir) as stub:
        stream = stub.ListAndWatch(api.Empty())
        await stream.__aiter__().__anext__()
        for number in range(100):
            plugin.update(an_offer(a_ftdi(f"ftdi_{number}")))
            await stub.GetDevicePluginOptions(api.Empty())
        assert plugin.messages == 1
        stream.cancel()


async def test_after_the_coalescing_time_the_last_state_is_sent_once(short_dir: Path) -> None:
    plugin = a_plugin(an_offer(), coalesce_s=0.01)
    async with served(plugin, short_dir) as stub:
        stream = stub.ListAndWatch(api.Empty())
        messages = stream.__aiter__()
        await messages.__anext__()
        for number in range(100):
            plugin.update(an_offer(*(a_ftdi(f"ftdi_{n}") for n in range(number + 1))))
        assert len((await messages.__anext__()).devices) == 100
        assert plugin.messages == 2
        stream.cancel()


async def test_topology_is_set_where_known_and_absent_where_not(short_dir: Path) -> None:
    plugin = a_plugin(an_offer(a_ftdi(numa=0)))
    async with served(plugin, short_dir) as stub:
        stream = stub.ListAndWatch(api.Empty())
        messages = stream.__aiter__()
        (known,) = (await messages.__anext__()).devices
        assert known.topology is not None
        assert [node.ID for node in known.topology.nodes] == [0]
        plugin.update(an_offer(a_ftdi()))
        (unknown,) = (await messages.__anext__()).devices
        assert not unknown.HasField("topology")
        stream.cancel()


def ask_for(*ids: str) -> api.AllocateRequest:
    return api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=list(ids))])


async def test_allocate_answers_with_the_link_as_host_path(short_dir: Path) -> None:
    allocated: list[Allocated] = []
    async with served(a_plugin(an_offer(a_ftdi()), allocated=allocated), short_dir) as stub:
        answer = await stub.Allocate(ask_for("ftdi_A"))
        assert answer == api.AllocateResponse(
            container_responses=[
                api.ContainerAllocateResponse(
                    envs={
                        "GENERICDP_EXAMPLE_COM_FTDI": "/dev/ttyUSB0",
                        "GENERICDP_EXAMPLE_COM_FTDI_IDS": "ftdi_A",
                    },
                    devices=[
                        api.DeviceSpec(
                            container_path="/dev/ttyUSB0",
                            host_path="/dev/genericdp/ftdi_A",
                            permissions="rw",
                        )
                    ],
                )
            ]
        )
        assert await stub.Allocate(ask_for("ftdi_A")) == answer
        assert allocated == [Allocated(NAME, ("ftdi_A",))] * 2


def test_every_field_of_an_answer_is_filled_from_an_allocation() -> None:
    answer = add_answer(
        api.AllocateResponse().container_responses,
        Allocation(
            devices=(DeviceSpec("/dev/a", "/dev/genericdp/a", "rw"),),
            mounts=(MountSpec("/cal", "/srv/cal", read_only=True),),
            envs={"A": "a"},
            annotations={"note": "b"},
            cdi_devices=("vendor.example/x=all",),
        ),
    )
    messages = (answer, answer.devices[0], answer.mounts[0], answer.cdi_devices[0])
    for message in messages:
        filled = {field.name for field, _ in message.ListFields()}
        assert filled == {field.name for field in message.DESCRIPTOR.fields}


async def test_an_unknown_id_is_an_error_that_names_it(short_dir: Path) -> None:
    allocated: list[Allocated] = []
    async with served(a_plugin(an_offer(a_ftdi()), allocated=allocated), short_dir) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Allocate(ask_for("ftdi_Z"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        error = "example.com/ftdi has no device 'ftdi_Z'"
        assert caught.value.details() == error
        assert allocated == [Allocated(NAME, ("ftdi_Z",), error, RefusalReason.UNKNOWN)]


async def test_an_unhealthy_device_is_answered_for_because_an_error_would_end_the_pod(
    short_dir: Path,
) -> None:
    offer = an_offer(a_ftdi(health=Health.UNHEALTHY))
    async with served(a_plugin(offer), short_dir) as stub:
        answer = await stub.Allocate(ask_for("ftdi_A"))
        assert answer.container_responses[0].devices[0].host_path == "/dev/genericdp/ftdi_A"


async def test_an_answer_is_never_empty(short_dir: Path) -> None:
    async with served(a_plugin(an_offer()), short_dir) as stub:
        assert len((await stub.Allocate(api.AllocateRequest())).container_responses) == 1


async def test_a_preferred_allocation_has_exactly_the_size_asked_for(short_dir: Path) -> None:
    offer = an_offer(*(a_ftdi(f"ftdi_{n}") for n in range(4)))
    async with served(a_plugin(offer), short_dir) as stub:
        answer = await stub.GetPreferredAllocation(
            api.PreferredAllocationRequest(
                container_requests=[
                    api.ContainerPreferredAllocationRequest(
                        available_deviceIDs=["ftdi_3", "ftdi_0", "ftdi_2"],
                        must_include_deviceIDs=["ftdi_3"],
                        allocation_size=2,
                    )
                ]
            )
        )
        assert list(answer.container_responses[0].deviceIDs) == ["ftdi_3", "ftdi_0"]


async def test_prestart_is_asked_for_only_where_a_rule_says_so(short_dir: Path) -> None:
    async with served(a_plugin(an_offer()), short_dir) as stub:
        options = await stub.GetDevicePluginOptions(api.Empty())
        assert (options.pre_start_required, options.get_preferred_allocation_available) == (False, True)
    with_prestart = a_resource(prestart=PreStart(1.0))
    assert a_plugin(an_offer(resource=with_prestart)).options().pre_start_required


async def test_prestart_waits_for_the_device_to_come_back(short_dir: Path) -> None:
    resource = a_resource(prestart=PreStart(20.0))
    plugin = a_plugin(an_offer(a_ftdi(health=Health.UNHEALTHY), resource=resource))
    async with served(plugin, short_dir) as stub:
        starting = asyncio.ensure_future(
            stub.PreStartContainer(api.PreStartContainerRequest(devices_ids=["ftdi_A"]))
        )
        await stub.GetDevicePluginOptions(api.Empty())
        assert not starting.done()
        plugin.update(an_offer(a_ftdi(), resource=resource))
        await starting


async def test_prestart_looks_at_the_device_behind_an_id_that_the_rule_no_longer_makes(
    short_dir: Path,
) -> None:
    device = a_ftdi()
    offer = replace(
        an_offer(device, resource=a_resource(prestart=PreStart(20.0))),
        withheld={"ftdi_A.7": replace(device, health=Health.UNHEALTHY)},
    )
    async with served(a_plugin(offer), short_dir) as stub:
        await stub.PreStartContainer(api.PreStartContainerRequest(devices_ids=["ftdi_A.7"]))


async def test_prestart_refuses_with_the_device_and_what_to_do(short_dir: Path) -> None:
    resource = a_resource(prestart=PreStart(0.01))
    offer = an_offer(a_ftdi(health=Health.UNHEALTHY), resource=resource)
    async with served(a_plugin(offer), short_dir) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.PreStartContainer(api.PreStartContainerRequest(devices_ids=["ftdi_A"]))
        assert caught.value.details() == (
            "example.com/ftdi: waited 0.01 s for 'ftdi_A' (it is unplugged); "
            "plug it in again: the container starts as soon as it is back"
        )


async def test_prestart_names_ten_of_many_absent_devices(short_dir: Path) -> None:
    """GRPC would drop a message with all of them, and the pod would get the text 'unknown error'."""
    resource = a_resource(prestart=PreStart(0.01))
    devices = [a_ftdi(f"ftdi_{n}", health=Health.UNHEALTHY) for n in range(20_000)]
    async with served(a_plugin(an_offer(*devices, resource=resource)), short_dir) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.PreStartContainer(
                api.PreStartContainerRequest(devices_ids=[device.id for device in devices])
            )
        ten = ", ".join(f"'ftdi_{n}' (it is unplugged)" for n in range(10))
        assert caught.value.details() == (
            f"example.com/ftdi: waited 0.01 s for {ten}, 19990 more; "
            "plug it in again: the container starts as soon as it is back"
        )


async def test_a_refusal_repeats_no_unknown_id_as_it_came(short_dir: Path) -> None:
    odd = "\x1b[2J\n" + "x" * 200
    resource = a_resource(prestart=PreStart(0.01))
    async with served(a_plugin(an_offer(resource=resource)), short_dir) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.PreStartContainer(api.PreStartContainerRequest(devices_ids=[odd]))
    assert caught.value.details() == (
        f"example.com/ftdi: waited 0.01 s for '_[2J_{'x' * 59}...' (no rule matches it any more); "
        "plug it in again: the container starts as soon as it is back"
    )


async def test_prestart_resets_each_usb_device_once(short_dir: Path) -> None:
    resource = a_resource(prestart=PreStart(20.0, usb_reset=True))
    devices = [replace(a_ftdi(f"ftdi_{n}"), usb=((1, 4),)) for n in range(2)]
    resets: list[tuple[list[tuple[int, int]], list[str]]] = []

    async def reset(units: Collection[tuple[int, int]], ids: Collection[str], *, reset: bool) -> None:
        resets.append(([*units], [*ids]))

    plugin = a_plugin(an_offer(*devices, resource=resource), usb_reset=reset)
    async with served(plugin, short_dir) as stub:
        await stub.PreStartContainer(api.PreStartContainerRequest(devices_ids=["ftdi_0", "ftdi_1"]))
    assert resets == [([(1, 4)], ["ftdi_0", "ftdi_1"])]


@pytest.mark.parametrize(("hint", "ending"), [("allow it", "; allow it"), ("", "")])
async def test_a_reset_that_fails_refuses_the_start_with_what_to_do(
    short_dir: Path, hint: str, ending: str
) -> None:
    async def reset(units: Collection[tuple[int, int]], ids: Collection[str], *, reset: bool) -> None:
        del ids
        raise GenericdpError("cannot reset {}:{}".format(*next(iter(units))), hint=hint)

    resource = a_resource(prestart=PreStart(20.0, usb_reset=True))
    device = replace(a_ftdi(), usb=((1, 4),))
    async with served(a_plugin(an_offer(device, resource=resource), usb_reset=reset), short_dir) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.PreStartContainer(api.PreStartContainerRequest(devices_ids=["ftdi_A"]))
        assert caught.value.details() == f"example.com/ftdi: cannot reset 1:4{ending}"
