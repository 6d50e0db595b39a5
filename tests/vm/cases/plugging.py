"""Serial adapters that are plugged, unplugged and plugged again."""

from shlex import quote

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
#: Without O_NOCTTY the port would become its terminal, and unplugging it would end the process.
_HOLD = """
import os, signal
os.open("/dev/ttyUSB0", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
signal.pause()
"""

A, B = "serial_UNIT-A", "serial_UNIT-B"


@case
def a_plugged_adapter_reaches_a_container(node: Node) -> None:
    node.begin(RULES)
    node.wait_for_devices(SERIAL, {})
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    pod = node.admit("pod", {SERIAL: 1})
    expect(pod.phase, "Running")
    expect(pod.nodes, {"/dev/ttyUSB0": "/dev/ttyUSB0"})
    expect(node.links(), {A: "/dev/ttyUSB0"})
    node.write_to(pod, "/dev/ttyUSB0", "good morning")
    expect(node.usb.written_to("1"), "good morning")


@case
def an_adapter_that_is_unplugged_stays_listed_until_it_returns(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.admit("pod", {SERIAL: 1})

    node.usb.unplug("1")
    view = node.wait_for_devices(SERIAL, {A: "Unhealthy"})
    view = node.wait_until("the node status shows it", lambda view: view.allocatable[SERIAL] == 0)
    expect(view.capacity[SERIAL], 1)
    expect(node.links(), {A: A})
    restarted = node.restart_container("pod")
    expect(restarted.state, "waiting")
    refused = "failed to generate container spec: failed to generate spec: EvalSymlinks: too many links"
    expect(restarted.message, refused)

    node.usb.serial("4", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    # The kubelet retries by itself.
    restarted = node.wait_until(
        "the container runs again", lambda view: view.pods["pod"].state == "running"
    ).pods["pod"]
    node.write_to(restarted, "/dev/ttyUSB0", "back")
    expect(node.usb.written_to("4"), "back")


@case
def each_container_keeps_its_own_adapter_when_kernel_names_swap(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    of_a = node.admit("of-a", {SERIAL: 1})
    node.usb.serial("2", "UNIT-B")
    node.wait_for_devices(SERIAL, {A: "Healthy", B: "Healthy"})
    of_b = node.admit("of-b", {SERIAL: 1})
    expect((of_a.nodes, of_b.nodes), ({"/dev/ttyUSB0": "/dev/ttyUSB0"}, {"/dev/ttyUSB1": "/dev/ttyUSB1"}))

    node.usb.unplug("1")
    node.usb.unplug("2")
    node.wait_for_devices(SERIAL, {A: "Unhealthy", B: "Unhealthy"})
    node.usb.serial("3", "UNIT-B")
    node.wait_for_devices(SERIAL, {A: "Unhealthy", B: "Healthy"})
    node.usb.serial("4", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy", B: "Healthy"})
    expect(node.links(), {A: "/dev/ttyUSB1", B: "/dev/ttyUSB0"})
    # The container still has its own adapter under the same path.
    of_a, of_b = node.restart_container("of-a"), node.restart_container("of-b")
    expect((of_a.nodes, of_b.nodes), ({"/dev/ttyUSB0": "/dev/ttyUSB1"}, {"/dev/ttyUSB1": "/dev/ttyUSB0"}))
    node.write_to(of_a, "/dev/ttyUSB0", "to A")
    node.write_to(of_b, "/dev/ttyUSB1", "to B")
    expect((node.usb.written_to("4"), node.usb.written_to("3")), ("to A", "to B"))


@case
def an_adapter_that_a_program_holds_open_returns_under_another_name(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.admit("pod", {SERIAL: 1})
    # The kernel does not reuse the name while it is open.
    node.sh(f"systemd-run --quiet --unit=holder python3 -c {quote(_HOLD)}")
    try:
        holder = "/proc/$(systemctl show --value -p MainPID holder)/fd"
        node.sh(f"until ls -l {holder} | grep -q ttyUSB0; do sleep 0.1; done")
        node.usb.unplug("1")
        node.wait_for_devices(SERIAL, {A: "Unhealthy"})
        node.usb.serial("1", "UNIT-A")
        node.wait_for_devices(SERIAL, {A: "Healthy"})
        pod = node.wait_for_restart("pod")
        expect(pod.nodes, {"/dev/ttyUSB0": "/dev/ttyUSB1"})
        node.write_to(pod, "/dev/ttyUSB0", "elsewhere")
        expect(node.usb.written_to("1"), "elsewhere")
    finally:
        node.sh("systemctl stop holder")


@case
def an_adapter_that_moves_to_another_port_keeps_its_id(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.admit("pod", {SERIAL: 1})
    for port in ("2", "3", "4", "5"):
        node.usb.unplug_all()
        node.usb.serial(port, "UNIT-A")
    node.sh("udevadm settle")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.write_to(node.wait_for_restart("pod"), "/dev/ttyUSB0", "settled")
    expect(node.usb.written_to("5"), "settled")


@case
def twins_are_told_apart_by_their_ports_and_never_swapped(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "TWIN")
    node.wait_for_devices(SERIAL, {"serial_TWIN": "Healthy"})
    node.usb.serial("2", "TWIN")
    view = node.wait_until("two devices", lambda view: len(view.of(SERIAL)) == 2)
    (second,) = view.of(SERIAL).keys() - {"serial_TWIN"}
    expect(node.links(), {"serial_TWIN": "/dev/ttyUSB0", second: "/dev/ttyUSB1"})

    # The kernel's names swap while genericdp is stopped.
    node.sh("systemctl stop genericdp")
    node.usb.unplug_all()
    node.sh("udevadm settle")
    node.usb.serial("2", "TWIN")
    node.wait_for_node("/dev/ttyUSB0")
    node.usb.serial("1", "TWIN")
    node.wait_for_node("/dev/ttyUSB1")
    node.sh("systemctl start genericdp")
    node.wait_until(
        "a new stream with both",
        lambda view: (
            view.streams[SERIAL] == 1 and view.of(SERIAL) == {"serial_TWIN": "Healthy", second: "Healthy"}
        ),
    )
    expect(node.links(), {"serial_TWIN": "/dev/ttyUSB1", second: "/dev/ttyUSB0"})

    # Alone, the second twin still has its own id.
    node.usb.unplug("1")
    node.wait_for_devices(SERIAL, {"serial_TWIN": "Unhealthy", second: "Healthy"})


@case
def a_resource_of_ports_keeps_its_ids_when_the_units_are_exchanged(node: Node) -> None:
    rules = RULES["50-serial.toml"] + 'identity = "port"\n'
    node.begin({"50-serial.toml": rules})
    node.usb.serial("1", "UNIT-A")
    view = node.wait_until("a device", lambda view: "Healthy" in view.of(SERIAL).values())
    (first,) = view.of(SERIAL)
    node.admit("pod", {SERIAL: 1})
    node.usb.unplug("1")
    node.wait_for_devices(SERIAL, {first: "Unhealthy"})
    node.usb.serial("2", "UNIT-A")
    view = node.wait_until("another device", lambda view: len(view.of(SERIAL)) == 2)
    expect(view.of(SERIAL)[first], "Unhealthy")
    node.usb.serial("1", "UNIT-B")
    node.wait_until("the port is in use again", lambda view: view.of(SERIAL).get(first) == "Healthy")
    pod = node.wait_for_restart("pod")
    node.write_to(pod, "/dev/ttyUSB0", "to whatever is in port 1")
    expect(node.usb.written_to("1"), "to whatever is in port 1")
