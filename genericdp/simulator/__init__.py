"""A simulated kubelet device manager with its container runtimes, over real unix sockets.

For `genericdp simulate` and for the tests of any device plugin. It behaves like kubelet 1.36 and
containerd or CRI-O with runc, including their quirks and error texts. It leaves out what no plugin
can see: metrics, cgroups, images.

    async with Kubelet(root) as kubelet:
        ...                                     # a plugin registers at kubelet.socket
        await kubelet.wait_until(lambda: kubelet.allocatable.get("vendor.example/x") == 1)
        pod = await kubelet.admit(Pod("p", [Container("c", limits={"vendor.example/x": 1})]))
        print(pod.phase, pod.container("c").created)

The folders, in the order in which a device passes through them:

* `plugins/`   a plugin registers, its lists are received, it disconnects
* `devices/`   the device manager: what is listed, what is allocated, what is saved
* `node/`      pods are admitted and started; what the node reports about them
* `runtimes/`  the container runtime turns the plugin's answer into device nodes

The files beside them connect these folders. Read in this order:

* `kubelet`, `view`      what a user calls and what a user can look at
* `process`              one process of the kubelet: it builds everything above and starts the servers
* `pods`, `errors`       values that all folders share
* `clock`, `changes`     time that a test can move, waiting without polling
* `gates`, `faults`      races put in order, faults injected
* `server`, `relay`      unix sockets that behave like those of a Go program
* `blocking`, `pytest_plugin`   the same kubelet without asyncio, and as a fixture

Does not belong here: whatever knows genericdp. Of the program, only the messages in
`genericdp.kubelet.api` and `genericdp.cri.api` are imported.
"""

from genericdp.simulator.clock import Clock, ManualClock, WallClock
from genericdp.simulator.devices.topology import Policy
from genericdp.simulator.errors import KubeletPanicError, SimulatorError
from genericdp.simulator.gates import Point
from genericdp.simulator.kubelet import Kubelet
from genericdp.simulator.plugins.client_table import Generation
from genericdp.simulator.pods import (
    Container,
    ContainerState,
    ContainerStatus,
    Phase,
    Pod,
    PodStatus,
    RestartPolicy,
)
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
    "RestartPolicy",
    "Runtime",
    "SimulatorError",
    "WallClock",
]
