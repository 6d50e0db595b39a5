"""Container runtimes beside the kubelet's: Docker's containerd, or one that the kubelet had before."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from genericdp.simulator import CONTAINERD, Pod, Runtime, WallClock
from genericdp.simulator.node.container_runtime import ContainerRuntime
from genericdp.simulator.node.node import Node


@asynccontextmanager
async def another_runtime(
    socket: Path, *pods: Pod, made_at: int = 1, runtime: Runtime = CONTAINERD
) -> AsyncIterator[ContainerRuntime]:
    """A container runtime that has these pods, which were made at a time, in nanoseconds."""
    node = Node()
    for pod in pods:
        node.new(pod).made_at = made_at
    served = ContainerRuntime(node, runtime, WallClock(), socket, lambda _: None)
    await served.start()
    try:
        yield served
    finally:
        await served.stop()
