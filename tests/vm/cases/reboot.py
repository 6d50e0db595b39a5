"""A reboot, as real containers see it. The runtime's release does not matter for it."""

from tests.vm.case import case
from tests.vm.cases.boot import kubelet_at_boot
from tests.vm.cases.containers import expect_own_units, two_pods
from tests.vm.cases.plugging import SERIAL, A, B
from tests.vm.node import Node, expect


@case
def after_a_reboot_real_containers_get_their_own_adapters(node: Node) -> None:
    with kubelet_at_boot(node):
        # Plugged in another order than the one in which the kernel finds them at boot.
        pods = two_pods(node, ports=("2", "1"))
        before = node.links()
        node.reboot()
        node.wait_for_devices(SERIAL, {A: "Healthy", B: "Healthy"})
        expect(node.links(), {A: before[B], B: before[A]})
        node.runtime.begin()
        expect_own_units(node, pods, {"of-a": "2", "of-b": "1"})
