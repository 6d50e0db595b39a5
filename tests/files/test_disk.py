"""What waits for a disk is done in a thread, and waited for only briefly."""

import asyncio
from concurrent.futures import Future
from pathlib import Path
from threading import Event, Thread, Timer, current_thread, main_thread

import pytest

from genericdp.files import disk
from genericdp.files.disk import Disk
from genericdp.files.whole_file import write_whole
from tests.scenes.slow_disk import a_slow_disk
from tests.scenes.waiting import idle, until


class User:
    """Somebody who has something done by a disk. `ended`: what came of it."""

    def __init__(self) -> None:
        self.disk = Disk()
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


async def test_one_thing_is_done_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    user, answers = User(), Event()
    user.disk.do(answers.wait, user.see)
    with pytest.raises(RuntimeError, match="one thing at a time"):
        user.disk.do(answers.wait, user.see)
    answers.set()
    user.disk.finish()
    assert user.ended == [True]


async def test_who_finishes_waits_also_for_what_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "PATIENCE_S", 0.0)
    user, answers = User(), Event()

    def go_on(future: Future[object]) -> None:
        user.see(future)
        user.disk.do(lambda: "next", user.see)

    user.disk.do(answers.wait, go_on)
    timer = Timer(0.01, answers.set)
    timer.start()
    user.disk.finish()
    timer.join()
    assert user.ended == [True, "next"]
    await idle()
    assert user.ended == [True, "next"]


def test_without_a_thread_it_is_done_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    user = User()
    monkeypatch.setattr(Thread, "start", start)
    assert user.disk.do(lambda: current_thread() is main_thread(), user.see)
    assert user.ended == [True]


async def test_a_loop_that_has_ended_is_told_nothing(tmp_path: Path) -> None:
    user = User()

    async def begin() -> None:
        user.disk.do(lambda: write_whole(str(tmp_path / "file"), b"text"), user.see)

    with a_slow_disk() as slow:
        await asyncio.to_thread(asyncio.run, begin())
        slow.answer()
        await until((tmp_path / "file").exists)
    assert user.ended == []
