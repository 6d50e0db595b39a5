"""Attacks by connections: garbage and floods on every socket of the daemon, which keeps serving."""

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from genericdp.status.protocol import question, socket_path
from tests.fuzz.target import Target
from tests.scenes.asking import answer_to
from tests.scenes.builders import a_usb_serial
from tests.scenes.running import run
from tests.scenes.scene import Scene, a_scene
from tests.scenes.scrape import read
from tests.scenes.service import settings_below
from tests.scenes.waiting import until

#: What a client of HTTP/2 begins with (RFC 9113, 3.4).
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

#: So many descriptors may remain: gRPC keeps some for its next connections.
_KEPT = 8

#: gRPC keeps a byte of a header block as an entry of up to this size, and bounds neither (DECISIONS.md).
_ENTRY = 70

#: What is sent at once: the attackers are in this process, and their memory is counted, too.
_PIECE = 1 << 16


@dataclass(frozen=True)
class Attack:
    """So many connections at once, on which all of `data` is sent, and how they end.

    then  "close"; "half" closes the sending side and reads; "hold" stays, and reads nothing
    """

    socket: str
    connections: int
    data: bytes
    then: str


def _frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None) -> bytes:
    """A frame of HTTP/2, whose header may lie about its length."""
    said = len(payload) if length is None else length
    return said.to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


frames = st.builds(
    _frame,
    st.integers(0, 12),
    st.sampled_from([0, 1, 4, 5, 0x20, 0xFF]),
    st.sampled_from([0, 1, 1, 3, 2, 0x7FFFFFFF, 0xFFFFFFFF]),
    st.binary(max_size=40) | st.sampled_from([b"", b"\0" * 4, b"\0" * 8, b"x" * 20_000]),
    st.none() | st.sampled_from([0, 1, 0xFFFFFF]),
)
#: What is sent once, and what is then repeated: SETTINGS; a request that is reset at once (CVE-2023-44487);
#: PING; headers without end (CVE-2024-27316), of literal fields and of fields that take one byte each.
KNOWN_FRAMES = [
    (b"", b""),
    (b"", _frame(4, 0, 0, b"", None)),
    (b"", _frame(1, 5, 1, b"\x82\x84\x86\x41\x01a", None) + _frame(3, 0, 1, b"\0\0\0\x08", None)),
    (b"", _frame(6, 0, 0, b"12345678", None)),
    (_frame(1, 0, 1, b"\x82", None), _frame(9, 0, 1, b"\0\1a\1b" * 20, None)),
    (_frame(1, 0, 1, b"\x82", None), _frame(9, 0, 1, b"\x8f" * 20, None)),
]
http2 = st.builds(
    lambda some, known, times: PREFACE + b"".join(some) + known[0] + known[1] * times,
    st.lists(frames, max_size=4),
    st.sampled_from(KNOWN_FRAMES),
    st.sampled_from([0, 1, 50, 1000]),
)
#: What the control socket and the metrics expect, and what they do not.
LINES = [
    b"",
    b"\n" * 10_000,
    question("status"),
    question("events"),
    question("health"),
    question("readiness"),
    question("status")[:-1],
    question("status") * 100,
    b'{"ask": "\xff"}\n',
    b"[" * 8000 + b"\n",
    b"x" * 100_000,
    b"GET /metrics HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
    b"POST / HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n",
    b"GET /\x1b[2J\r\n\r\n HTTP/1.1\r\n\r\n",
]
data = st.one_of(
    http2,
    st.sampled_from(LINES),
    st.binary(max_size=200),
    st.builds(lambda part, times: part * times, st.binary(min_size=1, max_size=20), st.integers(1, 50_000)),
)
attacks = st.builds(
    Attack,
    st.sampled_from(["plugin", "control", "metrics"]),
    st.sampled_from([1, 1, 3, 20, 150]),
    data,
    st.sampled_from(["close", "half", "hold"]),
)


def sockets(attack: Sequence[Attack]) -> None:
    """Garbage, floods and clients that hold on, on all sockets at once."""
    root = Path(tempfile.mkdtemp(prefix="gdp-", dir="/tmp"))
    try:
        run(_attacked(root, attack))
    finally:
        shutil.rmtree(root)


async def _attacked(root: Path, attack: Sequence[Attack]) -> None:
    metrics = root / "m.sock"
    settings = settings_below(root, metrics=f"unix:{metrics}")
    async with a_scene(root, a_usb_serial(0), settings=settings) as scene:
        await scene.until_allocatable(1)
        await _assert_answers(scene, metrics)
        before, registrations = _descriptors(), len(scene.kubelet.registrations)
        directory = Path(settings.kubelet_dir)
        (plugin,) = (each for each in directory.iterdir() if each.name.startswith("gdp-"))
        paths = {"plugin": plugin, "control": Path(socket_path(settings.run_dir)), "metrics": metrics}
        over = asyncio.Event()
        clients = [
            asyncio.ensure_future(_client(paths[each.socket], each, over))
            for each in attack
            for _ in range(each.connections)
        ]
        try:
            # While they are there, what is plugged in reaches the kubelet, and a pod gets it.
            scene.plug(a_usb_serial(1, serial="B", port="3"))
            await scene.until_allocatable(2)
            assert (await scene.admit()).containers["main"].created is not None
        finally:
            over.set()
            await asyncio.gather(*clients)
        await until(lambda: _descriptors() <= before + _KEPT)
        await _assert_answers(scene, metrics)
        assert len(scene.kubelet.registrations) == registrations


async def _client(path: Path, attack: Attack, over: asyncio.Event) -> None:
    """One connection. The daemon may end it."""
    with suppress(OSError):
        reader, writer = await asyncio.open_unix_connection(str(path))
        try:
            if attack.then == "hold":
                writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a read transport, too
            await _first_of(_send(writer, attack.data), over)
            match attack.then:
                case "half":
                    writer.write_eof()
                    await _first_of(reader.read(), over)
                case "hold":
                    await over.wait()
        finally:
            writer.transport.abort()


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    for start in range(0, len(data), _PIECE):
        writer.write(data[start : start + _PIECE])
        await writer.drain()


async def _first_of(work: object, over: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(over.wait())]  # type: ignore[call-overload]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _assert_answers(scene: Scene, metrics: Path) -> None:
    """Both `status` and Prometheus get an answer, as soon as nobody holds all places."""
    control = Path(socket_path(scene.settings.run_dir))
    status = b""
    async with asyncio.timeout(10):
        while not status:
            status = await answer_to(control, question("status"))
    assert json.loads(status)["status"]["state"] == "serving"
    page = await answer_to(metrics, b"GET /metrics HTTP/1.1\r\n\r\n")
    head, _, text = page.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert read(text.decode())


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _entries(attack: Sequence[Attack]) -> float:
    """The most that gRPC takes for what is sent to it, in MiB."""
    sent = [
        each.connections * len(each.data) for each in attack if each.socket == "plugin" and _is_http2(each)
    ]
    return sum(sent) * _ENTRY / (1 << 20)


def _is_http2(attack: Attack) -> bool:
    return attack.data.startswith(PREFACE)


TARGETS = (
    Target(
        sockets,
        st.lists(attacks, min_size=1, max_size=3),
        few=6,
        cpu_s=4.0,
        mebibytes=128.0,
        more_for=_entries,
    ),
)
