"""Runs in the guest: the kubelet simulator of the installed package, driven over a virtio port.

It sends JSON lines, each with {"run": id}, so that messages of an earlier kubelet can be recognized.
After every change it sends {"state": …}, see `View` in tests/vm/node.py. Requests concern pods, and
each answer follows the state that it led to:

    {"admit": name, "limits": {resource: count}}   -> {"answer": {}}
    {"restart_container": name}                    -> {"answer": {}}
    {"delete": name}                               -> {"answer": {}}
    {"restart": true}                              -> {"answer": {}}
"""

import asyncio
import json
import os
from typing import Any

from genericdp.simulator import Container, Kubelet, KubeletPanicError, Pod, PodStatus
from genericdp.simulator.runtimes.runtime import ContainerConfig

PORT = "/dev/virtio-ports/vm.kubelet"
ROOT = "/var/lib/kubelet"

#: systemd's id of this start of the unit.
RUN = os.environ["INVOCATION_ID"]

#: The period of the node status loop; 10 s in a real kubelet.
PERIOD_S = 1.0


class Driven:
    """A kubelet and the channel to the test."""

    def __init__(self, kubelet: Kubelet, port: int) -> None:
        self._kubelet = kubelet
        self._port = port
        self._sent: dict[str, Any] = {}
        self._pods: dict[str, PodStatus] = {}

    async def send_changes(self) -> None:
        """Send the state after every change."""
        while True:
            self.send_state()
            await self._kubelet.wait_until(lambda: self._state() != self._sent, timeout_s=86400.0)

    def send_state(self) -> None:
        """Send the state."""
        self._sent = self._state()
        self.send({"state": self._sent})

    def send(self, document: dict[str, Any]) -> None:
        """Send one line."""
        data = json.dumps({"run": RUN, **document}).encode() + b"\n"
        while data:
            data = data[os.write(self._port, data) :]

    async def answer(self, request: dict[str, Any]) -> None:
        """Carry out a request and send the answer."""
        error = ""
        try:
            await self._do(request)
        except (KubeletPanicError, KeyError, TimeoutError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        self.send_state()
        self.send({"answer": {"error": error} if error else {}})

    async def _do(self, request: dict[str, Any]) -> None:
        kubelet = self._kubelet
        match request:
            case {"admit": name, "limits": limits}:
                kubelet.tick()
                self._pods[name] = await kubelet.admit(Pod(name, [Container("main", limits=limits)]))
            case {"restart_container": name}:
                await kubelet.restart_container(self._pods[name], "main")
            case {"delete": name}:
                kubelet.delete(self._pods.pop(name))
            case {"restart": _}:
                await kubelet.restart()
            case _:
                raise KeyError(*request)

    def _state(self) -> dict[str, Any]:
        kubelet = self._kubelet
        status = kubelet.node_status.now
        return {
            "devices": {
                resource: {device.id: device.health for device in kubelet.devices(resource).values()}
                for resource in kubelet.capacity
            },
            "streams": {resource: kubelet.streams(resource) for resource in kubelet.capacity},
            "messages": {resource: kubelet.messages(resource) for resource in kubelet.capacity},
            "capacity": dict(status.capacity),
            "allocatable": dict(status.allocatable),
            "pods": {pod.name: _pod(pod) for pod in kubelet.pods},
        }


def _pod(pod: PodStatus) -> dict[str, Any]:
    main = pod.container("main")
    created = main.created
    return {
        "phase": str(pod.phase),
        "state": str(main.state),
        "message": pod.message or main.message,
        "health": {resource: dict(ids) for resource, ids in main.resources.items()},
        "nodes": {node.container_path: node.source for node in created.nodes} if created else {},
        "numbers": {node.container_path: [node.major, node.minor] for node in created.nodes}
        if created
        else {},
        "env": dict(created.envs) if created else {},
        "request": {"uid": pod.uid, **_request(created.config)} if created else {},
    }


def _request(config: ContainerConfig) -> dict[str, Any]:
    """What the kubelet asks of a runtime, as runtime.py takes it."""
    return {
        "devices": [[each.host_path, each.container_path, each.permissions] for each in config.devices],
        "mounts": [[each.host_path, each.container_path, each.read_only] for each in config.mounts],
        "envs": dict(config.envs),
        "annotations": dict(config.annotations),
        "cdi_devices": list(config.cdi_devices),
    }


async def main() -> None:
    """Run the kubelet until SIGTERM."""
    loop = asyncio.get_running_loop()
    port = os.open(PORT, os.O_RDWR)
    # The previous one may have been killed in the middle of a line.
    os.write(port, b"\n")
    requests: asyncio.Queue[bytes] = asyncio.Queue()

    def read_lines() -> None:
        with open(port, "rb", closefd=False) as lines:
            for line in lines:
                loop.call_soon_threadsafe(requests.put_nowait, line)

    async with Kubelet(ROOT, status_period_s=PERIOD_S) as kubelet:
        driven = Driven(kubelet, port)
        loop.run_in_executor(None, read_lines)
        async with asyncio.TaskGroup() as group:
            group.create_task(driven.send_changes())
            while True:
                await driven.answer(json.loads(await requests.get()))


if __name__ == "__main__":
    asyncio.run(main())
