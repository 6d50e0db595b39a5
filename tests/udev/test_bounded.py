"""Reads that hang: how many there may be, and what becomes of the others."""

import errno
import os
import threading
import time
from collections.abc import Iterable
from queue import SimpleQueue

from genericdp.udev.bounded import BOUND_S, LIMIT, MOST, TOGETHER_S, Bounded
from genericdp.udev.unread import Unread, complaint
from tests.scenes.waiting import PATIENCE_S

NO_ANSWER = "the kernel does not answer"
NOT_ASKED = "too many others do not answer"


def threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "sysfs"}


class Kernel:
    """What is at or above `first_healthy` answers after `delay_s`, all else when it is released."""

    def __init__(self, first_healthy: int) -> None:
        self.first_healthy = first_healthy
        self.delay_s = 0.0
        self.asked: list[int] = []
        self.answered: SimpleQueue[None] = SimpleQueue()
        self.now = 0.0
        self.bounded = Bounded(lambda: self.answered.put(None), lambda: self.now)
        self._released = threading.Event()

    def read(self, what: int) -> int:
        self.asked.append(what)
        if what < self.first_healthy:
            assert self._released.wait(PATIENCE_S)
        time.sleep(self.delay_s)
        return what

    def release(self) -> None:
        self._released.set()
        for _ in filter(self.first_healthy.__gt__, self.asked.copy()):
            self.answered.get(timeout=PATIENCE_S)

    def look(self, whats: Iterable[int]) -> dict[int, int | str | None]:
        """What was read, or why it was not."""
        found: dict[int, int | str | None] = {}
        planned = list(whats)
        self.bounded.plan(self.read, planned)
        for what in planned:
            try:
                found[what] = self.bounded.call(self.read, what)
            except OSError as error:
                found[what] = error.strerror
        return found


def test_there_is_a_limit_to_how_many_hang_and_the_rest_is_not_said_not_to_answer() -> None:
    kernel, before = Kernel(MOST), threads()
    began = time.monotonic()
    found = kernel.look(range(MOST + 3))
    assert time.monotonic() - began < MOST * BOUND_S / 2
    hanging = dict.fromkeys(range(MOST), NO_ANSWER)
    assert found == hanging | dict.fromkeys(range(MOST, MOST + 3), NOT_ASKED)
    assert len(threads() - before) == MOST
    assert sorted(kernel.asked) == list(range(MOST))

    began = time.monotonic()
    assert kernel.look(range(MOST + 3)) == found
    assert time.monotonic() - began < MOST * BOUND_S / 2
    assert sorted(kernel.asked) == list(range(MOST))

    kernel.release()
    assert kernel.look(range(MOST + 3)) == {what: what for what in range(MOST + 3)}


def test_what_has_not_hung_gets_its_time_while_others_hang() -> None:
    kernel = Kernel(LIMIT)
    kernel.look(range(LIMIT))
    kernel.delay_s = BOUND_S / 4
    kernel.now += TOGETHER_S
    whats = range(LIMIT, 2 * LIMIT)
    assert kernel.look(whats) == {what: what for what in whats}
    kernel.release()


def test_many_that_hang_are_waited_for_no_longer_when_each_is_looked_at_by_itself() -> None:
    kernel = Kernel(MOST)
    began = time.monotonic()
    for what in range(MOST):
        assert kernel.look([what]) == {what: NO_ANSWER}
    assert time.monotonic() - began < MOST * BOUND_S / 2
    kernel.release()


def unread(first: int, last: int, code: int, why: str) -> dict[str, Unread]:
    return {f"/sys/devices/{number}": Unread(OSError(code, why)) for number in range(first, last + 1)}


def hint_of(number: int) -> str:
    error = complaint(unread(number, number, errno.ECANCELED, NOT_ASKED))
    assert error is not None
    return f"{error}; {error.hint}"


def test_what_was_not_asked_is_counted_beside_what_does_not_answer() -> None:
    hanging = unread(1, 2, errno.ETIMEDOUT, NO_ANSWER)
    one = complaint(unread(0, 0, errno.ECANCELED, NOT_ASKED) | hanging)
    three = complaint(hanging | unread(3, 5, errno.ECANCELED, NOT_ASKED))
    assert str(one) == (
        "cannot read 2 devices, such as '/sys/devices/1': the kernel does not answer; 1 other was not asked"
    )
    assert str(three) == (
        "cannot read 2 devices, such as '/sys/devices/1': the kernel does not answer; 3 others were not asked"
    )
    assert three is not None
    assert three.paths.keys() == {f"/sys/devices/{number}" for number in range(1, 6)}


def test_what_was_not_asked_alone_is_said_to_wait_for_the_others() -> None:
    assert hint_of(7) == (
        "cannot read '/sys/devices/7': too many others do not answer;"
        " unplug those; 'journalctl --dmesg' may say which"
    )


def test_what_was_not_asked_is_counted_beside_what_cannot_be_read() -> None:
    failed = unread(1, 1, errno.EIO, os.strerror(errno.EIO))
    error = complaint(failed | unread(2, 2, errno.ECANCELED, NOT_ASKED))
    assert str(error) == "cannot read '/sys/devices/1': Input/output error; 1 other was not asked"
