"""The events of `genericdp monitor`: what a uevent touched, what changed, what the kubelet was told."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from genericdp.core.hint import Uevent
from genericdp.core.inventory.inventory import Inventory
from genericdp.core.inventory.offer import Offer
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.status.events import NAMED_LIMIT, of_changes, of_list, of_uevents
from genericdp.core.status.news import news
from tests.scenes.builders import a_kfd, a_usb_serial
from tests.scenes.inventories import inventory_of
from tests.scenes.steps import growth, steps

FTDI = "example.com/ftdi"
RULES = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'
STICK, OTHER = a_usb_serial(0), a_usb_serial(1, serial="B", port="2.4")
NONE, ONE, BOTH = inventory_of(RULES), inventory_of(RULES, STICK), inventory_of(RULES, STICK, OTHER)


def offer_of(inventory: Inventory) -> Offer:
    return inventory.offers[FTDI]


def touched(sys_path: str, before: Inventory, after: Inventory, old_sys_path: str = "") -> object:
    uevent = Uevent("change", sys_path, "tty", "udev", old_sys_path=old_sys_path)
    (event,) = of_uevents([uevent], before, after)
    return event["touched"]


def test_a_uevent_names_the_device_that_it_touches() -> None:
    (event,) = of_uevents([Uevent("add", STICK.sys_path, "tty", "udev", device=STICK)], NONE, ONE)
    assert event == {
        "event": "uevent",
        "action": "add",
        "subsystem": "tty",
        "sysPath": STICK.sys_path,
        "node": "/dev/ttyUSB0",
        "source": "udev",
        "touched": [{"resource": FTDI, "device": "ftdi_A50285BI"}],
    }


def test_a_removal_touches_what_was_there_before() -> None:
    gone, _ = remember(NONE, remember(ONE, Memory(), 0.0, None)[1], 1.0, None)
    assert touched(STICK.sys_path, ONE, gone) == [{"resource": FTDI, "device": "ftdi_A50285BI"}]
    assert touched(STICK.sys_path, gone, gone) == []


def test_a_uevent_of_a_parent_touches_what_is_below_it_and_nothing_beside() -> None:
    usb = STICK.usb_device
    assert usb is not None
    assert touched(usb.sys_path, ONE, ONE) == [{"resource": FTDI, "device": "ftdi_A50285BI"}]
    assert touched(usb.sys_path[:-1], ONE, ONE) == []
    assert touched(f"{STICK.sys_path}/below", ONE, ONE) == []


def test_a_move_touches_the_device_at_either_place() -> None:
    assert touched("/sys/new", ONE, NONE, STICK.sys_path) == [{"resource": FTDI, "device": "ftdi_A50285BI"}]


def test_a_uevent_of_a_shared_node_touches_every_device_that_it_goes_along_with() -> None:
    shares = f'{RULES}[[resource.node]]\nmatch = {{ SUBSYSTEM = "kfd" }}\nshared = true\n'
    inventory = inventory_of(shares, STICK, OTHER, a_kfd())
    assert touched(a_kfd().sys_path, inventory, inventory) == [
        {"resource": FTDI, "device": "ftdi_A50285BI"},
        {"resource": FTDI, "device": "ftdi_B"},
    ]


def test_a_uevent_of_the_kernel_names_no_node() -> None:
    (event,) = of_uevents([Uevent("add", "/sys/x", "tty", "kernel")], NONE, NONE)
    assert (event["node"], event["touched"]) == ("", [])


def test_changes_are_in_the_words_of_the_log() -> None:
    unhealthy = inventory_of(RULES, replace(STICK, node_is_there=False))
    assert [*of_changes(news(ONE, unhealthy))] == [
        {
            "event": "change",
            "message": "device is unhealthy",
            "level": "warning",
            "resource": FTDI,
            "device": "ftdi_A50285BI",
            "fields": {
                "resource": FTDI,
                "id": "ftdi_A50285BI",
                "why": offer_of(unhealthy).devices[0].reason,
            },
        }
    ]
    (event,) = of_changes(news(ONE, BOTH))
    assert (event["message"], event["level"]) == ("device appeared", "info")


def test_a_list_shows_what_differs_from_the_list_before() -> None:
    assert of_list(None, offer_of(ONE)) == {
        "event": "list",
        "sent": True,
        "resource": FTDI,
        "ids": 1,
        "healthy": 1,
        "changes": [{"device": "ftdi_A50285BI", "health": "Healthy"}],
        "moreChanges": 0,
    }
    assert of_list(offer_of(BOTH), offer_of(ONE))["changes"] == [{"device": "ftdi_B", "health": None}]
    assert of_list(offer_of(ONE), offer_of(ONE), sent=False) == {
        "event": "list",
        "sent": False,
        "resource": FTDI,
        "ids": 1,
        "healthy": 1,
        "changes": [],
        "moreChanges": 0,
    }


def test_of_a_list_with_replicas_every_id_counts() -> None:
    event = of_list(None, offer_of(inventory_of(f"{RULES}replicas = 5\n", STICK)))
    assert (event["ids"], event["healthy"], event["moreChanges"]) == (5, 5, 0)


def test_of_very_many_changes_the_first_are_named() -> None:
    sticks = [a_usb_serial(n, serial=f"S{n}", port=f"1.{n}") for n in range(1, NAMED_LIMIT + 4)]
    event = of_list(None, offer_of(inventory_of(RULES, *sticks)))
    changes = event["changes"]
    assert isinstance(changes, list)
    assert (len(changes), event["moreChanges"]) == (NAMED_LIMIT, 3)


def test_the_work_for_a_burst_of_uevents_grows_in_proportion_to_it() -> None:
    """As from `udevadm trigger`: each device has one."""

    def burst(count: int) -> Callable[[], object]:
        sticks = [a_usb_serial(n, serial=f"S{n}", port=f"{n // 50 + 1}.{n % 50 + 1}") for n in range(count)]
        uevents = [Uevent("change", each.sys_path, "tty", "udev") for each in sticks]
        before, after = inventory_of(RULES, *sticks), inventory_of(RULES, *sticks)
        return lambda: [*of_uevents(uevents, before, after)]

    assert growth(burst, 40) < 2.5


def test_without_uevents_no_inventory_is_looked_at_and_the_same_one_only_once() -> None:
    sticks = [a_usb_serial(n, serial=f"S{n}", port=str(n + 1)) for n in range(40)]
    inventory, later = inventory_of(RULES, *sticks), inventory_of(RULES, *sticks)
    uevent = Uevent("change", sticks[0].sys_path, "tty", "udev")

    def work(uevents: Sequence[Uevent], after: Inventory) -> int:
        return steps(lambda: [*of_uevents(uevents, inventory, after)])

    assert work([], later) < 20
    assert work([uevent], inventory) < 0.6 * work([uevent], later)
