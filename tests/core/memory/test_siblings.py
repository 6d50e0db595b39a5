"""Siblings, which only their order tells apart: none gets the id of another one that a pod holds."""

import pytest

from genericdp.core.memory import saved
from tests.core.memory.test_renewal import ANY, FIRST, SECOND, SERIAL_CARD
from tests.scenes.builders import a_usb_node
from tests.scenes.edits import Node

THIRD = a_usb_node(SERIAL_CARD, "tty", "ttyACM2", number="c 166:2", properties={"N": "2"})


def id_of(node: Node, path: str) -> str:
    return next(id_ for id_, target in node.inventory.links().items() if target == path)


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
