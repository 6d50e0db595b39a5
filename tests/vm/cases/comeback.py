"""Containers that follow their device: the service stops real containers, and they are made again.

The drop-in runtime.conf lets the service use containerd's socket. Containers are kept as by restartPolicy
Always, without the kubelet's back-off.
"""

import time

from tests.vm.case import case
from tests.vm.cases.plugging import RULES, SERIAL, A
from tests.vm.cases.service import drop_in
from tests.vm.node import Node, expect, expect_at_most
from tests.vm.runtime import Outcome

#: The default of `debounce`, in seconds.
DEBOUNCE_S = 3.0

#: From the plug to the stop, in seconds. A container has its device again within 10 s of the plug where a
#: runtime stops and makes one in the rest of that time. An emulator may need longer for it.
PROMISED_S = 6.0

#: Holds the port, so that the kernel does not reuse its name, and writes to it.
_PROGRAM = "exec 3<>/dev/ttyUSB0; stty -F /dev/ttyUSB0 raw -echo; printf hello >&3"


@case
def a_container_has_its_adapter_again_soon_after_it_was_plugged(node: Node) -> None:
    with drop_in(node, "runtime.conf"):
        _begin(node, 'on_replug = "restart"\n')
        node.usb.unplug("1")
        node.wait_for_devices(SERIAL, {A: "Unhealthy"})
        plugged = time.monotonic()
        node.usb.serial("4", "UNIT-A")
        outcome = node.runtime.restarted("pod", 1)
        took_s = time.monotonic() - plugged
        expect(node.links(), {A: "/dev/ttyUSB1"})
        expect((outcome.error, outcome.numbers), ("", {"/dev/ttyUSB0": (188, 1)}))
        expect(node.usb.written_to("4"), "hello")
        stopped = time.monotonic()
        node.runtime.stop("pod", 30)
        node.runtime.restarted("pod", 2)
        alone_s = time.monotonic() - stopped
        what = f"of the {took_s:.1f} s to the new container, without the {alone_s:.1f} s of the runtime alone"
        expect_at_most(what, took_s - alone_s, PROMISED_S)


@case
def a_container_without_its_adapter_is_stopped_and_refused(node: Node) -> None:
    with drop_in(node, "runtime.conf"):
        _begin(node, 'on_unplug = "stop"\n')
        unplugged = time.monotonic()
        node.usb.unplug("1")
        refused = node.runtime.refused("pod")
        expect(time.monotonic() - unplugged > DEBOUNCE_S, True)
        dead = "failed to generate container spec: failed to generate spec: EvalSymlinks: too many links"
        expect(refused, Outcome(dead))
        node.usb.serial("4", "UNIT-A")
        expect(node.runtime.restarted("pod", 1).error, "")
        expect(node.usb.written_to("4"), "hello")


def _begin(node: Node, key: str) -> None:
    """A pod with a running container that holds its adapter."""
    node.begin({name: text + key for name, text in RULES.items()})
    node.runtime.begin()
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    pod = node.admit("pod", {SERIAL: 1})
    outcome = node.runtime.create("pod", keep=True, script=_PROGRAM, **pod.request)
    expect((outcome.error, node.usb.written_to("1")), ("", "hello"))
