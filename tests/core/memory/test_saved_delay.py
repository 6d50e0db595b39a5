"""Which changes of the memory are saved at once: what a daemon that is killed would not know."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.offer import Device, Health
from genericdp.core.memory.held import Holding
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.saved.delay import SAVE_WITHIN_S, save_within_s
from tests.scenes.builders import a_card, a_usb_device, a_usb_node, a_usb_serial
from tests.scenes.edits import Node, rule

FTDI = "example.com/ftdi"


def test_a_change_of_ties_is_saved_at_once_any_other_change_soon_and_no_change_never() -> None:
    before = Memory()
    device = Remembered(FTDI, Device("ftdi_A", Health.UNHEALTHY))
    assert save_within_s(before, Memory()) is None
    assert save_within_s(before, Memory({"ftdi_A": device})) == SAVE_WITHIN_S
    assert save_within_s(before, Memory({"ftdi_A": device}, {"unit": "port"})) == 0.0


def test_what_a_pod_has_got_is_saved_at_once_and_that_it_has_gone_soon() -> None:
    held = Memory(held={"ftdi_A": Holding("example.com/ftdi", "ftdi_A", shared=False)})
    assert save_within_s(Memory(), held) == 0.0
    assert save_within_s(held, Memory()) == SAVE_WITHIN_S


@pytest.mark.parametrize("change", [{"shared": False}, {"device": "ftdi_A.0"}, {"listed": False}], ids=str)
def test_what_another_pod_has_got_under_the_same_id_is_saved_at_once(change: dict[str, Any]) -> None:
    """A daemon that is killed would go on with what the earlier pod had: a device that may be shared."""
    had = Holding(FTDI, "ftdi_A", shared=True, listed=True, given=1.0)
    before = Memory(held={"ftdi_A.0": had, "ftdi_A.1": had})
    assert save_within_s(before, Memory(held={**before.held, "ftdi_A.0": replace(had, given=2.0)})) is None
    assert save_within_s(before, Memory(held={**before.held, "ftdi_A.0": replace(had, **change)})) == 0.0
    assert save_within_s(before, Memory(held={"ftdi_A.0": replace(had, **change)})) == 0.0


Plug = Callable[[int], Sequence[UdevDevice]]


def another_unit(plug: int) -> Sequence[UdevDevice]:
    return [a_usb_serial(plug, port="1", serial=f"S{plug}")]


def another_dock(plug: int) -> Sequence[UdevDevice]:
    hub = replace(a_usb_device("2", serial=f"DOCK{plug}"), properties={"TYPE": "9/0/1"}, incarnation=plug)
    usb = replace(a_usb_device("2.1", serial=None), parent=hub, incarnation=plug)
    return [hub, usb, replace(a_usb_node(usb, "tty", "ttyUSB0", number="c 188:0"), incarnation=plug)]


def another_model(plug: int) -> Sequence[UdevDevice]:
    return [a_usb_serial(plug, port="1", serial="S", product=f"600{plug}")]


def the_same_again(plug: int) -> Sequence[UdevDevice]:
    return [replace(each, incarnation=each.incarnation + 10 * plug) for each in a_card("1", {0: 0}, 10)]


def a_sibling_more(plug: int) -> Sequence[UdevDevice]:
    return a_card("1", {part: part for part in range(plug)}, 10)


@pytest.mark.parametrize("holds", [True, False], ids=["held", "free"])
@pytest.mark.parametrize("plug", [another_unit, another_dock, another_model, the_same_again, a_sibling_more])
def test_that_a_held_id_means_other_device_nodes_now_is_saved_at_once(plug: Plug, *, holds: bool) -> None:
    """After a kill and an edit, a daemon would offer them to another pod while their pod may have them."""
    node, rules = Node(), rule("x", 'identity = "port"')
    (id_,) = node.look(rules, *plug(1))
    if holds:
        node.allocate(id_)
        node.look(rules, *plug(1))
    before = node.memory
    assert node.look(rules, *plug(2))[id_] == "Healthy"
    assert save_within_s(before, node.memory) == (0.0 if holds else SAVE_WITHIN_S)
    before = node.memory
    node.look(rules, *plug(2))
    assert save_within_s(before, node.memory) is None


@pytest.mark.parametrize("holds", [True, False], ids=["held", "free"])
@pytest.mark.parametrize("again", [(0, 1, 2), (1, 0)], ids=["one more", "another order"])
def test_that_it_has_become_unknown_which_sibling_a_pod_got_is_saved_at_once(
    again: Sequence[int], *, holds: bool
) -> None:
    """Otherwise, a daemon killed now would mistake what it finds when it starts for the missing ones."""
    node, rules = Node(), rule("x")
    for id_ in node.look(rules, *a_card("1", {0: 0, 1: 1}, 10)):
        if holds:
            node.allocate(id_)
    node.look(rules, *a_card("1", {0: 0, 1: 1}, 10))
    node.look(rules)
    before = node.memory
    told = node.look(rules, *a_card("1", {part: part for part in again}, 20))
    assert ("Healthy" not in told.values()) is holds
    assert save_within_s(before, node.memory) == (0.0 if holds else SAVE_WITHIN_S)


@pytest.mark.parametrize("holds", [True, False], ids=["held", "free"])
def test_that_a_sibling_has_another_path_is_saved_at_once(*, holds: bool) -> None:
    """Otherwise, a daemon killed now could later mistake it for the sibling that a pod got."""
    node, rules = Node(), rule("x")
    usb, first, second = a_card("1", {0: 0, 1: 1}, 10)
    node.look(rules, usb, first, second)
    if holds:
        node.allocate(next(id_ for id_, path in node.links().items() if path == second.device_node))
    node.look(rules, usb, first, second)
    node.look(rules, usb, second)
    before = node.memory
    node.look(rules, usb, second, replace(a_card("1", {0: 3}, 20)[-1], parent=second.parent))
    assert save_within_s(before, node.memory) == (0.0 if holds else SAVE_WITHIN_S)
