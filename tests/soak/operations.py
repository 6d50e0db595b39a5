"""What happens to the node of a soak, at random.

The rules of this file:

* An operation returns without waiting for the daemon, so that the next one meets it at work.
* All can be undone: `Node.rest` brings back what they changed.
"""

import asyncio
import os
import random
import signal
from collections.abc import Awaitable, Callable

from genericdp.simulator import ContainerState
from genericdp.status.protocol import question
from tests.soak import rules
from tests.soak.node import Node
from tests.udev.hotplug import NULL, trigger

#: The most pods, strangers and clients at a time. The daemon itself serves 16 clients.
MOST_PODS = 12
MOST_STRANGERS = 6
MOST_CLIENTS = 20

_GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

Operation = Callable[[Node, random.Random], Awaitable[object]]


async def console_comes_or_goes(node: Node, rng: random.Random) -> None:
    console = rng.choice(node.consoles)
    (node.unplug if console in node.plugged else node.plug)(console)


async def cable_is_loose(node: Node, rng: random.Random) -> None:
    console = rng.choice(node.consoles)
    for _ in range(rng.randint(2, 10)):
        node.unplug(console)
        node.plug(console)


async def stranger_comes(node: Node, rng: random.Random) -> None:
    if len(node.taps) < MOST_STRANGERS:
        await node.plug_stranger()


async def stranger_goes(node: Node, rng: random.Random) -> None:
    if node.taps:
        await node.unplug_stranger(rng.randrange(len(node.taps)))


async def device_changes(node: Node, rng: random.Random) -> None:
    trigger(NULL, times=rng.randint(1, 200))


async def udevd_is_slow(node: Node, rng: random.Random) -> None:
    node.udevd.pause()
    await console_comes_or_goes(node, rng)
    await asyncio.sleep(rng.uniform(0.0, 0.3))
    node.udevd.resume()


async def udevd_restarts(node: Node, rng: random.Random) -> None:
    await asyncio.to_thread(node.udevd.kill)
    node.udevd_was_killed = True
    await asyncio.to_thread(node.udevd.restart)


async def rules_are_edited(node: Node, rng: random.Random) -> None:
    node.write(rules.MAIN, rules.edited(rng, node.nodes), in_place=rng.random() < 0.3)


async def rules_are_broken(node: Node, rng: random.Random) -> None:
    name = rng.choice([rules.MAIN, _further(rng)])
    node.write(name, rng.choice(rules.MISTAKES), in_place=rng.random() < 0.3)


async def rules_are_added(node: Node, rng: random.Random) -> None:
    node.write(_further(rng), rules.further(rng))


async def rules_are_removed(node: Node, rng: random.Random) -> None:
    (node.root / "rules.d" / _further(rng)).unlink(missing_ok=True)


async def reload_is_asked_for(node: Node, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 3)):
        os.kill(node.process.pid, signal.SIGHUP)


async def pod_comes(node: Node, rng: random.Random) -> None:
    if len(node.pods) < MOST_PODS:
        resource = rng.choice([*node.kubelet.capacity, *rules.AT_REST])
        await node.admit(resource, rng.randint(1, 3))


async def pods_come_at_the_same_time(node: Node, rng: random.Random) -> None:
    if len(node.pods) < MOST_PODS:
        await asyncio.gather(*(pod_comes(node, rng) for _ in range(3)))


async def pod_goes(node: Node, rng: random.Random) -> None:
    if node.pods:
        node.delete(rng.choice(node.pods))


async def container_restarts(node: Node, rng: random.Random) -> None:
    running = [pod for pod in node.pods if pod.container("main").state is ContainerState.RUNNING]
    if running:
        await node.kubelet.restart_container(rng.choice(running), "main")


async def kubelet_restarts(node: Node, rng: random.Random) -> None:
    await (node.kubelet.crash() if rng.random() < 0.5 else node.kubelet.stop())
    if rng.random() < 0.5:
        await asyncio.sleep(rng.uniform(0.0, 0.5))
    await node.kubelet.start()


async def kubelet_is_upgraded(node: Node, rng: random.Random) -> None:
    await node.upgrade()


async def streams_end(node: Node, rng: random.Random) -> None:
    node.kubelet.faults.end_streams(rng.choice(rules.AT_REST))


async def kubelet_refuses(node: Node, rng: random.Random) -> None:
    node.kubelet.faults.refuse_registrations("not now")
    await kubelet_restarts(node, rng)
    await asyncio.sleep(rng.uniform(0.0, 0.3))
    node.kubelet.faults.refuse_registrations(None)


async def client_comes(node: Node, rng: random.Random) -> None:
    if len(node.clients) < MOST_CLIENTS:
        address, ask = rng.choice(
            [
                (node.control, question("events")),
                (node.control, question("status")),
                (node.control, b""),
                (node.control, b"\xff\x00 nonsense\n"),
                (node.metrics, _GET),
                (node.metrics, b""),
                (node.metrics, b"nonsense\r\n\r\n"),
            ]
        )
        await node.connect(address, ask)


async def client_goes(node: Node, rng: random.Random) -> None:
    if node.clients:
        await node.clients.pop(rng.randrange(len(node.clients))).aclose()


#: How often each happens, in relation to the others.
OPERATIONS: dict[Operation, int] = {
    console_comes_or_goes: 20,
    cable_is_loose: 5,
    stranger_comes: 6,
    stranger_goes: 6,
    device_changes: 4,
    udevd_is_slow: 2,
    udevd_restarts: 1,
    rules_are_edited: 4,
    rules_are_broken: 3,
    rules_are_added: 5,
    rules_are_removed: 5,
    reload_is_asked_for: 3,
    pod_comes: 12,
    pods_come_at_the_same_time: 2,
    pod_goes: 12,
    container_restarts: 4,
    kubelet_restarts: 1,
    kubelet_is_upgraded: 1,
    streams_end: 3,
    kubelet_refuses: 1,
    client_comes: 8,
    client_goes: 8,
}


def chosen(rng: random.Random) -> Operation:
    """The next one."""
    (operation,) = rng.choices(list(OPERATIONS), list(OPERATIONS.values()))
    return operation


def _further(rng: random.Random) -> str:
    return f"6{rng.randrange(4)}-further.toml"
