"""Answers by CDI, on a real runtime: what a container finds is what is there when it is created."""

from tests.vm.case import case
from tests.vm.cases.plugging import RULES, SERIAL, A
from tests.vm.cases.swaps import NAME, Unit, end_service, expect_own_unit, swap, two_units
from tests.vm.node import LINKS, Node, expect
from tests.vm.runtime import HANDLERS, DeviceNode, Outcome
from tests.vm.seed import HOME
from tests.vm.view import Pod

STICK, UNIT = "genericdp.io/stick", "stick_UNIT-A"
STICK_RULES = {
    "50-stick.toml": """
[[resource]]
name = "stick"
match = { SUBSYSTEM = "usb", DEVTYPE = "usb_device", usb = { vendor = "0403" } }
answer = "cdi"
env = { STICK = "/dev/{devname}" }
"""
}
_SERIAL_RULES = {name: text + 'answer = "cdi"\n' for name, text in RULES.items()}

#: The CDI spec file of the adapters.
_SPEC = "/run/cdi/genericdp_genericdp.io_serial.json"

#: Swaps after a kill. After a stop there is no file that could lead to another unit.
_SWAPS = 10

#: As libusb does: the device is in /dev/bus/usb, and its descriptor begins with its numbers, here 0403:6001.
LIBUSB = "find /dev/bus/usb -type c; echo $STICK; head -c 12 $STICK | od -An -tx1 -j8"

#: What a process that is not root does with an adapter.
_WRITE = "stty -F /dev/ttyUSB0 raw -echo; printf hello >/dev/ttyUSB0; id -G"

_REFUSED = "failed to create containerd container: CDI device injection failed: unresolvable CDI devices "


@case
def by_cdi_a_libusb_program_finds_its_adapter_after_a_replug(node: Node) -> None:
    node.begin(STICK_RULES)
    node.runtime.begin()
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(STICK, {UNIT: "Healthy"})
    pod = node.admit("pod", {STICK: 1})
    addresses = set()
    for handler in HANDLERS:
        address = address_of(node)
        expect_found_at(address, _create(node, handler, pod, script=LIBUSB))
        addresses.add(address)
        node.usb.unplug("1")
        node.wait_for_devices(STICK, {UNIT: "Unhealthy"})
        expect(_create(node, handler, pod), Outcome(f"{_REFUSED}{STICK}={UNIT}"))
        node.usb.serial("1", "UNIT-A")
        node.wait_for_devices(STICK, {UNIT: "Healthy"})
    expect(len(addresses), len(HANDLERS))


@case
def a_pod_with_a_user_namespace_has_its_device_at_its_link(node: Node) -> None:
    """Runc looks up the link as root of the namespace, who may not enter what is closed on the host."""
    fuse = "genericdp.io/fuse"
    rules = '[[resource]]\nname = "fuse"\nmatch.DEVNAME = "/dev/fuse"\ncontainer_path = "{link}"\n'
    node.begin({"50-fuse.toml": rules})
    node.runtime.begin()
    node.wait_for_devices(fuse, {"fuse_fuse": "Healthy"})
    expect(node.sh("stat -c '%a %U' /dev/genericdp"), "755 root\n")
    pod = node.admit("pod", {fuse: 1})
    for handler in HANDLERS:
        outcome = node.runtime.create(handler, handler=handler, user_namespace=True, **pod.request)
        expect((outcome.error, [*outcome.nodes]), ("", [f"{LINKS}/fuse_fuse"]))


@case
def by_cdi_a_user_without_groups_opens_a_node_of_root_and_dialout(node: Node) -> None:
    node.begin(_SERIAL_RULES)
    node.runtime.begin()
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    expect(node.sh("stat -c '%a %U %G' /dev/ttyUSB0"), "660 root dialout\n")
    pod = node.admit("pod", {SERIAL: 1})
    _expect_written(node, pod, groups={"1000"})
    node.run_with_drop_in("groups.conf")
    node.wait_until("it is registered again", lambda view: view.allocatable.get(SERIAL) == 1)
    _expect_written(node, pod, groups={"1000", "20"})


@case
def by_cdi_no_container_gets_another_unit_without_the_service(node: Node) -> None:
    kept = f"{HOME}/cdi"

    def keep_file(unit: Unit) -> None:
        node.sh(f"mkdir -p {kept}; cp {_SPEC} {kept}/{unit.id}")

    def as_if_it_had_run(unit: Unit) -> None:
        node.sh(
            f"cp {kept}/{unit.id} /run/cdi/.new; mv /run/cdi/.new {_SPEC}; ln -sfn {NAME} {LINKS}/{unit.id}"
        )

    here, other = two_units(node, _SERIAL_RULES, keep_file)
    end_service(node, "KILL")
    for _ in range(_SWAPS):
        expect(swap(node, here, other), Outcome(f"{_REFUSED}{SERIAL}={here.id}"))
        as_if_it_had_run(other)
        here, other = other, here
    node.start()
    expect_own_unit(node, here, other)
    end_service(node, "TERM")
    expect(node.sh("ls /run/cdi"), "")
    expect(swap(node, here, other), Outcome(f"{_REFUSED}{SERIAL}={here.id}"))


def address_of(node: Node) -> str:
    """The path of the stick under its bus address of now."""
    number = int(node.sh(f"cat {node.usb_device('UNIT-A')}/devnum"))
    return f"/dev/bus/usb/001/{number:03}"


def expect_found_at(address: str, outcome: Outcome) -> None:
    """The script LIBUSB found the stick in its container, there and nowhere else."""
    expect((outcome.error, outcome.out), ("", f"{address}\n{address}\n 03 04 01 60\n"))


def _expect_written(node: Node, pod: Pod, groups: set[str]) -> None:
    """A user that the node does not permit writes to the adapter from containers, with these groups."""
    for handler in HANDLERS:
        outcome = _create(node, handler, pod, run_as_user=1000, run_as_group=1000, script=_WRITE)
        expect((outcome.error, node.usb.written_to("1")), ("", "hello"))
        expect(outcome.nodes, {"/dev/ttyUSB0": DeviceNode("c", 188, 0, "666", 1000, 1000, "rw")})
        expect(set(outcome.out.split()), groups)


def _create(node: Node, handler: str, pod: Pod, **more: object) -> Outcome:
    return node.runtime.create(handler, handler=handler, **pod.request, **more)
