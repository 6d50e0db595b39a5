"""What genericdp promises to pods, kept by real containers: a process in one writes to its own unit.

The containers of a pod are made of what the kubelet saved at its admission, one by runc and one by crun.
"""

from tests.vm.case import case
from tests.vm.cases.plugging import RULES, SERIAL, A, B
from tests.vm.node import Node, expect
from tests.vm.runtime import Outcome
from tests.vm.view import Pod

_DEAD = "failed to generate container spec: failed to generate spec: EvalSymlinks: too many links"


@case
def real_containers_keep_their_own_adapters_when_kernel_names_swap(node: Node) -> None:
    pods = two_pods(node, ports=("1", "2"))
    expect_own_units(node, pods, {"of-a": "1", "of-b": "2"})
    node.usb.unplug("1")
    node.usb.unplug("2")
    node.wait_for_devices(SERIAL, {A: "Unhealthy", B: "Unhealthy"})
    for name, pod in pods.items():
        expect(_create(node, name, pod), Outcome(_DEAD))

    node.usb.serial("3", "UNIT-B")
    node.wait_for_devices(SERIAL, {A: "Unhealthy", B: "Healthy"})
    node.usb.serial("4", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy", B: "Healthy"})
    expect(node.links(), {A: "/dev/ttyUSB1", B: "/dev/ttyUSB0"})
    expect_own_units(node, pods, {"of-a": "4", "of-b": "3"})


@case
def a_running_container_has_a_dead_node_until_it_is_made_again(node: Node) -> None:
    node.begin(RULES)
    node.runtime.begin()
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    pod = node.admit("pod", {SERIAL: 1})
    # While it holds the port, the kernel does not reuse the name.
    _create(node, "pod", pod, script="exec 3<>/dev/ttyUSB0")
    node.usb.unplug("1")
    node.wait_for_devices(SERIAL, {A: "Unhealthy"})
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    expect(node.links(), {A: "/dev/ttyUSB1"})
    opened = node.runtime.run("pod", "(: </dev/ttyUSB0) 2>&1")
    expect("No such device" in opened, True)

    node.runtime.stop("pod", 30)
    expect_own_units(node, {"pod": pod}, {"pod": "1"})


def two_pods(node: Node, ports: tuple[str, str]) -> dict[str, Pod]:
    """Two adapters and a pod for each, by the name of the pod."""
    node.begin(RULES)
    node.runtime.begin()
    node.usb.serial(ports[0], "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    of_a = node.admit("of-a", {SERIAL: 1})
    node.usb.serial(ports[1], "UNIT-B")
    node.wait_for_devices(SERIAL, {A: "Healthy", B: "Healthy"})
    return {"of-a": of_a, "of-b": node.admit("of-b", {SERIAL: 1})}


def _create(node: Node, name: str, pod: Pod, script: str = "") -> Outcome:
    handler = "crun" if name == "of-b" else "runc"
    return node.runtime.create(name, handler=handler, script=script, **pod.request)


def expect_own_units(node: Node, pods: dict[str, Pod], ports: dict[str, str]) -> None:
    """Make the container of each pod anew; what it writes must arrive at its port."""
    for name, pod in pods.items():
        (path,) = pod.nodes
        outcome = _create(node, name, pod, script=f"stty -F {path} raw -echo; printf %s {name} >{path}")
        expect((outcome.error, outcome.out), ("", ""))
        expect(node.usb.written_to(ports[name]), name)
