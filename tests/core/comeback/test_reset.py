"""From which containers the reset of a USB unit would take something."""

from dataclasses import replace

import pytest

from genericdp.core.comeback.reset import other_holder, with_hubs
from genericdp.core.device import UdevDevice
from genericdp.core.memory.saved import dump, load
from tests.scenes.builders import a_device, a_usb_device, a_usb_node, a_usb_serial, by_sys_path
from tests.scenes.edits import Node, rule

ADAPTER = a_usb_device("2", product="6010", serial="DUAL")
PORTS = tuple(
    a_usb_node(ADAPTER, "tty", f"ttyUSB{n}", interface=f"{n:02x}", number=f"c 188:{n}") for n in range(2)
)
RAW = '{ SUBSYSTEM = "usb", usb = { vendor = "0403" } }'


def holder(
    node: Node, *devices: UdevDevice, ids: tuple[str, ...] = (), numbers: tuple[int, int] = (1, 4)
) -> str:
    return other_holder(numbers, ids, node.inventory, node.memory, by_sys_path(*devices))


def test_every_other_port_of_the_unit_that_is_held_counts() -> None:
    node = Node()
    node.look(rule(), *PORTS)
    assert holder(node, *PORTS) == ""
    node.allocate("ftdi_DUAL", "ftdi_DUAL.if01")
    assert holder(node, *PORTS) == "ftdi_DUAL"
    assert holder(node, *PORTS, ids=("ftdi_DUAL",)) == "ftdi_DUAL.if01"
    assert holder(node, *PORTS, ids=("ftdi_DUAL", "ftdi_DUAL.if01")) == ""


def test_another_unit_does_not_count() -> None:
    node, other = Node(), a_usb_serial(5, serial="B6", port="3", devnum=5)
    node.look(rule(), *PORTS, other)
    node.allocate("ftdi_B6")
    assert holder(node, *PORTS, other) == ""
    assert holder(node, *PORTS, other, numbers=(1, 5)) == "ftdi_B6"


def test_an_id_of_another_resource_counts() -> None:
    node = Node()
    node.look(rule("raw", match=RAW) + rule(), ADAPTER, *PORTS)
    node.allocate("raw_DUAL")
    assert holder(node, ADAPTER, *PORTS, ids=("ftdi_DUAL",)) == "raw_DUAL"


def test_another_replica_counts() -> None:
    node, stick = Node(), a_usb_serial(0, serial="A5")
    node.look(rule("ftdi", "replicas = 2"), stick)
    node.allocate("ftdi_A5.1")
    assert holder(node, stick, ids=("ftdi_A5.1",)) == ""
    assert holder(node, stick, ids=("ftdi_A5.0",)) == "ftdi_A5.1"


def test_what_is_plugged_in_behind_a_hub_counts_for_the_hub() -> None:
    hub = a_usb_device("2", vendor="1d6b", product="0002", serial=None, devnum=3)
    stick = a_usb_serial(0, serial="A5", port="2.1")
    behind = _below(stick, hub)
    node = Node()
    node.look(rule(), hub, behind)
    node.allocate("ftdi_A5")
    assert holder(node, hub, behind, numbers=(1, 3)) == "ftdi_A5"


def test_a_hub_comes_before_what_is_plugged_in_behind_it() -> None:
    hub = a_usb_device("2", vendor="1d6b", product="0002", serial=None, devnum=9)
    behind = _below(a_usb_device("2.1", serial="A5", devnum=3), hub)
    apart = a_usb_device("3", serial="B6", devnum=4)
    units = [(1, 3), (1, 4), (1, 9), (1, 99)]
    found = with_hubs(units, by_sys_path(behind, apart, hub))
    assert found == {(1, 3): {(1, 9)}, (1, 4): set(), (1, 9): set(), (1, 99): set()}
    assert list(found)[-1] == (1, 3)


def test_a_hub_counts_also_if_it_is_none_of_the_units() -> None:
    hub = a_usb_device("2", vendor="1d6b", product="0002", serial=None, devnum=9)
    behind = _below(a_usb_device("2.1", serial="A5", devnum=3), hub)
    assert with_hubs([(1, 3)], by_sys_path(behind, hub)) == {(1, 3): {(1, 9)}}


def test_a_radio_takes_what_is_connected_to_it() -> None:
    radio = a_device(f"{ADAPTER.sys_path}/bluetooth/hci0", subsystem="bluetooth", parent=ADAPTER)
    scanner = a_device(
        f"{radio.sys_path}/hci0:256/hidraw0",
        subsystem="hidraw",
        node="/dev/hidraw0",
        number="c 240:0",
        parent=radio,
    )
    node = Node()
    (id_,) = node.look(rule("scanner", match='{ SUBSYSTEM = "hidraw" }'), scanner)
    node.allocate(id_)
    assert holder(node, scanner) == id_


def test_a_shared_node_counts_for_whoever_got_it() -> None:
    tables = (
        '[[resource.node]]\nmatch = { SUBSYSTEM = "tty", usb = { port = "3" } }\n'
        '[[resource.node]]\nmatch = { usb = { port = "2" } }\nshared = true\n'
    )
    node, stick, shared = Node(), a_usb_serial(0, serial="A5", port="3", devnum=5), PORTS[0]
    node.look(rule("kit") + tables, stick, shared)
    node.allocate("kit_A5")
    assert holder(node, stick, shared) == "kit_A5"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_port_that_edited_rules_do_not_offer_counts_while_it_is_plugged_in(restarts: bool) -> None:
    node = Node()
    node.look(rule(), *PORTS)
    node.allocate("ftdi_DUAL")
    if restarts:
        node.memory = load(dump(node.memory))
    node.look(rule("other", match='{ SUBSYSTEM = "tty", usb = { interface = "01" } }'), *PORTS)
    assert holder(node, *PORTS) == "ftdi_DUAL"


def test_what_is_not_plugged_in_any_more_does_not_count_although_another_unit_has_its_numbers() -> None:
    node, other = Node(), replace(a_usb_serial(0, serial="B6", port="3"), incarnation=2)
    node.look(rule(), *PORTS)
    node.allocate("ftdi_DUAL")
    node.look(rule(), other)
    assert holder(node, other) == ""


def test_of_a_held_id_of_which_nothing_is_known_each_device_counts_that_it_may_be() -> None:
    node, twins = Node(), (a_usb_serial(0, serial="S"), a_usb_serial(1, serial="S", port="3", devnum=5))
    node.look(rule(), *twins)
    doubted = [device.id for device in next(iter(node.inventory.offers.values())).devices]
    node.allocate(doubted[1])
    held = {"ftdi_S-lost": replace(node.memory.held[doubted[1]], device="ftdi_S-lost")}
    node.memory = replace(node.memory, held=held)
    assert holder(node, *twins) == ""
    node.inventory = replace(node.inventory, doubted={"ftdi_S-lost": doubted})
    assert holder(node, *twins) == "ftdi_S-lost"


def _below(device: UdevDevice, hub: UdevDevice) -> UdevDevice:
    """The device with this hub above its USB device."""
    parent = device.parent
    assert parent is not None
    is_usb = device.devtype == "usb_device"
    return replace(device, parent=hub if is_usb else _below(parent, hub))
