"""Failures between the kernel, udevd and genericdp."""

from tests.vm.case import case
from tests.vm.cases.plugging import RULES, SERIAL, A, B
from tests.vm.node import Node, expect

#: Each write causes one message of the kernel and one of udevd. The service's socket is limited to
#: rmem_max (socket(7)), which is room for about 500 messages.
_STORM = """
import os
files = [os.open(f"/sys/class/mem/{name}/uevent", os.O_WRONLY) for name in os.listdir("/sys/class/mem")]
for _ in range(75):
    for file in files:
        os.write(file, b"change")
"""


@case
def a_port_suspended_by_authorized_makes_its_device_unhealthy(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.admit("pod", {SERIAL: 1})
    port = node.usb_device("UNIT-A")
    node.sh(f"echo 0 >{port}/authorized")
    node.wait_for_devices(SERIAL, {A: "Unhealthy"})
    node.sh(f"echo 1 >{port}/authorized")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.write_to(node.wait_for_restart("pod"), "/dev/ttyUSB0", "allowed again")
    expect(node.usb.written_to("1"), "allowed again")


@case
def a_restart_of_udevd_loses_no_device_and_no_event(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.sh("systemctl restart systemd-udevd")
    node.usb.serial("2", "UNIT-B")
    node.wait_for_devices(SERIAL, {A: "Healthy", B: "Healthy"})
    node.sh("systemctl restart systemd-udevd")
    node.usb.unplug("1")
    node.wait_for_devices(SERIAL, {A: "Unhealthy", B: "Healthy"})


@case
def while_udevd_is_stopped_the_kernels_events_are_used(node: Node) -> None:
    udevd = "systemd-udevd-kernel.socket systemd-udevd-control.socket systemd-udevd.service"
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.sh(f"systemctl stop {udevd}")
    try:
        node.usb.unplug("1")
        node.wait_for_devices(SERIAL, {A: "Unhealthy"})
        node.usb.serial("2", "UNIT-B")
        node.wait_for_devices(SERIAL, {A: "Unhealthy", B: "Healthy"})
    finally:
        node.sh(f"systemctl start {udevd}")
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy", B: "Healthy"})


@case
def a_storm_that_overflows_the_socket_loses_no_device(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    before = node.view.messages[SERIAL]
    # The service is stopped, so that it cannot keep up, as on an overloaded machine.
    node.sh("systemctl kill --signal=STOP genericdp")
    node.python(_STORM)
    node.sh("udevadm settle")
    node.usb.unplug("1")
    node.usb.serial("2", "UNIT-B")
    node.wait_for_node("/dev/ttyUSB0")
    drops = node.drops()
    node.sh("systemctl kill --signal=CONT genericdp")
    node.wait_for_devices(SERIAL, {A: "Unhealthy", B: "Healthy"})
    expect([lost > 0 for lost in drops], [True, True])
    expect(node.view.messages[SERIAL] - before <= 3, True)
    # Later events arrive again.
    node.usb.unplug("2")
    node.wait_for_devices(SERIAL, {A: "Unhealthy", B: "Unhealthy"})
    # A socket error that is never read would keep it busy forever. In an emulator, a rescan takes a while.
    node.cpu_s(3)
    expect(node.cpu_s(3) < 0.3, True)
