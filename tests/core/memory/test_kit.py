"""A kit is one device of several units. A link that a pod got for one of them never leads to another one."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.identity import hash_of
from genericdp.core.inventory.naming import links as names
from genericdp.core.inventory.past import NO_PAST
from genericdp.core.inventory.place import locate
from genericdp.core.memory import saved
from tests.scenes.builders import (
    CONTROLLER,
    a_card,
    a_device,
    a_usb_device,
    a_usb_node,
    a_usb_serial,
    by_sys_path,
    resources_of,
)
from tests.scenes.edits import Node, rule
from tests.scenes.inventories import DOMAIN

KIT = (
    rule("kit", 'group_by = "all"')
    + """
[[resource.node]]
match.usb = { port = "1" }
container_path = "/dev/gps"
optional = true

[[resource.node]]
match.usb = { port = "2" }
container_path = "/dev/zigbee"
optional = true
"""
)

ANOTHER = "its id, kit, belongs to another unit, which a pod may still hold"


def kit(serial: str | None, other: str | None) -> tuple[UdevDevice, UdevDevice]:
    """The GPS receiver and the Zigbee radio, each with its serial number."""
    return a_usb_serial(0, port="1", serial=serial), a_usb_serial(1, port="2", serial=other, devnum=5)


def restart(node: Node) -> None:
    node.memory = saved.load(saved.dump(node.memory))


def links_to(node: Node, path: str) -> set[str]:
    return {link for link, leads in node.inventory.links().items() if leads == path}


#: The hashes of the last two begin alike. A device may choose its serial number so.
SERIALS = [("0001", "0001"), ("X", "Y"), (None, None), ("SN13056", "SN33934")]


@pytest.mark.parametrize("serials", SERIALS)
@pytest.mark.parametrize("restarts", [False, True])
def test_the_link_of_a_unit_that_has_left_does_not_lead_to_one_that_comes(
    serials: tuple[str | None, str | None], restarts: bool
) -> None:
    gps, zigbee = kit(*serials)
    node = Node()
    node.look(KIT, gps)
    node.allocate("kit")
    (link,) = links_to(node, "/dev/ttyUSB0")
    node.look(KIT)
    if restarts:
        restart(node)
    node.look(KIT, zigbee)
    assert node.inventory.links()[link] is None


@pytest.mark.parametrize("serials", [*SERIALS, ("X", "X")])
def test_units_that_were_seen_side_by_side_are_told_apart_for_ever(
    serials: tuple[str | None, str | None],
) -> None:
    gps, zigbee = kit(*serials)
    node = Node()
    node.look(KIT, gps, zigbee)
    restart(node)
    node.look(KIT, gps)
    node.allocate("kit")
    (link,) = links_to(node, "/dev/ttyUSB0")
    node.look(KIT)
    node.look(KIT, zigbee)
    assert node.inventory.links()[link] is None


@pytest.mark.parametrize("serials", [*SERIALS, ("X", "X")])
@pytest.mark.parametrize("before", [True, False])
def test_a_pod_keeps_the_other_unit_when_one_leaves(
    serials: tuple[str | None, str | None], before: bool
) -> None:
    """Whether or not the unit that stays was there before the other one."""
    gps, zigbee = kit(*serials)
    node = Node()
    if before:
        node.look(KIT, zigbee)
        node.allocate("kit")
        links = links_to(node, "/dev/ttyUSB1")
        assert node.look(KIT, gps, zigbee) == {"kit": "Healthy"}
        assert links_to(node, "/dev/ttyUSB1") == links
    else:
        node.look(KIT, gps, zigbee)
        node.allocate("kit")
        links = links_to(node, "/dev/ttyUSB1")
    assert node.look(KIT, zigbee) == {"kit": "Healthy"}
    assert links_to(node, "/dev/ttyUSB1") == links


@pytest.mark.parametrize("grouping", ['"all"', '"RACK"'])
@pytest.mark.parametrize("ports", [("2", "3"), ("3", "4")])
@pytest.mark.parametrize("card_is_back", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_unit_is_known_by_its_serial_number_after_it_was_away_together_with_a_card(
    grouping: str, ports: tuple[str, str], *, card_is_back: bool, restarts: bool
) -> None:
    """That the card had several ports is remembered, which says nothing about the other unit."""

    def in_rack(*devices: UdevDevice) -> list[UdevDevice]:
        return [replace(each, properties={**each.properties, "RACK": "r"}) for each in devices]

    rules, node = rule("kit", f"group_by = {grouping}", 'unplug_grace = "1s"'), Node()
    card, third = (
        in_rack(*a_card("1", {0: 0, 1: 1}, 50, serial="S1")),
        in_rack(*a_card("5", {0: 5}, 60, "S2")),
    )

    def a_stick(port: str, since: int) -> list[UdevDevice]:
        return in_rack(*a_card(port, {0: 6}, since, "S3"))

    node.look(rules, *card, *third, *a_stick("2", 70))
    links = links_to(node, "/dev/ttyUSB6")
    node.look(rules, *third, *a_stick("2", 70))
    node.look(rules, *third)
    for port, since in zip(ports, (80, 90), strict=True):
        if restarts:
            restart(node)
        told = node.look(rules, *(card if card_is_back else ()), *third, *a_stick(port, since))
        assert [*told.values()] == ["Healthy"]
        assert links_to(node, "/dev/ttyUSB6") == links
        node.allocate(min(told))
        node.look(rules, *third)


def a_serial_number_for(port: str) -> str:
    """One whose hash begins like that of a port."""
    return next(each for each in map(str, range(10_000)) if hash_of(each)[0] == hash_of(port)[0])


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("is_beside", [False, True])
@pytest.mark.parametrize("chosen", [str, a_serial_number_for], ids=["the port", "its hash"])
@pytest.mark.parametrize("grouping", ['"all"', '"RACK"', '{ PCI_SLOT_NAME = "0000:00:14.0" }'])
def test_no_serial_number_gets_the_link_of_a_unit_without_one(
    monkeypatch: pytest.MonkeyPatch,
    grouping: str,
    chosen: Callable[[str], str],
    *,
    is_beside: bool,
    restarts: bool,
) -> None:
    """A device chooses its serial number, and the hash in the name of a link is short."""
    if chosen is a_serial_number_for:
        monkeypatch.setattr(names, "_MARK_LENGTH", 1)
    controller = a_device(CONTROLLER, subsystem="pci", properties={"PCI_SLOT_NAME": "0000:00:14.0"})

    def a_unit(number: int, port: str, serial: str | None, since: int = 0) -> UdevDevice:
        usb = a_usb_device(port, serial=serial, devnum=5 + number)
        usb = replace(usb, parent=controller, incarnation=100 + since)
        tty = a_usb_node(usb, "tty", f"ttyUSB{number}", number=f"c 188:{number}", properties={"RACK": "r"})
        return replace(tty, incarnation=100 + number + since)

    rules, node = rule("kit", f"group_by = {grouping}"), Node()
    own, other = a_unit(0, "1", None), a_unit(1, "2", "other")
    node.look(rules, own, other)
    (id_,) = node.memory.devices
    node.allocate(id_)
    (link,) = links_to(node, "/dev/ttyUSB0")
    forged = a_unit(2, "3", chosen(locate(own).spot.port))
    if is_beside:
        node.look(rules, own, other, forged)
        assert links_to(node, "/dev/ttyUSB0") == {link}
    node.look(rules, other, *((forged,) if is_beside else ()))
    if restarts:
        restart(node)
    for _ in range(2):
        node.look(rules, other, forged)
        assert node.inventory.links()[link] is None
    again = a_unit(3, "1", None, 10)
    node.look(rules, again, other, forged)
    assert node.inventory.links()[link] == "/dev/ttyUSB3"


def test_a_serial_number_that_looks_like_a_port_changes_no_link_where_nothing_is_remembered() -> None:
    own, other = a_usb_serial(0, port="1", serial=None), a_usb_serial(1, port="2", serial="S", devnum=5)
    forged = a_usb_serial(2, port="3", serial=locate(own).spot.port, devnum=6)
    rules = rule("kit", 'group_by = "all"')
    alone, node = Node(), Node()
    alone.look(rules, own, other)
    node.look(rules, own, other, forged)
    assert links_to(node, "/dev/ttyUSB0") == links_to(alone, "/dev/ttyUSB0")


def test_a_unit_that_joins_a_kit_has_a_short_link_although_another_one_is_away() -> None:
    own, other = a_usb_serial(0, port="1", serial="X"), a_usb_serial(1, port="2", serial="Y", devnum=5)
    new, rules = a_usb_serial(2, port="3", serial="Z", devnum=6), rule("kit", 'group_by = "all"')
    alone, node = Node(), Node()
    alone.look(rules, new)
    node.look(rules, own, other)
    node.allocate("kit")
    node.look(rules, other)
    node.look(rules, other, new)
    assert links_to(node, "/dev/ttyUSB2") == links_to(alone, "/dev/ttyUSB2")


def test_a_link_that_no_pod_has_for_another_unit_any_more_has_its_short_name_again() -> None:
    resources = resources_of(rule("kit", 'group_by = "all"'))
    builder, devices = Builder(resources, DOMAIN), by_sys_path(*kit("X", "Y"))
    before = builder.build(devices, replace(NO_PAST, leads_elsewhere=lambda *_: True))
    assert before != builder.build(devices)
    assert builder.build(devices) == Builder(resources, DOMAIN).build(devices)


def test_the_names_of_links_follow_what_pods_got() -> None:
    """Also where the nodes have not changed: the next pod may have got another link."""
    resources = resources_of(rule("kit", 'group_by = "all"'))
    devices = by_sys_path(
        *(
            a_usb_serial(n, port=str(n + 1), serial="X", product=product, devnum=4 + n)
            for n, product in enumerate(("6001", "6015"))
        )
    )
    builder = Builder(resources, DOMAIN)
    inventory = builder.build(devices)
    (short,) = inventory.ties
    for model, path in (("0403:6001", "/dev/ttyUSB0"), ("0403:6015", "/dev/ttyUSB1"), ("", None)):
        past = replace(NO_PAST, ties=inventory.ties, given_model=defaultdict(str, {short: model}).__getitem__)
        again = builder.build(devices, past)
        assert again == Builder(resources, DOMAIN).build(devices, past)
        assert again.links().get(short) == path


def test_a_unit_with_its_own_serial_number_keeps_its_link_at_another_port() -> None:
    gps, zigbee = kit("X", "Y")
    both = rule("kit", 'group_by = "all"')
    node = Node()
    node.look(both, gps, zigbee)
    node.allocate("kit")
    links = links_to(node, "/dev/ttyUSB0")
    node.look(both, zigbee)
    moved = a_usb_serial(2, port="7", serial="X", devnum=9)
    assert node.look(both, moved, zigbee) == {"kit": "Healthy"}
    assert links_to(node, "/dev/ttyUSB2") == links


def test_a_filler_that_gave_a_link_its_name_in_an_earlier_release_keeps_it_at_its_port() -> None:
    gps, zigbee = kit("0001", "0001")
    node = Node()
    node.look(KIT, gps)
    (device,) = node.inventory.offers["example.com/kit"].devices
    (new,) = device.links
    old = new.rpartition("@")[0]
    known = node.memory.devices["kit"]
    earlier = replace(known, device=replace(known.device, links=(old,)))
    node.memory = replace(node.memory, devices={"kit": earlier})
    restart(node)
    node.look(KIT, gps)
    assert links_to(node, "/dev/ttyUSB0") == {old}
    node.look(KIT, gps, zigbee)
    assert links_to(node, "/dev/ttyUSB0") == {old}
    node.allocate("kit")
    node.look(KIT)
    node.look(KIT, zigbee)
    assert node.inventory.links()[old] is None


def test_a_unit_gets_its_link_back_although_two_twins_came_while_it_was_away() -> None:
    both = rule("kit", 'group_by = "all"')
    first, second, third = (a_usb_serial(n, port=str(n + 1), serial="X", devnum=n + 4) for n in range(3))
    node = Node()
    node.look(both, first)
    node.allocate("kit")
    links = links_to(node, "/dev/ttyUSB0")
    node.look(both)
    node.look(both, second, third)
    assert {node.inventory.links()[link] for link in links} == {None}
    node.look(both, first, second, third)
    assert links_to(node, "/dev/ttyUSB0") == links


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("is_whole_kit_away", [False, True])
@pytest.mark.parametrize(
    ("port", "product", "is_its_own"),
    [
        ("3", "6015", False),
        ("3", "6001", True),  # the unit itself, at another port
        ("1", "6015", True),  # a unit that changes its mode stays at its port
    ],
)
def test_the_link_of_a_unit_does_not_lead_to_another_model_with_its_serial_number(
    port: str, product: str, *, is_its_own: bool, is_whole_kit_away: bool, restarts: bool
) -> None:
    rules, node = rule("kit", 'group_by = "all"'), Node()
    own, other = a_usb_serial(0, port="1", serial="X"), a_usb_serial(1, port="2", serial="Y", devnum=5)
    node.look(rules, own, other)
    node.allocate("kit")
    (link,) = links_to(node, "/dev/ttyUSB0")
    here = () if is_whole_kit_away else (other,)
    for _ in range(2):
        node.look(rules, *here)
        if restarts:
            restart(node)
    came = a_usb_serial(2, port=port, serial="X", product=product, devnum=6)
    for _ in range(2):
        assert node.look(rules, other, came)["kit"] == "Healthy"
        assert (node.inventory.links()[link] == "/dev/ttyUSB2") is is_its_own
        if restarts:
            restart(node)
    (new,) = links_to(node, "/dev/ttyUSB2")
    assert (new == link) is is_its_own
    node.look(rules, other)
    back = a_usb_serial(3, port="1", serial="X", devnum=7)
    assert node.look(rules, other, back)["kit"] == "Healthy"
    assert node.inventory.links()[link] == "/dev/ttyUSB3"


@pytest.mark.parametrize("restarts", [False, True])
def test_the_unit_of_a_kit_waits_elsewhere_although_another_model_with_its_serial_number_is_in_the_kit(
    *, restarts: bool
) -> None:
    kit_rule = rule(
        "kit", 'group_by = "all"', match='{ SUBSYSTEM = "tty", usb = { port = ["1", "2", "3"] } }'
    )
    rules, node = kit_rule + rule("u"), Node()
    own = a_usb_serial(0, port="1", serial="X")
    other = a_usb_serial(1, port="2", serial="Y", product="6015", devnum=5)
    node.look(rules, own, other)
    node.allocate("kit")
    node.look(rules, other)
    came = a_usb_serial(2, port="3", serial="X", product="6015", devnum=6)
    node.look(rules, other, came)
    if restarts:
        restart(node)
    moved = a_usb_serial(3, port="7", serial="X", devnum=7)
    told = node.look(rules, other, came, moved)
    assert told["u_X"] == "a pod may still hold it as kit of example.com/kit"


def test_a_link_keeps_its_unit_if_no_model_was_remembered() -> None:
    """In the memory of an earlier release, and where the kernel did not say which model it is."""
    rules, node = rule("kit", 'group_by = "all"'), Node()
    own, other = a_usb_serial(0, port="1", serial="X"), a_usb_serial(1, port="2", serial="Y", devnum=5)
    node.look(rules, own, other)
    node.allocate("kit")
    (link,) = links_to(node, "/dev/ttyUSB0")
    node.look(rules, other)
    known = node.memory.devices["kit"]
    assert [*known.earlier.values()] == ["0403:6001"]
    nameless = replace(known, earlier=dict.fromkeys(known.earlier, ""))
    node.memory = replace(node.memory, devices={"kit": nameless})
    node.look(rules, other, a_usb_serial(2, port="3", serial="X", devnum=6))
    assert links_to(node, "/dev/ttyUSB2") == {link}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_link_keeps_the_name_under_which_a_pod_may_have_got_it(*, restarts: bool) -> None:
    """Another model with the serial number came while no pod had the kit."""
    rules, node = rule("kit", 'group_by = "all"'), Node()
    node.look(rules, a_usb_serial(0, port="2", serial="A"))
    (old,) = links_to(node, "/dev/ttyUSB0")
    node.look(rules)
    came = a_usb_serial(2, port="3", serial="A", product="6015", devnum=6)
    node.look(rules, came)
    links = links_to(node, "/dev/ttyUSB2")
    assert old not in links
    node.allocate("kit")
    for _ in range(3):
        if restarts:
            restart(node)
        node.look(rules, came)
        assert links_to(node, "/dev/ttyUSB2") == links


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("port", ["3", "4"])
def test_another_model_that_was_in_a_kit_before_does_not_get_the_link_when_it_is_there_again(
    port: str, *, is_known: bool
) -> None:
    """Whether or not it is known which links the pod got."""
    rules, node = rule("kit", 'group_by = "all"'), Node()
    own, other = a_usb_serial(0, port="1", serial="X"), a_usb_serial(1, port="2", serial="Y", devnum=5)
    node.look(rules, own, other)
    node.allocate("kit")
    if not is_known:
        holding = replace(node.memory.held["kit"], links=())
        node.memory = replace(node.memory, held={"kit": holding})
    (link,) = links_to(node, "/dev/ttyUSB0")
    node.look(rules, other)
    for n, at in enumerate(("3", port)):
        node.look(rules, other, a_usb_serial(2, port=at, serial="X", product="6015", devnum=6 + n))
        assert node.inventory.links()[link] is None
        node.look(rules, other)
    came = a_usb_serial(2, port=port, serial="X", product="6015", devnum=8)
    node.look(rules, other, came)
    node.look(rules, a_usb_serial(3, port="1", serial="X", devnum=9), other, came)
    assert node.inventory.links()[link] == "/dev/ttyUSB3"


LOW, HIGH = ("1", "6001"), ("2", "6015")


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("back", [(LOW, HIGH), (HIGH, LOW)])
@pytest.mark.parametrize("left", [(), (LOW,), (HIGH,)])
@pytest.mark.parametrize("first", [LOW, HIGH])
def test_the_parts_of_a_dock_get_their_own_links_back_in_whichever_order_they_leave_and_return(
    first: tuple[str, str],
    left: tuple[tuple[str, str], ...],
    back: tuple[tuple[str, str], ...],
    *,
    restarts: bool,
) -> None:
    """They are two models with one serial number, in a kit with another unit, which stays."""

    def parts(*which: tuple[str, str], since: int) -> list[UdevDevice]:
        found = [
            a_usb_serial(int(port), port=port, serial="X", product=product, devnum=since + int(port))
            for port, product in which
        ]
        return [replace(each, incarnation=since + n) for n, each in enumerate(found)]

    rules, node, stays = rule("kit", 'group_by = "all"'), Node(), a_usb_serial(9, port="9", serial="Y")
    node.look(rules, stays, *parts(first, since=10))
    node.look(rules, stays, *parts(LOW, HIGH, since=10))
    node.allocate("kit")
    own = node.links()
    node.look(rules, stays, *parts(*left, since=10))
    node.look(rules, stays)
    if restarts:
        restart(node)
    node.look(rules, stays, *parts(back[0], since=20))
    node.look(rules, stays, *parts(LOW, HIGH, since=20))
    assert {link: node.links()[link] for link in own} == own


def test_no_part_of_a_kit_gets_the_link_of_another_model_with_its_serial_number_at_the_same_port() -> None:
    """The part has moved within the kit. It has not changed its mode."""
    kit, node = rule("kit", 'group_by = "all"'), Node()
    one, other = (
        replace(a_usb_serial(n, port=port, serial="A", product=product), incarnation=10 + n)
        for n, port, product in ((0, "1", "6001"), (1, "2", "6015"))
    )
    node.look(kit, one)
    node.look(kit, one, other)
    node.allocate("kit")
    (link,) = (link for link, leads in node.links().items() if leads == one.device_node)
    node.look(kit, other)
    node.look(kit)
    node.look(kit, replace(a_usb_serial(2, port="1", serial="A", product="6015"), incarnation=12))
    assert node.links()[link] is None


ALL = rule("kit", 'group_by = "all"')
JOINED = "a pod may still hold one of its device nodes as {}"


@pytest.mark.parametrize("ids", [("x_Y",), ("x_Y.1",), ("x_Y.0", "x_Y.1"), ("x_Y.1", "x_Y.0")])
def test_a_kit_to_which_an_edit_adds_the_unit_of_another_pod_says_what_that_pod_holds(
    ids: Sequence[str],
) -> None:
    own, other = kit("X", "Y")
    shared = ("replicas = 2",) if "." in ids[0] else ()
    at_1 = rule("kit", 'group_by = "all"', match='{ SUBSYSTEM = "tty", usb = { port = "1" } }')
    node = Node()
    node.look(at_1 + rule("x", *shared), own, other)
    for id_ in ("kit", *ids):
        node.allocate(id_)
    after = ALL + rule("x", *shared)
    assert node.look(after, own, other)["kit"] == JOINED.format(f"{min(ids)} of example.com/x")
    free = replace(node.nobody_holds_anything(), ids=frozenset({("example.com/kit", "kit")}))
    assert node.look(after, own, other, answer=free)["kit"] == "Healthy"


def test_a_kit_that_has_its_own_unit_again_with_that_of_another_pod_says_what_that_pod_holds() -> None:
    """The second unit joined the kit of a pod, and was given to another pod after an edit of the rules."""
    own, other = kit("X", "Y")
    node = Node()
    node.look(ALL, own)
    node.allocate("kit")
    node.look(ALL, own, other)
    node.look(rule("x"), own, other)
    node.allocate("x_Y")
    assert node.look(ALL, own, other)["kit"] == JOINED.format("x_Y of example.com/x")


def test_a_device_whose_link_would_lead_elsewhere_does_not_blame_another_pod() -> None:
    """Each pod has one port of an adapter, and an edit makes one device of both."""
    adapter = a_usb_device("4", serial="S", product="6010")
    ports = [
        a_usb_node(adapter, "tty", f"ttyUSB{n}", interface=f"0{n}", number=f"c 188:{n}") for n in range(2)
    ]
    node = Node()
    for id_ in sorted(node.look(rule("x"), *ports)):
        node.allocate(id_)
    told = node.look(rule("x", 'group_by = "usb_device"'), *ports)
    assert told["x_S"] == "the device plugged in now may not be the one that a pod got; delete that pod"


def test_a_kit_that_an_edit_divides_names_the_new_ids_if_no_pod_holds_it() -> None:
    node = Node()
    node.look(ALL, *kit("X", "Y"))
    after = rule("kit")
    assert node.look(after, *kit("X", "Y"))["kit"] == "its ids are now kit_X, kit_Y"
    node = Node()
    node.look(ALL, *kit("X", "Y"))
    node.allocate("kit")
    in_doubt = "the device plugged in now may not be the one that a pod got; delete that pod"
    assert node.look(after, *kit("X", "Y"))["kit"] == in_doubt


@pytest.mark.parametrize("is_optional", [False, True])
def test_no_pod_gets_one_node_of_each_of_two_twins(*, is_optional: bool) -> None:
    """The second one came without one of its nodes while the first one was away, and was not yet known."""
    rules = (
        rule("kit", 'group_by = "all"', match='[{ SUBSYSTEM = "tty" }, { SUBSYSTEM = "hidraw" }]')
        + f"""
[[resource.node]]
match.SUBSYSTEM = "tty"
container_path = "/dev/pad"

[[resource.node]]
match.SUBSYSTEM = "hidraw"
container_path = "/dev/keys"
optional = {str(is_optional).lower()}
"""
    )

    def a_pad(port: str, number: int, devnum: int) -> list[UdevDevice]:
        usb = a_usb_device(port, serial="S", devnum=devnum)
        nodes = a_usb_node(usb, "tty", f"ttyUSB{number}"), a_usb_node(usb, "hidraw", f"hidraw{number}")
        return [replace(each, incarnation=10 * devnum) for each in nodes]

    node, twin = Node(), a_pad("2", 1, 3)
    node.look(rules, *a_pad("1", 0, 2))
    node.allocate("kit")
    got = {*node.inventory.links()}
    node.look(rules)
    node.look(rules, twin[0])
    for second in (twin[:1], twin):
        assert node.look(rules, *a_pad("1", 0, 4), *second) == {
            "kit": "the device plugged in now may not be the one that a pod got; delete that pod"
        }
        assert {node.inventory.links()[link] for link in got} == {None}
    answer = node.nobody_holds_anything()
    assert node.look(rules, *a_pad("1", 0, 4), *twin, answer=answer) == {"kit": "Healthy"}


def test_a_kit_without_a_pod_does_not_remember_the_port_that_a_card_with_a_serial_number_has_left() -> None:
    """The card takes its siblings along, so nothing is missing there."""
    node, rules = Node(), rule("kit", 'group_by = "all"')
    node.look(rules, *a_card("1", {0: 0, 1: 1}, 10))
    node.look(rules, *a_card("2", {0: 0, 1: 1}, 20))
    assert node.memory.devices["kit"].earlier == {}
    node.look(rules, *a_card("2", {0: 0}, 20))
    assert [spot.number for spot in node.memory.devices["kit"].earlier] == [1]
