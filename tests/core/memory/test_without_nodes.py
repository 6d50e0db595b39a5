"""A unit that is plugged in without its device node is there: no twin gets its id meanwhile."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.claims import Claims, Turnover
from genericdp.core.inventory.past import NO_PAST, WHOLE, Twin
from genericdp.core.inventory.place import USB_NODE
from genericdp.core.inventory.twins import SideBySide
from genericdp.core.memory import saved
from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.core.memory.remember import next_forgetting
from genericdp.core.memory.room import TIE_LIMIT
from tests.scenes.builders import a_usb_device, a_usb_node, a_usb_serial, by_sys_path, resources_of
from tests.scenes.edits import Node, rule

KIT = rule("kit", 'group_by = "all"')

#: Rules that know a unit wherever it is plugged in.
RULES = {
    "serial": rule(),
    "shared": rule("ftdi", "replicas = 2"),
    "terminals of a unit": rule("ftdi", 'group_by = "usb_device"'),
    "property": rule("ftdi", 'identity = ["ID_SERIAL_SHORT"]'),
    "shared property": rule("ftdi", 'group_by = "ID_SERIAL_SHORT"'),
    "kit": KIT,
}
by_all = pytest.mark.parametrize("rules", RULES.values(), ids=RULES)

_LACKS = "{0}, which lacks its device node: bind a driver to {0}, or unplug it"
LACKS = f"it is unplugged, or it is {_LACKS}"


def why_waiting(id_: str, unit: str) -> str:
    waits = f"its id, {id_}, may belong to another unit, which a pod may still hold"
    return f"{waits}; that unit may be {_LACKS.format(unit)}"


HUB = {"TYPE": "9/0/1"}


def a_unit(
    port: str,
    n: int,
    *,
    serial: str | None = "A5",
    product: str = "6001",
    properties: Mapping[str, str] | None = None,
) -> list[UdevDevice]:
    """A unit at a port, with its terminal `ttyUSB<n>`."""
    usb = a_usb_device(port, serial=serial, product=product, devnum=int(port[0]) + 1)
    tty = a_usb_node(usb, "tty", f"ttyUSB{n}", number=f"c 188:{n}", properties=properties)
    return [usb, replace(tty, incarnation=100 + n)]


def without_node(
    port: str,
    *,
    serial: str | None = "A5",
    product: str = "6001",
    properties: Mapping[str, str] | None = None,
) -> UdevDevice:
    usb = a_usb_device(port, serial=serial, product=product, devnum=int(port[0]) + 1)
    return replace(usb, properties={**usb.properties, **(properties or {})})


def held(rules: str, *devices: UdevDevice) -> tuple[Node, str]:
    """A node on which a pod has the first id, and that id without the number of its replica."""
    node = Node()
    first, *_ = node.look(rules, *devices)
    node.allocate(first)
    (id_,) = node.memory.devices
    return node, id_


def nodes_behind(node: Node, id_: str) -> list[str]:
    """The device nodes to which the links of a device lead."""
    links = node.inventory.links().items()
    return sorted(path for link, path in links if path and link.partition("@")[0] == id_)


def reboot(node: Node) -> None:
    node.memory = saved.load(saved.dump(node.memory, "this boot"), "the next boot")


def nodes_of_pod(node: Node, links: Iterable[str]) -> set[str | None]:
    """Where the links lead that a pod got."""
    return {node.links()[link] for link in links}


@by_all
@pytest.mark.parametrize("reboots", [False, True], ids=["running", "boot"])
def test_a_twin_waits_while_the_unit_of_a_pod_has_no_device_node(rules: str, *, reboots: bool) -> None:
    unit, twin = a_unit("1", 0), a_unit("2", 1)
    node, id_ = held(rules, *unit)
    if reboots:
        reboot(node)
    else:
        node.look(rules, without_node("1"))
    told = node.look(rules, without_node("1"), *twin)
    assert "Healthy" not in told.values()
    assert {reason for known, reason in told.items() if known.startswith(id_)} == {LACKS.format("1-1")}
    assert nodes_behind(node, id_) == []
    (refusal,) = node.inventory.refusals
    assert (refusal.node, refusal.reason) == ("/dev/ttyUSB1", why_waiting(id_, "1-1"))


@by_all
@pytest.mark.parametrize("reboots", [False, True], ids=["running", "boot"])
def test_a_twin_is_another_device_if_a_unit_at_a_third_port_has_no_device_node(
    rules: str, *, reboots: bool
) -> None:
    """One of the two is not that of the pod, and nobody can tell which one."""
    node, _ = held(rules, *a_unit("1", 0))
    links = [*node.inventory.links()]
    if reboots:
        reboot(node)
    else:
        node.look(rules, without_node("3"))
    for there in ([without_node("3"), *a_unit("2", 1)], a_unit("2", 1), [*a_unit("2", 1), *a_unit("3", 2)]):
        node.look(rules, *there)
        assert nodes_of_pod(node, links) == {None}
    node.look(rules, *a_unit("1", 3), *a_unit("2", 1))
    assert nodes_of_pod(node, links) == {"/dev/ttyUSB3"}


@by_all
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_twin_that_gets_its_node_when_the_unit_of_a_pod_has_left_is_another_device(
    rules: str, *, is_first: bool, restarts: bool
) -> None:
    """Its driver was detached, as for a virtual machine, or loads late."""
    node = Node()
    if is_first:
        node.look(rules, without_node("2"))
    first, *_ = node.look(rules, *a_unit("1", 0), *([without_node("2")] if is_first else ()))
    node.allocate(first)
    links = [*node.inventory.links()]
    node.look(rules, *a_unit("1", 0), without_node("2"))
    if restarts:
        reboot(node)
    node.look(rules, without_node("2"))
    node.look(rules, *a_unit("2", 1))
    assert nodes_of_pod(node, links) == {None}
    node.look(rules, *a_unit("1", 2), *a_unit("2", 1))
    assert nodes_of_pod(node, links) == {"/dev/ttyUSB2"}


def test_what_is_not_yet_torn_down_of_a_unit_makes_no_twin_of_it() -> None:
    """The kernel removes the parts of a dock one after the other, and that takes a moment."""
    rules = RULES["serial"]
    node, id_ = held(rules, *a_unit("1", 0))
    node.look(rules, without_node("1"), *a_unit("2", 1))
    assert node.look(rules, *a_unit("2", 1)) == {id_: "Healthy"}
    assert node.look(rules, *a_unit("3", 2)) == {id_: "Healthy"}


@by_all
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("has_node", [False, True], ids=["neither has its node", "the twin has its node"])
def test_units_that_stay_side_by_side_for_a_minute_are_twins_whatever_nodes_they_have(
    rules: str, *, has_node: bool, restarts: bool
) -> None:
    node, _ = held(rules, *a_unit("1", 0))
    links = [*node.inventory.links()]
    there = [without_node("1"), *(a_unit("2", 1) if has_node else [without_node("2")])]
    node.look(rules, *there)
    assert next_forgetting(node.memory, node.inventory) == node.now + TWO_AFTER_S
    node.now += TWO_AFTER_S
    node.look(rules, *there)
    assert next_forgetting(node.memory, node.inventory) != node.now + TWO_AFTER_S
    if restarts:
        reboot(node)
    node.look(rules, *a_unit("2", 1))
    assert nodes_of_pod(node, links) == {None}
    node.look(rules, *a_unit("1", 2), *a_unit("2", 1))
    assert nodes_of_pod(node, links) == {"/dev/ttyUSB2"}


def test_a_unit_that_still_has_one_of_its_nodes_at_its_old_port_is_no_twin_of_itself() -> None:
    """It is torn down node by node, and is plugged in elsewhere already."""

    def unit(port: str, n: int, *, is_whole: bool = True) -> list[UdevDevice]:
        usb, first = a_unit(port, 2 * n)
        number = f"c 188:{2 * n + 1}"
        second = a_usb_node(usb, "tty", f"ttyUSB{2 * n + 1}", interface="01", number=number)
        return [usb, *([first] if is_whole else []), replace(second, incarnation=200 + n)]

    rules = rule("ftdi", match='{ SUBSYSTEM = "tty", usb = { interface = "00" } }')
    node, id_ = held(rules, *unit("1", 0))
    node.look(rules, *unit("1", 0, is_whole=False), *unit("2", 1))
    assert node.look(rules, *unit("2", 1)) == {id_: "Healthy"}
    assert node.look(rules, *unit("3", 2)) == {id_: "Healthy"}


@pytest.mark.parametrize("restarts", [False, True])
def test_the_minute_begins_again_when_one_of_the_two_was_away_or_the_daemon_restarts(
    *, restarts: bool
) -> None:
    rules = RULES["serial"]
    node, _ = held(rules, *a_unit("1", 0))
    for _ in range(3):
        node.look(rules, without_node("1"), *a_unit("2", 1))
        node.now += TWO_AFTER_S / 2
        if restarts:
            reboot(node)
        else:
            node.look(rules, without_node("1"))
    assert {twin.within for twin in node.memory.twins} == {USB_NODE}


@pytest.mark.parametrize("restarts", [False, True])
def test_the_minute_is_over_at_its_end_and_the_twins_are_remembered_from_then_on(*, restarts: bool) -> None:
    rules = RULES["serial"]
    node, _ = held(rules, *a_unit("1", 0))
    there = without_node("1"), without_node("2")
    node.look(rules, *there)
    began = node.now
    for after, are_known in ((TWO_AFTER_S / 2, False), (TWO_AFTER_S - 0.5, False), (TWO_AFTER_S, True)):
        node.now = began + after - 1.0
        node.look(rules, *there)
        assert (WHOLE in {twin.within for twin in node.memory.twins}) is are_known
    for _ in range(2):
        assert node.memory.beside == {}
        node.look(rules, *there)
    if restarts:
        reboot(node)
    node.look(rules)
    assert WHOLE in {twin.within for twin in node.memory.twins}


def test_one_of_two_that_leaves_ends_the_minute() -> None:
    rules = RULES["serial"]
    node, _ = held(rules, *a_unit("1", 0))
    node.look(rules, without_node("1"), without_node("2"))
    assert node.memory.beside
    node.look(rules, without_node("1"))
    assert node.memory.beside == {}


def test_of_too_many_twins_those_that_are_not_remembered_have_another_minute() -> None:
    rules = RULES["serial"]
    node, _ = held(rules, *a_unit("1", 0, serial="B6"))
    there = without_node("1"), without_node("2")
    whole = Twin("serial", "A5", "0403:6001", WHOLE)
    many = frozenset(whole._replace(key=str(n)) for n in range(TIE_LIMIT))
    node.look(rules, *there)
    node.now += TWO_AFTER_S
    node.memory = replace(node.memory, twins=many)
    node.look(rules, *there)
    assert (whole in node.memory.twins, node.memory.beside) == (False, {})
    node.look(rules, *there)
    assert node.memory.beside == {whole: node.now}


def test_twins_of_remembered_devices_are_kept_beyond_the_limit() -> None:
    rules = RULES["serial"]
    node, _ = held(rules, *a_unit("1", 0))
    whole = Twin("serial", "A5", "0403:6001", WHOLE)
    many = frozenset(whole._replace(key=str(n)) for n in range(TIE_LIMIT))
    node.memory = replace(node.memory, twins=many | {whole})
    node.look(rules)
    assert node.memory.twins == {whole}


def test_of_an_earlier_release_any_model_may_be_leaving_its_port() -> None:
    rules = RULES["serial"]
    node, id_ = held(rules, *a_unit("1", 0))
    known = node.memory.devices[id_]
    node.memory = replace(node.memory, devices={id_: replace(known, device=replace(known.device, models=()))})
    node.look(rules, without_node("1"), *a_unit("2", 1))
    assert node.look(rules, *a_unit("2", 1)) == {id_: "Healthy"}


def test_two_units_that_have_lost_their_nodes_are_no_twins_at_once() -> None:
    """While a dock is torn down, one of them may be what is left of the other one."""
    resources = resources_of(RULES["serial"])
    seen, claims = SideBySide(resources), Claims(resources)
    for there in (a_unit("1", 0), [without_node("1"), without_node("2")]):
        seen.see(claims.see(by_sys_path(*there)), claims, NO_PAST)
    assert {twin.within for twin in seen.twins} == {USB_NODE}
    assert {twin.within for twin in seen.may_be_twins} == {WHOLE}


def test_what_other_properties_told_is_forgotten_with_them() -> None:
    foo, twins = {"FOO": "x"}, SideBySide(resources_of(rule("x")))
    claims = Claims(resources_of(rule("x")))
    there = [without_node(port, serial=None, properties=foo) for port in "12"]
    turnover, past = claims.see(by_sys_path(*there)), replace(NO_PAST, bases={"property FOO"})
    twins.see(turnover, claims, past)
    assert len(twins.twins) == len(twins.may_be_twins) == 1
    twins.see(Turnover((), ()), claims, NO_PAST)
    assert vars(twins) == vars(SideBySide(resources_of(rule("x"))))


def test_hubs_of_one_dock_are_no_twins_however_long_they_are_there() -> None:
    rules = RULES["serial"]
    node = Node()
    hubs = [without_node("1", properties=HUB), without_node("2", properties=HUB)]
    for _ in range(2):
        node.look(rules, *hubs)
        node.now += TWO_AFTER_S
    assert {twin.within for twin in node.memory.twins} == {USB_NODE}


@by_all
def test_the_pod_has_its_unit_again_when_that_has_its_node_and_the_twin_is_another_device(rules: str) -> None:
    unit, twin = a_unit("1", 0), a_unit("2", 1)
    node, id_ = held(rules, *unit)
    node.look(rules, without_node("1"))
    node.look(rules, without_node("1"), *twin)
    assert "Healthy" in node.look(rules, *unit, *twin).values()
    assert "/dev/ttyUSB0" in nodes_behind(node, id_)
    if rules not in (KIT, RULES["shared property"]):
        assert nodes_behind(node, id_) == ["/dev/ttyUSB0"]


@by_all
def test_the_twin_is_taken_for_the_unit_when_that_is_unplugged(rules: str) -> None:
    node, id_ = held(rules, *a_unit("1", 0))
    node.look(rules, without_node("1"), *a_unit("2", 1))
    assert {*node.look(rules, *a_unit("2", 1)).values()} == {"Healthy"}
    assert nodes_behind(node, id_) == ["/dev/ttyUSB1"]


def test_the_twin_need_not_wait_when_no_pod_holds_the_id() -> None:
    node, id_ = held(RULES["serial"], *a_unit("1", 0))
    answer = node.nobody_holds_anything()
    node.look(RULES["serial"], without_node("1"), *a_unit("2", 1))
    node.look(RULES["serial"], without_node("1"), *a_unit("2", 1), answer=answer)
    assert node.look(RULES["serial"], without_node("1"), *a_unit("2", 1)) == {id_: "Healthy"}


@by_all
def test_a_unit_that_is_plugged_in_elsewhere_comes_back_at_once(rules: str) -> None:
    node, id_ = held(rules, *a_unit("1", 0))
    node.look(rules)
    assert {*node.look(rules, *a_unit("2", 1)).values()} == {"Healthy"}
    assert nodes_behind(node, id_) == ["/dev/ttyUSB1"]


@by_all
def test_a_unit_comes_back_elsewhere_as_soon_as_its_driver_has_made_the_node(rules: str) -> None:
    node, id_ = held(rules, *a_unit("1", 0))
    node.look(rules)
    assert {*node.look(rules, without_node("2")).values()} == {"it is unplugged"}
    assert {*node.look(rules, *a_unit("2", 1)).values()} == {"Healthy"}
    assert nodes_behind(node, id_) == ["/dev/ttyUSB1"]


@by_all
def test_a_unit_in_another_mode_comes_back_when_it_has_changed_back(rules: str) -> None:
    """A modem is a disk at first, and a flash tool makes a board something else; the serial number stays."""
    node, id_ = held(rules, *a_unit("1", 0))
    node.look(rules, without_node("1", product="dead"))
    assert "Healthy" not in node.look(rules, without_node("1", product="dead"), *a_unit("2", 1)).values()
    node, id_ = held(rules, *a_unit("1", 0))
    node.look(rules, without_node("3", product="dead"))
    assert {*node.look(rules, *a_unit("3", 1)).values()} == {"Healthy"}
    assert nodes_behind(node, id_) == ["/dev/ttyUSB1"]


@by_all
def test_a_hub_with_the_serial_number_of_what_is_built_into_it_is_not_that(rules: str) -> None:
    node, id_ = held(rules, *a_unit("1", 0))
    node.look(rules)
    hub = without_node("3", properties=HUB)
    assert {*node.look(rules, hub).values()} == {"it is unplugged"}
    assert {*node.look(rules, hub, *a_unit("3.1", 1)).values()} == {"Healthy"}
    assert nodes_behind(node, id_) == ["/dev/ttyUSB1"]


@by_all
def test_another_model_with_the_same_serial_number_elsewhere_is_another_part_of_a_dock(rules: str) -> None:
    camera = without_node("3", product="097c")
    node, id_ = held(rules, *a_unit("1", 0))
    node.look(rules)
    assert {*node.look(rules, camera, *a_unit("2", 1)).values()} == {"Healthy"}
    assert nodes_behind(node, id_) == ["/dev/ttyUSB1"]


@pytest.mark.parametrize("port", ["1", "3"], ids=["where it was", "elsewhere"])
def test_of_units_without_serial_numbers_a_property_that_only_the_node_has_tells_nothing(port: str) -> None:
    rules = rule("x", 'identity = ["FOO"]')
    unit = a_unit("1", 0, serial=None, properties={"FOO": "x"})
    twin = a_unit("2", 1, serial=None, properties={"FOO": "x"})
    node, id_ = held(rules, *unit)
    node.look(rules)
    assert node.look(rules, without_node(port, serial=None), *twin) == {id_: LACKS.format(f"1-{port}")}
    (refusal,) = node.inventory.refusals
    assert refusal.reason == why_waiting(id_, f"1-{port}")
    assert node.look(rules, *twin) == {id_: "Healthy"}


@pytest.mark.parametrize("port", ["1", "3"], ids=["where it was", "elsewhere"])
def test_a_property_of_the_unit_tells_that_it_is_another_one(port: str) -> None:
    rules = rule("x", 'identity = ["ID_SERIAL_SHORT"]')
    mine, other = {"ID_SERIAL_SHORT": "mine"}, {"ID_SERIAL_SHORT": "other"}

    def named(devices: list[UdevDevice]) -> list[UdevDevice]:
        usb = replace(devices[0], properties={**devices[0].properties, **mine})
        return [
            usb,
            *(replace(each, parent=replace(each.parent, parent=usb)) for each in devices[1:] if each.parent),
        ]

    node, id_ = held(rules, *named(a_unit("1", 0, serial=None, properties=mine)))
    node.look(rules)
    there = without_node(port, serial=None, properties=other)
    assert node.look(rules, there, *named(a_unit("2", 1, serial=None, properties=mine))) == {id_: "Healthy"}


def test_a_part_of_a_kit_that_has_lost_its_node_is_not_replaced_by_a_twin() -> None:
    """The kit goes on without it meanwhile, so only what is remembered of the pod tells where it was."""
    other = a_usb_serial(7, serial="B6", port="7")
    node, _ = held(KIT, *a_unit("1", 0), other)
    had = {link for link, path in node.inventory.links().items() if path == "/dev/ttyUSB0"}
    assert node.look(KIT, without_node("1"), other) == {"kit": "Healthy"}
    node.look(KIT, without_node("1"), other, *a_unit("2", 1))
    assert [node.inventory.links()[link] for link in had] == [None]
    node.look(KIT, *a_unit("1", 0), other, *a_unit("2", 1))
    assert [node.inventory.links()[link] for link in had] == ["/dev/ttyUSB0"]


def test_a_unit_is_not_replaced_by_a_twin_that_has_only_its_other_nodes() -> None:
    rules = RULES["terminals of a unit"]

    def a_pair(port: str, *numbers: int) -> list[UdevDevice]:
        usb = a_usb_device(port, serial="A5", devnum=int(port) + 1)
        ttys = [
            a_usb_node(usb, "tty", f"ttyUSB{n}", interface=f"{n % 2:02}", number=f"c 188:{n}")
            for n in numbers
        ]
        return [usb, *ttys]

    node, id_ = held(rules, *a_pair("1", 0))
    node.look(rules, *a_pair("1"))
    for numbers in ((3,), (2, 3)):
        assert node.look(rules, *a_pair("1"), *a_pair("2", *numbers)) == {id_: LACKS.format("1-1")}
        assert nodes_behind(node, id_) == []
