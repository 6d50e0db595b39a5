"""The watchdog itself: what it lets pass, and what it catches."""

import asyncio
import socket

import pytest

from tests.scenes.running import RunAsync


def test_the_result_of_the_coroutine_is_returned(run_async: RunAsync) -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    assert run_async(answer()) == 42


def test_a_task_left_behind_fails_the_test(run_async: RunAsync, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.scenes.running._CLOSING_S", 0.01)

    async def leave_a_task() -> None:
        tasks.append(asyncio.create_task(asyncio.Event().wait()))

    tasks: list[asyncio.Task[bool]] = []
    with pytest.raises(AssertionError, match=r"tasks left behind: <coroutine object Event.wait"):
        run_async(leave_a_task())


def test_a_descriptor_left_behind_fails_the_test(
    run_async: RunAsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.scenes.running._CLOSING_S", 0.0)
    sockets: list[socket.socket] = []

    async def leave_a_socket() -> None:
        sockets.append(socket.socket(socket.AF_UNIX))

    with pytest.raises(AssertionError, match=r"descriptors left behind: .*socket:"):
        run_async(leave_a_socket())
    sockets.pop().close()


def test_a_coroutine_that_hangs_fails_the_test(run_async: RunAsync) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run_async(hang(), timeout_s=0.01)
