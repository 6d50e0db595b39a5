"""What is remembered of devices that leave: how long, with which links, and who is first among twins."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from genericdp.core.device import UdevDevice
from genericdp.core.inventory.inventory import Inventory, Refusal
from genericdp.core.inventory.offer import Device, Health, Offer, in_order
from genericdp.core.inventory.place import Spot
from genericdp.core.inventory.siblings.groups import plugged_of
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import Holding
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import next_forgetting, remember
from genericdp.core.memory.remembered import Remembered
from genericdp.core.memory.room import HELD_LINK_LIMIT, LINK_LIMIT, TIE_LIMIT
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import UNPLUG_GRACE_S, Resource
from tests.scenes.builders import a_fuse, a_modem, a_usb_device, a_usb_serial
from tests.scenes.inventories import answered, ids_of, inventory_of

FTDI = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\nunplug_grace = "10s"\n'
FUSE = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\n'
STICK = a_usb_serial(3, serial="A5")
NOBODY: frozenset[str] = frozenset()
HELD = frozenset({("example.com/ftdi", "ftdi_A5")})

PLUGGED = inventory_of(FTDI, STICK)
UNPLUGGED = inventory_of(FTDI)


def states(inventory: Inventory) -> dict[str, str]:
    return {device.id: device.reason for offer in inventory.offers.values() for device in offer.devices}


def after(*steps: tuple[Inventory, float, frozenset[str] | None]) -> tuple[Inventory, Memory]:
    """The inventory and the memory after these steps."""
    inventory, memory = Inventory(), Memory()
    for built, now, held in steps:
        inventory, memory = remember(built, memory, now, answered(held, memory, now))
    return inventory, memory


# Leaving and coming back


def test_a_device_that_is_there_is_as_it_was_built() -> None:
    inventory, memory = after((PLUGGED, 0.0, None))
    assert inventory == PLUGGED
    (device,) = PLUGGED.offers["example.com/ftdi"].devices
    assert memory.devices == {"ftdi_A5": Remembered("example.com/ftdi", device)}


def test_a_device_that_leaves_stays_listed_as_unhealthy_and_its_link_points_nowhere() -> None:
    inventory, memory = after((PLUGGED, 0.0, None), (UNPLUGGED, 5.0, NOBODY))
    (device,) = inventory.offers["example.com/ftdi"].devices
    (before,) = PLUGGED.offers["example.com/ftdi"].devices
    # It is no longer what udev has at this sys path: that may be another device now.
    (node,) = before.nodes
    assert device == replace(
        before, health=Health.UNHEALTHY, reason="it is unplugged", nodes=(replace(node, sys_path=""),)
    )
    assert inventory.links() == {"ftdi_A5": None}
    assert memory.devices["ftdi_A5"].absent_since == 5.0


def test_a_device_that_comes_back_is_healthy_under_its_id_and_its_link_points_at_its_new_node() -> None:
    back = inventory_of(FTDI, a_usb_serial(8, serial="A5", port="7"))
    inventory, memory = after((PLUGGED, 0.0, None), (UNPLUGGED, 5.0, NOBODY), (back, 7.0, NOBODY))
    assert inventory == back
    assert inventory.links() == {"ftdi_A5": "/dev/ttyUSB8"}
    assert memory.devices["ftdi_A5"].absent_since is None


def test_the_grace_begins_when_it_leaves_and_not_anew_with_every_step() -> None:
    _, memory = after((PLUGGED, 0.0, None), (UNPLUGGED, 5.0, None), (UNPLUGGED, 9.0, None))
    assert memory.devices["ftdi_A5"].absent_since == 5.0


def test_another_reason_does_not_begin_the_grace_anew() -> None:
    inventory, memory = after((PLUGGED, 0.0, None), (UNPLUGGED, 5.0, None))
    assert states(inventory) == {"ftdi_A5": "it is unplugged"}
    unmatched = FTDI.replace('"tty"', '"block"')
    plugged = plugged_of([STICK])
    inventory, memory = remember(inventory_of(unmatched, STICK), memory, 9.0, None, plugged)
    assert states(inventory) == {"ftdi_A5": "the rules no longer match it"}
    assert memory.devices["ftdi_A5"].absent_since == 5.0


def test_what_did_not_change_is_the_same_object() -> None:
    modem = '[[resource]]\nname = "lte"\nmatch = { usb = { vendor = "2c7c" } }\ngroup_by = "usb_device"\n'
    full, bare = inventory_of(modem, *a_modem()), inventory_of(modem, *a_modem()[:3])
    for steps in ([PLUGGED], [PLUGGED, UNPLUGGED], [full, bare]):
        inventory, memory = after(*((built, 0.0, None) for built in steps))
        again, later = remember(steps[-1], memory, 1.0, None)
        assert later == memory
        for name, offer in inventory.offers.items():
            assert [id(device) for device in again.offers[name].devices] == [
                id(device) for device in offer.devices
            ]
        for id_, known in memory.devices.items():
            assert later.devices[id_] is known
    inventory, _ = after((PLUGGED, 0.0, None))
    assert inventory.offers["example.com/ftdi"] is PLUGGED.offers["example.com/ftdi"]


# Forgetting


@pytest.mark.parametrize(
    ("now", "held", "kept"),
    [
        (14.9, NOBODY, True),
        (15.0, NOBODY, False),
        # A dropped id crashes the kubelet.
        (9999.0, frozenset({"ftdi_A5"}), True),
        # Nobody can say.
        (9999.0, None, True),
        # A clock that went back.
        (-5.0, NOBODY, True),
    ],
)
def test_a_device_is_forgotten_when_its_grace_has_passed_and_nobody_holds_it(
    now: float, held: frozenset[str] | None, kept: bool
) -> None:
    inventory, memory = after((PLUGGED, 0.0, None), (UNPLUGGED, 5.0, NOBODY), (UNPLUGGED, now, held))
    assert ids_of(inventory) == ["ftdi_A5"] * kept
    assert list(memory.devices) == ["ftdi_A5"] * kept
    assert inventory.links() == ({"ftdi_A5": None} if kept else {})


def test_an_answer_that_is_not_complete_forgets_nothing() -> None:
    _, memory = after((PLUGGED, 0.0, None), (UNPLUGGED, 5.0, None))
    _, later = remember(UNPLUGGED, memory, 1000.0, Answer(frozenset(), 1000.0, complete=False))
    assert later == memory


def test_a_device_is_listed_once_as_unhealthy_even_without_any_grace() -> None:
    rules = FTDI.replace("10s", "0s")
    inventory, _ = after((inventory_of(rules, STICK), 0.0, None), (inventory_of(rules), 5.0, NOBODY))
    assert states(inventory) == {"ftdi_A5": "it is unplugged"}


def test_after_a_restart_the_grace_begins_anew() -> None:
    device = Device("ftdi_A5", links=("ftdi_A5",), spots=(Spot("1", "A5", "if00"),))
    saved = Memory({"ftdi_A5": Remembered("example.com/ftdi", device)})
    inventory, memory = remember(UNPLUGGED, saved, 1000.0, answered(NOBODY, saved, 1000.0))
    assert states(inventory) == {"ftdi_A5": "it is unplugged"}
    assert memory.devices["ftdi_A5"].absent_since == 1000.0


def test_what_a_pod_holds_is_listed_although_nothing_is_remembered_of_it() -> None:
    """It was unplugged before what Allocate gave could be saved."""
    inventory, memory = remember(UNPLUGGED, Memory(), 5.0, Answer(HELD, 5.0, complete=True))
    assert states(inventory) == {"ftdi_A5": "only its id is known"}
    assert inventory.links() == {"ftdi_A5": None}
    inventory, memory = remember(PLUGGED, memory, 6.0)
    assert inventory == PLUGGED
    inventory, memory = remember(UNPLUGGED, memory, 7.0)
    inventory, memory = remember(UNPLUGGED, memory, 17.0, answered(NOBODY, memory, 17.0))
    assert memory.devices == {}


def test_a_replica_that_a_pod_holds_is_listed_although_nothing_is_remembered_of_it() -> None:
    answer = Answer(frozenset({("example.com/ftdi", "ftdi_A5.1")}), 5.0, complete=True)
    shared = inventory_of(f"{FTDI}replicas = 2\n")
    inventory, _ = remember(shared, Memory(), 5.0, answer)
    assert list(inventory.offers["example.com/ftdi"].ids) == ["ftdi_A5.1"]


def test_when_the_next_grace_ends() -> None:
    inventory, memory = after((PLUGGED, 0.0, None))
    assert next_forgetting(memory, inventory) is None
    inventory, memory = after((PLUGGED, 0.0, None), (UNPLUGGED, 5.0, None))
    assert next_forgetting(memory, inventory) == 15.0
    later = Remembered("example.com/ftdi", Device("x"), absent_since=6.0)
    first = Remembered("example.com/gone", Device("y"), absent_since=-1.0 - UNPLUG_GRACE_S)
    assert next_forgetting(Memory({**memory.devices, "x": later}), inventory) == 15.0
    assert next_forgetting(Memory({**memory.devices, "y": first}), inventory) == -1.0


@pytest.mark.parametrize("held", ["fuse_fuse", "fuse_fuse.12"])
def test_a_device_is_held_with_or_without_the_number_of_a_replica(held: str) -> None:
    # Which of the two an id is, no rule says any more once its resource has gone.
    steps = [(inventory_of(FUSE, a_fuse()), 0.0, None), (inventory_of(FTDI), 5.0, NOBODY)]
    late = 5.0 + UNPLUG_GRACE_S
    _, memory = after(*steps, (inventory_of(FTDI), late, frozenset({held})))
    assert list(memory.devices) == ["fuse_fuse"]


def test_what_is_plugged_and_not_offered_is_not_called_unplugged() -> None:
    _, memory = remember(PLUGGED, Memory(), 0.0, None)
    plugged = plugged_of([STICK])
    inventory, _ = remember(UNPLUGGED, memory, 1.0, None, plugged)
    assert states(inventory) == {"ftdi_A5": "the rules no longer match it"}
    refused = replace(UNPLUGGED, refusals=(Refusal("example.com/ftdi", "/dev/ttyUSB3", "it has no luck"),))
    inventory, _ = remember(refused, memory, 1.0, None, plugged)
    assert states(inventory) == {"ftdi_A5": "it has no luck"}
    coming = plugged_of([replace(STICK, initialized=False)])
    inventory, _ = remember(UNPLUGGED, memory, 1.0, None, coming)
    assert states(inventory) == {"ftdi_A5": "udev has not finished with it"}


def test_the_reason_follows_what_is_plugged_in_now() -> None:
    """A stick that was pulled, and is plugged in again after an edit, is not unplugged any more."""
    _, memory = after((PLUGGED, 0.0, None), (UNPLUGGED, 1.0, None))
    moved = a_usb_serial(7, serial="A5")
    inventory, memory = remember(UNPLUGGED, memory, 2.0, None, plugged_of([moved]))
    assert states(inventory) == {"ftdi_A5": "the rules no longer match it"}
    inventory, memory = remember(UNPLUGGED, memory, 3.0, None)
    assert states(inventory) == {"ftdi_A5": "it is unplugged"}


@pytest.mark.parametrize(
    "other",
    [a_usb_serial(3, serial="B6"), a_usb_device(serial="A5")],
    ids=["another unit at its port", "another node of the unit"],
)
def test_what_is_there_instead_is_not_mistaken_for_it(other: UdevDevice) -> None:
    _, memory = remember(PLUGGED, Memory(), 0.0, None)
    inventory, _ = remember(UNPLUGGED, memory, 1.0, None, plugged_of([other]))
    assert states(inventory) == {"ftdi_A5": "it is unplugged"}


# Resources that leave the rules


def test_a_device_of_a_resource_that_left_the_rules_is_remembered_with_its_links() -> None:
    inventory, memory = after((PLUGGED, 0.0, None), (inventory_of(FUSE, STICK), 5.0, NOBODY))
    assert list(inventory.offers) == ["example.com/fuse"]
    assert inventory.orphaned_links == ("ftdi_A5",)
    assert inventory.links() == {"ftdi_A5": None}
    assert next_forgetting(memory, inventory) == 5.0 + UNPLUG_GRACE_S


def test_it_is_back_as_soon_as_its_resource_is() -> None:
    gone = inventory_of(FUSE, STICK)
    inventory, _ = after((PLUGGED, 0.0, None), (gone, 5.0, NOBODY), (PLUGGED, 6.0, NOBODY))
    assert inventory == PLUGGED
    inventory, _ = after((PLUGGED, 0.0, None), (gone, 5.0, NOBODY), (UNPLUGGED, 6.0, NOBODY))
    assert states(inventory) == {"ftdi_A5": "it is unplugged"}


def test_it_is_forgotten_like_any_other() -> None:
    gone = inventory_of(FUSE)
    steps = [(PLUGGED, 0.0, None), (gone, 5.0, NOBODY)]
    late = 5.0 + UNPLUG_GRACE_S
    assert after(*steps, (gone, late, frozenset({"ftdi_A5"})))[0].orphaned_links == ("ftdi_A5",)
    inventory, memory = after(*steps, (gone, late, NOBODY))
    assert inventory.orphaned_links == ()
    assert memory.devices == {}


# Links


def test_the_links_of_nodes_that_are_away_are_kept() -> None:
    rules = (
        '[[resource]]\nname = "lte"\nmatch = { usb = { vendor = "2c7c" } }\ngroup_by = "usb_device"\n'
        '[[resource.node]]\nmatch = { SUBSYSTEM = "tty" }\noptional = true\n'
        '[[resource.node]]\nmatch = { SUBSYSTEM = "usbmisc" }\n'
    )
    usb, first, second, third, qmi = a_modem(serial="E")
    inventory, _ = after(
        (inventory_of(rules, usb, first, third, qmi), 0.0, None),
        (inventory_of(rules, usb, second, qmi), 1.0, None),
    )
    assert inventory.links() == {
        "lte_E@if00": None,
        "lte_E@if01": "/dev/ttyUSB2",
        "lte_E@if02": None,
        "lte_E@if04-cdc-wdm": "/dev/cdc-wdm0",
    }


LTE = (
    '[[resource]]\nname = "lte"\nmatch = { usb = { vendor = "2c7c" } }\ngroup_by = "usb_device"\n'
    '[[resource.node]]\nmatch = { SUBSYSTEM = "tty" }\noptional = true\n'
)


def test_a_device_that_lost_a_node_is_remembered_for_the_resource_that_offers_it() -> None:
    usb, first, second, *_ = a_modem(serial="E")
    before = (inventory_of(LTE, usb, first, second), 0.0, None), (inventory_of(LTE, usb, first), 1.0, None)
    (old,) = before[0][0].offers
    offer = replace(before[1][0].offers[old], resource=Resource("example.com/other", Match()))
    _, memory = after(*before, (Inventory({"example.com/other": offer}), 2.0, None))
    assert memory.devices["lte_E"].resource == "example.com/other"


def test_what_a_pod_had_of_a_device_is_forgotten_with_the_pod() -> None:
    usb, first, second, *_ = a_modem(serial="E")
    held = frozenset({"lte_E"})
    steps = (inventory_of(LTE, usb, first, second), 0.0, held), (inventory_of(LTE, usb, first), 1.0, held)
    known = after(*steps)[1].devices["lte_E"]
    assert known.earlier or known.given
    known = after(*steps, (inventory_of(LTE, usb, first), 2.0, NOBODY))[1].devices["lte_E"]
    assert (known.earlier, known.given) == ({}, {})


def test_a_device_that_lost_a_node_is_of_this_boot_once_it_is_seen() -> None:
    usb, first, second, *_ = a_modem(serial="E")
    less = inventory_of(LTE, usb, first)
    _, memory = after((inventory_of(LTE, usb, first, second), 0.0, None), (less, 1.0, None))
    known = replace(memory.devices["lte_E"], is_of_this_boot=False)
    _, memory = remember(less, replace(memory, devices={"lte_E": known}), 2.0)
    assert memory.devices["lte_E"].is_of_this_boot


def renaming(*links: str) -> Inventory:
    """A device with these links now."""
    resource = Resource("example.com/x", Match())
    return Inventory({"example.com/x": Offer(resource, (Device("x_1", links=links),))})


def test_a_device_that_invents_names_for_its_nodes_does_not_fill_the_memory() -> None:
    inventory, memory = after(*((renaming(f"x_1@{n}", "x_1@fixed"), float(n), None) for n in range(500)))
    (device,) = inventory.offers["example.com/x"].devices
    assert len(device.links) == LINK_LIMIT
    assert device.links[:4] == ("x_1@499", "x_1@fixed", "x_1@498", "x_1@497")
    assert memory.devices["x_1"].device.links == device.links


def test_a_held_device_that_loses_node_after_node_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pod may have got the first of them."""
    for module in ("held", "renewal"):
        monkeypatch.setattr(f"genericdp.core.memory.{module}.HELD_LINK_LIMIT", 50)
    resource = Resource("example.com/x", Match())
    memory = Memory(held={"x_1": Holding(resource.name, "x_1", shared=False)})
    for n in range(50 + 5):
        spots = (Spot("1", "", f"{n}"),)
        offer = Offer(resource, (Device("x_1", links=(f"x_1@{n}",), port="1", spots=spots),))
        _, memory = remember(Inventory({resource.name: offer}), memory, 0.0)
    assert [*memory.devices["x_1"].earlier] == [Spot("1", "", f"{n}") for n in range(50)]


def test_a_held_device_keeps_more_links_than_another_one() -> None:
    held = {"x_1": Holding("example.com/x", "x_1", shared=False)}
    memory = Memory(held=held)
    for n in range(HELD_LINK_LIMIT + 5):
        _, memory = remember(renaming(f"x_1@{n}"), memory, float(n))
    assert len(memory.devices["x_1"].device.links) == 1 + HELD_LINK_LIMIT
    # Nobody knows which of them the pod got, so those that came first stay.
    came = ["x_1", *(f"x_1@{n}" for n in (*range(HELD_LINK_LIMIT - 1), HELD_LINK_LIMIT + 4))]
    assert {*memory.devices["x_1"].device.links} == {*came}


def test_a_held_device_loses_no_link_however_many_it_gains() -> None:
    memory = Memory(held={"x_1": Holding("example.com/x", "x_1", shared=False)})
    _, memory = remember(renaming("x_1@old"), memory, 0.0)
    gained = tuple(f"x_1@{n}" for n in range(HELD_LINK_LIMIT + 5))
    _, memory = remember(renaming(*gained), memory, 1.0)
    assert {"x_1@old", *gained} <= {*memory.devices["x_1"].device.links}


def test_the_links_that_a_device_has_now_are_always_kept() -> None:
    many = [f"x_1@{n}" for n in range(LINK_LIMIT + 5)]
    inventory, _ = after((renaming("x_1@old"), 0.0, None), (renaming(*many), 1.0, None))
    assert inventory.offers["example.com/x"].devices[0].links == tuple(many)


# Limits


def invented(numbers: Iterable[int], **keys: int) -> Inventory:
    resource = Resource("example.com/x", Match(), **keys)  # type: ignore[arg-type]
    devices = in_order(Device(f"x_{n}", links=(f"x_{n}",)) for n in numbers)
    return Inventory({"example.com/x": Offer(resource, devices)})


def test_twins_by_the_thousand_do_not_fill_the_memory() -> None:
    ties = {f"x_{n}": "somewhere" for n in range(TIE_LIMIT)}
    few = replace(invented([1]), ties=ties)
    assert remember(few, Memory(), 0.0, None)[1].ties == ties
    known = Device("x_1", unit="x_1")
    offer = Offer(few.offers["example.com/x"].resource, (known,))
    links = {"x_1@if00@mark": "there", "x_gone@if00@mark": "there"}
    many = Inventory({"example.com/x": offer}, ties={**ties, **links})
    assert remember(many, Memory(), 0.0, None)[1].ties == {"x_1": "somewhere", "x_1@if00@mark": "there"}


# Twins


def test_the_port_of_a_unit_is_where_it_is_or_was_last() -> None:
    _, memory = after((PLUGGED, 0.0, None), (UNPLUGGED, 5.0, None))
    (device,) = PLUGGED.offers["example.com/ftdi"].devices
    assert memory.known_ports == {"ftdi_A5": device.port}


def test_where_a_part_of_a_unit_is_now_counts_more_than_where_another_was() -> None:
    def part(id_: str, port: str, absent_since: float | None) -> tuple[str, Remembered]:
        return id_, Remembered("example.com/x", Device(id_, unit="x_S", port=port), absent_since)

    for parts in (
        [part("x_S", "old", 1.0), part("x_S.if01", "new", None)],
        [part("x_S", "new", None), part("x_S.if01", "old", 1.0)],
    ):
        assert Memory(dict(parts)).known_ports == {"x_S": "new"}


@pytest.mark.parametrize("id_", ["x_S.if01", "long-name_S-if01_abcdefghij"])
def test_a_unit_keeps_the_ids_without_a_port_while_a_pod_holds_one_of_them(id_: str) -> None:
    """Whatever the ids look like, and whichever unit is there now."""

    def known(id_: str, port: str, *, absent: bool) -> Remembered:
        device = Device(id=id_, health=Health.UNHEALTHY, unit="x_S", port=port)
        return Remembered("example.com/x", device, absent_since=1.0 if absent else None)

    devices = {id_: known(id_, "old", absent=True), "x_S": known("x_S", "new", absent=False)}
    held = {id_: Holding("example.com/x", id_, shared=False)}
    assert Memory(devices, held=held).known_ports == {"x_S": "old"}
    assert Memory(devices).known_ports == {"x_S": "new"}
    # A twin that is tied to another port has ids with its own.
    assert Memory(devices, {"x_S": "new"}, held=held).known_ports == {"x_S": "new"}


def test_ties_are_those_of_the_inventory() -> None:
    _, memory = remember(replace(PLUGGED, ties={"a": "b"}), Memory(ties={"c": "d"}), 0.0, None)
    assert memory.ties == {"a": "b"}


# Topology


def test_a_tombstone_without_topology_takes_it_from_the_others() -> None:
    resource = Resource("example.com/x", Match())
    offer = Offer(resource, (Device("x_1", numa=0), Device("x_3", numa=1)))
    absent = {"x_2": Remembered("example.com/x", Device("x_2", numa=1))}
    inventory, _ = remember(Inventory({"example.com/x": offer}), Memory(absent), 0.0, None)
    assert [(device.id, device.numa) for device in inventory.offers["example.com/x"].devices] == [
        ("x_1", 0), ("x_2", 1), ("x_3", 1)
    ]  # fmt: skip
    absent["x_4"] = Remembered("example.com/x", Device("x_4"))
    inventory, _ = remember(Inventory({"example.com/x": offer}), Memory(absent), 0.0, None)
    assert {device.numa for device in inventory.offers["example.com/x"].devices} == {None}


def test_the_rest_of_the_inventory_passes_through() -> None:
    built = inventory_of(FTDI + 'group_by = "NOT_THERE"\n' + FUSE, STICK, a_fuse())
    inventory, _ = remember(built, Memory(), 0.0, None)
    assert inventory == built
    assert inventory.refusals
