"""Two rules whose devices have the same values of the properties that identify them, and a pod for each."""

from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.memory.lasting import TWO_AFTER_S
from tests.core.memory.test_new_in_sockets import unit
from tests.core.memory.test_siblings_on_boards import Booting
from tests.scenes.builders import a_device
from tests.scenes.edits import of_product, rule

KEYS = pytest.mark.parametrize(
    "keys", ['identity = ["KEY"]', 'group_by = "usb_device"\nidentity = ["KEY"]', 'group_by = "KEY"']
)
SERIALS = pytest.mark.parametrize("serial", ["S", None])
OTHER_SERIALS = pytest.mark.parametrize("other_serial", ["T", None])


def a_card_in_a_slot(slot: str, plug: int) -> UdevDevice:
    path = f"/sys/devices/pci0000:00/0000:00:1c.0/0000:{slot}:00.0"
    card = a_device(path, subsystem="pci", driver="serial", properties={"PCI_SLOT_NAME": f"0000:{slot}:00.0"})
    tty = a_device(
        f"{path}/tty/ttyS{plug}",
        subsystem="tty",
        number=f"c 4:{64 + plug}",
        node=f"/dev/ttyS{plug}",
        properties={"KEY": "red"},
        parent=card,
    )
    return replace(tty, incarnation=plug)


def with_two_pods(
    keys: str, serial: str | None, other_serial: str | None, dock: str = ""
) -> tuple[Booting, str, str]:
    """A node on which pods have an adapter at port 2 and a relay, its rules, and the link to the adapter."""
    rules = of_product("600*", "adapter", keys) + of_product("6010", "relay", keys)
    port, relay = "2.2" if dock else "2", unit("1", 2, serial=other_serial, product="6010")
    node, adapter = Booting(), unit(port, 1, serial=serial, dock=dock)
    for id_ in node.look(rules, *adapter, *relay):
        node.allocate(id_)
    node.look(rules, *adapter, *relay)
    return node, rules, next(link for link, path in node.links().items() if path == "/dev/ttyUSB10")


@KEYS
@SERIALS
@OTHER_SERIALS
def test_a_unit_that_stays_keeps_its_pod_when_one_with_its_values_leaves(
    keys: str, serial: str | None, other_serial: str | None
) -> None:
    node, rules, link = with_two_pods(keys, serial, other_serial)
    for restarts in (False, False, True):
        if restarts:
            node.restart()
        node.look(rules, *unit("2", 1, serial=serial))
        assert node.links()[link] == "/dev/ttyUSB10"
        node.now += TWO_AFTER_S


@KEYS
@SERIALS
@OTHER_SERIALS
@pytest.mark.parametrize("boots", [False, True])
def test_a_unit_is_found_at_its_port_while_one_with_its_values_is_unplugged(
    keys: str, serial: str | None, other_serial: str | None, *, boots: bool
) -> None:
    node, rules, link = with_two_pods(keys, serial, other_serial)
    node.look(rules)
    if boots:
        node.reboot()
    for _ in range(2):
        node.look(rules, *unit("2", 3, serial=serial))
        assert node.links()[link] == "/dev/ttyUSB30"


@KEYS
@SERIALS
@OTHER_SERIALS
def test_a_unit_is_found_at_its_port_in_another_mode_too(
    keys: str, serial: str | None, other_serial: str | None
) -> None:
    node, rules, link = with_two_pods(keys, serial, other_serial)
    node.look(rules, *unit("2", 1, serial=serial))
    for plug, product in enumerate(("6002", "6001", "6002"), 3):
        node.look(rules)
        node.look(rules, *unit("2", plug, serial=serial, product=product))
        assert node.links()[link] == f"/dev/ttyUSB{plug}0"


@KEYS
@SERIALS
@OTHER_SERIALS
def test_a_unit_at_another_port_waits_unless_its_serial_number_says_that_its_pod_got_it(
    keys: str, serial: str | None, other_serial: str | None
) -> None:
    """It may be the other one, in another mode."""
    node, rules, link = with_two_pods(keys, serial, other_serial)
    node.look(rules)
    for _ in range(2):
        node.look(rules, *unit("3", 3, serial=serial))
        assert node.links()[link] == ("/dev/ttyUSB30" if serial else None)
        node.now += TWO_AFTER_S


@KEYS
def test_a_serial_number_that_two_units_have_says_nothing(keys: str) -> None:
    node, rules, link = with_two_pods(keys, "S", None)
    twin = unit("4", 4, serial="S", keys=("blue",))
    node.look(rules, *unit("2", 1, serial="S"), *twin)
    node.look(rules, *twin)
    node.look(rules, *twin, *unit("3", 3, serial="S"))
    assert node.links()[link] is None


@KEYS
def test_a_unit_without_a_serial_number_at_another_port_of_its_dock_waits(keys: str) -> None:
    node, rules, link = with_two_pods(keys, None, None, dock="D")
    node.look(rules)
    node.look(rules, *unit("2.3", 3, dock="D"))
    assert node.links()[link] is None


@KEYS
def test_a_unit_with_another_serial_number_than_the_pod_got_waits(keys: str) -> None:
    node, rules, link = with_two_pods(keys, "S", None)
    node.look(rules)
    node.look(rules, *unit("3", 3, serial="X"))
    assert node.links()[link] is None


@KEYS
@pytest.mark.parametrize("swaps", [False, True])
def test_a_unit_at_the_port_of_another_model_waits_if_edited_rules_give_it_the_same_id(
    keys: str, *, swaps: bool
) -> None:
    node, _, _ = with_two_pods(keys, None, None)
    link = next(link for link, path in node.links().items() if path == "/dev/ttyUSB20")
    node.look("")
    edited = of_product("60*", "relay", keys)
    if swaps:
        edited = of_product("6001", "relay", keys) + of_product("6010", "adapter", keys)
    node.look(edited)
    for _ in range(2):
        node.look(edited, *unit("1", 3))
        assert node.links()[link] is None
        node.restart()


@pytest.mark.parametrize("keys", ['identity = ["KEY"]', 'group_by = "usb_device"\nidentity = ["KEY"]'])
def test_two_models_with_one_serial_number_are_not_exchanged_when_rules_are(keys: str) -> None:
    node, rules, link = with_two_pods(keys, "S", "S")
    other = next(link for link, path in node.links().items() if path == "/dev/ttyUSB20")
    adapter, relay = unit("2", 3, serial="S"), unit("1", 4, serial="S", product="6010")
    edited = of_product("6001", "relay", keys) + of_product("6010", "adapter", keys)
    node.look(rules, *unit("2", 1, serial="S"))
    node.look(rules)
    node.look(edited)
    for there in (adapter, [*adapter, *relay]):
        node.look(edited, *there)
        assert (node.links()[link], node.links()[other]) == (None, None)


@KEYS
@SERIALS
def test_units_of_one_model_are_told_apart_by_their_ports(keys: str, serial: str | None) -> None:
    rules = "".join(
        rule(name, keys, match=f'{{ SUBSYSTEM = "tty", DEVPATH = "*/1-{port}/*" }}')
        for name, port in (("adapter", "2"), ("relay", "1"))
    )
    node, adapter, relay = Booting(), unit("2", 1, serial=serial), unit("1", 2)
    for id_ in node.look(rules, *adapter, *relay):
        node.allocate(id_)
    link = next(link for link, path in node.links().items() if path == "/dev/ttyUSB10")
    node.look(rules, *adapter)
    assert node.links()[link] == "/dev/ttyUSB10"
    node.look(rules)
    node.look(rules, *unit("2", 3, serial=serial))
    assert node.links()[link] == "/dev/ttyUSB30"


def test_units_that_are_not_on_usb_are_told_apart_by_their_slots() -> None:
    """Nothing says of which model they are."""
    rules = "".join(
        rule(name, 'identity = ["KEY"]', match=f'{{ SUBSYSTEM = "tty", DEVPATH = "*/0000:{slot}:*" }}')
        for name, slot in (("adapter", "05"), ("relay", "06"))
    )
    adapter, relay = a_card_in_a_slot("05", 1), a_card_in_a_slot("06", 2)
    node = Booting()
    for id_ in node.look(rules, adapter, relay):
        node.allocate(id_)
    link = next(link for link, path in node.links().items() if path == "/dev/ttyS1")
    node.look(rules, adapter)
    assert node.links()[link] == "/dev/ttyS1"
    node.look(rules)
    node.look(rules, a_card_in_a_slot("05", 3))
    assert node.links()[link] == "/dev/ttyS3"
