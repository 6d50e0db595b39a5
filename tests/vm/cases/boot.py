"""Boots with all devices plugged in, which the kernel finds in another order."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.vm.case import case
from tests.vm.cases.plugging import RULES, SERIAL, A, B
from tests.vm.node import Node, expect


@case
def after_a_reboot_the_ids_are_the_same_before_the_kubelet_starts(node: Node) -> None:
    with kubelet_at_boot(node):
        second = _plug(node)
        node.usb.unplug("5")
        devices = {A: "Healthy", B: "Healthy", "serial_TWIN": "Healthy", second: "Healthy"}
        node.wait_for_devices(SERIAL, {**devices, "serial_GONE": "Unhealthy"})
        before = node.links()

        node.reboot()
        node.wait_for_devices(SERIAL, {**devices, "serial_GONE": "Unhealthy"})
        after = node.links()
        # The kernel now assigns names in the order of ports, so names have changed but ids have not.
        expect((before[A], after[A]), ("/dev/ttyUSB1", "/dev/ttyUSB0"))
        _expect_every_link_to_lead_to_its_unit(node, second)
        ready = node.sh("systemctl show --value -p ActiveEnterTimestampMonotonic genericdp")
        kubelet = node.sh("systemctl show --value -p ExecMainStartTimestampMonotonic kubelet")
        expect(int(ready) < int(kubelet), True)
        expect(node.view.messages[SERIAL], 1)


@case
def after_a_power_cut_twins_keep_their_ids(node: Node) -> None:
    with kubelet_at_boot(node):
        second = _plug(node)
        node.sh("until grep -q TWIN /var/lib/genericdp/memory.json; do sleep 0.2; done")
        node.cut_power()
        names = (A, B, "serial_TWIN", second, "serial_GONE")
        node.wait_for_devices(SERIAL, dict.fromkeys(names, "Healthy"))
        _expect_every_link_to_lead_to_its_unit(node, second)


@case
def after_a_reboot_the_kubelet_waits_for_an_adapter_that_is_slow(node: Node) -> None:
    with kubelet_at_boot(node):
        node.begin(RULES)
        node.usb.serial("1", "UNIT-A")
        node.usb.serial("2", "GONE")
        node.wait_for_devices(SERIAL, {A: "Healthy", "serial_GONE": "Healthy"})
        node.usb.unplug("2")
        node.wait_for_devices(SERIAL, {A: "Healthy", "serial_GONE": "Unhealthy"})
        # The machine goes down with the adapter, and comes up without it.
        node.sh("systemctl stop kubelet genericdp")
        node.usb.unplug("1")

        def plug_late() -> None:
            waiting = (
                f"waiting for {A}, there before the reboot; 1 resource, 0 of 2 devices healthy; no kubelet"
            )
            status = "systemctl show --value -p StatusText genericdp"
            node.sh(f"until [ \"$({status})\" = '{waiting}' ]; do sleep 0.2; done")
            node.sh("until [ $(cut -d. -f1 /proc/uptime) -ge 10 ]; do sleep 0.2; done")
            states = node.sh("systemctl show --value -p ActiveState genericdp kubelet").split()
            expect(states, ["activating", "inactive"])
            node.usb.serial("1", "UNIT-A")

        node.reboot(plug_late)
        view = node.wait_for_devices(SERIAL, {A: "Healthy", "serial_GONE": "Unhealthy"})
        expect(view.messages[SERIAL], 1)
        expect(node.admit("pod", {SERIAL: 1}).phase, "Running")


@case
def a_restart_of_the_service_does_not_wait_for_a_device(node: Node) -> None:
    node.begin(RULES)
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    node.sh("systemctl stop genericdp")
    node.usb.unplug("1")
    node.sh("udevadm settle; systemctl start genericdp")
    node.wait_for_devices(SERIAL, {A: "Unhealthy"})
    expect([line for line in node.journal() if "waiting for devices" in line], [])


def _plug(node: Node) -> str:
    """Plug five adapters in another order than the kernel will find them in; the second twin's id."""
    node.begin(RULES)
    node.usb.serial("2", "UNIT-B")
    node.wait_for_node("/dev/ttyUSB0")
    node.usb.serial("1", "UNIT-A")
    node.wait_for_node("/dev/ttyUSB1")
    node.usb.serial("4", "TWIN")
    node.wait_for_devices(SERIAL, dict.fromkeys((A, B, "serial_TWIN"), "Healthy"))
    node.usb.serial("3", "TWIN")
    view = node.wait_until("the second twin", lambda view: len(view.of(SERIAL)) == 4)
    (second,) = view.of(SERIAL).keys() - {A, B, "serial_TWIN"}
    node.usb.serial("5", "GONE")
    node.wait_until("five devices", lambda view: len(_healthy(view.of(SERIAL))) == 5)
    return second


def _expect_every_link_to_lead_to_its_unit(node: Node, second: str) -> None:
    links = node.links()
    for text, (port, name) in enumerate({"1": A, "2": B, "4": "serial_TWIN", "3": second}.items()):
        node.sh(f"stty -F {links[name]} raw -echo; echo {text} >{links[name]}")
        expect((name, node.usb.written_to(port).split()), (name, [str(text)]))


def _healthy(devices: Mapping[str, str]) -> list[str]:
    return [name for name, health in devices.items() if health == "Healthy"]


@contextmanager
def kubelet_at_boot(node: Node) -> Iterator[None]:
    """Start the kubelet at boot, while the block runs."""
    node.sh("systemctl enable kubelet; sync")
    try:
        yield
    finally:
        node.sh("systemctl disable kubelet")
