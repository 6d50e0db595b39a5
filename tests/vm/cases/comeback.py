"""Containers that follow their device: the service stops real containers, and they are made again.

The drop-in runtime.conf lets the service use containerd's socket. Containers are kept as by restartPolicy
Always: looked at every second, as kubelets do, but without their back-off.
"""

from tests.vm.case import case
from tests.vm.cases.answers import LIBUSB, STICK, STICK_RULES, UNIT, address_of, expect_found_at
from tests.vm.cases.plugging import RULES, SERIAL, A
from tests.vm.node import Node, expect, expect_at_most
from tests.vm.runtime import Outcome

#: The default of `debounce`, in seconds.
DEBOUNCE_S = 3.0

#: From the plug until a program in a new container has opened the device, in seconds of the guest's clock.
PROMISED_S = 10.0

#: Holds the port, so that the kernel does not reuse its name, and writes to it what the clock says.
_PROGRAM = "exec 3<>/dev/ttyUSB0; stty -F /dev/ttyUSB0 raw -echo; cut -d' ' -f1 /proc/uptime >&3"

_DROPIN = "runtime.conf"


@case
def a_container_writes_to_its_adapter_within_10_s_of_the_plug(node: Node) -> str:
    _begin(node, 'on_replug = "restart"\n')
    node.usb.unplug("1")
    node.wait_for_devices(SERIAL, {A: "Unhealthy"})
    plugged = node.clock_s()
    node.usb.serial("4", "UNIT-A")
    outcome = node.runtime.restarted("pod", 1)
    took_s = float(node.usb.written_to("4")) - plugged
    expect(node.links(), {A: "/dev/ttyUSB1"})
    expect((outcome.error, outcome.numbers), ("", {"/dev/ttyUSB0": (188, 1)}))

    # What the runtime alone takes for it on this machine.
    stopped = node.clock_s()
    node.runtime.stop("pod", 30)
    node.runtime.restarted("pod", 2)
    alone_s = float(node.usb.written_to("4")) - stopped
    measured = f"{took_s:.1f} s from the plug, {alone_s:.1f} s from a stop"
    expect_at_most(measured, took_s, PROMISED_S)
    return measured


@case
def a_container_without_its_adapter_is_stopped_and_refused(node: Node) -> None:
    _begin(node, 'on_unplug = "stop"\n')
    unplugged = node.clock_s()
    node.usb.unplug("1")
    refused = node.runtime.refused("pod")
    expect(node.clock_s() - unplugged > DEBOUNCE_S, True)
    dead = "failed to generate container spec: failed to generate spec: EvalSymlinks: too many links"
    expect(refused, Outcome(dead))
    node.usb.serial("4", "UNIT-A")
    expect(node.runtime.restarted("pod", 1).error, "")
    expect(float(node.usb.written_to("4")) > unplugged, True)


@case
def by_cdi_a_replug_restarts_the_container_at_the_new_address(node: Node) -> None:
    rules = {name: f'{text}on_replug = "restart"\n' for name, text in STICK_RULES.items()}
    node.begin(rules, drop_in=_DROPIN)
    node.runtime.begin()
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(STICK, {UNIT: "Healthy"})
    pod = node.admit("pod", {STICK: 1})
    before = address_of(node)
    expect_found_at(before, node.runtime.create("pod", keep=True, script=LIBUSB, **pod.request))
    node.usb.unplug("1")
    node.wait_for_devices(STICK, {UNIT: "Unhealthy"})
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(STICK, {UNIT: "Healthy"})
    after = address_of(node)
    expect(before == after, False)
    expect_found_at(after, node.runtime.restarted("pod", 1))


def _begin(node: Node, key: str) -> None:
    """A pod with a running container that holds its adapter."""
    node.begin({name: text + key for name, text in RULES.items()}, drop_in=_DROPIN)
    node.runtime.begin()
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    pod = node.admit("pod", {SERIAL: 1})
    outcome = node.runtime.create("pod", keep=True, script=_PROGRAM, **pod.request)
    expect((outcome.error, float(node.usb.written_to("1")) > 0), ("", True))
