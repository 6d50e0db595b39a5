"""Twins that different rules take: an edit gives neither of them the id of the other."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.claims import Claims, Turnover
from genericdp.core.inventory.part import twin_of
from genericdp.core.inventory.past import NO_PAST, WHOLE, Twin
from genericdp.core.inventory.place import locate
from genericdp.core.inventory.twins import SideBySide
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.core.memory.memory import Memory, resumed
from genericdp.core.memory.remember import remember
from genericdp.core.memory.room import TIE_LIMIT
from genericdp.core.memory.saved import UnreadableMemoryError, dump, load, save_within_s
from genericdp.core.memory.take import is_hasty, take_inventory
from tests.scenes.builders import (
    CONTROLLER,
    a_device,
    a_usb_device,
    a_usb_node,
    a_usb_serial,
    by_sys_path,
    resources_of,
)
from tests.scenes.edits import Node, rule
from tests.scenes.inventories import DOMAIN

AT_PORT = '{{ SUBSYSTEM = "tty", ID_PATH = "*-usb-0:{}:*" }}'
ANY = '{ SUBSYSTEM = "tty", ID_VENDOR_ID = "0403" }'


def a_stick(port: str, number: int, product: str = "6001") -> UdevDevice:
    return a_usb_serial(number, serial="A5", port=port, devnum=9 + number, product=product)


FIRST, SECOND = a_stick("1", 1), a_stick("2", 2)
AGAIN = a_stick("2", 3)
TWO_RULES = rule("a", match=AT_PORT.format(1)) + rule("b", match=ANY)

#: Each gives the twin that is there to `b`, while the unit of the pod is unplugged.
EDITS = {
    "the rule of the twin is deleted": rule("b", match=ANY),
    "the rules exchange the ports": rule("b", match=AT_PORT.format(1)) + rule("a", match=ANY),
    "the other rule comes first": rule("b", match=ANY) + rule("a", match=AT_PORT.format(1)),
}


def its_link(node: Node, id_: str) -> str | None:
    return node.inventory.links()[id_]


@pytest.mark.parametrize("keys", [(), ('identity = ["ID_SERIAL_SHORT"]',)], ids=["serial", "property"])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("edited", EDITS.values(), ids=EDITS)
def test_the_twin_of_another_rule_never_gets_the_id_of_a_pod(
    edited: str, keys: tuple[str, ...], *, restarts: bool
) -> None:
    def with_keys(text: str) -> str:
        return text.replace("\nmatch", "".join(f"\n{key}" for key in keys) + "\nmatch")

    node = Node()
    told = node.look(with_keys(TWO_RULES), FIRST, SECOND)
    (held,) = (id_ for id_ in told if id_.startswith("b"))
    node.allocate(held)
    node.look(with_keys(TWO_RULES), FIRST)
    if restarts:
        node.memory = load(dump(node.memory, "before"), "after")
    assert node.look(with_keys(edited), FIRST)[held].startswith("it is unplugged")
    assert its_link(node, held) is None
    node.look(with_keys(edited), FIRST, AGAIN)
    assert its_link(node, held) in (None, AGAIN.device_node)
    assert node.look(with_keys(TWO_RULES), FIRST, AGAIN)[held] == "Healthy"
    assert its_link(node, held) == AGAIN.device_node


def test_a_twin_that_no_rule_took_before_never_gets_the_id_of_a_pod() -> None:
    node = Node()
    node.look(rule("b", match=AT_PORT.format(2)), FIRST, SECOND)
    node.allocate("b_A5")
    node.look(rule("b", match=AT_PORT.format(2)), FIRST)
    told = node.look(rule("b", match=ANY), FIRST)
    assert told.pop("b_A5").startswith("it is unplugged")
    assert [*told.values()] == ["Healthy"]
    assert its_link(node, "b_A5") is None


@pytest.mark.parametrize("restarts", [False, True])
def test_twins_stay_known_under_another_name_of_the_resource(*, restarts: bool) -> None:
    """The one that is there when the resource is renamed has the plain id, at its port."""
    node = Node()
    node.look(rule("b", match=ANY), FIRST, SECOND)
    node.look(rule("b", match=ANY), SECOND)
    if restarts:
        node.memory = load(dump(node.memory, "before"), "after")
    node.look(rule("c", match=ANY), SECOND, answer=node.nobody_holds_anything())
    node.allocate("c_A5")
    assert its_link(node, "c_A5") == SECOND.device_node
    told = node.look(rule("c", match=ANY), FIRST)
    assert told["c_A5"].startswith("it is unplugged")
    assert its_link(node, "c_A5") is None


@pytest.mark.parametrize("is_held", [False, True])
def test_after_a_rename_a_twin_waits_once_the_unit_of_a_pod_has_left_unless_another_pod_holds_it(
    *, is_held: bool
) -> None:
    """Nothing shows which of the two the first pod got, but the second pod got this one."""
    renamed = rule("c", match=ANY)
    node = Node()
    node.look(rule("b", match=ANY), FIRST)
    node.allocate("b_A5")
    node.look(renamed, FIRST)
    (twin,) = (id_ for id_, why in node.look(renamed, FIRST, SECOND).items() if why == "Healthy")
    if is_held:
        node.allocate(twin)
    told = node.look(renamed, SECOND)
    assert told[twin] == ("Healthy" if is_held else "a pod may still hold it as b_A5 of example.com/b")
    assert its_link(node, twin) == (SECOND.device_node if is_held else None)


def test_the_rules_by_port_keep_the_ids_of_twins_that_change_places() -> None:
    rules = rule("a", match=AT_PORT.format(1)) + rule("b", match=AT_PORT.format(2))
    node = Node()
    assert node.look(rules, FIRST, SECOND) == {"a_A5": "Healthy", "b_A5": "Healthy"}
    assert node.look(rules) == {"a_A5": "it is unplugged", "b_A5": "it is unplugged"}
    assert node.look(rules, a_stick("2", 1), a_stick("1", 2)) == {"a_A5": "Healthy", "b_A5": "Healthy"}


def test_if_the_memory_is_lost_the_twins_of_two_rules_keep_their_ids() -> None:
    """The links show which unit each id meant."""
    rules = rule("a", match=AT_PORT.format(1)) + rule("b", match=AT_PORT.format(2))
    node = Node()
    node.look(rules, FIRST, SECOND)
    node.allocate("a_A5")
    node.allocate("b_A5")
    before = node.links()
    held = frozenset({("example.com/a", "a_A5"), ("example.com/b", "b_A5")})
    led = {name: path for name, path in before.items() if path is not None}
    node.memory = resumed(Memory(), node.now)
    answer = Answer(frozenset(), node.now, complete=False, checkpointed=None, earlier=held, led=led)
    for _ in range(2):
        assert node.look(rules, FIRST, SECOND, answer=answer) == {"a_A5": "Healthy", "b_A5": "Healthy"}
        assert node.links() == before


def test_a_unit_that_was_never_beside_another_one_is_known_at_any_port() -> None:
    node = Node()
    node.look(TWO_RULES, SECOND)
    node.allocate("b_A5")
    moved = a_stick("3", 4)
    assert node.look(TWO_RULES, moved)["b_A5"] == "Healthy"
    assert its_link(node, "b_A5") == moved.device_node


@pytest.mark.parametrize("keys", [(), ('identity = ["ID_SERIAL_SHORT"]',)], ids=["serial", "property"])
def test_parts_of_a_dock_with_one_serial_number_are_no_twins(keys: tuple[str, ...]) -> None:
    """They are different models, and move with the dock."""
    rules = "".join(
        rule(name, *keys, match=f'{{ SUBSYSTEM = "tty", ID_MODEL_ID = "{product}" }}')
        for name, product in (("a", "6001"), ("b", "6015"))
    )
    node = Node()
    node.look(rules, a_stick("1.1", 1), a_stick("1.2", 2, "6015"))
    assert node.memory.twins == frozenset()
    moved = (a_stick("2.1", 1), a_stick("2.2", 2, "6015"))
    assert [*node.look(rules, *moved).values()] == ["Healthy", "Healthy"]


def test_docks_are_no_twins_because_parts_of_them_are() -> None:
    """The dock is known by its own serial number, at any port."""

    def in_dock(port: str, serial: str, number: int) -> UdevDevice:
        dock = a_usb_device(port, product="d0cc", serial=serial, devnum=20 + number)
        part = replace(a_usb_device(f"{port}.1", serial="A5", devnum=10 + number), parent=dock)
        return a_usb_node(part, "tty", f"ttyUSB{number}", number=f"c 188:{number}")

    rules = rule("b", 'group_by = { ID_MODEL_ID = "d0cc" }')
    node = Node()
    node.look(rules, in_dock("1", "D1", 1), in_dock("2", "D2", 2))
    assert {twin.key for twin in node.memory.twins} == {"A5"}
    assert node.look(rules, in_dock("3", "D1", 1), in_dock("2", "D2", 2)) == {
        "b_D1": "Healthy",
        "b_D2": "Healthy",
    }


@pytest.mark.parametrize("restarts", [False, True])
def test_an_id_that_a_pod_holds_does_not_pass_to_another_model_with_its_serial_number(
    *, restarts: bool
) -> None:
    other = a_stick("2", 2, "6015")
    node = Node()
    node.look(rule("b", match=AT_PORT.format(1)), FIRST, other)
    node.allocate("b_A5")
    if restarts:
        node.memory = load(dump(node.memory, "before"), "after")
    for there in ([], [other]):
        assert node.look(rule("b", match=ANY), *there) == {"b_A5": "it is unplugged"}
    (refusal,) = node.inventory.refusals
    assert refusal.reason == "its id, b_A5, belongs to another unit, which a pod may still hold"
    told = node.look(rule("b", match=ANY), FIRST, other)
    assert [*told.values()] == ["Healthy", "Healthy"]
    assert its_link(node, "b_A5") == FIRST.device_node


@pytest.mark.parametrize(
    ("keys", "moved"),
    [
        ((), a_stick("1", 2, "6015")),
        ((), a_stick("2", 2)),
        (('identity = ["ID_SERIAL_SHORT"]',), a_stick("2", 2, "6015")),
    ],
    ids=["another mode at its port", "another port", "told by a property"],
)
def test_a_unit_of_a_pod_may_change_its_model_or_its_port(keys: tuple[str, ...], moved: UdevDevice) -> None:
    node = Node()
    (id_,) = node.look(rule("b", *keys, match=ANY), FIRST)
    node.allocate(id_)
    assert node.look(rule("b", *keys, match=ANY), moved) == {id_: "Healthy"}


@pytest.mark.parametrize(
    ("first", "second", "are_twins"),
    [
        ({"P": "a", "Q": "b"}, {"P": "a", "Q": "b"}, True),
        ({"P": "a", "Q": "b"}, {"P": "a", "Q": "c"}, False),
        ({"P": "ab", "Q": "c"}, {"P": "a", "Q": "bc"}, False),
        ({"P": "a"}, {"P": "a"}, False),
        ({}, {}, False),
    ],
)
def test_units_are_twins_if_they_have_the_same_values_of_all_properties_that_a_rule_names(
    first: dict[str, str], second: dict[str, str], *, are_twins: bool
) -> None:
    nodes = [
        a_usb_node(a_usb_device(f"{n}", serial=None, devnum=9 + n), "tty", f"ttyUSB{n}", properties=values)
        for n, values in enumerate((first, second), 1)
    ]
    node = Node()
    node.look(rule("b", 'identity = ["P", "Q"]'), *nodes)
    assert bool(node.memory.twins) is are_twins


def test_the_same_value_of_another_property_makes_no_twins() -> None:
    nodes = [
        a_usb_node(
            a_usb_device(f"{n}", serial=None, devnum=9 + n), "tty", f"ttyUSB{n}", properties={name: "x"}
        )
        for n, name in enumerate("PQ", 1)
    ]
    node = Node()
    node.look("".join(rule(name.lower(), f'identity = ["{name}"]') for name in "PQ"), *nodes)
    assert node.memory.twins == frozenset()


def test_what_a_controller_says_of_itself_makes_no_twins_of_the_units_below_it() -> None:
    controller = a_device(CONTROLLER, subsystem="pci", properties={"PCI_SLOT_NAME": "0000:00:14.0"})
    units = [replace(a_usb_device(f"{n}", devnum=9 + n), parent=controller) for n in (1, 2)]
    nodes = [a_usb_node(unit, "tty", f"ttyUSB{n}", number=f"c 188:{n}") for n, unit in enumerate(units)]
    node = Node()
    node.look(rule("a") + rule("b", 'identity = ["PCI_SLOT_NAME"]', match='{ SUBSYSTEM = "usb" }'), *nodes)
    assert {twin.basis for twin in node.memory.twins} == {"serial"}


def test_units_with_a_meaningless_serial_number_are_no_twins() -> None:
    node = Node()
    node.look(rule("b"), *(a_usb_serial(n, serial="0001", port=f"{n}", devnum=9 + n) for n in (1, 2)))
    assert node.memory.twins == frozenset()


@pytest.mark.parametrize("stay", [False, True])
def test_twins_that_come_later_are_known_besides_those_that_were_there_first(*, stay: bool) -> None:
    others = [a_usb_serial(n, serial="B6", port=f"{n}", devnum=9 + n) for n in (3, 4)]
    node = Node()
    node.look(rule("b"), FIRST, SECOND)
    node.look(rule("b"), *((FIRST, SECOND) if stay else ()), *others)
    assert {twin.key for twin in node.memory.twins} == {"A5", "B6"}


def test_nodes_of_one_unit_that_different_rules_take_are_no_twins() -> None:
    rules = "".join(
        rule(name, match=f'{{ SUBSYSTEM = "tty", ID_USB_INTERFACE_NUM = "{number}" }}')
        for name, number in (("a", "00"), ("b", "01"))
    )

    def nodes(port: str) -> list[UdevDevice]:
        usb = a_usb_device(port, serial="A5", devnum=9)
        return [
            a_usb_node(usb, "tty", f"ttyUSB{n}", interface=f"{n:02x}", number=f"c 188:{n}") for n in range(2)
        ]

    node = Node()
    first = node.look(rules, *nodes("1"))
    assert len(first) == 2
    assert node.look(rules, *nodes("3")) == dict.fromkeys(first, "Healthy")


def test_the_tie_of_twins_of_two_rules_waits_until_every_device_has_been_read() -> None:
    """An event shows only one device: the unit may have been elsewhere a moment ago."""
    node = Node()
    node.look(TWO_RULES, SECOND)
    before = node.memory
    node.look(TWO_RULES, FIRST, SECOND)
    assert is_hasty(before, node.memory)


@pytest.mark.parametrize(
    "found",
    [
        {"ties": {"b_A5": "a port"}},
        {"twins": frozenset({Twin("serial", "A5", "0403:6001", "if00")})},
    ],
    ids=["ties", "twins"],
)
def test_neither_new_ties_nor_new_twins_count_before_every_device_has_been_read(
    found: dict[str, Any],
) -> None:
    after = replace(Memory(), **found)
    assert is_hasty(Memory(), after)
    assert not is_hasty(after, after)
    assert not is_hasty(after, Memory())


@pytest.mark.parametrize("restarts", [False, True])
def test_the_link_to_a_part_of_a_kit_never_leads_to_its_twin_of_another_rule(*, restarts: bool) -> None:
    """Its name says nothing but the serial number."""
    kit = rule("kit", 'group_by = "all"', match=AT_PORT.format(2))
    every = rule("kit", 'group_by = "all"', match=ANY)
    node = Node()
    node.look(rule("a", match=AT_PORT.format(1)) + kit, FIRST, SECOND)
    node.allocate("kit")
    (link,) = (
        link for link, path in node.inventory.links().items() if path == "/dev/ttyUSB2" and "@" in link
    )
    node.look(rule("a", match=AT_PORT.format(1)) + kit, FIRST)
    if restarts:
        node.memory = load(dump(node.memory, "before"), "after")
    node.look(every, FIRST)
    assert its_link(node, link) is None
    node.look(every, AGAIN)
    assert its_link(node, link) == AGAIN.device_node


@pytest.mark.parametrize("keys", [(), ('group_by = "all"',)], ids=["device", "link of a kit"])
def test_twins_are_tied_although_nothing_else_has_changed_in_the_resource_of_one(
    keys: tuple[str, ...],
) -> None:
    """The daemon keeps what it built of a resource as long as it would build the same again."""
    resources = resources_of(rule("a", match=AT_PORT.format(1)) + rule("b", *keys, match=AT_PORT.format(2)))
    builder = Builder(resources, DOMAIN)
    assert builder.build(by_sys_path(SECOND)).ties == {}
    after = builder.build(by_sys_path(FIRST, SECOND))
    assert after == Builder(resources, DOMAIN).build(by_sys_path(FIRST, SECOND))
    assert any(name.startswith("b") for name in after.ties)


@pytest.mark.parametrize("keys", [(), ('group_by = "all"',)], ids=["device", "link of a kit"])
def test_a_unit_is_tied_when_it_becomes_known_as_a_twin_and_nothing_else_has_changed(
    keys: tuple[str, ...],
) -> None:
    resources = resources_of(rule("b", *keys, match=ANY))
    builder, there = Builder(resources, DOMAIN), by_sys_path(SECOND)
    assert builder.build(there).ties == {}
    past = replace(NO_PAST, twins=frozenset({Twin("serial", "A5", "0403:6001", WHOLE)}))
    after = builder.build(there, past)
    assert after == Builder(resources, DOMAIN).build(there, past)
    assert after.ties


def test_a_part_of_a_kit_whose_twin_another_rule_takes_has_its_link_without_a_mark() -> None:
    node = Node()
    kit = rule("kit", 'group_by = "all"', match=AT_PORT.format(2))
    node.look(kit, SECOND)
    (alone,) = node.inventory.links()
    node = Node()
    node.look(rule("a", match=AT_PORT.format(1)) + kit, FIRST, SECOND)
    assert its_link(node, alone) == SECOND.device_node


def test_the_tie_of_a_part_of_a_kit_stays_when_only_its_twin_is_left() -> None:
    kit = rule("kit", 'group_by = "all"', match=ANY)
    node = Node()
    for there in ((FIRST,), (FIRST, SECOND)):
        node.look(kit, *there)
    ties = node.memory.ties
    assert ties
    node.memory = replace(node.memory, devices={})
    node.look(kit, SECOND)
    assert node.memory.ties == ties


def test_what_nobody_can_tell_apart_has_no_twin() -> None:
    assert twin_of(locate(FIRST)) is not None
    assert twin_of(replace(locate(FIRST), untold="disk")) is None


def test_twins_by_the_thousand_do_not_fill_the_memory() -> None:
    node = Node()
    node.look(TWO_RULES, FIRST, SECOND)
    (twin,) = (twin for twin in node.memory.twins if twin.within == "if00")
    many = frozenset(twin._replace(key=str(n)) for n in range(TIE_LIMIT))
    for found, kept in ((many, many), (many | {twin}, {twin})):
        inventory = replace(node.inventory, twins=found)
        assert remember(inventory, node.memory, node.now, None)[1].twins == kept


def test_a_unit_beside_another_one_in_its_socket_is_no_twin() -> None:
    """It may be that unit at another speed."""
    seen, claims = SideBySide(resources_of(TWO_RULES)), Claims(resources_of(TWO_RULES))
    turnover = claims.see(by_sys_path(FIRST, SECOND))
    claims.sockets.new = {"/sys/devices/pci0000:00/0000:00:14.0/usb1/1-2": "somewhere"}
    seen.see(turnover, claims, NO_PAST)
    assert seen.twins == frozenset()
    claims.sockets.new = {}
    seen.see(Turnover(turnover.came, turnover.came), claims, NO_PAST)
    assert {twin.key for twin in seen.twins} == {"A5"}
    seen.see(claims.see(by_sys_path(FIRST)), claims, NO_PAST)
    assert seen.twins == frozenset()


def test_what_has_left_leaves_nothing_behind() -> None:
    resources = resources_of(TWO_RULES)
    seen, claims = SideBySide(resources), Claims(resources)
    for there in ((FIRST, SECOND), (SECOND,), ()):
        seen.see(claims.see(by_sys_path(*there)), claims, NO_PAST)
    assert vars(seen) == vars(SideBySide(resources))


def test_siblings_at_one_port_are_no_twins() -> None:
    usb = a_usb_device("1", serial="A5", devnum=9)
    nodes = [a_usb_node(usb, "tty", f"ttyACM{n}", number=f"c 166:{n}") for n in range(2)]
    node = Node()
    assert len(node.look(rule("b", match=ANY), *nodes)) == 2
    assert node.memory.twins == frozenset()


def test_twins_that_a_rule_identifies_by_port_need_no_tie() -> None:
    node = Node()
    node.look(rule("b", 'identity = "port"', match=ANY), FIRST, SECOND)
    assert node.memory.ties == {}


#: Edits that take the unit of a pod from it for a while.
TAKEN_BY_NOTHING = {
    "the rule file is moved away": "",
    "the match is narrowed": rule("b", match='{ SUBSYSTEM = "tty", ID_VENDOR_ID = "10c4" }'),
    "the identity is edited": rule("b", match=AT_PORT.format(2)),
    "the identity is edited to the port": rule("b", 'identity = "port"', match=ANY),
}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("keys", [(), ('identity = ["ID_SERIAL_SHORT"]',)], ids=["serial", "property"])
@pytest.mark.parametrize("meanwhile", TAKEN_BY_NOTHING.values(), ids=TAKEN_BY_NOTHING)
def test_a_twin_that_comes_while_no_rule_takes_the_unit_of_a_pod_is_known(
    meanwhile: str, keys: tuple[str, ...], *, restarts: bool
) -> None:
    node, rules = Node(), rule("b", *keys, match=ANY)
    (held,) = node.look(rules, SECOND)
    node.allocate(held)
    node.look(meanwhile, SECOND)
    if restarts:
        node.memory = load(dump(node.memory, "before"), "after")
    node.look(meanwhile, FIRST, SECOND)
    node.look(meanwhile, FIRST)
    assert node.look(rules, FIRST)[held].startswith("it is unplugged")
    assert its_link(node, held) is None
    assert node.look(rules, FIRST, AGAIN)[held] == "Healthy"
    assert its_link(node, held) == AGAIN.device_node


def a_dock(port: str, number: int, above: UdevDevice | None = None) -> UdevDevice:
    """The hub of a dock, whatever is behind it."""
    dock = a_usb_device(port, product="d0cc", serial="D1", devnum=20 + number)
    properties = {**dock.properties, "ID_SERIAL_SHORT": "D1", "TYPE": "9/0/1"}
    return replace(dock, parent=above or dock.parent, properties=properties)


def in_dock(dock: UdevDevice, port: str, number: int, part: str | None = None) -> UdevDevice:
    unit = replace(a_usb_device(f"{port}.1", serial=part, devnum=10 + number), parent=dock)
    return a_usb_node(
        unit,
        "tty",
        f"ttyUSB{number}",
        number=f"c 188:{number}",
        properties={"ID_PATH": f"pci-0000:00:14.0-usb-0:{port}:1.0"},
    )


DOCKS = 'group_by = { ID_MODEL_ID = "d0cc" }'


@pytest.mark.parametrize("part", ["S", None])
@pytest.mark.parametrize("is_inner", [False, True])
@pytest.mark.parametrize("keys", [(), ('identity = ["ID_SERIAL_SHORT"]',)], ids=["serial", "property"])
def test_docks_with_one_serial_number_are_twins(
    keys: tuple[str, ...], part: str | None, *, is_inner: bool
) -> None:
    """Also if one is plugged into the other one."""
    docks = rule("b", DOCKS, *keys)
    apart = rule("a", DOCKS, *keys, match=AT_PORT.format(1)) + docks
    outer = a_dock("1", 1)
    port = "1.4" if is_inner else "2"
    first = in_dock(outer, "1", 1, part)
    second = in_dock(a_dock(port, 2, outer if is_inner else None), port, 2, part)
    node = Node()
    (held,) = (id_ for id_ in node.look(apart, first, second) if id_.startswith("b"))
    node.allocate(held)
    node.look(apart, first)
    told = node.look(docks, first)
    assert told.pop(held).startswith("it is unplugged")
    assert [*told.values()] == ["Healthy"]
    assert node.look(docks, first, second)[held] == "Healthy"
    assert second.device_node in {path for link, path in node.links().items() if link.startswith(held)}


def an_inner_hub(dock: UdevDevice, port: str, number: int) -> UdevDevice:
    hub = a_usb_device(f"{port}.1", product="0002", serial=None, devnum=30 + number)
    return replace(hub, parent=dock, properties={**hub.properties, "TYPE": "9/0/1"})


def test_docks_with_hubs_of_their_own_are_twins() -> None:
    def behind_two_hubs(port: str, number: int) -> UdevDevice:
        return in_dock(an_inner_hub(a_dock(port, number), port, number), f"{port}.1", number)

    docks = rule("b", DOCKS)
    apart = rule("a", DOCKS, match='{ SUBSYSTEM = "tty", usb = { port = "1.*" } }') + docks
    node, first, second = Node(), behind_two_hubs("1", 1), behind_two_hubs("2", 2)
    node.look(apart, first, second)
    node.allocate("b_D1")
    node.look(apart, first)
    assert node.look(docks, first)["b_D1"].startswith("it is unplugged")


def a_red(device: UdevDevice) -> UdevDevice:
    return replace(device, properties={**device.properties, "ID_COLOR": "red"})


def test_a_property_by_which_only_a_remembered_id_is_told_shows_twins() -> None:
    """No rule names it at the moment."""
    red = rule("b", 'identity = ["ID_COLOR"]', match=ANY)
    node = Node()
    (held,) = node.look(red, a_red(SECOND))
    node.allocate(held)
    plain = rule("b", match=AT_PORT.format(2))
    for there in ([SECOND], [FIRST, SECOND], [FIRST]):
        node.look(plain, *map(a_red, there))
    assert node.look(red, a_red(FIRST))[held].startswith("it is unplugged")


def test_twins_by_serial_number_are_twins_by_the_properties_that_udev_makes_of_it() -> None:
    node = Node()
    node.look(rule("b", match=ANY), FIRST, SECOND)
    edited = rule("b", 'identity = ["ID_SERIAL_SHORT"]', match=ANY)
    node.look(edited, SECOND, answer=node.nobody_holds_anything())
    (held,) = (id_ for id_, why in node.look(edited, SECOND).items() if why == "Healthy")
    node.allocate(held)
    assert node.look(edited, FIRST)[held].startswith("it is unplugged")


def test_docks_that_only_a_property_of_their_parts_identifies_are_twins() -> None:
    def a_red_dock(port: str, number: int) -> UdevDevice:
        node = in_dock(a_usb_device(port, product="d0cc", serial=None, devnum=20 + number), port, number)
        return replace(node, properties={**node.properties, "ID_COLOR": "red"})

    docks = rule("b", DOCKS, 'identity = ["ID_COLOR"]')
    apart = rule("a", DOCKS, 'identity = ["ID_COLOR"]', match=AT_PORT.format(1)) + docks
    node, first, second = Node(), a_red_dock("1", 1), a_red_dock("2", 2)
    (held,) = (id_ for id_ in node.look(apart, first, second) if id_.startswith("b"))
    node.allocate(held)
    node.look(apart, first)
    assert node.look(docks, first)[held].startswith("it is unplugged")


def test_a_dock_that_moves_has_no_twin_while_its_old_hub_is_there_without_its_parts() -> None:
    node, docks = Node(), rule("b", DOCKS)
    old = a_dock("2", 1)
    inner = an_inner_hub(old, "2", 1)
    node.look(docks, old, inner, in_dock(inner, "2.1", 1))
    node.allocate("b_D1")
    dock = a_dock("3", 2)
    moved = in_dock(an_inner_hub(dock, "3", 2), "3.1", 2)
    node.look(docks, old, inner, moved)
    assert node.look(docks, moved) == {"b_D1": "Healthy"}


@pytest.mark.parametrize("keys", [(), ('identity = ["ID_SERIAL_SHORT"]',)], ids=["serial", "property"])
def test_what_is_known_of_twins_outlasts_a_restart(keys: tuple[str, ...]) -> None:
    node = Node()
    node.look(rule("a", *keys, match=AT_PORT.format(1)) + rule("b", *keys, match=ANY), FIRST, SECOND)
    assert node.memory.twins
    assert load(dump(node.memory, "before"), "after").twins == node.memory.twins


def test_twins_are_saved_in_one_order_and_only_if_there_are_any() -> None:
    """An earlier release knew of none, so its file stays the same."""
    twins = frozenset(Twin("serial", str(n), "0403:6001", "if00") for n in range(20))
    saved = json.loads(dump(replace(Memory(), twins=twins), "boot"))
    assert saved["twins"] == sorted(map(list, twins))
    assert "twins" not in json.loads(dump(Memory(), "boot"))


def test_new_twins_are_saved_at_once() -> None:
    """After a power cut, nothing else tells that they were side by side."""
    after = replace(Memory(), twins=frozenset({Twin("serial", "A5", "0403:6001", "if00")}))
    assert save_within_s(Memory(), after) == 0.0


@pytest.mark.parametrize("twin", [["serial", 5, "", ""], ["serial", "A5", ""], "serial", None])
def test_a_saved_memory_in_which_a_twin_is_malformed_is_not_read(twin: object) -> None:
    document = {**json.loads(dump(Memory(), "boot")), "twins": [twin]}
    with pytest.raises(UnreadableMemoryError):
        load(json.dumps(document).encode(), "boot")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_unit_beside_another_model_with_its_serial_number_waits_at_each_port(*, restarts: bool) -> None:
    """They are told apart by their models, so it is the unit of the pod wherever it is."""

    def a_unit(number: int, port: str, product: str) -> UdevDevice:
        unit = a_usb_serial(number, port=port, serial="DOCK", product=product, devnum=5 + number)
        return replace(unit, incarnation=10 + number)

    rules = rule("w", match='{ SUBSYSTEM = "tty", usb = { port = ["1", "2"] } }') + rule("u")
    node = Node()
    own, other = a_unit(0, "2", "6001"), a_unit(1, "1", "6015")
    node.look(rules, own)
    told = node.look(rules, own, other)
    for id_ in told:
        node.allocate(id_)
    for number, port in enumerate(("7", "9"), start=2):
        node.look(rules, other)
        if restarts:
            node.memory = load(dump(node.memory))
        now = node.look(rules, other, a_unit(number, port, "6001"))
        del now["w_DOCK"]
        (new,) = now.keys() - told.keys()
        assert now.pop(new) == "a pod may still hold it as w_DOCK of example.com/w"
        assert now == dict.fromkeys(told.keys() - {"w_DOCK"}, "Healthy")


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("mine", "others", "first"),
    [(("00",), ("00", "01"), 0), (("00", "01"), ("00",), 0), (("00", "01"), ("00",), 1)],
)
def test_another_model_with_the_serial_number_does_not_get_the_port_of_an_id_that_a_pod_holds(
    mine: Sequence[str], others: Sequence[str], first: int, *, restarts: bool
) -> None:
    """It has a node more, so it got an id, while the unit of the pod was away."""

    def a_unit(port: str, product: str, interfaces: Sequence[str], since: int) -> list[UdevDevice]:
        usb = a_usb_device(port, serial="A1", product=product, devnum=since)
        return [
            replace(
                a_usb_node(usb, "tty", f"ttyUSB{since + n}", interface=at, number=f"c 188:{since + n}"),
                incarnation=since + n,
            )
            for n, at in enumerate(interfaces)
        ]

    node, rules = Node(), rule("u")
    held = [*node.look(rules, *a_unit("2", "6001", mine, 10))][first:]
    for id_ in held:
        node.allocate(id_)
    node.look(rules)
    other = a_unit("5", "6010", others, 20)
    node.look(rules, *other)
    if restarts:
        node.memory = load(dump(node.memory))
    told = node.look(rules, *other, *a_unit("2", "6001", mine, 30))
    assert {told[id_] for id_ in held} == {"Healthy"}
    assert [node.inventory.links()[id_] for id_ in held] == [
        f"/dev/ttyUSB{30 + n}" for n in range(first, len(mine))
    ]


def a_model(number: int, port: str, product: str, serial: str | None = "A5") -> UdevDevice:
    stick = a_usb_serial(number, port=port, serial=serial, product=product, devnum=4 + number)
    return replace(stick, incarnation=10 + number)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("keys", ["", 'group_by = "usb_device"'])
def test_a_swap_of_two_models_with_one_serial_number_gives_no_pod_the_unit_of_the_other_one(
    keys: str, *, one_by_one: bool, restarts: bool
) -> None:
    rules, node = rule("u", keys), Node()
    one, other = a_model(0, "1", "6001"), a_model(1, "2", "6015")
    ids = sorted(node.look(rules, one, other))
    for id_ in ids:
        node.allocate(id_)
    links = node.inventory.links()
    node.look(rules, *((other,) if one_by_one else ()))
    node.look(rules, *((a_model(3, "1", "6015"),) if one_by_one else (a_model(2, "2", "6001"),)))
    for _ in range(2):
        told = node.look(rules, a_model(2, "2", "6001"), a_model(3, "1", "6015"))
        assert "Healthy" not in told.values()
        assert {*node.inventory.links().values()} == {None}
        if restarts:
            node.memory = load(dump(node.memory))
    node.look(rules)
    assert node.look(rules, one, other) == dict.fromkeys(ids, "Healthy")
    assert node.inventory.links() == links


def test_a_twin_that_changes_its_mode_is_its_pods_although_the_other_one_has_not_changed() -> None:
    rules, node = rule("u"), Node()
    ids = sorted(node.look(rules, a_model(0, "1", "6001"), a_model(1, "2", "6001")))
    node.now += TWO_AFTER_S
    node.look(rules, a_model(0, "1", "6001"), a_model(1, "2", "6001"))
    for id_ in ids:
        node.allocate(id_)
    told = node.look(rules, a_model(2, "1", "6015"), a_model(1, "2", "6001"))
    assert told == dict.fromkeys(ids, "Healthy")
    assert {*node.inventory.links().values()} == {"/dev/ttyUSB2", "/dev/ttyUSB1"}


def test_a_kit_waits_if_another_model_is_where_its_unit_was_and_the_unit_is_elsewhere() -> None:
    kit = rule("kit", 'group_by = "all"', match='{ SUBSYSTEM = "tty", usb = { port = "1" } }')
    node = Node()
    (held,) = node.look(kit, a_model(0, "1", "6001"))
    node.allocate(held)
    node.look(kit)
    for _ in range(2):
        told = node.look(kit, a_model(1, "4", "6001"), a_model(2, "1", "6015"))
        assert told[held] != "Healthy"
        assert {*node.inventory.links().values()} == {None}
    node.look(kit)
    assert node.look(kit, a_model(3, "1", "6001")) == {held: "Healthy"}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("port", ["2", "3"])
@pytest.mark.parametrize("side_by_side", [False, True])
def test_another_model_at_the_port_of_a_pods_unit_is_not_that_unit_once_that_is_plugged_in_elsewhere(
    port: str, *, side_by_side: bool, restarts: bool
) -> None:
    """Until then, the unit may have changed its mode."""
    rules, node = rule("u"), Node()
    own, other = a_model(0, "1", "6001"), a_model(1, "2", "6015")
    held = "u_A5"
    node.look(rules, own)
    if side_by_side:
        node.look(rules, own, other)
        node.look(rules, own)
    node.allocate(held)
    node.look(rules)
    here = a_model(2, "1", "6015")
    assert node.look(rules, here)[held] == "Healthy"
    if restarts:
        node.memory = load(dump(node.memory))
    for _ in range(2):
        told = node.look(rules, here, a_model(3, port, "6001"))
        assert "Healthy" not in told.values()
        assert {*node.inventory.links().values()} == {None}
        if restarts:
            node.memory = load(dump(node.memory))
    node.look(rules)
    assert node.look(rules, a_model(4, "1", "6001"))[held] == "Healthy"
    assert node.inventory.links()[held] == "/dev/ttyUSB4"


def test_the_unit_of_a_pod_is_noticed_elsewhere_although_no_rule_takes_it_there() -> None:
    """Nothing changes of the device itself, so it stays the same object."""
    rules, node = rule("u", match='{ SUBSYSTEM = "tty", usb = { port = "1" } }'), Node()
    node.look(rules, a_model(0, "1", "6001"))
    node.allocate("u_A5")
    node.look(rules)
    builder, memory, here = (
        Builder(resources_of(rules, domain=DOMAIN), DOMAIN),
        node.memory,
        a_model(2, "1", "6015"),
    )
    links = []
    for plugged in ((here,), (here, a_model(3, "3", "6001"))):
        offered, memory = take_inventory(builder, by_sys_path(*plugged), memory, node.now)
        links.append(offered.links()["u_A5"])
    assert links == ["/dev/ttyUSB2", None]


@pytest.mark.parametrize("serial", ["A5", None])
def test_a_unit_that_changes_its_mode_and_back_is_its_pods(serial: str | None) -> None:
    rules, node = rule("u"), Node()
    (held,) = node.look(rules, a_model(0, "1", "6001", serial))
    node.allocate(held)
    for number, product in enumerate(("6015", "6001", "6015", "6001"), start=1):
        assert node.look(rules, a_model(number, "1", product, serial)) == {held: "Healthy"}
        # Only what a serial number tells can be noticed elsewhere.
        missing = serial is not None and product == "6015"
        assert bool(node.memory.devices[held].missing) is missing
        node.memory = load(dump(node.memory))


def test_an_id_made_of_a_port_means_the_port_whatever_is_plugged_in_there() -> None:
    rules, node = rule("u", 'identity = "port"'), Node()
    (held,) = node.look(rules, a_model(0, "1", "6001"))
    node.allocate(held)
    node.look(rules, a_model(1, "1", "6015"))
    assert node.look(rules, a_model(1, "1", "6015"), a_model(2, "3", "6001"))[held] == "Healthy"


@pytest.mark.parametrize("product", ["6001", "6015"])
def test_the_model_that_a_pod_got_in_a_kit_stays_in_mind_whatever_else_the_kit_loses(product: str) -> None:
    rules = rule("kit", 'group_by = "all"', match='{ SUBSYSTEM = "tty", usb = { port = ["1", "2"] } }')
    rules += rule("u")
    rest, swapped, node = a_model(5, "1", product, "B6"), a_model(1, "2", "6015"), Node()
    node.look(rules, rest, a_model(0, "2", "6001"))
    node.allocate("kit")
    for plugged in ((rest, swapped), (swapped,), (rest, swapped)):
        assert node.look(rules, *plugged) == {"kit": "Healthy"}
    told = node.look(rules, rest, swapped, a_model(2, "3", "6001"))
    assert told == {
        "kit": "the device plugged in now may not be the one that a pod got; delete that pod",
        "u_A5": "a pod may still hold it as kit of example.com/kit",
    }


def test_a_part_of_a_kit_is_not_another_model_at_its_port_if_it_is_plugged_in_elsewhere() -> None:
    kit = rule("kit", 'group_by = "all"', match='{ SUBSYSTEM = "tty", usb = { port = ["1", "2"] } }') + rule(
        "u"
    )
    node = Node()
    rest = replace(a_usb_serial(5, port="1", serial="B6"), incarnation=20)
    node.look(kit, rest, a_model(0, "2", "6001"))
    node.allocate("kit")
    links = node.inventory.links()
    node.look(kit, rest)
    node.look(kit, rest, a_model(1, "3", "6001"))
    for _ in range(2):
        told = node.look(kit, rest, a_model(1, "3", "6001"), a_model(2, "2", "6015"))
        assert told["u_A5"] == "a pod may still hold it as kit of example.com/kit"
        assert {node.inventory.links()[link] for link in links} <= {None, rest.device_node}
        node.memory = load(dump(node.memory))


def test_nothing_of_what_may_be_a_twin_is_offered_while_udev_processes_the_unit_of_a_pod() -> None:
    """While udev has not finished with the first unit, nobody knows that the second is its twin."""

    def a_unit_of_two(port: str, first: int, *, initialized: bool = True) -> list[UdevDevice]:
        usb = a_usb_device(port, serial="SAME", devnum=10 + first)
        nodes = [
            a_usb_node(usb, "tty", f"ttyACM{first + n}", interface=f"0{n}", number=f"c 166:{first + n}")
            for n in range(2)
        ]
        return [replace(each, initialized=initialized, incarnation=first + 1) for each in nodes]

    node, rules = Node(), rule("x")
    own, _ = sorted(node.look(rules, *a_unit_of_two("3", 0)))
    node.allocate(own)
    other = a_unit_of_two("1", 2)
    assert "Healthy" not in node.look(rules, *a_unit_of_two("3", 0, initialized=False), *other).values()
    node.look(rules, *a_unit_of_two("2", 4), *other)
    assert its_link(node, own) is None
