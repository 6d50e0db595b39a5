"""How the work of a step grows with what pods hold, counted in lines of Python."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.build import Builder
from genericdp.core.inventory.offer import Device
from genericdp.core.inventory.place import Spot
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.saved import Writer, dump
from genericdp.core.memory.take import take_inventory
from tests.scenes.builders import a_device, a_usb_serial, by_sys_path, resources_of
from tests.scenes.inventories import DOMAIN
from tests.scenes.steps import growth, steps

BY_NAME = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "tty" }\nidentity = ["ID_NAME"]\n'
WITHOUT = BY_NAME.replace('"tty"', '"tty", ID_NAME = "none"')
WHOLE = (
    '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = ["tty", "usb"], usb = { vendor = "0403" } }\n'
    'group_by = "usb_device"\n'
)
PARTS = WHOLE.replace('["tty", "usb"]', '"tty"')
RENAMED = BY_NAME.replace('"x"', '"y"')

#: What happens to devices that pods hold: the rules before and after, and how far the names move on.
EVENTS = {
    "each id is that of another unit": (BY_NAME, BY_NAME, 1),
    "each device loses a node": (WHOLE, PARTS, 0),
    "the rules no longer match any": (BY_NAME, WITHOUT, 0),
    "each waits under another id": (BY_NAME, RENAMED, 0),
}


def sticks(count: int, moved: int) -> dict[str, UdevDevice]:
    found = []
    for n in range(count):
        stick = a_usb_serial(n, port=f"{n // 50 + 1}.{n % 50 + 1}", serial=f"S{n}", devnum=n % 100 + 2)
        named = {**stick.properties, "ID_NAME": f"n{(n + moved) % count}"}
        found.append(replace(stick, properties=named))
    return by_sys_path(*found)


@pytest.mark.parametrize(("before", "after", "moved"), EVENTS.values(), ids=EVENTS)
@pytest.mark.parametrize("later", [False, True], ids=["the event", "the next one"])
def test_the_work_of_a_step_grows_in_proportion_to_what_pods_hold(
    before: str, after: str, moved: int, later: bool
) -> None:
    def step(count: int) -> Callable[[], object]:
        first, then = sticks(count, 0), sticks(count, moved)
        builder = Builder(resources_of(before), DOMAIN)
        inventory, memory = take_inventory(builder, first, Memory(), 0.0)
        (offer,) = inventory.offers.values()
        memory = replace(memory, held=give({}, offer, list(offer.ids), 0.0))
        builder = Builder(resources_of(after), DOMAIN)
        if later:
            inventory, memory = take_inventory(builder, then, memory, 1.0)
        return lambda: take_inventory(builder, then, memory, 2.0)

    assert growth(step, 40) < 2.5


def whole_sticks(count: int, port: str, serial: str | None) -> list[UdevDevice]:
    """Sticks behind a hub, each with the node that every unit on USB has."""
    found = []
    for n in range(count):
        own = None if serial is None else f"{serial}{n}"
        tty = a_usb_serial(n, port=f"{port}.{n // 50 + 1}.{n % 50 + 1}", serial=own, devnum=n % 100 + 2)
        assert tty.usb_device is not None
        found += [replace(tty, properties={**tty.properties, "ID_NAME": f"n{n}"}), tty.usb_device]
    return found


@pytest.mark.parametrize("serial", ["S", None])
@pytest.mark.parametrize("later", [False, True], ids=["the event", "the next one"])
def test_so_does_that_of_a_step_in_which_each_waits_for_a_unit_without_its_device_node(
    serial: str | None, *, later: bool
) -> None:
    def step(count: int) -> Callable[[], object]:
        builder = Builder(resources_of(BY_NAME), DOMAIN)
        first, twins = whole_sticks(count, "1", serial), whole_sticks(count, "2", serial)
        inventory, memory = take_inventory(builder, by_sys_path(*first), Memory(), 0.0)
        (offer,) = inventory.offers.values()
        memory = replace(memory, held=give({}, offer, list(offer.ids), 0.0))
        without = [each for each in first if each.subsystem == "usb"]
        then = by_sys_path(*without, *twins)
        if later:
            inventory, memory = take_inventory(builder, then, memory, 1.0)
            (offer,) = inventory.offers.values()
            assert not any(device.healthy for device in offer.devices)
        return lambda: take_inventory(builder, then, memory, 2.0)

    assert growth(step, 40) < 2.5


KIT = '[[resource]]\nname = "x"\nmatch = { SUBSYSTEM = "tty" }\ngroup_by = "all"\n'


def test_nor_does_it_grow_faster_when_the_units_of_a_kit_come_back_to_a_port() -> None:
    """They have no serial numbers, so each may be at any of the ports at which one was."""

    def step(count: int) -> Callable[[], object]:
        others = [
            a_device(
                f"/sys/devices/virtual/vc/vcs{n}", subsystem="vc", node=f"/dev/vcs{n}", number=f"c 7:{n}"
            )
            for n in range(20 * count)
        ]
        builder, ports = Builder(resources_of(KIT), DOMAIN), ["1", "2", "3", "4", "1"]
        memory = Memory()
        for now, port in enumerate(ports[:-1]):
            here = by_sys_path(*others, *kit(count, port))
            inventory, memory = take_inventory(builder, here, memory, float(now))
            if not memory.held:
                (offer,) = inventory.offers.values()
                memory = replace(memory, held=give({}, offer, list(offer.ids), 0.0))
            _, memory = take_inventory(builder, by_sys_path(*others), memory, now + 0.5)
        here = by_sys_path(*others, *kit(count, ports[-1]))
        return lambda: take_inventory(builder, here, memory, 9.0)

    assert growth(step, 10) < 3


@pytest.mark.parametrize("serial", ["A{}", ""], ids=["serial", "no serial"])
def test_nor_when_a_whole_kit_is_plugged_in_at_other_ports(serial: str) -> None:
    def step(count: int) -> Callable[[], object]:
        builder, memory = Builder(resources_of(KIT), DOMAIN), Memory()
        inventory, memory = take_inventory(builder, by_sys_path(*kit(count, "1", serial)), memory, 0.0)
        (offer,) = inventory.offers.values()
        memory = replace(memory, held=give({}, offer, list(offer.ids), 0.0))
        _, memory = take_inventory(builder, {}, memory, 1.0)
        return lambda: take_inventory(builder, by_sys_path(*kit(count, "2", serial)), memory, 2.0)

    assert growth(step, 200) < 2.5


def kit(count: int, port: str, serial: str = "") -> list[UdevDevice]:
    return [
        a_usb_serial(
            n, port=f"{port}.{n // 7 + 1}.{n % 7 + 1}", serial=serial.format(n) or None, devnum=n + 2
        )
        for n in range(count)
    ]


def test_only_devices_that_changed_are_written_again() -> None:
    (offer,) = take_inventory(Builder(resources_of(BY_NAME), DOMAIN), sticks(200, 0), Memory(), 0.0)[
        0
    ].offers.values()
    devices = {device.id: Remembered("x", device) for device in offer.devices}
    writer = Writer()
    all_of_them = steps(lambda: writer.dump(Memory(devices)))
    again = {id_: replace(known) for id_, known in devices.items()}
    id_, known = next(iter(again.items()))
    again[id_] = replace(known, listed=False)
    assert 5 * steps(lambda: writer.dump(Memory(again))) < all_of_them
    assert writer.dump(Memory(again)) == dump(Memory(again)) != dump(Memory(devices))


def test_the_order_in_which_nodes_were_lost_is_written() -> None:
    one, other = Spot("1", "A", "if00"), Spot("2", "B", "if00")
    writer, device = Writer(), Device("x")
    for lost in ((one, other), (other, one)):
        memory = Memory({"x": Remembered("x", device, earlier=dict.fromkeys(lost, ""))})
        assert writer.dump(memory) == dump(memory)
