"""Laws of the nodes that pods hold: whatever name one comes back under, no other pod gets it."""

from dataclasses import dataclass, field, replace
from itertools import combinations

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.bare_node import Sighting, device_of, judge
from genericdp.core.device import DeviceNumber, UdevDevice
from genericdp.core.memory.saved import dump, load
from tests.scenes.builders import a_function, a_vfio_group
from tests.scenes.edits import Node, rule

BARE = rule("acme", match='{ DEVNAME = "/dev/acme*" }')
GROUPS = rule("t4", match='{ SUBSYSTEM = "vfio" }')
FUNCTIONS = [a_function(f"0000:81:00.{number}") for number in range(4)]

#: Which paths have which numbers.
bare_nodes = st.dictionaries(st.sampled_from(["acme0", "acme1", "acme2"]), st.integers(0, 2), max_size=3)
#: The functions of the one group, by their numbers.
functions = st.sets(st.sampled_from(range(4)), max_size=4)


@dataclass
class Pods:
    """Pods that take whatever is Healthy, and the device numbers that their containers have or may have."""

    node: Node = field(default_factory=Node)
    numbers: dict[str, set[DeviceNumber | None]] = field(default_factory=dict)

    def see(self, rules: str, *devices: UdevDevice, takes: bool, restarts: bool) -> None:
        if restarts:
            self.node.memory = load(dump(self.node.memory))
        told = self.node.look(rules, *devices)
        (offer,) = self.node.inventory.offers.values()
        links = self.node.links()
        leads = {
            id_: node.number
            for id_, device in offer.ids.items()
            for node in device.nodes
            if node.sys_path and links[node.link] == node.path
        }
        # A container that starts again gets what the link leads to now.
        for id_ in leads.keys() & self.numbers:
            self.numbers[id_].add(leads[id_])
        healthy = {id_: number for id_, number in leads.items() if told[id_] == "Healthy"}
        for id_, number in healthy.items():
            assert [each for each, have in self.numbers.items() if number in have and each != id_] == []
        for one, other in combinations(self.numbers.values(), 2):
            assert one.isdisjoint(other)
        free = healthy.keys() - self.numbers
        if takes and free:
            id_ = min(free)
            self.node.allocate(id_)
            self.numbers[id_] = {healthy[id_]}


@given(st.lists(st.tuples(bare_nodes, st.booleans(), st.booleans()), max_size=8))
def test_a_bare_node_that_a_pod_holds_is_given_to_no_other_under_another_path(
    steps: list[tuple[dict[str, int], bool, bool]],
) -> None:
    pods = Pods()
    for nodes, takes, restarts in steps:
        sightings = [Sighting(f"/dev/{name}", DeviceNumber("c", 195, minor)) for name, minor in nodes.items()]
        judged = judge(sightings, {}, lambda path: path.startswith("/dev/acme"))
        devices = [device_of(each, judged[each.path]) for each in sightings]
        pods.see(BARE, *devices, takes=takes, restarts=restarts)


@given(st.lists(st.tuples(functions, st.booleans(), st.booleans()), max_size=8))
def test_a_group_that_a_pod_holds_is_given_to_no_other_whichever_functions_it_has(
    steps: list[tuple[set[int], bool, bool]],
) -> None:
    pods, before = Pods(), set[int]()
    for members, takes, restarts in steps:
        if before.isdisjoint(members):
            # A group without functions is gone; the next one with its number is another one.
            pods.numbers.clear()
        before = members
        group = [a_vfio_group(51, *(FUNCTIONS[each] for each in sorted(members)))] if members else []
        pods.see(GROUPS, *group, takes=takes, restarts=restarts)


#: For each function, the group that has it.
groups = st.tuples(*[st.sampled_from([None, 51, 52])] * len(FUNCTIONS))


@example(
    [
        ((51, 52, 52, 51), True, False, True),
        ((51, 52, 52, 51), True, False, True),
        ((52, 51, 52, 51), False, True, True),
    ]
)
@given(st.lists(st.tuples(groups, st.booleans(), st.booleans(), st.booleans()), max_size=8))
def test_no_container_gets_a_group_that_another_one_has_although_its_functions_change(
    steps: list[tuple[tuple[int | None, ...], bool, bool, bool]],
) -> None:
    node, at, since = Node(), {51: set[int](), 52: set[int]()}, {51: 0, 52: 0}
    has: dict[str, tuple[int, int] | None] = {}
    for step, (where, takes, restarts, starts) in enumerate(steps, start=1):
        for number, before in at.items():
            members = {each for each, group in enumerate(where) if group == number}
            since[number] = step if members.isdisjoint(before) else since[number]
            at[number] = members
        if restarts:
            node.memory = load(dump(node.memory))
        plugged = [
            replace(a_vfio_group(number, *(FUNCTIONS[each] for each in sorted(members))), incarnation=inode)
            for (number, members), inode in zip(at.items(), since.values(), strict=True)
            if members
        ]
        told = node.look(GROUPS, *plugged)
        there = {f"/dev/vfio/{number}": (number, since[number]) for number, members in at.items() if members}
        has = {id_: group if group in there.values() else None for id_, group in has.items()}
        links = node.inventory.links()
        would = {id_: there[path] for id_ in has if (path := links[id_]) is not None}
        for id_, group in would.items():
            assert [other for other, its in has.items() if its == group and other != id_] == []
        has |= would if starts else {}
        free = {id_: there[links[id_] or ""] for id_ in told.keys() - has if told[id_] == "Healthy"}
        assert not {*free.values()} & {*has.values()}
        if takes and free:
            id_ = min(free)
            node.allocate(id_)
            has[id_] = free[id_]
