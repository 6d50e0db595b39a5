"""Siblings, which only the memory told apart, once it is lost while pods hold some of them."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer, Named
from genericdp.core.memory.held import PODS_SETTLE_S
from genericdp.core.memory.memory import Memory, resumed
from tests.scenes.builders import a_usb_device, a_usb_node, a_usb_serial
from tests.scenes.edits import Node, rule

RULES = rule("x", 'unplug_grace = "1s"')
FIRST, SECOND = "x_CARD", "x_CARD_xkkjcypvun"


def a_card(*numbers: int) -> tuple[UdevDevice, ...]:
    card = a_usb_device("1", serial="CARD")
    ports = (a_usb_node(card, "tty", f"ttyACM{n}", number=f"c 166:{n}") for n in numbers)
    return (card, *ports)


def begun(node: Node, *held: str) -> Answer:
    """What the kubelet's checkpoint says when the daemon starts."""
    ids = frozenset(("example.com/x", id_) for id_ in held)
    return Answer(frozenset(), node.now, complete=False, checkpointed=frozenset(held), earlier=ids)


def untold(id_: str) -> str:
    return f"it cannot be told apart from a device that a pod may still hold as {id_}"


@pytest.mark.parametrize("held", [[FIRST], [SECOND], [FIRST, SECOND]])
@pytest.mark.parametrize("numbers", [(0, 1), (0, 1, 2)])
def test_no_sibling_is_offered_before_the_pod_is_gone_that_has_one_of_them(
    numbers: tuple[int, ...], held: list[str]
) -> None:
    node = Node()
    told = node.look(RULES, *a_card(*numbers), answer=begun(node, *held))
    for _ in range(2):
        assert told == dict.fromkeys(held, "only its id is known")
        assert {refusal.reason for refusal in node.inventory.refusals} == {untold(held[0])}
        told = node.look(RULES, *a_card(*numbers))
    told = node.look(RULES, *a_card(*numbers), answer=node.nobody_holds_anything())
    node.now += 10.0
    told = node.look(RULES, *a_card(*numbers), answer=node.nobody_holds_anything())
    assert len(told) == len(numbers)
    assert {*told.values()} == {"Healthy"}


OWN = [
    rule("y", 'unplug_grace = "1s"'),
    rule("x", 'unplug_grace = "1s"', 'identity = "port"'),
    rule("x", 'unplug_grace = "1s"', 'group_by = "usb_device"'),
    rule("y", 'unplug_grace = "1s"', match='{ SUBSYSTEM = "tty", DEVNAME = "*0" }') + RULES,
]


@pytest.mark.parametrize("rules", OWN)
def test_nor_is_it_after_an_edit_of_the_rules(rules: str) -> None:
    node = Node()
    node.look(RULES, *a_card(0, 1), answer=begun(node, FIRST))
    for _ in range(2):
        told = node.look(rules, *a_card(0, 1))
        assert "Healthy" not in told.values()
        node.memory = saved.load(saved.dump(node.memory))
    node.look(rules, *a_card(0, 1), answer=node.nobody_holds_anything())
    node.now += 10.0
    node.look(rules, *a_card(0, 1), answer=node.nobody_holds_anything())
    assert {*node.look(rules, *a_card(0, 1)).values()} == {"Healthy"}


def test_the_one_that_is_left_is_not_what_the_pod_holds_if_there_were_several() -> None:
    node = Node()
    node.look(RULES, *a_card(0, 1), answer=begun(node, FIRST))
    for numbers in ((1,), (), (0,), (0, 1)):
        assert node.look(RULES, *a_card(*numbers)) == {FIRST: "only its id is known"}
        node.memory = saved.load(saved.dump(node.memory))


def test_the_only_one_is_what_a_pod_holds_unless_pods_hold_several() -> None:
    node = Node()
    assert node.look(RULES, *a_card(1), answer=begun(node, FIRST)) == {FIRST: "Healthy"}
    node = Node()
    told = node.look(RULES, *a_card(1), answer=begun(node, FIRST, SECOND))
    assert told == dict.fromkeys((FIRST, SECOND), "only its id is known")


def grouped(node: Node, *links: str) -> Answer:
    """What the kubelet's checkpoint says when it has the answer of a pod that holds the card as a whole."""
    named = Named("example.com/x", frozenset({FIRST}), links=tuple(f"{FIRST}@{link}" for link in links))
    return replace(begun(node, FIRST), named=(named,))


@pytest.mark.parametrize("links", [("if00@2",), ("if00", "if00@2"), ("if00", "if00@10"), ("@2",)])
def test_the_only_one_is_not_what_a_pod_holds_whose_links_tell_of_several(links: tuple[str, ...]) -> None:
    """One of them left before the daemon started, and nothing shows which."""
    rules = rule("x", 'unplug_grace = "1s"', 'group_by = "usb_device"')
    node = Node()
    told = node.look(rules, *a_card(1), answer=grouped(node, *links))
    for numbers in ((0, 1), (0,), ()):
        assert told == {FIRST: "only its id is known"}
        assert {*node.inventory.links().values()} == {None}
        told = node.look(rules, *a_card(*numbers))
    node.look(rules, *a_card(0, 1), answer=node.nobody_holds_anything())
    node.now += 10.0
    told = node.look(rules, *a_card(0, 1), answer=node.nobody_holds_anything())
    assert told == {FIRST: "Healthy"}


@pytest.mark.parametrize("links", [(), ("if00",), ("2",), ("if00@333333",), ("if00@2222222222",)])
def test_the_only_one_is_what_a_pod_holds_whose_links_tell_of_no_other(links: tuple[str, ...]) -> None:
    """A place may be a number, and a hash may have no letters."""
    rules = rule("x", 'unplug_grace = "1s"', 'group_by = "usb_device"')
    node = Node()
    assert node.look(rules, *a_card(1), answer=grouped(node, *links)) == {FIRST: "Healthy"}


def test_that_there_were_several_may_be_told_later() -> None:
    """The checkpoint could not be read at first."""
    rules = rule("x", 'unplug_grace = "1s"', 'group_by = "usb_device"')
    node = Node()
    listed = Answer(frozenset({("example.com/x", FIRST)}), node.now, complete=False, checkpointed=None)
    node.look(rules, answer=listed)
    node.look(rules, answer=grouped(node, "if00", "if00@2"))
    assert node.look(rules, *a_card(1)) == {FIRST: "only its id is known"}


def test_a_sibling_that_is_remembered_stays_with_its_pod() -> None:
    node = Node()
    node.look(RULES, *a_card(0))
    told = node.look(RULES, *a_card(0, 1), answer=begun(node, SECOND))
    assert told == {FIRST: "Healthy", SECOND: "only its id is known"}


def unreadable(node: Node) -> Answer:
    """What is known when the daemon starts and the kubelet's checkpoint cannot be read."""
    return Answer(frozenset(), node.now, complete=False, checkpointed=None, first=True)


def full(node: Node, *held: str) -> Answer:
    """The first full answer of PodResources."""
    node.now += PODS_SETTLE_S
    ids = frozenset(("example.com/x", id_) for id_ in held)
    return Answer(ids, node.now, complete=True, checkpointed=None)


@pytest.mark.parametrize("older", [(), ("x_A",)])
@pytest.mark.parametrize("leaves", ["before", "with"])
@pytest.mark.parametrize("restarts", [True, False])
def test_what_was_given_since_keeps_its_number_when_an_answer_tells_of_an_older_pod(
    older: tuple[str, ...], leaves: str, *, restarts: bool
) -> None:
    stick, (card, first, second) = a_usb_serial(9, port="2", serial="A"), a_card(0, 1)
    node = Node()
    node.memory = resumed(Memory(), node.now)
    told = node.look(RULES, stick, card, first, second, answer=unreadable(node))
    assert {*told} == {"x_A", FIRST, SECOND}
    node.allocate(FIRST)
    if restarts:
        node.memory = resumed(saved.load(saved.dump(node.memory)), node.now)
    if leaves == "before":
        node.look(RULES, stick, card, second)
    node.look(RULES, stick, card, second, answer=full(node, *older, FIRST))
    assert node.links()[FIRST] is None
    node.look(RULES, stick, card, first, second)
    assert (node.links()[FIRST], node.links()[SECOND]) == ("/dev/ttyACM0", "/dev/ttyACM1")


@pytest.mark.parametrize("older", [(), ("x_A",)])
@pytest.mark.parametrize("restarts", [True, False])
def test_what_was_given_since_is_not_forgotten_when_an_answer_tells_of_an_older_pod(
    older: tuple[str, ...], *, restarts: bool
) -> None:
    one, other = a_usb_serial(0, port="2", serial="A"), a_usb_serial(1, port="3", serial="C")
    node = Node()
    node.memory = resumed(Memory(), node.now)
    node.look(RULES, one, other, answer=unreadable(node))
    node.allocate("x_C")
    if restarts:
        node.memory = resumed(saved.load(saved.dump(node.memory)), node.now)
    node.look(RULES, one, answer=begun(node, "x_C", *older))
    told = node.look(rule("y"), one, other)
    assert told["y_C"] == "a pod may still hold it as x_C of example.com/x"


def test_the_numbers_of_what_was_not_given_since_are_taken_back() -> None:
    stick, (card, first, second) = a_usb_serial(9, port="2", serial="A"), a_card(0, 1)
    node = Node()
    node.memory = resumed(Memory(), node.now)
    node.look(RULES, stick, card, second, answer=unreadable(node))
    node.look(RULES, stick, card, first, second)
    assert (node.links()[FIRST], node.links()[SECOND]) == ("/dev/ttyACM1", "/dev/ttyACM0")
    node.look(RULES, stick, card, first, second, answer=full(node, "x_A"))
    assert (node.links()[FIRST], node.links()[SECOND]) == ("/dev/ttyACM0", "/dev/ttyACM1")


@pytest.mark.parametrize("untold", [True, False])
def test_after_a_restart_what_is_held_counts_as_given_only_if_nobody_has_told_what_pods_held(
    *, untold: bool
) -> None:
    node = Node()
    node.memory = resumed(Memory(), node.now)
    first = unreadable(node) if untold else begun(node)
    node.look(RULES, a_usb_serial(9, serial="A"), answer=first)
    node.allocate("x_A")
    after = resumed(saved.load(saved.dump(node.memory)), node.now)
    assert [holding.given for holding in after.held.values()] == [node.now if untold else None]
