"""Laws of kits, devices of several units, beside plain resources, while units move and rules are edited."""

from dataclasses import dataclass, replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.allocate import RefusedError, allocate
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.memory import resumed
from tests.scenes.builders import a_usb_serial
from tests.scenes.edits import Node, rule

_LINKS = "/dev/genericdp"


def _kit(name: str, *ports: str) -> str:
    ports_of_it = ", ".join(f'"{port}"' for port in ports)
    return rule(
        name, 'group_by = "all"', match=f'{{ SUBSYSTEM = "tty", usb = {{ port = [{ports_of_it}] }} }}'
    )


RULES = {
    "all in one kit": rule("kit", 'group_by = "all"'),
    "a kit of one port": _kit("kit", "1") + rule("u"),
    "a kit of two ports": _kit("kit", "1", "2") + rule("u"),
    "a kit of three ports": _kit("kit", "1", "2", "3") + rule("u"),
    "a kit of other ports": _kit("kit", "1", "3", "4") + rule("u"),
    "two kits": _kit("kit", "1", "2") + _kit("kot", "3", "4") + rule("u"),
    "no kit": rule("u"),
}
PORTS = "1234"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as it says what it is, and the ports at which it is plugged in."""

    serial: str
    product: str
    ports: str = PORTS


#: The units with one serial number are different models: each has ports of its own.
UNITS = {
    "units with serial numbers of their own": (Unit("A", "6001"), Unit("B", "6001"), Unit("C", "6001")),
    "parts of docks": (Unit("A", "6001", "135"), Unit("A", "6015", "246"), Unit("B", "6001")),
}


@dataclass(slots=True)
class Pod:
    """What a pod got: link -> the number of the unit, and the port where that was."""

    id_: str
    resource: str
    got: dict[str, int]
    ports: dict[int, str]
    rules: str


class Kits:
    """A node with a model of the truth: which unit is where, and which unit each pod got."""

    def __init__(self, units: tuple[Unit, ...], rules: str) -> None:
        self.units, self.rules, self.node = units, rules, Node()
        self.at: dict[int, tuple[str, int]] = {}
        self.plugs = 0
        self.pods: list[Pod] = []
        self.look()

    def look(self, answer: Answer | None = None) -> None:
        plugged = [
            replace(
                a_usb_serial(
                    number,
                    serial=self.units[number].serial,
                    product=self.units[number].product,
                    port=port,
                    devnum=2 + plug,
                ),
                incarnation=plug,
            )
            for number, (port, plug) in self.at.items()
        ]
        self.node.look(RULES[self.rules], *plugged, answer=answer)
        self.check_links()

    def plug(self, number: int, which: int) -> None:
        """A unit is plugged in at one of its ports, if that is free, or leaves."""
        port = self.units[number].ports[which % len(self.units[number].ports)]
        if self.at.pop(number, None) is None and port not in {port for port, _ in self.at.values()}:
            self.plugs += 1
            self.at[number] = port, self.plugs
        self.look()

    def edit(self, rules: str) -> None:
        self.rules = rules
        self.look()

    def restart(self) -> None:
        self.node.memory = resumed(saved.load(saved.dump(self.node.memory)), self.node.now)
        self.look()

    def admit(self, which: int) -> None:
        """A pod gets something that is offered."""
        taken = {pod.id_ for pod in self.pods}
        offered = [
            (offer, device.id)
            for offer in self.node.inventory.offers.values()
            for device in offer.devices
            if offer.ids[device.id].healthy and device.id not in taken
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
        self.pods.append(Pod(id_, offer.resource.name, units, ports, self.rules))

    def delete(self, which: int) -> None:
        if self.pods:
            del self.pods[which % len(self.pods)]
        answer = self.node.nobody_holds_anything()
        self.look(replace(answer, ids=frozenset((pod.resource, pod.id_) for pod in self.pods)))

    def check_links(self) -> None:
        """A link that a pod got leads to the unit that it got, or nowhere."""
        for pod in self.pods:
            now = {link: self._unit_behind(link) for link in pod.got}
            assert all(unit in (None, pod.got[link]) for link, unit in now.items()), (now, pod)

    def check_return(self) -> None:
        """A pod has its device back when all its units are at their old ports, and nothing else is there."""
        for pod in self.pods:
            ports = {number: port for number, (port, _) in self.at.items()}
            if ports == pod.ports and pod.rules == self.rules:
                now = {link: self._unit_behind(link) for link in pod.got}
                assert now == pod.got, (now, pod)

    def _unit_behind(self, link: str) -> int | None:
        leads = self.node.inventory.links()[link]
        return None if leads is None else int(leads.removeprefix("/dev/ttyUSB"))


numbers = st.integers(0, 3)
steps = st.one_of(
    st.tuples(st.just("plug"), st.integers(0, 2), numbers),
    st.tuples(st.just("plug"), st.integers(0, 2), numbers),
    st.tuples(st.sampled_from(["admit", "admit", "delete"]), numbers),
    st.tuples(st.just("edit"), st.sampled_from(sorted(RULES))),
    st.tuples(st.just("restart")),
)

OF_ALL = "units with serial numbers of their own"
OF_DOCKS = "parts of docks"


#: The unit of a kit leaves, another one comes in its place, and the first one is plugged in elsewhere.
EXCHANGED = [("plug", 0, 0), ("admit", 0), ("plug", 0, 0), ("plug", 0, 3), ("plug", 1, 0), ("admit", 0)]

#: A part of a dock leaves its kit, and a part of another dock is in the kit twice.
ANOTHER_MODEL = [
    *[("plug", 0, 0), ("plug", 2, 1), ("admit", 0), ("plug", 0, 0)],
    *[("plug", 1, 1), ("plug", 1, 1), ("plug", 1, 1)],
]


@example(OF_ALL, "a kit of one port", EXCHANGED)
@example(OF_DOCKS, "all in one kit", ANOTHER_MODEL)
@given(st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(RULES)), st.lists(steps, max_size=16))
def test_each_pod_has_its_own_units_or_none(
    units: str, rules: str, history: list[tuple[object, ...]]
) -> None:
    kits = Kits(UNITS[units], rules)
    for name, *arguments in history:
        getattr(kits, str(name))(*arguments)
        kits.check_return()
