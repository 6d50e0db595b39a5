"""Devices other than serial adapters: input devices, disks, hubs."""

from tests.vm.case import case
from tests.vm.cases.plugging import RULES as SERIAL_RULES
from tests.vm.cases.plugging import SERIAL
from tests.vm.node import Node, expect

PANEL = "genericdp.io/panel"
PANEL_RULES = {
    "40-panel.toml": """
[[resource]]
name = "panel"
match = [
  { SUBSYSTEM = "input", DEVNAME = "/dev/input/event*", usb = { vendor = "0627" } },
  { SUBSYSTEM = "hidraw", usb = { vendor = "0627" } },
]
group_by = "usb_device"

[[resource.node]]
match = { SUBSYSTEM = "input" }
container_path = "/dev/input/event0"

[[resource.node]]
match = { SUBSYSTEM = "hidraw" }
container_path = "/dev/hidraw0"
"""
}

DISK = "genericdp.io/disk"
DISK_RULE = """
[[resource]]
name = "disk"
match = { SUBSYSTEM = "block", DEVTYPE = "disk", ID_BUS = "usb" }
"""

SOCKET = "genericdp.io/socket"
SOCKET_RULES = {
    "20-socket.toml": """
[[resource]]
name = "socket"
match = { SUBSYSTEM = "usb", ID_VENDOR_ID = ["46f4", "0627"] }
identity = "port"
"""
}


@case
def what_is_in_a_socket_is_one_device_at_either_speed(node: Node) -> None:
    node.begin(SOCKET_RULES)
    node.usb.storage("1")
    found = node.wait_until("the stick", lambda view: [*view.of(SOCKET).values()] == ["Healthy"])
    (id_,) = found.of(SOCKET)
    expect(node.admit("pod", {SOCKET: 1}).phase, "Running")
    expect(_speeds(node, "46f4"), ["5000"])

    node.usb.unplug("1")
    node.wait_for_devices(SOCKET, {id_: "Unhealthy"})
    node.usb.plug("1", "usb-tablet")
    node.wait_for_devices(SOCKET, {id_: "Healthy"})
    expect(_speeds(node, "0627"), ["480"])
    # Another socket is another device.
    node.usb.plug("2", "usb-mouse")
    view = node.wait_until("the mouse", lambda view: len(view.of(SOCKET)) == 2)
    expect({*view.of(SOCKET).values()}, {"Healthy"})


def _speeds(node: Node, vendor: str) -> list[str]:
    """The speeds of the units of a vendor, in Mbit/s."""
    units = f"grep -lx {vendor} /sys/bus/usb/devices/*/idVendor"
    return node.sh(f"for id in $({units}); do cat $(dirname $id)/speed; done").split()


@case
def keyboard_and_tablet_are_devices_of_two_nodes_each(node: Node) -> None:
    node.begin(PANEL_RULES)
    node.usb.plug("1", "usb-kbd", serial="KEYS")
    node.wait_for_devices(PANEL, {"panel_KEYS": "Healthy"})
    node.usb.plug("2", "usb-tablet", serial="PEN")
    node.wait_for_devices(PANEL, {"panel_KEYS": "Healthy", "panel_PEN": "Healthy"})
    pod = node.admit("pod", {PANEL: 1})
    expect(sorted(pod.nodes), ["/dev/hidraw0", "/dev/input/event0"])
    # The first pod gets the keyboard, with both of its nodes.
    expect({node.unit_of(pod, path) for path in pod.nodes}, {"KEYS"})


@case
def a_disk_is_refused_unless_the_rule_allows_dangerous_devices(node: Node) -> None:
    node.begin({"30-disk.toml": DISK_RULE})
    node.usb.storage("1")
    node.wait_for_node("/dev/sda")
    listing = node.sh("genericdp list")
    expect("/dev/sda" in listing and "allow_dangerous" in listing, True)
    expect(node.view.of(DISK), {})
    node.write_rules({"30-disk.toml": DISK_RULE + "allow_dangerous = true\n"})
    view = node.wait_until("the disk", lambda view: len(view.of(DISK)) == 1)
    expect(list(view.of(DISK).values()), ["Healthy"])


@case
def a_hub_that_is_unplugged_takes_everything_behind_it_along(node: Node) -> None:
    node.begin(SERIAL_RULES | PANEL_RULES)
    devices = {f"serial_UNIT-{number}": "Healthy" for number in (1, 2, 3)}
    for _ in range(2):
        node.usb.plug("1", "usb-hub")
        for number in (1, 2, 3):
            node.usb.serial(f"1.{number}", f"UNIT-{number}")
        node.usb.plug("1.4", "usb-kbd", serial="KEYS")
        node.wait_for_devices(SERIAL, devices)
        node.wait_for_devices(PANEL, {"panel_KEYS": "Healthy"})
        node.usb.unplug("1")
        node.wait_for_devices(SERIAL, dict.fromkeys(devices, "Unhealthy"))
        node.wait_for_devices(PANEL, {"panel_KEYS": "Unhealthy"})
