"""How long the daemon's loop is busy at a time while it reads the kubelet's checkpoint."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from genericdp.core.allocate import allocate
from genericdp.core.inventory.offer import Node, Offer
from genericdp.core.memory.room import ID_LIMIT
from genericdp.kubelet import checkpoint
from genericdp.kubelet.api.deviceplugin import AllocateResponse
from genericdp.kubelet.responses import add_answer
from genericdp.simulator.devices.checkpoint import PodDevices, render, write
from tests.bench.answers import ALL_TEMPLATES, PROMISED, RULE, crowded, longest
from tests.bench.row import Row

LINKS = "/dev/genericdp"

#: A pod's UID.
UID = "d9b2d63d-a233-4123-847a-7090e5e5b7c1"


async def rows() -> AsyncIterator[Row]:
    """Rows for a node as there are many, and for the most that pods can hold of a resource."""
    most = crowded(RULE + ALL_TEMPLATES)
    for what, offer, each in (
        ("250 containers with 4 ids each", crowded(RULE, 1000), 4),
        (f"{ID_LIMIT:,} containers with all templates", most, 1),
        ("a container with all ids that fit into an env", longest(RULE), ID_LIMIT),
        (f"{ID_LIMIT:,} containers with links of groups", grouped(crowded(RULE)), 1),
        ("a container with half as many ids of groups", grouped(crowded(RULE, ID_LIMIT // 5)), ID_LIMIT),
    ):
        with tempfile.TemporaryDirectory(prefix="gdp-") as directory:
            text = saved(offer, each)
            write(Path(directory), text)
            took, at_once = await felt(lambda: checkpoint.read(directory, LINKS))
        size = f"{len(text) / (1 << 20):.1f} MiB"
        yield Row(f"the kubelet's checkpoint, {size}: {what}", f"{took:.0f} ms")
        yield Row(
            "  its longest step, after which everything else has its turn", f"{at_once:.0f} ms", PROMISED
        )


def grouped(offer: Offer) -> Offer:
    """The same devices with links as those of groups are: they do not follow from the ids."""

    def linked(node: Node) -> Node:
        return replace(node, link=f"{node.link}@if00")

    devices = (replace(each, nodes=tuple(map(linked, each.nodes))) for each in offer.devices)
    return replace(offer, devices=tuple(devices))


def saved(offer: Offer, each: int) -> str:
    """What a kubelet saves of containers that have so many ids each, until there are no more."""
    ids, name = tuple(offer.ids), offer.resource.name
    answers = AllocateResponse().container_responses
    entries = (
        PodDevices(UID, "main", name, {-1: some}, add_answer(answers, allocate(offer, some, LINKS)))
        for some in (ids[n : n + each] for n in range(0, len(ids), each))
    )
    return render(entries, {name: ids})


async def felt(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """The processor time of some work, and that of its longest step, both in milliseconds."""
    best = []
    for _ in range(5):
        longest, began = 0.0, time.process_time()
        task, last = asyncio.ensure_future(work()), began
        while not task.done():
            await asyncio.sleep(0)
            longest, last = max(longest, time.process_time() - last), time.process_time()
        best.append(((last - began) * 1000, longest * 1000))
    return min(best, key=lambda each: each[1])
