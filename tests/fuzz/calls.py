"""Attacks by calls: anything that a client of a plugin's socket can send."""

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import grpc
import grpc.aio
from hypothesis import strategies as st

from genericdp.core.inventory.offer import Device, Health, Offer
from genericdp.core.rules.resource import Prefer, PreStart
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.plugin import Plugin
from tests.bench.answers import ALL_TEMPLATES, RULE, crowded
from tests.fuzz.grammar import odd_texts
from tests.fuzz.target import Target
from tests.scenes.answering import a_grpc_server
from tests.scenes.running import run

#: A method whose request and answer are bytes.
Method: TypeAlias = "grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]"

METHODS = (
    "GetDevicePluginOptions",
    "GetPreferredAllocation",
    "Allocate",
    "PreStartContainer",
    "NoSuchMethod",
)

#: How a call may end, beside an answer; gRPC ends one of bytes that are no message in another way.
REFUSALS = {
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.INVALID_ARGUMENT,  # more than a kubelet asks for
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,  # more than 4 MiB
}

#: gRPC sends a text of its own instead of a longer one.
LONGEST_TEXT = 16 << 10


@dataclass(frozen=True)
class Ids:
    """Ids of a request: these, after the first `own` of the plugin and so many that it does not know."""

    own: int
    unknown: int
    odd: tuple[str, ...]
    times: int

    def of(self, offer: Offer) -> list[str]:
        """Written out for an offer."""
        known = islice(offer.ids, self.own)
        return [*known, *(f"serial_X{n}" for n in range(self.unknown)), *self.odd] * self.times


@dataclass(frozen=True)
class Call:
    """A call with one container request for each element, or with bytes."""

    method: str
    containers: tuple[tuple[Ids, Ids, int], ...]
    raw: bytes | None = None

    def request(self, offer: Offer) -> bytes:
        """The bytes of the request."""
        if self.raw is not None:
            return self.raw
        match self.method:
            case "Allocate":
                asked = [
                    api.ContainerAllocateRequest(devices_ids=ids.of(offer)) for ids, _, _ in self.containers
                ]
                return api.AllocateRequest(container_requests=asked).SerializeToString()
            case "GetPreferredAllocation":
                preferred = [
                    api.ContainerPreferredAllocationRequest(
                        available_deviceIDs=available.of(offer),
                        must_include_deviceIDs=must.of(offer),
                        allocation_size=size,
                    )
                    for available, must, size in self.containers
                ]
                return api.PreferredAllocationRequest(container_requests=preferred).SerializeToString()
            case _:
                ids = [id_ for each, _, _ in self.containers for id_ in each.of(offer)]
                return api.PreStartContainerRequest(devices_ids=ids).SerializeToString()


numbers = st.sampled_from([0, 1, 1, 2, 5, 500, 20_000])
ids = st.builds(
    Ids,
    numbers,
    st.sampled_from([0, 0, 0, 1, 3, 20_000]),
    st.lists(odd_texts | st.sampled_from(["x" * 100_000, "1\x1b" * 1_000_000]), max_size=2).map(tuple),
    st.sampled_from([1, 1, 1, 2, 3]),
)
NONE = Ids(0, 0, (), 1)
sizes = st.sampled_from([0, 1, 2, 3, 20_000, -1, -(1 << 31), (1 << 31) - 1])
calls = st.builds(
    Call,
    st.sampled_from(METHODS),
    st.lists(st.tuples(ids, ids, sizes), max_size=3).map(tuple) | st.just(((NONE, NONE, 1),) * 10_000),
    st.none() | st.none() | st.none() | st.binary(max_size=200),
)


@cache
def offers() -> Mapping[str, Offer]:
    """Offers of all sizes: name -> offer. Of the last, some devices are not there."""
    large = crowded(RULE)
    few = large.devices[:5]
    gone = [replace(each, nodes=(), health=Health.UNHEALTHY, reason="it is unplugged") for each in few[:2]]
    shared = replace(large.resource, replicas=10)
    return {
        "none": Offer(large.resource),
        "few": Offer(crowded(RULE + ALL_TEMPLATES).resource, few),
        "gone": Offer(large.resource, (*gone, *few[2:], Device("serial_Z"))),
        "shared": Offer(shared, few),
        "20,000": large,
    }


def rpcs(attack: tuple[str, Prefer, Sequence[Call]]) -> None:
    """Odd and huge calls of every method of the device plugin API."""
    size, policy, asked = attack
    offer = offers()[size]
    resource = replace(offer.resource, prefer=policy, prestart=PreStart(wait_s=0.02))
    run(_ask(replace(offer, resource=resource), asked))


async def _ask(offer: Offer, asked: Sequence[Call]) -> None:
    plugin = Plugin(offer, link_dir="/dev/genericdp", coalesce_s=0.0)
    with tempfile.TemporaryDirectory(prefix="gdp-", dir="/tmp") as directory:
        path = Path(directory) / "p.sock"
        options = [("grpc.max_receive_message_length", -1)]
        async with (
            a_grpc_server(path, api.device_plugin_handler(plugin)),
            grpc.aio.insecure_channel(f"unix:{path}", options=options) as channel,
        ):
            await asyncio.gather(*(_call(channel, offer, each) for each in asked))
            stub = api.DevicePluginStub(channel)
            assert (await stub.GetDevicePluginOptions(api.Empty())).pre_start_required
            stream = stub.ListAndWatch(api.Empty())
            listed = await stream.read()
            assert isinstance(listed, api.ListAndWatchResponse)
            assert [device.ID for device in listed.devices] == list(offer.ids)
            stream.cancel()
        assert plugin.starting == 0


async def _call(channel: grpc.aio.Channel, offer: Offer, asked: Call) -> None:
    method: Method = channel.unary_unary(f"/v1beta1.DevicePlugin/{asked.method}")
    try:
        answer = await method(asked.request(offer))
    except grpc.aio.AioRpcError as error:
        allowed = REFUSALS if asked.raw is None else {*REFUSALS, grpc.StatusCode.UNKNOWN}
        assert error.code() in allowed, f"{error.code()}: {error.details()}"
        text = error.details() or ""
        assert len(text) <= LONGEST_TEXT
        assert text.isprintable()
        return
    if asked.raw is None and asked.method in _LAWS:
        _LAWS[asked.method](answer, offer, asked)


def _allocated(answer: bytes, offer: Offer, asked: Call) -> None:
    responses = api.AllocateResponse.FromString(answer).container_responses
    assert len(responses) == max(1, len(asked.containers))
    for (ids_, _, _), response in zip(asked.containers, responses, strict=False):
        assert {*ids_.of(offer)} <= offer.ids.keys()
        assert bool(response.devices) == bool(ids_.of(offer))


def _preferred(answer: bytes, offer: Offer, asked: Call) -> None:
    responses = api.PreferredAllocationResponse.FromString(answer).container_responses
    assert len(responses) == len(asked.containers)
    for (available, must, size), response in zip(asked.containers, responses, strict=True):
        chosen, wanted = list(response.deviceIDs), {*must.of(offer)}
        free = {*available.of(offer)}
        assert len(chosen) == len({*chosen}) == min(max(size, 0), len(free | wanted))
        assert {*chosen} <= free | wanted
        assert {*chosen} >= wanted or len(wanted) > size


_LAWS: Mapping[str, Callable[[bytes, Offer, Call], None]] = {
    "Allocate": _allocated,
    "GetPreferredAllocation": _preferred,
}

TARGETS = (
    Target(
        rpcs,
        st.tuples(
            st.sampled_from(["none", "few", "few", "gone", "shared", "20,000"]),
            st.sampled_from(list(Prefer)),
            st.lists(calls, min_size=1, max_size=4),
        ),
        few=8,
        cpu_s=8.0,
        mebibytes=256.0,
    ),
)
