"""Siblings that go along with devices as shared nodes: no link that a pod got leads to another one."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.place import locate
from genericdp.core.memory.given.links import SharedByPods
from genericdp.core.memory.saved import dump, load
from tests.scenes.builders import a_card, a_device, a_usb_device, a_usb_node
from tests.scenes.edits import Node

WHY = "it cannot be told apart from another one, which a pod may still have"
IN_DOUBT = f"the shared node '{{}}' is not offered: {WHY}"

SHARED = """
[[resource]]
name = "scope"
match = {{ SUBSYSTEM = "tty", usb = {{ vendor = "2341" }} }}
[[resource.node]]
match = {{ SUBSYSTEM = "tty" }}
[[resource.node]]
match = {}
shared = true
"""
BUSES = SHARED.format('{ SUBSYSTEM = "i2c-dev" }')
PORTS = SHARED.format('{ SUBSYSTEM = "tty", usb = { vendor = "0403" } }')


def a_scope() -> UdevDevice:
    usb = a_usb_device("1", vendor="2341", product="0043", serial="SCOPE1", devnum=7)
    return a_usb_node(usb, "tty", "ttyACM0", number="c 166:0")


SCOPE = a_scope()


def buses(*names: str, since: int = 1) -> list[UdevDevice]:
    """The buses of one adapter, in the order in which the kernel numbers them, from 4."""
    pci = a_device("/sys/devices/pci0000:00/0000:00:1f.4", subsystem="pci")

    def a_bus(number: int, name: str) -> UdevDevice:
        path = f"{pci.sys_path}/i2c-{number}"
        adapter = replace(a_device(path, subsystem="i2c", attributes={"name": name}), parent=pci)
        path = f"{path}/i2c-dev/i2c-{number}"
        node = a_device(
            path,
            subsystem="i2c-dev",
            node=f"/dev/i2c-{number}",
            number=f"c 89:{number}",
            properties={"PART": name},
        )
        return replace(node, parent=adapter, incarnation=since * 100 + number)

    return [a_bus(number, name) for number, name in enumerate(names, 4)]


def parts(node: Node, *devices: UdevDevice) -> Mapping[str, str]:
    """Link to a shared node -> which one it leads to; only links that lead somewhere."""
    names = {each.device_node: each.properties["PART"] for each in devices if "PART" in each.properties}
    links = node.links().items()
    return {link: names[path] for link, path in links if path in names and link.startswith("shared")}


def reboot(node: Node) -> None:
    node.memory = load(dump(node.memory, "one boot"), "another boot")


@pytest.mark.parametrize("seen", ["ABC", "AB"])
@pytest.mark.parametrize("is_scope_there", [True, False])
def test_after_a_boot_without_one_of_them_the_others_wait_until_it_is_back(
    seen: str, *, is_scope_there: bool
) -> None:
    """Also if a pod got the link of the last one only by name: it came later."""
    node, scope = Node(), [SCOPE] if is_scope_there else []
    node.look(BUSES, SCOPE, *buses(*seen))
    node.allocate("scope_SCOPE1")
    all_ = buses(*"ABC")
    node.look(BUSES, SCOPE, *all_)
    got = parts(node, *all_)
    assert sorted(got.values()) == [*"ABC"]
    node.look(BUSES, *scope, *all_)
    reboot(node)
    for since in (2, 3):
        left = buses(*"BC", since=since)
        told = node.look(BUSES, *scope, *left)
        assert told == {"scope_SCOPE1": IN_DOUBT.format("/dev/i2c-4") if scope else "it is unplugged"}
        assert parts(node, *left) == {}
        assert got.keys() <= node.links().keys()
        reboot(node)
    back = buses(*"ABC", since=4)
    assert node.look(BUSES, SCOPE, *back) == {"scope_SCOPE1": "Healthy"}
    assert parts(node, *back) == got


def test_once_the_pod_has_gone_those_that_are_left_are_shared() -> None:
    node = Node()
    node.look(BUSES, SCOPE, *buses(*"ABC"))
    node.allocate("scope_SCOPE1")
    node.look(BUSES, SCOPE, *buses(*"ABC"))
    reboot(node)
    left = buses(*"BC", since=2)
    node.look(BUSES, SCOPE, *left)
    told = node.look(BUSES, SCOPE, *left, answer=node.nobody_holds_anything())
    told = node.look(BUSES, SCOPE, *left, answer=node.nobody_holds_anything())
    assert told == {"scope_SCOPE1": "Healthy"}
    assert sorted(parts(node, *left).values()) == [*"BC"]


def test_without_a_pod_nothing_waits() -> None:
    node = Node()
    node.look(BUSES, SCOPE, *buses(*"ABC"))
    reboot(node)
    left = buses(*"BC", since=2)
    assert node.look(BUSES, SCOPE, *left) == {"scope_SCOPE1": "Healthy"}
    assert sorted(parts(node, *left).values()) == [*"BC"]


def test_one_that_leaves_while_the_others_stay_is_missing() -> None:
    node, all_ = Node(), buses(*"ABC")
    node.look(BUSES, SCOPE, *all_)
    node.allocate("scope_SCOPE1")
    got = parts(node, *all_)
    for _ in range(2):
        assert node.look(BUSES, SCOPE, *all_[1:]) == {"scope_SCOPE1": "Healthy"}
        assert parts(node, *all_) == {link: part for link, part in got.items() if part != "A"}
        node.memory = load(dump(node.memory, "boot"), "boot")


def test_a_card_that_comes_back_without_its_first_port_waits() -> None:
    node, card = Node(), a_card("2", {0: 0, 1: 1, 2: 2}, 100, serial="CARD")
    node.look(PORTS, SCOPE, *card)
    node.allocate("scope_SCOPE1")
    node.look(PORTS, SCOPE, *card)
    got = parts(node, *card)
    node.look(PORTS, SCOPE)
    some = a_card("2", {1: 0, 2: 1}, 200, serial="CARD")
    assert node.look(PORTS, SCOPE, *some) == {"scope_SCOPE1": IN_DOUBT.format("/dev/ttyUSB0")}
    assert parts(node, *some) == {}
    card = a_card("2", {0: 0, 1: 1, 2: 2}, 300, serial="CARD")
    assert node.look(PORTS, SCOPE, *card) == {"scope_SCOPE1": "Healthy"}
    assert parts(node, *card) == got


def test_only_siblings_that_a_device_has_are_remembered_for_it() -> None:
    node, others = Node(), a_card("2", {0: 0, 1: 1}, 100, serial="CARD")
    node.look(BUSES, SCOPE, *buses(*"ABC"), *others)
    assert [len(numbers) for numbers in node.memory.siblings.values()] == [3]


def test_a_pod_whose_device_is_not_known_has_no_shared_node_for_certain() -> None:
    node, (bus, *_) = Node(), buses("A", "B")
    node.look(BUSES, SCOPE, bus)
    node.allocate("scope_SCOPE1")
    spots = [locate(bus).spot._replace(number=number) for number in (0, 1)]
    assert [*map(SharedByPods(node.memory.devices, node.memory.held), spots)] == [True, False]
    assert [*map(SharedByPods({}, node.memory.held), spots)] == [False, False]
