"""Law of what has happened and is not heard: the daemon hears any of the events, in any order.

What looks like the unit of a pod comes meanwhile, and udev takes its time. An id that a pod holds goes to no
other unit at another port while its own unit is plugged in, wherever that is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory import saved
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.inputs import take
from tests.properties.test_laws_of_the_holdings import KIT, PORTS, UNITS, properties_of, table
from tests.scenes.builders import a_device, a_usb_device, a_usb_node, by_sys_path, resources_of
from tests.scenes.rules import DOMAIN
from tests.scenes.udev import FakeUdev

_USB = 'usb = { vendor = "0403" }'

RESOURCE = "example.com/x"

#: Devices of which the kernel only counts who comes. The number is their port here.
VIRTUAL = "virtual devices"

RULES = {
    "by serial number": table("x"),
    "shared": table("x", "replicas = 2"),
    "by port": table("x", 'identity = "port"'),
    "by foo": table("x", 'identity = ["FOO"]'),
    "grouped by foo": table("x", 'group_by = "FOO"'),
    "whole units": table("x", 'group_by = "usb_device"', match=_USB),
    "all in one": table("x", 'group_by = "ALL"'),
    "a kit": KIT,
    VIRTUAL: table("x", match='SUBSYSTEM = "pps"'),
}


@dataclass(frozen=True)
class Plug:
    """Where a unit is plugged in.

    first     the first number of its terminals
    since     different for any two plugs
    finished  whether udev has finished with it
    """

    port: str
    first: int
    since: int
    finished: bool


class Heard(FakeUdev):
    """What the daemon has read of a machine."""

    def __init__(self, machine: "Machine") -> None:
        super().__init__(Path("/nowhere"))
        self._machine = machine

    def resync(self) -> bool:
        before, self._devices = self._devices, dict(self._machine.devices())
        return before != self._devices

    def differing(self) -> list[str]:
        """Where what the daemon has read is not what is there."""
        now = self._machine.devices()
        paths = sorted(now.keys() | self._devices.keys())
        return [path for path in paths if now.get(path) != self._devices.get(path)]

    def hear(self, path: str) -> None:
        """Read again what is at a path, with what it hangs off. What was below something else goes."""
        now = self._machine.devices()
        gone = [
            each
            for each in self._devices
            if f"{path}/".startswith(f"{each}/")
            and (each not in now or now[each].incarnation != self._devices[each].incarnation)
        ]
        for each in [each for each in self._devices for top in gone if f"{each}/".startswith(f"{top}/")]:
            self._devices.pop(each, None)
        if path in now:
            self._devices |= {each.sys_path: each for each in now[path].related()}


@dataclass
class Machine:
    """A machine with two units that may be taken for each other. A pod has the first one.

    means  what each link of the pod has led to last: unit and port
    """

    rules: str
    pair: str
    plugged: dict[str, Plug] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    inventory: Inventory = field(default_factory=Inventory)
    means: dict[str, tuple[str, str]] = field(default_factory=dict)
    plugs: int = 0

    def __post_init__(self) -> None:
        self.heard = Heard(self)
        self.builder = Builder(resources_of(RULES[self.rules], domain=DOMAIN), DOMAIN)

    def devices(self) -> Mapping[str, UdevDevice]:
        """What is there."""
        found = (nodes_of(name, plug, self.rules) for name, plug in self.plugged.items())
        return by_sys_path(*(each for nodes in found for each in nodes))

    # What happens

    def plug(self, unit: int, port: str, finished: bool) -> None:
        """A unit is plugged in, perhaps elsewhere than before, under the first numbers that are free."""
        name = self.pair[unit]
        self.plugged.pop(name, None)
        if port in {plug.port for plug in self.plugged.values()}:
            return
        taken = {plug.first + n for other, plug in self.plugged.items() for n in range(UNITS[other].ports)}
        first = 0 if taken.isdisjoint(range(UNITS[name].ports)) else max(taken) + 1
        self.plugs += 1
        self.plugged[name] = Plug(port, first, self.plugs, finished)

    def unplug(self, unit: int) -> None:
        self.plugged.pop(self.pair[unit], None)

    def finish(self, unit: int) -> None:
        """Udev has finished with a unit."""
        if plug := self.plugged.get(name := self.pair[unit]):
            self.plugged[name] = replace(plug, finished=True)

    def hear(self, port: str, just_one: bool) -> None:
        """What has happened at a port is heard, or the first event of it."""
        at_port = re.compile(rf"/(?:1-|pps){port}(?:/|$)")
        paths = list(filter(at_port.search, self.heard.differing()))
        for path in reversed(paths[-1:] if just_one else paths):
            self.heard.hear(path)
            self.look()

    def hear_all(self) -> None:
        self.heard.resync()
        self.look()

    def restart(self) -> None:
        self.memory = saved.load(saved.dump(self.memory))
        self.builder = Builder(resources_of(RULES[self.rules], domain=DOMAIN), DOMAIN)
        self.hear_all()

    def begin(self) -> None:
        self.plug(0, PORTS[0], finished=True)
        self.hear_all()
        offer = self.inventory.offers[RESOURCE]
        id_ = min(offer.ids)
        self.memory = replace(self.memory, held=give({}, offer, [id_], 0.0))
        self.means = dict(self.behind([node.link for node in offer.ids[id_].nodes]))

    # What holds

    def look(self) -> None:
        self.inventory, self.memory = take(self.builder, self.heard, self.memory, 0.0)
        for link, (name, port) in self.behind(self.means):
            unit, before = self.means[link]
            assert name == unit or port == before or unit not in self.plugged, (
                f"{link}: {name} at {port} instead of {unit}, which was at {before}"
            )
            self.means[link] = name, port

    def behind(self, links: Iterable[str]) -> Iterator[tuple[str, tuple[str, str]]]:
        """Where those links lead that lead somewhere, as far as the daemon has heard: unit and port."""
        devices = self.inventory.offers[RESOURCE].devices
        paths = {node.link: node.sys_path for device in devices for node in device.nodes}
        for link in links:
            if self.inventory.links()[link] is not None:
                properties = self.heard.devices[paths[link]].properties
                yield link, (properties["PHYSICAL"], properties["AT"])


def nodes_of(name: str, plug: Plug, rules: str) -> Iterator[UdevDevice]:
    """The device nodes of a unit, each with the unit and the port as properties."""
    where = {"PHYSICAL": name, "AT": plug.port}
    incarnation, finished = plug.since + 1, plug.finished
    if rules == VIRTUAL:
        yield a_device(
            f"/sys/devices/virtual/pps/pps{plug.port}",
            subsystem="pps",
            node=f"/dev/pps{plug.port}",
            number=f"c 251:{plug.port}",
            properties=where,
            initialized=finished,
            incarnation=incarnation,
        )
        return
    unit = UNITS[name]
    usb = a_usb_device(plug.port, serial=unit.serial, devnum=incarnation)
    usb = replace(usb, incarnation=incarnation, initialized=finished, properties={**usb.properties, **where})
    yield usb
    for n in range(unit.ports):
        tty = a_usb_node(
            usb,
            "tty",
            f"ttyACM{plug.first + n}",
            interface=f"{n if unit.apart else 0:02}",
            number=f"c 166:{plug.first + n}",
            properties={**where, **(properties_of(name, n) if finished else {})},
        )
        yield replace(tty, incarnation=incarnation, initialized=finished)


#: Units that may be taken for each other: by their serial number, by what udev says of them; with siblings.
PAIRS = ("AC", "AD", "EF")

units, ports = st.integers(0, 1), st.sampled_from(PORTS[:3])
plugs = st.tuples(st.just("plug"), units, ports, st.sampled_from([True, True, False]))
hears = st.tuples(st.just("hear"), ports, st.booleans())
operations = st.one_of(
    plugs,
    plugs,
    hears,
    hears,
    st.tuples(st.sampled_from(["unplug", "finish"]), units),
    st.tuples(st.sampled_from(["hear_all", "restart"])),
)


@example(
    "by serial number",
    "AC",
    # Both have come, and the event of the other one is the first.
    [("plug", 0, "3", True), ("plug", 1, "2", True), ("hear", "1", False), ("hear", "2", False)],
)
@example("by serial number", "AC", [("plug", 0, "3", True), ("plug", 1, "2", True), ("hear_all",)])
@example("by serial number", "AC", [("plug", 0, "3", False), ("plug", 1, "2", True), ("hear_all",)])
@example(
    VIRTUAL,
    "AC",
    [("plug", 0, "3", True), ("plug", 1, "2", True), ("hear", "1", False), ("hear", "2", False)],
)
@example("by foo", "AD", [("plug", 0, "1", False), ("plug", 1, "2", True), ("hear_all",)])
@given(st.sampled_from(sorted(RULES)), st.sampled_from(PAIRS), st.lists(operations, max_size=10))
def test_a_held_id_goes_to_no_other_unit_while_its_own_is_plugged_in(
    rules: str, pair: str, history: list[tuple[object, ...]]
) -> None:
    machine = Machine(rules, pair)
    machine.begin()
    for name, *arguments in history:
        getattr(machine, str(name))(*arguments)


@pytest.mark.parametrize("rules", sorted(RULES.keys() - {VIRTUAL}))
@given(pair=st.sampled_from(PAIRS[:2]), history=st.lists(operations, max_size=10))
def test_the_pod_gets_its_unit_again_where_that_was_last(
    rules: str, pair: str, history: list[tuple[object, ...]]
) -> None:
    machine = Machine(rules, pair)
    machine.begin()
    for name, *arguments in history:
        getattr(machine, str(name))(*arguments)
    ((_, port),) = {*machine.means.values()}
    machine.unplug(1)
    machine.plug(0, port, finished=True)
    machine.hear_all()
    assert dict(machine.behind(machine.means)) == dict.fromkeys(machine.means, (pair[0], port))
