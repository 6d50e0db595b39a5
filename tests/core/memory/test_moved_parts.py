"""A unit that moves takes along what a pod may still have of it under another id."""

from dataclasses import replace

import pytest

from genericdp.core.allocate import RefusedError
from genericdp.core.buses.port import Dock
from genericdp.core.device import UdevDevice
from genericdp.core.inventory.identity import basis_of
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.past import NO_TWINS, WHOLE, Twin
from genericdp.core.inventory.place import Spot
from genericdp.core.memory.given.moves import Moves
from genericdp.core.memory.given.parts import with_not_given
from genericdp.core.memory.held import Holding, give
from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.saved import dump, load
from tests.scenes.builders import a_modem, a_usb_device, a_usb_node, a_usb_serial
from tests.scenes.edits import Node, rule

GROUPED = 'group_by = "usb_device"'
MODEM = rule("x", GROUPED, match='{ usb = { vendor = "2c7c" } }')
QMI = rule("y", match='{ SUBSYSTEM = "usbmisc" }')
QMI_ELSEWHERE = rule("y", match='{ SUBSYSTEM = "usbmisc", usb = { port = ["5", "6"] } }')
USB = rule("y", GROUPED, match='{ SUBSYSTEM = "usb" }')
WAITING = "a pod may still hold it as x_EC25-17 of example.com/x"


def a_modem_at(port: str, first: int = 0) -> tuple[UdevDevice, ...]:
    """As it is plugged in there: its directories in sysfs are new."""
    return tuple(replace(part, incarnation=100 + first) for part in a_modem(port, first=first))


EDITS = {
    "another rule takes a part": (MODEM, QMI + MODEM),
    "another rule takes the unit itself": (MODEM, USB + MODEM),
    "another rule takes a part at the other ports": (QMI_ELSEWHERE + MODEM, QMI_ELSEWHERE + MODEM),
    "the device becomes smaller": (
        rule("x", GROUPED, match='{ SUBSYSTEM = "usb" }'),
        USB + rule("x", GROUPED),
    ),
}


@pytest.mark.parametrize("loses_power", ["", "before", "after"])
@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize(("before", "after"), EDITS.values(), ids=EDITS)
def test_a_part_of_a_unit_of_a_pod_waits_at_each_port_to_which_the_unit_is_moved(
    before: str, after: str, loses_power: str, *, is_away: bool
) -> None:
    node = Node()
    node.look(before, *a_modem_at("4"))
    node.allocate("x_EC25-17")
    if not is_away:
        node.look(after, *a_modem_at("4"))
    for number, port in enumerate("56", start=1):
        node.look(after)
        if loses_power:
            node.memory = load(dump(node.memory, "before"), loses_power)
        for _ in range(2):
            told = node.look(after, *a_modem_at(port, 4 * number))
            (part,) = (why for id_, why in told.items() if id_.startswith("y"))
            assert part == WAITING
    told = node.look(after, *a_modem_at("6", 8), answer=node.nobody_holds_anything())
    assert [why for id_, why in told.items() if id_.startswith("y")] == ["Healthy"]


def test_what_stays_of_a_part_does_not_grow_with_each_move() -> None:
    node = Node()
    node.look(MODEM, *a_modem_at("4"))
    node.allocate("x_EC25-17")
    counts: list[int] = []
    for number, port in enumerate("56789"):
        node.look(QMI + MODEM, *a_modem_at(port, 4 * number))
        counts.append(len(node.memory.devices["x_EC25-17"].earlier))
    assert counts == [3, 1, 1, 1, 1]


def a_red_one(number: int, port: str, serial: str | None, colour: str = "red") -> UdevDevice:
    device = a_usb_serial(number, port=port, serial=serial)
    return replace(device, properties={**device.properties, "ID_COLOR": colour}, incarnation=10 + number)


BY_COLOUR = ('identity = ["ID_COLOR"]', 'group_by = "ID_COLOR"')


@pytest.mark.parametrize("loses_power", ["", "before", "after"])
@pytest.mark.parametrize("serial", [None, "0001", "A5"])
@pytest.mark.parametrize("keys", BY_COLOUR)
@pytest.mark.parametrize("is_edited", [False, True])
def test_a_unit_that_properties_tell_waits_at_each_port_under_another_name(
    is_edited: bool, keys: str, serial: str | None, loses_power: str
) -> None:
    at_port_2 = '{ SUBSYSTEM = "tty", usb = { port = "2" } }'
    apart = rule("x", keys, match=at_port_2) + rule("y", keys)
    before, after = (rule("x", keys), rule("y", keys)) if is_edited else (apart, apart)
    node = Node()
    (held,) = node.look(before, a_red_one(0, "2", serial))
    node.allocate(held)
    if is_edited:
        (why,) = node.look(after, a_red_one(0, "2", serial)).values()
        assert why == f"a pod may still hold it as {held} of example.com/x"
    for number, port in enumerate("34", start=1):
        node.look(after)
        if loses_power:
            node.memory = load(dump(node.memory, "before"), loses_power)
        told = node.look(after, a_red_one(number, port, serial))
        told.pop(held, None)
        assert [*told.values()] == [f"a pod may still hold it as {held} of example.com/x"]
    told = node.look(after, a_red_one(2, "4", serial), answer=node.nobody_holds_anything())
    assert told.popitem()[1] == "Healthy"


@pytest.mark.parametrize("keys", BY_COLOUR)
@pytest.mark.parametrize("serials", [("A", "B"), ("A", "A"), (None, None)])
@pytest.mark.parametrize("both_are_held", [False, True])
def test_a_unit_stays_its_own_pods_when_another_one_of_its_colour_leaves(
    serials: tuple[str | None, str | None], keys: str, *, both_are_held: bool
) -> None:
    """A free one stays free, too."""
    apart = rule("x", keys, match='{ SUBSYSTEM = "tty", usb = { port = "1" } }') + rule("y", keys)
    for rules in (rule("x", keys), apart):
        node = Node()
        own, other = a_red_one(0, "1", serials[0]), a_red_one(1, "2", serials[1])
        ids = node.look(rules, own, other)
        if len(ids) == 1:
            continue  # one kit of both
        by_link = {path: link.partition("@")[0] for link, path in node.inventory.links().items()}
        node.allocate(by_link["/dev/ttyUSB1"])
        if both_are_held:
            node.allocate(by_link["/dev/ttyUSB0"])
        for _ in range(2):
            told = node.look(rules, own)
            assert told.pop(by_link["/dev/ttyUSB1"]).startswith("it is unplugged")
            # If nothing tells them apart, a free one may be the one that left.
            is_free = rules != apart or "group_by" not in keys or serials[0] != serials[1]
            waits = f"a pod may still hold it as {by_link['/dev/ttyUSB1']} of example.com/y"
            assert told == {by_link["/dev/ttyUSB0"]: "Healthy" if is_free or both_are_held else waits}
            node.memory = load(dump(node.memory))
        assert node.look(rules, own, other) == dict.fromkeys(ids, "Healthy")


@pytest.mark.parametrize(
    "keys", ['identity = ["ID_COLOR"]', 'identity = ["ID_COLOR"]\ngroup_by = "usb_device"']
)
def test_a_unit_with_a_serial_number_of_its_own_waits_at_each_port_beside_another_one_of_its_colour(
    keys: str,
) -> None:
    rules, node = rule("x", keys), Node()
    one = a_red_one(0, "1", "A")
    ids = sorted(node.look(rules, one, a_red_one(1, "2", "B")), key=len)
    for id_ in ids:
        node.allocate(id_)
    node.look(rules, one)
    told = node.look(rules, one, a_red_one(2, "3", "B"))
    assert told.pop(ids[0]) == "Healthy"
    assert told.pop(ids[1]).startswith("it is unplugged")
    assert [*told.values()] == [f"a pod may still hold it as {ids[1]}"]


@pytest.mark.parametrize("keys", BY_COLOUR)
def test_a_unit_of_another_colour_does_not_wait(keys: str) -> None:
    node = Node()
    (held,) = node.look(rule("x", keys), a_red_one(0, "2", None))
    node.allocate(held)
    node.look(rule("y", keys))
    assert [*node.look(rule("y", keys), a_red_one(1, "3", None, "blue")).values()] == ["Healthy"]


@pytest.mark.parametrize("is_away", [False, True])
def test_what_edited_rules_have_joined_waits_at_each_port_for_both_pods(*, is_away: bool) -> None:
    shared = MODEM + "replicas = 2\n"
    for joined, other in ((MODEM, "x_EC25-17"), (shared, "x_EC25-17.1")):
        apart = QMI + joined
        node = Node()
        told = node.look(apart, *a_modem_at("4"))
        node.allocate(next(id_ for id_ in told if id_.startswith("y")))
        node.allocate(next(id_ for id_ in told if id_.startswith("x")))
        if not is_away:
            node.look(joined, *a_modem_at("4"))
        node.look(joined)
        told = node.look(joined, *a_modem_at("5", 4))
        assert told[other] != "Healthy"
        with pytest.raises(RefusedError):
            node.allocate(other)
        # Nor does a container that starts again get what the other one has.
        (device,) = node.inventory.offers["example.com/x"].devices
        assert not device.healthy
        assert set(node.inventory.links().values()) == {None}


def test_a_part_without_a_serial_number_is_not_taken_for_another_one_that_has_moved() -> None:
    """It is back at its own port, where it waits for the pod."""

    def an_adapter(number: int, port: str, inode: int) -> UdevDevice:
        device = a_usb_serial(number, port=port, serial=None, devnum=9 + inode)
        return replace(device, incarnation=10 + inode)

    kit = rule("x", 'group_by = "all"', match='{ SUBSYSTEM = "tty" }')
    apart = rule("y", match='{ SUBSYSTEM = "tty", usb = { port = "3" } }') + kit
    node = Node()
    node.look(kit, an_adapter(0, "2", 0), an_adapter(1, "3", 1))
    node.allocate("x")
    node.look(apart, an_adapter(0, "2", 0), an_adapter(1, "3", 1))
    node.look(apart)
    node.look(apart, an_adapter(0, "4", 2))
    told = node.look(apart, an_adapter(0, "4", 2), an_adapter(1, "3", 3))
    assert [why for id_, why in told.items() if id_.startswith("y")] == [
        "a pod may still hold it as x of example.com/x"
    ]


@pytest.mark.parametrize("loses_power", ["", "before", "after"])
@pytest.mark.parametrize("is_away", [False, True])
def test_a_part_without_a_serial_number_waits_where_its_dock_has_moved_to(
    loses_power: str, *, is_away: bool
) -> None:
    def a_dock_at(port: str, since: int) -> tuple[UdevDevice, ...]:
        dock = a_usb_device(port, product="d0cc", serial="D1", devnum=20 + since)
        units = (
            replace(a_usb_device(f"{port}.{n}", serial=None, devnum=30 + 2 * since + n), parent=dock)
            for n in (1, 2)
        )
        return tuple(
            replace(
                a_usb_node(unit, "tty", f"ttyUSB{n}", number=f"c 188:{n}"), incarnation=100 + 2 * since + n
            )
            for n, unit in enumerate(units)
        )

    docks = rule("x", 'group_by = { ID_MODEL_ID = "d0cc" }', match='{ SUBSYSTEM = "tty" }')
    apart = rule("y", match='{ SUBSYSTEM = "tty", usb = { port = "*.2" } }') + docks
    node = Node()
    assert node.look(docks, *a_dock_at("2", 0)) == {"x_D1": "Healthy"}
    node.allocate("x_D1")
    if not is_away:
        node.look(apart, *a_dock_at("2", 0))
    for since, port in enumerate("34", start=1):
        node.look(apart)
        if loses_power:
            node.memory = load(dump(node.memory, "before"), loses_power)
        told = node.look(apart, *a_dock_at(port, since))
        assert [why for id_, why in told.items() if id_.startswith("y")][-1] == (
            "a pod may still hold it as x_D1 of example.com/x"
        )


def test_a_part_of_a_unit_in_a_kit_waits_where_the_unit_has_moved_to() -> None:
    """The kit has no port of its own, so the serial number tells."""
    kit = rule("x", 'group_by = "all"', match='{ usb = { vendor = "2c7c" } }')
    node = Node()
    node.look(kit, *a_modem_at("4"))
    node.allocate("x")
    node.look(QMI + kit, *a_modem_at("4"))
    node.look(QMI + kit)
    told = node.look(QMI + kit, *a_modem_at("5", 4))
    assert told["y_EC25-17.if04-cdc-wdm"] == "a pod may still hold it as x of example.com/x"


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_part_that_an_edit_makes_a_device_of_its_own_waits_at_each_port(*, is_saved: bool) -> None:
    """Both ids stand for the same values. If the memory does not say for which, they may be the same."""
    grouped, apart = rule("x", BY_COLOUR[0], GROUPED), rule("x", BY_COLOUR[0])

    def a_red_modem(port: str, first: int) -> tuple[UdevDevice, ...]:
        return tuple(
            replace(part, properties={**part.properties, "ID_COLOR": "red"})
            for part in a_modem_at(port, first)
        )

    node = Node()
    (held,) = node.look(grouped, *a_red_modem("4", 0))
    node.allocate(held)
    node.look(apart)
    if not is_saved:
        known = node.memory.devices[held]
        forgotten = replace(known, device=replace(known.device, key_hash=""))
        node.memory = replace(node.memory, devices={held: forgotten})
    told = node.look(apart, *a_red_modem("5", 4))
    told.pop(held)
    assert set(told.values()) == {f"a pod may still hold it as {held}"}


def in_rack(number: int, port: str, product: str, since: int = 0, serial: str | None = None) -> UdevDevice:
    usb = replace(
        a_usb_device(port, serial=serial, product=product, devnum=3 + number), incarnation=since + 1
    )
    tty = a_usb_node(
        usb,
        "tty",
        f"ttyUSB{number}",
        interface=f"{int(product) % 2:02}",
        number=f"c 188:{number}",
        properties={"RACK": "r"},
    )
    return replace(tty, incarnation=100 + 10 * since + number)


RACK = rule("kit", 'group_by = "RACK"', match='{ SUBSYSTEM = "tty", RACK = "r" }')


@pytest.mark.parametrize("serial", [None, "S"], ids=["no serial number", "parts of a dock"])
@pytest.mark.parametrize("loses_power", ["", "before", "after"])
@pytest.mark.parametrize("away", [0, 1], ids=["the first part", "the second part"])
def test_a_part_of_a_kit_comes_back_at_its_port(serial: str | None, loses_power: str, away: int) -> None:
    """Its parts do not move together."""
    parts = [in_rack(0, "1", "6014", serial=serial), in_rack(1, "3", "6015", serial=serial)]
    node = Node()
    (id_,) = node.look(RACK, *parts)
    node.allocate(id_)
    before = node.inventory.links()
    node.look(RACK, parts[1 - away])
    if loses_power:
        node.memory = load(dump(node.memory, "before"), loses_power)
        node.look(RACK, parts[1 - away])
    parts[away] = replace(parts[away], incarnation=200)
    for _ in range(2):
        assert node.look(RACK, *parts) == {id_: "Healthy"}
        assert node.inventory.links() == before


@pytest.mark.parametrize("serial", [None, "S"], ids=["no serial number", "parts of a dock"])
@pytest.mark.parametrize("leave", [(0, 1), (1, 0)])
@pytest.mark.parametrize("come", [(0, 1), (1, 0)])
@pytest.mark.parametrize("is_edited", [False, True])
def test_the_parts_of_a_kit_leave_and_come_back_one_by_one(
    serial: str | None, leave: tuple[int, int], come: tuple[int, int], *, is_edited: bool
) -> None:
    """They have different device nodes, and are behind one hub."""
    kit = RACK.replace('"tty"', '["tty", "hidraw"]')
    apart = rule("single", match='{ SUBSYSTEM = ["tty", "hidraw"], usb = { product = "6015" } }') + kit

    def parts(since: int) -> tuple[list[UdevDevice], list[UdevDevice]]:
        first = in_rack(0, "3.1", "6014", since, serial)
        second = in_rack(1, "3.2", "6015", since, serial)
        usb = second.usb_device
        assert usb is not None
        hidraw = a_usb_node(usb, "hidraw", "hidraw0", number="c 240:0", properties={"RACK": "r"})
        return [first], [second, replace(hidraw, incarnation=900 + since)]

    node, before = Node(), parts(0)
    (id_,) = node.look(kit, *before[0], *before[1])
    node.allocate(id_)
    links = node.inventory.links()
    node.look(kit, *before[leave[1]])
    node.look(kit)
    after = parts(1)
    node.look(kit, *after[come[0]])
    told = node.look(apart if is_edited else kit, *after[0], *after[1])
    if is_edited:
        waits = {why for each, why in told.items() if each.startswith("single")}
        assert waits == {f"a pod may still hold it as {id_} of example.com/kit"}
    else:
        assert told == {id_: "Healthy"}
        assert node.inventory.links() == links


def test_a_part_of_a_kit_that_was_away_during_an_edit_waits_at_its_port() -> None:
    apart = rule("single", match='{ SUBSYSTEM = "tty", usb = { product = "6015" } }') + RACK
    own, other = in_rack(0, "1", "6015"), in_rack(1, "3", "6010")
    node = Node()
    (id_,) = node.look(RACK, own, other)
    node.allocate(id_)
    node.look(RACK, other)
    node.look(apart, other)
    told = node.look(apart, replace(own, incarnation=200), other)
    (why,) = (why for each, why in told.items() if each.startswith("single"))
    assert why == f"a pod may still hold it as {id_} of example.com/kit"


@pytest.mark.parametrize("is_swapped", [False, True])
def test_what_an_edit_took_from_a_unit_waits_although_another_unit_is_at_its_old_port(
    *, is_swapped: bool
) -> None:
    def a_unit(first: int, port: str, name: str, since: int) -> list[UdevDevice]:
        usb = a_usb_device(port, serial=None, product="6010", devnum=since + 3)
        usb = replace(usb, properties={**usb.properties, "NAME": name}, incarnation=since)
        return [
            replace(
                a_usb_node(
                    usb,
                    "tty",
                    f"ttyUSB{first + n}",
                    interface=f"0{n}",
                    number=f"c 188:{first + n}",
                    properties={"NAME": name},
                ),
                incarnation=10 * since + n,
            )
            for n in (0, 1)
        ]

    whole = rule("x", GROUPED, 'identity = ["NAME"]')
    apart = rule("w", match='{ SUBSYSTEM = "tty", usb = { interface = "01" } }') + whole
    node = Node()
    node.look(whole, *a_unit(0, "1", "a", 1), *a_unit(2, "3", "b", 2))
    held = next(id_ for id_, known in node.memory.devices.items() if known.device.port.endswith(" 1"))
    node.allocate(held)
    node.look(apart, *a_unit(0, "1", "a", 1), *a_unit(2, "3", "b", 2))
    node.look(apart)
    others = a_unit(2, "1", "b", 3) if is_swapped else []
    node.look(apart, *others)
    node.look(apart, *others, *a_unit(0, "3", "a", 4))
    reasons = {
        device.nodes[0].path: device.reason
        for device in node.inventory.offers["example.com/w"].devices
        if device.nodes[0].sys_path
    }
    assert reasons.pop("/dev/ttyUSB1") == f"a pod may still hold it as {held} of example.com/x"
    assert reasons == ({"/dev/ttyUSB3": ""} if is_swapped else {})


@pytest.mark.parametrize(
    ("was", "now", "moved"),
    [
        (("3",), ("5",), "5.1"),
        (("3.1", "3.2"), ("5.1",), "5.1"),
        (("3", "4"), ("5",), "3.1"),
        (("3",), ("5", "6"), "3.1"),
    ],
    ids=["a unit", "a dock", "a kit before", "a kit after"],
)
def test_only_a_unit_or_a_dock_takes_its_parts_along(
    was: tuple[str, ...], now: tuple[str, ...], moved: str
) -> None:
    def a_device_at(*ports: str) -> Device:
        spots = tuple(Spot(port, "", f"if0{n}") for n, port in enumerate(ports))
        return Device("x", port=ports[0].partition(".")[0], spots=spots)

    part = Spot("3.1", "", "if09")
    moves = Moves(a_device_at(*was), a_device_at(*now), (), NO_TWINS)
    assert moves.of(part, "") == part._replace(port=moved)


@pytest.mark.parametrize(
    ("was", "now", "is_it"),
    [("a", "a", True), ("a", "b", False), ("", "b", True), ("a", "", True)],
)
def test_a_unit_with_the_serial_number_is_the_one_that_left_unless_it_is_known_to_be_another_model(
    was: str, now: str, *, is_it: bool
) -> None:
    lost, here = Spot("3", "X", "if00"), Spot("2", "Y", "if00")
    before = Device("kit", spots=(here,), models=("a",))
    after = Device("kit", spots=(here, Spot("4", "X", "if00")), models=("a", now))
    assert Moves(before, after, (lost,), NO_TWINS).of(lost, was) == (None if is_it else lost)


@pytest.mark.parametrize(
    ("here", "earlier"),
    [
        (Spot("2", "Y", "if00"), Spot("2", "Y", "if00")),
        (Spot("3", "Y", "if00"), Spot("9", "", "")),
    ],
    ids=["another node is back", "something is at its port"],
)
def test_a_node_has_not_moved_if(here: Spot, earlier: Spot) -> None:
    lost, came = Spot("3", "X", "if00"), Spot("4", "X", "if00")
    was, now = Device("kit", spots=(lost,)), Device("kit", spots=(here, came))
    assert Moves(was, now, (earlier,), NO_TWINS).of(lost, "") == lost
    assert Moves(was, replace(now, spots=(came,)), (earlier,), NO_TWINS).of(lost, "") is None


@pytest.mark.parametrize(
    ("basis", "was", "now", "lost", "moved"),
    [
        (basis_of("FOO"), (0,), (1,), 0, None),
        (basis_of("FOO"), (0,), (1,), 2, 2),
        (basis_of("FOO"), (0, 3), (1,), 0, 0),
        (basis_of("FOO"), (0,), (1, 2), 0, 0),
        ("serial", (0,), (1,), 0, 0),
    ],
    ids=["told by a property", "taken by an edit", "one of two", "two have come", "told by nothing"],
)
def test_a_sibling_may_have_another_number_at_another_port_only_if_a_property_identifies_it(
    basis: str, was: tuple[int, ...], now: tuple[int, ...], lost: int, moved: int | None
) -> None:
    def card(port: str, *numbers: int) -> Device:
        spots = tuple(Spot(port, "CARD", "if00", number) for number in numbers)
        return Device("x", unit="x", port=port, spots=spots, basis=basis)

    there = Moves(card("3", *was), card("2", *now), (), NO_TWINS).of(Spot("3", "CARD", "if00", lost), "")
    assert there == (None if moved is None else Spot("2", "CARD", "if00", moved))


def test_a_kit_is_no_unit_even_if_all_of_it_is_behind_one_dock() -> None:
    def a_kit(port: str) -> Device:
        spot = Spot(f"{port}.2", "", "if00")
        return Device("kit", spots=(spot,), docks={spot: Dock("D", "", "2")})

    lost = Spot("1.3", "", "if00")
    assert Moves(a_kit("1"), a_kit("5"), (), NO_TWINS).of(lost, "") == lost


PORTS_2_AND_3 = '{ SUBSYSTEM = "tty", usb = { port = ["2", "3"] } }'
KIT_AND_REST = rule("kit", 'group_by = "all"', match=PORTS_2_AND_3) + rule("u")


def a_unit(number: int, port: str, serial: str) -> UdevDevice:
    """As it is plugged in there."""
    device = a_usb_serial(number, port=port, serial=serial, devnum=9 + number)
    return replace(device, incarnation=10 + number)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("leaves_with_the_kit", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_unit_that_was_in_the_kit_of_another_pod_by_mistake_is_its_own_pods_again(
    steps: int, *, leaves_with_the_kit: bool, restarts: bool
) -> None:
    """The kit had to wait while it was there, so the other pod did not get it."""
    own = a_unit(0, "2", "K1")
    node = Node()
    node.look(KIT_AND_REST, own, a_unit(1, "7", "A5"))
    node.allocate("kit")
    node.allocate("u_A5")
    node.look(KIT_AND_REST, own)
    for _ in range(steps):
        told = node.look(KIT_AND_REST, own, a_unit(2, "3", "A5"))
        assert told["kit"] == "a pod may still hold it as u_A5 of example.com/u"
        if restarts:
            node.memory = load(dump(node.memory))
    if leaves_with_the_kit:
        node.look(KIT_AND_REST)
    else:
        assert node.look(KIT_AND_REST, own)["kit"] == "Healthy"
    here = () if leaves_with_the_kit else (own,)
    assert node.look(KIT_AND_REST, *here, a_unit(3, "7", "A5"))["u_A5"] == "Healthy"


@pytest.mark.parametrize("lacks_a_part", [False, True])
def test_a_unit_that_stays_in_a_kit_until_its_own_pod_has_gone_is_a_part_of_it(*, lacks_a_part: bool) -> None:
    """Then the next pod that gets the kit has it, and it waits wherever it is plugged in."""
    own, wrong = a_unit(0, "2", "K1"), a_unit(2, "3", "A5")
    node = Node()
    node.look(KIT_AND_REST, own, a_unit(1, "7", "A5"), *((a_unit(4, "3", "K2"),) if lacks_a_part else ()))
    node.allocate("kit")
    node.allocate("u_A5")
    node.look(KIT_AND_REST, own)
    node.look(KIT_AND_REST, own, wrong)
    only_kit = {"kit": node.memory.held["kit"]}
    node.memory = replace(node.memory, held=only_kit)
    assert node.look(KIT_AND_REST, own, wrong)["kit"] == "Healthy"
    node.allocate("kit")
    node.look(KIT_AND_REST, own)
    told = node.look(KIT_AND_REST, own, a_unit(3, "7", "A5"))
    assert told["u_A5"] == "a pod may still hold it as kit of example.com/kit"


def test_what_a_pod_got_with_its_kit_stays_its_own_when_the_kit_has_to_wait() -> None:
    """The kubelet says that another pod has the unit, too. It was in the kit before."""
    own, part = a_unit(0, "2", "K1"), a_unit(1, "3", "A5")
    node = Node()
    node.look(KIT_AND_REST, own, part)
    node.allocate("kit")
    node.look(KIT_AND_REST, own)
    told = node.look(KIT_AND_REST, own, a_unit(2, "7", "A5"))
    assert told["u_A5"] == "a pod may still hold it as kit of example.com/kit"
    offer = node.offer_of("u_A5")
    node.memory = replace(node.memory, held=give(node.memory.held, offer, ["u_A5"], node.now))
    node.look(KIT_AND_REST, own)
    told = node.look(KIT_AND_REST, own, a_unit(3, "3", "A5"))
    assert told["kit"] == "a pod may still hold it as u_A5 of example.com/u"
    node.look(KIT_AND_REST, own)
    told = node.look(KIT_AND_REST, own, a_unit(4, "7", "A5"))
    assert told["u_A5"] == "a pod may still hold it as kit of example.com/kit"


@pytest.mark.parametrize("given", ["", "since", "before, by CDI", "after the other one, by CDI"])
def test_a_unit_that_came_to_a_shared_kit_is_a_part_of_it_for_pods_that_may_have_got_it(given: str) -> None:
    """An edit makes the unit exclusive while a pod has it with the kit."""
    shared = KIT_AND_REST.replace('group_by = "all"', 'group_by = "all"\nreplicas = 2')
    own, node = a_unit(0, "2", "K1"), Node()
    node.look(shared + "replicas = 2\n", own, a_unit(1, "7", "A5"))
    if given.startswith("after"):
        node.allocate("kit.0")
    if "by CDI" in given:
        offer = node.offer_of("kit.1")
        node.memory = replace(
            node.memory, held=give(node.memory.held, offer, ["kit.1"], node.now, by_cdi=True)
        )
    if not given.startswith("after"):
        node.allocate("kit.0")
    node.allocate("u_A5.0")
    node.look(shared + "replicas = 2\n", own)
    told = node.look(shared + "replicas = 2\n", own, a_unit(2, "3", "A5"))
    assert told["kit.0"] == "Healthy"
    if given == "since":
        node.allocate("kit.1")
    node.memory = replace(
        node.memory, held={id_: each for id_, each in node.memory.held.items() if id_.startswith("kit")}
    )
    node.look(shared, own)
    told = node.look(shared, own, a_unit(3, "7", "A5"))
    waits = "a pod may still hold it as kit.0 of example.com/kit"
    assert told["u_A5"] == (waits if given else "Healthy")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_free_unit_that_was_in_a_kit_of_a_pod_makes_no_other_kit_wait(*, restarts: bool) -> None:
    """Its link was not in the answer to the pod."""
    kot = rule("kot", 'group_by = "all"', match='{ SUBSYSTEM = "tty", usb = { port = ["7", "8"] } }')
    rules, node = kot + KIT_AND_REST, Node()
    own = a_unit(0, "2", "K1"), a_unit(1, "7", "A5")
    node.look(rules, *own)
    node.allocate("kit")
    node.allocate("kot")
    for number, port in enumerate(("3", "8", "3"), start=2):
        assert node.look(rules, *own, a_unit(number, port, "B2")) == {"kit": "Healthy", "kot": "Healthy"}
        if restarts:
            node.memory = load(dump(node.memory))
        node.look(rules, *own)
    assert node.look(rules, *own, a_unit(6, "1", "B2"))["u_B2"] == "Healthy"


def test_a_part_that_moves_within_its_kit_stays_a_part_of_it() -> None:
    node = Node()
    own = a_unit(0, "2", "K1")
    node.look(KIT_AND_REST, own, a_unit(1, "3", "A5"))
    node.allocate("kit")
    node.look(KIT_AND_REST, a_unit(2, "2", "A5"))
    node.look(KIT_AND_REST, a_unit(2, "2", "A5"), a_unit(3, "3", "K1"))
    told = node.look(KIT_AND_REST, a_unit(2, "2", "A5"), a_unit(4, "7", "K1"))
    assert told["u_K1"] == "a pod may still hold it as kit of example.com/kit"


@pytest.mark.parametrize(
    "rules",
    [
        rule("kit", 'group_by = "all"', match=PORTS_2_AND_3) + rule("u"),
        rule("kit", 'group_by = "ID_PATH"', match=PORTS_2_AND_3) + rule("u"),
    ],
)
@pytest.mark.parametrize("restarts", [False, True])
def test_the_unit_of_a_kit_waits_elsewhere_whatever_is_plugged_in_at_its_old_port(
    rules: str, *, restarts: bool
) -> None:
    node = Node()
    node.look(rules, a_unit(0, "3", "C"), a_unit(1, "7", "A"))
    (kit,) = (id_ for id_ in node.memory.devices if id_.startswith("kit"))
    node.allocate(kit)
    told: dict[str, str] = {}
    for present in (
        (a_unit(1, "7", "A"),),
        (),
        (a_unit(2, "7", "C"),),
        (a_unit(2, "7", "C"), a_unit(3, "3", "A")),
        (a_unit(2, "7", "C"), a_unit(3, "3", "A")),
    ):
        told = node.look(rules, *present)
        if restarts:
            node.memory = load(dump(node.memory))
    assert told["u_C"] == f"a pod may still hold it as {kit} of example.com/kit"


def test_a_part_that_leaves_a_kit_takes_no_other_model_from_its_pod() -> None:
    """Parts of a dock may share a serial number."""
    node = Node()
    part = replace(a_usb_serial(0, port="2", serial="DOCK", product="6015"), incarnation=10)
    rest = a_unit(1, "3", "B"), a_unit(2, "7", "DOCK")
    node.look(KIT_AND_REST, part, *rest)
    node.allocate("kit")
    node.allocate("u_DOCK")
    for _ in range(2):
        assert node.look(KIT_AND_REST, *rest) == {"kit": "Healthy", "u_DOCK": "Healthy"}
        node.memory = load(dump(node.memory))
    assert node.look(KIT_AND_REST, part, *rest) == {"kit": "Healthy", "u_DOCK": "Healthy"}


def test_a_unit_of_a_pod_waits_in_a_kit_beside_another_model_with_its_serial_number() -> None:
    """The link of that one is tied to its port. That does not make the two twins."""
    node = Node()
    part, own = (
        replace(a_usb_serial(n, port=port, serial="DOCK", product=product), incarnation=10 + n)
        for n, port, product in ((0, "2", "6015"), (1, "4", "6001"))
    )
    node.look(KIT_AND_REST, own)
    node.allocate("u_DOCK")
    node.look(KIT_AND_REST, own, part)
    node.allocate("kit")
    node.look(KIT_AND_REST, part)
    moved = replace(a_usb_serial(2, port="3", serial="DOCK", product="6001"), incarnation=12)
    for _ in range(2):
        told = node.look(KIT_AND_REST, part, moved)
        why = "a pod may still hold it as u_DOCK of example.com/u"
        assert told == {"kit": why, "u_DOCK": "it is unplugged"}
        node.memory = load(dump(node.memory))


def test_a_unit_of_a_pod_waits_at_a_port_that_was_tied_to_another_model_with_its_serial_number() -> None:
    ports = '{ SUBSYSTEM = "tty", usb = { port = ["1", "2"] } }'
    rules, node = rule("l", match=ports) + rule("u"), Node()
    own, tied, third = (
        replace(a_usb_serial(n, port=port, serial="A", product=product), incarnation=10 + n)
        for n, port, product in ((0, "4", "6001"), (1, "1", "6015"), (2, "2", "6014"))
    )
    node.look(rules, own)
    node.allocate("u_A")
    node.look(rules, own, tied)
    node.look(rules, own, tied, third)
    node.look(rules, own, tied)
    node.allocate("l_A")
    node.look(rules, own)
    node.look(rules)
    moved = replace(a_usb_serial(3, port="1", serial="A", product="6001"), incarnation=13)
    for _ in range(2):
        assert node.look(rules, moved)["l_A"] == "a pod may still hold it as u_A of example.com/u"
        node.memory = load(dump(node.memory))


@pytest.mark.parametrize("grouping", ['"all"', '"ID_PATH"'])
def test_a_twin_in_a_kit_of_its_own_stays_there_when_the_other_one_leaves_its_kit(grouping: str) -> None:
    keys = f"group_by = {grouping}"
    rules = rule("kit", keys, match=PORTS_2_AND_3) + rule("kot", keys)
    node = Node()
    rest = a_unit(0, "2", "A"), a_unit(1, "3", "B"), a_unit(2, "8", "C")
    told = node.look(rules, *rest, a_unit(3, "7", "A"))
    for id_ in told:
        node.allocate(id_)
    own = {id_ for id_ in told if id_.startswith("kit")}
    links = {link: leads for link, leads in node.links().items() if link.startswith("kit")}
    for _ in range(2):
        told = node.look(rules, *rest)
        assert {told[id_] for id_ in own} == {"Healthy"}
        assert links.items() <= node.links().items()
        node.memory = load(dump(node.memory))


def test_a_free_unit_does_not_wait_for_its_twin_that_came_to_the_kit_of_a_pod() -> None:
    node = Node()
    own, free = a_unit(0, "2", "K1"), a_unit(2, "7", "A5")
    node.look(KIT_AND_REST, own, a_unit(1, "3", "K2"), free)
    node.allocate("kit")
    node.look(KIT_AND_REST, own, free)
    for _ in range(3):
        told = node.look(KIT_AND_REST, own, free, a_unit(3, "3", "A5"))
        assert told == {"kit": "Healthy", "u_A5": "Healthy"}
        assert node.inventory.held_links == {}
        node.memory = load(dump(node.memory))


@pytest.mark.parametrize("how", ["edit, re-plug", "unplug, edit, plug", "edit, reboot"])
@pytest.mark.parametrize("serial", ["0001", "A5"])
def test_a_unit_that_an_edit_took_from_a_kit_waits_although_its_twin_is_in_the_kit_now(
    serial: str, how: str
) -> None:
    """The unit in the kit is its twin or has the same meaningless serial number. It has not moved there."""
    before, after = (
        rule("kit", 'group_by = "all"', match=f'{{ SUBSYSTEM = "tty", usb = {{ port = "{port}" }} }}')
        + rule("u")
        for port in ("2", "1")
    )
    node = Node()
    other, own = a_unit(0, "1", serial), a_unit(1, "2", serial)
    node.look(before, other, own)
    node.look(before, other, own)
    node.allocate("kit")
    if how == "unplug, edit, plug":
        node.look(before, other)
    else:
        node.look(after, other, own)
    if how == "edit, reboot":
        node.memory = load(dump(node.memory, "before"), "after")
    node.look(after, other)
    for _ in range(2):
        told = node.look(after, other, a_unit(2, "2", serial))
        assert {told[id_] for id_ in told if id_.startswith("u")} == {
            "its id is now kit",
            "a pod may still hold it as kit of example.com/kit",
        }


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_unit_that_moved_within_its_kit_waits_outside_although_it_had_another_link_there(
    *, leaves: bool, restarts: bool
) -> None:
    """Another model with its serial number is in the kit, too."""
    ports = '{ SUBSYSTEM = "tty", usb = { port = ["1", "3", "4"] } }'
    rules, node = rule("kit", 'group_by = "all"', match=ports) + rule("u"), Node()
    other = replace(a_usb_serial(0, port="4", serial="A", product="6015"), incarnation=10)
    node.look(rules, other, a_unit(1, "3", "A"))
    node.allocate("kit")
    for here in ((other,), (other, a_unit(2, "1", "A")), () if leaves else (other,)):
        node.look(rules, *here)
        if restarts:
            node.memory = load(dump(node.memory))
    told = node.look(rules, *(() if leaves else (other,)), a_unit(3, "5", "A"))
    assert told["u_A"] == "a pod may still hold it as kit of example.com/kit"


def test_a_unit_that_was_in_a_kit_by_cdi_by_mistake_is_its_own_pods_again() -> None:
    """No answer names links then. The kit had to wait."""
    own, node = a_unit(0, "2", "K1"), Node()
    node.look(KIT_AND_REST, own, a_unit(1, "7", "A5"))
    offer = node.offer_of("kit")
    node.memory = replace(node.memory, held=give(node.memory.held, offer, ["kit"], node.now, by_cdi=True))
    node.allocate("u_A5")
    node.look(KIT_AND_REST, own)
    node.look(KIT_AND_REST, own, a_unit(2, "3", "A5"))
    node.look(KIT_AND_REST, own)
    assert node.look(KIT_AND_REST, own, a_unit(3, "7", "A5"))["u_A5"] == "Healthy"


def test_a_kit_by_cdi_has_all_of_its_units_once_no_other_pod_holds_one_of_them() -> None:
    """Nothing has changed in the kit itself. A container that restarts gets what is in it then."""
    own, came = Spot("2", "K1", "if00"), Spot("3", "A5", "if00")
    device = Device("kit", links=("kit@if00@a", "kit@if00@b"), spots=(own, came))
    known = Remembered("example.com/kit", device, not_given=frozenset({came}))
    held = {"kit": Holding("example.com/kit", "kit", shared=False)}
    for joined in (None, {"kit": [came]}):
        assert with_not_given({"kit": known}, {"kit": known}, held, joined) == {"kit": known}
    after = with_not_given({"kit": known}, {"kit": known}, held, {})
    assert after == {"kit": replace(known, not_given=frozenset())}


def test_a_twin_that_comes_to_the_kit_of_a_pod_beside_its_twin_was_not_given_to_that_pod() -> None:
    own, came = Spot("2", "A5", "if00"), Spot("3", "A5", "if00")
    before = Device("kit", links=("kit@if00@a",), spots=(own,))
    now = Device("kit", links=("kit@if00@a", "kit@if00@b"), spots=(own, came))
    was, known = (Remembered("example.com/kit", device) for device in (before, now))
    held = {"kit": Holding("example.com/kit", "kit", shared=False, links=("kit@if00@a",))}
    assert with_not_given({"kit": known}, {"kit": was}, held)["kit"].not_given == {came}
    # One that only changes its port is the pod's.
    moved = replace(known, device=replace(now, links=("kit@if00@b",), spots=(came,)))
    assert with_not_given({"kit": moved}, {"kit": was}, held) == {"kit": moved}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("grouping", ['"all"', '"ID_VENDOR_ID"'])
def test_a_free_unit_that_came_to_the_kit_of_a_pod_is_free_once_an_edit_takes_it_out(
    grouping: str, *, restarts: bool
) -> None:
    """The unit of the pod gets the kit back as well, wherever it was at that time."""
    keys = f"group_by = {grouping}"
    before = rule("kit", keys, match=PORTS_2_AND_3) + rule("u")
    after = rule("kit", keys, match='{ SUBSYSTEM = "tty", usb = { port = "2" } }') + rule("u")
    own, free = a_unit(0, "2", "K1"), a_unit(1, "3", "B2")
    for is_away in (False, True):
        node = Node()
        (held,) = node.look(before, own)
        node.allocate(held)
        links = node.links()
        node.look(before, own, free)
        if is_away:
            node.look(before, free)
            if restarts:
                node.memory = load(dump(node.memory))
            assert node.look(after, free)["u_B2"] == "Healthy"
            assert node.inventory.held_links == {}
        elif restarts:
            node.memory = load(dump(node.memory))
        for _ in range(2):
            assert node.look(after, own, free) == {held: "Healthy", "u_B2": "Healthy"}
            assert links.items() <= node.links().items()
            assert {leads for link, leads in node.links().items() if link not in links} == {
                None,
                "/dev/ttyUSB1",
            }


def test_a_unit_that_moved_in_its_kit_is_the_pods_although_another_one_is_where_it_was() -> None:
    node = Node()
    node.look(rule("kit", 'group_by = "all"'), a_unit(0, "2", "A"))
    node.allocate("kit")
    both = a_unit(1, "2", "B"), a_unit(2, "3", "A")
    node.look(rule("kit", 'group_by = "all"'), *both)
    for _ in range(2):
        told = node.look(rule("u"), *both)
        assert told == {"u_A": "a pod may still hold it as kit of example.com/kit", "u_B": "Healthy"}


def test_another_model_with_the_serial_number_of_a_lost_part_was_not_given_to_the_pod() -> None:
    node = Node()
    own, came = (
        replace(a_usb_serial(n, port=port, serial="A", product=product), incarnation=10 + n)
        for n, port, product in ((0, "2", "6015"), (1, "3", "6001"))
    )
    node.look(rule("kit", 'group_by = "all"'), own, a_unit(2, "4", "B"))
    node.allocate("kit")
    node.look(rule("kit", 'group_by = "all"'), came, a_unit(2, "4", "B"))
    assert node.look(rule("u"), came)["u_A"] == "Healthy"


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_unit_that_left_a_kit_is_free_once_the_next_pod_got_the_kit_without_it(replicas: int) -> None:
    """The kubelet gives an id again only when no container has it. Nobody tells that the pod has gone."""
    rules, node = KIT_AND_REST.replace('"all"', f'"all"\nreplicas = {replicas}'), Node()
    rest, moved = a_unit(1, "3", "B"), a_unit(2, "7", "A")
    first, *others = sorted(node.look(rules, a_unit(0, "2", "A"), rest))
    node.allocate(first)
    for other in others:
        node.allocate(other)
    for got in (None, first):
        if got is not None:
            node.allocate(got)
        told = node.look(rules, moved, rest)
        is_free = got is not None and replicas == 1
        why = f"a pod may still hold it as {first} of example.com/kit"
        assert told["u_A"] == ("Healthy" if is_free else why)


def test_a_free_unit_that_was_in_a_kit_stays_free_although_a_unit_of_the_pod_moves_in_the_kit() -> None:
    ports = '{ SUBSYSTEM = "tty", usb = { port = ["2", "3", "4"] } }'
    rules, node = rule("kit", 'group_by = "all"', match=ports) + rule("u"), Node()
    own, free = a_unit(0, "2", "K1"), a_unit(1, "3", "B2")
    node.look(rules, own)
    node.allocate("kit")
    node.look(rules, own, free)
    node.look(rules, a_unit(2, "4", "K1"), free)
    told = node.look(rules, a_unit(2, "4", "K1"), a_unit(3, "7", "B2"))
    assert told == {"kit": "Healthy", "u_B2": "Healthy"}


@pytest.mark.parametrize("product", ["6001", "6015"])
@pytest.mark.parametrize("out", [0, 1, 2, 3])
def test_twins_in_a_kit_of_their_own_stay_there_whatever_their_links_are_called(
    out: int, product: str
) -> None:
    """Two of them in each kit: one has a long name. Or parts of docks, of two models."""
    at = '{{ SUBSYSTEM = "tty", usb = {{ port = {} }} }}'
    kits = ("kit", '["1", "2"]'), ("kot", '["3", "4"]')
    rules = "".join(rule(name, 'group_by = "all"', match=at.format(ports)) for name, ports in kits)
    units = [
        replace(
            a_usb_serial(n, port=str(n + 1), serial="A", product=("6001", product)[n % 2], devnum=5 + n),
            incarnation=10 + n,
        )
        for n in range(4)
    ]
    node = Node()
    node.look(rules, *units)
    node.now += TWO_AFTER_S
    node.look(rules, *units)
    node.allocate("kit")
    node.allocate("kot")
    other = "kot" if out < 2 else "kit"
    own = {link: leads for link, leads in node.links().items() if link.startswith(other)}
    for _ in range(2):
        assert node.look(rules, *units[:out], *units[out + 1 :])[other] == "Healthy"
        assert own.items() <= node.links().items()
        node.memory = load(dump(node.memory))


def test_a_unit_waits_outside_its_group_although_another_model_with_its_serial_number_is_there() -> None:
    ports = '{ SUBSYSTEM = "tty", usb = { port = ["4", "5"] } }'
    rules, node = rule("x", 'group_by = "ID_SERIAL_SHORT"', match=ports) + rule("u"), Node()
    (held,) = node.look(rules, a_unit(0, "4", "A"))
    node.allocate(held)
    node.look(rules)
    other = replace(a_usb_serial(1, port="5", serial="A", product="6015"), incarnation=20)
    node.look(rules, other)
    told = node.look(rules, other, a_unit(2, "1", "A"))
    assert told["u_A"] == f"a pod may still hold it as {held} of example.com/x"


def test_a_unit_that_was_there_all_along_is_not_the_one_that_left() -> None:
    """Of which models they are is not known: the memory is that of an earlier release."""
    lost, here = Spot("3", "X", "if00"), Spot("2", "X", "if00")
    kit = Device("kit", spots=(here,))
    assert Moves(kit, kit, (lost,), NO_TWINS).of(lost, "") == lost


@pytest.mark.parametrize("within", ["if00", WHOLE])
def test_a_twin_that_came_is_not_the_unit_that_left_however_the_twins_became_known(within: str) -> None:
    lost, came = Spot("3", "X", "if00"), Spot("4", "X", "if00")
    was, now = Device("kit", spots=(Spot("2", "Y", "if00"),)), Device("kit", spots=(came,), models=("a",))
    twins = frozenset({Twin("serial", "X", "a", within)})
    assert Moves(was, now, (), twins).of(lost, "a") == lost
    assert Moves(was, now, (), NO_TWINS).of(lost, "a") is None
