"""Ports of a card that come one after the other, and one of which is bound again under another name."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.saved import dump, load
from tests.scenes.builders import a_device, a_usb_device, a_usb_node, an_i2c_bus
from tests.scenes.edits import Node, rule

RULES = [rule("x", keys) for keys in ("", 'group_by = "usb_device"', 'group_by = "all"', 'identity = "port"')]
RULES.append(rule("x", "replicas = 2"))

#: The ports that are bound at each step, in the order of their kernel names. A quote marks one that was bound
#: again: it has the next free name and a new inode.
STEPS = {
    "seen": ["01", "1", "12", "120'"],
    "seen at once": ["01", "120'"],
    "one by one": ["0", "01", "1", "10'", "10'2"],
    "others last": ["12", "2", "21'", "21'0"],
    "of two": ["0", "1", "10'"],
}


class Card:
    """A card on USB. Each port gets the next free name and a new inode when it is bound."""

    def __init__(self, since: int, first: int = 0) -> None:
        self.usb = replace(a_usb_device("1", serial="CARD", devnum=since), incarnation=100 * since)
        self._inodes = count(100 * since + 1)
        self._names = count(first)
        self._nodes: dict[str, UdevDevice] = {}

    def bind(self, parts: str) -> list[UdevDevice]:
        """The card with these ports alone. Those that were not there are bound now."""
        there = [f"{part}'" if quote else part for part, quote in _with_quotes(parts)]
        for part in [*self._nodes.keys() - {*there}]:
            del self._nodes[part]
        for part in there:
            if part not in self._nodes:
                n = next(self._names)
                node = a_usb_node(self.usb, "tty", f"ttyUSB{n}", number=f"c 188:{n}")
                self._nodes[part] = replace(node, incarnation=next(self._inodes))
        return [self.usb, *self._nodes.values()]

    @property
    def parts(self) -> Mapping[str | None, str]:
        return {node.device_node: part[0] for part, node in self._nodes.items()}


def _with_quotes(parts: str) -> list[tuple[str, bool]]:
    return [(part, parts[n + 1 : n + 2] == "'") for n, part in enumerate(parts) if part != "'"]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("restarts", ["never", "each time", "boot"])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_one_that_is_bound_again_does_not_make_the_others_pass_for_those_that_were_missing(
    steps: list[str], restarts: str, rules: str
) -> None:
    ports = "01" if steps is STEPS["of two"] else "012"
    for pod in ports:
        node, card = Node(), Card(1)
        node.look(rules, *card.bind(ports))
        id_ = next(
            id_
            for offer in node.inventory.offers.values()
            for id_, device in offer.ids.items()
            if any(card.parts[each.path] == pod for each in device.nodes)
        )
        node.allocate(id_)
        node.look(rules, *card.bind(ports))
        links = {link: path for link, path in node.links().items() if link.startswith(id_.partition(".")[0])}
        got = {link: card.parts[path] for link, path in links.items()}
        node.look(rules)
        card = Card(2)
        if restarts == "boot":
            node.memory = load(dump(node.memory, "boot"), "next")
        for step in steps:
            node.look(rules, *card.bind(step))
            for link, part in got.items():
                path = node.links()[link]
                assert path is None or card.parts[path] == part, (pod, step)
            if restarts == "each time":
                node.memory = load(dump(node.memory, "boot"), "boot")
        node.look(rules)
        card = Card(3)
        node.look(rules, *card.bind(ports))
        assert {link: card.parts.get(node.links()[link]) for link in got} == got, "all have left meanwhile"


def pod_of(node: Node, rules: str, card: Card, part: str) -> str:
    """The link that a pod gets with this port."""
    node.look(rules, *card.bind("012"))
    link = next(link for link, path in node.links().items() if card.parts[path] == part)
    node.allocate(link)
    node.look(rules, *card.bind("012"))
    node.look(rules)
    return link


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("part", "012")
def test_it_is_remembered_while_they_cannot_be_read(part: str, *, whole: bool, restarts: bool) -> None:
    rules, node, card = rule("x"), Node(), Card(2)
    link = pod_of(node, rules, Card(1), part)
    usb, *ports = card.bind("01")
    node.look(rules, usb, *ports)
    if whole:
        node.look(rules, unread=[usb.sys_path])
    else:
        node.look(rules, usb, ports[1], unread=[ports[0].sys_path])
    if restarts:
        node.memory = load(dump(node.memory, "boot"), "boot")
    node.look(rules, *card.bind("120'"))
    path = node.links()[link]
    assert path is None or card.parts[path] == part


@pytest.mark.parametrize("part", "012")
def test_what_cannot_be_read_for_a_moment_has_not_left(part: str) -> None:
    rules, node, card = rule("x"), Node(), Card(2)
    link = pod_of(node, rules, Card(1), part)
    usb, first, second = card.bind("01")
    node.look(rules, usb, first, second)
    node.look(rules, usb, second, unread=[first.sys_path])
    node.look(rules, *card.bind("012"))
    path = node.links()[link]
    assert path is not None
    assert card.parts[path] == part


@pytest.mark.parametrize("meanwhile", ["replug", "boot"])
@pytest.mark.parametrize("part", "012")
def test_a_unit_that_comes_anew_is_not_one_of_which_a_part_was_bound_again(part: str, meanwhile: str) -> None:
    """Nothing was looked at while it was away. After a boot, its directory may have the same inode."""
    rules, node = rule("x"), Node()
    link = pod_of(node, rules, Card(1), part)
    node.look(rules, *Card(2).bind("01"))
    if meanwhile == "boot":
        node.memory = load(dump(node.memory, "boot"), "next")
    card = Card(2 if meanwhile == "boot" else 3, first=5)
    node.look(rules, *card.bind("012"))
    path = node.links()[link]
    assert path is not None
    assert card.parts[path] == part


GPU = a_device("/sys/devices/pci0000:00/0000:00:1c.1/0000:01:00.0", subsystem="pci", driver="amdgpu")


def a_bus(number: int, inode: int) -> UdevDevice:
    return an_i2c_bus(GPU, number, inode=inode)


def a_loopback(number: int, inode: int) -> UdevDevice:
    """Software makes it: it has no unit."""
    return a_device(
        f"/sys/devices/virtual/video4linux/video{number}",
        subsystem="video4linux",
        number=f"c 81:{number}",
        node=f"/dev/video{number}",
        attributes={"name": "Dummy"},
        incarnation=inode,
    )


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("make", [a_bus, a_loopback])
def test_siblings_that_are_on_no_usb_device_are_in_doubt_too_once_one_has_come_again(
    make: Callable[[int, int], UdevDevice], *, restarts: bool
) -> None:
    rules = rule("x", match='{ SUBSYSTEM = ["i2c-dev", "video4linux"] }')
    node = Node()
    node.look(rules, *(make(n, 10 * n) for n in (3, 4, 5)))
    link = next(link for link, path in node.links().items() if path == make(3, 0).device_node)
    node.allocate(link)
    node.look(rules, *(make(n, 10 * n) for n in (3, 4, 5)))
    node.look(rules)
    first, second, third, again = make(3, 100), make(4, 110), make(3, 120), make(5, 130)
    for there in ((first, second), (third, second), (third, second, again)):
        node.look(rules, *there)
        if restarts:
            node.memory = load(dump(node.memory, "boot"), "boot")
    assert node.links()[link] is None


@pytest.mark.parametrize("keys", ['identity = ["FOO"]', 'identity = ["FOO"]\ngroup_by = "parent"'])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("unbound", [1, 2])
def test_the_doubt_about_siblings_at_another_port_outlasts_looks_in_which_nothing_changes(
    keys: str, unbound: int, *, restarts: bool
) -> None:
    """At their old port, another model has been since."""

    def ports(port: str, foo: str, plug: int, *parts: int) -> list[UdevDevice]:
        product = "7601" if foo == "f2" else "7610"
        usb = a_usb_device(port, serial=None, product=product, devnum=plug)
        usb = replace(usb, incarnation=100 * plug)
        nodes = (
            a_usb_node(usb, "tty", f"ttyUSB{n}", number=f"c 188:{n}", properties={"FOO": foo}) for n in parts
        )
        return [
            usb,
            *(replace(node, incarnation=100 * plug + 1 + n) for node, n in zip(nodes, parts, strict=True)),
        ]

    rules, node = rule("x", keys), Node()
    node.look(rules, *ports("3", "f2", 1, 0, 1, 2))
    node.look(rules, *ports("3", "f2", 1, 1, 2))
    node.now += 10_000.0
    told = node.look(rules, *ports("3", "f2", 1, 1, 2), answer=node.nobody_holds_anything())
    ids = [id_ for id_, why in told.items() if why == "Healthy"]
    node.allocate(*ids)
    held = Answer(frozenset(("example.com/x", id_) for id_ in ids), node.now + 200.0, complete=True)
    node.look(rules)
    node.look(rules, *ports("3", "f1", 2, 0, 1, 2))
    node.look(rules)
    node.look(rules, *ports("1", "f2", 3, 0, 1, 2))
    left = [n for n in range(3) if n != unbound]
    for _ in range(4):
        node.now += 100.0
        if restarts:
            node.memory = load(dump(node.memory, "boot"), "boot")
        told = node.look(rules, *ports("1", "f2", 3, *left), answer=held)
        assert "Healthy" not in {told[id_] for id_ in ids}


def test_what_is_remembered_of_siblings_in_doubt_does_not_grow_each_time_one_is_bound_again() -> None:
    node, card, rules = Node(), Card(1), RULES[0]
    node.look(rules, *card.bind("012"))
    for id_ in node.inventory.links():
        node.allocate(id_)
    node.look(rules, *card.bind("0"))
    sizes = []
    for parts in ("01", "02") * 5:
        node.look(rules, *card.bind(parts))
        sizes.append([len(each.nodes) for each in node.memory.doubtful.values()])
    assert sizes == [[1], *[[2]] * 9]
