"""Units told by a property: one that a pod has comes where that of another pod was."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from genericdp.core.memory.given.left import is_another_with_its_values
from tests.scenes.builders import a_usb_device, a_usb_node, resources_of
from tests.scenes.edits import Node, rule
from tests.scenes.inventories import DOMAIN

EACH, WHOLE, BOTH, KIT = RULES = (
    rule("x", 'identity = ["COLOR"]'),
    rule("x", 'identity = ["COLOR"]', 'group_by = "usb_device"'),
    rule("x", 'identity = ["COLOR"]', 'group_by = "COLOR"'),
    rule("x", 'group_by = "COLOR"'),
)
TWO = "".join(
    rule(color, 'identity = ["COLOR"]', match=f'{{ SUBSYSTEM = "tty", COLOR = "{color}" }}')
    for color in ("blue", "red")
)
UNPLUGGED = "it is unplugged"


def a_unit(
    color: str,
    port: str,
    *,
    tty: int = 0,
    plug: int = 1,
    serial: str | None = None,
    product: str = "6001",
) -> list[UdevDevice]:
    """A unit with a tty. `plug` is another number for each time that something was plugged in."""
    usb = a_usb_device(port, serial=serial, product=product, devnum=10 + plug)
    node = a_usb_node(
        usb, "tty", f"ttyUSB{tty}", number=f"c 188:{tty}", properties={"COLOR": color, "DEVPATH": f"/{plug}"}
    )
    return [replace(usb, incarnation=100 * plug), replace(node, incarnation=100 * plug + 1)]


def with_ttys(color: str, port: str, plug: int, *numbers: int, serial: str | None = None) -> list[UdevDevice]:
    """A unit of which these of its two ttys are bound."""
    usb, first = a_unit(color, port, tty=2 * plug, plug=plug, serial=serial)
    name, number = f"ttyUSB{2 * plug + 1}", f"c 188:{2 * plug + 1}"
    second = a_usb_node(usb, "tty", name, interface="01", number=number, properties={"COLOR": color})
    both = first, replace(second, incarnation=100 * plug + 2)
    return [usb, *(both[number] for number in numbers)]


BLUE, RED = a_unit("blue", "2", tty=1, plug=2), a_unit("red", "1")


def both_held(rules: str, *devices: UdevDevice) -> tuple[Node, str, str]:
    """A node on which pods have a blue and a red unit, and the ids of these."""
    node = Node()
    blue, red = sorted(node.look(rules, *(devices or (*BLUE, *RED))))
    node.allocate(blue)
    node.allocate(red)
    node.look(rules, *(devices or (*BLUE, *RED)))
    return node, blue, red


def leads_to(node: Node, id_: str) -> Sequence[str | None]:
    """Where the links of a device lead, except those that lead nowhere."""
    links = node.links().items()
    return [path for link, path in links if link.partition("@")[0] == id_ and path is not None]


@pytest.mark.parametrize("restarts", ["", "same boot", "another boot"])
@pytest.mark.parametrize("in_one_look", [False, True])
@pytest.mark.parametrize("tty", [0, 1])
@pytest.mark.parametrize("rules", [EACH, WHOLE, BOTH, TWO])
def test_a_unit_is_that_of_its_pod_where_that_of_another_pod_was(
    rules: str, tty: int, restarts: str, *, in_one_look: bool
) -> None:
    node, blue, red = both_held(rules)
    if not in_one_look:
        node.look(rules, *RED)
        node.look(rules)
    here = a_unit("red", "2", tty=tty, plug=3)
    for _ in range(2):
        assert node.look(rules, *here) == {blue: UNPLUGGED, red: "Healthy"}
        assert (leads_to(node, red), leads_to(node, blue)) == ([f"/dev/ttyUSB{tty}"], [])
        assert node.inventory.held_links == {}
        if restarts:
            node.memory = saved.load(saved.dump(node.memory, "same boot"), restarts)
    there = a_unit("blue", "1", tty=1 - tty, plug=4)
    assert node.look(rules, *here, *there) == {blue: "Healthy", red: "Healthy"}


@pytest.mark.parametrize(("before", "after"), [(EACH, WHOLE), (WHOLE, EACH)])
def test_how_a_rule_grouped_nodes_before_pods_got_them_does_not_matter(before: str, after: str) -> None:
    """The links that a device had then are still remembered."""
    node = Node()
    node.look(before, *BLUE, *RED)
    blue, red = sorted(node.look(after, *BLUE, *RED))
    node.allocate(blue)
    node.allocate(red)
    for there in ([*BLUE, *RED], BLUE, []):
        node.look(after, *there)
    assert node.look(after, *a_unit("blue", "1", tty=3, plug=3)) == {blue: "Healthy", red: UNPLUGGED}


@pytest.mark.parametrize("rules", [*RULES, TWO])
def test_a_free_unit_waits_where_that_of_a_pod_was(rules: str) -> None:
    """It may be the same unit: udev rules may have given it another value."""
    node = Node()
    blue, red = sorted(node.look(rules, *BLUE, *RED))
    node.allocate(blue)
    node.look(rules, *RED)
    told = node.look(rules, *a_unit("red", "2", plug=3))
    of = " of example.com/blue" if rules == TWO else ""
    assert told == {blue: f"its id is now {red}", red: f"a pod may still hold it as {blue}{of}"}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("rules", [*RULES, TWO])
def test_a_unit_that_has_stayed_is_not_that_of_another_pod_by_its_new_value(
    rules: str, *, restarts: bool
) -> None:
    node, blue, red = both_held(rules)
    node.look(rules, *BLUE)
    if restarts:
        node.memory = saved.load(saved.dump(node.memory, "same boot"), "same boot")
    told = node.look(rules, *a_unit("red", "2", tty=1, plug=2))
    assert told == {blue: f"its id is now {red}", red: UNPLUGGED}
    assert (leads_to(node, red), leads_to(node, blue)) == ([], [])


@pytest.mark.parametrize("rules", RULES)
def test_it_waits_if_an_earlier_release_did_not_save_which_nodes_the_other_pod_got(rules: str) -> None:
    node, blue, red = both_held(rules)
    document = json.loads(saved.dump(node.memory, "same boot"))
    for entry in document["devices"].values():
        entry["also"] = []
    node.memory = saved.load(json.dumps(document).encode(), "same boot")
    told = node.look(rules, *a_unit("red", "2", plug=3))
    assert told == {blue: f"its id is now {red}", red: UNPLUGGED}


def test_a_kit_waits_where_another_one_was_until_it_is_back_at_its_port() -> None:
    """Ports tell its parts."""
    node, blue, red = both_held(KIT)
    node.look(KIT)
    told = node.look(KIT, *a_unit("red", "2", plug=3))
    assert told == {blue: f"its id is now {red}", red: UNPLUGGED}
    home = [*a_unit("red", "1", plug=4), *a_unit("blue", "2", plug=5)]
    assert node.look(KIT, *home) == {blue: "Healthy", red: "Healthy"}


@pytest.mark.parametrize("serial", ["RED", "BLUE"])
def test_a_unit_with_the_serial_number_of_what_was_there_may_be_that(serial: str) -> None:
    """If it has that of the unit that it seems to be, it is not."""
    blue_there = a_unit("blue", "2", tty=1, plug=2, serial="BLUE")
    node, blue, red = both_held(EACH, *blue_there, *a_unit("red", "1", serial=serial))
    node.look(EACH)
    told = node.look(EACH, *a_unit("red", "2", plug=3, serial="BLUE"))
    waits = {blue: f"its id is now {red}", red: UNPLUGGED}
    assert told == (waits if serial == "RED" else {blue: UNPLUGGED, red: "Healthy"})


def test_it_waits_while_what_was_there_may_hang() -> None:
    node, blue, red = both_held(EACH)
    usb, tty = a_unit("red", "2", plug=3)
    told = node.look(EACH, usb, tty, unread=[f"{usb.sys_path}/1-2:1.1"])
    assert told == {blue: f"its id is now {red}", red: UNPLUGGED}
    assert node.look(EACH, usb, tty) == {blue: UNPLUGGED, red: "Healthy"}


@pytest.mark.parametrize("serials", [(None, None), ("A", "B")])
@pytest.mark.parametrize("starts", ["", "same boot", "another boot"])
def test_of_units_with_the_same_values_a_pod_has_the_one_at_its_port(
    serials: tuple[str | None, str | None], starts: str
) -> None:
    """One comes while that of a pod is away, with one of its nodes, which another pod gets."""

    def ttys(port: str, plug: int, *numbers: int) -> list[UdevDevice]:
        return with_ttys("red", port, plug, *numbers, serial=serials[port == "3"])

    node = Node()
    second, first = sorted(node.look(EACH, *ttys("1", 1, 0, 1)))
    node.allocate(first)
    node.look(EACH)
    node.look(EACH, *ttys("3", 2, 1))
    node.allocate(second)
    node.look(EACH, *ttys("3", 2, 1), *ttys("1", 3, 0, 1))
    if starts:
        node.memory = saved.load(saved.dump(node.memory, "same boot"), starts)
    for _ in range(2):
        told = node.look(EACH, *ttys("3", 2, 0, 1), *ttys("1", 3, 0, 1))
        assert (told[second], leads_to(node, second)) == ("Healthy", ["/dev/ttyUSB5"])
        (waits,) = (id_ for id_, reason in told.items() if reason == f"a pod may still hold it as {first}")
        assert (told[first], leads_to(node, first)) == (f"its id is now {waits}", [])
    told = node.look(EACH, *ttys("3", 2, 0, 1), *ttys("1", 3, 0, 1), answer=node.nobody_holds_anything())
    assert {*told.values()} == {"Healthy"}


def test_the_text_about_a_unit_that_another_one_is_taken_for_does_not_name_its_own_id() -> None:
    node = Node()
    second, first = sorted(node.look(EACH, *with_ttys("red", "1", 1, 0, 1)))
    for id_ in (first, second):
        node.allocate(id_)
    node.look(EACH, *with_ttys("red", "1", 1, 0, 1))
    node.look(EACH)
    half, other = with_ttys("red", "2", 2, 0), with_ttys("red", "3", 3, 1)
    node.look(EACH, *half)
    node.look(EACH, *half, *other)
    told = node.look(EACH, *with_ttys("red", "2", 2, 0, 1))
    assert told[second] == (
        f"it is unplugged; {first} has the same identity, but there were two such units: "
        "plug this one in at its old port (USB port 1)"
    )


def test_a_kit_may_be_at_any_port_although_ports_told_its_units_apart_before_an_edit() -> None:
    node, here = Node(), a_unit("red", "1")
    node.look(EACH, *here, *a_unit("red", "3", plug=2, tty=1))
    node.look(EACH, *here)
    node.look(BOTH, *here)
    told = node.look(BOTH, *here, answer=node.nobody_holds_anything())
    (red,) = (id_ for id_, reason in told.items() if reason == "Healthy")
    node.allocate(red)
    node.look(BOTH, *here)
    assert node.look(BOTH)[red] == UNPLUGGED
    assert node.look(BOTH, *a_unit("red", "2", plug=5))[red] == "Healthy"


def test_serial_numbers_have_rules_of_their_own_for_twins() -> None:
    node = Node()
    (id_,) = node.look(rule("x"), *a_unit("red", "1", serial="A"))
    known = node.memory.devices[id_]
    node.look(rule("x"), *a_unit("red", "2", plug=2, serial="A"))
    (now,) = node.inventory.offers["example.com/x"].devices
    ties = {now.unit: now.port}
    by_serial, by_color = (resources_of(keys, domain=DOMAIN)[0] for keys in (rule("x"), EACH))
    assert not is_another_with_its_values(known, now, by_serial, ties)
    assert is_another_with_its_values(known, now, by_color, ties)


def test_what_is_left_of_another_unit_may_be_what_its_pod_got() -> None:
    """Udev rules have given one node of the blue device the red value before the rest of it was unplugged."""
    first, second = a_unit("blue", "2", tty=1, plug=2), a_unit("blue", "3", tty=2, plug=3)
    node, blue, red = both_held(BOTH, *first, *second, *RED)
    node.look(BOTH, *first, *second)
    renamed = a_unit("red", "3", tty=2, plug=3)
    assert node.look(BOTH, *first, *renamed)[red] == UNPLUGGED
    assert node.look(BOTH, *renamed) == {blue: UNPLUGGED, red: UNPLUGGED}
    assert node.look(BOTH, *a_unit("red", "3", plug=4)) == {blue: UNPLUGGED, red: UNPLUGGED}
    assert node.look(BOTH, *a_unit("red", "2", plug=5)) == {blue: UNPLUGGED, red: "Healthy"}


def test_a_held_link_shows_the_rest_of_what_a_pod_got_where_another_unit_is() -> None:
    first, second = a_unit("blue", "2", tty=1, plug=2), a_unit("blue", "3", tty=2, plug=3)
    node, blue, red = both_held(BOTH, *first, *second, *RED)
    renamed = a_unit("green", "3", tty=2, plug=3)
    node.look(BOTH, *first, *renamed, *RED)
    told = node.look(BOTH, *a_unit("red", "2", tty=1, plug=4), *renamed)
    waits = f"a pod may still hold it as {blue}"
    assert told == {blue: UNPLUGGED, "x_green_mlomk6nt5r": waits, red: "Healthy"}
    assert node.inventory.held_links == {f"held+{blue}": "/dev/ttyUSB2"}


def test_a_unit_is_not_that_of_another_pod_if_its_id_says_nothing_else() -> None:
    """A pod has got it by its port, and another pod has got its twin by their color."""
    node = Node()
    (by_port,) = node.look(rule("x"), *a_unit("red", "2", tty=1, plug=2))
    node.allocate(by_port)
    node.look(rule("x"))
    (red,) = node.look(EACH, *RED).keys() - {by_port}
    node.allocate(red)
    node.look(EACH, *RED)
    node.look(EACH)
    told = node.look(EACH, *a_unit("red", "2", plug=3))
    assert told == {by_port: f"its id is now {red}", red: UNPLUGGED}


def test_a_unit_is_not_that_of_another_pod_while_a_part_of_that_is_there() -> None:
    """Both have the same properties at different looks, and no unit has moved."""
    red_there = [*a_unit("red", "1"), *a_unit("red", "3", tty=2, plug=3)]
    node, blue, red = both_held(BOTH, *BLUE, *red_there)
    node.look(BOTH)
    again = [*a_unit("blue", "1", plug=4), *a_unit("red", "3", tty=2, plug=5)]
    for _ in range(2):
        assert node.look(BOTH, *again) == {blue: UNPLUGGED, red: "Healthy"}


@pytest.mark.parametrize("rules", [WHOLE, BOTH])
def test_a_unit_stays_that_of_its_pod_while_the_other_one_comes_part_by_part(rules: str) -> None:
    ttys = with_ttys
    node, blue, red = both_held(rules, *ttys("blue", "2", 1, 0, 1), *ttys("red", "1", 2, 0, 1))
    node.look(rules)
    here = ttys("red", "2", 3, 0, 1)
    assert node.look(rules, *here) == {blue: UNPLUGGED, red: "Healthy"}
    told = node.look(rules, *here, *ttys("blue", "1", 4, 0))
    assert told[red] == "Healthy"
    assert node.inventory.held_links == {}
    told = node.look(rules, *here, *ttys("blue", "1", 4, 0, 1))
    assert (told, node.inventory.held_links) == ({blue: "Healthy", red: "Healthy"}, {})


@pytest.mark.parametrize("is_seen", [False, True])
@pytest.mark.parametrize("rules", [EACH, WHOLE, BOTH, TWO])
def test_a_unit_stays_that_of_its_pod_when_another_model_with_the_other_value_comes(
    rules: str, *, is_seen: bool
) -> None:
    """A spare of another model was in the place of the blue unit for a while."""
    node, blue, red = both_held(rules, *a_unit("blue", "2", plug=2, tty=1, product="6002"), *RED)
    node.look(rules)
    node.look(rules, *a_unit("blue", "2", plug=3))
    if is_seen:
        node.look(rules)
    here = a_unit("red", "2", plug=4)
    assert node.look(rules, *here) == {blue: UNPLUGGED, red: "Healthy"}
    again = a_unit("blue", "3", plug=5, tty=1, product="6002")
    for _ in range(2):
        assert node.look(rules, *here, *again) == {blue: "Healthy", red: "Healthy"}
        assert node.inventory.held_links == {}
