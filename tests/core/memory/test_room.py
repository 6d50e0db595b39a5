"""Which devices are listed when there are more than the kubelet accepts: old ones come before new ones."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from genericdp.core.inventory.identity import ID_LIMIT as ID_LENGTH
from genericdp.core.inventory.inventory import Inventory, Refusal
from genericdp.core.inventory.offer import Device, Offer, in_order
from genericdp.core.memory import room as module
from genericdp.core.memory.answer import Answer
from genericdp.core.memory.held import give
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import remember
from genericdp.core.memory.room import ID_LIMIT
from genericdp.core.memory.withdrawn import WITHDRAWN_LIMIT
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import UNPLUG_GRACE_S, Resource
from genericdp.kubelet.responses import list_of
from tests.scenes.builders import a_terminal, resources_of
from tests.scenes.inventories import DOMAIN, ids_of, inventory_of

NAME = "example.com/x"


def invented(numbers: Iterable[int], replicas: int | None = None) -> Inventory:
    """Devices with these serial numbers, all plugged in."""
    resource = Resource(NAME, Match(), replicas=replicas)
    devices = in_order(Device(f"x_{n}", links=(f"x_{n}",), port=f"{n}") for n in numbers)
    return Inventory({NAME: Offer(resource, devices)})


def nobody(now: float) -> Answer:
    return Answer(frozenset(), now, complete=True)


def listed(inventory: Inventory) -> set[str]:
    return set(inventory.offers[NAME].ids)


def test_no_resource_lists_more_ids_than_a_kubelet_takes() -> None:
    rule = '[[resource]]\nname = "vcs"\nmatch = { SUBSYSTEM = "vc" }\nreplicas = 9000\n'
    built = inventory_of(rule, *(a_terminal(number) for number in range(1, 5)))
    inventory, memory = remember(built, Memory(), 0.0)
    assert ids_of(inventory) == list(memory.devices) == ["vcs_vcs1", "vcs_vcs2"]
    assert inventory.refusals == tuple(
        Refusal(
            "example.com/vcs",
            f"/dev/vcs{number}",
            "its resource already has 2 devices, and a resource has at most 20000 ids; "
            "lower 'replicas', or match fewer devices",
        )
        for number in (3, 4)
    )


def test_the_longest_list_is_below_what_a_kubelet_receives() -> None:
    device = Device("i" * (ID_LENGTH - 6), numa=1)
    whole = replace(device, id="i" * ID_LENGTH)
    resource = resources_of(
        '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\nreplicas = 10000\n', domain=DOMAIN
    )[0]
    most = Offer(
        resource,
        (device, replace(device, id=f"j{device.id[1:]}")),
        {f"{number:063}": whole for number in range(WITHDRAWN_LIMIT)},
    )
    assert len(most.ids) == ID_LIMIT + WITHDRAWN_LIMIT
    assert len(list_of(most).SerializeToString()) < 4 << 20


@pytest.mark.parametrize("replicas", [10_000, 20_000])
def test_a_unit_that_comes_and_goes_costs_no_other_unit_its_ids(replicas: int) -> None:
    """With so many replicas, two units fill the list."""
    inventory, memory = remember(invented([1], replicas), Memory(), 0.0)
    for n in range(2, 6):
        inventory, memory = remember(invented([n], replicas), memory, float(n))
        assert {f"x_1.{number}" for number in range(replicas)} <= listed(inventory)
    assert len(listed(inventory)) == 20_000


def test_a_device_that_comes_later_is_refused_while_absent_ones_fill_the_list() -> None:
    rule = '[[resource]]\nname = "vcs"\nmatch = { SUBSYSTEM = "vc" }\nreplicas = 10000\n'
    _, memory = remember(inventory_of(rule, a_terminal(1), a_terminal(2)), Memory(), 0.0)
    third = inventory_of(rule, a_terminal(3))
    inventory, memory = remember(third, memory, 1.0)
    assert [(device.id, device.reason) for device in inventory.offers["example.com/vcs"].devices] == [
        ("vcs_vcs1", "it is unplugged"),
        ("vcs_vcs2", "it is unplugged"),
    ]
    assert inventory.refusals == (
        Refusal(
            "example.com/vcs",
            "/dev/vcs3",
            "its resource already has 2 devices, 2 of them absent, and a resource has at most 20000 ids; "
            "lower 'replicas', or match fewer devices",
        ),
    )
    # The grace of the others ends, and nobody holds them.
    late = 1.0 + UNPLUG_GRACE_S
    inventory, memory = remember(third, memory, late, nobody(late))
    assert ids_of(inventory) == list(memory.devices) == ["vcs_vcs3"]


def test_a_device_that_invents_serial_numbers_is_refused_at_last_and_evicts_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ABSENT_LIMIT", 30)
    inventory, memory = Inventory(), Memory()
    for n in range(50):
        inventory, memory = remember(invented([n]), memory, 0.1 * n, nobody(0.1 * n))
    assert listed(inventory) == {f"x_{n}" for n in range(30)}


def test_the_refusal_of_a_flood_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ABSENT_LIMIT", 2)
    rule = '[[resource]]\nname = "vcs"\nmatch = { SUBSYSTEM = "vc" }\n'
    inventory, memory = Inventory(), Memory()
    for n in range(1, 4):
        inventory, memory = remember(inventory_of(rule, a_terminal(n)), memory, float(n))
    assert inventory.refusals == (
        Refusal(
            "example.com/vcs",
            "/dev/vcs3",
            "its resource already has 2 absent devices that a pod may hold; lower 'unplug_grace', "
            "or match fewer devices",
        ),
    )


def test_without_an_answer_of_the_kubelet_the_longest_absent_make_room_when_their_grace_has_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ABSENT_LIMIT", 3)
    inventory, memory = Inventory(), Memory()
    for n in range(10):
        now = n * UNPLUG_GRACE_S
        inventory, memory = remember(invented([n]), memory, now)
        if n == 0:
            memory = replace(memory, held=give(memory.held, inventory.offers[NAME], ["x_0"], now))
    assert listed(inventory) == {"x_0", "x_7", "x_8", "x_9"}


def test_when_an_edit_leaves_no_room_for_all_those_that_pods_hold_are_listed_first() -> None:
    one_each, memory = remember(invented(range(100)), Memory(), 0.0)
    held = give(memory.held, one_each.offers[NAME], ["x_98"], 0.0)
    inventory, memory = remember(invented(range(100), 10_000), replace(memory, held=held), 1.0)
    assert {device.id for device in inventory.offers[NAME].devices} == {"x_0", "x_98"}
    # The ids that there were before are withdrawn, whether their device is listed or not.
    assert {f"x_{n}" for n in range(100)} <= listed(inventory)
    inventory, memory = remember(invented(range(100), 10_000), memory, 1000.0, nobody(1000.0))
    assert len(listed(inventory)) == 20_000
    assert {*memory.devices} == {"x_0", "x_98"}


def test_a_device_that_is_listed_again_counts_as_known_again() -> None:
    inventory, memory = remember(invented(range(3)), Memory(), 0.0)
    held = give(memory.held, inventory.offers[NAME], ["x_0", "x_1", "x_2"], 0.0)
    _, memory = remember(invented(range(3), 10_000), replace(memory, held=held), 1.0)
    assert {id_ for id_, known in memory.devices.items() if not known.listed} == {"x_2"}
    inventory, memory = remember(invented(range(3)), memory, 2.0)
    assert {device.id for device in inventory.offers[NAME].devices} == {"x_0", "x_1", "x_2"}
    assert all(known.listed for known in memory.devices.values())


def test_when_an_edit_leaves_no_room_for_all_those_that_are_present_come_before_those_that_are_absent() -> (
    None
):
    _, memory = remember(invented(range(3)), Memory(), 0.0)
    _, memory = remember(invented((1, 2)), memory, 1.0)
    inventory, _ = remember(invented((1, 2), 10_000), memory, 2.0)
    assert {device.id for device in inventory.offers[NAME].devices} == {"x_1", "x_2"}


def test_ids_of_a_device_without_room_are_withdrawn_even_if_the_rule_includes_them() -> None:
    _, memory = remember(invented(range(3), 1), Memory(), 0.0)
    inventory, _ = remember(invented(range(3), 10_000), memory, 1.0)
    assert {device.id for device in inventory.offers[NAME].devices} == {"x_0", "x_1"}
    assert not inventory.offers[NAME].ids["x_2.0"].healthy
