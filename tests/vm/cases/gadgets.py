"""Composite devices: one unit with several interfaces, and their descriptors."""

from pathlib import Path

from tests.vm.case import case
from tests.vm.gadgets import Gadget, cdc_acm, modem
from tests.vm.node import Node, expect

BOARD = "genericdp.io/board"
BOARD_RULES = {
    "50-board.toml": """
[[resource]]
name = "board"
match = { SUBSYSTEM = "tty", usb = { vendor = "1d6b", product = "0104" } }
group_by = "usb_device"

[[resource.node]]
match = { usb = { interface = "00" } }
container_path = "/dev/console0"

[[resource.node]]
match = { usb = { interface = "02" } }
container_path = "/dev/data0"
""",
    "60-line.toml": """
[[resource]]
name = "line"
match = { SUBSYSTEM = "tty", usb = { vendor = "1d6b", product = "0105" } }
""",
}
LINE = "genericdp.io/line"

MODEM = "genericdp.io/lte-modem"
MODEM_RULES = {"50-modem.toml": Path("examples/50-modem.toml").read_text(encoding="utf-8")}


@case
def a_board_with_two_ports_is_one_device_or_two_as_the_rule_says(node: Node) -> None:
    node.begin(BOARD_RULES)
    node.gadgets.plug(0, cdc_acm("BOARD-1"))
    node.wait_for_devices(BOARD, {"board_BOARD-1": "Healthy"})
    pod = node.admit("pod", {BOARD: 1})
    expect(pod.nodes, {"/dev/console0": "/dev/ttyACM0", "/dev/data0": "/dev/ttyACM1"})
    board = cdc_acm("BOARD-2")
    node.gadgets.plug(1, Gadget("1d6b", "0105", board.serial, board.functions))
    lines = {"line_BOARD-2": "Healthy", "line_BOARD-2.if02": "Healthy"}
    node.wait_for_devices(LINE, lines)
    node.gadgets.unplug(1)
    node.wait_for_devices(LINE, dict.fromkeys(lines, "Unhealthy"))
    expect(node.view.of(BOARD), {"board_BOARD-1": "Healthy"})


@case
def a_modem_is_one_device_of_its_at_port_and_its_qmi_port(node: Node) -> None:
    node.begin(MODEM_RULES)
    node.gadgets.plug(0, modem("MODEM-1"))
    node.wait_for_devices(MODEM, {"lte-modem_MODEM-1": "Healthy"})
    node.wait_for_node("/dev/cdc-wdm0")
    pod = node.admit("pod", {MODEM: 1})
    expect(pod.nodes, {"/dev/modem-at": "/dev/ttyUSB1", "/dev/modem-qmi": "/dev/cdc-wdm0"})
    # It restarts while another one is plugged, as after a firmware update: its kernel names change.
    node.gadgets.unplug(0)
    node.wait_for_devices(MODEM, {"lte-modem_MODEM-1": "Unhealthy"})
    node.gadgets.plug(1, modem("MODEM-2"))
    node.wait_for_devices(MODEM, {"lte-modem_MODEM-1": "Unhealthy", "lte-modem_MODEM-2": "Healthy"})
    node.wait_for_node("/dev/cdc-wdm0")
    node.gadgets.plug(0, modem("MODEM-1"))
    node.wait_for_devices(MODEM, {"lte-modem_MODEM-1": "Healthy", "lte-modem_MODEM-2": "Healthy"})
    node.wait_for_node("/dev/cdc-wdm1")
    again = node.wait_for_restart("pod")
    expect(again.nodes, {"/dev/modem-at": "/dev/ttyUSB3", "/dev/modem-qmi": "/dev/cdc-wdm1"})
    expect({node.unit_of(again, path) for path in again.nodes}, {"MODEM-1"})


@case
def what_a_device_says_about_itself_reaches_neither_paths_nor_lines(node: Node) -> None:
    node.begin(BOARD_RULES)
    hostile = "../../etc/passwd\n<3>oops $(reboot),;é\x1b[31m"
    node.gadgets.plug(0, cdc_acm(hostile))
    view = node.wait_until("the device", lambda view: [*view.of(BOARD).values()] == ["Healthy"])
    (name,) = view.of(BOARD)
    cleaned, _, rest = name.rpartition("_")
    expect((cleaned, rest.isalnum()), ("board_etc-passwd-3-oops-reboot-31m", True))
    expect(node.admit("pod", {BOARD: 1}).phase, "Running")
    expect(sorted(node.links()), [f"{name}@if00", f"{name}@if02"])
    journal = node.journal()
    expect([line for line in journal if "oops" in line and cleaned not in line], [])
    expect([line for line in journal if not line.isprintable() or "reboot)" in line], [])
    # journald takes <3> at the beginning of a line as a priority.
    expect(node.journal("--priority=err"), [])
