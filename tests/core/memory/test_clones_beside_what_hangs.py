"""A clone of a pod's unit comes while that unit hangs."""

from dataclasses import replace

import pytest

from genericdp.core.memory.lasting import TWO_AFTER_S
from tests.core.memory.test_new_in_sockets import unit
from tests.core.memory.test_siblings_on_boards import Booting
from tests.scenes.edits import rule


@pytest.mark.parametrize("keys", ["", 'group_by = "parent"'])
@pytest.mark.parametrize("hung_s", [0.0, 2 * TWO_AFTER_S])
def test_nothing_of_the_clone_gets_an_id_of_the_unit_of_a_pod(keys: str, hung_s: float) -> None:
    """A pod with the other node of the clone would have kept the unit from its own pod, once that answers."""
    rules, node = rule("x", keys), Booting()
    mine, clone = (unit(port, plug, serial="S", keys=("", "")) for port, plug in (("3", 1), ("1", 2)))
    told = node.look(rules, *mine)
    node.allocate(min(told))
    node.look(rules, *mine)
    link, path = next((link, path) for link, path in node.links().items() if link.startswith(min(told)))
    hangs = [mine[0].sys_path]
    node.look(rules, unread=hangs)
    node.now += hung_s
    assert "Healthy" not in node.look(rules, *clone, unread=hangs).values()
    for _ in range(2):
        told = node.look(rules, *mine, *clone)
        assert node.links()[link] == path
        node.now += TWO_AFTER_S
    assert [*told.values()] == ["Healthy"] * 4


def test_what_is_free_of_a_unit_that_is_moved_does_not_wait_for_what_hung_beside_it() -> None:
    rules, node = rule("x"), Booting()
    hangs = [unit("5", 9, product="6010")[0].sys_path]
    told = node.look(rules, *unit("3", 1, serial="S", keys=("", "")), unread=hangs)
    node.allocate(min(told))
    for _ in range(2):
        node.look(rules, *unit("3", 1, serial="S", keys=("", "")), unread=hangs)
        node.now += TWO_AFTER_S
    node.look(rules, unread=hangs)
    told = node.look(rules, *unit("1", 2, serial="S", keys=("", "")), unread=hangs)
    assert [*told.values()] == ["Healthy", "Healthy"]


def test_a_free_clone_does_not_wait_for_the_pod_of_a_known_one() -> None:
    """Ports tell them apart."""
    rules, node, other = rule("x"), Booting(), [unit("5", 9, product="6010")[0].sys_path]
    mine, clone = unit("1", 1, serial="S"), unit("3", 2, serial="S")
    node.look(rules, *mine)
    told = node.look(rules, *mine, *clone)
    node.allocate(max(told, key=len))
    node.look(rules, *mine, *clone)
    for there, unread in (((*mine, *clone), other), ((*mine, clone[0]), []), (mine, [clone[0].sys_path])):
        assert node.look(rules, *there, unread=unread)[min(told, key=len)] == "Healthy"


@pytest.mark.parametrize("product", ["6001", "6010"])
@pytest.mark.parametrize("keys", ["", 'group_by = "usb_device"'])
def test_a_free_unit_does_not_wait_for_the_pod_of_one_with_the_same_filler(keys: str, product: str) -> None:
    """The ids of both name their ports."""
    rules, node, other = rule("x", keys), Booting(), [unit("5", 9, product="6066")[0].sys_path]
    mine, free = unit("1", 1, serial="0001"), unit("3", 2, serial="0001", product=product)
    node.look(rules, *mine)
    node.allocate(min(node.memory.devices))
    node.look(rules, *mine)
    unfinished = replace(mine[1], initialized=False)
    for there, unread in (([*mine], other), ([mine[0]], []), ([mine[0], unfinished], []), ([], other)):
        told = node.look(rules, *there, *free, unread=unread)
        assert told[max(told)] == "Healthy"
        node.look(rules, *there)


@pytest.mark.parametrize(
    ("dock", "keys"), [("D", ""), ("D", 'group_by = "parent"'), ("", 'identity = ["KEY"]')]
)
def test_what_is_free_waits_beside_a_filler_if_something_else_tells_the_unit(dock: str, keys: str) -> None:
    """That is its dock or a property."""
    rules, node = rule("x", keys), Booting()
    mine, moved = (
        unit(port, plug, serial="0001", keys=("red", "red"), dock=dock)
        for port, plug in (("3.1" if dock else "3", 1), ("1.1" if dock else "1", 2))
    )
    node.allocate(min(node.look(rules, *mine)))
    node.look(rules, *mine)
    hangs = [mine[0].sys_path]
    node.look(rules, unread=hangs)
    assert "Healthy" not in node.look(rules, *moved, unread=hangs).values()
