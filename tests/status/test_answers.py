"""When the kubelet is asked who holds devices, for those who ask the daemon."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from genericdp.core.status.history import Retried
from genericdp.core.status.holdings import Holdings
from genericdp.retry import FIRST_S
from genericdp.status.answers import HOLDINGS_LAST_S, METRICS_LAST_S
from genericdp.status.protocol import SOCKET, question
from tests.scenes.asking import answer_to, connected
from tests.scenes.scene import LoopTime, a_scene
from tests.scenes.service import settings_below
from tests.scenes.waiting import until

SCRAPE = b"GET /metrics HTTP/1.1\r\n\r\n"
STATUS = question("status")


class PodResources:
    """A kubelet that is asked, and answers once it may."""

    def __init__(self) -> None:
        self.times = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.ended: list[str] = []

    async def ask(self, socket_path: str) -> Holdings | None:
        del socket_path
        self.times += 1
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("answered")
        return None


@pytest.fixture
def pod_resources(monkeypatch: pytest.MonkeyPatch) -> Callable[[], PodResources]:
    def asked() -> PodResources:
        it = PodResources()
        monkeypatch.setattr("genericdp.status.answers.podresources.ask", it.ask)
        return it

    return asked


async def test_a_status_asks_each_time_and_a_scrape_takes_an_answer_of_the_last_seconds(
    short_dir: Path, pod_resources: Callable[[], PodResources]
) -> None:
    kubelet, clock = pod_resources(), [0.0]
    control, metrics = short_dir / "run" / SOCKET, short_dir / "metrics.sock"
    settings = replace(settings_below(short_dir), metrics=f"unix:{metrics}")
    async with a_scene(short_dir, settings=settings, kubelet_runs=False, now=lambda: clock[0]):
        times = []
        for seconds, address, asks in (
            (0.1, control, STATUS),
            (0.1, control, STATUS),
            (HOLDINGS_LAST_S, metrics, SCRAPE),
            (METRICS_LAST_S, metrics, SCRAPE),
            (0.1, metrics, SCRAPE),
            (0.1, control, STATUS),
        ):
            clock[0] += seconds
            await answer_to(address, asks)
            times.append(kubelet.times)
        assert times == [1, 2, 2, 2, 3, 4]


async def test_who_hangs_up_on_a_shared_question_leaves_it_to_the_others(
    short_dir: Path, pod_resources: Callable[[], PodResources], monkeypatch: pytest.MonkeyPatch
) -> None:
    kubelet = pod_resources()
    control = short_dir / "run" / SOCKET
    async with a_scene(short_dir, kubelet_runs=False) as scene:
        kubelet.may_answer.clear()
        listener = scene.daemon.answers._listeners[Retried.CONTROL]
        async with connected(control) as first, connected(control) as second:
            for client in (first, second):
                client.writer.write(STATUS)
            await until(lambda: kubelet.times == 1 and len(listener._asking) == 2)
            next(iter(listener._asking)).cancel()
            await first.rest()
            kubelet.may_answer.set()
            assert b'"status"' in await second.reader.readline()
        assert (kubelet.times, kubelet.ended) == (1, ["answered"])


async def test_a_daemon_that_ends_asks_no_longer(
    short_dir: Path, pod_resources: Callable[[], PodResources]
) -> None:
    kubelet = pod_resources()
    async with a_scene(short_dir, kubelet_runs=False):
        kubelet.may_answer.clear()
        async with connected(short_dir / "run" / SOCKET) as client:
            client.writer.write(STATUS)
            await until(lambda: kubelet.times)
    assert kubelet.ended == ["cancelled"]


async def test_one_that_stands_by_does_not_ask(
    short_dir: Path, pod_resources: Callable[[], PodResources]
) -> None:
    kubelet = pod_resources()
    async with a_scene(short_dir, kubelet_runs=False) as scene:
        scene.daemon.standing_by = "process 1 on another"
        assert b'"standing by"' in await answer_to(short_dir / "run" / SOCKET, STATUS)
        assert kubelet.times == 0


@pytest.mark.parametrize("what", ["a socket", "the directory"])
async def test_a_socket_that_is_removed_is_there_again(
    short_dir: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    """By itself: nobody can ask what is the matter."""
    time, settings = LoopTime(), settings_below(short_dir)
    metrics, control = Path(settings.run_dir) / "metrics.sock", Path(settings.run_dir) / SOCKET
    async with a_scene(short_dir, settings=replace(settings, metrics=f"unix:{metrics}"), kubelet_runs=False):
        for _ in range(2):
            caplog.clear()
            if what == "a socket":
                control.unlink()
            else:
                shutil.rmtree(settings.run_dir)
            await until(lambda: "a socket was removed, opening it again" in caplog.messages)
            time.advance(FIRST_S)
            await until(control.exists)
            await until(metrics.exists)
            assert b'"status"' in await answer_to(control, STATUS)
            assert b"genericdp_" in await answer_to(metrics, SCRAPE)


async def test_a_removed_socket_is_reported_once_until_it_is_open_again(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    LoopTime()
    settings = settings_below(short_dir)
    control = Path(settings.run_dir) / SOCKET
    async with a_scene(short_dir, settings=settings, kubelet_runs=False) as scene:
        control.unlink()
        await until(lambda: "a socket was removed, opening it again" in caplog.messages)
        # Whatever else happens in the directory meanwhile.
        scene.daemon.answers._hear(frozenset({SOCKET}))
        assert caplog.messages.count("a socket was removed, opening it again") == 1


async def test_a_socket_that_is_removed_while_another_one_is_opened_is_opened_again(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, settings = LoopTime(), settings_below(short_dir)
    metrics, control = Path(settings.run_dir) / "metrics.sock", Path(settings.run_dir) / SOCKET
    async with a_scene(
        short_dir, settings=replace(settings, metrics=f"unix:{metrics}"), kubelet_runs=False
    ) as scene:
        answers = scene.daemon.answers
        last = answers._listeners[Retried.METRICS]

        async def open_slowly() -> None:
            control.unlink()
            await until(lambda: answers._retry.waits)

        with monkeypatch.context() as patched:
            patched.setattr(last, "open", open_slowly)
            await answers.listen()
        time.advance(FIRST_S)
        await until(control.exists)
        assert b'"status"' in await answer_to(control, STATUS)
