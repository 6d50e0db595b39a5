"""A unit on USB whose serial number the kernel could not read is not offered while a pod may hold it."""

import json
from dataclasses import replace
from itertools import count

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory import saved
from tests.core.memory.test_without_nodes import a_unit
from tests.scenes.builders import a_usb_device, a_usb_node
from tests.scenes.edits import Node, rule

ID = "ftdi_A5"
UNREAD = (
    f"its serial number could not be read, so it may be {ID}, which a pod may still hold; unplug it and "
    "plug it in again, at another port if it has no serial number"
)
MAY_BE = "it is unplugged, or it is {}, whose serial number could not be read: unplug it and plug it in again"

RULES = {
    "serial": rule(),
    "shared": rule("ftdi", "replicas = 2"),
    "unit": rule("ftdi", 'group_by = "usb_device"'),
    "property": rule("ftdi", 'identity = ["ID_SERIAL"]'),
    "property of a group": rule("ftdi", 'group_by = "ID_SERIAL"'),
    "another resource": rule("ftdi", match='{ SUBSYSTEM = "tty", parent = { "ATTR{serial}" = "A5" } }')
    + rule("any"),
    "another resource of a kit": rule(
        "ftdi", 'group_by = "all"', match='{ SUBSYSTEM = "tty", parent = { "ATTR{serial}" = "A5" } }'
    )
    + rule("any"),
}
by_all = pytest.mark.parametrize("rules", RULES.values(), ids=RULES)


#: No directory of sysfs has the inode of another one in one boot.
_plugs = count(1000)


def at(port: str, n: int, serial: str | None, product: str = "6001") -> list[UdevDevice]:
    """A unit, each time plugged in anew, with the properties that udev makes of its serial number."""
    told = {"ID_MODEL": "FT232R", "ID_SERIAL": f"FTDI_{serial}" if serial else "FTDI"}
    usb, tty = a_unit(port, n, serial=serial, product=product, properties=told)
    return [usb, replace(tty, incarnation=next(_plugs))]


def held(rules: str, *devices: UdevDevice) -> tuple[Node, str]:
    """A node on which a pod has the first id."""
    node = Node()
    id_ = next(iter(node.look(rules, *devices)))
    node.allocate(id_)
    return node, id_


def healthy(told: dict[str, str]) -> set[str]:
    return {id_ for id_, health in told.items() if health == "Healthy"}


def refusals(node: Node) -> dict[str, str]:
    return {each.node: each.reason for each in node.inventory.refusals}


def restart(node: Node, boot: str = "") -> None:
    node.memory = saved.load(saved.dump(node.memory, "this"), boot or "this")


@by_all
@pytest.mark.parametrize("meanwhile", ["seen to leave", "at once", "restart", "boot"])
def test_it_waits_at_the_port_of_the_unit_of_a_pod_and_returns_with_its_serial_number(
    rules: str, meanwhile: str
) -> None:
    node, id_ = held(rules, *at("1", 0, "A5"))
    if meanwhile == "seen to leave":
        node.look(rules)
    elif meanwhile != "at once":
        restart(node, meanwhile)
    told = node.look(rules, *at("1", 1, None))
    if rules != RULES["shared"]:
        assert healthy(told) == set()
        assert "its serial number could not be read, so" in refusals(node)["/dev/ttyUSB1"]
        assert told[id_] == MAY_BE.format("/dev/ttyUSB1")
        restart(node)
        assert node.look(rules, *at("1", 1, None)) == told
    assert id_ in healthy(node.look(rules, *at("1", 2, "A5")))
    assert refusals(node) == {}


def test_what_several_pods_may_have_at_the_same_time_does_not_wait() -> None:
    node, _ = held(RULES["shared"], *at("1", 0, "A5"))
    new = healthy(node.look(RULES["shared"], *at("1", 1, None)))
    assert len(new) == 2
    assert refusals(node) == {}


def test_the_reason_says_what_to_do() -> None:
    node, _ = held(rule(), *at("1", 0, "A5"))
    told = node.look(rule(), *at("1", 0, None))
    assert told == {ID: MAY_BE.format("/dev/ttyUSB0")}
    assert refusals(node) == {"/dev/ttyUSB0": UNREAD}
    assert len(node.inventory.waiting) == 1


@by_all
def test_it_is_offered_by_its_port_when_the_pod_has_gone(rules: str) -> None:
    node, id_ = held(rules, *at("1", 0, "A5"))
    node.look(rules, *at("1", 0, None))
    told = node.look(rules, *at("1", 0, None), answer=node.nobody_holds_anything())
    assert healthy(told) - {id_}
    assert refusals(node) == {}


def test_it_is_another_unit_when_that_of_the_pod_is_found_elsewhere() -> None:
    node, id_ = held(rule(), *at("1", 0, "A5"))
    node.look(rule(), *at("1", 0, None))
    told = node.look(rule(), *at("1", 0, None), *at("2", 1, "A5"))
    assert len(healthy(told)) == 2
    assert told[id_] == "Healthy"


@pytest.mark.parametrize(
    "other", [at("2", 1, None), at("1", 1, None, "6015"), at("1", 1, "B6")], ids=["port", "model", "serial"]
)
def test_another_port_or_model_or_serial_number_is_another_unit(other: list[UdevDevice]) -> None:
    node, id_ = held(rule(), *at("1", 0, "A5"))
    node.look(rule())
    (new,) = healthy(node.look(rule(), *other))
    assert new != id_


def test_a_unit_that_never_has_a_serial_number_is_served_by_its_port() -> None:
    node, id_ = held(rule(), *at("1", 0, None))
    node.look(rule())
    assert node.look(rule(), *at("1", 1, None), *at("2", 0, None))[id_] == "Healthy"
    assert len(healthy(node.look(rule(), *at("1", 1, None), *at("2", 0, None)))) == 2


def test_a_free_unit_comes_back_at_once_under_its_port() -> None:
    node = Node()
    node.look(rule(), *at("1", 0, "A5"))
    assert len(healthy(node.look(rule(), *at("1", 0, None)))) == 1


def test_after_an_edit_the_reason_is_that_the_pod_has_the_very_unit() -> None:
    by_port = rule("ftdi", 'identity = "port"')
    node, id_ = held(by_port, *at("1", 0, None, "6015"))
    node.look(by_port)
    there = at("1", 1, "A5")
    assert healthy(node.look(by_port, *there)) == {id_}
    for _ in range(2):
        assert node.look(rule(), *there)[ID] == f"a pod may still hold it as {id_}"
        assert refusals(node) == {}
        restart(node)


@by_all
def test_a_unit_held_by_its_port_is_not_offered_under_its_serial_number(rules: str) -> None:
    node, id_ = held(rules, *at("1", 0, None))
    told = node.look(rules, *at("1", 1, "A5"))
    if rules != RULES["shared"]:
        assert healthy(told) == set()
        told_as = f"it may be {id_}, which a pod may still hold and whose serial number could not be read"
        assert refusals(node)["/dev/ttyUSB1"] == f"{told_as}; it is offered when that pod is deleted"
        can_be_read = "whose serial number can be read now: delete the pod that holds it"
        assert told[id_] == f"it is unplugged, or it is /dev/ttyUSB1, {can_be_read}"
    again = node.look(rules, *at("1", 1, "A5"), answer=node.nobody_holds_anything())
    assert healthy(again) - {id_}


@pytest.mark.parametrize("rules", [rule(), RULES["unit"], RULES["property"]])
def test_the_pod_of_a_serial_number_has_its_unit_though_another_one_held_the_port(rules: str) -> None:
    node, by_port = held(rules, *at("1", 0, None))
    (own,) = healthy(node.look(rules, *at("1", 0, None), *at("2", 1, "A5"))) - {by_port}
    node.allocate(own)
    node.look(rules)
    for port in ("1", "3", "1"):
        assert healthy(node.look(rules, *at(port, 1, "A5"))) == {own}


def test_neither_of_two_pods_has_a_unit_without_a_serial_number_at_the_port_of_both() -> None:
    node, by_port = held(rule(), *at("1", 0, None))
    node.look(rule(), *at("1", 0, None), *at("2", 1, "A5"))
    node.allocate(ID)
    node.look(rule(), *at("1", 1, "A5"))
    told = node.look(rule(), *at("1", 1, None))
    assert healthy(told) == set()
    assert told[by_port] == "the device plugged in now may not be the one that a pod got; delete that pod"
    assert refusals(node) == {"/dev/ttyUSB1": UNREAD}


@pytest.mark.parametrize("keys", ['identity = "port"', 'identity = ["ID_MODEL"]'])
def test_an_identity_without_the_serial_number_does_not_wait(keys: str) -> None:
    rules = rule("ftdi", keys)
    node, id_ = held(rules, *at("1", 0, "A5"))
    assert healthy(node.look(rules, *at("1", 1, None))) == {id_}


def test_a_filler_counts_as_a_serial_number_at_its_port() -> None:
    node, id_ = held(rule(), *at("1", 0, "0001"))
    assert healthy(node.look(rule(), *at("1", 1, None))) == set()
    assert healthy(node.look(rule(), *at("1", 2, "0001"))) == {id_}


def test_a_twin_that_is_tied_to_another_port_says_nothing_of_the_one_at_this_port() -> None:
    node, id_ = held(rule(), *at("1", 0, "A5"))
    twins = node.look(rule(), *at("1", 0, "A5"), *at("2", 1, "A5"))
    told = node.look(rule(), *at("1", 2, None), *at("2", 1, "A5"))
    assert healthy(told) == twins.keys() - {id_}
    assert "/dev/ttyUSB2" in refusals(node)


def two_ports(serial: str | None, first: int) -> list[UdevDevice]:
    usb = a_usb_device("1", serial=serial, devnum=first)
    found = [usb]
    for n in (0, 1):
        name, number = f"ttyUSB{first + n}", f"c 188:{first + n}"
        tty = a_usb_node(usb, "tty", name, number=number, interface=f"{n:02}")
        found.append(replace(tty, incarnation=first * 10 + n))
    return found


def test_no_node_of_the_unit_is_offered_under_a_new_id() -> None:
    node, id_ = held(rule(), *two_ports("A5", 1))
    ids = {id_ for offer in node.inventory.offers.values() for id_ in offer.ids}
    told = node.look(rule(), *two_ports(None, 3))
    assert healthy(told) == set()
    assert refusals(node).keys() == {"/dev/ttyUSB3", "/dev/ttyUSB4"}
    assert healthy(node.look(rule(), *two_ports("A5", 5))) == ids
    assert id_ in ids


def test_a_pod_that_holds_a_node_by_its_port_has_it_back_while_another_node_waits() -> None:
    second = '{ usb = { interface = "01" }, SUBSYSTEM = "tty" }'
    rules = rule("by-port", 'identity = "port"', match=second) + rule()
    node, _ = held(rules, *two_ports("A5", 1))
    node.allocate(ID)
    told = node.look(rules, *two_ports(None, 3))
    (back,) = healthy(told)
    assert back.startswith("by-port_")
    assert refusals(node).keys() == {"/dev/ttyUSB3"}
    assert healthy(node.look(rules, *two_ports(None, 3))) == {back}


def test_an_edit_of_the_rules_does_not_offer_it() -> None:
    node, _ = held(rule(), *at("1", 0, "A5"))
    assert healthy(node.look(rule("other"), *at("1", 1, None))) == set()


def test_models_that_say_nothing_are_read_as_they_are_saved() -> None:
    node, id_ = held(rule(), *at("1", 0, "A5"))
    document = json.loads(saved.dump(node.memory))
    document["devices"][id_]["models"] = [""]
    memory = saved.load(json.dumps(document).encode())
    assert saved.load(saved.dump(memory)) == memory


def test_a_memory_of_an_earlier_release_does_not_say_the_model_so_any_one_waits() -> None:
    node, id_ = held(rule(), *at("1", 0, "A5"))
    document = json.loads(saved.dump(node.memory))
    del document["devices"][id_]["models"]
    node.memory = saved.load(json.dumps(document).encode())
    assert healthy(node.look(rule(), *at("1", 1, None, "6015"))) == set()


def test_what_a_pod_has_stays_although_another_one_may_hold_it() -> None:
    """An earlier release offered it."""
    node = Node()
    node.look(rule(), *at("1", 0, "A5"))
    unread = at("1", 1, None)
    (by_port,) = healthy(node.look(rule(), *unread))
    node.allocate(by_port)
    other = replace(node.memory.held[by_port], device=ID)
    node.memory = replace(node.memory, held={**node.memory.held, ID: other})
    assert healthy(node.look(rule(), *unread)) == {by_port}
    assert healthy(node.look(rule(), *at("1", 2, None))) == set()


def test_a_unit_of_another_model_than_the_pod_got_does_not_wait_at_its_port() -> None:
    """An id made of the port means whichever unit is there by now."""
    node, _ = held(rule("port", 'identity = "port"'), *at("1", 0, None, "6015"))
    node.look(rule("port", 'identity = "port"'), *at("1", 1, "A5"))
    node.look(rule("port", 'identity = "port"'))
    assert healthy(node.look(rule("other"), *at("1", 2, "B6"))) == {"other_B6"}
    assert healthy(node.look(rule("other"), *at("1", 3, "B6", "6015"))) == set()


@pytest.mark.parametrize(("given", "now"), [("A5", None), (None, "A5")], ids=["unread", "read"])
@pytest.mark.parametrize("beside", [(), ("B6",)], ids=["alone", "beside another unit"])
@pytest.mark.parametrize("after", [rule("other", 'group_by = "all"'), rule()], ids=["renamed", "divided"])
def test_a_unit_of_a_kit_waits_after_an_edit_of_the_rules(
    given: str | None, now: str | None, beside: tuple[str, ...], after: str
) -> None:
    """Under the id of the kit it went on: nobody else could get it there."""
    others = [each for serial in beside for each in at("2", 1, serial)]
    kit = rule("kit", 'group_by = "all"')
    node, _ = held(kit, *at("1", 0, given), *others)
    unit = at("1", 2, now)
    assert healthy(node.look(kit, *unit, *others)) == {"kit"}
    assert healthy(node.look(after, *unit, *others)) == set()


@pytest.mark.parametrize(("given", "now"), [("A5", None), (None, "A5")], ids=["unread", "read"])
@pytest.mark.parametrize("keys", ['group_by = "all"', 'group_by = "ID_MODEL"'], ids=["all", "property"])
@pytest.mark.parametrize("has_restarted", [False, True])
def test_no_replica_of_a_kit_is_offered_with_a_unit_that_may_be_that_of_a_pod(
    given: str | None, now: str | None, keys: str, *, has_restarted: bool
) -> None:
    node, id_ = held(rule("kit", keys), *at("1", 0, given))
    node.look(rule("kit", keys), *at("1", 0, given))
    unit = at("1", 2, now)
    for _ in range(2):
        assert healthy(node.look(rule("kit", keys), *unit)) == {id_}
        if has_restarted:
            restart(node)
    for _ in range(2):
        told = node.look(rule("kit", keys, "replicas = 2"), *unit)
        assert told == {
            id_: "'replicas' no longer includes this id",
            **{f"{id_}.{n}": f"a pod may still hold it as {id_}" for n in range(2)},
        }


@pytest.mark.parametrize(("given", "now"), [("A5", None), (None, "A5")], ids=["unread", "read"])
@pytest.mark.parametrize("keys", ['group_by = "all"', 'group_by = "ID_MODEL"'], ids=["all", "property"])
def test_replicas_of_a_kit_wait_for_its_pod_although_none_of_its_units_is_left(
    given: str | None, now: str | None, keys: str
) -> None:
    """What its pods got is remembered for all of them: once a second one had it, both would have to wait."""
    node, id_ = held(rule("kit", keys), *at("1", 0, given))
    node.look(rule("kit", keys), *at("1", 0, given))
    unit = at("2", 2, now)
    assert healthy(node.look(rule("kit", keys), *unit)) == {id_}
    replicas = rule("kit", keys, "replicas = 2")
    told = node.look(replicas, *unit)
    assert {told[f"{id_}.{n}"] for n in range(2)} == {f"a pod may still hold it as {id_}"}
    assert len(healthy(node.look(replicas, *unit, answer=node.nobody_holds_anything()))) == 2


@pytest.mark.parametrize("now", ["A5", None])
def test_the_reason_of_a_device_of_several_units_names_the_one_in_question(now: str | None) -> None:
    """Also if that of another one could not be read either: to plug that in anew does not help."""
    other = at("2", 1, None)
    node, _ = held(rule("ftdi", match='{ SUBSYSTEM = "tty", usb = { port = "1" } }'), *at("1", 0, now))
    node.look(rule("kit", 'group_by = "all"'), *at("1", 2, None if now else "A5"), *other)
    (held_as,) = {holding.device for holding in node.memory.held.values()}
    may_be = f"may be {held_as}, which a pod may still hold"
    reason = (
        f"the serial number of /dev/ttyUSB2 could not be read, so it {may_be}; unplug it and plug it in "
        "again, at another port if it has no serial number"
        if now
        else f"/dev/ttyUSB2 {may_be} and whose serial number could not be read; "
        "it is offered when that pod is deleted"
    )
    assert refusals(node) == {"/dev/ttyUSB1": reason, "/dev/ttyUSB2": reason}


@pytest.mark.parametrize("is_held", [True, False], ids=["held", "free"])
@pytest.mark.parametrize("edits", [True, False], ids=["by an edit", "by its serial number"])
@pytest.mark.parametrize(("given", "now"), [("A5", None), (None, "A5")], ids=["unread", "read"])
def test_no_kit_takes_in_a_unit_that_may_be_that_of_another_pod(
    is_held: bool, edits: bool, given: str | None, now: str | None
) -> None:
    serial, other = f"FTDI_{given}" if given else "FTDI", at("2", 1, "B6")
    mine = 'usb = { port = "1" }' if edits else f'ID_SERIAL = "{serial}"'
    kit = rule("kit", 'group_by = "all"')
    before = rule("x", match=f'{{ SUBSYSTEM = "tty", {mine} }}') + kit
    node = Node()
    node.look(before, *at("1", 0, given), *other)
    (id_,) = node.inventory.offers["example.com/x"].ids
    node.allocate(id_)
    if is_held:
        node.allocate("kit")
    unit = at("1", 2, now)
    node.look(before, *unit, *other)
    told = node.look(kit if edits else before, *unit, *other)
    assert told["kit"] == f"a pod may still hold one of its device nodes as {id_} of example.com/x"


@pytest.mark.parametrize(("given", "now"), [("A5", None), (None, "A5")], ids=["unread", "read"])
@pytest.mark.parametrize("has_restarted", [False, True])
@pytest.mark.parametrize("key", ["ID_MODEL_ID", "ID_COLOR"])
def test_a_sibling_that_waits_does_not_take_the_place_of_the_one_that_a_pod_got(
    key: str, has_restarted: bool, given: str | None, now: str | None
) -> None:
    """They share the property that the rule names. So what waits is not remembered under an id of its own."""

    def card(serial: str | None, plug: int, *numbers: int) -> list[UdevDevice]:
        usb = a_usb_device("3", serial=serial)
        ports = (a_usb_node(usb, "tty", f"ttyUSB{n}", properties={"ID_COLOR": "red"}) for n in numbers)
        return [
            usb,
            *(replace(node, incarnation=10 * plug + n) for n, node in zip(numbers, ports, strict=True)),
        ]

    rules = rule("x", f'identity = ["{key}"]')
    node = Node()
    node.look(rules, *card(given, 1, 0, 1))
    link = next(link for link, path in node.links().items() if path == "/dev/ttyUSB0")
    node.allocate(link)
    node.look(rules)
    node.look(rules, *card(now, 2, 0, 1))
    assert node.links()[link] == "/dev/ttyUSB0"
    for _ in range(2):
        told = node.look(rules, *card(now, 2, 1))
        assert (node.links()[link], healthy(told)) == (None, set())
        if has_restarted:
            node.memory = saved.load(saved.dump(node.memory, "boot"), "boot")
    node.look(rules, *card(now, 2, 0, 1))
    assert node.links()[link] == "/dev/ttyUSB0"


EDITED = {
    "renamed": (rule("ftdi"), rule("other")),
    "identity": (rule("ftdi"), rule("ftdi", 'identity = ["ID_SERIAL"]')),
    "identity undone": (rule("ftdi", 'identity = ["ID_SERIAL"]'), rule("ftdi")),
    "an earlier rule": (rule("ftdi"), rule("other") + rule("ftdi")),
    "property": (rule("ftdi"), rule("ftdi", 'identity = ["ID_MODEL"]')),
    "port": (rule("ftdi"), rule("ftdi", 'identity = "port"')),
    "group": (rule("ftdi"), rule("ftdi", 'group_by = "ID_MODEL"')),
    "kit": (rule("ftdi"), rule("ftdi", 'group_by = "all"')),
}


@pytest.mark.parametrize(("before", "after"), EDITED.values(), ids=EDITED)
@pytest.mark.parametrize("meanwhile", ["seen to leave", "at once", "restart", "boot"])
def test_it_waits_where_the_unit_of_a_pod_was_last_seen_under_the_id_that_an_edit_gave_it(
    before: str, after: str, meanwhile: str
) -> None:
    node, id_ = held(before, *at("1", 0, "A5"))
    node.look(after, *at("1", 0, "A5"))
    node.look(after, *at("2", 0, "A5"))
    assert node.links()[f"held+{id_}"] == "/dev/ttyUSB0"
    if meanwhile == "seen to leave":
        node.look(after)
    elif meanwhile != "at once":
        restart(node, meanwhile)
    for _ in range(2):
        assert healthy(node.look(after, *at("2", 1, None))) == set()
        assert [*refusals(node).values()] == [UNREAD.replace(ID, id_)]
    # At another port, it would have to be another unit.
    assert len(healthy(node.look(after, *at("3", 1, None)))) == 1
    assert healthy(node.look(after, *at("2", 1, "A5"))) == set()
    assert node.links()[f"held+{id_}"] == "/dev/ttyUSB1"


def test_what_never_had_a_serial_number_is_only_known_by_its_port() -> None:
    node, _ = held(rule("ftdi"), *at("1", 0, None))
    node.look(rule("ftdi"), *at("1", 0, None), *at("2", 1, None))
    node.look(rule("ftdi"))
    assert healthy(node.look(rule("ftdi"), *at("2", 1, "A5"))) == {ID}


@pytest.mark.parametrize("name", sorted(RULES.keys() - {"shared", "property"}))
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("port", ["1", "2"])
@pytest.mark.parametrize("product", ["6001", "6002"])
def test_it_waits_in_the_mode_that_a_pod_got_and_in_its_last_one(
    name: str, product: str, port: str, *, restarts: bool
) -> None:
    """A mode is another model with the same serial number. The unit may be at another port by then."""
    rules = RULES[name]
    node, _ = held(rules, *at("1", 0, "A5"))
    node.look(rules)
    node.look(rules, *at("1", 1, "A5", "6002"))
    if port == "2":
        node.look(rules, *at(port, 2, "A5", "6002"))
    if restarts:
        restart(node)
    node.look(rules)
    assert healthy(node.look(rules, *at(port, 3, None, product))) == set()


def test_a_unit_is_not_looked_for_where_another_unit_of_its_kit_was() -> None:
    parts = '{ SUBSYSTEM = "tty", parent = { "ATTR{serial}" = ["A5", "B6"] } }'
    rules = rule("ftdi", 'group_by = "all"', match=parts) + rule("any")
    other = at("2", 1, "B6", "7000")
    node, _ = held(rules, *at("1", 0, "A5"), *other)
    node.look(rules, *at("1", 0, "A5", "6002"), *other)
    node.look(rules)
    assert len(healthy(node.look(rules, *at("2", 2, None)))) == 1
    assert healthy(node.look(rules, *at("1", 3, None))) == set()
