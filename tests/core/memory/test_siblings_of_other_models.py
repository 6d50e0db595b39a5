"""Siblings at a port where another model was: a scanner in place of a keyboard, without serial numbers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from tests.core.memory.test_siblings_on_boards import Booting
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

KEYS = ("", 'group_by = "usb_device"', 'identity = "port"')
KEYBOARD, SCANNER = "c31c", "0a11"
ALL_INPUTS = '{ SUBSYSTEM = "input" }'
KEYBOARDS, SCANNERS = (
    f'{{ SUBSYSTEM = "input", usb = {{ product = "{product}" }} }}' for product in (KEYBOARD, SCANNER)
)


def hid(
    product: str, plug: int, count: int, serial: str | None = None, *, port: str = "1", first: int = 0
) -> Sequence[UdevDevice]:
    """A unit whose event nodes, from event`first`, only their order tells apart."""
    usb = replace(a_usb_device(port, product=product, serial=serial), incarnation=10 * plug)
    numbers = range(first, first + count)
    nodes = (a_usb_node(usb, "input", f"event{n}", number=f"c 13:{64 + n}") for n in numbers)
    return usb, *(replace(node, incarnation=10 * plug + n) for n, node in enumerate(nodes, 1))


@pytest.mark.parametrize("serial", [None, "0001"])
@pytest.mark.parametrize("keys", KEYS)
def test_the_siblings_of_a_unit_do_not_count_once_one_of_another_model_is_in_its_place(
    keys: str, serial: str | None
) -> None:
    node, rules = Booting(), rule("hid", keys, match='{ SUBSYSTEM = "input" }')
    node.look(rules, *hid(KEYBOARD, 1, 2, serial))
    node.look(rules)
    node.forget(rules, *hid(SCANNER, 2, 1, serial))
    node.give(rules, *hid(SCANNER, 2, 1, serial))
    for plug in (3, 4):
        node.look(rules)
        assert [*node.look(rules, *hid(SCANNER, plug, 1, serial)).values()] == ["Healthy"]
        assert "/dev/event0" in node.links().values()
        node.reboot()


@pytest.mark.parametrize("serial", [None, "0001"])
@pytest.mark.parametrize("match", [ALL_INPUTS, KEYBOARDS])
def test_a_unit_with_one_node_says_nothing_about_siblings_of_another_model_that_come_in_its_place(
    match: str, serial: str | None
) -> None:
    node, rules = Booting(), rule("hid", match=match)
    node.look(rule("hid", match=ALL_INPUTS), *hid(SCANNER, 1, 1, serial))
    node.look(rules)
    node.look(rules, *hid(KEYBOARD, 2, 2, serial))
    node.allocate(next(link for link, path in node.links().items() if path == "/dev/event1"))
    node.look(rules)
    assert {*node.look(rules, *hid(KEYBOARD, 3, 2, serial)).values()} == {"Healthy"}


def colored(nodes: Sequence[UdevDevice], colors: str) -> Sequence[UdevDevice]:
    """The same unit whose event nodes have these colors, one letter each."""
    usb, *events = nodes
    pairs = zip(events, colors, strict=True)
    return usb, *(replace(node, properties={**node.properties, "COLOR": color}) for node, color in pairs)


@pytest.mark.parametrize("is_next_boot", [False, True])
@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("serial", [None, "S"])
@pytest.mark.parametrize(
    ("keys", "match"),
    [
        *((keys, SCANNERS) for keys in (*KEYS, 'group_by = "all"', 'identity = ["COLOR"]')),
        *((keys, ALL_INPUTS) for keys in ('identity = ["COLOR"]', 'group_by = "COLOR"')),
    ],
)
def test_siblings_of_a_unit_that_was_there_in_between_keep_no_later_pod_from_its_device(
    keys: str, match: str, serial: str | None, *, moves: bool, is_held: bool, is_next_boot: bool
) -> None:
    """While a pod holds the device, it may count as one of them until the pod has gone."""
    node, rules = Booting(), rule("hid", keys, match=match)
    ports = "1212121" if moves else "1111111"
    scanners = [colored(hid(SCANNER, n, 1, serial, port=port), "r") for n, port in enumerate(ports, 1)]
    node.look(rules, *scanners[0])
    if is_held:
        node.give(rules, *scanners[0])
    node.look(rules, *colored(hid(KEYBOARD, 11, 2, serial), "bg"))
    if is_next_boot:
        node.reboot()
    node.look(rules, *scanners[1])
    for before, after in pairwise(scanners[1:]):
        node.forget(rules, *before)
        node.give(rules, *before)
        if is_next_boot:
            node.reboot()
        else:
            node.look(rules)
        assert "Healthy" in node.look(rules, *after).values()
        assert "/dev/event0" in node.links().values()
        assert not node.memory.siblings


@pytest.mark.parametrize("keys", ["", KEYS[2]])
@pytest.mark.parametrize("index", [0, 1])
def test_another_model_with_its_serial_number_says_nothing_about_the_siblings_of_a_held_unit(
    keys: str, index: int
) -> None:
    """Two units with one serial number and ids of their own: the other model comes where neither was."""
    node, rules = Booting(), rule("hid", keys, match=ALL_INPUTS)
    one, two = hid(KEYBOARD, 1, 2, "S", first=5), hid(KEYBOARD, 3, 2, "S", port="2")
    node.look(rules, *one)
    node.look(rules, *one, *two)
    node.look(rules, *two)
    link = next(link for link, path in node.links().items() if path == f"/dev/event{index}")
    node.allocate(link)
    node.look(rules)
    node.look(rules, *hid(SCANNER, 5, 1, "S", port="3"))
    node.look(rules)
    usb, *events = hid(KEYBOARD, 7, 2, "S", port="2")
    node.look(rules, usb, events[1])
    assert node.links()[link] is None
    node.look(rules, usb, *events)
    assert node.links()[link] == f"/dev/event{index}"


@pytest.mark.parametrize("product", [KEYBOARD, SCANNER])
def test_they_count_if_it_is_of_the_same_model_or_a_pod_holds_one_of_them(product: str) -> None:
    node, rules = Booting(), rule("hid", match='{ SUBSYSTEM = "input" }')
    node.look(rules, *hid(KEYBOARD, 1, 2))
    if product == SCANNER:
        node.allocate(next(link for link, path in node.links().items() if path == "/dev/event1"))
        node.look(rules)
        assert "Healthy" not in node.look(rules, *hid(product, 2, 1)).values()
        return
    node.look(rules)
    node.forget(rules, *hid(product, 2, 1))
    node.give(rules, *hid(product, 2, 1))
    node.look(rules)
    assert "Healthy" not in node.look(rules, *hid(product, 3, 1)).values()


@pytest.mark.parametrize("says", [False, True])
def test_they_count_if_the_memory_of_an_earlier_release_does_not_say_of_which_model_they_were(
    *, says: bool
) -> None:
    node, rules = Booting(), rule("hid", match='{ SUBSYSTEM = "input" }')
    node.look(rules, *hid(KEYBOARD, 1, 2))
    node.look(rules)
    document = json.loads(saved.dump(node.memory))
    del document["sibling_models"]
    for device in document["devices"].values() if not says else ():
        del device["models"]
    node.memory = saved.load(json.dumps(document).encode())
    node.forget(rules, *hid(SCANNER, 2, 1))
    node.give(rules, *hid(SCANNER, 2, 1))
    node.look(rules)
    assert ("Healthy" in node.look(rules, *hid(SCANNER, 3, 1)).values()) is says


@pytest.mark.parametrize("are_seen", [False, True])
@pytest.mark.parametrize("keys", [KEYS[2], f"{KEYS[1]}\n{KEYS[2]}"])
def test_they_do_not_count_for_another_part_of_a_dock_with_their_serial_number(
    keys: str, *, are_seen: bool
) -> None:
    """The parts of each of two docks share one. One dock is exchanged for the other and back."""

    def dock(serial: str, plug: int) -> Sequence[UdevDevice]:
        one = hid(KEYBOARD, plug, 1, serial, port="3.1")
        return *one, *hid(SCANNER, plug + 1, 2, serial, port="3.2", first=1)

    node, rules = Node(), rule("hid", keys, match='{ SUBSYSTEM = "input" }')
    first = min(node.look(rules, *dock("X", 1)))
    node.allocate(first)
    node.look(rules, *dock("X", 1))
    for plug, serial in ((3, "Y"), (5, "X")):
        if are_seen:
            node.look(rules)
        node.look(rules, *dock(serial, plug))
    assert {*node.look(rules, *dock("X", 5)).values()} == {"Healthy"}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_a_doubt_about_siblings_holds_at_a_port_where_another_model_with_their_serial_number_was(
    count: int, *, restarts: bool
) -> None:
    """It was one node of two that the pod got at another port, and nobody knows which."""
    node, rules = Booting(), rule("kb", match=KEYBOARDS) + rule("sc", match=SCANNERS)
    node.look(rules, *hid(SCANNER, 1, count, "S", port="1", first=5))
    node.look(rules)
    node.look(rules, *hid(KEYBOARD, 2, 2, "S", port="2"))
    node.look(rules)
    usb, _, second = hid(KEYBOARD, 3, 2, "S", port="3")
    told = node.look(rules, usb, second)
    link = next(link for link, path in node.links().items() if path == "/dev/event1")
    assert told[link] == "Healthy"
    node.allocate(link)
    node.look(rules, usb, second)
    node.look(rules)
    if restarts:
        node.restart()
    told = node.look(rules, *hid(KEYBOARD, 4, 2, "S", port="1"))
    assert node.links()[link] is None
    assert all(health != "Healthy" for id_, health in told.items() if id_.startswith("kb"))


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("visits", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_siblings_that_no_rule_takes_do_not_take_the_port_of_a_unit_with_their_serial_number(
    count: int, keys: str, *, visits: bool, restarts: bool
) -> None:
    """They are of another model. Nothing is remembered of them, so each look finds them anew."""
    node, rules = Booting(), rule("hid", keys, match=SCANNERS)
    beside = hid(KEYBOARD, 1, 3, "X", port="1", first=4)
    always = () if visits else beside
    for id_ in node.look(rules, *always, *hid(SCANNER, 2, count, "X", port="2")):
        node.allocate(id_)
    node.look(rules, *always, *hid(SCANNER, 2, count, "X", port="2"))
    links = node.links()
    for plug in (3, 4):
        node.look(rules, *beside)
        if restarts:
            node.restart()
        told = node.look(rules, *always, *hid(SCANNER, plug, count, "X", port="2"))
        assert {*told.values()} == {"Healthy"}
        assert node.links() == links


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("restarts", [False, True])
def test_siblings_keep_their_ids_at_a_port_where_another_model_with_their_serial_number_was(
    count: int, index: int, *, restarts: bool
) -> None:
    """One of them has not come yet when they are first seen there."""
    node, rules = Booting(), rule("kb", match=KEYBOARDS) + rule("sc", match=SCANNERS)
    node.look(rules, *hid(SCANNER, 1, count, "S", port="1", first=5))
    node.look(rules)
    node.look(rules, *hid(KEYBOARD, 2, 2, "S", port="2"))
    link = next(link for link, path in node.links().items() if path == f"/dev/event{index}")
    node.allocate(link)
    node.look(rules, *hid(KEYBOARD, 2, 2, "S", port="2"))
    node.look(rules)
    if restarts:
        node.restart()
    usb, first, second = hid(KEYBOARD, 3, 2, "S", port="1")
    node.look(rules, usb, second)
    assert node.links()[link] is None
    assert node.look(rules, usb, first, second)[link] == "Healthy"
    assert node.links()[link] == f"/dev/event{index}"


def test_siblings_may_have_been_where_an_earlier_release_does_not_say_of_which_model_they_were() -> None:
    node, rules = Booting(), rule("hid", match=ALL_INPUTS)
    for id_ in node.look(rules, *hid(KEYBOARD, 1, 2, "S")):
        node.allocate(id_)
    node.look(rules)
    document = json.loads(saved.dump(node.memory))
    del document["sibling_models"]
    for device in document["devices"].values():
        del device["models"]
    node.memory = saved.load(json.dumps(document).encode())
    usb, _, second = hid(KEYBOARD, 2, 2, "S", port="2")
    text = "it is unplugged, or it is one of several that look alike: plug it in again at its old port"
    assert {*node.look(rules, usb, second).values()} == {f"{text}, or delete that pod"}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("are_matched", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_siblings_stay_in_doubt_while_another_model_is_where_the_pod_got_one_of_them(
    count: int, *, are_matched: bool, restarts: bool
) -> None:
    """It was one node of two that the pod got there, and nobody knows which."""
    node, rules = Booting(), rule("kb", match=KEYBOARDS)
    rules += rule("sc", match=SCANNERS) if are_matched else ""
    node.look(rules, *hid(KEYBOARD, 1, 2, "S"))
    node.look(rules)
    usb, _, second = hid(KEYBOARD, 2, 2, "S", port="3")
    node.look(rules, usb, second)
    link = next(link for link, path in node.links().items() if path == "/dev/event1")
    node.allocate(link)
    node.look(rules, usb, second)
    keyboard = hid(KEYBOARD, 3, 2, "S")
    node.look(rules, *keyboard)
    assert node.links()[link] is None
    for plug in (5, 7):
        node.look(rules, *keyboard, *hid(SCANNER, plug, count, "S", port="3", first=5))
        if restarts:
            node.restart()
        assert node.links()[link] is None
        told = node.look(rules, *keyboard)
        assert node.links()[link] is None
        assert all(health != "Healthy" for id_, health in told.items() if id_.startswith("kb"))


@pytest.mark.parametrize("keys", KEYS[:2])
@pytest.mark.parametrize("restarts", [False, True])
def test_siblings_of_which_more_come_than_were_known_say_nothing_about_another_model(
    keys: str, *, restarts: bool
) -> None:
    """They have the serial number of the unit that a pod has, and come while that is unplugged."""
    node, rules = Booting(), rule("kb", keys, match=KEYBOARDS) + rule("sc", keys, match=SCANNERS)
    scanner = hid(SCANNER, 1, 2, "S", first=5)
    for id_ in node.look(rules, *scanner):
        node.allocate(id_)
    node.look(rules, *scanner)
    links = node.links()
    node.look(rules)
    node.look(rules, *hid(KEYBOARD, 3, 1, "S", port="3"))
    node.look(rules)
    keyboard = hid(KEYBOARD, 5, 2, "S", port="2")
    told = node.look(rules, *keyboard)
    assert {health for id_, health in told.items() if id_.startswith("kb")} == {"Healthy"}
    if restarts:
        node.restart()
    told = node.look(rules, *keyboard, *hid(SCANNER, 7, 2, "S", first=5))
    assert {*told.values()} == {"Healthy"}
    assert {link: node.links()[link] for link in links} == links


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("serial", [None, "0001"])
@pytest.mark.parametrize("restarts", [False, True])
def test_siblings_of_another_model_count_at_another_port_if_properties_say_that_they_are_the_same(
    index: int, serial: str | None, *, restarts: bool
) -> None:
    node, rules = Booting(), rule("hid", 'identity = ["COLOR"]', match=ALL_INPUTS)
    node.look(rules, *colored(hid(SCANNER, 1, 2, serial), "rr"))
    link = next(link for link, path in node.links().items() if path == f"/dev/event{index}")
    node.allocate(link)
    node.look(rules, *colored(hid(SCANNER, 1, 2, serial), "rr"))
    node.look(rules)
    if restarts:
        node.restart()
    usb, first, second = colored(hid(KEYBOARD, 3, 2, serial, port="2"), "rr")
    node.look(rules, usb, second)
    assert node.links()[link] is None
    assert node.look(rules, usb, first, second)[link] == "Healthy"
    assert node.links()[link] == f"/dev/event{index}"


def test_siblings_are_in_doubt_no_longer_once_a_clone_is_where_the_pod_got_one_of_them() -> None:
    """The clone counts as the unit of the pod, because the port decides among clones."""
    node, rules = Booting(), rule("kb", match=KEYBOARDS)
    node.look(rules, *hid(KEYBOARD, 1, 2, "S"))
    node.look(rules)
    usb, _, second = hid(KEYBOARD, 2, 2, "S", port="3")
    node.look(rules, usb, second)
    node.allocate(next(link for link, path in node.links().items() if path == "/dev/event1"))
    node.look(rules, usb, second)
    keyboard, clone = hid(KEYBOARD, 3, 2, "S"), hid(KEYBOARD, 5, 2, "S", port="3", first=5)
    assert "Healthy" not in node.look(rules, *keyboard).values()
    told = node.look(rules, *keyboard, *clone)
    free = {node.links()[link] for link, health in told.items() if health == "Healthy"}
    assert free == {"/dev/event0", "/dev/event1"}


@pytest.mark.parametrize("serial", [None, "S"])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("ports", [("1", "2"), ("3", "2"), ("1", "3"), ("3", "4")], ids="-".join)
@pytest.mark.parametrize("after", ["replug", "restart", "boot"])
def test_the_units_of_a_kit_are_not_taken_for_each_other_when_they_come_back_in_turn(
    serial: str | None, count: int, ports: tuple[str, str], after: str
) -> None:
    node, rules = Booting(), rule("kit", 'group_by = "COLOR"', match=ALL_INPUTS)

    def kit(plug: int, keyboard: str = "1", scanner: str = "2") -> Sequence[Sequence[UdevDevice]]:
        units = (
            (hid(KEYBOARD, plug, 1, serial, port=keyboard), "r"),
            (hid(SCANNER, plug + 1, count, serial, port=scanner, first=1), "r" * count),
        )
        return [colored(nodes, colors) for nodes, colors in units]

    keyboard, scanner = kit(1)
    (id_,) = node.look(rules, *keyboard, *scanner)
    node.allocate(id_)
    node.look(rules, *keyboard, *scanner)
    got = {path: link for link, path in node.links().items() if path is not None}
    node.look(rules, *scanner)
    node.look(rules)
    if after == "boot":
        node.reboot()
    keyboard, scanner = kit(3, *ports)
    node.look(rules, *keyboard)
    if after == "restart":
        node.restart()
    assert node.look(rules, *keyboard, *scanner) == {id_: "Healthy"}
    leads = node.links()
    assert all(leads[link] in (path, None) for path, link in got.items())
    assert ports != ("1", "2") or None not in leads.values()


@pytest.mark.parametrize("group", ["ID_SERIAL_SHORT", "RIG"])
def test_siblings_of_another_model_that_join_a_kit_were_not_where_a_unit_of_it_stays(group: str) -> None:
    node, rules = Node(), rule("x", f'group_by = "{group}"', match=ALL_INPUTS)
    values = {"ID_SERIAL_SHORT": "S", "RIG": "rig"}
    unit, siblings = (
        [replace(each, properties={**each.properties, **values}) for each in units]
        for units in (hid(KEYBOARD, 1, 1, "S"), hid(SCANNER, 2, 2, "S", port="2", first=1))
    )
    (id_,) = node.look(rules, *unit)
    node.allocate(id_)
    node.look(rules, *unit)
    (link,) = node.inventory.links()
    for _ in range(2):
        assert node.look(rules, *unit, *siblings)[id_] == "Healthy"
        assert node.inventory.links()[link] == "/dev/event0"
