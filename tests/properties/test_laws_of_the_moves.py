"""Laws of units that are plugged in at other ports while the rules are edited and pods hold them."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.memory import Memory, resumed
from tests.properties.test_laws_of_the_lost_memory import left_links
from tests.scenes.builders import a_usb_serial
from tests.scenes.edits import Node, rule

_SERIAL = 'identity = ["ID_SERIAL"]'
_AT = '{{ SUBSYSTEM = "tty", usb = {{ port = "{}" }} }}'

#: No id of these says a port: a unit is the same one wherever it is.
RULES = {
    "plain": rule("x"),
    "renamed": rule("z"),
    "whole units": rule("x", 'group_by = "usb_device"'),
    "whole units, renamed": rule("z", 'group_by = "usb_device"'),
    "by port": "".join(rule(name, match=_AT.format(port)) for name, port in (("l", "1"), ("r", "2")))
    + rule("x"),
}
UNITS = ("A1", "B2")
PORTS = ("1", "2", "3")


class Moves:
    """A node whose units have serial numbers of their own, and move from port to port."""

    def __init__(self, rules: str) -> None:
        self.node, self.rules = Node(), rules
        self.at: dict[str, tuple[str, int]] = {}
        self.plugs = 0
        self.pods: list[tuple[str, str]] = []

    def look(self, answer: Answer | None = None) -> None:
        units = [
            replace(a_usb_serial(UNITS.index(unit), serial=unit, port=port, devnum=plug), incarnation=plug)
            for unit, (port, plug) in self.at.items()
        ]
        self.node.look(RULES[self.rules], *units, answer=answer)

    def move(self, unit: str, port: str) -> None:
        """A unit is plugged in, at a port that is free, or leaves."""
        if self.at.pop(unit, None) is None and port not in {port for port, _ in self.at.values()}:
            self.plugs += 1
            self.at[unit] = port, self.plugs
        self.look()

    def edit(self, rules: str) -> None:
        self.rules = rules
        self.look()

    def admit(self, number: int) -> None:
        """A pod gets something that is offered."""
        taken = {id_ for id_, _ in self.pods}
        offered = [
            (device.id, device.nodes[0].path)
            for offer in self.node.inventory.offers.values()
            for device in offer.devices
            if device.healthy and device.id not in offer.refused and device.id not in taken
        ]
        if offered:
            id_, path = offered[number % len(offered)]
            self.node.allocate(id_)
            self.pods.append((id_, UNITS[int(path.removeprefix("/dev/ttyUSB"))]))

    def delete(self, number: int) -> None:
        if self.pods:
            del self.pods[number % len(self.pods)]
        answer = self.node.nobody_holds_anything()
        ids = frozenset(
            (holding.resource, id_)
            for id_, holding in self.node.memory.held.items()
            if id_ in {id_ for id_, _ in self.pods}
        )
        self.look(Answer(ids, answer.asked, complete=True, checkpointed=frozenset(id_ for _, id_ in ids)))

    def lose(self) -> None:
        """The memory is lost while every unit that a pod has is there. The kubelet and the links are not."""
        if {unit for _, unit in self.pods} <= self.at.keys():
            led = left_links(self.node.inventory)
            held = frozenset((self.node.memory.held[id_].resource, id_) for id_, _ in self.pods)
            self.node.inventory, self.node.memory = Inventory(), resumed(Memory(), self.node.now)
            ids, ours = frozenset(id_ for _, id_ in held), frozenset(name for name, _ in held)
            now = self.node.now
            self.look(
                Answer(frozenset(), now, complete=False, checkpointed=ids, earlier=held, led=led, ours=ours)
            )

    def restart(self) -> None:
        self.node.memory = resumed(saved.load(saved.dump(self.node.memory)), self.node.now)
        self.look()


numbers = st.integers(0, 3)
steps = st.one_of(
    st.tuples(st.just("move"), st.sampled_from(UNITS), st.sampled_from(PORTS)),
    st.tuples(st.just("edit"), st.sampled_from(sorted(RULES))),
    st.tuples(st.sampled_from(["admit", "admit", "delete"]), numbers),
    st.tuples(st.sampled_from(["restart", "lose"])),
)


#: A pod gets a unit, which has another id and is at another port after that.
MOVED = [("move", "A1", "1"), ("admit", 0), ("edit", "renamed"), ("move", "A1", ""), ("move", "A1", "2")]


@example("plain", [*MOVED, ("admit", 0)])
@example("plain", [*MOVED, ("lose",), ("admit", 0)])
@given(st.sampled_from(sorted(RULES)), st.lists(steps, max_size=20))
def test_no_second_pod_gets_a_unit_that_a_pod_has_got(rules: str, history: list[tuple[object, ...]]) -> None:
    moves = Moves(rules)
    moves.look()
    for name, *arguments in history:
        getattr(moves, str(name))(*arguments)
        units = [unit for _, unit in moves.pods]
        assert len(units) == len({*units}), moves.pods
