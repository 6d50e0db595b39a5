"""An answer that is made once for many who ask."""

import asyncio

import pytest

from genericdp.status.lasting import Lasting
from tests.scenes.waiting import idle


class Slow:
    """Something that takes until it may end, and whose answer is how often it was made."""

    def __init__(self) -> None:
        self.now = 0.0
        self.times = 0
        self.may_end = asyncio.Event()
        self.it = Lasting(self._make, lambda: self.now)

    async def _make(self) -> int:
        self.times += 1
        times = self.times
        await self.may_end.wait()
        return times


async def test_all_who_ask_meanwhile_get_one_answer() -> None:
    slow = Slow()
    asking = [asyncio.ensure_future(slow.it.get(1.0)) for _ in range(3)]
    await idle()
    slow.may_end.set()
    assert await asyncio.gather(*asking) == [1, 1, 1]


async def test_an_answer_lasts_until_it_is_too_old_for_somebody() -> None:
    slow = Slow()
    slow.may_end.set()
    told = []
    for now, max_age_s in ((0.0, 1.0), (1.0, 1.0), (1.0, 0.5), (1.0, 0.5), (2.1, 1.0)):
        slow.now = now
        told.append(await slow.it.get(max_age_s))
    assert told == [1, 1, 2, 2, 3]


async def test_a_crowd_that_hangs_up_does_not_keep_it_from_being_made() -> None:
    slow = Slow()
    for _ in range(3):
        asking = asyncio.ensure_future(slow.it.get(1.0))
        await idle()
        asking.cancel()
        await asyncio.wait((asking,))
    slow.may_end.set()
    assert await slow.it.get(1.0) == 1


async def test_what_fails_is_made_again() -> None:
    times = 0

    async def make() -> int:
        nonlocal times
        times += 1
        if times == 1:
            raise OSError
        return times

    it = Lasting(make, lambda: 0.0)
    with pytest.raises(OSError):
        await it.get(1.0)
    assert await it.get(1.0) == 2


async def test_when_it_is_closed_nothing_is_made_any_more() -> None:
    slow = Slow()
    await slow.it.close()
    asking = asyncio.ensure_future(slow.it.get(1.0))
    await idle()
    await slow.it.close()
    with pytest.raises(asyncio.CancelledError):
        await asking
