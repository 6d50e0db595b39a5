"""While the service is away, real containers get their own adapter or are refused.

The udev rule of the package sees to it. Another adapter gets the name of the one that a pod holds, each time
with the service stopped, killed or hanging.
"""

from tests.vm.case import case
from tests.vm.cases.plugging import RULES, SERIAL, A
from tests.vm.node import LINKS, Node, Pod, expect
from tests.vm.runtime import HANDLERS, Outcome
from tests.vm.seed import HOME

#: How the service goes away, and how often another adapter gets the name meanwhile.
_WAYS = {
    "systemctl stop genericdp": 10,
    "systemctl kill --signal=KILL genericdp; systemctl stop genericdp": 10,
    # systemd notices only when the watchdog's time is over.
    "systemctl kill --signal=STOP genericdp": 1,
}
_WRITE = "stty -F /dev/ttyUSB0 raw -echo; printf hello >/dev/ttyUSB0"


@case
def no_real_container_gets_another_adapter_while_the_service_is_away(node: Node) -> None:
    _expect_own_or_none(node, "")


@case
def by_cdi_no_container_gets_another_adapter_while_it_is_away(node: Node) -> None:
    _expect_own_or_none(node, 'answer = "cdi"\n')


def _expect_own_or_none(node: Node, key: str) -> None:
    node.begin({name: text + key for name, text in RULES.items()})
    node.runtime.begin()
    node.usb.serial("1", "UNIT-A")
    node.wait_for_devices(SERIAL, {A: "Healthy"})
    pod = node.admit("pod", {SERIAL: 1})
    # What the daemon has written. Putting it back saves starting the daemon each time.
    node.sh(f"rm -rf {HOME}/kept; cp -a /run/cdi {HOME}/kept")
    put_back = f"ln -sfn /dev/ttyUSB0 {LINKS}/{A}; cp {HOME}/kept/genericdp* /run/cdi/ 2>/dev/null || true"
    for way, times in _WAYS.items():
        node.sh(way)
        for time in range(times):
            node.usb.unplug("1")
            node.usb.serial("2", "UNIT-B")
            node.wait_for_node("/dev/ttyUSB0")
            outcome = _create(node, pod, HANDLERS[time % 2])
            expect((outcome.error != "", node.usb.written_to("2")), (True, ""))
            node.usb.unplug("2")
            node.usb.serial("1", "UNIT-A")
            node.wait_for_node("/dev/ttyUSB0")
            if time < times - 1:
                node.sh(put_back)
        node.sh("systemctl kill --signal=CONT genericdp; systemctl start genericdp")
        outcome = _create(node, pod, "runc", keep=True)
        if outcome.error:
            outcome = node.runtime.restarted("pod", 1)
        expect((outcome.error, node.usb.written_to("1")), ("", "hello"))


def _create(node: Node, pod: Pod, handler: str, *, keep: bool = False) -> Outcome:
    return node.runtime.create("pod", handler=handler, script=_WRITE, keep=keep, **pod.request)
