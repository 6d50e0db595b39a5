"""Laws of the nodes that udev does not know, on a real /dev: no alias bypasses a claim, whatever happens."""

import os
from collections.abc import Iterable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.hint import NodeChange, Uevent
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.absence import UNPLUGGED
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from genericdp.core.rules.resource import Resource
from genericdp.machine.devices import MachineDevices
from tests.properties.strategies import DOMAIN
from tests.scenes.builders import a_device, resources_of
from tests.scenes.dev import UNKNOWN_MAJOR, make_node
from tests.scenes.udev import FakeUdev, a_fake_udev

#: Where nodes may be; rules of two resources name the first four.
NAMES = ("a0", "a1", "b0", "deep/a2", "other")
MINORS = (0, 1)

#: (what, name, number of the node or udev device or rules, or mode, owner)
Step = tuple[str, str, int, int]
making = st.tuples(
    st.just("make"), st.sampled_from(NAMES), st.sampled_from(MINORS), st.sampled_from([0, 0, 0, 7])
)
steps = st.lists(
    st.one_of(
        making,
        making,
        st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just(0), st.just(0)),
        st.tuples(st.just("plug"), st.just(""), st.sampled_from(MINORS), st.just(0)),
        st.tuples(st.just("unplug"), st.just(""), st.sampled_from(MINORS), st.just(0)),
        st.tuples(st.just("edit"), st.just(""), st.sampled_from([0, 1, 2]), st.just(0)),
        st.tuples(st.just("chmod"), st.just("deep"), st.sampled_from([0o755, 0o775]), st.just(0)),
    ),
    min_size=4,
    max_size=12,
)


def rules_for(dev: Path, edit: int = 0) -> tuple[Resource, ...]:
    a = f'[[resource]]\nname = "a"\nmatch = {{ DEVNAME = "{dev}/*a[0-9]" }}\n'
    b = f'[[resource]]\nname = "b"\nmatch = [{{ DEVNAME = "{dev}/b0" }}, {{ SUBSYSTEM = "acme" }}]\n'
    by_number = f'[[resource]]\nname = "a"\nmatch = {{ MAJOR = "{UNKNOWN_MAJOR}" }}\n'
    return resources_of((a + b, b, by_number)[edit], domain=DOMAIN)


def of_udev(minor: int) -> UdevDevice:
    return a_device(
        f"/sys/devices/virtual/acme/acme{minor}ctl",
        subsystem="acme",
        node=f"/dev/acme{minor}",
        number=f"c {UNKNOWN_MAJOR}:{minor}",
    )


class Machine:
    """A machine on which steps are done, and what is known of it."""

    def __init__(self, udev: FakeUdev) -> None:
        self.udev = udev
        self.resources = rules_for(udev.dev)
        self.memory = Memory()
        self.known = self.looked_at_anew()

    def do(self, step: Step) -> None:
        what, name, minor, owner = step
        path = self.udev.dev / name
        device = of_udev(minor)
        match what:
            case "make":
                path.parent.mkdir(exist_ok=True)
                path.unlink(missing_ok=True)
                make_node(path, minor)
                os.chown(path, owner, 0)
                self.known.apply(NodeChange(str(path.parent)))
                self.known.apply(NodeChange(str(path)))
            case "remove":
                path.unlink(missing_ok=True)
                self.known.apply(NodeChange(str(path)))
            case "plug" if device.sys_path not in self.udev.devices:
                self.udev.plug(device)
                self.known.apply(Uevent("add", device.sys_path, "acme", "udev"))
            case "unplug" if device.sys_path in self.udev.devices:
                self.udev.unplug(device)
                self.known.apply(Uevent("remove", device.sys_path, "acme", "kernel"))
            case "edit":
                self.resources = rules_for(self.udev.dev, minor)
                self.known.want(self.resources)
            case "chmod" if path.exists():
                path.chmod(minor)
                self.known.apply(NodeChange(str(path)))

    def take(self) -> Inventory:
        """The inventory, with what is absent; it is remembered."""
        builder = Builder(self.resources, DOMAIN)
        inventory, self.memory = take_inventory(builder, self.known.devices, self.memory, 0.0)
        return inventory

    def inventory(self, devices: Iterable[UdevDevice]) -> Inventory:
        return Builder(self.resources, DOMAIN).build({each.sys_path: each for each in devices})

    def looked_at_anew(self) -> MachineDevices:
        fresh = MachineDevices(self.resources, udev=self.udev, listen=self.udev.listen)
        fresh.remember(lambda: self.memory.devices)
        fresh.resync()
        return fresh


def seen(machine: MachineDevices) -> dict[str, tuple[object, ...]]:
    return {path: (each.number, each.refusal, each.gid) for path, each in machine.devices.items()}


@given(steps)
def test_what_hints_lead_to_is_what_a_look_at_everything_finds(done: list[Step]) -> None:
    with a_fake_udev() as udev:
        machine = Machine(udev)
        for step in done:
            machine.do(step)
            assert seen(machine.known) == seen(machine.looked_at_anew())
            machine.take()


@given(steps)
def test_what_is_there_is_never_unplugged(done: list[Step]) -> None:
    with a_fake_udev() as udev:
        machine = Machine(udev)
        for step in done:
            machine.do(step)
            machine.take()
            for known in machine.memory.devices.values():
                (path,) = (spot.port for spot in known.device.spots)
                assert known.device.reason != UNPLUGGED or not os.path.lexists(path)


@given(steps)
def test_no_device_number_is_offered_twice_and_an_id_is_a_function_of_the_path(done: list[Step]) -> None:
    with a_fake_udev() as udev:
        machine = Machine(udev)
        ids: dict[str, str] = {}
        for step in done:
            machine.do(step)
            devices = machine.known.devices.values()
            inventory = machine.inventory(devices)
            offered = [
                (node.number, node.path, device.id)
                for offer in inventory.offers.values()
                for device in offer.devices
                for node in device.nodes
            ]
            assert len({number for number, _, _ in offered}) == len(offered)
            for _, path, id_ in offered:
                assert ids.setdefault(path, id_) == id_
            assert len({*ids.values()}) == len(ids)
            assert machine.inventory(reversed(tuple(devices))) == inventory
            refused = {path for path, device in machine.known.devices.items() if device.refusal}
            assert not refused & {path for _, path, _ in offered}
