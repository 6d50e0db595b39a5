"""Laws of device nodes that nothing but their order tells apart, while each of them comes and goes by itself.

The kernel gives names in any order, several nodes may change between two looks, and the daemon may be down
meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from tests.properties.searching import for_each_of_many
from tests.properties.test_laws_of_the_holdings import Node, Physical, table
from tests.scenes.builders import a_usb_device, a_usb_node, by_sys_path
from tests.scenes.edits import Node as Scene

RULES = {
    "each": table("x"),
    "by a property": table("x", 'identity = ["FOO"]'),
    "by the serial number in a property": table("x", 'identity = ["ID_SERIAL_SHORT"]'),
    "odd names": table("x", match='SUBSYSTEM = "tty", DEVNAME = "*[13579]"'),
    "all of the card": table("x", 'group_by = "usb_device"'),
    "odd names apart": table("y", match='SUBSYSTEM = "tty", DEVNAME = "*[13579]"')
    + table("x", 'group_by = "usb_device"'),
    "renamed": table("y"),
    "shared": table("x", "replicas = 2"),
}

#: Those that offer each node under an id of its own, whatever the kernel calls it.
STEADY = ("each", "by a property", "by the serial number in a property")


@dataclass
class Card(Node):
    """A node with a card whose ports come and go."""

    rules: str = "each"
    ports: dict[int, int] = field(default_factory=dict)
    """kernel number -> inode in sysfs"""
    inodes: int = 1
    was_alone: bool = False
    """whether the daemon was down when one was alone: it is not saved where that was"""

    def tables(self) -> str:
        return RULES[self.rules]

    def devices(self) -> dict[str, UdevDevice]:
        card = a_usb_device("1", serial="CARD")
        self.at, found = {}, [card]
        for number, inode in self.ports.items():
            properties = {"FOO": f"v{number % 2}", "ID_SERIAL_SHORT": "CARD"}
            tty = a_usb_node(card, "tty", f"ttyACM{number}", number=f"c 166:{number}", properties=properties)
            found.append(replace(tty, incarnation=inode))
            self.at[tty.device_node or ""] = (("card", number, inode), "1")
        return by_sys_path(*found)

    def change(self, numbers: frozenset[int]) -> None:
        """These come if they are not there, and leave if they are, within one look."""
        for number in sorted(numbers):
            if self.ports.pop(number, None) is None:
                self.inodes += 1
                self.ports[number] = self.inodes
        self.step()

    def come_and_go_while_the_daemon_is_down(self, numbers: frozenset[int]) -> None:
        self.was_alone = self.was_alone or len(self.ports) == 1
        self.memory = saved.load(saved.dump(self.memory))
        self.change(numbers)

    def boot(self, numbers: frozenset[int]) -> None:
        """The machine boots, and the kernel numbers them otherwise."""
        self.ports = {number: self.inodes + number + 1 for number in sorted(numbers)}
        self.inodes += 100
        self.memory = saved.load(saved.dump(self.memory))
        self.step()

    def may_stand_in(self, was: Physical, _its_port: str, now: Physical, _port: str) -> bool:
        """What is still there is never exchanged for another one."""
        return was == now or was not in {physical for physical, _ in self.at.values()}


numbers = st.frozensets(st.integers(0, 4), max_size=4)
plugging = st.one_of(
    st.tuples(st.just("change"), numbers),
    st.tuples(st.just("come_and_go_while_the_daemon_is_down"), numbers),
    st.tuples(st.just("boot"), numbers),
)
pods = st.one_of(
    st.tuples(st.just("admit"), st.integers(0, 7)),
    st.tuples(st.just("start_again"), st.integers(0, 7)),
    st.tuples(st.just("delete"), st.integers(0, 7)),
    st.tuples(st.just("answer")),
)
edits = st.tuples(st.just("edit"), st.sampled_from(sorted(RULES)))


@example([("change", frozenset([0])), ("admit", 0), ("edit", "all of the card")])
@given(st.lists(st.one_of(plugging, pods, edits), max_size=25))
def test_no_two_pods_have_one_sibling_and_none_gets_another_one_while_its_own_is_there(
    history: list[tuple[str, ...]],
) -> None:
    card = Card()
    card.step()
    for name, *arguments in history:
        getattr(card, name)(*arguments)
        card.check()


#: The one in doubt is offered only in the step after the one that forgets the others.
DOUBT_AT_THE_END = [
    ("change", frozenset([0, 1, 2, 4])),
    ("admit", 5),
    ("change", frozenset([0, 1, 2, 3])),
    ("admit", 0),
    ("change", frozenset([0, 4])),
    ("delete", 0),
    ("answer",),
    ("come_and_go_while_the_daemon_is_down", frozenset([])),
]


@pytest.mark.parametrize("rules", STEADY)
@example(history=DOUBT_AT_THE_END)
@given(history=st.lists(st.one_of(plugging, pods), max_size=25))
def test_a_pod_keeps_the_sibling_that_it_got_for_as_long_as_that_is_there(
    rules: str, history: list[tuple[str, ...]]
) -> None:
    card = Card(rules)
    card.step()
    for name, *arguments in history:
        getattr(card, name)(*arguments)
        there = {physical for physical, _ in card.at.values()}
        for pod in card.pods:
            for link, (physical, _) in (pod.first or {}).items():
                if physical in there:
                    path = card.inventory.links()[link]
                    assert card.was_alone if path is None else card.at[path][0] == physical


@pytest.mark.parametrize("rules", sorted(RULES))
@for_each_of_many
@example(before=frozenset([0]), after=frozenset([0, 1]), held=1)
@given(before=numbers, after=numbers, held=st.integers(0, 4))
def test_a_card_that_was_plugged_in_again_is_as_if_it_had_been_seen_to_leave(
    rules: str, before: frozenset[int], after: frozenset[int], held: int
) -> None:
    found = []
    for is_seen in (False, True):
        node = Scene()
        told = node.look(RULES[rules], *a_card(before, inode=1))
        for id_ in [id_ for id_, health in told.items() if health == "Healthy"][:held]:
            node.allocate(id_)
        if is_seen:
            node.look(RULES[rules])
        told = node.look(RULES[rules], *a_card(after, inode=100))
        found.append((told, node.links()))
    assert found[0] == found[1]


def a_card(numbers: frozenset[int], *, inode: int) -> list[UdevDevice]:
    card = Card(ports={number: inode + number for number in sorted(numbers)})
    return [*card.devices().values()] if numbers else []


UNITS = "abcd"
looks = st.tuples(
    st.sampled_from(["boot", "plug", "restart"]), st.permutations(UNITS), st.integers(0, 4), st.booleans()
)


@dataclass
class Shelf:
    """A machine with units that only a property tells apart. They come and go together, in any order."""

    node: Scene = field(default_factory=Scene)
    times: int = 0

    def look(self, units: Sequence[str], *, initialized: bool = True) -> None:
        card = a_usb_device("1", serial="CARD")
        found = [card]
        for number, unit in enumerate(units):
            properties = {"FOO": unit} if initialized else {}
            tty = a_usb_node(card, "tty", f"ttyACM{number}", number=f"c 166:{number}", properties=properties)
            inode = 100 * self.times + number
            found.append(replace(tty, incarnation=inode, initialized=initialized))
        self.node.look(RULES["by a property"], *found)

    def change(self, how: str, units: Sequence[str], *, in_two_looks: bool) -> None:
        self.times += 1
        if how == "boot":
            self.node.memory = saved.load(saved.dump(self.node.memory, str(self.times)), "another")
        elif how == "restart":
            self.node.memory = saved.load(saved.dump(self.node.memory, "boot"), "boot")
        if in_two_looks:
            self.look(units, initialized=False)
        self.look(units)


@given(st.lists(looks, max_size=8))
def test_an_id_that_a_property_makes_means_the_same_unit_whenever_that_is_there(
    history: list[tuple[str, Sequence[str], int, bool]],
) -> None:
    shelf = Shelf()
    shelf.look(UNITS)
    paths = {path: link for link, path in shelf.node.inventory.links().items()}
    links = {unit: paths[f"/dev/ttyACM{number}"] for number, unit in enumerate(UNITS)}
    for link in links.values():
        shelf.node.allocate(link)
    for how, order, count, in_two_looks in history:
        units = order[:count]
        shelf.change(how, units, in_two_looks=in_two_looks)
        wanted = {links[unit]: f"/dev/ttyACM{number}" for number, unit in enumerate(units)}
        assert shelf.node.inventory.links() == {**dict.fromkeys(links.values()), **wanted}
