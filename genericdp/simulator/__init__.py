"""A kubelet's device manager and the container runtimes below it, over real unix sockets.

For `genericdp simulate` and for the tests of any device plugin. It behaves like kubelet 1.36 and
containerd or CRI-O with runc, with their quirks and error texts; what it leaves out is what no
plugin can see (metrics, cgroups, images).

    async with Kubelet(root) as kubelet:
        ...                                     # a plugin registers at kubelet.socket
        await kubelet.wait_until(lambda: kubelet.allocatable.get("vendor.example/x") == 1)
        pod = await kubelet.admit(Pod("p", [Container("c", limits={"vendor.example/x": 1})]))
        print(pod.phase, pod.container("c").created)

The files, from decisions to effects:

* values and decisions: names, clients, devices, ledger, topology, checkpoint, pods, node_status, merge,
  limiter, filesystem, runc, containerd, crio, cdi
* effects: clock, gates, connection, plugins, listening, registration, admission, workload,
  pod_resources, watcher, relay, process, faults
* what a user holds in the hand: view, kubelet
"""

from genericdp.simulator.clock import Clock, ManualClock, WallClock
from genericdp.simulator.devices.topology import Policy
from genericdp.simulator.errors import KubeletPanicError, SimulatorError
from genericdp.simulator.gates import Point
from genericdp.simulator.kubelet import Kubelet
from genericdp.simulator.plugins.client_table import Generation
from genericdp.simulator.pods import Container, ContainerState, ContainerStatus, Phase, Pod, PodStatus
from genericdp.simulator.runtimes.runtime import (
    CONTAINERD,
    CRIO,
    CreatedContainer,
    DeviceNode,
    LowLevel,
    Runtime,
)

__all__ = [
    "CONTAINERD",
    "CRIO",
    "Clock",
    "Container",
    "ContainerState",
    "ContainerStatus",
    "CreatedContainer",
    "DeviceNode",
    "Generation",
    "Kubelet",
    "KubeletPanicError",
    "LowLevel",
    "ManualClock",
    "Phase",
    "Pod",
    "PodStatus",
    "Point",
    "Policy",
    "Runtime",
    "SimulatorError",
    "WallClock",
]
