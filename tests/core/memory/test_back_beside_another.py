"""A unit that only its port identifies is back in its socket of USB 3, beside what came there meanwhile."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.memory.lasting import TWO_AFTER_S
from genericdp.core.usb_port import At, Said, Socket
from tests.core.memory.test_new_in_sockets import unit
from tests.core.memory.test_siblings_on_boards import Booting
from tests.scenes.builders import CONTROLLER
from tests.scenes.edits import Node, of_product

KEYS = pytest.mark.parametrize("keys", ["", 'group_by = "usb_device"', 'identity = "port"'])
SPEEDS = pytest.mark.parametrize("is_fast", [False, True])


def rules_with(*keys: str) -> str:
    """One rule for the unit of a pod, with these keys, and one for another model."""
    return of_product("6001", "x", *keys) + of_product("6010", "y")


def other(plug: int, *keys: str, serial: str | None = "K", fast: bool) -> list[UdevDevice]:
    return unit("1", plug, serial=serial, product="6010", fast=fast, keys=keys or ("",))


def beside_another(rules: str, *, is_fast: bool) -> tuple[Booting, str, list[UdevDevice]]:
    """A node after a pod's unit has come back beside another one, its link, and that other one."""
    node, came = Booting(), other(2, fast=not is_fast)
    link = node.give(rules, *unit("1", 1, fast=is_fast))
    node.look(rules)
    told = node.look(rules, *came)
    node.allocate(next(id_ for id_ in told if told[id_] == "Healthy"))
    node.look(rules, *came, *unit("1", 3, fast=is_fast))
    assert node.links()[link] == "/dev/ttyUSB30"
    return node, link, came


@SPEEDS
@KEYS
@pytest.mark.parametrize("serial", ["K", None])
def test_it_is_found_there_whatever_came_meanwhile(keys: str, serial: str | None, *, is_fast: bool) -> None:
    """A serial number says at once that the other one has not moved. Without one, it takes a minute."""
    rules, came, node = rules_with(keys), other(2, serial=serial, fast=not is_fast), Booting()
    link = node.give(rules, *unit("1", 1, fast=is_fast))
    node.look(rules)
    told = node.look(rules, *came)
    if serial:
        node.allocate(next(each for each in told if told[each] == "Healthy"))
    for minutes in range(3):
        told = node.look(rules, *came, *unit("1", 3, fast=is_fast))
        assert [*told.values()].count("Healthy") == (2 if serial or minutes else 1)
        assert node.links()[link] == "/dev/ttyUSB30"
        node.now += TWO_AFTER_S
    node.look(rules)
    node.look(rules, *unit("1", 4, fast=is_fast))
    assert node.links()[link] == "/dev/ttyUSB40"


@SPEEDS
@KEYS
def test_it_stays_there_when_the_other_one_leaves_within_a_minute(keys: str, *, is_fast: bool) -> None:
    rules = rules_with(keys)
    node, link, _ = beside_another(rules, is_fast=is_fast)
    told = node.look(rules, *unit("1", 3, fast=is_fast))
    assert (node.links()[link], [*told.values()].count("Healthy")) == ("/dev/ttyUSB30", 1)
    node.look(rules)
    node.look(rules, *unit("1", 4, fast=not is_fast))
    assert node.links()[link] == "/dev/ttyUSB40"


@SPEEDS
@KEYS
@pytest.mark.parametrize("boots", [False, True])
def test_it_stays_there_after_a_restart_within_a_minute(keys: str, *, is_fast: bool, boots: bool) -> None:
    rules = rules_with(keys)
    node, link, came = beside_another(rules, is_fast=is_fast)
    both = [*came, *unit("1", 3, fast=is_fast)]
    if boots:
        node.reboot()
    else:
        node.restart()
    for _ in range(2):
        told = node.look(rules, *both)
        assert (node.links()[link], [*told.values()].count("Healthy")) == ("/dev/ttyUSB30", 2)
        node.now += TWO_AFTER_S


@SPEEDS
@KEYS
@pytest.mark.parametrize("boots", [False, True])
def test_it_is_found_there_if_it_comes_back_while_the_daemon_is_off(
    keys: str, *, is_fast: bool, boots: bool
) -> None:
    rules, came, node = rules_with(keys), other(2, fast=not is_fast), Booting()
    link = node.give(rules, *unit("1", 1, fast=is_fast))
    node.look(rules)
    node.look(rules, *came)
    if boots:
        node.reboot()
    else:
        node.restart()
    for _ in range(2):
        node.look(rules, *came, *unit("1", 3, fast=is_fast))
        assert node.links()[link] == "/dev/ttyUSB30"
        node.now += TWO_AFTER_S


@SPEEDS
@KEYS
def test_the_other_one_is_not_new_if_it_is_found_first_after_a_boot(keys: str, *, is_fast: bool) -> None:
    rules = rules_with(keys)
    node, link, came = beside_another(rules, is_fast=is_fast)
    node.look(rules, *came)
    node.reboot()
    node.look(rules, *came)
    told = node.look(rules, *came, *unit("1", 3, fast=is_fast))
    assert (node.links()[link], [*told.values()].count("Healthy")) == ("/dev/ttyUSB30", 2)


@SPEEDS
@KEYS
def test_what_comes_beside_it_is_new_for_a_minute(keys: str, *, is_fast: bool) -> None:
    """It may be the same unit, with other firmware."""
    rules, node = rules_with(keys), Booting()
    link = node.give(rules, *unit("1", 1, fast=is_fast))
    for expected in (1, 2):
        told = node.look(rules, *unit("1", 1, fast=is_fast), *other(2, fast=not is_fast))
        assert (node.links()[link], [*told.values()].count("Healthy")) == ("/dev/ttyUSB10", expected)
        node.now += TWO_AFTER_S


@SPEEDS
@KEYS
def test_a_kit_does_without_what_comes_beside_it_for_a_minute(keys: str, *, is_fast: bool) -> None:
    rules, node = of_product("6001", "x", keys) + of_product("6010", "y", 'group_by = "all"'), Booting()
    mine, part = unit("1", 1, fast=is_fast), unit("2", 4, product="6010")
    node.give(rules, *mine)
    for expected in (["/dev/ttyUSB10", "/dev/ttyUSB40"], ["/dev/ttyUSB10", "/dev/ttyUSB20", "/dev/ttyUSB40"]):
        told = node.look(rules, *mine, *part, *other(2, fast=not is_fast))
        assert [*told.values()] == ["Healthy", "Healthy"]
        assert sorted(filter(None, node.links().values())) == expected
        node.now += TWO_AFTER_S


def test_a_shared_node_that_comes_back_does_not_move_the_unit_beside_it() -> None:
    shared = '[[resource.node]]\nmatch = { usb = { product = "6010" } }\nshared = true\noptional = true'
    rules, mine = of_product("6001", "x", shared) + of_product("6011", "y"), unit("3", 1)
    part, came, node = other(2, serial=None, fast=True), unit("1", 3, product="6011"), Node()
    node.allocate(*node.look(rules, *mine, *part))
    node.look(rules, *mine)
    told = node.look(rules, *mine, *came)
    assert [*told.values()] == ["Healthy", "Healthy"]
    assert node.look(rules, *mine, *came, *other(4, serial=None, fast=True)) == told


@SPEEDS
@KEYS
def test_ports_of_a_card_that_order_tells_apart_stay_what_they_are_when_it_goes_to_the_other_port(
    keys: str, *, is_fast: bool
) -> None:
    rules, came, node = rules_with(keys), other(2, "", "", fast=not is_fast), Booting()
    node.give(rules, *unit("1", 1, fast=is_fast))
    node.look(rules)
    told = node.look(rules, *came)
    for id_ in [id_ for id_ in told if told[id_] == "Healthy"]:
        node.allocate(id_)
    node.look(rules, *came)
    links = {link: path for link, path in node.links().items() if path}
    assert sorted(links.values()) == ["/dev/ttyUSB20", "/dev/ttyUSB21"]
    for _ in range(2):
        node.look(rules, *came, *unit("1", 3, fast=is_fast))
        assert {link: node.links()[link] for link in links} == links
        node.now += TWO_AFTER_S


def test_what_a_pod_got_meanwhile_by_the_same_port_keeps_it() -> None:
    rules = of_product("6001", "x", "replicas = 2") + of_product("6010", "y", "replicas = 2")
    came, node = other(2, serial=None, fast=True), Node()
    node.allocate(min(node.look(rules, *unit("1", 1))))
    node.look(rules)
    node.allocate(max(node.look(rules, *came)))
    link = next(link for link, path in node.links().items() if path == "/dev/ttyUSB20" and link[0] == "y")
    for _ in range(3):
        node.look(rules, *came, *unit("1", 3))
        assert node.links()[link] == "/dev/ttyUSB20"
        node.now += TWO_AFTER_S


#: Which chips have instead of a serial number.
FILLER = "0123456789"
OF_DOCK = 'group_by = { TYPE = "9/*", usb = { serial = "1" } }'


@SPEEDS
@pytest.mark.parametrize(
    ("keys", "serial", "properties", "twin_at"),
    [
        ("", "K", ("red",), "2.2"),
        ("", FILLER, ("red",), ""),
        (OF_DOCK, None, ("red",), ""),
        (OF_DOCK, "K", ("red",), "1.3"),
        (OF_DOCK, "K", ("red",), "2.2"),
        ('identity = ["KEY"]', None, ("red", "data"), ""),
        ('group_by = "usb_device"\nidentity = ["KEY"]', None, ("red",), ""),
        ('group_by = "all"', None, ("",), ""),
        ('group_by = "KEY"', None, ("red",), ""),
    ],
)
def test_what_pods_got_meanwhile_under_names_that_may_depend_on_the_port_keeps_it(
    keys: str, serial: str | None, properties: tuple[str, ...], twin_at: str, *, is_fast: bool
) -> None:
    """All of them are behind a dock. Of units with the same serial number, there are two."""
    rules, node = of_product("6001", "x", 'identity = "port"') + of_product("6010", "y", keys), Booting()
    mine = [unit("1.2", plug, serial="S", fast=is_fast, dock="1") for plug in (1, 3)]
    came = unit("1.2", 2, serial=serial, keys=properties, product="6010", fast=not is_fast, dock="1")
    twin = unit(twin_at, 4, serial="K", product="6010", fast=not is_fast, dock=twin_at[0]) if twin_at else []
    node.look(rules, *twin)
    node.allocate(max(set(node.look(rules, *twin, *mine[0])) - {"y_K"}))
    node.look(rules, *twin)
    told = node.look(rules, *twin, *came)
    for id_ in [id_ for id_ in told if told[id_] == "Healthy" and id_ != "y_K"]:
        node.allocate(id_)
    node.look(rules, *twin, *came)
    links = {link: path for link, path in node.links().items() if path and link[0] == "y" and link != "y_K"}
    assert links
    for _ in range(2):
        node.look(rules, *twin, *came, *mine[1])
        assert {link: node.links()[link] for link in links} == links
        node.now += TWO_AFTER_S


@SPEEDS
def test_one_of_two_units_with_a_serial_number_is_found_at_its_port_too(*, is_fast: bool) -> None:
    rules, node, twin = rules_with(), Booting(), unit("2", 4, serial="S")
    node.look(rules, *twin)
    told = node.look(rules, *twin, *unit("1", 1, serial="S", fast=is_fast))
    node.allocate(link := max(told))
    assert node.links()[link] == "/dev/ttyUSB10"
    came = other(2, fast=not is_fast)
    node.look(rules, *twin, *came)
    for _ in range(2):
        node.look(rules, *twin, *came, *unit("1", 3, serial="S", fast=is_fast))
        assert node.links()[link] == "/dev/ttyUSB30"
        node.now += TWO_AFTER_S


SLOW, FAST = f"{CONTROLLER} usb2 1", f"{CONTROLLER} usb3 5"


@pytest.mark.parametrize("own", [SLOW, FAST])
@pytest.mark.parametrize(
    ("at_own", "at_other", "is_own"),
    [
        ([("6001", "")], [("6010", "K")], True),
        ([("6010", "K")], [("6001", "")], False),
        ([("6010", "K")], [("6010", "K")], True),
        ([("6010", "K"), ("6001", "")], [("6001", "")], True),
        ([], [("6001", "")], True),
    ],
)
def test_what_is_alone_in_a_socket_of_two_ports_is_at_its_own_unless_only_others_were_there(
    own: str, at_own: list[Said], at_other: list[Said], *, is_own: bool
) -> None:
    """A port may be known without a model: that of a node that a device has lost."""
    socket = Socket(SLOW, FAST, own, "", ("6001", ""))
    units = {own: at_own, socket.other(own): at_other}
    assert socket.port(At(is_known=lambda _: True, units=units.__getitem__)) == (
        own if is_own else socket.other(own)
    )


#: Of the unit of the pod and of the other one: whether each is plugged in and at which speed. Or a restart.
STEPS = st.lists(st.tuples(st.sampled_from("BK"), st.sampled_from([None, False, True])) | st.none())


@given(
    first=st.booleans(),
    steps=STEPS,
    keys=st.sampled_from(["", 'group_by = "usb_device"']),
    held=st.booleans(),
)
@example(first=True, steps=[("B", None), ("K", False), ("B", True), None], keys="", held=True)
@example(first=True, steps=[("B", None), ("K", False), ("B", True), ("K", None)], keys="", held=True)
@example(
    first=False, steps=[("B", None), ("K", True), ("B", False), ("K", None), ("B", True)], keys="", held=False
)
def test_what_comes_and_leaves_in_a_socket_within_a_minute_never_costs_a_pod_its_unit(
    first: bool, steps: list[tuple[str, bool | None] | None], keys: str, held: bool
) -> None:
    rules, node = rules_with(keys), Booting()
    there = {"B": unit("1", 0, fast=first), "K": []}
    speeds: dict[str, bool | None] = {"B": first, "K": None}
    link = node.give(rules, *there["B"])
    for plug, step in enumerate(steps[:30], 1):
        if step is None:
            node.restart()
        else:
            name, speed = step
            if speed is not None and speed in speeds.values():
                continue
            speeds[name] = speed
            plugged = unit("1", plug, fast=bool(speed)) if name == "B" else other(plug, fast=bool(speed))
            there[name] = [] if speed is None else plugged
        told = node.look(rules, *there["B"], *there["K"])
        assert node.links()[link] in (None, *(node_.device_node for node_ in there["B"][1:]))
        for id_ in [id_ for id_ in told if told[id_] == "Healthy"]:
            (path,) = (each.path for each in node.offer_of(id_).ids[id_].nodes)
            assert path in [each.device_node for each in there["B" if id_ == link.partition("@")[0] else "K"]]
            if held:
                node.allocate(id_)
    for _ in range(2):
        node.now += TWO_AFTER_S
        node.look(rules, *there["B"], *there["K"])
    assert node.links()[link] == (there["B"][1].device_node if there["B"] else None)
