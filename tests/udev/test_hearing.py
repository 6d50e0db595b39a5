"""When udev counts as not heard, by numbers and times alone."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from genericdp.core.hint import Uevent
from genericdp.udev.hearing import OUT_OF_ORDER, REMEMBERED, Hearing

PATIENCE_S = 8.0


def event(number: int) -> Uevent:
    return Uevent("add", f"/sys/devices/virtual/tty/tty{number}", "tty", "kernel", number)


def test_silence_of_both_is_no_deafness() -> None:
    hearing = Hearing(PATIENCE_S)

    assert hearing.deadline is None
    assert not hearing.is_deaf(1e9)


def test_an_event_of_the_kernel_that_udev_does_not_follow_is_deafness_when_patience_ends() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.kernel(event(100), 50.0)

    assert hearing.deadline == 58.0
    assert not hearing.is_deaf(57.9)
    assert hearing.is_deaf(58.0)


def test_the_first_event_that_udev_has_not_got_as_far_as_is_the_one_that_is_awaited() -> None:
    hearing = Hearing(PATIENCE_S)
    found = [hearing.awaited]

    for number in (100, 101, 102, 103):
        hearing.kernel(event(number), 50.0)
    found.append(hearing.awaited)
    for number in (101, 103):
        hearing.udev(number, 50.1)
        found.append(hearing.awaited)

    assert found == [None, event(100), event(102), None]


def test_an_answered_event_is_not_waited_for() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.kernel(event(100), 50.0)
    hearing.udev(100, 50.1)

    assert hearing.deadline is None


def test_an_answer_to_a_later_event_shows_that_udev_is_not_deaf() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.kernel(event(100), 50.0)
    hearing.kernel(event(101), 54.0)
    hearing.udev(101, 54.1)

    assert not hearing.is_deaf(1e9)


def test_an_event_that_udev_passes_over_for_the_time_of_its_patience_was_skipped() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.kernel(event(100), 50.0)
    hearing.kernel(event(101), 54.0)
    hearing.udev(101, 54.1)

    assert hearing.deadline == 54.1 + PATIENCE_S
    assert [*hearing.skipped(54.0 + PATIENCE_S)] == []
    assert [*hearing.skipped(54.1 + PATIENCE_S)] == [event(100)]
    assert [*hearing.skipped(1e9)] == []
    assert not hearing.deadline


def test_an_event_that_udev_answers_late_was_not_skipped() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.kernel(event(100), 50.0)
    hearing.kernel(event(101), 54.0)
    hearing.udev(101, 54.1)
    hearing.udev(100, 60.0)

    assert hearing.deadline is None or [*hearing.skipped(hearing.deadline)] == []


def test_an_event_that_udev_has_just_passed_in_a_long_queue_is_not_skipped_yet() -> None:
    hearing = Hearing(PATIENCE_S)
    for number in range(100, 300):
        hearing.kernel(event(number), 50.0)

    hearing.udev(101, 51.0)
    hearing.udev(299, 51.0 + PATIENCE_S)

    assert [*hearing.skipped(51.0 + PATIENCE_S)] == [event(100)]
    assert len([*hearing.skipped(51.0 + 2 * PATIENCE_S)]) == 197


@given(
    st.lists(st.integers(1, 30), unique=True, max_size=30),
    st.randoms(use_true_random=False),
)
def test_what_was_skipped_is_what_was_not_answered_before_the_last_answer(
    answered: list[int], chance: Random
) -> None:
    hearing = Hearing(PATIENCE_S)
    events = [("kernel", number) for number in range(1, 31)] + [("udev", number) for number in answered]
    chance.shuffle(events)
    # The kernel's events arrive in their order, however late they are read.
    numbers = iter(range(1, 31))
    for source, number in events:
        if source == "kernel":
            hearing.kernel(event(next(numbers)), 1.0)
        else:
            hearing.udev(number, 1.0)

    skipped = [each.seqnum for each in hearing.skipped(1.0 + PATIENCE_S)]
    skipped += [each.seqnum for each in hearing.skipped(1.0 + 2 * PATIENCE_S)]

    assert skipped == [number for number in range(1, max(answered, default=0)) if number not in answered]


def test_an_answer_that_is_read_before_the_event_answers_it() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.udev(99, 50.0)
    hearing.udev(100, 50.0)
    hearing.kernel(event(99), 50.0)
    hearing.kernel(event(100), 50.1)

    assert hearing.deadline is None


def test_events_behind_an_answer_that_was_read_before_them_are_waited_for() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.udev(100, 50.0)
    hearing.kernel(event(101), 51.0)

    assert hearing.deadline == 51.0 + PATIENCE_S


def test_answers_that_come_when_nobody_waits_for_them_any_more_are_not_remembered() -> None:
    hearing = Hearing(PATIENCE_S)
    numbers = range(1, 5 * OUT_OF_ORDER)
    for number in numbers:
        hearing.kernel(event(number), 50.0)

    hearing.udev(numbers[-1], 51.0)
    skipped = [*hearing.skipped(51.0 + PATIENCE_S)]
    for number in numbers[:-1]:
        hearing.udev(number, 52.0 + PATIENCE_S)

    assert len(skipped) == len(numbers) - 1
    assert len(hearing._early) <= OUT_OF_ORDER


def test_an_answer_is_not_late_because_another_processor_sent_a_later_event_first() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.kernel(event(101), 50.0)
    hearing.udev(100, 50.0)
    hearing.kernel(event(100), 50.0)
    hearing.udev(101, 50.0)

    assert hearing.deadline is None


@given(st.permutations([(source, number) for source in ("kernel", "udev") for number in range(1, 6)]))
def test_in_which_order_the_two_sockets_are_read_does_not_matter(events: list[tuple[str, int]]) -> None:
    hearing = Hearing(PATIENCE_S)

    for time, (source, number) in enumerate(events):
        if source == "kernel":
            hearing.kernel(event(number), time * 0.01)
        else:
            hearing.udev(number, time * 0.01)

    assert hearing.deadline is None


def test_the_answer_to_an_earlier_event_leaves_the_later_one_waiting() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.kernel(event(100), 50.0)
    hearing.kernel(event(101), 54.0)
    hearing.udev(100, 54.1)

    assert hearing.deadline == 54.1 + PATIENCE_S


def test_a_long_queue_is_no_deafness_as_long_as_udev_works_on_it() -> None:
    hearing = Hearing(PATIENCE_S)

    for number in range(1000):
        hearing.kernel(event(number + 1), number / 1000)
    for number in range(40):
        now = 1.0 + 7.0 * number
        assert not hearing.is_deaf(now)
        hearing.udev(number + 1, now)

    assert hearing.is_deaf(1.0 + 7.0 * 39 + PATIENCE_S)


def test_a_message_without_number_is_not_waited_for() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.kernel(event(0), 50.0)

    assert hearing.deadline is None


def test_lost_events_are_not_waited_for() -> None:
    hearing = Hearing(PATIENCE_S)

    hearing.kernel(event(100), 50.0)
    hearing.forget()

    assert not hearing.is_deaf(1e9)


def test_a_storm_uses_no_memory() -> None:
    hearing = Hearing(PATIENCE_S)

    for number in range(100_000):
        hearing.kernel(event(number + 1), number / 10_000)

    assert len(hearing._unanswered) == REMEMBERED
    assert hearing.is_deaf(PATIENCE_S)


def test_nor_do_answers_whose_events_never_come() -> None:
    hearing = Hearing(PATIENCE_S)

    for number in range(1, REMEMBERED + 10):
        hearing.udev(number, 50.0)

    assert len(hearing._early) == REMEMBERED


@given(
    st.lists(
        st.tuples(st.booleans(), st.floats(min_value=0.0, max_value=3.0), st.floats(0.0, 1.0)), max_size=60
    )
)
def test_udev_that_answers_everything_in_time_is_never_deaf(
    steps: list[tuple[bool, float, float]],
) -> None:
    """Whatever the order of the answers: each at most 3 s after the last of its event or an answer."""
    hearing = Hearing(PATIENCE_S)
    now, number = 0.0, 0
    waiting: list[int] = []
    for answers, pause, which in steps:
        if waiting and (answers or pause > 1.0):
            now += pause
            assert not hearing.is_deaf(now)
            hearing.udev(waiting.pop(int(which * (len(waiting) - 1))), now)
        else:
            # Without an answer time stands still: everybody has something to wait for.
            number += 1
            hearing.kernel(event(number), now)
            waiting.append(number)
    for last in sorted(waiting):
        assert not hearing.is_deaf(now)
        hearing.udev(last, now)
    assert hearing.deadline is None


@given(st.lists(st.floats(min_value=0.0, max_value=20.0), min_size=1, max_size=50))
def test_udev_that_says_nothing_is_deaf_at_the_latest_when_patience_with_the_first_event_ends(
    pauses: list[float],
) -> None:
    hearing = Hearing(PATIENCE_S)
    now = 0.0
    for number, pause in enumerate(pauses):
        hearing.kernel(event(number + 1), now)
        now += pause
    assert hearing.is_deaf(max(now, PATIENCE_S))
