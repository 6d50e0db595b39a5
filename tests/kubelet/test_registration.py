"""Parts of a registration's life that the whole daemon cannot be made to show at will."""

import asyncio
from typing import Any

import pytest

from genericdp.core.inventory.offer import Offer
from genericdp.core.rules.match import Match
from genericdp.core.rules.resource import Resource
from genericdp.kubelet.plugin import Plugin
from genericdp.kubelet.registration import ANSWER_S, Pauses, Registration, _uninterrupted, some_still_stop
from genericdp.kubelet.socket import KubeletSocket
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


class Unstoppable:
    """A server of gRPC with a bug."""

    async def stop(self, *, grace: float | None) -> None:
        assert grace is None
        raise RuntimeError("it cannot be stopped")


async def test_a_server_that_cannot_be_stopped_is_an_error_and_nobody_waits_for_its_streams() -> None:
    """They would never end, and the resource would never be registered again."""
    offer = Offer(Resource(name="example.com/x", match=Match()), ())
    registration = Registration(
        Plugin(offer, link_dir="/links", coalesce_s=0.0),
        KubeletSocket("/device-plugins"),
        asyncio.Semaphore(),
    )
    server: Any = Unstoppable()
    with registration.plugin.streams.opened("kubelet"), pytest.raises(RuntimeError, match="be stopped"):
        async with asyncio.timeout(5.0):
            await registration._close(server, "/device-plugins/a.sock")
    assert not some_still_stop()


class Stopped:
    """A server that stops at once. `grace`: how long it was to wait for answers."""

    grace: float | None = 0.0

    async def stop(self, grace: float | None) -> None:
        self.grace = grace


@pytest.mark.parametrize("waits", [False, True])
async def test_an_answer_that_waits_has_time_to_be_sent(*, waits: bool) -> None:
    """Streams never end by themselves, so without one nothing is waited for."""
    server = Stopped()

    async def never() -> None:
        await asyncio.Event().wait()

    offer = Offer(Resource(name="example.com/x", match=Match()), ())
    plugin = Plugin(offer, link_dir="/links", coalesce_s=0.0, settled=never)
    answers = [asyncio.ensure_future(plugin.settling.wait()) for _ in range(waits)]
    await idle()
    stopped: Any = server
    registration = Registration(plugin, KubeletSocket("/device-plugins"), asyncio.Semaphore())
    await registration._close(stopped, "/device-plugins/a.sock")
    assert server.grace == (ANSWER_S if waits else None)
    # Although it is not saved yet.
    await asyncio.gather(*answers)


def test_pauses_double_up_to_the_longest_and_differ_from_each_other() -> None:
    pauses = Pauses(first=1.0, longest=10.0)
    for failures, longest in ((0, 1.0), (1, 2.0), (3, 8.0), (4, 10.0), (10_000, 10.0)):
        drawn = {pauses.before_try(failures) for _ in range(50)}
        assert len(drawn) > 1
        assert all(longest / 2 <= pause <= longest for pause in drawn)
