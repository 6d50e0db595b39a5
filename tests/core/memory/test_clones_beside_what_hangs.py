"""A clone of a pod's unit comes while that unit hangs."""

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
