"""A unit that could not be read for a minute, beside the unit of a pod with the same serial number."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.past import WHOLE, Twin
from genericdp.core.inventory.plugged import ALL_READ
from genericdp.core.memory import saved
from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.core.memory.memory import Memory, after_allocate, resumed
from genericdp.core.memory.take import take_inventory
from tests.core.memory.test_siblings_on_boards import GRACE_S
from tests.core.memory.test_unfinished_twins import a_unit, unfinished
from tests.scenes import sockets
from tests.scenes.builders import a_usb_device, a_usb_node, by_sys_path, resources_of
from tests.scenes.edits import Node, rule
from tests.scenes.inventories import DOMAIN
from tests.scenes.sockets import SHIFT, in_socket

RULES = [rule("x", keys) for keys in ("", 'group_by = "usb_device"', 'group_by = "all"', "replicas = 2")]
RULES.append(rule("x", 'identity = ["ID_SERIAL_SHORT"]'))
by_all = pytest.mark.parametrize("rules", RULES)


def unread(devices: list[UdevDevice]) -> list[str]:
    return [device.sys_path for device in devices]


def held(rules: str, *devices: UdevDevice) -> tuple[Node, str]:
    """A node on which a pod has the first id, and the first link of that."""
    node = Node()
    id_ = next(iter(node.look(rules, *devices)))
    node.allocate(id_)
    node.look(rules, *devices)
    return node, next(iter(node.links()))


def with_tty(usb: UdevDevice, number: int) -> list[UdevDevice]:
    return [usb, a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}")]


def restart(node: Node, boot: str = "boot") -> None:
    node.memory = resumed(saved.load(saved.dump(node.memory, "boot"), boot), node.now)


def assert_it_waits_while_that_hangs(
    node: Node, link: str, rules: str, hangs: list[str], *, restarts: bool = False
) -> None:
    """The unit of the pod is at port 4 by now. It is found once nothing hangs any more."""
    moved = a_unit("4", 1, 2)
    for _ in range(3):
        if restarts:
            restart(node)
        assert "Healthy" not in node.look(rules, *moved, unread=hangs).values()
        node.now += 2 * TWO_AFTER_S
    told = node.look(rules, *moved)
    assert node.inventory.twins == frozenset()
    assert ("Healthy" in told.values(), node.links()[link]) == (True, "/dev/ttyUSB1")


@by_all
@pytest.mark.parametrize("answers", ["later", "when it leaves"])
@pytest.mark.parametrize("passed_s", [0.0, 2 * TWO_AFTER_S])
def test_what_has_been_there_for_a_minute_beside_the_unit_of_a_pod_is_another_unit(
    rules: str, answers: str, passed_s: float
) -> None:
    first, second = a_unit("1", 0, 1), a_unit("3", 1, 2)
    node, link = held(rules, *first)
    node.look(rules, *first, unread=unread(second))
    node.now += passed_s
    if answers == "later":
        node.look(rules, *first, unread=unread(second))
        node.look(rules, unread=unread(second))
    node.look(rules, *second)
    assert node.links()[link] == (None if passed_s else "/dev/ttyUSB1")
    node.look(rules, *first, *second)
    assert node.links()[link] == ("/dev/ttyUSB0" if passed_s else "/dev/ttyUSB1")


@by_all
def test_a_unit_that_moves_while_another_one_cannot_be_read_is_found_where_it_is(rules: str) -> None:
    node, link = held(rules, *a_unit("1", 0, 1))
    other, moved = [a_usb_device("3", serial="T", devnum=12)], a_unit("4", 1, 3)
    for devices in (a_unit("1", 0, 1), [], moved):
        node.now += 2 * TWO_AFTER_S
        node.look(rules, *devices, unread=unread(other))
    node.look(rules, *moved, *other)
    assert node.links()[link] == "/dev/ttyUSB1"


@by_all
@pytest.mark.parametrize("port", ["1", "3"])
def test_a_unit_that_was_not_seen_beside_it_is_the_one_that_the_pod_has(rules: str, port: str) -> None:
    node, link = held(rules, *a_unit("1", 0, 1))
    same = a_unit(port, 1, 2)
    node.look(rules, unread=unread(same))
    node.now += 2 * TWO_AFTER_S
    node.look(rules, unread=unread(same))
    node.look(rules, *same)
    assert node.links()[link] == "/dev/ttyUSB1"
    assert node.inventory.twins == frozenset()


@by_all
def test_a_unit_with_another_serial_number_makes_no_twins(rules: str) -> None:
    first, other = a_unit("1", 0, 1), [a_usb_device("3", serial="T", devnum=12)]
    node, link = held(rules, *first)
    node.look(rules, *first, unread=unread(other))
    node.now += 2 * TWO_AFTER_S
    node.look(rules, *other)
    assert node.inventory.twins == frozenset()
    assert node.links()[link] is None
    node.look(rules, *a_unit("2", 1, 3), *other)
    assert node.links()[link] == "/dev/ttyUSB1"


def test_a_unit_is_not_the_twin_of_itself() -> None:
    usb, tty = a_unit("1", 0, 1)
    builder, memory = Builder(resources_of(RULES[0], domain=DOMAIN), DOMAIN), Memory()
    only_tty, both = {tty.sys_path: tty}, by_sys_path(usb, tty)
    for now, devices, unread in ((1.0, only_tty, {usb.sys_path: ""}), (2.0 + TWO_AFTER_S, both, ALL_READ)):
        _, memory = take_inventory(builder, devices, memory, now, unread=unread)
    assert memory.twins == frozenset()


@pytest.mark.parametrize("serial", [None, "0001"])
def test_without_a_serial_number_there_are_no_twins(serial: str | None) -> None:
    first, second = a_unit("1", 0, 1, serial), a_unit("3", 1, 2, serial)
    node = Node()
    node.look(RULES[0], *first)
    node.look(RULES[0], *first, unread=unread(second))
    node.now += 2 * TWO_AFTER_S
    node.look(RULES[0], *second)
    assert node.inventory.twins == frozenset()


def test_only_units_on_usb_of_which_nothing_is_known_are_remembered_as_unread() -> None:
    usb, tty = a_unit("1", 0, 1)
    node, _ = held(RULES[0], usb, tty)
    node.look(RULES[0], usb, tty, unread=[usb.sys_path, tty.sys_path, "/sys/devices/pci0000:00/nvme/nvme0"])
    assert node.memory.unread == {}
    node.look(RULES[0], unread=[usb.sys_path, tty.sys_path])
    # It may be the unit itself, which is not beside itself.
    assert node.memory.unread == {usb.sys_path: {}}
    node.look(RULES[0])
    assert node.memory.unread == {}


def test_what_left_within_a_minute_may_be_what_answers_later() -> None:
    first, second = a_unit("1", 0, 1), a_unit("3", 1, 2)
    node, link = held(RULES[0], *first)
    node.look(RULES[0], *first, unread=unread(second))
    node.look(RULES[0], unread=unread(second))
    node.now += 2 * TWO_AFTER_S
    node.look(RULES[0], *second)
    assert node.links()[link] == "/dev/ttyUSB1"


def test_what_was_beside_it_is_forgotten_with_its_device() -> None:
    first, second = a_unit("1", 0, 1), a_unit("3", 1, 2)
    node = Node()
    node.look(RULES[0], *first)
    node.look(RULES[0], *first, unread=unread(second))
    (beside,) = node.memory.unread.values()
    assert [(unit.serial, since) for unit, since in beside.items()] == [("S", node.now)]
    for _ in range(3):
        node.now += GRACE_S
        node.look(RULES[0], unread=unread(second), answer=node.nobody_holds_anything())
    assert node.memory.unread == {second[0].sys_path: {}}


@by_all
@pytest.mark.parametrize("start", ["plugged in", "boot", "restart"])
@pytest.mark.parametrize("passed_s", [0.0, 2 * TWO_AFTER_S])
def test_what_comes_while_the_unit_of_a_pod_cannot_be_read_is_another_unit_after_a_minute(
    rules: str, start: str, passed_s: float
) -> None:
    first, second = a_unit("1", 0, 1), a_unit("3", 1, 2)
    node, link = held(rules, *first)
    if start != "plugged in":
        restart(node, "boot" if start == "restart" else "next")
    node.look(rules, unread=unread(first))
    node.look(rules, *second, unread=unread(first))
    node.now += passed_s
    node.look(rules, *second, unread=unread(first))
    node.look(rules, *second)
    assert node.links()[link] == (None if passed_s else "/dev/ttyUSB1")
    again = a_unit("1", 2, 3)
    node.look(rules, *second, *again)
    assert node.links()[link] == ("/dev/ttyUSB2" if passed_s else "/dev/ttyUSB1")


def without_node(unit: list[UdevDevice]) -> tuple[str, list[UdevDevice]]:
    return RULES[0], unit[:1]


def not_matched(unit: list[UdevDevice]) -> tuple[str, list[UdevDevice]]:
    return rule("x", match='{ SUBSYSTEM = "tty", DEVNAME = "*9" }'), unit


def not_finished(unit: list[UdevDevice]) -> tuple[str, list[UdevDevice]]:
    return RULES[0], [*map(unfinished, unit)]


def not_read(_: list[UdevDevice]) -> tuple[str, list[UdevDevice]]:
    return RULES[0], []


@pytest.mark.parametrize("state", [without_node, not_matched, not_finished, not_read])
def test_the_unit_of_a_pod_is_there_although_it_is_not_offered(
    state: Callable[[list[UdevDevice]], tuple[str, list[UdevDevice]]],
) -> None:
    first, second = a_unit("1", 0, 1), a_unit("3", 1, 2)
    node, link = held(RULES[0], *first)
    rules, there = state(first)
    cannot = unread(second) if there else unread(first) + unread(second)
    for _ in range(2):
        node.look(rules, *there, unread=cannot)
        node.now += 2 * TWO_AFTER_S
    node.look(RULES[0], unread=unread(second))
    node.look(RULES[0], *second)
    assert node.links()[link] is None


def test_it_is_remembered_that_they_are_twins() -> None:
    first, second = a_unit("1", 0, 1), a_unit("3", 1, 2)
    node, _ = held(RULES[0], *first)
    node.look(RULES[0], *first, unread=unread(second))
    node.now += 2 * TWO_AFTER_S
    node.look(RULES[0], *second)
    twin = Twin("serial", "S", node.memory.devices["x_S"].device.models[0], WHOLE)
    assert node.inventory.twins == node.memory.twins == frozenset({twin})


@by_all
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("shift", [0, SHIFT])
@pytest.mark.parametrize("comes", ["stays", "restart"])
def test_a_twin_beside_the_unread_unit_of_a_pod_is_another_unit_at_any_speed(
    rules: str, shift: int, comes: str, *, fast: bool
) -> None:
    mine, second = in_socket("1", fast=fast, shift=shift, serial="S"), a_unit("3", 1, 2, "S")
    tty = a_usb_node(mine, "tty", "ttyUSB0", number="c 188:0", properties={"ID_SERIAL_SHORT": "S"})
    node, link = held(rules, mine, tty)
    if comes == "restart":
        restart(node)
    cannot = sockets.unread(mine, tty)
    node.look(rules, unread=cannot)
    node.look(rules, *second, unread=cannot)
    node.now += 2 * TWO_AFTER_S
    node.look(rules, *second, unread=cannot)
    node.look(rules, *second)
    assert node.links()[link] is None


@pytest.mark.parametrize("keys", ['group_by = "all"', 'group_by = "RIG"'])
@pytest.mark.parametrize("is_read", [True, False])
def test_a_twin_beside_the_unread_unit_of_a_kit_is_another_unit(keys: str, *, is_read: bool) -> None:
    """The kit stays there with its other unit."""
    rules = rule("x", keys)
    first, twin, other = (
        [replace(each, properties={**each.properties, "RIG": "r"}) for each in a_unit(*where)]
        for where in (("1", 0, 1), ("3", 1, 2), ("4", 2, 3, "OTHER"))
    )
    node, _ = held(rules, *first, *other)
    (link,) = (link for link, path in node.links().items() if path == "/dev/ttyUSB0")
    cannot, there = ([], first) if is_read else (unread(first), [])
    for devices in ([*there, *other], [*there, *other, *twin], [*there, *other, *twin]):
        node.look(rules, *devices, unread=cannot)
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *other, *twin)
    assert node.links()[link] is None


@by_all
@pytest.mark.parametrize("hangs_before", [False, True], ids=["then plugged in", "moved there"])
def test_what_hangs_at_the_port_that_the_unit_of_a_pod_has_left_is_another_one(
    rules: str, *, hangs_before: bool
) -> None:
    """So the unit has no twin: it waits while that hangs, and is found then."""
    node, link = held(rules, *a_unit("1", 0, 1))
    moved = a_unit("4", 1, 2)
    at_old_port = [a_usb_device("1", serial=None).sys_path]
    if hangs_before:
        elsewhere = [a_usb_device("2", serial=None).sys_path]
        node.look(rules, *a_unit("1", 0, 1), unread=elsewhere)
        node.look(rules, *moved, unread=elsewhere)
    else:
        node.look(rules)
        node.look(rules, unread=at_old_port)
    assert_it_waits_while_that_hangs(node, link, rules, at_old_port)


@by_all
def test_what_has_left_while_the_daemon_was_not_running_may_be_what_hangs_at_its_port(rules: str) -> None:
    node, link = held(rules, *a_unit("1", 0, 1))
    node.look(rules)
    restart(node)
    for _ in range(2):
        node.look(rules, *a_unit("4", 1, 2), unread=unread(a_unit("1", 0, 1)))
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *a_unit("4", 1, 2))
    assert node.links()[link] is None


@by_all
def test_after_a_restart_what_still_hangs_at_the_port_of_a_unit_that_has_left_is_another_one(
    rules: str,
) -> None:
    node, link = held(rules, *a_unit("1", 0, 1))
    at_old_port = unread(a_unit("1", 0, 1))
    node.look(rules)
    node.look(rules, unread=at_old_port)
    assert_it_waits_while_that_hangs(node, link, rules, at_old_port, restarts=True)


@by_all
@pytest.mark.parametrize("is_next_boot", [True, False])
def test_after_a_boot_or_a_hang_of_its_own_the_unit_may_be_what_hangs_at_its_port(
    rules: str, *, is_next_boot: bool
) -> None:
    first, second = a_unit("1", 0, 1), a_unit("4", 1, 2)
    node, link = held(rules, *first)
    if is_next_boot:
        node.look(rules)
    node.look(rules, unread=unread(first))
    restart(node, "next" if is_next_boot else "boot")
    for _ in range(2):
        node.look(rules, *second, unread=unread(first))
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *second)
    assert node.links()[link] is None


@by_all
@pytest.mark.parametrize("restarts", [True, False])
def test_the_unit_may_be_what_hangs_although_something_else_hangs_in_its_socket(
    rules: str, *, restarts: bool
) -> None:
    mine = in_socket("1", fast=False, shift=SHIFT, serial="S")
    other = in_socket("1", fast=True, shift=SHIFT, serial="S")
    tty = a_usb_node(mine, "tty", "ttyUSB0", number="c 188:0", properties={"ID_SERIAL_SHORT": "S"})
    node, link = held(rules, mine, tty)
    node.look(rules, unread=sockets.unread(mine, tty))
    both = {**sockets.unread(mine, tty), **sockets.unread(other)}
    node.look(rules, unread=both)
    if restarts:
        restart(node)
    for _ in range(3):
        node.look(rules, *a_unit("3", 1, 2), unread=both)
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *a_unit("3", 1, 2))
    assert node.links()[link] is None


@by_all
def test_the_unit_may_be_either_of_two_that_begin_to_hang_in_its_socket(rules: str) -> None:
    mine = in_socket("1", fast=False, shift=SHIFT, serial="S")
    other = in_socket("1", fast=True, shift=SHIFT, serial="S")
    tty = a_usb_node(mine, "tty", "ttyUSB0", number="c 188:0", properties={"ID_SERIAL_SHORT": "S"})
    node, link = held(rules, mine, tty)
    both = {**sockets.unread(mine, tty), **sockets.unread(other)}
    for there in [], [], *[a_unit("3", 1, 2)] * 3:
        node.look(rules, *there, unread=both)
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *a_unit("3", 1, 2))
    assert node.links()[link] is None


@pytest.mark.parametrize("has_restarted", [True, False])
@pytest.mark.parametrize("state", [without_node, not_matched, not_finished])
def test_what_was_plugged_in_but_not_offered_may_be_what_hangs_at_its_port(
    state: Callable[[list[UdevDevice]], tuple[str, list[UdevDevice]]], *, has_restarted: bool
) -> None:
    first, second = a_unit("1", 0, 1), a_unit("4", 1, 2)
    node, link = held(RULES[0], *first)
    rules, there = state(first)
    node.look(rules, *there)
    if has_restarted:
        restart(node)
    node.look(RULES[0], unread=unread(first))
    for _ in range(3):
        node.look(RULES[0], *second, unread=unread(first))
        node.now += 2 * TWO_AFTER_S
    node.look(RULES[0], *second)
    assert node.links()[link] is None


@by_all
@pytest.mark.parametrize("is_seen_to_leave", [True, False])
def test_a_unit_that_hung_at_its_new_port_is_not_the_twin_of_what_hangs_at_its_old_one(
    rules: str, *, is_seen_to_leave: bool
) -> None:
    node, link = held(rules, *a_unit("1", 0, 1))
    moved, other = a_unit("4", 1, 2), a_unit("1", 2, 3, "OTHER")
    if is_seen_to_leave:
        node.look(rules)
    node.look(rules, unread=unread(moved))
    for _ in range(2):
        node.look(rules, unread=unread(moved + other))
        node.now += 2 * TWO_AFTER_S
    told = node.look(rules, *moved, unread=unread(other))
    assert ("Healthy" in told.values(), node.links()[link]) == (False, None)
    node.look(rules, *moved)
    assert (node.inventory.twins, node.links()[link]) == (frozenset(), "/dev/ttyUSB1")


#: Rules under which one container at a time gets a unit, and a twin has an id of its own.
EXCLUSIVE = [rules for rules in RULES if "replicas" not in rules and "all" not in rules]
with_ids_of_twins = pytest.mark.parametrize("rules", EXCLUSIVE)
at_any_start = pytest.mark.parametrize("start", ["plugged in", "boot", "restart"])


def moved_while_something_hangs(rules: str, start: str) -> tuple[Node, str]:
    """The unit of a pod is at port 4 in the look in which something begins to hang at its old port.

    Nobody can tell whether it has moved, or hangs and has a twin.
    """
    node, link = held(rules, *a_unit("1", 0, 1))
    if start != "plugged in":
        restart(node, "boot" if start == "restart" else "next")
    for _ in range(3):
        told = node.look(rules, *a_unit("4", 1, 2), unread=unread(a_unit("1", 2, 3)))
        assert rules not in EXCLUSIVE or "Healthy" not in told.values()
        assert node.links()[link] is None
        node.now += 2 * TWO_AFTER_S
    return node, link


@by_all
@at_any_start
@pytest.mark.parametrize("serial", ["OTHER", "0001"])
def test_a_unit_that_may_have_moved_is_found_when_what_hangs_has_another_serial_number(
    rules: str, start: str, serial: str
) -> None:
    node, link = moved_while_something_hangs(rules, start)
    told = node.look(rules, *a_unit("4", 1, 2), *a_unit("1", 2, 3, serial))
    assert ("Healthy" in told.values(), node.links()[link]) == (True, "/dev/ttyUSB1")
    assert (node.memory.twins, node.memory.guesses, node.memory.ties) == (frozenset(), frozenset(), {})
    assert node.memory.refutable == frozenset()


@by_all
@at_any_start
def test_a_unit_that_may_have_moved_is_the_twin_of_what_answers_with_its_serial_number(
    rules: str, start: str
) -> None:
    node, link = moved_while_something_hangs(rules, start)
    told = node.look(rules, *a_unit("4", 1, 2), *a_unit("1", 2, 3))
    assert node.links()[link] == "/dev/ttyUSB2"
    assert {*told.values()} == {"Healthy"}
    assert node.memory.guesses == frozenset()


@with_ids_of_twins
@at_any_start
@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("comes", ["nothing", "another unit", "without a serial number"])
def test_a_unit_that_may_have_moved_waits_for_the_pod_if_what_hangs_leaves_or_does_not_say_what_it_is(
    rules: str, start: str, comes: str, *, restarts: bool
) -> None:
    node, link = moved_while_something_hangs(rules, start)
    there = a_unit("4", 1, 2)
    if comes != "without a serial number":
        node.look(rules, *there)
    if restarts:
        restart(node)
    if comes != "nothing":
        there += a_unit("1", 2, 3, "OTHER" if comes == "another unit" else None)
    told = node.look(rules, *there)
    mine = link.partition("@")[0]
    (moved,) = (id_ for id_ in told if id_.startswith("x_S-port-4"))
    assert (told[moved], node.links()[link]) == (f"a pod may still hold it as {mine}", None)
    assert node.look(rules, *there, answer=node.nobody_holds_anything())[moved] == "Healthy"
    told = node.look(rules, *there)
    assert (told[mine], node.links()[link]) == ("Healthy", "/dev/ttyUSB1")
    assert (node.memory.twins, node.memory.guesses, node.memory.ties) == (frozenset(), frozenset(), {})


@by_all
def test_a_unit_that_hung_and_comes_back_through_its_boot_loader_is_not_taken_for_its_clone(
    rules: str,
) -> None:
    first, clone, hangs = a_unit("1", 0, 1), a_unit("3", 1, 2), unread(a_unit("1", 0, 1))
    loader = replace(a_usb_device("1", serial=None, product="6010", devnum=13), incarnation=300)
    node, link = held(rules, *first)
    for there in ([], clone, clone):
        node.look(rules, *there, unread=hangs)
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *clone, loader)
    assert node.links()[link] is None
    node.look(rules, *clone, *a_unit("1", 2, 4))
    assert node.links()[link] == "/dev/ttyUSB2"


@with_ids_of_twins
@pytest.mark.parametrize("hangs_s", [0.0, 2 * TWO_AFTER_S])
@pytest.mark.parametrize("stays", [True, False])
def test_that_two_clones_were_read_is_no_guess_when_one_hangs_within_a_minute(
    rules: str, hangs_s: float, *, stays: bool
) -> None:
    """Another unit at its port does not show that there was one only."""
    node, first, second = Node(), a_unit("1", 0, 1), a_unit("3", 1, 2)
    node.look(rules, *first)
    node.look(rules, *first, *second)
    link = next(link for link, path in node.links().items() if path == "/dev/ttyUSB1")
    mine = link.partition("@")[0]
    node.allocate(mine)
    for _ in range(2):
        node.look(rules, *first, unread=unread(second))
        node.now += hangs_s
    beside = first if stays else []
    node.look(rules, *beside, *a_unit("3", 2, 3, "OTHER"))
    node.look(rules, *beside)
    told = node.look(rules, *beside, *a_unit("3", 1, 4))
    assert node.links()[link] == "/dev/ttyUSB1"
    assert told[mine] == "Healthy"


@with_ids_of_twins
@pytest.mark.parametrize("boots", [True, False])
def test_a_unit_that_was_seen_at_both_ports_while_it_moved_may_have_a_twin_later(
    rules: str, *, boots: bool
) -> None:
    """Only its node on USB was still at the old port. Another look may find it hanging, or moved again."""
    first, moved = a_unit("1", 0, 1), a_unit("4", 1, 2)
    node, link = held(rules, *first)
    node.look(rules, first[0], *moved)
    node.look(rules, *moved)
    assert node.links()[link] == "/dev/ttyUSB1"
    if boots:
        restart(node, "next")
        node.look(rules, *moved)
    for _ in range(3):
        told = node.look(rules, *a_unit("5", 2, 3), unread=unread(a_unit("4", 1, 9)))
        assert ("Healthy" in told.values(), node.links()[link]) == (False, None)
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *a_unit("5", 2, 3), *a_unit("4", 1, 9, "OTHER"))
    assert node.links()[link] == "/dev/ttyUSB2"


@by_all
@at_any_start
@pytest.mark.parametrize("boots", [True, False])
@pytest.mark.parametrize("hung_before", [True, False])
def test_what_hangs_later_does_not_say_whether_there_was_a_twin(
    rules: str, start: str, *, boots: bool, hung_before: bool
) -> None:
    node, link = moved_while_something_hangs(rules, start)
    there, other = a_unit("4", 1, 2), a_unit("1", 2, 3, "OTHER")
    node.look(rules, *there)
    if hung_before:
        node.look(rules, *there, unread=unread(other))
    restart(node, "next" if boots else "boot")
    node.look(rules, *there, unread=unread(other))
    node.look(rules, *there, *other)
    assert node.links()[link] is None


@by_all
@at_any_start
@pytest.mark.parametrize("order", ["S first", "other first", "both"])
@pytest.mark.parametrize("held_too", [True, False])
@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (2, 3)])
def test_two_units_that_change_their_ports_and_hang_there_are_found(
    rules: str, start: str, order: str, numbers: tuple[int, int], *, held_too: bool
) -> None:
    node = Node()
    before = a_unit("1", 0, 1) + a_unit("4", 1, 2, "OTHER")
    told = node.look(rules, *before)
    node.allocate(*(id_ for id_ in told if held_too or "OTHER" not in id_))
    node.look(rules, *before)
    links = {path: link for link, path in node.links().items()}
    if start != "plugged in":
        restart(node, "boot" if start == "restart" else "next")
    moved, other = a_unit("4", numbers[0], 3), a_unit("1", numbers[1], 4, "OTHER")
    for _ in range(3):
        node.look(rules, unread=unread(moved + other))
        node.now += 2 * TWO_AFTER_S
    if order == "S first":
        node.look(rules, *moved, unread=unread(other))
    if order == "other first":
        node.look(rules, *other, unread=unread(moved))
    told = node.look(rules, *moved, *other)
    assert {told[id_] for id_ in node.memory.held} == {"Healthy"}
    assert node.links()[links["/dev/ttyUSB0"]] == f"/dev/ttyUSB{numbers[0]}"
    assert not held_too or node.links()[links["/dev/ttyUSB1"]] == f"/dev/ttyUSB{numbers[1]}"


@with_ids_of_twins
@pytest.mark.parametrize("are_known", [True, False])
def test_a_unit_that_answers_as_that_of_a_pod_leaves_waits_until_both_have_been_read(
    rules: str, *, are_known: bool
) -> None:
    """It hung beside that for a minute, so it seems to be its twin. Or the unit has come in its place."""
    first, second = a_unit("1", 0, 1), a_unit("3", 1, 2)
    node, link = held(rules, *first)
    for _ in range(2 if are_known else 0):
        node.look(rules, *first, *map(unfinished, second))
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *first, unread=unread(second))
    node.now += 2 * TWO_AFTER_S
    told = node.look(rules, *second)
    assert ("Healthy" in told.values(), node.links()[link]) == (are_known, None)
    for _ in range(2):
        told = node.look(rules, *first, *second)
    assert ({*told.values()}, node.links()[link]) == ({"Healthy"}, "/dev/ttyUSB0")


def a_part(port: str, model: str, number: int, plug: int, serial: str | None = "S") -> list[UdevDevice]:
    """One part of a dock, all of which have one serial number."""
    usb = replace(a_usb_device(port, serial=serial, product=model, devnum=10 + plug), incarnation=100 * plug)
    tty = a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}")
    return [usb, replace(tty, incarnation=100 * plug + 1)]


@by_all
@at_any_start
@pytest.mark.parametrize("mine", [0, 1])
@pytest.mark.parametrize("lasts_s", [0.0, 2 * TWO_AFTER_S])
def test_another_model_with_the_serial_number_of_what_hangs_is_no_twin(
    rules: str, start: str, mine: int, lasts_s: float
) -> None:
    """Each keeps its id, which says its port because of the other one."""
    node, before = Node(), [a_part("2.1", "6001", 0, 1), a_part("2.2", "6015", 1, 2)]
    told = node.look(rules, *before[0], *before[1])
    node.allocate([*told][mine if len(told) == 2 else 0])
    node.look(rules, *before[0], *before[1])
    links = node.links()
    if start != "plugged in":
        restart(node, "boot" if start == "restart" else "next")
    after = [a_part("2.1", "6001", 0, 3), a_part("2.2", "6015", 1, 4)]
    for hangs, stays in ((after[0], after[1]), (after[1], after[0])):
        node.look(rules, *stays, unread=unread(hangs))
        node.now += lasts_s
        assert node.look(rules, *after[0], *after[1]) == told
        assert (node.links(), node.memory.guesses) == (links, frozenset())


@pytest.mark.parametrize("rules", [RULES[0], RULES[1]])
@at_any_start
def test_the_id_of_another_model_does_not_change_with_a_guess(rules: str, start: str) -> None:
    node = Node()
    mine, other = a_part("1", "6001", 0, 1), a_part("3", "6015", 1, 2)
    told = node.look(rules, *mine, *other)
    for id_ in told:
        node.allocate(id_)
    node.look(rules, *mine, *other)
    links = {path: link for link, path in node.links().items()}
    if start != "plugged in":
        restart(node, "boot" if start == "restart" else "next")
    moved, comes = a_part("4", "6001", 0, 3), a_unit("1", 2, 4, "OTHER")
    for devices, hangs in (
        ([*moved, *other], comes),
        ([*moved, *other], comes),
        ([*moved, *other, *comes], []),
    ):
        node.look(rules, *devices, unread=unread(hangs))
        node.now += 2 * TWO_AFTER_S
        assert node.links()[links["/dev/ttyUSB1"]] == "/dev/ttyUSB1"


@with_ids_of_twins
def test_a_unit_that_waited_is_found_back_at_its_old_port(rules: str) -> None:
    node, link = moved_while_something_hangs(rules, "plugged in")
    node.look(rules, *a_unit("4", 1, 2))
    node.look(rules)
    told = node.look(rules, *a_unit("1", 2, 4))
    assert (told[link.partition("@")[0]], node.links()[link]) == ("Healthy", "/dev/ttyUSB2")


@by_all
def test_a_guess_ends_with_the_pods_although_something_still_hangs(rules: str) -> None:
    """Otherwise the unit would keep an id with its port, and the next pod would lose it when it is moved."""
    node, link = moved_while_something_hangs(rules, "plugged in")
    moved, hangs = a_unit("4", 1, 2), unread(a_unit("1", 2, 3))
    node.look(rules, *moved, unread=hangs, answer=node.nobody_holds_anything())
    node.look(rules, *moved, unread=hangs)
    assert (node.memory.twins, node.memory.guesses, node.memory.ties) == (frozenset(), frozenset(), {})
    # A node of a kit keeps the long name that its link has got.
    assert "all" in rules or node.links()[link] == "/dev/ttyUSB1"


@with_ids_of_twins
def test_a_unit_that_a_pod_got_as_the_twin_of_what_hangs_keeps_its_id(rules: str) -> None:
    node, _ = moved_while_something_hangs(rules, "plugged in")
    moved, hangs = a_unit("4", 1, 2), unread(a_unit("1", 2, 3))
    told = node.look(rules, *moved, unread=hangs, answer=node.nobody_holds_anything())
    (id_,) = (id_ for id_, why in told.items() if why == "Healthy")
    assert id_.startswith("x_S-port-4")
    node.allocate(id_)
    told = node.look(rules, *moved, *a_unit("1", 2, 3, "OTHER"))
    assert told[id_] == "Healthy"


@by_all
@pytest.mark.parametrize("has_guess", [True, False])
def test_what_hangs_at_the_port_of_a_twin_does_not_change_that_there_are_two(
    rules: str, *, has_guess: bool
) -> None:
    """That of another unit may be in doubt at the same time."""
    first, second = a_unit("1", 0, 1), a_unit("3", 1, 2)
    node, link = held(rules, *first)
    hangs = unread(first)
    if has_guess:
        third = a_unit("2", 2, 4, "T")
        told = node.look(rules, *first, *third)
        node.allocate(*(id_ for id_ in told if "S" not in id_))
        hangs += unread(third)
        moved = a_unit("5", 2, 5, "T")
    else:
        third = moved = []
    for _ in range(2):
        node.look(rules, *first, *third, *map(unfinished, second))
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *second, *third)
    restart(node)
    for _ in range(2):
        told = node.look(rules, *second, *moved, unread=hangs)
        # A kit with a part in doubt waits.
        assert "Healthy" in told.values() or "all" in rules
        node.now += 2 * TWO_AFTER_S
    assert bool(node.memory.guesses) is has_guess
    other = a_unit("1", 2, 3, "OTHER")
    node.look(rules, *second, *moved, *other, unread=hangs[2:])
    node.look(rules, *second, *moved, *other)
    assert node.links()[link] is None


@by_all
@pytest.mark.parametrize("first", ["the other one answers", "the unit leaves", "both answer"])
def test_a_unit_that_may_be_either_of_two_that_hang_in_its_socket_waits_for_both(
    rules: str, first: str
) -> None:
    mine = in_socket("1", fast=False, shift=SHIFT, serial="S")
    other = in_socket("1", fast=True, shift=SHIFT, serial="OTHER")
    tty = a_usb_node(mine, "tty", "ttyUSB0", number="c 188:0", properties={"ID_SERIAL_SHORT": "S"})
    node, link = held(rules, mine, tty)
    hangs, twin = sockets.unread(mine, tty), a_unit("3", 1, 2)
    for _ in range(2):
        node.look(rules, *twin, unread={**hangs, **sockets.unread(other)})
        node.now += 2 * TWO_AFTER_S
    if first == "the unit leaves":
        node.look(rules, *twin, unread=sockets.unread(other))
    else:
        node.look(rules, *twin, other, unread=hangs)
    third = [in_socket("1", fast=False, shift=SHIFT, serial="THIRD")] if first == "both answer" else []
    node.look(rules, *twin, other, *third)
    assert node.links()[link] == ("/dev/ttyUSB1" if third else None)


@pytest.mark.parametrize("rules", [RULES[0], RULES[1], RULES[3]])
@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("is_known", ["without a serial number", "by its nodes", "by its serial number"])
def test_what_comes_beside_an_unread_unit_in_a_socket_is_new(
    rules: str, is_known: str, *, fast: bool
) -> None:
    """Unless what cannot be read comes beside the unit of the pod."""
    serial = "S" if is_known == "by its serial number" else None
    mine, tty = with_tty(in_socket("1", fast=fast, shift=SHIFT, serial=serial), 0)
    other, its_tty = with_tty(in_socket("1", fast=not fast, shift=SHIFT, devnum=5), 1)
    node, link = held(rules, mine, tty)
    restart(node)
    if is_known != "without a serial number":
        back = [replace(each, incarnation=77) if serial else each for each in (mine, tty)]
        for _ in range(3):
            node.look(rules, *back, unread=sockets.unread(other))
            assert node.links()[link] == "/dev/ttyUSB0"
            node.now += 2 * TWO_AFTER_S
        return
    for _ in range(3):
        told = node.look(rules, other, its_tty, unread=sockets.unread(mine))
        assert ("Healthy" in told.values(), node.links()[link]) == (False, None)
        node.now += 2 * TWO_AFTER_S
    for _ in range(2):
        node.look(rules, mine, tty, other, its_tty)
        assert node.links()[link] == "/dev/ttyUSB0"
        node.now += 2 * TWO_AFTER_S
    assert {*node.look(rules, mine, tty, other, its_tty).values()} == {"Healthy"}
    # Both have stayed for a minute, so nothing is new that comes there.
    restart(node, "next")
    again = [replace(each, incarnation=78) for each in (other, its_tty)]
    told = node.look(rules, *again, unread=sockets.unread(mine))
    assert ("Healthy" in told.values(), node.links()[link]) == (True, None)


def test_what_comes_beside_an_unread_unit_is_not_new_if_nothing_is_remembered_there() -> None:
    mine = in_socket("1", fast=True, shift=SHIFT)
    told = Node().look(RULES[0], *with_tty(mine, 0), unread=sockets.unread(in_socket("1", shift=SHIFT)))
    assert {*told.values()} == {"Healthy"}


def test_what_has_been_in_a_socket_is_not_new_when_something_begins_to_hang_there() -> None:
    mine, tty = with_tty(in_socket("1", fast=True, shift=SHIFT), 0)
    other = in_socket("1", shift=SHIFT)
    node, link = held(RULES[0], mine, tty)
    node.look(RULES[0], mine, tty, unread=sockets.unread(other))
    assert node.links()[link] == "/dev/ttyUSB0"


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("has_twin", [True, False])
def test_a_unit_without_a_serial_number_is_not_one_that_is_found_elsewhere(
    *, at_once: bool, has_twin: bool
) -> None:
    """Under a rule by port, two units of one model are exchanged and put back. Only one says a number."""
    node, rules = Node(), rule("x", 'identity = "port"')
    before = a_unit("1", 0, 1, None) + a_unit("3", 1, 2)
    node.look(rules, *before, *(a_unit("2", 2, 3) if has_twin else []))
    told = node.look(rules, *before)
    for id_ in [id_ for id_, why in told.items() if why == "Healthy"]:
        node.allocate(id_)
    links = node.links()
    for there in [] if at_once else [before[2:], []]:
        node.look(rules, *there)
    exchanged = a_unit("3", 0, 4, None) + a_unit("1", 1, 5)
    node.look(rules, *exchanged)
    for there in [] if at_once else [exchanged[2:], []]:
        node.look(rules, *there)
    back = a_unit("1", 0, 6, None) + a_unit("3", 1, 7)
    # What has no serial number may be the twin of what has one.
    assert (node.look(rules, *back) == told) is not has_twin
    assert (node.links() == links) is not has_twin


@pytest.mark.parametrize("rules", [RULES[0], RULES[1]])
@pytest.mark.parametrize("is_moved_first", [True, False])
@pytest.mark.parametrize("has_model", [True, False])
def test_another_model_with_its_serial_number_elsewhere_is_not_the_unit_of_a_pod(
    rules: str, *, is_moved_first: bool, has_model: bool
) -> None:
    """So what comes unread where that unit was last waits."""
    mine, other = a_part("1", "6001", 0, 1), a_part("7", "6015", 1, 2)
    node, _ = held(rules, *mine)
    node.look(rules, *mine, *(other if is_moved_first else []))
    node.look(rules, *a_part("3", "6001", 0, 3), *other)
    if not has_model:
        devices = {
            id_: replace(known, device=replace(known.device, models=()))
            for id_, known in node.memory.devices.items()
        }
        node.memory = replace(node.memory, devices=devices)
    told = node.look(rules, *a_part("3", "6001", 0, 4, None), *other)
    assert [why for id_, why in told.items() if id_.startswith("x_port-3")] != ["Healthy"]


def test_a_unit_that_is_bound_again_while_something_hangs_in_its_socket_is_not_new() -> None:
    mine, tty = with_tty(in_socket("1", fast=True, shift=SHIFT), 0)
    builder, memory = Builder(resources_of(RULES[0], domain=DOMAIN), DOMAIN), Memory()
    inventory, memory = take_inventory(builder, by_sys_path(mine, tty), memory, 1.0)
    (offer,) = inventory.offers.values()
    memory = after_allocate(memory, offer, offer.ids, None, 1.0)
    again = replace(tty, incarnation=79)
    hangs = sockets.unread(in_socket("1", shift=SHIFT))
    inventory, _ = take_inventory(builder, by_sys_path(mine, again), memory, 2.0, unread=hangs)
    assert {*inventory.links().values()} == {"/dev/ttyUSB0"}


XHCI = "/sys/devices/pci0000:00/0000:00:14.0"
OTHER_XHCI = "/sys/devices/pci0000:00/0000:00:1c.0/0000:05:00.0"

#: What hangs somewhere else, at a port with the number of the unit's own port.
ELSEWHERE = {
    "of another controller": {f"{OTHER_XHCI}/usb3/3-1": ""},
    "of the other root hub": {f"{XHCI}/usb2/2-1": f"{XHCI}/usb1/1-5"},
    "in the other half of its socket": {f"{XHCI}/usb2/2-5": f"{XHCI}/usb1/1-1"},
}


def assert_it_is_not_its_own_twin(node: Node, link: str, rules: str, hangs: Mapping[str, str]) -> None:
    """The unit of the pod is at port 4 by now, while something hangs at a port with its old number."""
    moved = a_unit("4", 1, 3)
    for _ in range(3):
        told = node.look(rules, *moved, unread=hangs)
        assert not [id_ for id_, why in told.items() if why == "Healthy" and "port" in id_]
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *moved)
    assert (node.inventory.twins, node.links()[link]) == (frozenset(), "/dev/ttyUSB1")


@by_all
@pytest.mark.parametrize("hangs", ELSEWHERE.values(), ids=ELSEWHERE.keys())
@pytest.mark.parametrize("is_seen_to_leave", [True, False])
@pytest.mark.parametrize("restarts", [True, False])
def test_a_unit_that_was_read_for_a_minute_while_something_hung_is_not_that(
    rules: str, hangs: Mapping[str, str], *, is_seen_to_leave: bool, restarts: bool
) -> None:
    """So a unit that is moved is not its own twin."""
    node, link = held(rules, *a_unit("1", 0, 1))
    node.look(rules, *a_unit("1", 0, 1), unread=hangs)
    if restarts:
        restart(node)
    for _ in range(2):
        node.look(rules, *a_unit("1", 0, 1), unread=hangs)
        node.now += TWO_AFTER_S
    if is_seen_to_leave:
        node.look(rules, unread=hangs)
    assert_it_is_not_its_own_twin(node, link, rules, hangs)


@by_all
@pytest.mark.parametrize("hangs", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_a_unit_that_comes_back_to_its_port_and_stays_there_for_a_minute_is_not_what_hangs(
    rules: str, hangs: Mapping[str, str]
) -> None:
    """It left so soon after that began to hang that it may have been it."""
    node, link = held(rules, *a_unit("1", 0, 1))
    back = a_unit("1", 0, 2)
    node.look(rules, *a_unit("1", 0, 1), unread=hangs)
    node.look(rules, unread=hangs)
    for _ in range(2):
        node.look(rules, *back, unread=hangs)
        node.now += TWO_AFTER_S
    assert_it_is_not_its_own_twin(node, link, rules, hangs)


@by_all
def test_what_hangs_at_another_controller_is_not_a_unit_that_moved_while_the_daemon_was_not_running(
    rules: str,
) -> None:
    node, link = held(rules, *a_unit("1", 0, 1))
    restart(node)
    for _ in range(3):
        node.look(rules, *a_unit("4", 1, 2), unread=ELSEWHERE["of another controller"])
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *a_unit("4", 1, 2))
    assert (node.inventory.twins, node.links()[link]) == (frozenset(), "/dev/ttyUSB1")


@by_all
def test_a_unit_that_was_there_while_something_hung_may_be_what_hangs_at_its_port_after_a_restart(
    rules: str,
) -> None:
    node, link = held(rules, *a_unit("1", 0, 1))
    hangs = ELSEWHERE["of the other root hub"]
    for _ in range(2):
        node.look(rules, *a_unit("1", 0, 1), unread=hangs)
    restart(node)
    both = {**hangs, **dict.fromkeys(unread(a_unit("1", 0, 1)), "")}
    for _ in range(3):
        node.look(rules, *a_unit("4", 1, 2), unread=both)
        node.now += 2 * TWO_AFTER_S
    node.look(rules, *a_unit("4", 1, 2))
    assert node.links()[link] is None


@by_all
@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("overlaps", [0, 1, 3])
def test_a_unit_may_be_what_hangs_in_its_socket_before_it_is_gone_from_there(
    rules: str, overlaps: int, *, restarts: bool
) -> None:
    """The kernel may announce it at another speed first. A twin that comes meanwhile is another unit."""
    mine = in_socket("1", serial="S")
    tty = a_usb_node(mine, "tty", "ttyUSB0", number="c 188:0", properties={"ID_SERIAL_SHORT": "S"})
    node, link = held(rules, mine, tty)
    hangs = sockets.unread(in_socket("1", fast=True, serial="S"))
    for _ in range(overlaps):
        node.look(rules, mine, tty, unread=hangs)
    node.look(rules, unread=hangs)
    if restarts:
        restart(node)
    for _ in range(3):
        node.look(rules, *a_unit("3", 1, 2), unread=hangs)
        node.now += TWO_AFTER_S
    node.look(rules, *a_unit("3", 1, 2))
    assert node.links()[link] is None


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("rules", RULES[:2])
def test_a_unit_that_moves_is_not_what_hung_beside_it_for_a_minute(rules: str, *, restarts: bool) -> None:
    """Then a unit with its serial number that comes to its old port is another one."""
    node, link = held(rules, *a_unit("1", 0, 1))
    hangs = unread(a_unit("3", 9, 9)[:1])
    for passed_s in (0.0, TWO_AFTER_S):
        node.now += passed_s
        node.look(rules, *a_unit("1", 0, 1), unread=hangs)
    if restarts:
        restart(node)
        node.look(rules, *a_unit("1", 0, 1), unread=hangs)
        assert "Healthy" not in node.look(rules, *a_unit("2", 0, 2), unread=hangs).values()
        return
    told = node.look(rules, *a_unit("2", 0, 2), unread=hangs)
    assert ([*told.values()], node.links()[link]) == (["Healthy"], "/dev/ttyUSB0")
    node.look(rules, *a_unit("2", 0, 2), *a_unit("1", 1, 3), unread=hangs)
    assert node.links()[link] == "/dev/ttyUSB0"


@pytest.mark.parametrize("rules", RULES[:2])
def test_a_unit_that_moves_may_be_what_began_to_hang_less_than_a_minute_ago(rules: str) -> None:
    node, _ = held(rules, *a_unit("1", 0, 1))
    hangs = unread(a_unit("3", 9, 9)[:1])
    node.look(rules, *a_unit("1", 0, 1), unread=hangs)
    node.now += TWO_AFTER_S - 2
    for _ in range(2):
        assert [*node.look(rules, *a_unit("2", 0, 2), unread=hangs).values()] == ["it is unplugged"]
        node.now += TWO_AFTER_S


def test_what_hung_beside_one_unit_for_a_minute_may_be_another_one() -> None:
    """Pods have both units of a kit. The one that comes at another port was away when something hung."""
    kit = rule("x", 'group_by = "all"')
    first, second = a_unit("1", 0, 1), a_unit("2", 1, 2, serial="B")
    node, _ = held(kit, *first, *second)
    node.look(kit, *second)
    hangs = unread(a_unit("4", 9, 9)[:1])
    for _ in range(3):
        node.look(kit, *second, unread=hangs)
        node.now += TWO_AFTER_S
    told = node.look(kit, *second, *a_unit("3", 0, 3), unread=hangs)
    assert "Healthy" not in told.values()


@by_all
def test_a_unit_that_moves_and_comes_back_is_still_not_what_hung_beside_it(rules: str) -> None:
    node, link = held(rules, *a_unit("1", 0, 1))
    hangs = unread(a_unit("3", 9, 9)[:1])
    for passed_s in (0.0, TWO_AFTER_S):
        node.now += passed_s
        node.look(rules, *a_unit("1", 0, 1), unread=hangs)
    for plug, port in enumerate("214", 2):
        told = node.look(rules, *a_unit(port, 0, plug), unread=hangs)
        assert ({*told.values()}, node.links()[link]) == ({"Healthy"}, "/dev/ttyUSB0")
    node.look(rules, unread=hangs)
    clone = a_unit("3", 9, 9)
    node.look(rules, *clone)
    assert node.links()[link] is None
    node.look(rules, *clone, *a_unit("4", 0, 5))
    assert node.links()[link] == "/dev/ttyUSB0"


@pytest.mark.parametrize("rules", RULES[:2])
def test_a_unit_that_comes_in_the_socket_of_what_hangs_may_be_that(rules: str) -> None:
    def in_a_socket(port: str, plug: int) -> list[UdevDevice]:
        usb = replace(in_socket(port, serial="S", shift=SHIFT, devnum=10 + plug), incarnation=100 * plug)
        return with_tty(usb, 0)

    node, _ = held(rules, *in_a_socket("1", 1))
    hangs = sockets.unread(in_socket("2", fast=True, serial="S", shift=SHIFT))
    for _ in range(2):
        node.look(rules, *in_a_socket("1", 1), unread=hangs)
        node.now += TWO_AFTER_S
    assert "Healthy" not in node.look(rules, *in_a_socket("2", 2), unread=hangs).values()
    assert "Healthy" in node.look(rules, *in_a_socket("3", 3), unread=hangs).values()


def test_nobody_can_tell_which_of_two_units_of_a_kit_has_moved_where() -> None:
    """They have one serial number. One of them has not been beside what hangs for a minute."""
    kit = rule("x", 'group_by = "all"')
    first, second = a_unit("1", 0, 1), a_unit("2", 1, 2)
    node, hangs = Node(), unread(a_unit("5", 9, 9)[:1])
    node.look(kit, *first, *second)
    node.look(kit, *first, unread=hangs)
    node.now += TWO_AFTER_S
    node.look(kit, *first, *second, unread=hangs)
    node.look(kit, *a_unit("3", 0, 3), *a_unit("4", 1, 4), unread=hangs)
    now = node.now
    assert {*node.memory.unread[hangs[0]].values()} == {now}


@pytest.mark.parametrize("keys", ['group_by = "all"', 'group_by = "RIG"'])
def test_what_a_pod_did_not_get_may_move_while_something_hangs(keys: str) -> None:
    """The unit that the pod got stays. The other one has joined its kit since."""
    kit = rule("x", keys)
    mine, other, moved = (
        [replace(each, properties={**each.properties, "RIG": "r"}) for each in a_unit(*where)]
        for where in (("1", 0, 1), ("2", 1, 2, "OTHER"), ("3", 1, 3, "OTHER"))
    )
    node, link = held(kit, *mine)
    node.look(kit, *mine, *other)
    hangs = unread(a_unit("4", 9, 9)[:1])
    node.look(kit, *mine, *other, unread=hangs)
    assert [*node.look(kit, *mine, *moved, unread=hangs).values()] == ["Healthy"]
    assert node.links()[link] == "/dev/ttyUSB0"
