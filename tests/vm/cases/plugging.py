"""Plugged, unplugged, plugged again, as it happens on a desk with serial adapters."""

from tests.vm.case import case
from tests.vm.node import Node, expect

SERIAL = "genericdp.io/serial"
RULES = {
    "50-serial.toml": """
[[resource]]
name = "serial"
match = { SUBSYSTEM = "tty", usb = { vendor = "0403", product = "6001" } }
"""
}


@case
def a_plugged_adapter_reaches_a_container(node: Node) -> None:
    node.begin(RULES)
    node.wait_for_devices(SERIAL)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, **{"serial_UNIT-A": "Healthy"})
    pod = node.admit("pod", {SERIAL: 1})
    expect(pod.phase, "Running")
    expect(pod.nodes, {"/dev/ttyUSB0": "/dev/ttyUSB0"})
    expect(node.links(), {"serial_UNIT-A": "/dev/ttyUSB0"})
    node.write_to(pod, "/dev/ttyUSB0", "good morning")
    expect(node.usb.written_to("1"), "good morning")
