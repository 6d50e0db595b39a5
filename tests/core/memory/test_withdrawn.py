"""An edit of `replicas` drops no id that a pod may hold."""

from dataclasses import replace
from functools import partial

import pytest

from genericdp.core.inventory.inventory import Inventory, diff
from genericdp.core.inventory.offer import Health
from genericdp.core.memory import withdrawn as module
from genericdp.core.memory.held import PODS_SETTLE_S, Holding
from genericdp.core.memory.memory import Memory
from genericdp.core.memory.remember import next_forgetting, remember
from genericdp.core.memory.withdrawn import REASON, Shares, Withdrawn
from genericdp.core.rules.resource import UNPLUG_GRACE_S
from tests.scenes.builders import a_fuse, a_usb_serial
from tests.scenes.inventories import answered, inventory_of
from tests.scenes.steps import growth

FUSE = '[[resource]]\nname = "fuse"\nmatch = { DEVNAME = "/dev/fuse" }\nunplug_grace = "10s"\n'
NOBODY: frozenset[str] = frozenset()
NAME = "example.com/fuse"


def shared(replicas: int | None, *, there: bool = True) -> Inventory:
    line = "" if replicas is None else f"replicas = {replicas}\n"
    return inventory_of(FUSE + line, *([a_fuse()] if there else []))


def after(*steps: tuple[Inventory, float, frozenset[str] | None]) -> tuple[Inventory, Memory]:
    """The inventory and the memory after these steps."""
    inventory, memory = Inventory(), Memory()
    for built, now, held in steps:
        inventory, memory = remember(built, memory, now, answered(held, memory, now))
    return inventory, memory


def health(inventory: Inventory) -> dict[str, str]:
    """What is listed for the kubelet."""
    return {id_: device.reason or device.health for id_, device in inventory.offers[NAME].ids.items()}


def test_fewer_replicas_leave_the_other_ids_listed_as_unhealthy() -> None:
    inventory, _ = after((shared(3), 0.0, None), (shared(1), 5.0, None))
    assert health(inventory) == {"fuse_fuse.0": "Healthy", "fuse_fuse.1": REASON, "fuse_fuse.2": REASON}
    assert inventory.offers[NAME].ids["fuse_fuse.2"].health is Health.UNHEALTHY


def test_to_share_a_device_leaves_the_id_that_it_had_alone() -> None:
    inventory, _ = after((shared(None), 0.0, None), (shared(1), 5.0, None))
    assert health(inventory) == {"fuse_fuse.0": "Healthy", "fuse_fuse": REASON}


def test_to_share_it_no_longer_leaves_the_ids_that_it_had_then() -> None:
    inventory, _ = after((shared(2), 0.0, None), (shared(None), 5.0, None))
    assert health(inventory) == {"fuse_fuse": "Healthy", "fuse_fuse.0": REASON, "fuse_fuse.1": REASON}


def test_several_edits_leave_all_that_ever_was() -> None:
    inventory, _ = after((shared(2), 0.0, None), (shared(None), 5.0, None), (shared(1), 6.0, None))
    assert health(inventory) == {"fuse_fuse.0": "Healthy", "fuse_fuse.1": REASON, "fuse_fuse": REASON}


def test_more_replicas_withdraw_nothing_and_bring_back_what_was_withdrawn() -> None:
    inventory, memory = after((shared(2), 0.0, None), (shared(1), 5.0, None), (shared(2), 6.0, None))
    assert inventory == shared(2)
    assert memory.shares == Shares({NAME: 2})


def test_an_id_is_dropped_when_its_grace_has_passed_and_nobody_holds_it() -> None:
    steps = [(shared(3), 0.0, None), (shared(1), 5.0, None)]
    held = frozenset({"fuse_fuse.1"})
    assert len(health(after(*steps, (shared(1), 14.9, NOBODY))[0])) == 3
    assert len(health(after(*steps, (shared(1), 99.0, None))[0])) == 3, "nobody can say who holds it"
    assert health(after(*steps, (shared(1), 15.0, held))[0]) == {
        # The device is no longer shared.
        "fuse_fuse.0": "a pod may still hold it as fuse_fuse.1",
        "fuse_fuse.1": REASON,
    }
    inventory, memory = after(*steps, (shared(1), 15.0, NOBODY))
    assert inventory == shared(1)
    assert memory.shares == Shares({NAME: 1})


def test_the_end_of_its_grace_is_waited_for() -> None:
    inventory, memory = after((shared(3), 0.0, None))
    assert next_forgetting(memory, inventory) is None
    inventory, memory = after((shared(3), 0.0, None), (shared(1), 5.0, None))
    assert next_forgetting(memory, inventory) == 15.0
    assert next_forgetting(memory, Inventory()) == 5.0 + UNPLUG_GRACE_S


def test_the_ids_of_an_absent_device_have_its_own_reason() -> None:
    gone = shared(1, there=False)
    inventory, _ = after((shared(2), 0.0, None), (shared(1), 5.0, None), (gone, 6.0, None))
    assert health(inventory) == dict.fromkeys(("fuse_fuse.0", "fuse_fuse.1"), "it is unplugged")


def test_they_go_with_the_device_when_that_is_forgotten() -> None:
    gone = shared(1, there=False)
    steps = [(shared(2), 0.0, None), (gone, 5.0, None), (gone, 15.0, NOBODY)]
    inventory, memory = after(*steps)
    assert inventory == gone
    assert memory == Memory(shares=Shares({NAME: 1}))


def test_a_held_one_keeps_its_device_from_being_forgotten() -> None:
    gone = shared(1, there=False)
    steps = [(shared(2), 0.0, None), (gone, 5.0, None), (gone, 99.0, frozenset({"fuse_fuse.1"}))]
    assert list(health(after(*steps)[0])) == ["fuse_fuse.0", "fuse_fuse.1"]


def test_an_edit_while_the_resource_is_out_of_the_rules_counts_too() -> None:
    nothing = inventory_of('[[resource]]\nname = "x"\nmatch = { DEVNAME = "/dev/x" }\n', a_fuse())
    inventory, _ = after((shared(2), 0.0, None), (nothing, 5.0, None), (shared(1), 6.0, None))
    assert health(inventory) == {"fuse_fuse.0": "Healthy", "fuse_fuse.1": REASON}


def test_an_edit_while_the_daemon_was_down_counts_too_and_its_grace_begins_at_the_start() -> None:
    _, memory = after((shared(2), 0.0, None))
    saved = Memory(memory.devices, memory.ties, memory.shares)
    inventory, later = remember(shared(1), saved, 900.0, answered(NOBODY, saved, 900.0))
    assert list(health(inventory)) == ["fuse_fuse.0", "fuse_fuse.1"]
    assert later.shares.withdrawn == {"fuse_fuse.1": Withdrawn(NAME, "fuse_fuse", 900.0)}
    # And one that was withdrawn before the restart.
    loaded = Shares({NAME: 1}, {"fuse_fuse.1": Withdrawn(NAME, "fuse_fuse", None)})
    saved = Memory(memory.devices, memory.ties, loaded)
    _, later = remember(shared(1), saved, 900.0, answered(NOBODY, saved, 900.0))
    assert later.shares.withdrawn == {"fuse_fuse.1": Withdrawn(NAME, "fuse_fuse", 900.0)}


def test_a_device_that_came_after_the_edit_has_nothing_withdrawn() -> None:
    rule = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\nreplicas = '
    one, two = a_usb_serial(0, serial="A", port="1"), a_usb_serial(1, serial="B", port="2")
    inventory, _ = after(
        (inventory_of(f"{rule}2", one), 0.0, None), (inventory_of(f"{rule}1", one, two), 5.0, None)
    )
    assert list(inventory.offers["example.com/ftdi"].ids) == ["ftdi_A.0", "ftdi_B.0", "ftdi_A.1"]


def test_what_is_withdrawn_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WITHDRAWN_LIMIT", 3)
    inventory, _ = after((shared(100), 0.0, None), (shared(1), 5.0, None))
    assert len(health(inventory)) == 1 + 3


def test_the_bound_costs_no_id_that_a_pod_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WITHDRAWN_LIMIT", 3)
    held = frozenset({"fuse_fuse.99"})
    inventory, _ = after((shared(100), 0.0, held), (shared(None), 5.0, held), (shared(1), 6.0, held))
    assert health(inventory)["fuse_fuse.99"] == REASON
    assert len(health(inventory)) == 1 + 3


@pytest.mark.parametrize(
    ("replicas", "given", "now", "refused"),
    [
        (2, {".2": 4.0}, 5.0, {".3"}),
        (2, {".1": 4.0, ".2": 4.0}, 5.0, {".3"}),
        (1, {".2": 4.0}, 5.0, {".1", ".3"}),
        # Its pod may have gone, and another one has the device.
        (1, {".0": 4.0, ".2": 4.0}, 5.0, {".1", ".2", ".3"}),
        (None, {".1": 4.0, ".2": 4.0}, 5.0, {".0", ".1", ".2", ".3"}),
        # The admission of its pod is over.
        (2, {".2": 4.0}, 4.0 + PODS_SETTLE_S, {".2", ".3"}),
        (2, {".2": None}, 5.0, {".2", ".3"}),
    ],
)
def test_allocate_refuses_a_withdrawn_id_except_to_a_pod_that_is_being_admitted(
    replicas: int | None, given: dict[str, float | None], now: float, refused: set[str]
) -> None:
    """The kubelet asks again for another container of that pod. A pod that had it earlier may have gone."""
    _, memory = remember(shared(4), Memory(), 0.0)
    held = {f"fuse_fuse{end}": Holding(NAME, "fuse_fuse", shared=True, given=at) for end, at in given.items()}
    inventory, _ = remember(shared(replicas), replace(memory, held=held), now)
    withdrawn = {id_ for id_, why in inventory.offers[NAME].refused.items() if why == REASON}
    assert withdrawn == {f"fuse_fuse{end}" for end in refused}


def test_the_device_itself_is_behind_every_id() -> None:
    inventory, _ = after((shared(2), 0.0, None), (shared(1), 5.0, None))
    offer = inventory.offers[NAME]
    (device,) = offer.devices
    assert offer.device("fuse_fuse.0") is device
    assert offer.device("fuse_fuse.1") is device
    assert offer.device("other") is None


def test_the_kubelet_is_told_once() -> None:
    first, memory = remember(shared(2), Memory(), 0.0, None)
    edited, memory = remember(shared(1), memory, 5.0, None)
    again, same = remember(shared(1), memory, 6.0, None)
    assert diff(first, edited).updated == (NAME,)
    assert not diff(edited, again)
    assert same == memory


@pytest.mark.parametrize("after", ["not shared", "one less", "half", "one more"])
@pytest.mark.parametrize("pods", [None, NOBODY], ids=["no answer", "nobody holds any"])
def test_an_edit_takes_time_in_proportion_to_the_ids(after: str, pods: frozenset[str] | None) -> None:
    """The watchdog of systemd ends a daemon that takes long, and the next one would have to do the same."""

    def edit(size: int) -> None:
        replicas = {"not shared": None, "one less": size - 1, "half": size // 2, "one more": size + 1}[after]
        memory = Memory()
        for number, now in ((size, 0.0), (replicas, 1.0), (replicas, 2.0), (size, 3.0)):
            _, memory = remember(shared(number), memory, now, answered(pods, memory, now))

    assert growth(lambda size: partial(edit, size), 200) < 2.5
