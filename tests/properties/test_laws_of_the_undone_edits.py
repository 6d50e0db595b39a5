"""Laws of edits that are taken back: a pod has its device again under the rules that gave it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import PODS_SETTLE_S
from tests.properties.pods import allocated, apart, behind_links, check_lists, healthy
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

GRACE = 'unplug_grace = "1s"'
ALL = '{ SUBSYSTEM = ["tty", "hidraw"] }'
HIDRAW = '{ SUBSYSTEM = "hidraw" }'

#: What an operator may write, one after the other. Each matches units that have two device nodes.
RULES = {
    "a tty each": rule("x", GRACE),
    "a hidraw each": rule("x", GRACE, match=HIDRAW),
    "each node": rule("x", GRACE, match=ALL),
    "whole units": rule("x", GRACE, 'group_by = "usb_device"', match=ALL),
    "whole units of one node": rule("x", GRACE, 'group_by = "usb_device"'),
    "all as one": rule("x", GRACE, 'group_by = "all"', match=ALL),
    "by port": rule("x", GRACE, 'identity = "port"'),
    "by property": rule("x", GRACE, 'identity = ["ID_SERIAL_SHORT"]'),
    "whole units by property": rule(
        "x", GRACE, 'group_by = "usb_device"', 'identity = ["ID_SERIAL_SHORT"]', match=ALL
    ),
    "shared": rule("x", GRACE, "replicas = 2"),
    "whole and shared": rule("x", GRACE, "replicas = 2", 'group_by = "usb_device"', match=ALL),
    "renamed": rule("y", GRACE),
    "nothing": "",
}

#: The serial number of each unit: nothing is a twin, or two are.
DISTINCT = {"P": "A", "Q": "B", "R": "C"}
TWINS = {"P": "A", "Q": "A", "R": "B"}

#: The device nodes of a unit: each told from the others, or two that nothing but their order tells apart.
APART = (("tty", "00"), ("tty", "01"), ("hidraw", "00"))
SIBLINGS = (("tty", "00"), ("tty", "00"), ("hidraw", "00"))

Step = tuple[Any, ...]


@dataclass
class Pod:
    """A pod with one id, and what its running container has."""

    rules: str
    resource: str
    id_: str
    shared: bool
    links: tuple[str, ...]
    own: dict[str, str]
    has: frozenset[str]


@dataclass
class Bench:
    """A node whose rules are edited, with what is plugged in."""

    rules: str = "nothing"
    texts: Mapping[str, str] = field(default_factory=lambda: RULES)
    node: Node = field(default_factory=Node)
    pods: list[Pod] = field(default_factory=list)
    units: Mapping[str, str] = field(default_factory=lambda: DISTINCT)
    nodes: tuple[tuple[str, str], ...] = APART
    plugged: set[str] = field(default_factory=lambda: {*TWINS})
    ports: dict[str, str] = field(default_factory=lambda: dict(zip(TWINS, "123", strict=True)))
    unbound: set[tuple[str, str]] = field(default_factory=set)
    bound: dict[tuple[str, str], int] = field(default_factory=dict)
    inodes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TWINS, 1))
    usable: set[str] = field(default_factory=set)
    #: Units whose siblings have come one by one: nobody may be able to tell which is which.
    one_by_one: set[str] = field(default_factory=set)

    def devices(self) -> tuple[UdevDevice, ...]:
        found: list[UdevDevice] = []
        self.at: dict[str, str] = {}
        for number, (unit, serial) in enumerate(self.units.items()):
            if unit in self.plugged:
                usb = a_usb_device(self.ports[unit], serial=serial)
                found.append(usb)
                for minor, (subsystem, interface) in enumerate(self.nodes, start=10 * number):
                    if (unit, str(minor)) in self.unbound:
                        continue
                    node = a_usb_node(
                        usb,
                        subsystem,
                        f"{subsystem}{minor}",
                        interface=interface,
                        number=f"c {188 if subsystem == 'tty' else 240}:{minor}",
                        properties={"ID_SERIAL_SHORT": serial},
                    )
                    found.append(
                        replace(
                            node, incarnation=100 * self.inodes[unit] + self.bound.get((unit, str(minor)), 0)
                        )
                    )
                    self.at[node.device_node or ""] = f"{unit} {minor}"
        return tuple(found)

    def look(self, answer: Answer | None = None) -> None:
        before = healthy(self.node.inventory)
        self.node.look(self.texts[self.rules], *self.devices(), answer=answer)
        # The kubelet may allocate before it has the new list.
        self.usable = healthy(self.node.inventory) & before

    def bind(self, unit: str, number: int) -> None:
        """The driver lets go of a device node, or makes it again."""
        node = (unit, str(10 * [*self.units].index(unit) + number))
        self.unbound ^= {node}
        self.one_by_one.add(unit)
        self.bound[node] = self.bound.get(node, 0) + 1
        for pod in self.pods:
            pod.has = frozenset(each for each in pod.has if each != " ".join(node))
        self.look()

    def edit(self, rules: str) -> None:
        self.rules = rules
        self.look()

    def plug(self, unit: str, port: str) -> None:
        """It leaves if it is there, or else comes, at this port if that is free."""
        if unit not in self.plugged:
            if port not in {self.ports[each] for each in self.plugged}:
                self.ports[unit] = port
            if self.ports[unit] in {self.ports[each] for each in self.plugged}:
                return
            self.inodes[unit] += 1
        self.plugged ^= {unit}
        for pod in self.pods:
            pod.has = frozenset(each for each in pod.has if each.split()[0] != unit)
        self.look()

    def admit(self, number: int) -> None:
        taken = {pod.id_ for pod in self.pods}
        given = allocated(self.node.inventory, healthy(self.node.inventory) - taken, number)
        if given is not None:
            offer, id_, links = given
            self.node.allocate(id_)
            pod = Pod(
                self.rules, offer.resource.name, id_, not offer.resource.is_exclusive, links, {}, frozenset()
            )
            got = behind_links(self.node.inventory, pod, self.at)
            assert got is not None
            pod.own, pod.has = dict(got), frozenset(got.values())
            self.pods.append(pod)

    def delete(self, number: int) -> None:
        """A pod goes, and the kubelet says so."""
        if self.pods:
            del self.pods[number % len(self.pods)]
            self.node.now += PODS_SETTLE_S
            ids = frozenset((pod.resource, pod.id_) for pod in self.pods)
            self.look(
                Answer(ids, self.node.now, complete=True, checkpointed=frozenset(id_ for _, id_ in ids))
            )

    def restart(self, boot: str) -> None:
        text = saved.dump(self.node.memory, "before")
        assert saved.dump(saved.load(text, "before"), "before") == text
        self.node.memory = saved.load(text, boot)
        self.look()

    def start_again(self) -> None:
        for pod in self.pods:
            got = behind_links(self.node.inventory, pod, self.at)
            pod.has = frozenset() if got is None else frozenset(got.values())

    def check(self) -> None:
        check_lists(self.node.inventory, self.pods)
        ids = healthy(self.node.inventory)
        for one, other in apart(self.pods):
            assert one.has.isdisjoint(other.has)
        for pod in self.pods:
            got = behind_links(self.node.inventory, pod, self.at)
            assert got is None or got == pod.own
            units = {each.split()[0] for each in pod.own.values()}
            # While its unit was away, the edited rules may have given it to another pod. And a device of all
            # units may have one by now that another pod has got.
            others = {each for other in self.pods if other is not pod for each in other.own.values()}
            is_its_own = others.isdisjoint(pod.own.values()) and (self.rules != "all as one" or not others)
            is_told = self.nodes is APART or units.isdisjoint(self.one_by_one)
            if (
                pod.rules == self.rules
                and units <= self.plugged
                and is_its_own
                and is_told
                and not self.unbound
            ):
                assert got == pod.own
                assert pod.id_ in ids


steps = st.one_of(
    st.tuples(st.just("edit"), st.integers(0, len(RULES) - 1)),
    st.tuples(st.sampled_from(["admit", "delete"]), st.integers(0, 7)),
    st.tuples(st.just("restart"), st.sampled_from(["before", "after"])),
    st.tuples(st.just("start_again")),
)
plugging = st.one_of(
    st.tuples(st.just("plug"), st.sampled_from(sorted(TWINS)), st.sampled_from("1234")),
    st.tuples(st.just("bind"), st.sampled_from(sorted(TWINS)), st.integers(0, 2)),
)
#: A pod has something from the beginning: a short history of nothing but edits says little.
begun = st.tuples(st.integers(0, len(RULES) - 1), st.lists(st.integers(0, 7), min_size=1, max_size=3))


def check(bench: Bench, rules: tuple[str, ...], begin: tuple[int, list[int]], history: list[Step]) -> None:
    """Check a history whose edits choose among these rules. What is not bound yet comes before the pods."""
    first, admitted = begin
    bench.edit(rules[first % len(rules)])
    bench.one_by_one = {unit for unit, _ in bench.unbound}
    bench.unbound = set()
    bench.look()
    # Only what was Healthy before is given out.
    bench.look()
    for number in admitted:
        bench.admit(number)
    for name, *arguments in history:
        if name == "edit":
            bench.edit(rules[arguments[0] % len(rules)])
        else:
            getattr(bench, name)(*arguments)
        bench.check()


@example((0, [4]), [("plug", "R", "4"), ("bind", "R", 1), ("edit", 1), ("bind", "R", 1), ("edit", 0)])
@given(begun, st.lists(st.one_of(steps, plugging), max_size=14))
def test_a_pod_has_its_device_again_under_the_rules_that_gave_it(
    begin: tuple[int, list[int]], history: list[Step]
) -> None:
    check(Bench(), ("a tty each", "whole units of one node"), begin, history)
    # Whatever is at a port is the device of that port.
    check(Bench(), tuple(name for name in RULES if name != "by port"), begin, history)


@given(begun, st.lists(steps, max_size=14))
def test_a_pod_of_twins_has_its_own_again_under_the_rules_that_gave_it(
    begin: tuple[int, list[int]], history: list[Step]
) -> None:
    check(Bench(units=TWINS), tuple(RULES), begin, history)


#: Device nodes that are there only after the rules.
late = st.sets(st.sampled_from([("P", "0"), ("Q", "10")]))

#: The unit was there with one of its siblings when the pod came, and comes with the other one.
ONE_BY_ONE = [("bind", "P", 1), ("bind", "P", 0), ("plug", "P", "4"), ("bind", "P", 1)]


@example((1, [0, 0]), [("bind", "P", 0), ("restart", "after"), ("delete", 0), ("restart", "before")], set())
@example((0, [1]), [("plug", "P", "4"), ("bind", "P", 0), ("plug", "P", "4")], set())
@example((0, [1]), [("plug", "P", "4"), ("bind", "P", 0), ("plug", "P", "3"), ("bind", "P", 0)], set())
@example((0, [1]), [("plug", "P", "4"), ("plug", "P", "4")], {("P", "0")})
@given(begun, st.lists(st.one_of(steps, plugging), max_size=14), late)
def test_a_pod_has_its_own_sibling_whichever_comes_first_at_another_port(
    begin: tuple[int, list[int]], history: list[Step], late: set[tuple[str, str]]
) -> None:
    rules = ("a tty each", "by property", "shared", "renamed")
    check(Bench(nodes=SIBLINGS, unbound=late), rules, begin, history)


@example((0, [0]), [("plug", "P", "4"), ("plug", "P", "4")], {("P", "0")})
@example((0, [0]), [("delete", 0), ("bind", "P", 0), ("admit", 0), ("plug", "P", "4"), *ONE_BY_ONE], set())
@given(begun, st.lists(st.one_of(steps, plugging), max_size=14), late)
def test_a_pod_has_the_siblings_of_its_unit_whichever_comes_first_at_another_port(
    begin: tuple[int, list[int]], history: list[Step], late: set[tuple[str, str]]
) -> None:
    groups = ("whole units of one node", "whole units", "whole units by property", "whole and shared")
    check(Bench(nodes=SIBLINGS, unbound=late), (*groups, "all as one"), begin, history)
