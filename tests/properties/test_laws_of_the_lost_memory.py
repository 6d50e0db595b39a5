"""Laws of pods that outlive the memory of what they hold, which only the kubelet still names."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer, Named
from genericdp.core.memory.held import PODS_SETTLE_S
from genericdp.core.memory.memory import Memory, resumed
from tests.properties.pods import Pod as GivenPod
from tests.properties.pods import allocated, apart, behind_links, check_lists, healthy
from tests.properties.searching import for_each_of_many
from tests.properties.test_laws_of_the_holdings import PORTS, UNITS, Physical
from tests.properties.test_laws_of_the_holdings import RULES as NODE_RULES
from tests.properties.test_laws_of_the_holdings import Node as Holder
from tests.properties.test_laws_of_the_holdings import Pod as HeldPod
from tests.properties.test_laws_of_the_siblings import RULES as CARD_RULES
from tests.properties.test_laws_of_the_siblings import Card, plugging, pods
from tests.scenes.builders import a_kfd, a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

GRACE = 'unplug_grace = "1s"'
KFD = 'match = { DEVNAME = "/dev/kfd" }\nshared = true'
WHOLE = (GRACE, 'group_by = "usb_device"')
RULES = {
    "each": rule("x", GRACE),
    "whole units": rule("x", *WHOLE),
    "parts of each": rule("x", GRACE, match='{ SUBSYSTEM = ["tty", "hidraw"] }'),
    "shared": rule("x", GRACE, "replicas = 2"),
    "in another domain": rule("other.org/x", GRACE),
    "with a shared node": rule("x", GRACE)
    + "".join(f"[[resource.node]]\n{keys}\n" for keys in ('match = { SUBSYSTEM = "tty" }', KFD)),
}

#: Twins, and the port of each.
TWINS = {"X": "2", "Y": "1", "Z": "3"}


@dataclass
class Pod:
    """A pod with one id, and what its running container has."""

    resource: str
    id_: str
    shared: bool
    links: tuple[str, ...]
    own: frozenset[str]
    has: frozenset[str]


@dataclass
class Bench:
    """A node with twins, each at a port of its own, and pods that have them."""

    rules: str
    node: Node = field(default_factory=Node)
    plugged: set[str] = field(default_factory=set)
    pods: list[Pod] = field(default_factory=list)
    usable: set[str] = field(default_factory=set)

    @property
    def inventory(self) -> Inventory:
        return self.node.inventory

    @property
    def held(self) -> set[str]:
        return {node.split()[0] for pod in self.pods for node in pod.own}

    def devices(self) -> tuple[UdevDevice, ...]:
        kfd = a_kfd()
        found = [kfd]
        self.at = {kfd.device_node or "": ""}  # of no unit
        for number, unit in enumerate(TWINS):
            if unit in self.plugged:
                usb = a_usb_device(TWINS[unit], serial="A")
                found.append(usb)
                for subsystem, name in (("tty", f"ttyUSB{number}"), ("hidraw", f"hidraw{number}")):
                    node = a_usb_node(usb, subsystem, name, number=f"c 188:{number}")
                    found.append(node)
                    self.at[node.device_node or ""] = f"{unit} {subsystem}"
        return tuple(found)

    def look(self, answer: Answer | None = None) -> None:
        before = healthy(self.inventory)
        self.node.look(RULES[self.rules], *self.devices(), answer=answer)
        # The kubelet may allocate before it has the new list; it knows whom it has given what.
        self.usable = (healthy(self.inventory) & before) - {pod.id_ for pod in self.pods}

    def plug(self, unit: str) -> None:
        """It comes if it is not there, and leaves if it is.

        A twin that was never seen passes for the unit that has left, so a pod's does not leave before that.
        """
        if unit not in self.held or self.node.memory.ties:
            self.plugged ^= {unit}
            self.look()

    def admit(self, number: int) -> None:
        taken = {pod.id_ for pod in self.pods}
        given = allocated(self.inventory, healthy(self.inventory) - taken, number)
        if given is not None:
            offer, id_, links = given
            self.node.allocate(id_)
            shared = not offer.resource.is_exclusive
            pod = Pod(offer.resource.name, id_, shared, links, frozenset(), frozenset())
            got = behind_links(self.inventory, pod, self.at)
            assert got is not None
            pod.own = pod.has = frozenset(filter(None, got.values()))
            self.pods.append(pod)

    def delete(self, number: int) -> None:
        if self.pods:
            del self.pods[number % len(self.pods)]

    def start_again(self, number: int) -> None:
        """A container starts again, or cannot."""
        if self.pods:
            pod = self.pods[number % len(self.pods)]
            got = behind_links(self.inventory, pod, self.at)
            pod.has = frozenset() if got is None else frozenset(filter(None, got.values()))

    def told(self) -> Answer:
        ids = frozenset((pod.resource, pod.id_) for pod in self.pods)
        return Answer(ids, self.node.now, complete=True, checkpointed=frozenset(id_ for _, id_ in ids))

    def answer(self) -> None:
        self.node.now += PODS_SETTLE_S
        self.look(self.told())

    def restart(self) -> None:
        self.node.memory = resumed(saved.load(saved.dump(self.node.memory)), self.node.now)
        self.look(self.checkpoint())

    def checkpoint(self) -> Answer:
        """What the daemon reads when it starts."""
        return from_checkpoint(self.pods, self.node.now)

    def lose(self, *, is_readable: bool) -> None:
        """The memory is lost, while every unit that a pod has is there."""
        if self.held <= self.plugged:
            self.node.inventory, self.node.memory = Inventory(), resumed(Memory(), self.node.now)
            if is_readable:
                self.look(self.checkpoint())
            else:
                # Nothing is given, and nothing starts again, before the kubelet has answered.
                self.look()
                self.look(replace(self.told(), complete=False, checkpointed=None, first=True))

    def check(self) -> None:
        check_lists(self.inventory, self.pods)
        for one, other in apart(self.pods):
            assert one.has.isdisjoint(other.has)
        for pod in self.pods:
            assert pod.has <= pod.own
        written = saved.dump(self.node.memory)
        assert saved.dump(saved.load(written)) == written


histories = st.lists(
    st.one_of(
        st.tuples(st.just("plug"), st.sampled_from(sorted(TWINS))),
        st.tuples(st.sampled_from(["admit", "delete", "start_again"]), st.integers(0, 7)),
        st.tuples(st.sampled_from(["answer", "restart", "lose", "lose_unread"])),
    ),
    max_size=20,
)


@pytest.mark.parametrize("rules", sorted(RULES))
@for_each_of_many
@example([("plug", "X"), ("admit", 0), ("plug", "Y"), ("admit", 0), ("lose",)])
@given(histories)
def test_no_two_pods_have_one_twin_and_none_gets_another_one_though_the_memory_is_lost(
    rules: str, history: list[tuple[str, ...]]
) -> None:
    bench = Bench(rules)
    bench.look()
    for name, *arguments in history:
        match name:
            case "lose" | "lose_unread":
                bench.lose(is_readable=name == "lose")
            case _:
                getattr(bench, name)(*arguments)
        bench.check()


def from_checkpoint(pods: Collection[GivenPod], now: float) -> Answer:
    """What the kubelet's checkpoint says of these pods, and of the answers that they got."""
    ids = frozenset((pod.resource, pod.id_) for pod in pods)
    held = frozenset(id_ for _, id_ in ids)
    named = tuple(Named(pod.resource, frozenset({pod.id_}), links=pod.links) for pod in pods)
    ours = frozenset(pod.resource for pod in pods if pod.links)
    return Answer(frozenset(), now, complete=False, checkpointed=held, earlier=ids, named=named, ours=ours)


def left_links(inventory: Inventory) -> dict[str, str]:
    """Where the links lead that the daemon of before left (`genericdp.files.links.led`)."""
    leads = {link: path for link, path in inventory.links().items() if path is not None}
    return {**inventory.held_links, **leads}


lose = st.tuples(st.just("lose"))


@dataclass
class LostCard(Card):
    """A card whose ports nothing but their order tells apart, on a node that loses its memory."""

    unknown: list[HeldPod] = field(default_factory=list)
    """pods from before a loss of which nothing tells what they have: several were there"""

    def lose(self) -> None:
        led = left_links(self.inventory)
        self.inventory, self.memory = Inventory(), resumed(Memory(), self.now)
        there = {physical for physical, _ in self.at.values()}
        self.unknown = [
            pod
            for pod in self.pods
            if pod.first and len(there) > 1 and {physical for physical, _ in pod.first.values()} <= there
        ]
        self.step(replace(from_checkpoint(self.pods, self.now), led=led))

    def may_stand_in(self, was: Physical, its_port: str, now: Physical, port: str) -> bool:
        """Nobody gets another one if several were there after the loss."""
        is_unknown = any(
            pod is each and pod.first and was in {physical for physical, _ in pod.first.values()}
            for pod in self.unknown
            for each in self.pods
        )
        return was == now if is_unknown else super().may_stand_in(was, its_port, now, port)


def check_card(rules: str, history: list[tuple[str, ...]]) -> None:
    card = LostCard(rules)
    card.step()
    for name, *arguments in history:
        getattr(card, name)(*arguments)
        card.check()


@pytest.mark.parametrize("rules", sorted(CARD_RULES))
@for_each_of_many
@given(history=st.lists(st.one_of(plugging, pods, lose), max_size=20))
def test_no_two_pods_have_one_sibling_though_the_memory_is_lost(
    rules: str, history: list[tuple[str, ...]]
) -> None:
    check_card(rules, history)


edits = st.tuples(st.just("edit"), st.sampled_from(sorted(CARD_RULES)))


@example("all of the card", [("change", frozenset([2])), ("admit", 0), ("edit", "shared"), ("lose",)])
@example(
    "all of the card",
    [("change", frozenset([0])), ("admit", 0), ("edit", "renamed"), ("change", frozenset([0])), ("lose",)],
)
@given(st.sampled_from(sorted(CARD_RULES)), st.lists(st.one_of(plugging, pods, edits, lose), max_size=20))
def test_nor_do_they_after_an_edit_of_the_rules(rules: str, history: list[tuple[str, ...]]) -> None:
    check_card(rules, history)


#: Rules that make one device of several nodes.
OF_GROUPS = [name for name, text in NODE_RULES.items() if "group_by" in text]


@dataclass
class LostNode(Holder):
    """A node with units of any kind, some of which may be absent when the memory is lost."""

    def lose(self) -> None:
        """The daemon has lost its memory, and the kubelet soon says who holds what."""
        led = left_links(self.inventory)
        self.inventory, self.memory = Inventory(), resumed(Memory(), self.now)
        self.step(replace(from_checkpoint(self.pods, self.now), led=led))

    def may_stand_in(self, was: Physical, its_port: str, now: Physical, port: str) -> bool:
        """What has left may seem to be what is there: nobody remembers that there were two."""
        there = {physical for physical, _ in self.at.values()}
        return super().may_stand_in(was, its_port, now, port) or was not in there


units, any_number = st.sampled_from(sorted(UNITS)), st.integers(0, 7)
plug = st.tuples(st.just("plug"), units, st.sampled_from(PORTS), any_number)
unplug = st.tuples(st.just("unplug"), units)
bind = st.tuples(st.just("bind"), units, any_number)
admit = st.tuples(st.just("admit"), any_number)
start = st.tuples(st.just("start_again"), any_number)

#: Pods get what is plugged in, some of it leaves, and the memory is lost.
losses = st.tuples(
    st.lists(st.one_of(plug, plug, bind), min_size=1, max_size=5),
    st.lists(admit, min_size=1, max_size=2),
    st.lists(st.one_of(unplug, bind, plug, admit), max_size=4),
    st.tuples(lose),
    st.lists(st.one_of(plug, unplug, bind, start, lose, admit), max_size=6),
).map(lambda parts: [each for part in parts for each in part])


@pytest.mark.parametrize("rules", sorted(OF_GROUPS))
@for_each_of_many
@example([("plug", "C", "1", 0), ("admit", 0), ("bind", "C", 0), ("lose",), ("plug", "A", "2", 1)])
@given(history=losses)
def test_a_pod_has_all_its_links_and_they_lead_to_what_it_got_though_the_memory_is_lost(
    rules: str, history: list[tuple[str, ...]]
) -> None:
    node = LostNode(rules)
    node.step()
    for name, *arguments in history:
        getattr(node, name)(*arguments)
        node.check()


#: Pods get what is plugged in, the rules are edited, perhaps while no daemon runs, and the memory is lost.
edit = st.tuples(st.just("edit"), st.sampled_from(sorted(NODE_RULES)))
lose_with = st.tuples(st.just("lose_with"), st.sampled_from(sorted(NODE_RULES)))
delete = st.tuples(st.just("delete"), any_number)
losses_after_edits = st.tuples(
    st.lists(plug, min_size=1, max_size=4),
    st.lists(admit, min_size=1, max_size=2),
    st.lists(st.one_of(edit, admit), max_size=2),
    st.tuples(lose_with),
    st.lists(st.one_of(admit, admit, edit, lose_with, start, delete), min_size=1, max_size=6),
).map(lambda parts: [each for part in parts for each in part])


@dataclass
class EditedNode(LostNode):
    """A node that keeps what is plugged in: no two pods have one device node, and each has its own ones."""

    def lose_with(self, rules: str) -> None:
        """The next daemon has no memory, and is the first one that reads these rules."""
        self.rules = rules
        # An id with the number of a replica does not say that it was the only one.
        for pod in self.pods:
            pod.shared |= pod.id_.rpartition(".")[2].isdigit()
        self.lose()

    def check(self) -> None:
        self.check_links()
        for one, other in apart(self.pods):
            for mine in self.possibly(one):
                for theirs in self.possibly(other):
                    assert mine.isdisjoint(theirs), (one, other)


@pytest.mark.parametrize("rules", sorted(NODE_RULES))
@for_each_of_many
@example([("plug", "A", "1", 0), ("admit", 0), ("lose_with", "shared"), ("admit", 0)])
@example(
    [
        *[("plug", "A", "1", 0), ("plug", "B", "2", 1), ("admit", 0)],
        *[("lose_with", "a kit"), ("lose_with", "all but one serial number")],
    ]
)
@example(
    [
        *[("plug", "A", "1", 0), ("plug", "H", "2", 1), ("admit", 0)],
        *[("lose_with", "all but one serial number"), ("edit", "all but one port")],
    ]
)
@example(
    [
        *[("plug", "A", "1", 0), ("plug", "B", "2", 1), ("admit", 0), ("edit", "a kit")],
        *[("lose_with", "all in one"), ("edit", "all but one port")],
    ]
)
@given(history=losses_after_edits)
def test_no_two_pods_have_one_device_node_though_the_memory_is_lost_after_an_edit(
    rules: str, history: list[tuple[str, ...]]
) -> None:
    node = EditedNode(rules)
    node.step()
    for name, *arguments in history:
        getattr(node, name)(*arguments)
        node.check()
