"""Law of what has happened and is not heard: the daemon hears any of the events, in any order.

What looks like the unit of a pod comes meanwhile, and drivers and udev take their time. An id that a pod
holds goes to no other unit at another port while its own unit is plugged in, wherever that is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
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
from genericdp.errors import UnreadError
from genericdp.inputs import take
from tests.properties.searching import for_each_of_many
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


class State(Enum):
    """How far the kernel and udev have got with a unit."""

    HANGS = "while its driver probes it, it cannot be read"
    NODELESS = "no driver has made its device nodes"
    COMING = "udev has not finished with it"
    FINISHED = "udev has finished with it"


@dataclass(frozen=True)
class Plug:
    """Where a unit is plugged in.

    first     the first number of its terminals
    since     different for any two plugs
    state     whether udev has finished with it, and whether the kernel answers before that
    """

    port: str
    first: int
    since: int
    state: State

    @property
    def finished(self) -> bool:
        """Whether udev has finished with all that is there of it."""
        return self.state in (State.FINISHED, State.NODELESS)


class Heard(FakeUdev):
    """What the daemon has read of a machine."""

    def __init__(self, machine: "Machine") -> None:
        super().__init__(Path("/nowhere"))
        self._machine = machine

    def resync(self) -> bool:
        before, self._devices = seen_in(self._devices), dict(self._machine.devices())
        self._see_unread(self._machine.hanging())
        return before != seen_in(self._devices)

    def _see_unread(self, paths: frozenset[str]) -> None:
        self.unread = UnreadError("they hang", paths=dict.fromkeys(paths, "")) if paths else None

    def differing(self) -> list[str]:
        """Where what the daemon has read is not what is there."""
        unread = frozenset(() if self.unread is None else self.unread.paths)
        differing = seen_in(self._machine.devices()) ^ seen_in(self._devices)
        return sorted({path for path, *_ in differing} | (self._machine.hanging() ^ unread))

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
        hanging = self._machine.hanging()
        unread = frozenset(() if self.unread is None else self.unread.paths)
        self._see_unread((unread | {path}) & hanging)
        if path in now:
            self._devices |= {each.sys_path: each for each in now[path].related()}


def seen_in(devices: Mapping[str, UdevDevice]) -> frozenset[tuple[str, int, bool]]:
    """Where something is, since when, and whether udev has finished with it."""
    return frozenset((path, each.incarnation, each.initialized) for path, each in devices.items())


@dataclass
class Machine:
    """A machine with two units that may be taken for each other. A pod has the first one.

    means  what each link of the pod has led to last: unit and port
    last   the port to which one of them has led last
    """

    rules: str
    pair: str
    plugged: dict[str, Plug] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    inventory: Inventory = field(default_factory=Inventory)
    means: dict[str, tuple[str, str]] = field(default_factory=dict)
    last: str = PORTS[0]
    plugs: int = 0

    def __post_init__(self) -> None:
        self.heard = Heard(self)
        self.builder = Builder(resources_of(RULES[self.rules], domain=DOMAIN), DOMAIN)

    def devices(self) -> Mapping[str, UdevDevice]:
        """What is there."""
        units = [(name, plug) for name, plug in self.plugged.items() if plug.state is not State.HANGS]
        return by_sys_path(*(each for name, plug in units for each in nodes_of(name, plug, self.rules)))

    def hanging(self) -> frozenset[str]:
        """Where something is that cannot be read."""
        plugs = self.plugged.values()
        return frozenset(usb_at(plug.port).sys_path for plug in plugs if plug.state is State.HANGS)

    # What happens

    def plug(self, unit: int, port: str, state: State) -> None:
        """A unit is plugged in, perhaps elsewhere than before, under the first numbers that are free."""
        name = self.pair[unit]
        self.plugged.pop(name, None)
        if port in {plug.port for plug in self.plugged.values()}:
            return
        taken = {plug.first + n for other, plug in self.plugged.items() for n in range(UNITS[other].ports)}
        first = 0 if taken.isdisjoint(range(UNITS[name].ports)) else max(taken) + 1
        self.plugs += 1
        # Nothing probes a virtual device, and it is its node.
        is_virtual = self.rules == VIRTUAL and state in (State.HANGS, State.NODELESS)
        self.plugged[name] = Plug(port, first, self.plugs, State.COMING if is_virtual else state)

    def unplug(self, unit: int) -> None:
        self.plugged.pop(self.pair[unit], None)

    def finish(self, unit: int) -> None:
        """Udev has finished with a unit."""
        if plug := self.plugged.get(name := self.pair[unit]):
            self.plugged[name] = replace(plug, state=State.FINISHED)

    def unbind(self, unit: int) -> None:
        """The driver lets a unit go."""
        plug = self.plugged.get(name := self.pair[unit])
        if plug is not None and self.rules != VIRTUAL and plug.state is State.FINISHED:
            self.plugged[name] = replace(plug, state=State.NODELESS)

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
        self.plug(0, PORTS[0], State.FINISHED)
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
            self.last = port

    def behind(self, links: Iterable[str]) -> Iterator[tuple[str, tuple[str, str]]]:
        """Where those links lead that lead somewhere, as far as the daemon has heard: unit and port."""
        devices = self.inventory.offers[RESOURCE].devices
        paths = {node.link: node.sys_path for device in devices for node in device.nodes}
        for link in links:
            if self.inventory.links()[link] is not None:
                properties = self.heard.devices[paths[link]].properties
                yield link, (properties["PHYSICAL"], properties["AT"])


def usb_at(port: str, serial: str | None = None, devnum: int = 1) -> UdevDevice:
    return a_usb_device(port, serial=serial, devnum=devnum)


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
    usb = usb_at(plug.port, serial=unit.serial, devnum=incarnation)
    usb = replace(usb, incarnation=incarnation, initialized=finished, properties={**usb.properties, **where})
    yield usb
    for n in range(0 if plug.state is State.NODELESS else unit.ports):
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
PAIRS = ("AC", "AD", "DA", "EF")

HANGS, NODELESS, COMING, FINISHED = State

units, ports = st.integers(0, 1), st.sampled_from(PORTS[:3])
plugs = st.tuples(st.just("plug"), units, ports, st.sampled_from(State))
hears = st.tuples(st.just("hear"), ports, st.booleans())
operations = st.one_of(
    plugs,
    plugs,
    hears,
    hears,
    st.tuples(st.sampled_from(["unplug", "finish", "unbind"]), units),
    st.tuples(st.sampled_from(["hear_all", "restart"])),
)


@example(
    "by serial number",
    "AC",
    # Both have come, and the event of the other one is the first.
    [("plug", 0, "3", FINISHED), ("plug", 1, "2", FINISHED), ("hear", "1", False), ("hear", "2", False)],
)
@example("by serial number", "AC", [("plug", 0, "3", FINISHED), ("plug", 1, "2", FINISHED), ("hear_all",)])
@example("by serial number", "AC", [("plug", 0, "3", COMING), ("plug", 1, "2", FINISHED), ("hear_all",)])
@example(
    VIRTUAL,
    "AC",
    [("plug", 0, "3", FINISHED), ("plug", 1, "2", FINISHED), ("hear", "1", False), ("hear", "2", False)],
)
@example("by serial number", "AC", [("plug", 0, "3", HANGS), ("plug", 1, "2", FINISHED), ("hear_all",)])
@example(
    "by serial number",
    "AC",
    [("plug", 0, "3", HANGS), ("plug", 1, "2", FINISHED), ("hear", "1", False), ("hear", "2", False)],
)
@example("by foo", "AD", [("plug", 0, "1", COMING), ("plug", 1, "2", FINISHED), ("hear_all",)])
@example("by serial number", "AC", [("unbind", 0), ("plug", 1, "2", FINISHED), ("hear_all",)])
@example("by serial number", "AC", [("unbind", 0), ("restart",), ("plug", 1, "2", FINISHED), ("hear_all",)])
@example("by foo", "AD", [("plug", 0, "3", NODELESS), ("plug", 1, "2", FINISHED), ("hear_all",)])
@example("by foo", "DA", [("plug", 0, "3", NODELESS), ("plug", 1, "2", FINISHED), ("hear_all",)])
@given(st.sampled_from(sorted(RULES)), st.sampled_from(PAIRS), st.lists(operations, max_size=10))
def test_a_held_id_goes_to_no_other_unit_while_its_own_is_plugged_in(
    rules: str, pair: str, history: list[tuple[object, ...]]
) -> None:
    machine = Machine(rules, pair)
    machine.begin()
    for name, *arguments in history:
        getattr(machine, str(name))(*arguments)


@pytest.mark.parametrize("rules", sorted(RULES.keys() - {VIRTUAL}))
@for_each_of_many
@given(pair=st.sampled_from(PAIRS[:3]), history=st.lists(operations, max_size=10))
def test_the_pod_gets_its_unit_again_where_that_was_last(
    rules: str, pair: str, history: list[tuple[object, ...]]
) -> None:
    machine = Machine(rules, pair)
    machine.begin()
    for name, *arguments in history:
        getattr(machine, str(name))(*arguments)
    machine.unplug(1)
    machine.plug(0, machine.last, State.FINISHED)
    machine.hear_all()
    assert dict(machine.behind(machine.means)) == dict.fromkeys(machine.means, (pair[0], machine.last))
