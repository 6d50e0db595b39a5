"""Law of siblings whose events arrive one by one, in any order.

Only their order tells siblings apart, so it must not matter which one the daemon hears of first. In the end,
each has the id that it has if the daemon hears of all of them at once.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.memory import Memory, after_allocate
from genericdp.inputs import take
from tests.properties.searching import for_each_of_many
from tests.properties.test_laws_of_the_holdings import table
from tests.scenes.builders import a_card, a_device, by_sys_path, resources_of
from tests.scenes.rules import DOMAIN
from tests.scenes.udev import FakeUdev

RULES = table("x", match='SUBSYSTEM = "tty"')
BY_VALUE = table("x", 'identity = ["HALF"]', match='SUBSYSTEM = "tty"')
RESOURCE = f"{DOMAIN}/x"

Devices = Mapping[str, UdevDevice]


def on_usb(port: str, names: Sequence[int], since: int) -> Devices:
    """A card on USB whose ports have these numbers."""
    return by_sys_path(*a_card(port, dict(enumerate(names)), since))


def without_a_serial_number(port: str, names: Sequence[int], since: int) -> Devices:
    return by_sys_path(*a_card(port, dict(enumerate(names)), since, serial=None))


def on_pci(port: str, names: Sequence[int], since: int) -> Devices:
    """A card in a slot."""
    slot = a_device(f"/sys/devices/pci0000:00/0000:00:0{port}.0", subsystem="pci", number="c 1:1")
    nodes = (
        a_device(
            f"{slot.sys_path}/tty/ttyS{n}",
            subsystem="tty",
            node=f"/dev/ttyS{n}",
            number=f"c 4:{n}",
            parent=slot,
            incarnation=since + at,
        )
        for at, n in enumerate(names)
    )
    return by_sys_path(*nodes)


@dataclass(frozen=True)
class Case:
    """A card that leaves slot or port 2 and comes to another one, or is bound again there.

    leaves_first  whether all of it is heard to leave before any of it comes, as the kernel tells it. Without
                  a serial number, nothing else shows that it has moved
    most          how many of its own ports may be bound there. Without a serial number, nothing shows that a
                  node with a new value belongs to it
    """

    card: Callable[[str, Sequence[int], int], Devices]
    port: str
    rules: str = RULES
    leaves_first: bool = False
    most: int = 5


CASES = {
    "USB": Case(on_usb, "2"),
    "USB, at another port": Case(on_usb, "3"),
    "USB, at another port, by value": Case(on_usb, "3", BY_VALUE, leaves_first=True),
    "USB, at another port, only by value": Case(
        without_a_serial_number, "3", BY_VALUE, leaves_first=True, most=4
    ),
    "PCI": Case(on_pci, "2"),
}


class Heard(FakeUdev):
    """The devices as the daemon knows them; `there` is what is plugged in."""

    def __init__(self, there: Devices) -> None:
        super().__init__(Path("/nowhere"))
        self._devices = dict(there)
        self.there = there

    def resync(self) -> bool:
        self._devices = dict(self.there)
        return True

    def hear(self, path: str) -> None:
        """Read again what is at a path."""
        self._devices.pop(path, None)
        if path in self.there:
            self._devices |= {each.sys_path: each for each in self.there[path].related()}

    def differing(self) -> Sequence[str]:
        now, known = self.there, self._devices
        return sorted(path for path in {*now, *known} if now.get(path) is not known.get(path))


class Node:
    """A daemon on a node with a card; pods hold some of its ports."""

    def __init__(self, card: Devices, held: frozenset[int], rules: str) -> None:
        self.builder, self.memory = Builder(resources_of(rules, domain=DOMAIN), DOMAIN), Memory()
        self.inventory = Inventory()
        self.heard = Heard(card)
        self.look()
        offer = self.inventory.offers[RESOURCE]
        ids = [id_ for at, id_ in enumerate(sorted(offer.ids)) if at in held]
        self.memory = after_allocate(self.memory, offer, ids, None, 0.0)
        self.look()

    def look(self) -> None:
        self.inventory, self.memory = take(self.builder, self.heard, self.memory, 0.0)


some = st.integers(0, 7)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@for_each_of_many
# The driver was bound again, and the first name is still in use.
@example(names=[1, 2, 3, 4], heard_first=[1], held=frozenset({1}))
@example(names=[2, 3, 4, 5], heard_first=[2], held=frozenset({1}))
@example(names=[2, 3, 4, 5], heard_first=[3, 2, 1, 0], held=frozenset({1}))
@example(names=[4, 5, 6, 7], heard_first=[4], held=frozenset({1}))
@given(
    names=st.lists(some, min_size=1, max_size=5, unique=True).map(sorted),
    heard_first=st.lists(some, max_size=8, unique=True),
    held=st.frozensets(st.integers(0, 3), max_size=2),
)
def test_siblings_are_what_they_are_when_all_of_them_are_heard_at_once(
    case: Case, names: list[int], heard_first: list[int], held: frozenset[int]
) -> None:
    before, after = case.card("2", (0, 1, 2, 3), 10), case.card(case.port, names[: case.most], 100)
    node, other = (Node(before, held, case.rules) for _ in range(2))
    for there in ({}, after) if case.leaves_first else (after,):
        node.heard.there = other.heard.there = there
        for name in heard_first:
            for path in list(filter(re.compile(rf"/tty\D+{name}$").search, node.heard.differing())):
                node.heard.hear(path)
                node.look()
        for each in (node, other):
            each.heard.resync()
            each.look()
        assert node.inventory.links() == other.inventory.links()
