"""Siblings that go along with devices as shared nodes: no link that a pod got leads to another one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Device, SharedAt
from genericdp.core.inventory.past import SIBLING_LIMIT
from genericdp.core.inventory.place import Spot, locate, spot_of_node
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.saved import dump, load, save_within_s
from tests.scenes.builders import a_card, a_device, a_kfd, a_usb_device, a_usb_node, a_usb_serial, an_i2c_bus
from tests.scenes.edits import Node, rule
from tests.scenes.sockets import in_socket

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


def a_scope(number: int) -> UdevDevice:
    serial = f"SCOPE{number}"
    usb = a_usb_device(f"{number + 6}", vendor="2341", product="0043", serial=serial, devnum=7 + number)
    return a_usb_node(usb, "tty", f"ttyACM{number}", number=f"c 166:{number}")


SCOPE, OTHER = a_scope(1), a_scope(2)


def buses(*names: str, since: int = 1) -> list[UdevDevice]:
    """The buses of one adapter, in the order in which the kernel numbers them, from 4."""
    pci = a_device("/sys/devices/pci0000:00/0000:00:1f.4", subsystem="pci")
    found = (an_i2c_bus(pci, number, inode=since * 100 + 2 * number) for number in range(4, 4 + len(names)))
    return [
        replace(bus, properties={**bus.properties, "PART": name})
        for bus, name in zip(found, names, strict=True)
    ]


def parts(node: Node, *devices: UdevDevice) -> Mapping[str, str]:
    """Link to a shared node -> which one it leads to; only links that lead somewhere."""
    names = {each.device_node: each.properties["PART"] for each in devices if "PART" in each.properties}
    links = node.links().items()
    return {link: names[path] for link, path in links if path in names and link.startswith("shared")}


def a_part(usb: UdevDevice, name: str, number: int) -> UdevDevice:
    """The serial port of a unit on USB."""
    tty = a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}", properties={"PART": name})
    return replace(tty, incarnation=1000 + number)


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
    node.look(BUSES, SCOPE, *left, answer=node.nobody_holds_anything())
    told = node.look(BUSES, SCOPE, *left, answer=node.nobody_holds_anything())
    assert told == {"scope_SCOPE1": "Healthy"}
    assert sorted(parts(node, *left).values()) == [*"BC"]


@pytest.mark.parametrize("kind", ["", "optional = true\n"], ids=["needed", "optional"])
def test_while_they_are_in_doubt_the_kubelet_is_asked_whether_their_pods_have_gone(kind: str) -> None:
    node = Node()
    node.look(BUSES + kind, SCOPE, OTHER, *buses(*"ABC"))
    node.allocate("scope_SCOPE1")
    node.look(BUSES + kind, SCOPE, OTHER, *buses(*"ABC"))
    reboot(node)
    left, waiting = buses(*"BC", since=2), ["scope_SCOPE1", "scope_SCOPE2"]
    node.look(BUSES + kind, SCOPE, OTHER, *left)
    assert [*node.inventory.waiting] == waiting
    # What pods may hold is known before an answer is used, so this look still has the doubt.
    node.look(BUSES + kind, SCOPE, OTHER, *left, answer=node.nobody_holds_anything())
    assert [*node.inventory.waiting] == waiting
    node.look(BUSES + kind, SCOPE, OTHER, *left, answer=node.nobody_holds_anything())
    assert not node.inventory.waiting
    assert sorted(parts(node, *left).values()) == [*"BC"]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_pod_that_follows_at_once_did_not_get_those_that_were_in_doubt(*, is_shared: bool) -> None:
    """No answer says that the first pod has gone. Of a shared device, another pod may still have them."""
    rules, node = BUSES + "optional = true\n", Node()
    if is_shared:
        rules = rules.replace('name = "scope"', 'name = "scope"\nreplicas = 2')
    ids = ["scope_SCOPE1.0", "scope_SCOPE1.1"] if is_shared else ["scope_SCOPE1"]
    node.look(rules, SCOPE, *buses(*"ABC"))
    for id_ in ids:
        node.allocate(id_)
    node.look(rules, SCOPE, *buses(*"ABC"))
    reboot(node)
    left = buses(*"BC", since=2)
    node.look(rules, SCOPE, *left)
    node.allocate(ids[0])
    for _ in range(2):
        node.look(rules, SCOPE, *left)
    assert sorted(parts(node, *left).values()) == ([] if is_shared else [*"BC"])


def test_a_shared_node_that_is_refused_for_good_does_not_wait_for_pods() -> None:
    node, memory = (
        Node(),
        a_device("/sys/devices/virtual/mem/mem", subsystem="mem", node="/dev/mem", number="c 1:1"),
    )
    told = node.look(SHARED.format('{ DEVNAME = "/dev/mem" }'), SCOPE, memory)
    assert told["scope_SCOPE1"].startswith("the shared node '/dev/mem' is not offered: it gives control")
    assert not node.inventory.waiting


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


#: Histories of a card with three ports: where it is, and which of them. With "*", a pod gets the device then.
TRIPS = (
    ("2 B*", "2 -", "2 AB"),
    ("2 B*", "2 AB"),
    ("2 ABC", "5 AB*", "5 -", "5 BC"),
    ("2 ABC", "5 B*", "5 ABC"),
    ("2 ABC*", "5 BC", "2 BC"),
    ("2 ABC*", "2 BC", "2 -", "2 BC", "2 ABC"),
)


@pytest.mark.parametrize("restarts", ["", "one boot", "another boot"])
@pytest.mark.parametrize("trip", TRIPS, ids=map(" ".join, TRIPS))
def test_no_link_that_a_pod_got_leads_to_another_part_of_a_card(trip: Sequence[str], restarts: str) -> None:
    node = Node()
    got: Mapping[str, str] = {}
    links: Mapping[str, str] = {}
    told: Mapping[str, str] = {}
    for since, step in enumerate(trip, 1):
        port, which = step.split()
        numbers = {"ABC".index(part): n for n, part in enumerate(which.strip("*-"))}
        card = a_card(port, numbers, 100 * since, serial="CARD") if numbers else []
        for _ in range(2):
            told = node.look(PORTS, SCOPE, *card)
            links = parts(node, *card)
            assert {link: part for link, part in links.items() if got.get(link, part) != part} == {}
            if restarts:
                node.memory = load(dump(node.memory, "one boot"), restarts)
        if which.endswith("*"):
            node.allocate("scope_SCOPE1")
            got = links
    assert told["scope_SCOPE1"] == "Healthy" or "cannot be told apart" in told["scope_SCOPE1"]


def test_a_bus_that_comes_before_the_one_that_a_pod_has_is_another_one() -> None:
    node, (first, second) = Node(), buses("X", "A")
    node.look(BUSES, SCOPE, second)
    node.allocate("scope_SCOPE1")
    got = parts(node, second)
    for _ in range(2):
        assert node.look(BUSES, SCOPE, first, second) == {"scope_SCOPE1": "Healthy"}
        links = parts(node, first, second)
        assert got.items() < links.items()
        assert sorted(links.values()) == ["A", "X"]


def test_what_pods_have_of_shared_siblings_is_kept_when_others_are_learned_of() -> None:
    """A memory that began with nothing: what a pod was given since is not a guess."""
    node, all_ = Node(), buses(*"ABC")
    node.memory = replace(node.memory, is_untold=True)
    node.look(BUSES, SCOPE, *all_)
    node.allocate("scope_SCOPE1")
    node.look(BUSES, SCOPE, *all_)
    got = parts(node, *all_)
    node.look(BUSES, SCOPE, *all_[1:])
    answer = Answer(frozenset({("example.com/scope", "scope_OTHER")}), node.now, complete=False)
    node.look(BUSES, SCOPE, *all_[1:], answer=answer)
    assert parts(node, *all_) == {link: part for link, part in got.items() if part != "A"}


def test_the_spots_of_shared_nodes_are_saved_for_those_that_have_no_name() -> None:
    node, (bus, *_) = Node(), buses("A")
    node.look(BUSES, SCOPE, bus)
    known = node.memory.devices["scope_SCOPE1"].device
    assert [*known.shared_at] == [locate(bus).spot]
    assert load(dump(node.memory)).devices["scope_SCOPE1"].device.shared_at == {locate(bus).spot: SharedAt()}
    node.look(SHARED.format('{ DEVNAME = "/dev/kfd" }'), SCOPE, a_kfd())
    assert node.memory.devices["scope_SCOPE1"].device.shared_at == {}


def test_siblings_of_a_pod_that_may_have_come_are_saved_at_once() -> None:
    node = Node()
    node.look(BUSES, SCOPE, *buses(*"AB"))
    node.allocate("scope_SCOPE1")
    node.look(BUSES, SCOPE, *buses(*"AB"))
    before = node.memory
    node.look(BUSES, SCOPE, *buses(*"ABC"))
    assert save_within_s(before, node.memory) == 0.0


def test_each_device_that_goes_along_with_a_shared_node_is_known_there() -> None:
    """A pod may have any of them. One that has left does not say where the node is."""
    node, (first, second) = Node(), buses("X", "A")
    node.look(BUSES, SCOPE, OTHER, second)
    node.allocate("scope_SCOPE1")
    node.look(BUSES, SCOPE, second)
    node.memory = load(dump(node.memory, "boot"), "boot")
    node.look(BUSES, SCOPE, second)
    got = parts(node, second)
    spot = locate(second).spot
    (known,) = node.memory.past(0.0).known_at(spot.of_all).values()
    assert (known.sys_path, known.node) == (second.sys_path, spot_of_node(second).port)
    assert (known.held, {*known.ids}) == (frozenset({"scope_SCOPE1"}), {"scope_SCOPE1", "scope_SCOPE2"})
    assert known.models == frozenset({""})
    assert node.look(BUSES, SCOPE, first, second)["scope_SCOPE1"] == "Healthy"
    assert got.items() < parts(node, first, second).items()


def test_of_many_places_where_shared_nodes_were_only_some_are_remembered() -> None:
    spots = [Spot(f"port {n}", "", "if00") for n in range(100)]
    at = SharedAt("path", Spot("node", "", "number"), "model")
    known = Remembered("x", Device("x", shared_at=dict.fromkeys(spots[1:], at)))
    found = known.ever_shared_at(Device("x", shared_at={spots[0]: at}))
    assert [*found] == spots[: 1 + SIBLING_LIMIT]
    assert [*found.values()] == [at, *[SharedAt(model="model")] * SIBLING_LIMIT]


def test_a_device_that_has_left_does_not_say_where_a_shared_node_is() -> None:
    """It left before the node was bound again. The other device has seen that."""
    node, (_, old), (_, new) = Node(), buses("X", "A"), buses("X", "A", since=2)
    rules, stick = BUSES + rule("stick", match='{ SUBSYSTEM = "tty" }'), a_usb_serial(5, port="3")
    node.look(rules, stick, SCOPE, OTHER, old)
    for id_ in ("scope_SCOPE1", "stick_A50285BI"):
        node.allocate(id_)
    for bus in ([old], [], [new]):
        node.look(rules, stick, OTHER, *bus)
    for devices in (node.memory.devices, dict(reversed([*node.memory.devices.items()]))):
        (known,) = replace(node.memory, devices=devices).past(0.0).known_at(locate(new).spot.of_all).values()
        assert (known.sys_path, known.node) == (new.sys_path, spot_of_node(new).port)
        assert known.held == frozenset({"scope_SCOPE1"})


def in_one_socket(*, alike: bool) -> list[UdevDevice]:
    """The serial ports S and F of a slow and a fast unit."""
    products = ("6001", "6001") if alike else ("6001", "6002")
    units = [in_socket(fast=bool(n), product=each, devnum=n + 1) for n, each in enumerate(products)]
    return [a_part(unit, name, n) for n, (unit, name) in enumerate(zip(units, "SF", strict=True))]


@pytest.mark.parametrize("first", [0, 1], ids=["slow", "fast"])
@pytest.mark.parametrize(
    ("boot", "alike"), [("", True), ("", False), ("boot", False), ("another boot", False)]
)
def test_of_two_units_in_one_usb_3_socket_each_keeps_its_link(first: int, boot: str, *, alike: bool) -> None:
    """Also while one of them is alone, where it counted before the other one came."""
    node, both = Node(), in_one_socket(alike=alike)
    node.look(PORTS, SCOPE, both[first])
    node.allocate("scope_SCOPE1")
    got = parts(node, *both)
    if boot:
        node.memory = load(dump(node.memory, "boot"), boot)
    for _ in range(3):
        node.look(PORTS, SCOPE, *both)
        assert got.items() <= parts(node, *both).items()
        node.now += TWO_AFTER_S
    got = parts(node, *both)
    assert len(got) == 2
    for there in ([both[1 - first]], [both[first]], [], [both[1 - first]], both):
        node.look(PORTS, SCOPE, *there)
        assert parts(node, *both).items() <= got.items()
        node.memory = load(dump(node.memory, "boot"), "boot")
    assert parts(node, *both) == got


@pytest.mark.parametrize("first", [0, 1], ids=["slow", "fast"])
@pytest.mark.parametrize("is_held", [True, False])
def test_a_link_stays_that_a_pod_got_after_a_boot_in_which_another_device_has_not_come(
    first: int, *, is_held: bool
) -> None:
    """What goes along with the one that is absent was not certainly unseen since the boot."""
    node, both = Node(), in_one_socket(alike=False)
    node.look(PORTS, SCOPE, OTHER, both[first])
    if is_held:
        node.allocate("scope_SCOPE1")
    node.look(PORTS, SCOPE, OTHER, both[first])
    reboot(node)
    node.look(PORTS, OTHER, both[1 - first])
    node.allocate("scope_SCOPE2")
    node.look(PORTS, OTHER, both[1 - first])
    got = parts(node, *both)
    for _ in range(3):
        node.look(PORTS, OTHER, *both)
        node.now += TWO_AFTER_S
        now = parts(node, *both)
        assert {link: now.get(link, name) for link, name in got.items()} == got


@pytest.mark.parametrize("match", ["0403", "6002"], ids=["both", "the other one"])
def test_of_two_units_in_a_socket_the_one_that_stays_keeps_its_link(match: str) -> None:
    node, (slow, fast) = Node(), in_one_socket(alike=False)
    rules = PORTS if match == "0403" else PORTS.replace('vendor = "0403"', 'product = "6002"')
    for there in ([slow, fast] if match == "0403" else [slow], [slow, fast], [slow, fast]):
        node.look(rules, SCOPE, *there)
        node.now += TWO_AFTER_S
    node.look(rules, SCOPE, slow, fast)
    node.allocate("scope_SCOPE1")
    got = parts(node, slow, fast)
    for _ in range(2):
        node.look(rules, SCOPE, fast)
        assert parts(node, slow, fast) == {link: name for link, name in got.items() if name == "F"} != {}
        node.memory = load(dump(node.memory, "boot"), "boot")


@pytest.mark.parametrize("is_saved", [True, False])
def test_another_model_does_not_wait_where_shared_siblings_were(*, is_saved: bool) -> None:
    rules = PORTS + rule("card", match='{ SUBSYSTEM = "tty", usb = { product = "1410" } }')
    node, adapter = Node(), a_part(a_usb_device("2", serial=None, devnum=1), "A", 1)
    card = a_usb_device("2", product="1410", serial="CARD", devnum=2)
    node.look(rules, SCOPE, adapter)
    node.allocate("scope_SCOPE1")
    node.look(rules, SCOPE, adapter)
    if is_saved:
        node.memory = load(dump(node.memory, "boot"), "boot")
    node.look(rules, SCOPE)
    told = node.look(rules, SCOPE, a_part(card, "B", 2), a_part(card, "C", 3))
    assert {*told.values()} == {"Healthy"}
    assert len(told) == 3


@pytest.mark.parametrize("is_saved", [True, False])
def test_siblings_in_a_dock_are_told_apart_at_each_of_its_ports(*, is_saved: bool) -> None:
    """The first is not bound at another port, where a pod gets the others; then the last is not bound."""
    node = Node()

    def card(port: str, names: str, since: int) -> list[UdevDevice]:
        dock = a_usb_device(port, serial="D1", product="d0cc", devnum=since)
        dock = replace(dock, properties={**dock.properties, "TYPE": "9/0/1"})
        usb = replace(a_usb_device(f"{port}.1", serial=None, devnum=40 + since), parent=dock)
        return [dock, *(a_part(usb, name, 10 * since + n) for n, name in enumerate(names))]

    first, second, third = card("2", "ABC", 1), card("5", "BC", 2), card("5", "AB", 3)
    node.look(PORTS, SCOPE, *first)
    if is_saved:
        node.memory = load(dump(node.memory, "boot"), "boot")
    node.look(PORTS, SCOPE, *second)
    node.allocate("scope_SCOPE1")
    got = parts(node, *second)
    for there in ([], third):
        if is_saved:
            node.memory = load(dump(node.memory, "boot"), "boot")
        node.look(PORTS, SCOPE, *there)
    assert parts(node, *third).items() <= got.items()
