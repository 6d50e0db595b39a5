"""Siblings of a card that comes to another port: one by one, more than were known, or after another card."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from genericdp.core.device import UdevDevice
from tests.core.memory.test_renewal import ANY
from tests.core.memory.test_siblings import id_of
from tests.core.memory.test_siblings_on_boards import Booting
from tests.scenes.builders import a_card, a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

BY_PART, BY_HALF = (rule("x", f'identity = ["{name}"]') for name in ("PART", "HALF"))
OF_HALF = rule("x", 'group_by = "HALF"')
EVERY = {part: part for part in range(4)}


def all_links_lead(node: Node) -> set[str | None]:
    return set(node.inventory.links().values())


@pytest.mark.parametrize("port", ["1", "2", "3"])
@pytest.mark.parametrize("rules", [ANY, rule("x", 'group_by = "usb_device"')], ids=["each", "card"])
def test_after_more_came_than_were_known_one_that_stays_may_be_any_of_them(rules: str, port: str) -> None:
    """At the second port, both ports of the card were bound, and then one of them."""
    node = Node()
    node.look(rules, *a_card("3", {1: 0}, 10))
    node.allocate("x_CARD")
    node.look(rules, *a_card("1", {0: 0, 1: 1}, 20))
    for _ in range(2):
        node.look(rules, *a_card(port, {0: 0}, 20))
        assert all_links_lead(node) == {None}
    node.look(rules, *a_card(port, {0: 0, 1: 1}, 20))
    assert all_links_lead(node) == {None}


@pytest.mark.parametrize("rules", [BY_HALF, OF_HALF], ids=["identity", "group_by"])
def test_after_more_with_a_value_came_than_were_known_one_may_be_any_of_them(rules: str) -> None:
    node = Node()
    told = node.look(rules, *a_card("1", {1: 0}, 10))
    node.allocate(*told)
    node.look(rules, *a_card("1", {0: 0, 1: 1}, 20))
    node.look(rules, *a_card("1", {0: 0}, 20))
    assert all_links_lead(node) == {None}


def test_what_a_property_identifies_is_found_again_whoever_came_in_its_place() -> None:
    node = Node()
    node.look(BY_PART, *a_card("1", {0: 0}, 10))
    part_0 = id_of(node, "/dev/ttyUSB0")
    node.allocate(part_0)
    node.look(BY_PART, *a_card("1", {1: 0, 2: 1}, 20))
    assert node.inventory.links()[part_0] is None
    node.look(BY_PART, *a_card("1", {0: 0}, 30))
    assert node.inventory.links()[part_0] == "/dev/ttyUSB0"


@pytest.mark.parametrize("serial", [None, "0001"])
def test_a_value_identifies_a_card_while_another_one_is_at_its_former_port(serial: str | None) -> None:
    def look(*cards: tuple[UdevDevice, ...]) -> None:
        node.look(BY_HALF, *(device for card in cards for device in card))

    node = Node()
    look(a_card("2", {1: 0}, 10, serial))
    part_1 = id_of(node, "/dev/ttyUSB0")
    node.allocate(part_1)
    other = tuple(
        replace(device, properties={**device.properties, "HALF": "another"})
        for device in a_card("2", {0: 0}, 20, serial)
    )
    look(other)
    look(other, a_card("3", {1: 1}, 30, serial))
    assert node.inventory.links()[part_1] == "/dev/ttyUSB1"
    # Of two with the value, nobody can tell which one the pod got.
    look(other)
    look(other, a_card("1", {0: 1, 1: 2}, 40, serial))
    assert node.inventory.links()[part_1] is None


@pytest.mark.parametrize("serial", [None, "0001"])
def test_of_two_with_that_value_nobody_can_tell_which_one_the_pod_got(serial: str | None) -> None:
    node = Node()
    node.look(BY_HALF, *a_card("2", {1: 0}, 10, serial))
    part_1 = id_of(node, "/dev/ttyUSB0")
    node.allocate(part_1)
    other = a_card("2", {2: 0}, 20, serial)
    node.look(BY_HALF, *other)
    node.look(BY_HALF, *other, *a_card("3", {0: 1, 1: 2}, 30, serial))
    assert node.inventory.links()[part_1] is None


@pytest.mark.parametrize("serial", ["CARD", None])
def test_siblings_that_come_one_by_one_to_another_port_are_all_found_again(serial: str | None) -> None:
    node = Node()
    node.look(BY_HALF, *a_card("1", EVERY, 10, serial))
    links = node.inventory.links()
    node.allocate(id_of(node, "/dev/ttyUSB3"))
    node.look(BY_HALF)
    for count in range(1, 5):
        node.look(BY_HALF, *a_card("2", {part: part for part in range(count)}, 20, serial))
    assert node.inventory.links() == links


def test_a_sibling_that_stays_is_not_taken_for_one_that_comes_from_another_port() -> None:
    """A property identifies both. Without a serial number, the same number means nothing at another port."""
    node = Node()
    node.look(BY_PART, *a_card("2", {1: 0}, 10, None))
    part_1 = id_of(node, "/dev/ttyUSB0")
    node.allocate(part_1)
    node.look(BY_PART, *a_card("1", {2: 0}, 20, None))
    part_2 = id_of(node, "/dev/ttyUSB0")
    node.allocate(part_2)
    both = *a_card("1", {2: 0}, 20, None), replace(a_card("1", {1: 1}, 20, None)[1], incarnation=22)
    for _ in range(2):
        assert node.look(BY_PART, *both) == {part_1: "Healthy", part_2: "Healthy"}
        assert node.inventory.links() == {part_1: "/dev/ttyUSB1", part_2: "/dev/ttyUSB0"}


@pytest.mark.parametrize("looks", [1, 2])
def test_a_sibling_in_doubt_does_not_get_the_number_of_what_a_pod_holds_at_a_later_look(looks: int) -> None:
    node = Node()
    node.look(BY_PART, *a_card("1", {0: 0, 1: 1, 3: 2}, 10, "0001"))
    part_0 = id_of(node, "/dev/ttyUSB0")
    node.allocate(part_0)
    for _ in range(looks):
        node.look(BY_PART, *a_card("2", {1: 0, 4: 1}, 20, "0001"))
    node.look(BY_PART, *a_card("2", {0: 5, 1: 6, 3: 7}, 30, "0001"))
    assert node.inventory.links()[part_0] == "/dev/ttyUSB5"


def test_what_has_come_back_is_held_at_no_other_port() -> None:
    """A value identifies the pod's own node. So those that come with it are free, and offered at once."""
    node = Node()
    node.look(BY_HALF, *a_card("2", {0: 0, 2: 1}, 10))
    node.look(BY_HALF, *a_card("1", {0: 0}, 20))
    node.allocate(id_of(node, "/dev/ttyUSB0"))
    told = node.look(BY_HALF, *a_card("2", {0: 0, 2: 1, 3: 2}, 30))
    assert set(told.values()) == {"Healthy"}
    assert all_links_lead(node) == {"/dev/ttyUSB0", "/dev/ttyUSB1", "/dev/ttyUSB2"}


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("held", [0, 1])
def test_a_value_says_at_which_of_several_former_ports_siblings_were(first: int, held: int) -> None:
    """At each of two ports, another half of the card was bound."""
    second = 2 - first
    node = Node()
    node.look(BY_HALF, *a_card("1", {first: 0, first + 1: 1}, 10))
    node.look(BY_HALF, *a_card("2", {second: 0, second + 1: 1}, 20))
    own = id_of(node, f"/dev/ttyUSB{held}")
    node.allocate(own)
    node.look(BY_HALF, *a_card("3", {second: 0, second + 1: 1}, 30))
    assert node.inventory.links()[own] == f"/dev/ttyUSB{held}"


def test_a_unit_that_joins_a_kit_did_not_come_from_the_port_of_one_that_stays() -> None:
    one = a_card("2", {0: 0}, 10, None)
    node = Node()
    (kit,) = node.look(OF_HALF, *one)
    node.allocate(kit)
    assert node.look(OF_HALF, *one, *a_card("3", {0: 1, 1: 2}, 20, None)) == {kit: "Healthy"}
    assert all_links_lead(node) == {"/dev/ttyUSB0", "/dev/ttyUSB1", "/dev/ttyUSB2"}


@pytest.mark.parametrize("port", ["1", "2"])
@pytest.mark.parametrize(
    ("rules", "serial"), [(ANY, "CARD"), (BY_HALF, "CARD"), (BY_HALF, "0001"), (BY_HALF, None)]
)
def test_a_guess_at_another_port_is_one_at_each_former_port(
    rules: str, serial: str | None, port: str
) -> None:
    node = Node()
    node.look(rules, *a_card("1", {0: 0, 1: 1}, 10, serial))
    node.look(rules, *a_card("2", {0: 0, 1: 1}, 20, serial))
    # No pod holds any of them: it is taken for the first one.
    node.look(rules, *a_card("3", {1: 0}, 30, serial))
    node.allocate(id_of(node, "/dev/ttyUSB0"))
    for _ in range(2):
        node.look(rules, *a_card(port, {0: 0, 1: 1}, 40, serial))
        assert all_links_lead(node) == {None}


def test_what_came_since_at_another_port_is_known_at_the_former_one() -> None:
    """Only one of its ports was bound when the card came there, and the others before a pod got one."""
    node = Node()
    node.look(ANY, *a_card("1", EVERY, 10))
    node.look(ANY, *a_card("2", {0: 0}, 20))
    node.look(ANY, *a_card("2", EVERY, 20))
    links = node.inventory.links()
    node.allocate(id_of(node, "/dev/ttyUSB2"))
    node.look(ANY, *a_card("1", EVERY, 30))
    assert node.inventory.links() == links


@pytest.mark.parametrize("goes_back", [False, True])
@pytest.mark.parametrize("rules", [ANY, rule("x", 'group_by = "usb_device"')], ids=["each", "card"])
def test_a_doubt_about_a_card_does_not_count_at_the_port_of_its_twin(rules: str, *, goes_back: bool) -> None:
    """More ports come at another one than the twin has that is away."""
    node, few = Node(), {0: 4, 1: 5}
    node.look(rules, *a_card("1", few, 10), *a_card("2", EVERY, 20))
    mine = {"/dev/ttyUSB4", "/dev/ttyUSB5"}
    links = {link: path for link, path in node.inventory.links().items() if path in mine}
    for id_ in node.look(rules, *a_card("1", few, 10), *a_card("2", EVERY, 20)):
        node.allocate(id_)
    node.look(rules, *a_card("2", EVERY, 20))
    node.look(rules)
    node.look(rules, *a_card("4", EVERY, 30))
    other = a_card("2", EVERY, 40) if goes_back else a_card("4", EVERY, 30)
    node.look(rules, *other)
    node.look(rules, *a_card("1", few, 50), *other)
    assert links.items() <= node.inventory.links().items()


def test_a_card_leaves_the_numbers_of_its_twin_alone() -> None:
    """Both have one serial number. One of them has more ports of its own."""
    node = Node()
    node.look(ANY, *a_card("1", EVERY, 10), *a_card("2", {0: 4, 1: 5}, 20))
    own = id_of(node, "/dev/ttyUSB3")
    node.allocate(own)
    node.look(ANY, *a_card("2", {0: 4, 1: 5}, 20))
    # The twin is bound again, and has one more.
    node.look(ANY, *a_card("2", {0: 4, 1: 5, 2: 6}, 40))
    node.look(ANY, *a_card("1", EVERY, 50), *a_card("2", {0: 4, 1: 5, 2: 6}, 40))
    assert node.inventory.links()[own] == "/dev/ttyUSB3"


@pytest.mark.parametrize("serial", ["CARD", "0001", None])
def test_siblings_are_told_by_a_shared_value_although_more_were_bound_at_another_port(
    serial: str | None,
) -> None:
    node = Node()
    node.look(BY_HALF, *a_card("1", {0: 0, 1: 1}, 10, serial))
    node.look(BY_HALF, *a_card("3", EVERY, 20, serial))
    own = id_of(node, "/dev/ttyUSB1")
    node.allocate(own)
    node.look(BY_HALF, *a_card("2", {0: 0, 1: 1}, 30, serial))
    assert node.inventory.links()[own] == "/dev/ttyUSB1"


def test_a_unit_without_serial_number_takes_nothing_along_from_what_was_another_ones() -> None:
    def of_another(devices: tuple[UdevDevice, ...]) -> tuple[UdevDevice, ...]:
        return tuple(
            replace(each, properties={**each.properties, "HALF": f"other {each.properties.get('HALF')}"})
            for each in devices
        )

    node = Node()
    node.look(BY_HALF, *a_card("1", {0: 0}, 10, None))
    node.look(BY_HALF, *of_another(a_card("1", EVERY, 20, None)))
    own = id_of(node, "/dev/ttyUSB0")
    node.allocate(own)
    node.look(BY_HALF)
    node.look(BY_HALF, *a_card("2", {0: 0}, 30, None))
    node.look(BY_HALF, *of_another(a_card("1", {1: 0}, 40, None)))
    assert node.inventory.links()[own] is None


def test_what_may_have_been_either_of_two_twins_takes_nothing_along() -> None:
    node = Node()
    twins = (*a_card("1", EVERY, 10), *a_card("2", {0: 4, 1: 5}, 20))
    node.look(ANY, *twins)
    links = node.inventory.links()
    node.allocate(id_of(node, "/dev/ttyUSB3"))
    node.allocate(id_of(node, "/dev/ttyUSB5"))
    node.look(ANY)
    node.look(ANY, *a_card("3", {0: 0, 1: 1}, 30))
    node.look(ANY, *a_card("1", EVERY, 40), *a_card("2", {0: 4, 1: 5}, 50))
    held = {link: path for link, path in links.items() if path in ("/dev/ttyUSB3", "/dev/ttyUSB5")}
    assert held.items() <= node.inventory.links().items()


@pytest.mark.parametrize("serial", ["CARD", "0001", None])
def test_siblings_are_remembered_as_there_at_no_port_that_they_have_left(serial: str | None) -> None:
    node = Node()
    node.look(BY_HALF, *a_card("1", EVERY, 10, serial))
    node.look(BY_HALF, *a_card("2", {0: 0, 1: 1}, 20, serial))
    assert len(node.memory.siblings) == 2
    there = {
        spot.port.rpartition(" ")[2]
        for spot, numbers in node.memory.siblings.items()
        if any(seen.is_there for seen in numbers.values())
    }
    assert there == {"2"}


@pytest.mark.parametrize("looks", list(product([False, True], repeat=3)))
@pytest.mark.parametrize("serial", ["CARD", "0001", None])
def test_a_doubt_counts_at_every_port_where_one_of_them_may_have_been(
    serial: str | None, looks: Sequence[bool]
) -> None:
    """Different parts were alone at two ports. More came at one of these, and one at the other one."""
    node = Node()
    node.look(BY_HALF, *a_card("1", {3: 0}, 10, serial))
    moves = (("2", (1,)), ("1", (0, 1)), ("2", (0,)))
    own = ""
    for since, ((port, parts), is_seen_to_leave) in enumerate(zip(moves, looks, strict=True), 2):
        if is_seen_to_leave:
            node.look(BY_HALF)
        node.look(BY_HALF, *a_card(port, {part: part for part in parts}, 10 * since, serial))
        if not own:
            own = id_of(node, "/dev/ttyUSB1")
            node.allocate(own)
    assert node.inventory.links()[own] is None


@pytest.mark.parametrize("serial", [None, "0001"])
@pytest.mark.parametrize("is_other_remembered", [False, True])
def test_what_was_at_the_port_of_another_card_does_not_say_which_sibling_has_come(
    serial: str | None, *, is_other_remembered: bool
) -> None:
    """The pod got the second port of its card, which is plugged in again and its first port appears first."""
    node = Node()
    card = a_card("2", {2: 2, 3: 3}, 20, serial)
    node.look(OF_HALF, *(a_card("1", {0: 0, 1: 1}, 10, serial) if is_other_remembered else ()), *card)
    node.look(OF_HALF, *card)
    second = (card[0], card[2])
    told = node.look(OF_HALF, *second)
    node.allocate(next(id_ for id_, health in told.items() if health == "Healthy"))
    again = a_card("2", {2: 2, 3: 3}, 30, serial)
    for plugged in ((), again[:2], again):
        node.look(OF_HALF, *plugged)
        assert "/dev/ttyUSB2" not in all_links_lead(node)


def test_a_free_card_does_not_wait_because_a_pod_holds_another_one() -> None:
    """Both have no serial number, and the ports of the free one appear one after the other."""
    rules, node = rule("x", 'group_by = "usb_device"'), Node()
    other, card = a_card("1", {0: 0, 1: 1}, 10, None), a_card("2", {0: 2, 1: 3}, 20, None)
    held, free = sorted(node.look(rules, *other, *card))
    node.allocate(held)
    node.look(rules, *card)
    node.look(rules)
    again = a_card("2", {0: 2, 1: 3}, 30, None)
    node.look(rules, *again[:2])
    assert node.look(rules, *again) == {held: "it is unplugged", free: "Healthy"}


@pytest.mark.parametrize("port", ["1", "2"])
def test_a_pod_gets_its_port_of_a_card_back_although_the_resource_was_renamed(port: str) -> None:
    """The ports share the value that identifies the card, and the former ids are still remembered."""
    node = Node()
    node.look(rule("old", 'identity = ["HALF"]'), *a_card("1", {0: 0, 1: 1}, 10))
    node.look(BY_HALF, *a_card("1", {0: 0, 1: 1}, 10))
    part_0, part_1 = id_of(node, "/dev/ttyUSB0"), id_of(node, "/dev/ttyUSB1")
    node.allocate(part_0)
    node.look(BY_HALF)
    node.look(BY_HALF, *a_card(port, {0: 0, 1: 1}, 20))
    links = node.inventory.links()
    assert (links[part_0], links[part_1]) == ("/dev/ttyUSB0", "/dev/ttyUSB1")


@pytest.mark.parametrize("serial", ["CARD", None])
def test_what_has_the_value_that_the_pod_got_is_the_same_although_another_one_came_before(
    serial: str | None,
) -> None:
    """The value is all that identifies it. The link never leads to one that has stayed, only to this one."""
    node = Node()
    node.look(BY_HALF, *a_card("1", {0: 0}, 10, serial))
    link = id_of(node, "/dev/ttyUSB0")
    node.allocate(link)
    node.look(BY_HALF, *a_card("1", {2: 0}, 20, serial))
    assert node.links()[link] is None
    node.look(BY_HALF, *a_card("1", {2: 0, 1: 1}, 20, serial))
    assert node.links()[link] == "/dev/ttyUSB1"


@pytest.mark.parametrize(
    ("rules", "serial"), [(ANY, "CARD"), (rule("x", 'group_by = "usb_device"'), "CARD"), (BY_HALF, None)]
)
def test_what_is_in_doubt_at_another_port_is_not_just_unplugged(rules: str, serial: str | None) -> None:
    node = Node()
    first, *_ = node.look(rules, *a_card("2", {0: 0, 1: 1}, 10, serial))
    node.allocate(first)
    assert node.look(rules)[first] == "it is unplugged"
    told = node.look(rules, *a_card("3", {1: 2}, 20, serial))
    assert told[first] == (
        "it is unplugged, or it is one of several that look alike: plug it in again at its old "
        "port, or delete that pod"
    )
    assert node.look(rules)[first] == "it is unplugged"
    assert node.look(rules, *a_card("2", {0: 0, 1: 1}, 30, serial))[first] == "Healthy"


def a_port(usb: UdevDevice, half: int, number: int) -> UdevDevice:
    """A port of a card."""
    tty = a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}", properties={"HALF": f"v{half}"})
    return replace(tty, incarnation=1000 + number)


def healthy(node: Node) -> set[str]:
    offers = node.inventory.offers.values()
    return {device.id for offer in offers for device in offer.devices if device.healthy}


@pytest.mark.parametrize("product", ["6001", "7777"])
@pytest.mark.parametrize("rules", [BY_HALF, OF_HALF], ids=["identity", "group_by"])
@pytest.mark.parametrize(("comes", "count"), [("then", 1), ("then", 2), ("at once", 1)])
def test_what_comes_to_the_old_port_does_not_say_which_port_of_a_card_has_come(
    rules: str, product: str, comes: str, count: int
) -> None:
    """It has another value, and no port of the card is there any more."""
    node, card = Node(), a_usb_device("1", serial=None, devnum=1)
    other = a_usb_device("1", product=product, serial=None, devnum=3)
    told = node.look(rules, card, a_port(card, 0, 0), a_port(card, 0, 1))
    id_ = id_of(node, "/dev/ttyUSB0") if len(told) > 1 else next(iter(told))
    node.allocate(id_)
    moved = a_usb_device("2", serial=None, devnum=2)
    some, others = (moved, a_port(moved, 0, 2)), (other, *(a_port(other, 1, 3 + n) for n in range(count)))
    looks = (some, some, some + others) if comes == "then" else (some + others,) * 2
    for there in looks:
        node.look(rules, *there)
        assert "/dev/ttyUSB2" not in all_links_lead(node)
        assert id_ not in healthy(node)


def dock(
    port: str, ports: Sequence[int], since: int, serial: str | None = "D1", *, product: str = "6001"
) -> list[UdevDevice]:
    """A card without a serial number in a dock."""
    hub = a_usb_device(port, product="d0cc", serial=serial, devnum=since)
    hub = replace(hub, properties={**hub.properties, "TYPE": "9/0/1"})
    usb = replace(a_usb_device(f"{port}.1", serial=None, product=product, devnum=40 + since), parent=hub)
    usb = replace(usb, incarnation=since)
    return [hub, *(a_port(usb, 0, 10 * since + n) for n in ports)]


@pytest.mark.parametrize("serial", ["D2", None], ids=["another dock", "a hub"])
def test_what_comes_where_a_dock_was_does_not_say_which_port_of_a_card_in_it_has_come(
    serial: str | None,
) -> None:
    node, rules = Node(), rule("x", 'group_by = { ID_MODEL_ID = "d0cc" }')
    node.look(rules, *dock("1", [0, 1], 1))
    node.allocate("x_D1")
    node.look(rules, *dock("2", [0, 1], 2))
    back = dock("1", [1], 3)
    node.look(rules, *back)
    assert "x_D1" not in healthy(node)
    for _ in range(2):
        node.look(rules, *back, *dock("2", [0], 4, serial, product="7777"))
        assert "x_D1" not in healthy(node)
        assert "/dev/ttyUSB31" not in all_links_lead(node)
    node.look(rules, *dock("1", [0, 1], 5))
    assert "x_D1" in healthy(node)


def test_a_card_in_the_twin_of_a_dock_does_not_wait_for_the_ports_of_the_other_one() -> None:
    """The first dock is still there, and one port of the card in it is not bound any more."""
    node, first = Node(), dock("1", [0, 1], 1)
    node.allocate(*node.look(rule("x"), *first))
    for _ in range(2):
        told = node.look(rule("x"), *first[:-1], *dock("2", [0], 2))
        assert sorted(told.values()) == ["Healthy", "Healthy", "it is unplugged"]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("part", [0, 3])
@pytest.mark.parametrize("serial", [None, "0001"])
@pytest.mark.parametrize("ports", ["121", "1231", "12121", "31232"])
def test_a_card_that_shared_values_tell_comes_back_to_a_port_where_it_was(
    ports: str, serial: str | None, part: int, *, restarts: bool
) -> None:
    """What a pod has is remembered at its last port only, and the other ports of the card at each."""
    node, link = Booting(), ""
    for plug, port in enumerate(ports):
        card = a_card(port, EVERY, 10 * (plug + 1), serial)
        assert {*node.look(BY_HALF, *card).values()} == {"Healthy"}
        if not link:
            link = id_of(node, f"/dev/ttyUSB{part}")
            node.allocate(link)
            node.look(BY_HALF, *card)
        assert node.inventory.links()[link] == f"/dev/ttyUSB{part}"
        node.look(BY_HALF)
        if restarts:
            node.restart()


def test_it_does_not_if_another_part_of_it_had_the_number_of_what_a_pod_has() -> None:
    """The second of them was the third port of the card where it comes back, and the second one elsewhere."""
    node = Node()
    node.look(BY_HALF, *a_card("1", {0: 0, 2: 1, 3: 2}, 10, None))
    moved = a_card("2", {0: 0, 1: 1, 2: 2}, 20, None)
    node.look(BY_HALF, *moved)
    node.allocate(id_of(node, "/dev/ttyUSB2"))
    node.look(BY_HALF, *moved)
    node.look(BY_HALF)
    node.look(BY_HALF, *a_card("1", EVERY, 30, None))
    assert all_links_lead(node) == {None}
