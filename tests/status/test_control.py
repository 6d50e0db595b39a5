"""The control socket: what may be asked, and what becomes of events that nobody reads."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from genericdp.status import broadcast, control
from genericdp.status.broadcast import Broadcast
from genericdp.status.control import Control
from genericdp.status.listener import MOST
from genericdp.status.protocol import SOCKET
from tests.scenes.asking import answer_to, connected
from tests.scenes.scene import LoopTime
from tests.scenes.waiting import idle, until

#: When everything happens, and how an event says it.
NOW = 0.125
TIME = "1970-01-01T00:00:00.125Z"

ASK = b'{"ask": "events"}\n'


@asynccontextmanager
async def a_control(run_dir: Path) -> AsyncIterator[Broadcast]:
    async def status() -> Mapping[str, object]:
        return {"well": True}

    events = Broadcast(lambda: NOW)
    answers = Control(
        str(run_dir),
        status=status,
        verdicts={"health": lambda: "", "readiness": lambda: "no kubelet\n"},
        begin=lambda: {"event": "begin"},
        events=events,
    )
    await answers.listener.open()
    try:
        yield events
    finally:
        await answers.listener.close()


def line(value: Mapping[str, object]) -> bytes:
    return json.dumps(value).encode() + b"\n"


async def test_the_status_is_one_line_of_json(short_dir: Path) -> None:
    async with a_control(short_dir):
        answer = await answer_to(short_dir / SOCKET, b'{"ask": "status"}\n')

    assert answer == b'{"status": {"well": true}}\n'


async def test_health_and_readiness_are_one_line_with_the_reason_why_not(short_dir: Path) -> None:
    async with a_control(short_dir):
        health = await answer_to(short_dir / SOCKET, b'{"ask": "health"}\n')
        readiness = await answer_to(short_dir / SOCKET, b'{"ask": "readiness"}\n')

    assert (health, readiness) == (b'{"health": ""}\n', b'{"readiness": "no kubelet\\n"}\n')


@pytest.mark.parametrize(
    "question", [b"\n", b"status\n", b"[]\n", b'{"ask": 1}\n', b'{"ask": "reboot"}\n', b"[" * 5000 + b"\n"]
)
async def test_an_invalid_question_gets_an_error_with_the_valid_ones(
    short_dir: Path, question: bytes
) -> None:
    async with a_control(short_dir):
        answer = await answer_to(short_dir / SOCKET, question)

    assert json.loads(answer) == {
        "error": 'ask {"ask": "status"}, {"ask": "events"}, {"ask": "health"} or {"ask": "readiness"}'
    }


async def test_a_client_that_asks_nothing_is_disconnected(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "PATIENCE_S", 0.01)

    async with a_control(short_dir), connected(short_dir / SOCKET) as client:
        rest = await client.rest()

    assert rest == b""


async def test_events_come_one_line_each_until_the_asker_hangs_up(short_dir: Path) -> None:
    async with a_control(short_dir) as events:
        assert not events
        async with connected(short_dir / SOCKET) as client:
            client.writer.write(ASK)
            assert await client.reader.readline() == line({"time": TIME, "event": "begin"})
            assert events
            events.tell({"event": "uevent", "action": "add"})
            assert await client.reader.readline() == line({"time": TIME, "event": "uevent", "action": "add"})
        await until(lambda: not events)


async def test_a_client_that_is_too_slow_learns_how_much_it_missed(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "WAITING_LIMIT", 2)

    async with a_control(short_dir) as events, connected(short_dir / SOCKET) as client:
        client.writer.write(ASK)
        lines = [await client.reader.readline()]
        for number in range(5):  # without giving the loop its turn
            events.tell({"event": str(number)})
        lines += [await client.reader.readline() for _ in range(3)]
        events.tell({"event": "last"})
        lines.append(await client.reader.readline())

    assert [json.loads(line) for line in lines] == [
        {"time": TIME, "event": "begin"},
        {"time": TIME, "event": "0"},
        {"time": TIME, "event": "1"},
        {"time": TIME, "event": "lost", "count": 3},
        {"time": TIME, "event": "last"},
    ]


async def test_a_client_that_pauses_for_long_stays_connected_and_learns_how_much_it_missed(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection ended after 5 s, and `monitor` behind a pager said that the daemon had stopped."""
    monkeypatch.setattr(broadcast, "WAITING_LIMIT", 2)
    time = LoopTime()

    async with a_control(short_dir) as events, connected(short_dir / SOCKET) as client:
        client.writer.write(ASK)
        await client.reader.readline()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a read transport, too
        for _ in range(100):
            events.tell({"event": "x" * 30_000})
            await idle()
        time.advance(30.0)
        await idle()
        assert events
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        counts: list[int | None] = []
        while not counts or counts[-1] is None:
            counts.append(json.loads(await client.reader.readline()).get("count"))
        assert len(counts) - 1 + (counts[-1] or 0) == 100


async def test_a_client_beyond_the_limit_is_told_so(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_control(short_dir), AsyncExitStack() as clients:
        for _ in range(MOST):
            await clients.enter_async_context(connected(short_dir / SOCKET))
        async with connected(short_dir / SOCKET) as client:
            assert await client.reader.readline() == b'{"error": "16 clients are connected already"}\n'
    (record,) = caplog.records
    assert record.message == "a client was sent away, as too many are connected"


async def test_followers_of_events_leave_places_for_those_who_ask_for_the_status(short_dir: Path) -> None:
    async with a_control(short_dir), AsyncExitStack() as clients:
        for _ in range(MOST - 4):
            client = await clients.enter_async_context(connected(short_dir / SOCKET))
            client.writer.write(ASK)
            assert json.loads(await client.reader.readline())["event"] == "begin"
        refused = await answer_to(short_dir / SOCKET, ASK)
        assert refused == b'{"error": "12 clients follow the events already"}\n'
        assert await answer_to(short_dir / SOCKET, b'{"ask": "status"}\n') == b'{"status": {"well": true}}\n'
