"""One look at a node: what is built, completed from memory, in one call."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.saved import dump, load
from genericdp.core.memory.take import is_hasty, take_inventory
from tests.scenes.builders import a_device, a_usb_serial, by_sys_path, resources_of
from tests.scenes.edits import Node, rule
from tests.scenes.inventories import DOMAIN, devices_of
from tests.scenes.rules import FTDI_RULE


def taken(
    *devices: UdevDevice, memory: Memory | None = None, rules: str = FTDI_RULE
) -> tuple[Inventory, Memory]:
    builder = Builder(resources_of(rules, domain=DOMAIN), DOMAIN)
    return take_inventory(builder, by_sys_path(*devices), memory or Memory(), 0.0)


def test_of_twins_the_one_that_is_remembered_keeps_the_plain_id() -> None:
    """They appear together, as after a boot; without memory, the lower port would have the plain id."""
    first = a_usb_serial(0, port="2", serial="SAME")
    second = a_usb_serial(1, port="1", serial="SAME")
    _, memory = taken(first)
    inventory, _ = taken(first, second, memory=memory)
    (plain,) = (device for device in devices_of(inventory) if device.id == "ftdi_SAME")
    assert plain.nodes[0].sys_path == first.sys_path


def test_what_is_plugged_in_and_no_longer_taken_is_not_called_unplugged() -> None:
    stick = a_usb_serial(0)
    _, memory = taken(stick)
    stricter = FTDI_RULE.replace('SUBSYSTEM = "tty"', 'SUBSYSTEM = "tty", ID_X = "1"')
    for plugged, reason in (((stick,), "the rules no longer match it"), ((), "it is unplugged")):
        inventory, _ = taken(*plugged, memory=memory, rules=stricter)
        assert [device.reason for device in devices_of(inventory)] == [reason]


def a_turn(number: int, incarnation: int = 1) -> UdevDevice:
    """One of the devices of which the kernel only counts who comes."""
    return a_device(
        f"/sys/devices/virtual/pps/pps{number}",
        subsystem="pps",
        node=f"/dev/pps{number}",
        number=f"c 251:{number}",
        incarnation=incarnation,
    )


STICK, MOVED = a_usb_serial(0, port="1"), a_usb_serial(1, port="2")
AGAIN = replace(a_usb_serial(1, port="1"), incarnation=2)
CONSOLE = a_device("/sys/devices/virtual/vc/vcs7", subsystem="vc", node="/dev/vcs7", number="c 7:7")

#: What is plugged in before, at times between, and now; whether the last step is hasty.
STEPS = {
    "it is at another port": ((STICK,), [], (MOVED,), True),
    "it was away meanwhile": ((STICK,), [()], (MOVED,), True),
    "it is at its port again": ((STICK,), [()], (AGAIN,), False),
    "it is unplugged": ((STICK,), [], (), False),
    "it stays": ((STICK,), [], (STICK, CONSOLE), False),
    "something else comes": ((STICK,), [], (STICK, a_usb_serial(1, serial="B", port="2")), False),
    "a twin comes": ((STICK,), [], (STICK, MOVED), True),
    "a twin comes back": ((STICK,), [(STICK, MOVED), (STICK,)], (STICK, MOVED), False),
    "another turn": ((a_turn(0),), [], (a_turn(1),), True),
    "a turn that was away": ((a_turn(0),), [()], (a_turn(0, 2),), True),
    "a turn is unplugged": ((a_turn(0),), [], (), False),
    "a turn that stays": ((a_turn(0),), [], (a_turn(0), STICK), False),
    "a name of the kernel comes again": ((CONSOLE,), [()], (CONSOLE,), False),
}


@pytest.mark.parametrize(("before", "between", "now", "hasty"), STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("held", [True, False], ids=["held", "free"])
def test_before_a_held_id_gets_another_node_everything_has_to_be_read(
    before: tuple[UdevDevice, ...],
    between: list[tuple[UdevDevice, ...]],
    now: tuple[UdevDevice, ...],
    *,
    hasty: bool,
    held: bool,
) -> None:
    rules = rule("x", match='{ SUBSYSTEM = "tty|pps|vc" }')
    node = Node()
    (id_,) = node.look(rules, *before)
    if held:
        node.allocate(id_)
    for there in between:
        node.look(rules, *there)
    was = node.memory
    node.look(rules, *now)
    is_tied = was.ties != node.memory.ties
    assert is_hasty(was, node.memory) is (hasty and (held or is_tied))


def test_the_parts_of_a_held_device_may_come_back_one_by_one_to_where_they_were() -> None:
    kit, other = rule("kit", 'group_by = "all"'), a_usb_serial(1, serial="B", port="2")
    node = Node()
    node.allocate(*node.look(kit, STICK, other))
    for there in ((other,), (STICK, other), (STICK,), (), (other,), (STICK, other)):
        was = node.memory
        node.look(kit, *there)
        assert not is_hasty(was, node.memory)


def test_after_a_restart_only_what_has_moved_meanwhile_is_hasty() -> None:
    node = Node()
    node.allocate(*node.look(rule(), STICK))
    for there in (AGAIN, MOVED):
        node.memory = load(dump(node.memory))
        was = node.memory
        node.look(rule(), there)
        assert is_hasty(was, node.memory) is (there is MOVED)
