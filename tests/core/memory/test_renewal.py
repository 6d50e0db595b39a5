"""Whether a device is what a pod got under its id: if not, it waits, and no link of the pod leads to it."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from tests.scenes.builders import a_device, a_usb_device, a_usb_interface, a_usb_node, a_usb_serial
from tests.scenes.edits import Node, rule

ANOTHER = "its id, {}, belongs to another unit, which a pod may still hold"


def refusals(node: Node) -> dict[str, str]:
    """Device node -> why it is not offered."""
    return {each.node: each.reason for each in node.inventory.refusals}


def named(number: int, port: str, **properties: str) -> UdevDevice:
    stick = a_usb_serial(number, port=port, serial=f"S{number}", devnum=4 + number)
    return replace(stick, properties={**stick.properties, **properties})


# An id


@pytest.mark.parametrize("order", ["unplugged first", "edited first", "the daemon is down"])
def test_the_value_of_another_property_is_another_id(order: str) -> None:
    by_foo, by_bar = rule("x", 'identity = ["FOO"]'), rule("x", 'identity = ["BAR"]')
    one, other = named(0, "1", FOO="v", BAR="w"), named(1, "2", FOO="w", BAR="v")
    node = Node()
    node.look(by_foo, one)
    (link,) = node.inventory.links()
    node.allocate(link)
    node.look(by_foo, one, other)
    if order == "unplugged first":
        node.look(by_foo, other)
    elif order == "edited first":
        node.look(by_bar, one, other)
    else:
        node.memory = saved.load(saved.dump(node.memory))
    node.look(by_bar, other)
    assert node.inventory.links()[link] is None


def test_an_id_that_a_pod_holds_is_not_given_to_another_unit() -> None:
    by_name = rule("x", 'identity = ["FOO"]')
    node = Node()
    node.look(by_name, named(0, "1", FOO="v"))
    (link,) = node.inventory.links()
    node.allocate(link)
    told = node.look(by_name, named(0, "1", FOO="w"), named(1, "2", FOO="v"))
    (new,) = told.keys() - {link}
    assert told[link] == f"its id is now {new}"
    assert refusals(node) == {"/dev/ttyUSB1": ANOTHER.format(link)}
    assert node.inventory.links()[link] is None


def test_an_id_that_is_held_for_another_resource_is_not_offered() -> None:
    """`domain` was changed, and a resource of the new one is named like one of the old one."""
    stick = a_usb_serial(3, serial="A5")
    node = Node()
    node.look(rule("ftdi"), stick)
    node.allocate("ftdi_A5")
    node.memory = saved.load(saved.dump(node.memory))
    assert node.look(rule("other.org/ftdi"), stick, domain="other.org") == {}
    assert refusals(node) == {"/dev/ttyUSB3": "a pod may still hold it as ftdi_A5 of example.com/ftdi"}
    assert node.inventory.links() == {"ftdi_A5": None}
    free = node.nobody_holds_anything()
    assert node.look(rule("other.org/ftdi"), stick, answer=free, domain="other.org") == {"ftdi_A5": "Healthy"}
    assert node.inventory.links() == {"ftdi_A5": "/dev/ttyUSB3"}


# Siblings


SERIAL_CARD = a_usb_device(serial="A")
FIRST, SECOND = (
    a_usb_node(SERIAL_CARD, "tty", f"ttyACM{n}", number=f"c 166:{n}", properties={"N": str(n)})
    for n in range(2)
)
ONLY_THE_SECOND = rule("x", match='{ SUBSYSTEM = "tty", DEVNAME = "/dev/ttyACM1" }')
ANY = rule("x")


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("change", ["an edit excludes the first", "the first is unplugged"])
def test_of_siblings_none_gets_the_id_of_another_one(change: str, restart: bool) -> None:
    node = Node()
    first, second = node.look(ANY, FIRST, SECOND)
    if node.inventory.links()[first] != FIRST.device_node:
        first, second = second, first
    node.allocate(first)
    node.allocate(second)
    if restart:
        node.memory = saved.load(saved.dump(node.memory))
    if change == "the first is unplugged":
        node.look(ANY, SECOND)
    else:
        node.look(ONLY_THE_SECOND, FIRST, SECOND)
    assert refusals(node) == {}
    assert node.inventory.links() == {first: None, second: "/dev/ttyACM1"}
    node.look(ANY, FIRST, SECOND)
    assert node.inventory.links() == {first: "/dev/ttyACM0", second: "/dev/ttyACM1"}


def test_a_device_that_stays_is_the_same_when_a_sibling_comes_or_goes() -> None:
    node = Node()
    (first,) = node.look(ANY, FIRST)
    node.allocate(first)
    for plugged in ((FIRST, SECOND), (FIRST,), (FIRST, SECOND)):
        assert set(node.look(ANY, *plugged).values()) <= {"Healthy", "it is unplugged"}
        assert node.inventory.links()[first] == "/dev/ttyACM0"


# Groups


@pytest.mark.parametrize("stays", ["not at all", "while the others come"])
def test_a_link_that_a_pod_got_stays_however_often_its_device_invents_other_names(
    monkeypatch: pytest.MonkeyPatch, stays: str
) -> None:
    for module in ("held", "renewal"):
        monkeypatch.setattr(f"genericdp.core.memory.{module}.HELD_LINK_LIMIT", 50)
    group = rule("x", 'group_by = "usb_device"', match='{ SUBSYSTEM = "input" }')
    node, above = Node(), a_usb_interface(a_usb_device(serial="A"))

    def event(n: int) -> UdevDevice:
        name = f"{above.sys_path}/input/input{n}"
        parent = a_device(name, subsystem="input", parent=above, attributes={"name": f"N{n}"})
        path = f"/dev/input/event{n}"
        return a_device(f"{name}/event{n}", subsystem="input", node=path, number=f"c 13:{n}", parent=parent)

    node.look(group, event(0))
    (link,) = node.inventory.links()
    node.allocate("x_A")
    if stays == "while the others come":
        for n in range(1, 50 + 2):
            node.look(group, event(0), event(n))
    for n in range(100, 100 + 50 + 2):
        node.look(group, event(n))
    assert link in node.inventory.links()
    assert 50 < len(node.inventory.links()) <= 50 + 2


PAIR = rule("pair", 'group_by = "ID_VENDOR_ID"')
#: Too many units have the serial number of the other one to tell that it is the same one at another port.
B_APART = rule("other", match='{ SUBSYSTEM = "tty", usb = { serial = "0001" } }') + PAIR


def test_a_group_does_not_get_back_a_node_that_another_pod_has_got_meanwhile() -> None:
    one, two = a_usb_serial(0, port="1", serial="A"), a_usb_serial(1, port="2", serial="0001", devnum=5)
    moved = a_usb_serial(2, port="3", serial="0001", devnum=6)
    node = Node()
    (pair,) = node.look(PAIR, one, two)
    node.allocate(pair)
    node.look(PAIR, one)
    (other, _) = node.look(B_APART, one, moved)
    node.allocate(other)
    told = node.look(PAIR, one, moved)
    assert told[pair] == f"a pod may still hold one of its device nodes as {other} of example.com/other"
    assert set(refusals(node).values()) == {ANOTHER.format(pair)}
    assert set(node.inventory.links().values()) == {None}
    node.look(B_APART, one, moved)
    assert node.inventory.links()[other] == "/dev/ttyUSB2"


@pytest.mark.parametrize("how", ["an edit", "a plug"])
def test_the_link_of_a_twin_in_a_group_stays_that_of_this_twin(how: str) -> None:
    one, two = a_usb_serial(0, port="1", serial="S"), a_usb_serial(1, port="2", serial="S", devnum=5)
    before = rule("left", match='{ SUBSYSTEM = "tty", usb = { port = "1" } }') + PAIR
    node = Node()
    plugged = (one, two) if how == "an edit" else (two,)
    node.look(before, *plugged)
    links = {link for link, path in node.inventory.links().items() if path == "/dev/ttyUSB1"}
    (pair,) = (device.id for device in node.inventory.offers["example.com/pair"].devices)
    node.allocate(pair)
    node.look(PAIR, one, two)
    assert {node.inventory.links()[link] for link in links} == {"/dev/ttyUSB1"}


def test_a_unit_that_the_rule_tells_by_a_property_may_have_another_port_and_serial_number() -> None:
    rules = rule("role", 'identity = ["ROLE"]')
    node = Node()
    (id_,) = node.look(rules, named(0, "1", ROLE="gps"))
    node.allocate(id_)
    node.look(rules)
    assert node.look(rules, named(1, "2", ROLE="gps")) == {id_: "Healthy"}
    assert node.inventory.links()[id_] == "/dev/ttyUSB1"


def test_a_unit_that_the_rule_tells_by_its_port_may_have_another_serial_number() -> None:
    rules = rule("slot", 'identity = "port"')
    node = Node()
    (id_,) = node.look(rules, a_usb_serial(0, port="1", serial="A"))
    node.allocate(id_)
    node.look(rules)
    assert node.look(rules, a_usb_serial(1, port="1", serial="B", devnum=9)) == {id_: "Healthy"}
    assert node.inventory.links()[id_] == "/dev/ttyUSB1"


@pytest.mark.parametrize("reboots", [False, True])
def test_a_held_device_that_loses_more_nodes_than_are_remembered_waits_and_so_do_the_nodes(
    monkeypatch: pytest.MonkeyPatch, *, reboots: bool
) -> None:
    """An edit gives all of its nodes but one to another resource, and then all are plugged in again."""
    for module in ("room", "renewal"):
        monkeypatch.setattr(f"genericdp.core.memory.{module}.HELD_LINK_LIMIT", 3)

    def sticks(since: int) -> list[UdevDevice]:
        found = (a_usb_serial(n, port=f"{n + 1}", serial=f"S{n}", devnum=n + 1) for n in range(5))
        return [replace(stick, incarnation=since + n) for n, stick in enumerate(found)]

    node = Node()
    node.look(rule("x", 'group_by = "all"'), *sticks(100))
    node.allocate("x")
    port_1 = '{ SUBSYSTEM = "tty", usb = { port = "1" } }'
    edited = rule("x", 'group_by = "all"', match=port_1) + rule("y")
    for since in (100, 200):
        assert "Healthy" not in node.look(edited, *sticks(since)).values()
        if reboots:
            node.memory = saved.load(saved.dump(node.memory, "one"), "another")
        else:
            node.look(edited)
