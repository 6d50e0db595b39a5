"""Parts of a registration's life that the whole daemon cannot be made to show at will."""

import asyncio

import pytest

from genericdp.kubelet.registration import Pauses, _uninterrupted
from tests.scenes.waiting import idle


async def test_a_cancellation_waits_for_work_that_must_not_be_half_done() -> None:
    started, release, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        await release.wait()
        done.set()

    task = asyncio.ensure_future(_uninterrupted(work()))
    await started.wait()
    task.cancel()
    await idle()
    assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()


async def test_another_cancellation_does_not_interrupt_it_either() -> None:
    started, release = asyncio.Event(), asyncio.Event()
    done = []

    async def work() -> None:
        started.set()
        await release.wait()
        done.append("done")

    task = asyncio.ensure_future(_uninterrupted(work()))
    await started.wait()
    for _ in range(3):
        task.cancel()
        await idle()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["done"]


async def test_a_cancellation_is_one_even_if_the_work_fails() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        await release.wait()
        raise OSError("no room")

    task = asyncio.ensure_future(_uninterrupted(work()))
    await started.wait()
    task.cancel()
    release.set()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert repr(caught.value.__cause__) == "OSError('no room')"


def test_pauses_double_up_to_the_longest_and_differ_from_each_other() -> None:
    pauses = Pauses(first=1.0, longest=10.0)
    for failures, longest in ((0, 1.0), (1, 2.0), (3, 8.0), (4, 10.0), (10_000, 10.0)):
        drawn = {pauses.before_try(failures) for _ in range(50)}
        assert len(drawn) > 1
        assert all(longest / 2 <= pause <= longest for pause in drawn)
