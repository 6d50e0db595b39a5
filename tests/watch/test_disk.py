"""What waits for a disk is done in a thread, and waited for only briefly."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Event, current_thread, main_thread

import pytest

from genericdp.files.whole_file import write_whole
from genericdp.log_lines import fields_of
from genericdp.watch import disk
from genericdp.watch.disk import Disk
from tests.scenes.slow_disk import a_slow_disk, when_waited_for
from tests.scenes.waiting import idle, until


class User:
    """Somebody who has something done by a disk. `ended`: what came of it."""

    def __init__(self) -> None:
        self.disk = Disk("a file")
        self.ended: list[object] = []

    def see(self, future: Future[object]) -> None:
        assert current_thread() is main_thread()
        assert not self.disk.is_busy
        self.ended.append(future.exception() or future.result())


def test_what_a_disk_does_soon_is_done_on_return() -> None:
    user = User()
    assert user.disk.do(lambda: current_thread() is not main_thread(), user.see)
    assert user.ended == [True]


async def test_what_takes_long_is_told_later_in_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    user, answers = User(), Event()
    assert not user.disk.do(answers.wait, user.see)
    await idle()
    assert (user.disk.is_busy, user.ended) == (True, [])
    answers.set()
    await until(lambda: user.ended == [True])


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    user, error = User(), OSError("no")

    def fail() -> None:
        raise error

    user.disk.do(fail, user.see)
    assert user.ended == [error]


async def test_who_wants_another_job_meanwhile_is_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    user, answers, again = User(), Event(), list[int]()
    user.disk = Disk("a file", again=lambda: again.append(len(user.ended)))
    user.disk.do(answers.wait, user.see)
    for _ in range(2):
        assert not user.disk.do(answers.wait, user.see)
    assert user.disk.left == 2
    answers.set()
    await until(lambda: user.ended)
    assert (user.ended, again, user.disk.left) == ([True], [1], 0)


async def test_so_is_who_fails_to_take_the_end_into_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    again, answers = list[bool](), Event()
    jobs = Disk("a file", again=lambda: again.append(True))

    def fail(_: Future[object]) -> None:
        raise OSError

    jobs.do(answers.wait, fail)
    jobs.do(answers.wait, fail)
    answers.set()
    with pytest.raises(OSError):
        jobs.finish()
    assert again == [True]


async def test_who_finishes_waits_also_for_what_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    user, answers, then = User(), Event(), Event()

    def again() -> None:
        user.disk.do(then.wait, user.see)

    user.disk = Disk("a file", again=again)
    user.disk.do(answers.wait, user.see)
    user.disk.do(answers.wait, user.see)

    def answer() -> None:
        (then if answers.is_set() else answers).set()

    when_waited_for(monkeypatch, answer)
    user.disk.finish()
    assert user.ended == [True, True]
    await idle()
    assert user.ended == [True, True]


async def test_a_long_wait_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    monkeypatch.setattr(disk, "REPORT_AFTER_S", 0.001)
    user, answers = User(), Event()
    user.disk.do(answers.wait, user.see)

    def answer() -> None:
        if caplog.messages:
            answers.set()

    when_waited_for(monkeypatch, answer)
    user.disk.finish()
    (record,) = caplog.records
    assert (record.message, fields_of(record)) == (
        "waiting until the disk has written",
        {"path": "a file"},
    )


async def test_a_job_that_was_finished_does_not_end_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    user, first, second = User(), Event(), Event()
    user.disk.do(first.wait, user.see)
    first.set()
    # The event loop is told, too, but has its turn later.
    user.disk.finish()
    user.disk.do(second.wait, user.see)
    await idle()
    assert (user.disk.is_busy, user.ended) == (True, [True])
    second.set()
    user.disk.finish()


def test_what_a_thread_does_late_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    user, started, done = User(), list[Callable[[], None]](), list[int]()

    def start(run: Callable[[], None], _: object) -> int:
        started.append(run)
        return 0

    monkeypatch.setattr(disk, "start_new_thread", start)
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    monkeypatch.setattr(disk, "BEGIN_S", 0.0)
    assert user.disk.do(lambda: done.append(1), user.see)
    started[0]()
    assert done == [1]


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError(), None])
def test_without_a_thread_it_is_done_all_the_same(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """Without memory, a thread may also end before it has begun."""

    def start(*_: object) -> int:
        if error is not None:
            raise error
        return 0

    user = User()
    monkeypatch.setattr(disk, "start_new_thread", start)
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    monkeypatch.setattr(disk, "BEGIN_S", 0.0)
    assert user.disk.do(lambda: current_thread() is main_thread(), user.see)
    assert user.ended == [True]


async def test_a_loop_that_has_ended_is_told_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    user = User()

    async def begin() -> None:
        user.disk.do(lambda: write_whole(str(tmp_path / "file"), b"text"), user.see)

    with a_slow_disk() as slow:
        await asyncio.to_thread(asyncio.run, begin())
        slow.answer()
        user.disk._future.result()
    assert (user.ended, caplog.messages) == ([], [])
    assert (tmp_path / "file").exists()
