"""How long an answer to the kubelet keeps the daemon's loop busy, for as many ids as a resource may have."""

import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from itertools import cycle
from typing import Any

from genericdp.core.allocate import allocate
from genericdp.core.cdi import ByCdi, cdi_device
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Device, Node, Offer, in_order
from genericdp.core.limits import ENV_LIMIT
from genericdp.core.memory.answered import Answered
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.room import ID_LIMIT
from genericdp.core.memory.saved import Writer
from genericdp.core.rules.resource import Prefer, PreStart
from genericdp.core.rules.settings import AnswerBy, Settings
from genericdp.files.cdi.upkeep import CdiUpkeep
from genericdp.files.link_upkeep import LinkUpkeep
from genericdp.kubelet.api import deviceplugin as api
from genericdp.kubelet.plugin import Plugin
from genericdp.kubelet.responses import list_of
from tests.bench.rebuild import best
from tests.bench.row import Row
from tests.scenes.builders import resources_of

PROMISED = "< 100 ms"

#: The rule of the crowded resource, that of a shared one, and what makes one container path of all that its
#: devices ask for.
RULE = '[[resource]]\nname = "serial"\nmatch = { SUBSYSTEM = "tty" }\n'
SHARED = RULE + "replicas = 1000\n"
ONE_PATH = 'container_path = "/dev/serial"\n'
ALL_TEMPLATES = """kubevirt = true
container_path = ["/dev/serial/{id}", "/dev/serial-{index}"]
devlinks = ["/dev/serial/by-id/*"]
env = { A = "{id}", B = "{link}" }
mounts = [{ host_path = "/srv/{id}", container_path = "/calibration" }]
annotations = { "example.com/id" = "{id}" }
cdi = ["example.com/serial={id}"]
"""


async def rows() -> AsyncIterator[Row]:
    """A row for each call of the kubelet."""
    offer = crowded(RULE)
    yield Row(
        f"ListAndWatch: the list of {ID_LIMIT:,} ids", f"{best(lambda: list_of(offer)):.0f} ms", PROMISED
    )
    for what, each in (("", offer), (" with replicas", crowded(SHARED, ID_LIMIT // 1000))):
        preferring = [(policy, await preferred(each, policy)) for policy in Prefer]
        policy, slowest = max(preferring, key=lambda one: one[1])
        yield Row(
            f"GetPreferredAllocation: {ID_LIMIT // 4:,} of them{what}, slowest policy ({policy})",
            f"{slowest:.0f} ms",
            PROMISED,
        )
    for what, keys in (("", ""), (" under one path", ONE_PATH), (" with all templates", ALL_TEMPLATES)):
        most = longest(RULE + keys)
        took = f"{await allocated(most):.0f} ms"
        yield Row(f"Allocate: {len(most.devices):,}{what}, all that fit into an env", took, PROMISED)
    most = longest(RULE)
    by_cdi = f"{await allocated(most, by_cdi=lambda _: True):.0f} ms"
    yield Row(f"Allocate by CDI: {len(most.devices):,}", by_cdi, PROMISED)
    yield Row("  and to write what that means", f"{described(offer, most.ids):.0f} ms", PROMISED)
    yield Row("  and to remember and save who has them", f"{remembered(offer):.0f} ms", PROMISED)
    changed = f"{remembered(offer, changed=True):.0f} ms"
    yield Row("  the same when a change of one device is not saved yet", changed, PROMISED)
    yield Row("PreStartContainer: all of them", f"{await started(offer):.0f} ms", PROMISED)


def longest(rule: str) -> Offer:
    """As many devices as a container can have: the kernel limits the envs that say which they are."""
    few = crowded(rule, 1000)
    envs = allocate(few, few.ids, "/dev/genericdp").envs
    # Most have numbers of four digits.
    longest_env = max(len(value) for value in envs.values()) / 1000 + 1
    return crowded(rule, int((ENV_LIMIT - 100) / longest_env))


def remembered(offer: Offer, *, changed: bool = False) -> float:
    """What Allocate of all devices adds in milliseconds, besides the disk."""
    devices = {device.id: Remembered(offer.resource.name, device) for device in offer.devices}
    id_, known = next(iter(devices.items()))
    others = {**devices, id_: replace(known, listed=False)} if changed else devices
    memories = cycle([Memory(devices), Memory(others)])
    writer = Writer()
    writer.dump(next(memories))
    ids = tuple(offer.ids)
    return best(lambda: writer.dump(replace(next(memories), held=give({}, offer, ids, 0.0))))


def crowded(rule: str, count: int = ID_LIMIT) -> Offer:
    """A resource with many devices, 30 at a hub."""
    (resource,) = resources_of(rule)
    (table,) = resource.nodes
    devices = [
        Device(
            id=f"serial_S{n}",
            nodes=(
                Node(
                    f"/dev/ttyUSB{n}",
                    None,
                    f"serial_S{n}",
                    table,
                    {"devname": f"ttyUSB{n}"},
                    (f"/dev/serial/by-id/S{n}",) if table.devlinks else (),
                    "",
                ),
            ),
            usb=((n // 100, n % 100),),
            links=(f"serial_S{n}",),
            numa=n % 2,
            port=f"c usb2 {n // 30}.{n}",
            hub=f"c usb2 {n // 30}",
        )
        for n in range(count)
    ]
    return Offer(resource, in_order(devices))


async def preferred(offer: Offer, policy: Prefer) -> float:
    offer = replace(offer, resource=replace(offer.resource, prefer=policy))
    request = api.PreferredAllocationRequest(
        container_requests=[
            api.ContainerPreferredAllocationRequest(
                available_deviceIDs=list(offer.ids), allocation_size=ID_LIMIT // 4
            )
        ]
    )
    return await answering(offer, lambda plugin, context: plugin.GetPreferredAllocation(request, context))


async def allocated(offer: Offer, by_cdi: ByCdi = lambda _: False) -> float:
    request = api.AllocateRequest(
        container_requests=[api.ContainerAllocateRequest(devices_ids=list(offer.ids))]
    ).SerializeToString()

    async def answer(plugin: Plugin, context: Any) -> bytes:
        """With reading the request and writing the answer, which may have several MiB."""
        response = await plugin.Allocate(api.AllocateRequest.FromString(request), context)
        return response.SerializeToString()

    return await answering(offer, answer, by_cdi)


def described(offer: Offer, ids: Iterable[str]) -> float:
    """What it adds in milliseconds to write the CDI device of these ids into the file with one of each.

    All links are looked at afterwards.
    """
    inventory, device = Inventory({offer.resource.name: offer}), cdi_device(offer, ids)
    return min(_described(inventory, {device.name: device}) for _ in range(5))


def _described(inventory: Inventory, answered: Answered) -> float:
    with tempfile.TemporaryDirectory(prefix="gdp-") as directory:
        links = LinkUpkeep(f"{directory}/links", lambda: None, lambda _: None)
        settings = Settings(cdi_dir=f"{directory}/cdi", answer=AnswerBy.CDI)
        upkeep = CdiUpkeep(settings, lambda: None, dead=links.dead)
        with links.watching(), upkeep.serving():
            links.apply(inventory.links())
            upkeep.apply(inventory, {})
            began = time.process_time()
            upkeep.see_answered(inventory, answered)
            return (time.process_time() - began) * 1000


async def started(offer: Offer) -> float:
    offer = replace(offer, resource=replace(offer.resource, prestart=PreStart(1.0)))
    request = api.PreStartContainerRequest(devices_ids=list(offer.ids))
    return await answering(offer, lambda plugin, context: plugin.PreStartContainer(request, context))


async def answering(
    offer: Offer, ask: Callable[[Plugin, Any], Awaitable[object]], by_cdi: ByCdi = lambda _: False
) -> float:
    """The processor time of the answer, in milliseconds; a refusal is not an answer."""
    plugin = Plugin(offer, link_dir="/dev/genericdp", coalesce_s=0.0, by_cdi=by_cdi)
    took = []
    for _ in range(5):
        began = time.process_time()
        await ask(plugin, None)
        took.append((time.process_time() - began) * 1000)
    return min(took)
