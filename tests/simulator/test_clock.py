"""The simulator's clocks and its waiting, by values."""

import asyncio

import pytest

from genericdp.simulator import (
    ManualClock,
    WallClock,
)
from genericdp.simulator.changes import Changes
from tests.scenes.waiting import idle


async def test_a_manual_clock_ends_sleeps_and_timeouts_in_order_when_it_is_advanced() -> None:
    clock = ManualClock()
    ended: list[str] = []

    async def wait(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        ended.append(name)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with clock.timeout(2):
                await asyncio.Event().wait()
        ended.append("timeout")

    tasks = [asyncio.create_task(one) for one in (wait("late", 3), wait("early", 1), give_up())]
    await idle()
    clock.advance(1)
    await tasks[1]
    assert ended == ["early"]
    clock.advance(2)
    await asyncio.gather(*tasks)
    assert ended == ["early", "late", "timeout"]
    assert clock.now() == 3


async def test_a_wall_clock_advances_by_itself() -> None:
    clock = WallClock()
    before = clock.now()
    await clock.sleep(0.01)
    assert clock.now() > before
    with pytest.raises(TimeoutError):
        async with clock.timeout(0.01):
            await asyncio.Event().wait()


async def test_waiting_in_vain_raises_an_error_that_describes_the_state() -> None:
    changes = Changes()
    with pytest.raises(TimeoutError, match=r"^not true after 0\.01 s; it is so$"):
        await changes.wait_until(lambda: False, timeout_s=0.01, describe=lambda: "it is so")
