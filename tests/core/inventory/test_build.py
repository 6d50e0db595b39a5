"""Building the inventory: what every rule offers, what it does not and why, also when it is built again."""

import itertools
import random
import sys
from dataclasses import replace
from types import FrameType

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.inventory import Inventory, Overlap, Refusal
from genericdp.core.inventory.past import NO_PAST, Past
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.rules.resource import Resource
from tests.scenes.builders import (
    a_device,
    a_fuse,
    a_modem,
    a_terminal,
    a_usb_device,
    a_usb_node,
    a_usb_serial,
    by_sys_path,
    resources_of,
)
from tests.scenes.inventories import DOMAIN, answered, ids_of, inventory_of, offered

FTDI = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty", ID_VENDOR_ID = "0403" }\n'
SERIAL = '[[resource]]\nname = "serial"\nmatch = { SUBSYSTEM = "tty", usb = { vendor = "*" } }\n'
FUSE = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\nreplicas = 2\n'


def test_every_resource_has_an_offer_in_file_order() -> None:
    inventory = inventory_of(FUSE + FTDI, a_usb_serial(serial="A5"))
    assert list(inventory.offers) == ["example.com/fuse", "example.com/ftdi"]
    assert inventory.offers["example.com/fuse"].devices == ()
    assert ids_of(inventory) == ["ftdi_A5"]
    assert inventory.refusals == ()
    assert inventory.overlaps == ()


def test_nothing_depends_on_the_order_of_enumeration() -> None:
    devices = [*a_modem(), a_usb_serial(5, port="1"), a_usb_serial(6, port="2"), a_fuse(), a_terminal()]
    resources = resources_of(SERIAL + FTDI + FUSE)
    expected = Builder(resources, DOMAIN).build({each.sys_path: each for each in devices})
    assert len(ids_of(expected)) == 6
    for order in itertools.islice(itertools.permutations(devices), 0, 40320, 977):
        assert Builder(resources, DOMAIN).build({each.sys_path: each for each in order}) == expected


def test_the_first_claim_wins_and_all_are_named() -> None:
    inventory = inventory_of(FTDI + SERIAL + FTDI.replace("ftdi", "third"), a_usb_serial(3, serial="A5"))
    assert ids_of(inventory) == ["ftdi_A5"]
    losers = ("example.com/serial", "example.com/third")
    assert inventory.overlaps == (Overlap("/dev/ttyUSB3", "example.com/ftdi", losers),)


def test_a_node_that_its_winner_refuses_does_not_go_to_the_next() -> None:
    inventory = inventory_of(FTDI + 'identity = ["NOT_THERE"]\n' + SERIAL, a_usb_serial(3))
    assert ids_of(inventory) == []
    reason = "it has no property NOT_THERE, which 'identity' uses"
    assert inventory.refusals == (Refusal("example.com/ftdi", "/dev/ttyUSB3", reason),)


def test_refusals_are_sorted_and_come_from_every_resource() -> None:
    rules = FTDI + 'group_by = "NOT_THERE"\n' + FUSE + 'env = { A = "{NOT_THERE}" }\n'
    inventory = inventory_of(rules, a_fuse(), a_usb_serial(7, port="1"), a_usb_serial(3, port="2"))
    assert [(refusal.resource, refusal.node) for refusal in inventory.refusals] == [
        ("example.com/ftdi", "/dev/ttyUSB3"),
        ("example.com/ftdi", "/dev/ttyUSB7"),
        ("example.com/fuse", "/dev/fuse"),
    ]


def test_twins_are_two_devices() -> None:
    inventory = inventory_of(
        FTDI, a_usb_serial(0, port="1", serial="S"), a_usb_serial(1, port="2", serial="S")
    )
    plain, twin = offered(FTDI, a_usb_serial(0, port="1", serial="S"), a_usb_serial(1, port="2", serial="S"))
    assert plain.id == "ftdi_S"
    assert twin.id.startswith("ftdi_S-port-2_")
    assert plain.unit == twin.unit == "ftdi_S"
    assert inventory.ties == {"ftdi_S": plain.port}
    assert inventory.unsure == ()


def test_what_is_known_of_twins_is_kept_and_used() -> None:
    ties = {"ftdi_OLD": "somewhere"}
    first, second = a_usb_serial(0, port="1", serial="S"), a_usb_serial(1, port="2", serial="S")
    (known,) = offered(FTDI, second)
    inventory = inventory_of(FTDI, first, second, ties=ties, known_ports={"ftdi_S": known.port})
    assert inventory.ties == {"ftdi_OLD": "somewhere", "ftdi_S": known.port}
    by_path = {device.nodes[0].path: device.id for device in inventory.offers["example.com/ftdi"].devices}
    assert by_path["/dev/ttyUSB1"] == "ftdi_S"


def test_two_resources_tie_twins_each_for_itself() -> None:
    twins = [a_modem("1", serial="S", first=1), a_modem("2", serial="S", first=5)]
    rules = """
    [[resource]]
    name = "at"
    match = { SUBSYSTEM = "tty", usb = { interface = "02" } }
    [[resource]]
    name = "qmi"
    match = { SUBSYSTEM = "usbmisc" }
    """
    inventory = inventory_of(rules, *twins[0], *twins[1])
    assert set(inventory.ties) == {"at_S", "qmi_S"}
    assert len(set(ids_of(inventory))) == 4


def test_devices_that_nothing_tells_apart_are_named() -> None:
    adapter = a_device("/sys/devices/pci0000:00/0000:00:02.0", subsystem="pci")
    buses = [
        a_device(
            f"{adapter.sys_path}/i2c-{n}/i2c-dev/i2c-{n}",
            subsystem="i2c-dev",
            node=f"/dev/i2c-{n}",
            parent=adapter,
        )
        for n in (3, 4)
    ]
    inventory = inventory_of('[[resource]]\nname = "i2c"\nmatch = { SUBSYSTEM = "i2c-dev" }\n', *buses)
    assert len(inventory.unsure) == 2
    assert sorted(ids_of(inventory)) == list(inventory.unsure)


def test_identical_dongles_keep_their_ids_over_2000_shuffled_rebuilds() -> None:
    """Kernel names, bus numbers, device numbers, order and snapshots differ each time."""
    chance = random.Random(2026)  # noqa: S311  (chance, not secrets)
    plugged = {
        port: [
            a_usb_serial(name, port=port, serial="A1", bus=1 + name % 4, devnum=2 + name)
            for name in range(40)
        ]
        for port in ("2.1", "2.2")
    }
    builder = Builder(resources_of(FTDI), DOMAIN)
    memory = Memory()
    seen: set[tuple[str, str]] = set()
    for round_ in range(2_000):
        ports = (
            chance.choice((["2.1", "2.2"], ["2.2", "2.1"], ["2.1"], ["2.2"])) if round_ else ["2.2", "2.1"]
        )
        dongles = [chance.choice(plugged[port]) for port in ports]
        present = {dongle.sys_path: dongle for dongle in dongles}
        inventory = builder.build(present, memory.past(0.0))
        _, memory = remember(inventory, memory, 0.0, answered(frozenset(), memory, 0.0))
        devices = inventory.offers["example.com/ftdi"].devices
        assert len(devices) == len(dongles)
        seen |= {(device.port.rpartition(" ")[2], device.id) for device in devices}
    assert {port for port, _ in seen} == {"2.1", "2.2"}
    assert len(seen) == 2, "an id has changed"
    assert ("2.1", "ftdi_A1") in seen


# Rebuilding


def test_a_builder_keeps_nothing_about_devices_that_have_left() -> None:
    fuse, terminal = a_fuse(), a_terminal()
    builder = Builder(resources_of(FTDI), DOMAIN)
    builder.build(by_sys_path(fuse, terminal))
    builder.build(by_sys_path(fuse))
    assert builder.claims.examined.keys() == {fuse.sys_path}


def calls_of_an_event(consoles: int) -> int:
    """How many functions are called to build the inventory again after one device of many has changed."""
    nodes = (
        a_device(f"/sys/devices/virtual/tty/tty{n}", subsystem="tty", node=f"/dev/tty{n}")
        for n in range(consoles)
    )
    builder = Builder(
        resources_of(FTDI + '[[resource]]\nname = "tty"\nmatch = { SUBSYSTEM = "tty" }\n'), DOMAIN
    )
    stick = a_usb_serial(serial="A")
    devices = by_sys_path(stick, *nodes)
    builder.build(devices)
    devices[stick.sys_path] = replace(stick)
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        builder.build(devices)
    finally:
        sys.setprofile(before)
    return calls


def test_an_event_costs_the_same_however_many_devices_it_does_not_touch() -> None:
    assert calls_of_an_event(300) == calls_of_an_event(3) > 0


def rebuilt(builder: Builder, devices: dict[str, UdevDevice], past: Past = NO_PAST) -> Inventory:
    inventory = builder.build(devices, past)
    # What is kept from one time to the next never shows.
    assert inventory == Builder(builder.resources, DOMAIN).build(devices, past)
    return inventory


def test_an_offer_whose_devices_did_not_change_is_the_same_object() -> None:
    builder = Builder(resources_of(FTDI + FUSE), DOMAIN)
    devices = by_sys_path(a_fuse(), a_usb_serial(serial="A"))
    first = rebuilt(builder, devices)
    other = a_usb_serial(1, port="3", serial="B")
    second = rebuilt(builder, {**devices, other.sys_path: other})
    assert second.offers["example.com/fuse"] is first.offers["example.com/fuse"]
    assert ids_of(second) == ["ftdi_A", "ftdi_B", "fuse_fuse"]
    third = rebuilt(builder, devices)
    assert third == first


def test_another_snapshot_of_a_device_is_looked_at_anew() -> None:
    builder = Builder(resources_of(FTDI), DOMAIN)
    tty = a_usb_serial(serial="A")
    rebuilt(builder, {tty.sys_path: tty})
    gone = replace(tty, node_is_there=False)
    (device,) = rebuilt(builder, {tty.sys_path: gone}).offers["example.com/ftdi"].devices
    assert not device.healthy


def test_refusals_stay_while_nothing_changes() -> None:
    builder = Builder(resources_of(FTDI + 'identity = ["NOT_THERE"]\n'), DOMAIN)
    devices = by_sys_path(a_usb_serial())
    assert rebuilt(builder, devices).refusals == rebuilt(builder, devices).refusals != ()


def test_a_tie_that_came_from_elsewhere_is_respected() -> None:
    builder = Builder(resources_of(FTDI), DOMAIN)
    twins = by_sys_path(a_usb_serial(0, port="1", serial="S"), a_usb_serial(1, port="2", serial="S"))
    first = rebuilt(builder, twins)
    (other_port,) = {device.port for device in first.offers["example.com/ftdi"].devices} - set(
        first.ties.values()
    )
    second = rebuilt(builder, twins, Past({"ftdi_S": other_port}))
    assert second.ties == {"ftdi_S": other_port}
    assert second.offers != first.offers
    # Without a tie, the port where it was last seen decides.
    third = rebuilt(builder, twins, Past({}, {"ftdi_S": other_port}))
    assert third.offers == second.offers


def test_the_domain_that_goes_without_saying_counts() -> None:
    rules = resources_of(FTDI)
    devices = by_sys_path(a_usb_serial(serial="A"))
    builder = Builder(rules, DOMAIN)
    assert ids_of(builder.build(devices)) == ["ftdi_A"]
    assert ids_of(Builder(rules, "other.example").build(devices))[0].startswith("ftdi_A_")
    assert ids_of(builder.build(devices)) == ["ftdi_A"]


def test_a_resource_without_devices_may_get_some() -> None:
    builder = Builder([Resource("example.com/ftdi", resources_of(FTDI)[0].match)], DOMAIN)
    assert ids_of(rebuilt(builder, {})) == []
    usb = a_usb_device(serial="A")
    tty = a_usb_node(usb, "tty", "ttyUSB0")
    assert ids_of(rebuilt(builder, by_sys_path(tty))) == ["ftdi_A"]
    assert builder.resources == (Resource("example.com/ftdi", resources_of(FTDI)[0].match),)
