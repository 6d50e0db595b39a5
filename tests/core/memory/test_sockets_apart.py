"""Two units in one USB 3 socket that are surely two: neither gets the id of the other one."""

import json
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.memory import saved
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import PODS_SETTLE_S
from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.core.memory.memory import Memory, resumed
from genericdp.core.memory.remember import next_forgetting
from genericdp.core.memory.take import take_inventory
from tests.scenes.builders import a_usb_serial, by_sys_path, resources_of
from tests.scenes.edits import Node, rule
from tests.scenes.inventories import DOMAIN
from tests.scenes.sockets import a_tty_in_socket

TTYS = rule("x", 'identity = "port"')


def two_parts(since: int = 1, *, serials: tuple[str | None, str | None] = (None, None)) -> list[UdevDevice]:
    """A part of USB 2 and a part of USB 3 in one socket, as they are plugged in once more."""
    products = ("6001", "6001") if serials[0] is not None else ("6001", "6015")
    return [
        replace(
            a_tty_in_socket(
                int(fast),
                fast=fast,
                serial=serials[fast] or None,
                product=products[fast],
                devnum=2 * since + fast,
            ),
            incarnation=2 * since + fast,
        )
        for fast in (False, True)
    ]


def stay(node: Node, parts: list[UdevDevice]) -> None:
    """Two parts are there for longer than a unit that loads its firmware."""
    node.look(TTYS, *parts)
    node.look(TTYS, *parts)
    for _ in range(2):
        node.now += TWO_AFTER_S / 2
        node.look(TTYS, *parts)


@pytest.mark.parametrize("first", [False, True])
def test_a_unit_that_loads_its_firmware_keeps_its_id_although_it_is_seen_as_two_models(first: bool) -> None:
    node, parts = Node(), two_parts()
    (id_,) = node.look(TTYS, parts[first])
    node.allocate(id_)
    node.look(TTYS, *parts)
    assert node.look(TTYS, parts[not first])[id_] == "Healthy"
    assert not node.memory.apart


@pytest.mark.parametrize("serials", [(None, None), ("SA", "SF"), ("S", "S"), ("", "")])
@pytest.mark.parametrize("first", [False, True])
def test_a_part_that_no_pod_has_does_not_take_the_id_of_the_other_one_while_it_is_alone(
    first: bool, serials: tuple[str | None, str | None]
) -> None:
    node, parts = Node(), two_parts(serials=serials)
    stay(node, parts)
    (id_,) = (id_ for id_, path in node.inventory.links().items() if path == parts[first].device_node)
    node.allocate(id_)
    node.look(TTYS)
    for _ in range(3):
        node.now += 10_000.0 + PODS_SETTLE_S
        node.look(TTYS, answer=Answer(frozenset({("example.com/x", id_)}), node.now, complete=True))
    assert [*node.memory.devices] == [id_]
    node.memory = saved.load(saved.dump(node.memory))
    again = two_parts(2, serials=serials)
    node.look(TTYS, again[not first])
    assert node.inventory.links()[id_] is None
    assert node.look(TTYS, *again)[id_] == "Healthy"
    assert node.inventory.links()[id_] == parts[first].device_node


def test_a_part_that_no_rule_matches_does_not_keep_the_other_one_from_changing_its_speed() -> None:
    node, rules = Node(), rule("x", 'identity = "port"', match='{ SUBSYSTEM = "tty", ID_MODEL_ID = "6015" }')
    slow, fast = two_parts()
    told = node.look(rules, slow, fast)
    for _ in range(2):
        node.now += TWO_AFTER_S
        node.look(rules, slow, fast)
    assert not node.memory.apart
    node.look(rules)
    assert node.look(rules, a_tty_in_socket(2, fast=False, product="6015", devnum=9)) == told


@pytest.mark.parametrize("first", [False, True])
def test_two_parts_were_there_for_a_minute_although_nothing_was_looked_at_before_they_left(
    first: bool,
) -> None:
    node, parts = Node(), two_parts()
    node.look(TTYS, *parts)
    (id_,) = (id_ for id_, path in node.inventory.links().items() if path == parts[first].device_node)
    node.allocate(id_)
    node.now += TWO_AFTER_S
    node.look(TTYS, parts[not first])
    assert node.memory.apart
    node.look(TTYS)
    again = two_parts(2)
    node.look(TTYS, again[not first])
    assert node.inventory.links()[id_] is None
    assert node.look(TTYS, *again)[id_] == "Healthy"


@pytest.mark.parametrize("boot", ["1", "2"])
@pytest.mark.parametrize("serials", [(None, None), ("SA", "SF")])
@pytest.mark.parametrize("first", [False, True])
def test_a_part_that_was_alone_keeps_its_id_beside_another_one_and_after_a_reboot(
    first: bool, serials: tuple[str | None, str | None], boot: str
) -> None:
    node, parts = Node(), two_parts(serials=serials)
    (id_,) = node.look(TTYS, parts[first])
    node.allocate(id_)
    node.look(TTYS, *parts)
    stay(node, parts)
    assert node.look(TTYS, *parts)[id_] == "Healthy"
    assert node.inventory.links()[id_] == parts[first].device_node
    node.memory = saved.load(saved.dump(node.memory, "1"), boot)
    again = two_parts(2, serials=serials)
    node.look(TTYS, again[not first])
    assert node.inventory.links()[id_] is None
    assert node.look(TTYS, *again)[id_] == "Healthy"
    assert node.inventory.links()[id_] == parts[first].device_node


@pytest.mark.parametrize("serials", [(None, None), (None, "SF"), ("SA", "SF"), ("S", "S")])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("is_held", [False, True])
def test_the_part_that_was_there_first_keeps_its_id_and_the_other_one_waits_for_a_minute(
    is_held: bool, first: bool, serials: tuple[str | None, str | None]
) -> None:
    node, parts = Node(), two_parts(serials=serials)
    (id_,) = node.look(TTYS, parts[first])
    if is_held:
        node.allocate(id_)
    for _ in range(2):
        assert node.look(TTYS, *parts) == {id_: "Healthy"}
        assert node.inventory.links() == {id_: parts[first].device_node}
        assert [each.node for each in node.inventory.refusals] == [parts[not first].device_node]
        assert next_forgetting(node.memory, node.inventory) == 2.0 + TWO_AFTER_S
        node.now += 1.0
    assert node.look(TTYS, parts[first]) == {id_: "Healthy"}
    node.look(TTYS, *parts)
    node.now += TWO_AFTER_S
    told = node.look(TTYS, *parts)
    assert told.pop(id_) == "Healthy"
    assert [*told.values()] == ["Healthy"]
    assert node.inventory.links()[id_] == parts[first].device_node


@pytest.mark.parametrize("serials", [(None, None), ("SA", "SF")])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_part_that_no_pod_has_is_offered_when_it_is_plugged_in_again_beside_the_other_one(
    restarts: bool, first: bool, serials: tuple[str | None, str | None]
) -> None:
    """They are known to be two, so it does not wait for the pod of the other one."""
    node, parts = Node(), two_parts(serials=serials)
    stay(node, parts)
    pods = {path: id_ for id_, path in node.inventory.links().items()}
    node.allocate(pods[parts[first].device_node])
    told = node.look(TTYS, *parts)
    for forgets in (False, True):
        node.look(TTYS, parts[first])
        if forgets:
            node.now += 10_000.0
            held = frozenset({("example.com/x", pods[parts[first].device_node])})
            node.look(TTYS, parts[first], answer=Answer(held, node.now, complete=True))
            assert len(node.memory.devices) == 1
        if restarts:
            node.memory = saved.load(saved.dump(node.memory, "1"), "1")
        again = two_parts(2, serials=serials)
        there = [parts[first], again[not first]]
        for _ in range(2):
            assert node.look(TTYS, *there) == told
            under_another_name = node.look(TTYS.replace('"x"', '"y"'), *there)
            assert sorted(why == "Healthy" for why in under_another_name.values()) == [False, True]
            node.look(TTYS, *there)


@pytest.mark.parametrize("first", [False, True])
def test_what_the_daemon_keeps_between_two_looks_does_not_hide_the_other_part_after_the_minute(
    first: bool,
) -> None:
    parts, builder, memory = two_parts(), Builder(resources_of(TTYS, domain=DOMAIN), DOMAIN), Memory()
    inventory = Inventory()
    for now, there in ((0.0, [parts[first]]), (1.0, parts), (1.0 + TWO_AFTER_S, parts)):
        devices = by_sys_path(*there)
        anew = Builder(builder.resources, DOMAIN)
        expected, _ = take_inventory(anew, devices, memory, now)
        inventory, memory = take_inventory(builder, devices, memory, now)
        assert inventory == expected
    assert {*inventory.links().values()} == {each.device_node for each in parts}


@pytest.mark.parametrize("first", [False, True])
def test_after_a_boot_the_model_shows_which_part_was_there_first(first: bool) -> None:
    """Its device nodes are others then, and both parts may be found at the same time."""
    node = Node()
    (id_,) = node.look(TTYS, two_parts()[first])
    node.allocate(id_)
    node.memory = saved.load(saved.dump(node.memory, "1"), "2")
    again = two_parts(2)
    assert node.look(TTYS, *again) == {id_: "Healthy"}
    assert node.inventory.links() == {id_: again[first].device_node}
    assert [each.node for each in node.inventory.refusals] == [again[not first].device_node]


def test_a_unit_that_is_seen_twice_for_a_moment_is_not_tied_to_its_port() -> None:
    node, rules = Node(), rule("x")
    (id_,) = node.look(rules, a_tty_in_socket(0, fast=True, serial="A5", devnum=2))
    node.look(
        rules,
        *(a_tty_in_socket(int(fast), fast=fast, serial="A5", devnum=2 + fast) for fast in (False, True)),
    )
    assert node.look(rules, a_tty_in_socket(0, serial="A5", devnum=2)) == {id_: "Healthy"}
    assert not node.memory.ties


#: Which parts are plugged in at the next look. Both are if an unrelated event caused it.
FIRST_EVENTS = {
    "nothing": (False, True),
    "the USB 2 part has left": (True,),
    "the USB 3 part has left": (False,),
}


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("then", ["event", "restart", "reboot"])
@pytest.mark.parametrize("left", FIRST_EVENTS.values(), ids=FIRST_EVENTS)
@pytest.mark.parametrize("keys", ["", 'identity = "port"'])
def test_what_pods_got_while_two_parts_were_new_in_a_socket_stays_theirs(
    keys: str, left: tuple[bool, ...], then: str, times: int
) -> None:
    """The one that was there first counted at the port of the other one, but no pod had it."""
    rules, node, parts = rule("x", keys), Node(), two_parts()
    node.look(rules, parts[True])
    node.look(rules, *parts)
    node.now += TWO_AFTER_S
    node.look(rules, *parts)
    pods = {path: id_ for id_, path in node.inventory.links().items()}
    node.allocate(*pods.values())
    for _ in range(times):
        node.now += 10 * TWO_AFTER_S
        node.look(rules, *(parts[fast] for fast in left))
        assert {path for path in node.inventory.links().values() if path} <= pods.keys()
    if then != "event":
        node.memory = saved.load(saved.dump(node.memory, "1"), "1" if then == "restart" else "2")
        parts = parts if then == "restart" else two_parts(2)
    for _ in range(2):
        node.look(rules, *parts)
    assert {path: id_ for id_, path in node.inventory.links().items()} == pods


@pytest.mark.parametrize("twins", [False, True], ids=["", "after twins"])
def test_a_socket_is_one_port_again_when_nothing_in_it_is_remembered(*, twins: bool) -> None:
    node = Node()
    if twins:
        # Which of them came first is remembered for ever, with the port of the first one.
        twin = a_tty_in_socket(0, fast=False, serial="T", devnum=90)
        node.look(rule("x"), twin)
        node.look(rule("x"), twin, a_tty_in_socket(1, port="3", fast=False, serial="T", devnum=91))
        assert node.memory.ties
        node.look(TTYS)
        node.now += 10_000.0
        node.look(TTYS, answer=node.nobody_holds_anything())
        assert not node.memory.devices
    stay(node, two_parts())
    assert node.memory.apart
    node.look(TTYS)
    for _ in range(2):
        node.look(TTYS, answer=node.nobody_holds_anything())
        node.now += 10_000.0
    assert not node.memory.devices
    assert not node.memory.apart


@pytest.mark.parametrize("change", [{"slow": []}, [], {"slow": ["x", True]}, {"a usb2 1": ["a usb3 1", 1]}])
def test_a_socket_that_nobody_can_have_saved_makes_a_memory_unreadable(change: object) -> None:
    document = json.loads(saved.dump(Node().memory))
    with pytest.raises(saved.UnreadableMemoryError):
        saved.load(json.dumps({**document, "apart": change}).encode())


@pytest.mark.parametrize("serial", [None, "S"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("gets", ["no pod gets it", "a pod had it", "a pod gets it"])
@pytest.mark.parametrize("memory", [Memory(), resumed(Memory(), 0.0)], ids=["told", "untold"])
def test_the_unit_of_a_pod_was_there_first_although_one_that_came_in_a_boot_is_found_before_it(
    first: bool, serial: str | None, memory: Memory, gets: str
) -> None:
    def both(since: int) -> list[UdevDevice]:
        """The one of the pod, and one of another model."""
        serials, products = (serial, "SE"), ("6001", "6015")
        return [
            replace(
                a_tty_in_socket(
                    each,
                    fast=first is not bool(each),
                    serial=serials[each],
                    product=products[each],
                    devnum=since + each,
                ),
                incarnation=since + each,
            )
            for each in (0, 1)
        ]

    node, rules = Node(), rule("x")
    node.memory = memory
    own, _ = both(4)
    (id_,) = node.look(rules, own)
    node.allocate(id_)
    if gets == "a pod had it":
        node.look(rules, own, a_usb_serial(9, port="4", serial="SE", product="6015"))
        node.allocate("x_SE")
    node.memory = resumed(saved.load(saved.dump(node.memory, "before"), "after"), node.now)
    own, other = both(8)
    node.look(rules, other)
    if gets == "a pod gets it":
        node.allocate("x_SE")
    for look in range(4):
        told = node.look(rules, own, other)
        # A unit that its serial number identifies can wait.
        if serial is None or look > 1:
            assert (told[id_], node.inventory.links()[id_]) == ("Healthy", own.device_node)
        node.now += TWO_AFTER_S


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "slow"])
@pytest.mark.parametrize("order", ["after it left", "before"])
@pytest.mark.parametrize("is_saved", [True, False])
def test_a_unit_that_a_pod_has_is_not_offered_unread_beside_another_one(
    order: str, *, fast: bool, is_saved: bool
) -> None:
    """The other one has the port at which the unit counted while it was alone."""
    node, rules = Node(), rule("x")
    unit = a_tty_in_socket(1, fast=fast, serial="S1", devnum=1)
    other = a_tty_in_socket(2, fast=not fast, serial="S2", product="6002", devnum=2)
    unread = a_tty_in_socket(3, fast=fast, devnum=3)
    node.look(rules, unit)
    node.allocate("x_S1")
    for each in ([], [other]) if order == "after it left" else ([unit, other], [other]):
        node.look(rules, *each)
    told = dict[str, str]()
    for _ in range(4):
        told = node.look(rules, other, unread)
        assert {id_ for id_, why in told.items() if why == "Healthy"} == {"x_S2"}
        node.now += TWO_AFTER_S
        if is_saved and node.memory.apart:
            node.memory = saved.load(saved.dump(node.memory, "boot"), "boot")
    assert told["x_S1"] == (
        "it is unplugged, or it is /dev/ttyACM3, whose serial number could not be read: unplug it and plug "
        "it in again"
    )
    (refusal,) = node.inventory.refusals
    assert refusal.node == "/dev/ttyACM3"
    assert refusal.reason == (
        "its serial number could not be read, so it may be x_S1, which a pod may still hold; unplug it and "
        "plug it in again, at another port if it has no serial number"
    )
    assert node.look(rules, other, a_tty_in_socket(4, fast=fast, serial="S1", devnum=4)) == {
        "x_S1": "Healthy",
        "x_S2": "Healthy",
    }


def test_a_part_without_a_serial_number_stays_offered_when_the_other_one_leaves() -> None:
    """It was there beside the unit of the pod, so it is not that one unread."""
    node, rules = Node(), rule("x")
    unit, other = a_tty_in_socket(1, fast=True, serial="S1", devnum=1), a_tty_in_socket(2, devnum=2)
    told = dict[str, str]()
    for _ in range(3):
        told = node.look(rules, unit, other)
        node.now += TWO_AFTER_S
    assert {*told.values()} == {"Healthy"}
    node.allocate("x_S1")
    del told["x_S1"]
    for _ in range(2):
        assert node.look(rules, other) == {"x_S1": "it is unplugged", **told}
        node.memory = saved.load(saved.dump(node.memory, "boot"), "another boot")


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "slow"])
def test_a_part_that_was_there_is_offered_after_an_edit_as_well(*, fast: bool) -> None:
    """It is known under another id."""
    node, unit = Node(), a_tty_in_socket(1, fast=fast, serial="S1", devnum=1)
    other = a_tty_in_socket(2, fast=not fast, devnum=2)
    stay_apart(node, unit, other)
    node.allocate("x_S1")
    node.look(rule("x"), other)
    for _ in range(2):
        told = node.look(rule("y"), other)
        assert [why for id_, why in told.items() if id_.startswith("y")] == ["Healthy"]


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "slow"])
def test_a_unit_that_comes_back_unread_at_the_other_speed_waits_where_another_part_was(*, fast: bool) -> None:
    node, unit = Node(), a_tty_in_socket(1, fast=not fast, serial="S1", devnum=1)
    stay_apart(node, unit, a_tty_in_socket(2, fast=fast, devnum=2))
    node.allocate("x_S1")
    for there in ([unit], []):
        node.look(rule("x"), *there)
    for _ in range(2):
        assert "Healthy" not in node.look(rule("x"), a_tty_in_socket(3, fast=fast, devnum=3)).values()


def test_what_is_remembered_at_the_port_of_usb_3_alone_is_not_offered_unread_at_the_other_one() -> None:
    node, other = Node(), a_tty_in_socket(2, fast=True, serial="S2", product="6002", devnum=3)
    node.look(rule("x"), a_tty_in_socket(1, fast=True, serial="S1", devnum=1, peer=False))
    node.allocate("x_S1")
    for there in ([a_tty_in_socket(1, serial="S1", devnum=2)], [], [other]):
        node.look(rule("x"), *there)
    for _ in range(3):
        told = node.look(rule("x"), other, a_tty_in_socket(3, devnum=4))
        assert [id_ for id_, why in told.items() if why == "Healthy"] == ["x_S2"]
        node.now += TWO_AFTER_S


def test_what_comes_beside_a_unit_that_is_still_there_is_not_that_unit() -> None:
    """Although the id under which a pod has it is not offered any more."""
    node, unit = Node(), a_tty_in_socket(1, serial="S1", devnum=1)
    stay_apart(node, unit, a_tty_in_socket(2, fast=True, serial="S2", devnum=2))
    node.allocate("x_S1")
    node.look(rule("y"), unit)
    told = node.look(rule("y"), unit, a_tty_in_socket(3, fast=True, devnum=3))
    assert [why for id_, why in told.items() if "port" in id_] == ["Healthy"]


def stay_apart(node: Node, *parts: UdevDevice) -> None:
    """They are there for as long as it takes to know that they are two."""
    for _ in range(3):
        node.look(rule("x"), *parts)
        node.now += TWO_AFTER_S
    node.look(rule("x"), *parts)


@pytest.mark.parametrize("serials", [(None, None), ("SA", "SF"), (None, "SF"), ("SA", None)])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("was_at", [False, True])
@pytest.mark.parametrize("keys", ["", 'identity = "port"'])
@pytest.mark.parametrize("is_held", [False, True], ids=["free", "of another pod"])
def test_a_unit_that_a_pod_got_since_the_boot_was_there_before_one_that_was_there_in_the_boot_before(
    keys: str, serials: tuple[str | None, str | None], *, first: bool, was_at: bool, is_held: bool
) -> None:
    """If a pod has that one, too, its serial number has to say so: otherwise, both pods have the port."""
    rules, node, products = rule("x", keys), Node(), ("6001", "6015")

    def part(*, mine: bool, fast: bool, plug: int) -> UdevDevice:
        serial, product = serials[mine], products[mine]
        tty = a_tty_in_socket(plug, fast=fast, serial=serial, product=product, devnum=plug)
        return replace(tty, incarnation=plug)

    (before,) = node.look(rules, part(mine=False, fast=was_at, plug=1))
    if is_held and serials[False] is not None and not keys:
        node.allocate(before)
    node.look(rules)
    node.memory = saved.load(saved.dump(node.memory, "1"), "2")
    own, other = part(mine=True, fast=first, plug=2), part(mine=False, fast=not first, plug=3)
    told = node.look(rules, own)
    (id_,) = (id_ for id_, why in told.items() if why == "Healthy")
    node.allocate(id_)
    for passed_s in (3600.0, 1.0, TWO_AFTER_S, 1.0):
        node.now += passed_s
        assert node.look(rules, own, other)[id_] == "Healthy"
        assert node.links()[id_] == own.device_node
