"""Laws of kits, devices of several units, beside plain resources, while units move and rules are edited.

Also for units with one serial number: other models, and twins that a property tells apart. And for units that
change their model at their port, as a modem does with its mode.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.allocate import RefusedError, allocate
from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.memory import resumed
from genericdp.core.rules.grouping import NODE
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

_LINKS = "/dev/genericdp"


def _kit(name: str, *ports: str) -> str:
    ports_of_it = ", ".join(f'"{port}"' for port in ports)
    return rule(
        name, 'group_by = "all"', match=f'{{ SUBSYSTEM = "tty", usb = {{ port = [{ports_of_it}] }} }}'
    )


def _at(name: str, *ports: str) -> str:
    ports_of_it = ", ".join(f'"{port}"' for port in ports)
    return rule(name, match=f'{{ SUBSYSTEM = "tty", usb = {{ port = [{ports_of_it}] }} }}')


DOCKS = 'group_by = { ID_MODEL_ID = "d0cc" }'
COLOUR = 'identity = ["ID_COLOR"]'

RULES = {
    "all in one kit": rule("kit", 'group_by = "all"'),
    "a kit of one port": _kit("kit", "1") + rule("u"),
    "a kit of two ports": _kit("kit", "1", "2") + rule("u"),
    "a kit of three ports": _kit("kit", "1", "2", "3") + rule("u"),
    "a kit of other ports": _kit("kit", "1", "3", "4") + rule("u"),
    "two kits": _kit("kit", "1", "2") + _kit("kot", "3", "4") + rule("u"),
    "no kit": rule("u"),
    "another name": rule("v"),
    "divided by port": _at("l", "1", "2") + rule("u"),
    "divided by model": rule("m", match='{ SUBSYSTEM = "tty", usb = { product = "6015" } }') + rule("u"),
    "a kit of a model": rule(
        "m", 'group_by = "all"', match='{ SUBSYSTEM = "tty", usb = { product = "6015" } }'
    )
    + rule("u"),
}
BY_COLOUR = {
    "one resource": rule("u", COLOUR),
    "two resources": rule("r", COLOUR, match='{ SUBSYSTEM = "tty", ID_COLOR = "red" }') + rule("u", COLOUR),
    "groups": rule("r", 'group_by = "ID_COLOR"'),
}
OF_DOCK = {
    "docks": rule("x", DOCKS),
    "another name": rule("y", DOCKS),
    "divided by port": rule("l", DOCKS, match='{ SUBSYSTEM = "tty", usb = { port = ["1.*", "2.*"] } }')
    + rule("x", DOCKS),
}
PORTS = "1234"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as it says what it is, and the ports at which it is plugged in.

    dock  the serial number of the dock that it is a part of. Then the ports are those of the dock
    mode  its other model
    """

    serial: str | None
    product: str
    ports: str = PORTS
    colour: str = ""
    dock: str = ""
    mode: str = ""


OF_ALL = "units with serial numbers of their own"
OF_DOCKS = "parts of docks"
OF_THREE = "three models with one serial number"
OF_COLOURS = "twins that a property tells apart"
BEHIND_DOCKS = "units without serial numbers behind docks"
WITH_MODES = "units with serial numbers of their own and two modes"

#: The parts of docks have ports of their own. With three models, a port may have been that of another one.
UNITS = {
    OF_ALL: (Unit("A", "6001"), Unit("B", "6001"), Unit("C", "6015")),
    OF_DOCKS: (Unit("A", "6001", "135"), Unit("A", "6015", "246"), Unit("B", "6001")),
    OF_THREE: (Unit("A", "6001", "14"), Unit("A", "6015", "12"), Unit("A", "6014", "23")),
    OF_COLOURS: (
        Unit("A", "6001", "13", "red"),
        Unit("A", "6001", "24", "blue"),
        Unit("A", "6015", "1234", "green"),
    ),
    BEHIND_DOCKS: (Unit(None, "6001", dock="D1"), Unit(None, "6001", dock="D2"), Unit("B", "6001")),
    WITH_MODES: (
        Unit("A", "6001", mode="6015"),
        Unit("B", "6015", mode="6001"),
        Unit("C", "6015", mode="6014"),
    ),
}


#: In another mode, at another port and under another rule, a unit counts as another one.
OF_ONE_RULE = {name: RULES[name] for name in ("all in one kit", "no kit")}


def _rules_for(units: str) -> dict[str, str]:
    return {OF_COLOURS: BY_COLOUR, BEHIND_DOCKS: OF_DOCK, WITH_MODES: OF_ONE_RULE}.get(units, RULES)


@dataclass(slots=True)
class Pod:
    """What a pod got: link -> the number of the unit, and the port where that was, and the model.

    has_moved  whether a unit of it was seen at another port since
    may_be     what may be a unit of it in another mode
    """

    id_: str
    resource: str
    got: dict[str, int]
    ports: dict[int, str]
    models: dict[int, str]
    rules: str
    has_moved: bool = False
    may_be: set[int | None] = field(default_factory=set)


class Kits:
    """A node with a model of the truth: which unit is where, and which unit each pod got."""

    def __init__(self, units: str, rules: str) -> None:
        self.units, self.rules, self.node = UNITS[units], rules, Node()
        self.all_rules = _rules_for(units)
        self.at: dict[int, tuple[str, int]] = {}
        self.last_at: dict[int, str] = {}
        self.models = {number: unit.product for number, unit in enumerate(self.units)}
        self.plugs = 0
        self.pods: list[Pod] = []
        self.look()

    def look(self, answer: Answer | None = None) -> None:
        plugged = [self._device(number, port, plug) for number, (port, plug) in self.at.items()]
        for pod in self.pods:
            pod.has_moved |= any(self.at.get(unit, (port,))[0] != port for unit, port in pod.ports.items())
        self.last_at |= {number: port for number, (port, _) in self.at.items()}
        self.node.look(self.all_rules[self.rules], *plugged, answer=answer)
        self.check_links()

    def _device(self, number: int, port: str, plug: int) -> UdevDevice:
        unit = self.units[number]
        at = f"{port}.1" if unit.dock else port
        usb = a_usb_device(at, serial=unit.serial, product=self.models[number], devnum=2 + plug)
        if unit.dock:
            dock = a_usb_device(port, serial=unit.dock, product="d0cc", devnum=102 + plug)
            usb = replace(usb, parent=replace(dock, incarnation=1000 + plug))
        properties = {"ID_COLOR": unit.colour} if unit.colour else {}
        node = a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}", properties=properties)
        return replace(node, incarnation=plug)

    def plug(self, number: int, which: int) -> None:
        self._change(number, which)
        self.look()

    def flip(self, number: int) -> None:
        """A unit changes its mode, plugged in or not."""
        unit = self.units[number]
        if unit.mode:
            self.models[number] = unit.mode if self.models[number] == unit.product else unit.product
            if number in self.at:
                self.plugs += 1
                self.at[number] = self.at[number][0], self.plugs
        self.look()

    def _change(self, number: int, which: int) -> None:
        """A unit is plugged in at one of its ports, if that is free, or leaves."""
        port = self.units[number].ports[which % len(self.units[number].ports)]
        if self.at.pop(number, None) is None and port not in {port for port, _ in self.at.values()}:
            self.plugs += 1
            self.at[number] = port, self.plugs

    def edit(self, which: int) -> None:
        if self.all_rules is OF_ONE_RULE:
            return
        self.rules = sorted(self.all_rules)[which % len(self.all_rules)]
        self.look()

    def restart(self, *changes: tuple[int, int], boot: str = "one") -> None:
        """Units are plugged and unplugged while the daemon does not run."""
        self.node.memory = resumed(saved.load(saved.dump(self.node.memory, "one"), boot), self.node.now)
        for number, which in changes:
            self._change(number, which)
        self.look()

    def boot(self, *changes: tuple[int, int]) -> None:
        """The same while the machine is off. Everything is plugged in anew."""
        for number, (port, _) in self.at.items():
            self.plugs += 1
            self.at[number] = port, self.plugs
        self.restart(*changes, boot="two")

    def replace(self, which: int) -> None:
        """A pod has gone, and the kubelet gives its id to the next one before the daemon hears of it."""
        if self.pods:
            gone = self.pods.pop(which % len(self.pods))
            self.admit(which, only=gone.id_)
            self.look()
            if gone.id_ not in {pod.id_ for pod in self.pods}:
                self.pods.append(gone)

    def admit(self, which: int, only: str = "") -> None:
        """A pod gets something that is offered."""
        taken = {pod.id_ for pod in self.pods}
        offered = [
            (offer, device.id)
            for offer in self.node.inventory.offers.values()
            for device in offer.devices
            if offer.ids[device.id].healthy and device.id not in taken and only in ("", device.id)
        ]
        if not offered:
            return
        offer, id_ = offered[which % len(offered)]
        try:
            given = allocate(offer, [id_], _LINKS)
        except RefusedError:
            return
        links = [each.host_path.removeprefix(f"{_LINKS}/") for each in given.devices]
        got = {link: self._unit_behind(link) for link in links}
        had = {unit for pod in self.pods for unit in pod.got.values()}
        assert had.isdisjoint(unit for unit in got.values() if unit is not None), f"a second pod gets {id_}"
        self.node.allocate(id_)
        units = {link: unit for link, unit in got.items() if unit is not None}
        assert units.keys() == got.keys(), f"{id_} was given although a link of it leads nowhere"
        ports = {unit: self.at[unit][0] for unit in units.values()}
        models = {unit: self.models[unit] for unit in units.values()}
        self.pods.append(Pod(id_, offer.resource.name, units, ports, models, self.rules))

    def delete(self, which: int) -> None:
        if self.pods:
            del self.pods[which % len(self.pods)]
        answer = self.node.nobody_holds_anything()
        self.look(replace(answer, ids=frozenset((pod.resource, pod.id_) for pod in self.pods)))

    def check_links(self) -> None:
        """A link that a pod got leads to the unit that it got, or nowhere."""
        had = {unit for pod in self.pods for unit in pod.got.values()}
        for pod in self.pods:
            for link, own in pod.got.items():
                unit = self._unit_behind(link)
                # A unit that changes its mode is another model at the same port.
                ports = pod.ports[own], self.last_at.get(own)
                if unit not in (None, own, *had) and own not in self.at and self._is_at(unit, ports, own):
                    pod.may_be.add(unit)
                may_be = pod.may_be if own not in self.at else ()
                assert unit in (None, own, *may_be), (link, unit, pod)

    def check_free(self) -> None:
        """A unit that no pod got is offered, if all have serial numbers of their own."""
        had = {unit for pod in self.pods for unit in pod.got.values()}
        for offer in self.node.inventory.offers.values():
            for device in offer.devices if offer.resource.group_by == NODE else ():
                units = {int(node.path.removeprefix("/dev/ttyUSB")) for node in device.nodes if node.sys_path}
                assert device.healthy or not units or not units.isdisjoint(had), (device, self.pods)

    def check_return(self, *, by_port: bool) -> None:
        """A pod has its device back when all its units are at their old ports, and nothing else is there.

        by_port  whether the old port is the last one, because only that tells them apart
        """
        for pod in self.pods:
            ports = {number: port for number, (port, _) in self.at.items()}
            is_as_given = ports == pod.ports and pod.models.items() <= self.models.items()
            if is_as_given and pod.rules == self.rules and not (by_port and pod.has_moved):
                now = {link: self._unit_behind(link) for link in pod.got}
                assert now == pod.got, (now, pod)

    def _is_at(self, unit: int | None, ports: Collection[str | None], other: int) -> bool:
        """Whether a unit with the serial number of another one is at one of these ports."""
        return (
            unit is not None
            and self.units[unit].serial == self.units[other].serial
            and self.at[unit][0] in ports
        )

    def _unit_behind(self, link: str) -> int | None:
        leads = self.node.inventory.links()[link]
        return None if leads is None else int(leads.removeprefix("/dev/ttyUSB"))


numbers = st.integers(0, 3)
steps = st.one_of(
    st.tuples(st.just("plug"), st.integers(0, 2), numbers),
    st.tuples(st.just("plug"), st.integers(0, 2), numbers),
    st.tuples(st.sampled_from(["admit", "admit", "delete", "replace"]), numbers),
    st.tuples(st.just("flip"), st.integers(0, 2)),
    st.tuples(st.just("edit"), st.integers(0, len(RULES) - 1)),
    st.lists(st.tuples(st.integers(0, 2), numbers), max_size=4).map(lambda changes: ("restart", *changes)),
    st.lists(st.tuples(st.integers(0, 2), numbers), max_size=4).map(lambda changes: ("boot", *changes)),
)


#: The unit of a kit leaves, another one comes in its place, and the first one is plugged in elsewhere.
EXCHANGED = [("plug", 0, 0), ("admit", 0), ("plug", 0, 0), ("plug", 0, 3), ("plug", 1, 0), ("admit", 0)]

#: A part of a dock leaves its kit, and a part of another dock is in the kit twice.
ANOTHER_MODEL = [
    *[("plug", 0, 0), ("plug", 2, 1), ("admit", 0), ("plug", 0, 0)],
    *[("plug", 1, 1), ("plug", 1, 1), ("plug", 1, 1)],
]


#: A unit is plugged into the kit of another model with its serial number.
MOVED_TO_THE_KIT = [
    *[("plug", 0, 1), ("admit", 0), ("plug", 1, 1), ("admit", 0)],
    *[("plug", 0, 0), ("plug", 0, 0), ("replace", 1)],
]

#: One of two units with one serial number leaves.
ONE_LEAVES = [
    ("plug", 0, 0),
    ("plug", 1, 0),
    ("admit", 0),
    ("admit", 0),
    ("plug", 1, 0),
    ("boot",),
    ("plug", 1, 0),
]


#: A unit changes its mode and back.
FLIPPED = [("plug", 0, 0), ("admit", 0), ("flip", 0), ("flip", 0)]

BEGINNINGS = [(units, rules) for units in UNITS for rules in sorted(_rules_for(units))]


@example((OF_ALL, "a kit of one port"), EXCHANGED)
@example((OF_DOCKS, "all in one kit"), ANOTHER_MODEL)
@example((OF_THREE, "a kit of three ports"), MOVED_TO_THE_KIT)
@example((OF_COLOURS, "two resources"), ONE_LEAVES)
@example((WITH_MODES, "all in one kit"), FLIPPED)
@given(st.sampled_from(BEGINNINGS), st.lists(steps, max_size=16))
def test_each_pod_has_its_own_units_or_none(
    beginning: tuple[str, str], history: list[tuple[object, ...]]
) -> None:
    kits = Kits(*beginning)
    for name, *arguments in history:
        getattr(kits, str(name))(*arguments)
        if beginning[0] != OF_THREE:
            kits.check_return(by_port=beginning[0] not in (OF_ALL, WITH_MODES))
        if beginning[0] in (OF_ALL, WITH_MODES):
            kits.check_free()
