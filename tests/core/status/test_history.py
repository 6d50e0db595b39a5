"""Since when things are as they are, and how often what happened."""

from dataclasses import replace

from genericdp.core.allocate import RefusalReason
from genericdp.core.hint import RescanCause
from genericdp.core.inventory.inventory import Changes, diff
from genericdp.core.status.history import ALLOCATION_BOUNDS_S, KIND_LIMIT, Counts, Durations, History, Since
from tests.scenes.builders import a_usb_serial
from tests.scenes.inventories import inventory_of

FTDI = "example.com/ftdi"
RULES = '[[resource]]\nname = "ftdi"\nmatch = { SUBSYSTEM = "tty" }\n'


def test_what_has_not_changed_keeps_its_time() -> None:
    history = History(1.0)
    two = inventory_of(RULES, a_usb_serial(0), a_usb_serial(1, serial="B", port="2.4"))
    history.stepped(two, diff(inventory_of(""), two), 2.0)
    gone = replace(a_usb_serial(0), node_is_there=False)
    one = inventory_of(RULES, gone, a_usb_serial(1, serial="B", port="2.4"))
    history.stepped(one, diff(two, one), 3.0)
    assert history.devices[FTDI] == {
        "ftdi_A50285BI": Since("Unhealthy", 3.0),
        "ftdi_B": Since("Healthy", 2.0),
    }


def test_only_what_changed_is_looked_at() -> None:
    history = History(1.0)
    history.stepped(inventory_of(RULES, a_usb_serial(0)), Changes(), 2.0)
    assert history.devices == {}


def test_a_resource_that_is_gone_is_forgotten() -> None:
    history = History(1.0)
    there = inventory_of(RULES, a_usb_serial(0))
    history.stepped(there, diff(inventory_of(""), there), 2.0)
    history.registered_as(FTDI, registered=True, error="", now=2.0)
    history.stepped(inventory_of(""), diff(there, inventory_of("")), 3.0)
    assert (history.devices, history.registered) == ({}, {})


def test_a_registration_is_a_success_a_failure_or_a_loss() -> None:
    history = History(1.0)
    for registered, error, now in (
        (False, "", 2.0),  # waiting for the kubelet
        (False, "no", 3.0),
        (True, "", 4.0),
        (False, "the kubelet closed the stream", 5.0),
        (False, "the kubelet closed the stream", 6.0),
        (True, "", 7.0),
    ):
        history.registered_as(FTDI, registered, error, now)
    assert history.registrations.by_kind == {(FTDI, "success"): 2, (FTDI, "error"): 2}
    assert history.lost.by_kind == {(FTDI,): 1}
    assert history.registered == {FTDI: Since("registered", 7.0)}


def test_a_resource_that_never_was_registered_is_so_since_the_beginning() -> None:
    history = History(1.0)
    history.registered_as(FTDI, registered=False, error="no", now=9.0)
    assert history.registered == {FTDI: Since("", 1.0)}


def test_a_rule_file_has_its_time_until_another_version_is_in_force() -> None:
    history = History(1.0)
    history.read_rules({"a": "1", "b": "1"}, mistakes=False, now=2.0)
    history.read_rules({"a": "1", "b": "2"}, mistakes=True, now=3.0)
    assert history.files == {"a": Since("1", 2.0), "b": Since("2", 3.0)}
    assert history.read == 2.0
    assert history.reloads.by_kind == {("success",): 1, ("error",): 1}


def test_a_kubelet_that_follows_another_is_counted_and_begins_anew() -> None:
    history = History(1.0)
    for there, now in ((True, 2.0), (True, 3.0), (False, 4.0)):
        history.saw_kubelet(there, now)
    assert (history.kubelets, history.kubelet) == (2, Since("away", 4.0))


def test_deafness_and_what_it_costs() -> None:
    history = History(1.0)
    history.heard_udev("no udev", 2.0)
    history.heard_udev("no udev", 3.0)
    history.rescanned(RescanCause.OVERFLOW)
    history.rescanned(RescanCause.DEAF)
    assert history.silence == Since("no udev", 2.0)
    assert (history.overflows, history.rescans.by_kind) == (1, {("overflow",): 1, ("deaf",): 1})


def test_allocations_are_timed_and_refusals_are_not() -> None:
    history = History(1.0)
    history.allocated(FTDI, None, 0.0004)
    history.allocated(FTDI, None, 9.0)
    history.allocated(FTDI, RefusalReason.UNKNOWN, 9.0)
    history.allocated(FTDI, RefusalReason.UNPLUGGED, 9.0)
    assert history.allocations.by_kind == {(FTDI,): 2}
    assert history.refusals.by_kind == {(FTDI, "unknown device"): 1, (FTDI, "unplugged"): 1}
    assert history.allocating == Durations([1, *[0] * (len(ALLOCATION_BOUNDS_S) - 1), 1], 9.0004)


def test_a_duration_that_is_a_bound_belongs_to_it() -> None:
    durations = Durations()
    durations.add(ALLOCATION_BOUNDS_S[2])
    assert durations.cases.index(1) == 2


def test_an_action_that_the_kernel_does_not_have_is_another() -> None:
    history = History(1.0)
    history.heard_uevent("add", "tty")
    history.heard_uevent("explode", "tty")
    assert history.uevents.by_kind == {("add", "tty"): 1, ("other", "tty"): 1}


def test_what_devices_invent_does_not_make_a_count_grow_for_ever() -> None:
    counts = Counts()
    for number in range(KIND_LIMIT + 10):
        counts.add("add", f"subsystem{number}")
    counts.add("add", "subsystem0")
    assert len(counts.by_kind) == KIND_LIMIT + 1
    assert counts.by_kind["other", "other"] == 10
    assert counts.by_kind["add", "subsystem0"] == 2
