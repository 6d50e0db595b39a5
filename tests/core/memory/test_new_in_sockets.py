"""A unit that appears beside another one in a socket of USB 3, and may be the one that a pod got."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory.lasting import TWO_AFTER_S
from tests.core.memory.test_siblings_on_boards import Booting
from tests.core.memory.test_unread_twins import held
from tests.scenes.builders import a_usb_node
from tests.scenes.edits import Node, rule
from tests.scenes.sockets import SHIFT, in_socket

PLAIN = rule("x")
OF_UNITS = rule("x", 'group_by = "usb_device"')
BY_KEY = rule("x", 'identity = ["KEY"]')
UNITS_BY_KEY = rule("x", 'group_by = "usb_device"', 'identity = ["KEY"]')
KITS = rule("x", 'group_by = "KEY"')
ONLY_WITH_KEY = rule("x", 'identity = ["KEY"]', match='{ SUBSYSTEM = "tty", KEY = "?*" }')


def unit(
    port: str,
    plug: int,
    *,
    serial: str | None = None,
    keys: Sequence[str] = ("red",),
    product: str = "6001",
    fast: bool = False,
    dock: str = "",
) -> list[UdevDevice]:
    """A unit with a tty for each value of KEY, "" for none. `dock` is the serial number of its hub."""
    usb = in_socket(port, fast=fast, serial=serial, product=product, shift=SHIFT, devnum=10 + plug)
    if dock and usb.parent is not None:
        says = {"idVendor": "1d5c", "idProduct": "5801", "serial": dock}
        hub = replace(usb.parent, attributes={**usb.parent.attributes, **says})
        usb = replace(usb, parent=hub)
    usb = replace(usb, incarnation=100 * plug)
    return [
        usb,
        *(
            a_usb_node(
                usb,
                "tty",
                f"ttyUSB{plug}{number}",
                interface=f"{number:02x}",
                number=f"c 188:{10 * plug + number}",
                properties={"KEY": key} if key else {},
            )
            for number, key in enumerate(keys)
        ),
    ]


def neighbour(port: str) -> list[UdevDevice]:
    return unit(port, 9, keys=("green",), product="6010", fast=True)


def beside_what_is_new(node: Node, rules: str, new: list[UdevDevice], moved: list[UdevDevice]) -> str | None:
    """Where the first link of a pod leads once its unit has moved, while something new waits in a socket."""
    link = next(iter(node.links()))
    node.look(rules)
    node.look(rules, *neighbour("3"))
    node.look(rules, *neighbour("3"), *new)
    node.look(rules, *neighbour("3"), *new, *moved)
    return node.links()[link]


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize(
    ("rules", "serial", "keys"),
    [
        *((rules, "S", ("red",)) for rules in (PLAIN, OF_UNITS, BY_KEY, KITS)),
        *((rules, None, ("red",)) for rules in (BY_KEY, KITS)),
        *((UNITS_BY_KEY, serial, ("red", "data")) for serial in ("S", None)),
    ],
)
def test_a_twin_does_not_get_the_id_while_the_unit_of_a_pod_waits_in_a_socket(
    rules: str, serial: str | None, keys: Sequence[str], *, moves: bool
) -> None:
    there = "3" if moves else "1"
    before, now, twin = (
        unit(port, plug, serial=serial, keys=keys) for port, plug in (("1", 1), (there, 2), ("2", 3))
    )
    node, link = held(rules, *before)
    node.look(rules, *neighbour(there), *(before if moves else ()))
    node.look(rules, *neighbour(there), *now)
    # What is identified by its values alone is found at its port at once.
    is_back = not moves and rules not in (PLAIN, OF_UNITS)
    assert node.links()[link] == ("/dev/ttyUSB20" if is_back else None)
    for _ in range(2):
        node.look(rules, *neighbour(there), *now, *twin)
        assert node.links()[link] != "/dev/ttyUSB30"
        node.now += 2 * TWO_AFTER_S


@pytest.mark.parametrize("serial", ["S", None])
@pytest.mark.parametrize(
    ("rules", "key", "waits"),
    [
        (BY_KEY, "red", True),
        (BY_KEY, "blue", False),
        (BY_KEY, "", False),
        (ONLY_WITH_KEY, "red", True),
        (ONLY_WITH_KEY, "blue", False),
        (ONLY_WITH_KEY, "", False),
    ],
)
def test_a_unit_waits_for_what_is_new_only_if_a_rule_gives_that_its_values(
    rules: str, serial: str | None, key: str, *, waits: bool
) -> None:
    node, _ = held(rules, *unit("1", 1, serial=serial))
    led = beside_what_is_new(
        node, rules, unit("3", 2, serial=serial, keys=(key,)), unit("4", 3, serial=serial)
    )
    assert led == (None if waits else "/dev/ttyUSB30")


def test_a_unit_does_not_wait_for_what_is_new_and_of_another_model_or_has_another_node() -> None:
    for new in (unit("3", 2, product="6015"), unit("3", 2, keys=("", "red"))):
        node, _ = held(ONLY_WITH_KEY, *unit("1", 1))
        assert beside_what_is_new(node, ONLY_WITH_KEY, new, unit("4", 3)) == "/dev/ttyUSB30"


@pytest.mark.parametrize("dock", ["D", "E"])
def test_a_unit_without_a_serial_number_does_not_wait_for_what_is_new_behind_another_dock(dock: str) -> None:
    node, _ = held(BY_KEY, *unit("1.2", 1, dock="D"))
    link = next(iter(node.links()))
    half = unit("3.2", 9, keys=("green",), product="6010", fast=True, dock="E3")
    node.look(BY_KEY, *half)
    node.look(BY_KEY, *half, *unit("3.2", 2, dock=dock))
    node.look(BY_KEY, *half, *unit("3.2", 2, dock=dock), *unit("2.2", 3, dock="D"))
    assert node.links()[link] == (None if dock == "D" else "/dev/ttyUSB30")


@pytest.mark.parametrize("is_fast", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("passed_s", [0.0, TWO_AFTER_S])
@pytest.mark.parametrize("rules", [PLAIN, OF_UNITS])
def test_a_unit_that_was_in_a_socket_before_another_one_is_new_there_if_it_comes_long_after_a_boot(
    rules: str, passed_s: float, *, restarts: bool, is_fast: bool
) -> None:
    """Right after a boot, it may have been in the socket while the machine was off."""
    node = Booting()
    node.look(rules, *unit("1", 1, serial="S", fast=is_fast))
    mine = unit("1", 2, serial="T", fast=not is_fast)
    link = node.give(rules, *mine)
    node.reboot()
    node.look(rules, *mine)
    if restarts:
        node.restart()
        node.look(rules, *mine)
    node.now += passed_s
    node.look(rules, *mine, *unit("1", 3, serial="S", fast=is_fast))
    assert node.links()[link] == ("/dev/ttyUSB20" if passed_s else None)


@pytest.mark.parametrize("rules", [rule("x", 'group_by = "all"'), KITS])
def test_a_kit_does_without_what_is_new_until_a_minute_has_passed(rules: str) -> None:
    node = Node()
    first, new = unit("1", 9, fast=True), unit("1", 1, product="6010")
    node.look(rules, *first)
    for expected in (["/dev/ttyUSB90"], ["/dev/ttyUSB10", "/dev/ttyUSB90"]):
        assert [*node.look(rules, *first, *new).values()] == ["Healthy"]
        assert sorted(filter(None, node.links().values())) == expected
        node.now += TWO_AFTER_S


def test_a_unit_does_not_wait_for_another_model_with_its_serial_number_that_no_rule_takes() -> None:
    """The parts of a dock share one, and come one by one."""
    rules = "".join(rule(n, match=f'{{ SUBSYSTEM = "tty", ID_MODEL_ID = "{n}" }}') for n in ("6001", "6015"))
    node, link = held(rules, *unit("1.2", 1, serial="S", product="6015"))
    node.look(rules)
    half = unit("2.1", 2, serial="S", fast=True)
    node.look(rules, *half)
    other = unit("2.1", 3, serial="S", product="6010")
    node.look(rules, *half, *other)
    node.look(rules, *half, *other, *unit("2.2", 4, serial="S", product="6015"))
    assert node.links()[link] == "/dev/ttyUSB40"
