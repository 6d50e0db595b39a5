"""Requests that no kubelet sends: they are refused before anything is done with them."""

from pathlib import Path

import grpc
import grpc.aio
import pytest

from genericdp.core.rules.resource import PreStart
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.plugin import Allocated
from genericdp.kubelet.requests import CONTAINER_LIMIT, COUNT_LIMIT, LENGTH_LIMIT, excess
from tests.kubelet.test_plugin import a_ftdi, a_plugin, a_resource, an_offer, served


@pytest.mark.parametrize(
    ("containers", "why"),
    [
        ([], ""),
        ([("ftdi_A",)], ""),
        ([("x" * LENGTH_LIMIT,)], ""),
        (
            [("x" * 4_000_000,)],
            "the request names a device id of 4000000 characters, and the limit is 256",
        ),
        ([("x",) * (COUNT_LIMIT // 2)] * 2, ""),
        (
            [("x",) * (COUNT_LIMIT // 2), ("x",) * COUNT_LIMIT],
            "the request names 150000 device ids, and the limit is 100000",
        ),
        ([()] * CONTAINER_LIMIT, ""),
        ([()] * 2_000_000, "the request is for 2000000 containers, and the limit is 16"),
    ],
    ids=[
        "nothing",
        "usual",
        "longest",
        "too long",
        "most",
        "too many",
        "most containers",
        "too many containers",
    ],
)
def test_a_request_beyond_what_a_kubelet_sends_says_so(containers: list[tuple[str, ...]], why: str) -> None:
    requests = {ids: api.ContainerAllocateRequest(devices_ids=ids) for ids in {*containers}}
    asked = [requests[ids] for ids in containers]
    assert excess(asked, "devices_ids") == why


async def test_every_method_refuses_a_giant_id_and_nothing_is_recorded(short_dir: Path) -> None:
    allocated: list[Allocated] = []
    resource = a_resource(prestart=PreStart(wait_s=60.0))
    plugin = a_plugin(an_offer(a_ftdi(), resource=resource), allocated=allocated)
    giant = ["\x1b" * 4_000_000]
    async with served(plugin, short_dir) as stub:
        for call in (
            stub.Allocate(
                api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=giant)])
            ),
            stub.GetPreferredAllocation(
                api.PreferredAllocationRequest(
                    container_requests=[
                        api.ContainerPreferredAllocationRequest(
                            available_deviceIDs=["ftdi_A"], must_include_deviceIDs=giant
                        )
                    ]
                )
            ),
            stub.PreStartContainer(api.PreStartContainerRequest(devices_ids=giant)),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
            assert (refused.value.code(), refused.value.details()) == (
                grpc.StatusCode.INVALID_ARGUMENT,
                "the request names a device id of 4000000 characters, and the limit is 256",
            )
    assert allocated == []
