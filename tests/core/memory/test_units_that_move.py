"""Units with siblings that come back, at any port: a pod has its own of them again, or none."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from tests.core.memory.test_siblings import IN_DOUBT
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

X = rule("x")
WHOLE = rule("x", 'group_by = "usb_device"')
BY_FOO = rule("x", 'identity = ["FOO"]')

FIRST, SECOND = "x_A", "x_A_gjjzzf7zdg"


def unit(
    *ttys: int,
    port: str = "1",
    plug: int = 1,
    serial: str = "A",
    foo: str = "f",
    names: Sequence[int] = (0, 1),
) -> list[UdevDevice]:
    """A unit with these of its ttys, which the kernel calls so. `plug` counts how often it was plugged in."""
    usb = a_usb_device(port, serial=serial)
    nodes = [
        a_usb_node(usb, "tty", f"ttyACM{names[tty]}", number=f"c 166:{names[tty]}", properties={"FOO": foo})
        for tty in ttys
    ]
    return [usb, *(replace(node, incarnation=100 * plug + int(node.sys_name[6:])) for node in nodes)]


def restarted(node: Node) -> None:
    """The daemon is restarted: nothing shows."""
    text = saved.dump(node.memory, "boot")
    node.memory = saved.load(text, "boot")
    assert saved.dump(node.memory, "boot") == text


@pytest.mark.parametrize("port", ["1", "4"])
@pytest.mark.parametrize("has_restarted", [False, True])
def test_two_pods_do_not_exchange_siblings_of_which_one_was_bound_again(
    port: str, has_restarted: bool
) -> None:
    """It has a name behind that of the other one by then."""
    node = Node()
    node.look(X, *unit(0, 1))
    node.allocate(FIRST)
    node.allocate(SECOND)
    node.look(X, *unit(1))
    node.look(X, *unit(0, 1, names=(7, 1)))
    assert node.inventory.links() == {FIRST: "/dev/ttyACM7", SECOND: "/dev/ttyACM1"}
    node.look(X)
    if has_restarted:
        restarted(node)
    node.look(X, *unit(0, 1, port=port, plug=2))
    assert node.inventory.links() == {FIRST: "/dev/ttyACM0", SECOND: "/dev/ttyACM1"}


@pytest.mark.parametrize("port", ["1", "4"])
@pytest.mark.parametrize("grouping", ['group_by = "usb_device"', 'group_by = "FOO"'])
def test_a_property_that_all_siblings_have_does_not_tell_which_one_has_come(grouping: str, port: str) -> None:
    node, by_foo = Node(), rule("x", 'identity = ["FOO"]', grouping)
    node.look(by_foo, *unit(0, 1))
    node.look(by_foo, *unit(0))
    (link,) = (link for link, path in node.inventory.links().items() if path == "/dev/ttyACM0")
    node.allocate(link.partition("@")[0])
    node.look(by_foo)
    node.look(by_foo, *unit(1, plug=2, port=port))
    assert node.inventory.links()[link] is None


@pytest.mark.parametrize("has_restarted", [False, True])
@pytest.mark.parametrize("rules", [X, WHOLE])
def test_a_guess_that_was_made_before_a_pod_came_does_not_count_for_it(
    rules: str, has_restarted: bool
) -> None:
    """The unit came with one of its siblings, and nobody can tell which one that was."""
    node = Node()
    node.look(rules, *unit(0, 1))
    for _ in range(2):
        node.look(rules, *unit(1, plug=2))
    (link,) = (link for link, path in node.inventory.links().items() if path == "/dev/ttyACM1")
    node.allocate(FIRST)
    node.look(rules)
    if has_restarted:
        restarted(node)
    told = node.look(rules, *unit(0, 1, plug=3))
    assert told[FIRST] == IN_DOUBT
    assert node.inventory.links()[link] is None
    node.look(rules, *unit(0, 1, plug=3), answer=node.nobody_holds_anything())
    assert node.look(rules, *unit(0, 1, plug=3))[FIRST] == "Healthy"


def test_a_property_tells_a_unit_at_another_port_although_its_serial_number_tells_nothing() -> None:
    """Another one with that number is unplugged, too."""
    node = Node()
    node.look(
        BY_FOO,
        *unit(0, 1, serial="0001", foo="p"),
        *unit(0, port="3", names=(4,), serial="0001", foo="r"),
    )
    (first,) = (link for link, path in node.inventory.links().items() if path == "/dev/ttyACM0")
    (other,) = (link for link, path in node.inventory.links().items() if path == "/dev/ttyACM4")
    node.allocate(first)
    node.allocate(other)
    node.look(BY_FOO)
    node.look(BY_FOO, *unit(0, port="6", plug=3, serial="0001", foo="r"))
    assert node.inventory.links()[other] == "/dev/ttyACM0"
    assert node.inventory.links()[first] is None


def test_a_unit_is_known_at_a_port_where_another_resource_had_it_meanwhile() -> None:
    odd = rule("x", match='{ SUBSYSTEM = "tty", DEVNAME = "*1" }')
    node = Node()
    node.look(odd, *unit(0, 1))
    node.allocate(FIRST)
    for rules in (X, rule("y")):
        node.look(rules, *unit(0, 1))
    node.look(rule("y"))
    for rules in (rule("y"), X):
        node.look(rules, *unit(0, 1, port="4", plug=2))
    node.look(X)
    node.look(X, *unit(0, 1, port="4", plug=3))
    assert node.inventory.links()[FIRST] == "/dev/ttyACM1"
