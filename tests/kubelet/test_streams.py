"""Which of the streams of a plugin is the kubelet's."""

import asyncio

from genericdp.kubelet.streams import Streams
from tests.scenes.waiting import idle

KUBELET, AGENT = "grpc-go/1.81.1", "agent/1.0"


async def found(streams: Streams) -> bool:
    """Register was answered: whether the kubelet's stream is found without a further one."""
    finding = asyncio.create_task(streams.find_kubelet(60.0))
    await idle()
    is_found = finding.done()
    finding.cancel()
    await asyncio.wait((finding,))
    return is_found


async def test_the_kubelet_is_the_client_that_asked_last_and_its_stream_the_first_one_afterwards() -> None:
    streams = Streams()
    streams.expect_kubelet()
    streams.see_question(AGENT)
    with streams.opened(AGENT):
        streams.see_question(KUBELET)
        with streams.opened(AGENT), streams.opened(KUBELET) as kubelets, streams.opened(KUBELET) as later:
            assert await found(streams)
            assert not streams.is_others(kubelets)
            assert streams.is_others(later)
            assert streams.others() == {AGENT: 2, KUBELET: 1}
        assert not streams.kubelet_follows
    assert len(streams) == 0


async def test_a_question_after_the_answer_does_not_count() -> None:
    streams = Streams()
    streams.expect_kubelet()
    streams.see_question(KUBELET)
    assert not await found(streams)
    streams.see_question(AGENT)
    with streams.opened(AGENT):
        assert not await found(streams)
        with streams.opened(KUBELET):
            assert await found(streams)


async def test_if_nobody_asks_it_is_the_first_stream() -> None:
    streams = Streams()
    streams.expect_kubelet()
    with streams.opened(KUBELET) as first, streams.opened(KUBELET) as second:
        assert await found(streams)
        assert not streams.is_others(first)
        assert streams.is_others(second)


async def test_each_registration_finds_the_kubelet_anew() -> None:
    streams = Streams()
    streams.expect_kubelet()
    streams.see_question(KUBELET)
    with streams.opened(KUBELET):
        assert await found(streams)
    streams.expect_kubelet()
    with streams.opened("grpc-go/1.82.0") as stream:
        assert not streams.is_others(stream), "nobody knows yet"
        assert await found(streams), "this kubelet does not ask"
    streams.expect_kubelet()
    streams.see_question(KUBELET)
    with streams.opened(AGENT):
        assert not await found(streams)


async def test_a_kubelets_stream_that_has_ended_by_then_was_opened() -> None:
    streams = Streams()
    streams.expect_kubelet()
    with streams.opened(KUBELET):
        pass
    assert await found(streams)
    assert not streams.kubelet_follows
