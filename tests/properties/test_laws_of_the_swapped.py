"""Laws of units that a rule tells by a property: they are known wherever they are, and may take each other's
ports.

The device node that a container has gets into no other one, even if somebody changes the property of a unit
that stays plugged in.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory import saved
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.take import take_inventory
from tests.scenes.builders import (
    a_function,
    a_usb_device,
    a_usb_node,
    a_vfio_group,
    by_sys_path,
    resources_of,
)
from tests.scenes.rules import DOMAIN

PORTS = ("1", "2", "3", "4")
NAMES = ("a", "b", "c")

#: How many functions the IOMMU group of a unit has.
NUMBER_OF_FUNCTIONS = {"a": 2, "b": 1, "c": 2}

RULES = {
    "nodes": '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "tty" }\nidentity = ["NAME"]\n',
    "units": '[[resource]]\nname = "x"\nmatch = { usb = { vendor = "0403" } }\ngroup_by = "usb_device"\n'
    'identity = ["NAME"]\n',
    "named": '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "tty" }\ngroup_by = "NAME"\n'
    'identity = ["NAME"]\n',
    "groups": '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "vfio" }\nidentity = ["NAME"]\n',
}


@dataclass(frozen=True)
class Plug:
    """Where a unit is plugged in.

    since  different for any two plugs of a boot
    name   what udev calls the unit
    """

    port: str
    number: int
    since: int
    name: str


@dataclass
class Machine:
    """A machine with some units, each of which a pod has. `has`: what its running container has."""

    rules: str
    plugged: dict[str, Plug] = field(default_factory=dict)
    has: dict[str, Plug] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    inventory: Inventory = field(default_factory=Inventory)
    plugs: int = 0
    boot: int = 0
    now: float = 0.0
    is_down: bool = False

    def devices(self) -> Mapping[str, UdevDevice]:
        found: list[UdevDevice] = []
        for unit, plug in self.plugged.items():
            udev = {"NAME": plug.name}
            if self.rules == "groups":
                count = NUMBER_OF_FUNCTIONS[unit]
                functions = [a_function(f"0000:8{plug.port}:00.{number}") for number in range(count)]
                group = a_vfio_group(plug.number, *functions)
                found.append(replace(group, properties={**group.properties, **udev}, incarnation=plug.since))
                continue
            usb = a_usb_device(plug.port, serial=None, devnum=plug.number + 2)
            usb = replace(usb, properties={**usb.properties, **udev}, incarnation=plug.since)
            name, number = f"ttyUSB{plug.number}", f"c 188:{plug.number}"
            tty = a_usb_node(usb, "tty", name, number=number, properties=udev)
            found += (usb, replace(tty, incarnation=plug.since))
        return by_sys_path(*found)

    def step(self) -> None:
        if self.is_down:
            return
        self.now += 1000.0
        builder = Builder(resources_of(RULES[self.rules], domain=DOMAIN), DOMAIN)
        self.inventory, self.memory = take_inventory(builder, self.devices(), self.memory, self.now)
        again, _ = take_inventory(builder, self.devices(), self.memory, self.now)
        assert (again.offers, again.links()) == (self.inventory.offers, self.inventory.links())
        self.has = {name: plug for name, plug in self.has.items() if plug.since in self.there()}

    def there(self) -> set[int]:
        return {plug.since for plug in self.plugged.values()}

    def begin(self) -> None:
        """Each unit is plugged in, and a pod gets it."""
        for name, port in zip(NAMES, PORTS, strict=False):
            self.plug(name, port, 0)
        for offer in self.inventory.offers.values():
            self.memory = replace(self.memory, held=give(self.memory.held, offer, offer.ids, self.now))
        self.ids = {
            self.unit_behind(id_): id_ for offer in self.inventory.offers.values() for id_ in offer.ids
        }
        self.start()

    def unit_behind(self, id_: str) -> str | None:
        """The unit that a container would get now under an id, None if it would not start."""
        links = self.inventory.links()
        path = "/dev/vfio/" if self.rules == "groups" else "/dev/ttyUSB"
        nodes = {f"{path}{plug.number}": unit for unit, plug in self.plugged.items()}
        found = {
            nodes[node] for link, node in links.items() if link.partition("@")[0] == id_ and node in nodes
        }
        return found.pop() if len(found) == 1 else None

    # What happens

    def plug(self, unit: str, port: str, number: int) -> None:
        """Plug in a unit, at the next port and under the next number that are free."""
        self.plugged.pop(unit, None)
        ports = {plug.port for plug in self.plugged.values()}
        numbers = {plug.number for plug in self.plugged.values()}
        at = PORTS.index(port)
        self.plugs += 1
        self.plugged[unit] = Plug(
            next(each for each in (*PORTS[at:], *PORTS) if each not in ports),
            next(each for each in (*range(number, 4), *range(4)) if each not in numbers),
            self.plugs,
            unit,
        )
        self.step()

    def unplug(self, unit: str) -> None:
        self.plugged.pop(unit, None)
        self.step()

    def exchange(self, unit: str, other: str) -> None:
        """Somebody exchanges what udev calls two units."""
        if {unit, other} <= self.plugged.keys():
            one, two = self.plugged[unit], self.plugged[other]
            self.plugged[unit], self.plugged[other] = replace(one, name=two.name), replace(two, name=one.name)
            self.step()

    def rename(self, unit: str, name: str) -> None:
        """Udev calls a unit otherwise, perhaps as it calls another one."""
        if unit in self.plugged:
            self.plugged[unit] = replace(self.plugged[unit], name=name)
            self.step()

    def start(self) -> None:
        """All containers start again."""
        for unit, id_ in self.ids.items():
            behind = self.unit_behind(id_)
            if unit is not None and not self.is_down:
                self.has.pop(unit, None)
                if behind is not None:
                    self.has[unit] = self.plugged[behind]

    def stop_daemon(self) -> None:
        self.is_down = True

    def start_daemon(self) -> None:
        text = saved.dump(self.memory, f"boot {self.boot}")
        self.memory = saved.load(text, f"boot {self.boot}")
        self.is_down = False
        self.step()

    def upgrade(self) -> None:
        """An earlier release has saved the memory, which did not know the device nodes."""
        document = json.loads(saved.dump(self.memory, f"boot {self.boot}"))
        for entry in document["devices"].values():
            entry["also"] = []
        self.memory = saved.load(json.dumps(document).encode(), f"boot {self.boot}")

    def reboot(self, *order: int) -> None:
        """The kernel finds the units in another order."""
        text = saved.dump(self.memory, f"boot {self.boot}")
        self.boot += 1
        self.memory = saved.load(text, f"boot {self.boot}")
        before, self.plugged, self.has, self.plugs = self.plugged, {}, {}, 0
        self.is_down = False
        for unit in sorted(before, key=lambda name: order[NAMES.index(name)]):
            self.plug(unit, before[unit].port, 0)
            self.plugged[unit] = replace(self.plugged[unit], name=before[unit].name)
            self.step()
            self.check()
        self.start()

    # What holds

    def check(self) -> None:
        if self.is_down:
            return
        would = {unit: self.unit_behind(id_) for unit, id_ in self.ids.items()}
        for unit, behind in would.items():
            if behind is None:
                continue
            plug = self.plugged[behind]
            assert plug.name == unit, (unit, would)
            for other, has in self.has.items():
                assert other == unit or has.since != plug.since, f"{unit} would get what {other} has"


units = st.sampled_from(NAMES)
operations = st.one_of(
    st.tuples(st.just("plug"), units, st.sampled_from(PORTS), st.integers(0, 3)),
    st.tuples(st.just("plug"), units, st.sampled_from(PORTS), st.integers(0, 3)),
    st.tuples(st.just("unplug"), units),
    st.tuples(st.just("exchange"), units, units),
    st.tuples(st.just("rename"), units, units),
    st.tuples(st.just("start")),
    st.tuples(st.just("upgrade")),
    st.tuples(st.just("stop_daemon")),
    st.tuples(st.just("start_daemon")),
    st.builds(lambda order: ("reboot", *order), st.permutations(range(len(NAMES)))),
)
histories = st.lists(operations, max_size=15)


def after(rules: str, history: list[tuple[object, ...]]) -> Machine:
    """The machine, with its daemon running, after a history in which udev calls no unit otherwise."""
    machine = Machine(rules)
    machine.begin()
    for name, *arguments in history:
        if name not in ("exchange", "rename", "upgrade"):
            getattr(machine, str(name))(*arguments)
    machine.start_daemon()
    return machine


@example("nodes", [("upgrade",), ("exchange", "a", "b")])
@example("groups", [("upgrade",), ("rename", "a", "c"), ("exchange", "a", "b")])
@given(st.sampled_from(sorted(RULES)), histories)
def test_no_container_gets_a_node_that_another_one_has(rules: str, history: list[tuple[object, ...]]) -> None:
    machine = Machine(rules)
    machine.begin()
    for name, *arguments in history:
        getattr(machine, str(name))(*arguments)
        machine.check()


@example("nodes", [("stop_daemon",), ("plug", "a", "4", 0), ("plug", "b", "1", 0), ("plug", "a", "2", 0)])
@example("nodes", [("unplug", "b"), ("plug", "a", "2", 0), ("reboot", 0, 1, 2)])
@example("groups", [("unplug", "b"), ("plug", "a", "2", 0), ("reboot", 0, 1, 2)])
@example("named", [("unplug", "a"), ("plug", "b", "1", 0), ("plug", "a", "1", 0), ("unplug", "a")])
@given(st.sampled_from(sorted(RULES)), histories)
def test_each_container_gets_its_unit_again_once_all_are_plugged_in_wherever_they_are(
    rules: str, history: list[tuple[object, ...]]
) -> None:
    machine = after(rules, history)
    for unit in NAMES:
        if unit not in machine.plugged:
            machine.plug(unit, "1", 0)
    assert {unit: machine.unit_behind(id_) for unit, id_ in machine.ids.items()} == {n: n for n in NAMES}


@example("nodes", [("unplug", "b"), ("unplug", "a"), ("plug", "a", "2", 0)])
@given(st.sampled_from(sorted(RULES)), histories)
def test_a_container_gets_its_unit_again_wherever_that_is_although_others_are_unplugged(
    rules: str, history: list[tuple[object, ...]]
) -> None:
    machine = after(rules, history)
    behind = {unit: machine.unit_behind(id_) for unit, id_ in machine.ids.items()}
    assert behind == {unit: unit if unit in machine.plugged else None for unit in NAMES}
