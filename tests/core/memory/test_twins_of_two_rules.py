"""Twins that different rules take: an edit gives neither of them the id of the other."""

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims
from genericdp.core.inventory.twins import SideBySide
from genericdp.core.memory.memory import TIE_LIMIT, twins_worth_keeping
from genericdp.core.memory.saved import dump, load
from genericdp.core.memory.take import is_hasty
from tests.scenes.builders import a_usb_device, a_usb_node, a_usb_serial, by_sys_path, resources_of
from tests.scenes.edits import Node, rule

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


def test_nor_does_one_that_no_rule_took_before() -> None:
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


def test_the_rules_by_port_keep_the_ids_of_twins_that_change_places() -> None:
    rules = rule("a", match=AT_PORT.format(1)) + rule("b", match=AT_PORT.format(2))
    node = Node()
    assert node.look(rules, FIRST, SECOND) == {"a_A5": "Healthy", "b_A5": "Healthy"}
    assert node.look(rules) == {"a_A5": "it is unplugged", "b_A5": "it is unplugged"}
    assert node.look(rules, a_stick("2", 1), a_stick("1", 2)) == {"a_A5": "Healthy", "b_A5": "Healthy"}


def test_a_unit_that_was_never_beside_another_one_is_known_at_any_port() -> None:
    node = Node()
    node.look(TWO_RULES, SECOND)
    node.allocate("b_A5")
    moved = a_stick("3", 4)
    assert node.look(TWO_RULES, moved)["b_A5"] == "Healthy"
    assert its_link(node, "b_A5") == moved.device_node


def test_parts_of_a_dock_with_one_serial_number_are_no_twins() -> None:
    """They are different models, and move with the dock."""
    rules = "".join(
        rule(name, match=f'{{ SUBSYSTEM = "tty", ID_MODEL_ID = "{product}" }}')
        for name, product in (("a", "6001"), ("b", "6015"))
    )
    node = Node()
    node.look(rules, a_stick("1.1", 1), a_stick("1.2", 2, "6015"))
    moved = (a_stick("2.1", 1), a_stick("2.2", 2, "6015"))
    assert node.look(rules, *moved) == {"a_A5": "Healthy", "b_A5": "Healthy"}


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


@pytest.mark.parametrize("restarts", [False, True])
def test_nor_does_a_part_of_a_kit_become_its_twin_of_another_rule(*, restarts: bool) -> None:
    """The link of the part says its serial number, so it would lead to the twin."""
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


def test_twins_by_the_thousand_do_not_fill_the_memory() -> None:
    node = Node()
    node.look(TWO_RULES, FIRST, SECOND)
    (twin,) = node.memory.twins
    many = frozenset(twin._replace(key=str(n)) for n in range(TIE_LIMIT))
    assert len(twins_worth_keeping(many, node.memory.devices.values())) == TIE_LIMIT
    assert twins_worth_keeping(many | {twin}, node.memory.devices.values()) == {twin}


def test_a_unit_beside_another_one_in_its_socket_is_no_twin() -> None:
    """It may be that unit at another speed."""
    seen = SideBySide(resources_of(TWO_RULES))
    claims = Claims(resources_of(TWO_RULES))
    _, came = claims.see(by_sys_path(FIRST, SECOND))
    seen.see((), came, {"/sys/devices/pci0000:00/0000:00:14.0/usb1/1-2"})
    assert seen.twins == frozenset()
    seen.see(came, came, frozenset())
    assert {twin.key for twin in seen.twins} == {"A5"}
    seen.see(came[:1], (), frozenset())
    assert seen.twins == frozenset()


def test_what_no_rule_takes_is_no_twin() -> None:
    node = Node()
    node.look(rule("other", match='{ SUBSYSTEM = "video4linux" }'), FIRST, SECOND)
    assert node.memory.twins == frozenset()


@pytest.mark.parametrize("keys", [(), ('identity = ["ID_SERIAL_SHORT"]',)], ids=["serial", "property"])
def test_what_is_known_of_twins_outlasts_a_restart(keys: tuple[str, ...]) -> None:
    node = Node()
    node.look(rule("a", *keys, match=AT_PORT.format(1)) + rule("b", *keys, match=ANY), FIRST, SECOND)
    assert node.memory.twins
    assert load(dump(node.memory, "before"), "after").twins == node.memory.twins
