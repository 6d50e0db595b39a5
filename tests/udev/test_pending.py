"""Of many hints about one device, the one that matters, whatever order they arrive in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.device import UdevDevice
from genericdp.core.hint import Deafness, Hint, Poll, RescanCause, Resync, Silence, SilenceCause, Uevent
from genericdp.udev import Pending

A, B = "/sys/devices/a", "/sys/devices/b"


def hint(action: str, seqnum: int, source: str = "udev", sys_path: str = A) -> Uevent:
    return Uevent(action, sys_path, "tty", source, seqnum)


def taken(*hints: Hint) -> list[Hint]:
    pending = Pending()
    for each in hints:
        pending.add(each)
    return pending.take()


def test_what_is_to_be_read_again_is_collected() -> None:
    one, other = frozenset({"temp"}), frozenset({"power"})
    assert taken(Poll({"/sys/a": one, "/sys/b": one}), Poll({"/sys/b": other})) == [
        Poll({"/sys/a": one, "/sys/b": one | other})
    ]
    pending = Pending()
    pending.add(Poll({"/sys/a": one}))
    assert pending
    pending.take()
    assert not pending


def test_nothing_is_pending_at_first_or_after_a_take() -> None:
    pending = Pending()
    assert not pending
    pending.add(hint("add", 1))
    assert pending

    assert pending.take() == [hint("add", 1)]

    assert not pending
    assert pending.take() == []


def test_the_last_event_of_a_device_stands_for_all() -> None:
    assert taken(hint("add", 1), hint("bind", 2), hint("change", 3)) == [hint("change", 3)]


def test_a_late_remove_of_the_kernel_does_not_hide_the_successor() -> None:
    assert taken(hint("add", 3), hint("remove", 1, "kernel")) == [hint("add", 3)]


def test_a_late_add_of_udev_does_not_hide_the_removal() -> None:
    assert taken(hint("remove", 5, "kernel"), hint("add", 3)) == [hint("remove", 5, "kernel")]


def test_of_one_event_udev_knows_more() -> None:
    assert taken(hint("remove", 5), hint("remove", 5, "kernel")) == [hint("remove", 5)]
    assert taken(hint("remove", 5, "kernel"), hint("remove", 5)) == [hint("remove", 5)]


def test_events_without_numbers_count_in_the_order_of_arrival() -> None:
    assert taken(hint("add", 0), hint("change", 0)) == [hint("change", 0)]


def test_a_resync_goes_first_and_keeps_what_messages_contain() -> None:
    message = Uevent("add", A, "tty", "udev", 1, UdevDevice(A))

    last = Resync(RescanCause.OVERFLOW, "udev")

    assert taken(message, Resync(RescanCause.DEAF), last) == [last, message]


def test_a_move_is_about_two_places() -> None:
    move = Uevent("move", A, "input", "udev", 2, None, B)

    assert taken(hint("add", 1), move, hint("change", 3)) == [hint("change", 3), move]


def test_deafness_leaves_nothing_to_follow() -> None:
    assert taken(Deafness(Silence(SilenceCause.UNANSWERED))) == []


@given(st.permutations([(n, source) for n in range(1, 6) for source in ("kernel", "udev")]))
def test_the_order_of_arrival_does_not_matter(order: list[tuple[int, str]]) -> None:
    assert taken(*(hint("change", number, source) for number, source in order)) == [hint("change", 5)]


@pytest.mark.parametrize("order", [1, -1])
def test_what_only_reads_the_unread_replaces_no_other_resync(order: int) -> None:
    """A kernel's queue overflows, and in the same turn the timer ends that reads what could not be read."""
    everything, unread = Resync(RescanCause.OVERFLOW, "udev"), Resync(RescanCause.UNREAD)
    assert taken(*[everything, unread][::order]) == [everything]
    assert taken(unread, unread) == [unread]
