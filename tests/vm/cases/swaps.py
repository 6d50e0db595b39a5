"""Another device gets the name of one that has gone, while the service is not running.

Then the package's udev rule file is all that is left. The containers are real ones, made of what the kubelet
saved at the admission of their pods.

The rules of this file:

* A container is created once udevd has processed both devices. One that is created at the moment at which
  its device is unplugged may get a number that the kernel gives to the next device, whatever anybody does.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.vm.case import case
from tests.vm.cases.plugging import RULES, SERIAL
from tests.vm.node import LINKS, Node, expect
from tests.vm.runtime import HANDLERS, Outcome
from tests.vm.view import Pod

#: All units get this name, one after the other.
NAME = "/dev/ttyUSB0"

#: Release of Debian -> swaps for each way to end the service; on 13, the promised 50 together.
_SWAPS = {"12": 5, "13": 25}


@dataclass(frozen=True, slots=True)
class Unit:
    """An adapter, and the pod that holds it."""

    port: str
    serial: str
    pod: Pod

    @property
    def id(self) -> str:
        return f"serial_{self.serial}"


@case
def no_swap_without_the_service_gives_a_container_another_unit(node: Node) -> str:
    here, other = two_units(node, RULES)
    dead = Outcome("failed to generate container spec: failed to generate spec: EvalSymlinks: too many links")

    def as_if_it_had_run(unit: Unit) -> None:
        node.sh(f"ln -sfn {NAME} {LINKS}/{unit.id}")

    signals = ("TERM", "KILL")
    for signal in signals:
        end_service(node, signal)
        expect(node.links(), {here.id: NAME, other.id: other.id})
        for _ in range(_SWAPS[node.release]):
            expect(swap(node, here, other), dead)
            # Only the daemon knows that this one is back; this saves starting it each time.
            as_if_it_had_run(other)
            here, other = other, here
        node.start()
        expect_own_unit(node, here, other)
    swaps = len(signals) * _SWAPS[node.release]
    return f"{swaps} containers refused in {swaps} swaps"


def two_units(node: Node, rules: dict[str, str], here: Callable[[Unit], None] | None = None) -> list[Unit]:
    """Two units that were both called `NAME`, each with a pod. The first is there, the other one is not.

    here  called while a unit is there, with the other one absent
    """
    node.begin(rules)
    node.runtime.begin()
    units: list[Unit] = []
    for port, serial in (("2", "UNIT-B"), ("1", "UNIT-A")):
        node.usb.serial(port, serial)
        away = {unit.id: "Unhealthy" for unit in units}
        node.wait_for_devices(SERIAL, {f"serial_{serial}": "Healthy", **away})
        unit = Unit(port, serial, node.admit(serial.lower(), {SERIAL: 1}))
        if here is not None:
            here(unit)
        units.insert(0, unit)
        if len(units) == 1:
            node.usb.unplug(port)
            node.wait_for_devices(SERIAL, {unit.id: "Unhealthy"})
    return units


def end_service(node: Node, signal: str) -> None:
    """End the service by a signal, and keep it away."""
    node.sh(f"systemctl kill --signal={signal} genericdp; systemctl stop genericdp")


def swap(node: Node, leaves: Unit, comes: Unit) -> Outcome:
    """Another unit gets the name of one; what comes of the next container of the first one's pod."""
    node.usb.unplug(leaves.port)
    link = f"{LINKS}/{leaves.id}"
    node.sh(f'until [ "$(readlink {link})" = {leaves.id} ]; do sleep 0.05; done')
    node.usb.serial(comes.port, comes.serial)
    node.sh(f"udevadm wait --timeout=60 {NAME}; udevadm settle", timeout_s=90.0)
    return node.runtime.create(leaves.serial, handler=_handler(leaves), **leaves.pod.request)


def expect_own_unit(node: Node, here: Unit, other: Unit) -> None:
    """With the service running, the next container of the unit's pod writes to it."""
    node.wait_for_devices(SERIAL, {here.id: "Healthy", other.id: "Unhealthy"})
    (path,) = here.pod.nodes
    script = f"stty -F {path} raw -echo; printf %s {here.serial} >{path}"
    outcome = node.runtime.create(here.serial, handler=_handler(here), script=script, **here.pod.request)
    expect((outcome.error, outcome.out), ("", ""))
    expect(node.usb.written_to(here.port), here.serial)


def _handler(unit: Unit) -> str:
    return HANDLERS[unit.serial == "UNIT-B"]
