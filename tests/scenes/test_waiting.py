"""The waiting helper: when it asks, and what it says when it has waited in vain."""

import asyncio
import socket
import threading
import time
from functools import partial

import pytest

from genericdp.simulator.changes import Changes
from tests.scenes.waiting import NAP_S, idle, until


async def test_what_is_so_already_is_not_waited_for() -> None:
    later = asyncio.ensure_future(asyncio.sleep(0))
    await until(lambda: True)
    await until(lambda: True, Changes())
    assert not later.done()
    await later


async def test_with_changes_it_asks_once_for_each() -> None:
    changes, asked = Changes(), 0

    def at_the_third_time() -> bool:
        nonlocal asked
        asked += 1
        return asked == 3

    waiting = asyncio.ensure_future(until(at_the_third_time, changes))
    for count in (1, 2, 3):
        await idle()
        assert asked == count
        changes.notify()
    await waiting


async def test_without_changes_it_asks_in_each_round_of_the_loop() -> None:
    rounds = iter(range(3))
    await until(lambda: next(rounds) == 2)


async def test_a_wait_leaves_the_processor_to_others_while_nothing_happens() -> None:
    asked, began = 0, time.monotonic()

    def never() -> bool:
        nonlocal asked
        asked += 1
        return False

    with pytest.raises(TimeoutError):
        await until(never, timeout_s=0.1)
    assert 1 < asked <= 2 + (time.monotonic() - began) / NAP_S


async def test_what_another_thread_or_a_timer_brings_ends_a_wait() -> None:
    came = threading.Event()
    threading.Timer(0.01, came.set).start()
    await until(came.is_set)
    asyncio.get_running_loop().call_later(0.01, came.clear)
    await until(lambda: not came.is_set())


async def test_the_loop_is_idle_once_what_is_due_and_what_follows_from_it_is_done() -> None:
    done: list[str] = []
    loop = asyncio.get_running_loop()

    async def several_rounds() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        loop.call_later(0.0, done.append, "timer")
        ours, theirs = socket.socketpair()
        theirs.close()

        def read() -> None:
            loop.remove_reader(ours)
            ours.close()
            done.append("reader")

        loop.add_reader(ours, read)

    task = loop.create_task(several_rounds())
    never = loop.call_later(3600.0, done.append, "never")
    await idle()
    assert (task.done(), sorted(done)) == (True, ["reader", "timer"])
    never.cancel()


@pytest.mark.parametrize("changes", [None, Changes()], ids=["rounds", "changes"])
async def test_a_wait_in_vain_says_what_it_waited_for(changes: Changes | None) -> None:
    devices: list[str] = []
    with pytest.raises(TimeoutError) as failure:
        await until(lambda: devices, changes, timeout_s=0.01, describe=lambda: f"devices {devices}")
    line = 'await until(lambda: devices, changes, timeout_s=0.01, describe=lambda: f"devices {devices}")'
    message = str(failure.value)
    assert message.startswith(f"not true after 0.01 s; {__file__}:")
    assert message.endswith(f": {line} devices []")


async def test_a_condition_without_a_line_is_shown_as_it_is() -> None:
    never = partial(bool, 0)
    with pytest.raises(TimeoutError) as failure:
        await until(never, timeout_s=0.01)
    assert str(failure.value) == f"not true after 0.01 s; {never!r}"
