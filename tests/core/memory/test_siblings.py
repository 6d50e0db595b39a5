"""Siblings, which only their order tells apart: none gets the id of another one that a pod holds."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import PODS_SETTLE_S
from tests.core.memory.test_renewal import ANY, FIRST, SECOND, SERIAL_CARD
from tests.scenes.builders import a_card, a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

IN_DOUBT = "the device plugged in now may not be the one that a pod got; delete that pod"
NOT_TOLD = "it cannot be told apart from a device that a pod may still hold"

THIRD = a_usb_node(SERIAL_CARD, "tty", "ttyACM2", number="c 166:2", properties={"N": "2"})


def id_of(node: Node, path: str) -> str:
    return next(id_ for id_, target in node.inventory.links().items() if target == path)


def id_of_node(node: Node, path: str) -> str:
    offers = node.inventory.offers.values()
    devices = (device for offer in offers for device in offer.devices)
    return next(device.id for device in devices if path in [each.path for each in device.nodes])


@pytest.mark.parametrize("holds", ["both", "only the second"])
def test_one_that_is_replaced_between_two_looks_does_not_leave_its_id_to_one_that_stays(holds: str) -> None:
    node = Node()
    node.look(ANY, FIRST, SECOND)
    first, second = id_of(node, "/dev/ttyACM0"), id_of(node, "/dev/ttyACM1")
    node.allocate(second)
    if holds == "both":
        node.allocate(first)
    node.look(ANY, SECOND, THIRD)
    assert node.inventory.links()[first] != "/dev/ttyACM1"
    assert node.inventory.links()[second] in (None, "/dev/ttyACM1")


def test_the_same_while_the_daemon_was_down() -> None:
    """A machine that was off: one disk was taken out, and another one was put into another bay."""
    node = Node()
    node.look(ANY, FIRST, SECOND)
    first, second = id_of(node, "/dev/ttyACM0"), id_of(node, "/dev/ttyACM1")
    node.allocate(first)
    node.allocate(second)
    node.memory = saved.load(saved.dump(node.memory))
    node.look(ANY, SECOND, THIRD)
    assert node.inventory.links()[first] != "/dev/ttyACM1"


def test_a_directory_of_sysfs_says_nothing_about_one_of_an_earlier_boot() -> None:
    """The kernel counts inodes anew, so another disk can have the path and inode of an earlier one."""
    node = Node()
    node.look(ANY, FIRST, SECOND)
    first, second = id_of(node, "/dev/ttyACM0"), id_of(node, "/dev/ttyACM1")
    node.allocate(first)
    node.allocate(second)
    written = saved.dump(node.memory, "boot 1")

    node.memory = saved.load(written, "boot 1")
    node.look(ANY, FIRST)
    assert node.inventory.links() == {first: "/dev/ttyACM0", second: None}

    node.memory = saved.load(written, "boot 2")
    told = node.look(ANY, FIRST)
    assert node.inventory.links() == {first: None, second: None}
    assert told[first] == told[second]
    node.look(ANY, FIRST, SECOND)
    assert node.inventory.links() == {first: "/dev/ttyACM0", second: "/dev/ttyACM1"}


@pytest.mark.parametrize("change", ["comes", "leaves"])
def test_one_that_stays_keeps_its_id_when_a_sibling_before_it_comes_or_leaves(change: str) -> None:
    """DECISIONS: "When one comes or goes, those that stay keep their ids while the daemon runs"."""
    node = Node()
    node.look(ANY, *((FIRST, SECOND) if change == "leaves" else (SECOND,)))
    second = id_of(node, "/dev/ttyACM1")
    node.allocate(second)
    told = node.look(ANY, *((SECOND,) if change == "leaves" else (FIRST, SECOND)))
    assert told[second] != "it is unplugged"
    assert node.inventory.links()[second] == "/dev/ttyACM1"


def replugged(*numbers: int) -> list[UdevDevice]:
    """The nodes of a card, the first one first, after it was plugged in again: their directories are new."""
    return [
        replace(a_usb_node(SERIAL_CARD, "tty", f"ttyACM{n}", number=f"c 166:{n}"), incarnation=100 + n)
        for n in numbers
    ]


@pytest.mark.parametrize("how", ["in one look", "seen to leave", "while the daemon was down"])
def test_of_several_none_is_taken_for_the_only_one_that_was_there_because_it_has_its_name(how: str) -> None:
    """No driver was bound to the first one, so the second one had its name."""
    node = Node()
    (id_,) = node.look(ANY, FIRST)
    node.allocate(id_)
    if how == "seen to leave":
        node.look(ANY)
    elif how == "while the daemon was down":
        node.memory = saved.load(saved.dump(node.memory, "a boot"), "a boot")
    assert node.look(ANY, *replugged(0, 1)) == {id_: IN_DOUBT}
    assert node.links() == {id_: None, f"held+{id_}": "/dev/ttyACM0", f"held+{id_}@1": "/dev/ttyACM1"}


def test_the_only_one_is_the_same_when_it_comes_back_alone() -> None:
    node = Node()
    (id_,) = node.look(ANY, FIRST)
    node.allocate(id_)
    assert node.look(ANY, *replugged(0)) == {id_: "Healthy"}


@pytest.mark.parametrize("other", ["w", "y"])
def test_the_only_one_that_stays_under_another_resource_is_not_taken_for_what_comes(other: str) -> None:
    """What is left of the first resource, which a pod holds, does not say where the node is."""
    node = Node()
    (id_,) = node.look(ANY, FIRST)
    node.allocate(id_)
    node.look(rule(other), FIRST)
    told = node.look(rule(other), FIRST, SECOND)
    assert sorted(told.values()) == ["Healthy", f"a pod may still hold it as {id_} of example.com/x"]
    assert [path for path in node.inventory.links().values() if path] == ["/dev/ttyACM1"]


# Nodes of one unit that a rule takes without telling them apart


@pytest.mark.parametrize(
    "keys", ['identity = "serial"', 'identity = "port"', 'group_by = { SUBSYSTEM = "usb" }']
)
def test_a_node_that_stays_keeps_its_id_when_another_one_of_its_identity_leaves(keys: str) -> None:
    node = Node()
    node.look(rule("x", keys), FIRST)
    tty = id_of_node(node, "/dev/ttyACM0")
    node.allocate(tty)
    both = rule("x", keys, 'unplug_grace = "1s"', match='{ SUBSYSTEM = ["tty", "usb"] }')
    node.look(both, SERIAL_CARD, FIRST)
    usb = id_of_node(node, SERIAL_CARD.device_node or "")
    node.allocate(usb)

    assert node.look(both, SERIAL_CARD) == {tty: "it is unplugged", usb: "Healthy"}
    node.now += PODS_SETTLE_S
    only_usb = Answer(frozenset({("example.com/x", usb)}), node.now, complete=True)
    assert node.look(both, SERIAL_CARD, answer=only_usb) == {usb: "Healthy"}
    assert node.look(both, SERIAL_CARD) == {usb: "Healthy"}
    assert node.look(both, SERIAL_CARD, FIRST) == {tty: "Healthy", usb: "Healthy"}
    assert id_of_node(node, "/dev/ttyACM0") == tty


# Siblings that a property tells


BY_N = rule("x", 'identity = ["N"]')


def a_sibling(number: int, value: str) -> UdevDevice:
    return a_usb_node(
        SERIAL_CARD, "tty", f"ttyACM{number}", number=f"c 166:{number}", properties={"N": value}
    )


def booted(rules: str, *values: str) -> tuple[Node, list[str]]:
    """A node that boots while pods hold siblings with these values, and the ids of these."""
    node = Node()
    node.look(rules, *(a_sibling(number, value) for number, value in enumerate(values)))
    ids = [id_of(node, f"/dev/ttyACM{number}") for number in range(len(values))]
    for id_ in ids:
        node.allocate(id_)
    boot(node)
    return node, ids


def boot(node: Node) -> None:
    node.memory = saved.load(saved.dump(node.memory, "one boot"), "another boot")


def test_siblings_that_swap_their_names_at_a_boot_are_told_by_the_property_that_the_rule_names() -> None:
    node, (a, b) = booted(BY_N, "a", "b")
    told = node.look(BY_N, a_sibling(0, "b"), a_sibling(1, "a"))
    assert told == {a: "Healthy", b: "Healthy"}
    assert node.inventory.links() == {a: "/dev/ttyACM1", b: "/dev/ttyACM0"}
    boot(node)
    node.look(BY_N, a_sibling(0, "a"), a_sibling(1, "b"))
    assert node.inventory.links() == {a: "/dev/ttyACM0", b: "/dev/ttyACM1"}


@pytest.mark.parametrize("identity", ["serial", "port"])
def test_so_are_those_that_are_grouped_by_it(identity: str) -> None:
    rules = rule("x", 'group_by = "N"', f'identity = "{identity}"')
    node = Node()
    for id_ in node.look(rules, a_sibling(0, "a"), a_sibling(1, "b")):
        node.allocate(id_)
    a, b = (id_of(node, f"/dev/ttyACM{number}") for number in range(2))
    boot(node)
    assert {*node.look(rules, a_sibling(0, "b"), a_sibling(1, "a")).values()} == {"Healthy"}
    assert node.inventory.links() == {a: "/dev/ttyACM1", b: "/dev/ttyACM0"}


def test_so_is_one_that_comes_alone() -> None:
    node, (a, b) = booted(BY_N, "a", "b")
    assert node.look(BY_N, a_sibling(0, "b")) == {a: "it is unplugged", b: "Healthy"}
    assert node.inventory.links() == {a: None, b: "/dev/ttyACM0"}
    told = node.look(BY_N, a_sibling(0, "b"), a_sibling(1, "a"))
    assert told == {a: "Healthy", b: "Healthy"}


def test_so_are_those_that_udev_knows_one_after_the_other() -> None:
    node, (a, b) = booted(BY_N, "a", "b")
    first, second = a_sibling(0, "b"), a_sibling(1, "a")
    unready = [replace(each, initialized=False, properties={}) for each in (first, second)]
    told = node.look(BY_N, *unready)
    assert told == dict.fromkeys((a, b), "udev has not finished with it")
    told = node.look(BY_N, first, unready[1])
    assert told == {a: "udev has not finished with it", b: "Healthy"}
    assert node.look(BY_N, first, second) == {a: "Healthy", b: "Healthy"}
    assert node.inventory.links() == {a: "/dev/ttyACM1", b: "/dev/ttyACM0"}


def test_those_of_each_value_are_in_the_order_of_their_paths() -> None:
    node = Node()
    node.look(BY_N, *(a_sibling(number, value) for number, value in enumerate("aabb")))
    ids = [id_of(node, f"/dev/ttyACM{number}") for number in range(4)]
    for id_ in ids:
        node.allocate(id_)
    boot(node)
    told = node.look(BY_N, *(a_sibling(number, value) for number, value in enumerate("bbaa")))
    assert told == dict.fromkeys(ids, "Healthy")
    links = node.inventory.links()
    assert [links[id_] for id_ in ids] == [f"/dev/ttyACM{number}" for number in (2, 3, 0, 1)]


def test_when_two_have_the_value_of_one_its_id_means_neither_until_the_pods_have_gone() -> None:
    node, (a, b) = booted(BY_N, "a", "b")
    there = a_sibling(0, "a"), a_sibling(1, "a")
    told = node.look(BY_N, *there)
    assert told == dict.fromkeys((a, b), IN_DOUBT)
    assert node.inventory.links() == {a: None, b: None}
    assert {each.reason for each in node.inventory.refusals} == {NOT_TOLD}
    node.look(BY_N, *there, answer=node.nobody_holds_anything())
    assert [*node.look(BY_N, *there).values()].count("Healthy") == 2


def test_when_one_has_the_value_of_two_its_id_is_that_of_neither() -> None:
    node = Node()
    node.look(BY_N, a_sibling(0, "a"), a_sibling(1, "a"))
    ids = [id_of(node, f"/dev/ttyACM{number}") for number in range(2)]
    for id_ in ids:
        node.allocate(id_)
    boot(node)
    told = node.look(BY_N, a_sibling(0, "b"), a_sibling(1, "a"))
    assert told == dict.fromkeys(ids, IN_DOUBT)


def test_another_value_is_no_unit_that_a_pod_got() -> None:
    node, (a, b) = booted(BY_N, "a", "b")
    told = node.look(BY_N, a_sibling(0, "b"), a_sibling(1, "c"))
    (c,) = told.keys() - {a, b}
    assert told == {a: f"its id is now {c}", b: "Healthy", c: f"a pod may still hold it as {a}"}
    assert node.inventory.links() == {a: None, b: "/dev/ttyACM0", c: None}


def test_one_that_stays_is_the_same_whatever_its_property_says() -> None:
    node = Node()
    node.look(BY_N, a_sibling(0, "a"), a_sibling(1, "b"))
    a, b = (id_of(node, f"/dev/ttyACM{number}") for number in range(2))
    node.allocate(a)
    node.allocate(b)
    assert node.look(BY_N, a_sibling(0, "b"), a_sibling(1, "a")) == dict.fromkeys((a, b), IN_DOUBT)
    assert node.inventory.links() == {a: None, b: None}


def test_a_property_that_the_rule_names_since_an_edit_tells_nothing_about_what_a_pod_got_before() -> None:
    node, ids = booted(ANY, "a", "b")
    told = node.look(BY_N, a_sibling(0, "b"), a_sibling(1, "a"))
    waiting = {id_: why for id_, why in told.items() if id_ not in ids}
    assert sorted(waiting.values()) == sorted(f"a pod may still hold it as {id_}" for id_ in ids)
    assert set(node.inventory.links().values()) == {None}
    boot(node)
    told = node.look(BY_N, a_sibling(0, "a"), a_sibling(1, "b"))
    assert {id_: told[id_] for id_ in waiting} == waiting, "each waits for the same pod as before"


def test_siblings_are_told_by_it_when_the_memory_was_lost() -> None:
    _, ids = booted(BY_N, "a", "b")
    node = Node()
    told = node.look(BY_N, a_sibling(0, "b"), a_sibling(1, "a"))
    assert told == dict.fromkeys(ids, "Healthy")
    assert node.inventory.links() == {ids[0]: "/dev/ttyACM1", ids[1]: "/dev/ttyACM0"}


@pytest.mark.parametrize("boot_id", ["", "same boot", "another boot"])
def test_siblings_that_no_pod_got_take_no_device_from_a_pod(boot_id: str) -> None:
    """They joined a kit, and come again with another number of them before it was seen that they had left."""

    def siblings(port: str, count: int, since: int) -> list[UdevDevice]:
        usb = replace(a_usb_device(port, serial=f"S{port}", devnum=since), incarnation=1000 + since)
        nodes = [
            a_usb_node(usb, "tty", f"ttyUSB{since + n}", interface="00", number=f"c 188:{since + n}")
            for n in range(count)
        ]
        return [replace(node, incarnation=since + n) for n, node in enumerate(nodes)]

    kit, node = rule("kit", 'group_by = "all"'), Node()
    own = siblings("1", 2, 10)
    node.look(kit, *own)
    node.allocate("kit")
    links = node.inventory.links()
    node.look(kit, *own, *siblings("2", 3, 20))
    if boot_id:
        node.memory = saved.load(saved.dump(node.memory, "same boot"), boot_id)
    assert node.look(kit, *own, *siblings("2", 1, 30)) == {"kit": "Healthy"}
    assert links.items() <= node.inventory.links().items()


BY_PART = rule("x", 'identity = ["PART"]')


def test_every_former_port_of_a_card_counts_where_a_pod_may_hold_a_sibling() -> None:
    """The siblings had the same numbers at two ports, but the numbers stood for different ones."""
    node = Node()
    node.look(ANY, *a_card("2", {0: 1, 1: 2, 2: 3}, 10))
    node.look(ANY, *a_card("2", {0: 1, 1: 2, 2: 3, 3: 0}, 10))
    node.look(ANY)
    node.look(ANY, *a_card("3", {1: 0, 2: 1, 3: 2}, 20))
    part_1 = id_of(node, "/dev/ttyUSB0")
    node.allocate(part_1)
    node.look(ANY)
    node.look(ANY, *a_card("1", {0: 0, 1: 1, 2: 2, 3: 3}, 30))
    assert node.inventory.links()[part_1] in (None, "/dev/ttyUSB1")
    assert set(node.inventory.links().values()) == {None}


def test_a_sibling_that_a_property_identifies_may_have_another_number_at_another_port() -> None:
    """At each USB port, a different one of the card's own ports was bound first."""
    node = Node()
    node.look(BY_PART, *a_card("3", {0: 0}, 10))
    own_0 = id_of(node, "/dev/ttyUSB0")
    node.allocate(own_0)
    node.look(BY_PART)
    node.look(BY_PART, *a_card("2", {3: 0}, 20))
    own_3 = id_of(node, "/dev/ttyUSB0")
    node.allocate(own_3)
    all_of_them = a_card("2", {0: 0, 1: 1, 2: 2, 3: 3}, 30)
    for _ in range(2):
        told = node.look(BY_PART, *all_of_them)
        assert set(told.values()) == {"Healthy"}
        links = node.inventory.links()
        assert (links[own_0], links[own_3]) == ("/dev/ttyUSB0", "/dev/ttyUSB3")
        assert not node.inventory.held_links
        node.memory = saved.load(saved.dump(node.memory, "boot"), "boot")


@pytest.mark.parametrize("boots", [False, True])
def test_once_more_siblings_came_than_were_known_an_equal_number_may_be_others(*, boots: bool) -> None:
    """Ports 0 and 1 of a card were bound, then all four, then 1 and 3."""
    node = Node()
    node.look(ANY, *a_card("1", {0: 0, 1: 1}, 10))
    part_1 = id_of(node, "/dev/ttyUSB1")
    node.allocate(part_1)
    node.look(ANY, *a_card("1", {0: 0, 1: 1, 2: 2, 3: 3}, 20))
    node.look(ANY)
    if boots:
        boot(node)
    assert node.look(ANY, *a_card("1", {1: 0, 3: 1}, 30))[part_1] == IN_DOUBT
    assert set(node.inventory.links().values()) == {None}
    # Once that pod is gone, others can get the ports that are bound.
    node.look(ANY, *a_card("1", {1: 0, 3: 1}, 30), answer=node.nobody_holds_anything())
    assert set(node.look(ANY, *a_card("1", {1: 0, 3: 1}, 30)).values()) >= {"Healthy"}
    assert {"/dev/ttyUSB0", "/dev/ttyUSB1"} <= {*node.inventory.links().values()}


def test_a_sibling_in_doubt_at_another_port_is_still_in_doubt_at_the_next_look() -> None:
    """A property identifies some of the siblings for sure. The pod's own is one of the others."""
    rules, node = rule("x", 'identity = ["HALF"]'), Node()
    node.look(rules, *a_card("1", {1: 0, 2: 1, 3: 2}, 10))
    part_1 = id_of(node, "/dev/ttyUSB0")
    node.allocate(part_1)
    node.look(rules, *a_card("1", {0: 0, 1: 1, 2: 2, 3: 3}, 20))
    for _ in range(2):
        node.look(rules, *a_card("3", {0: 0, 1: 1, 2: 2, 3: 3}, 30))
        assert node.inventory.links()[part_1] is None


@pytest.mark.parametrize("port", ["1", "2"])
def test_a_value_that_siblings_share_does_not_identify_those_that_came_out_of_order(port: str) -> None:
    """The name of the first one was still in use when they came back."""
    rules, node = rule("x", 'identity = ["ID_SERIAL_SHORT"]'), Node()
    node.look(rules, *a_card("1", {0: 0, 1: 1, 2: 2, 3: 3}, 10))
    own = id_of(node, "/dev/ttyUSB0")
    node.allocate(own)
    node.look(rules)
    node.look(rules, *a_card(port, {0: 4, 1: 0, 2: 1, 3: 2}, 20))
    assert set(node.inventory.links().values()) == {None}


@pytest.mark.parametrize("boots", [False, True])
def test_once_more_came_than_the_only_one_that_was_known_one_may_be_any_of_them(*, boots: bool) -> None:
    """Port 0 of a card was bound, then 0 and 1, then 1."""
    node = Node()
    node.look(ANY, *a_card("1", {0: 0}, 10))
    node.allocate("x_CARD")
    node.look(ANY, *a_card("1", {0: 0, 1: 1}, 20))
    node.look(ANY)
    if boots:
        boot(node)
    for _ in range(2):
        node.look(ANY, *a_card("2", {1: 0}, 30))
        assert node.inventory.links() == {"x_CARD": None}
    node.look(ANY, *a_card("2", {1: 0}, 30), answer=node.nobody_holds_anything())
    assert node.look(ANY, *a_card("2", {1: 0}, 30)) == {"x_CARD": "Healthy"}
    assert node.inventory.links() == {"x_CARD": "/dev/ttyUSB0"}


@pytest.mark.parametrize("serial", [None, "0001"])
def test_without_a_serial_number_a_shared_value_says_at_which_port_siblings_were(serial: str | None) -> None:
    rules, node = rule("x", 'identity = ["HALF"]'), Node()
    every = {part: part for part in range(4)}
    node.look(rules, *a_card("1", every, 10, serial))
    part_2 = id_of(node, "/dev/ttyUSB2")
    node.allocate(part_2)
    node.look(rules)
    node.look(rules, *a_card("2", {0: 0, 3: 1}, 20, serial))
    assert node.inventory.links()[part_2] is None
    node.look(rules, *a_card("3", every, 30, serial))
    assert node.inventory.links()[part_2] == "/dev/ttyUSB2"


@pytest.mark.parametrize("keys", ["", 'identity = ["HALF"]', 'identity = ["PART"]'])
def test_a_sibling_that_is_forgotten_keeps_no_other_one_from_its_pod(keys: str) -> None:
    node, rules = Node(), rule("x", keys)
    told = node.look(rules, *a_card("1", {0: 0, 1: 1}, 10))
    own = id_of(node, "/dev/ttyUSB0")
    node.allocate(own)
    for _ in range(2):
        node.now += 1000.0
        held = frozenset({("example.com/x", own)})
        answer = Answer(held, node.now, complete=True, checkpointed=frozenset({own}))
        told = node.look(rules, *a_card("1", {0: 0}, 10), answer=answer)
    # If a property identifies the other one, it is not forgotten.
    assert (told[own], len(told)) == ("Healthy", 2 if keys else 1)
    node.look(rules)
    assert set(node.look(rules, *a_card("1", {0: 0, 1: 1}, 20)).values()) == {"Healthy"}
    assert node.inventory.links()[own] == "/dev/ttyUSB0"
    told = node.look(rules, *a_card("1", {0: 0}, 30), answer=node.nobody_holds_anything())
    node.now += 1000.0
    assert len(node.look(rules, *a_card("1", {0: 0}, 30), answer=node.nobody_holds_anything())) == 1


@pytest.mark.parametrize("saves", [False, True])
@pytest.mark.parametrize("keys", ["", 'identity = ["HALF"]'])
def test_siblings_that_came_out_of_order_are_in_doubt_until_all_have_left(keys: str, *, saves: bool) -> None:
    """The order may look right once one of them is bound again. When all come again, it counts."""
    rules, node = rule("x", keys), Node()
    node.look(rules, *a_card("1", {0: 0, 1: 1}, 10))
    own = id_of(node, "/dev/ttyUSB1")
    node.allocate(own)
    node.look(rules)
    usb, part_0, part_1 = a_card("1", {0: 2, 1: 0}, 20)
    _, part_0_again = a_card("1", {0: 5}, 30)
    for nodes in ((part_0, part_1), (part_1,), (part_1, part_0_again), (part_1, part_0_again)):
        node.look(rules, usb, *nodes)
        assert node.inventory.links()[own] is None
        if saves:
            node.memory = saved.load(saved.dump(node.memory, "boot"), "boot")
    node.look(rules, usb)
    node.look(rules, *a_card("1", {0: 0, 1: 1}, 40))
    assert node.inventory.links()[own] == "/dev/ttyUSB1"


@pytest.mark.parametrize("ports", ["111", "112", "122", "123"])
@pytest.mark.parametrize(
    ("first", "then", "own", "later"),
    [
        ((0, 1, 2), (0, 1, 2), 2, (0, 2, 3)),
        ((1, 2), (1, 2), 2, (2, 3)),
        ((2, 3), (2,), 2, (0, 3)),
        ((0, 2), (0, 1), 0, (1, 2)),
        ((0, 2), (0, 1), 1, (1, 2)),
        ((0, 1), (1, 2), 1, (0, 1)),
        ((0, 1, 2), (1, 2, 3), 1, (0, 1)),
    ],
)
def test_a_doubt_stays_when_siblings_are_forgotten_or_their_numbers_had_several_values(
    first: Sequence[int], then: Sequence[int], own: int, later: Sequence[int], ports: str
) -> None:
    def came(parts: Sequence[int], since: int) -> tuple[UdevDevice, ...]:
        return a_card(ports[since // 10 - 1], {part: part for part in parts}, since)

    node, rules = Node(), rule("x", 'identity = ["HALF"]')
    node.look(rules, *came(first, 10))
    node.look(rules, *came(then, 20))
    id_ = id_of(node, f"/dev/ttyUSB{own}")
    node.allocate(id_)
    for _ in range(3):
        node.now += 1000.0
        held = frozenset({("example.com/x", id_)})
        answer = Answer(held, node.now, complete=True, checkpointed=frozenset({id_}))
        node.look(rules, *came(later, 30), answer=answer)
        assert node.inventory.links()[id_] is None
        node.memory = saved.load(saved.dump(node.memory, "boot"), "boot")


@pytest.mark.parametrize("ports", ["111", "122", "123"])
@pytest.mark.parametrize(
    ("keys", "first", "then"),
    [('identity = ["PART"]', (0,), (1,)), ('identity = ["HALF"]', (0, 1), (1, 2))],
)
def test_a_value_that_no_other_one_has_identifies_a_sibling_that_has_come_in_place_of_others(
    keys: str, first: tuple[int, ...], then: tuple[int, ...], ports: str
) -> None:
    """When all come, two of them had the same number."""
    node, rules = Node(), rule("x", keys)
    node.look(rules, *a_card(ports[0], {part: part for part in first}, 10))
    node.look(rules)
    node.look(rules, *a_card(ports[1], {part: part for part in then}, 20))
    own = id_of(node, f"/dev/ttyUSB{then[-1]}")
    node.allocate(own)
    node.look(rules)
    every = {part: part for part in range(then[-1] + 1)}
    for _ in range(2):
        told = node.look(rules, *a_card(ports[2], every, 30))
        assert (told[own], node.inventory.links()[own]) == ("Healthy", f"/dev/ttyUSB{then[-1]}")
        assert [*told.values()].count("Healthy") == len(every)
        node.memory = saved.load(saved.dump(node.memory, "boot"), "boot")


@pytest.mark.parametrize("keys", ["", 'identity = ["PART"]'])
def test_siblings_in_doubt_stay_so_when_an_edit_names_another_property(keys: str) -> None:
    """One of the two values came that were missing, so the first one may be any of them."""
    node = Node()
    before, after = rule("x", 'identity = ["HALF"]'), rule("x", keys)
    node.look(before, *a_card("1", {0: 0}, 10))
    node.look(before)
    node.look(before, *a_card("1", {0: 0, 1: 1}, 20))
    node.allocate(id_of(node, "/dev/ttyUSB1"))
    node.look(before)
    came = a_card("1", {1: 1, 2: 2}, 30)
    node.look(before, *came)
    told = node.look(after, *came)
    assert "/dev/ttyUSB1" not in {
        node.inventory.links()[id_] for id_, why in told.items() if why == "Healthy"
    }


def test_a_held_sibling_is_found_at_another_port_after_the_edit_has_been_undone() -> None:
    """It moved, with more siblings than were known, while the rule named another property."""
    node = Node()
    by_half, by_part = rule("x", 'identity = ["HALF"]'), rule("x", 'identity = ["PART"]')
    node.look(by_half, *a_card("3", {1: 1, 3: 3}, 20))
    own = id_of(node, "/dev/ttyUSB3")
    node.allocate(own)
    node.look(by_part, *a_card("3", {1: 1, 3: 3}, 20))
    node.look(by_part)
    came = a_card("1", {0: 0, 1: 1, 2: 2, 3: 3}, 30)
    node.look(by_part, *came)
    node.look(by_half, *came)
    assert node.inventory.links()[own] == "/dev/ttyUSB3"


def test_a_sibling_that_moved_is_still_held_although_another_pod_may_hold_it_too() -> None:
    """One pod got its id before an edit, the other one after it. Then the card moves, with more siblings."""
    node = Node()
    plain, by_half, by_part = (rule("x", keys) for keys in ("", 'identity = ["HALF"]', 'identity = ["PART"]'))
    there, came = a_card("3", {0: 0, 1: 1}, 20), a_card("1", {0: 0, 1: 1, 2: 2, 3: 3}, 30)
    node.look(plain, *there)
    first = id_of(node, "/dev/ttyUSB0")
    node.allocate(first)
    node.look(by_half, *there)
    second = id_of(node, "/dev/ttyUSB1")
    node.allocate(second)
    node.look(by_part, *there)
    node.look(by_part)
    for rules in (by_part, plain, plain, by_half):
        told = node.look(rules, *came)
        free = [id_ for id_, why in told.items() if why == "Healthy" and id_ not in (first, second)]
        assert {"/dev/ttyUSB0", "/dev/ttyUSB1"}.isdisjoint(node.inventory.links()[id_] for id_ in free)


def test_after_two_moves_and_an_undone_edit_a_held_sibling_is_still_found() -> None:
    node = Node()
    by_half, by_part = rule("x", 'identity = ["HALF"]'), rule("x", 'identity = ["PART"]')
    alone, every = a_card("1", {1: 1}, 20), {part: part for part in range(4)}
    node.look(by_part, *alone)
    node.look(by_half, *alone)
    own = id_of(node, "/dev/ttyUSB1")
    node.allocate(own)
    node.look(by_part, *alone)
    moves = (a_card("3", {0: 0, 2: 2, 3: 3}, 30), a_card("3", every, 40), a_card("2", every, 50))
    for came in moves:
        node.look(by_part)
        node.look(by_part, *came)
    node.look(by_half, *moves[-1])
    assert node.inventory.links()[own] == "/dev/ttyUSB1"


@pytest.mark.parametrize("ports", ["1111", "1222", "1123"])
def test_what_had_a_number_under_former_rules_tells_nothing_once_the_numbers_begin_anew(ports: str) -> None:
    """No pod held any of the card, so the first of those that came got the number of the only one known."""
    node = Node()
    plain, by_part = rule("x"), rule("x", 'identity = ["PART"]')
    node.look(by_part, *a_card(ports[0], {1: 1}, 10))
    node.look(plain, *a_card(ports[0], {1: 1}, 10))
    came: Sequence[UdevDevice] = ()
    for port, parts, since in zip(ports[1:], ((0, 1, 2), (0, 1, 2, 3), (0, 1, 3)), (20, 30, 40), strict=True):
        if since == 40:
            node.allocate(id_of(node, "/dev/ttyUSB1"))
        node.look(plain)
        came = a_card(port, {part: part for part in parts}, since)
        node.look(plain, *came)
    told = node.look(by_part, *came)
    assert set(node.inventory.links().values()) == {None}
    assert "Healthy" not in told.values()


def test_a_value_that_all_siblings_had_tells_none_of_them_apart_whatever_values_pods_hold() -> None:
    """Both nodes of a card change their value between two pods. Then only one comes, with the old value."""
    rules, node = rule("x", 'identity = ["HALF"]'), Node()
    usb, *nodes = a_card("1", {0: 0, 1: 1}, 10)
    changed = [replace(each, properties={**each.properties, "HALF": "new"}) for each in nodes]
    node.look(rules, usb, *nodes)
    first = id_of(node, "/dev/ttyUSB0")
    node.allocate(first)
    node.look(rules, usb, *changed)
    second = id_of(node, "/dev/ttyUSB1")
    node.allocate(second)
    node.look(rules)
    usb, _, other = a_card("1", {0: 0, 1: 1}, 20)
    for _ in range(2):
        node.look(rules, usb, other)
        assert (node.inventory.links()[first], node.inventory.links()[second]) == (None, None)
