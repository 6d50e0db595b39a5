"""Metrics over HTTP: as much of it as a scrape needs, and calm with everybody else."""

import asyncio
import http.client
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from genericdp.status import exporter
from genericdp.status.exporter import CROWD, Exporter, Page
from tests.scenes.asking import answer_to, connected
from tests.scenes.waiting import until


@asynccontextmanager
async def exporting(path: Path) -> AsyncIterator[Exporter]:
    async def page() -> Page:
        return Page(b"a 1\n", kind="text/plain; version=0.0.4")

    async def bad() -> Page:
        return Page(b"no\n", 503)

    exports = Exporter(f"unix:{path}", {"/metrics": page, "/healthz": bad})
    await exports.listener.open()
    try:
        yield exports
    finally:
        await exports.listener.close()


async def answered(directory: Path, request: bytes) -> str:
    async with exporting(directory / "m"):
        return (await answer_to(directory / "m", request)).decode()


async def test_a_scrape_gets_the_page_with_its_length_and_its_kind(short_dir: Path) -> None:
    request = b"GET /metrics?x=y HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n"
    assert await answered(short_dir, request) == (
        "HTTP/1.1 200 OK\r\n"
        "Content-Type: text/plain; version=0.0.4\r\n"
        "Content-Length: 4\r\n"
        "Connection: close\r\n"
        "\r\n"
        "a 1\n"
    )


@pytest.mark.parametrize(
    ("request_", "status", "text"),
    [
        (b"GET /healthz HTTP/1.0\r\n\r\n", "503 Service Unavailable", "no\n"),
        (b"GET / HTTP/1.1\r\n\r\n", "200 OK", "try /metrics, /healthz\n"),
        (b"GET /etc/passwd HTTP/1.1\r\n\r\n", "404 Not Found", "try /metrics, /healthz\n"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed", "only GET and HEAD\n"),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", "200 OK", ""),
        (b"GET /metrics\r\n\r\n", "400 Bad Request", "this is not HTTP\n"),
        (b"GET http://x/ HTTP/1.1\r\n\r\n", "400 Bad Request", "this is not HTTP\n"),
        (b"GET /metrics HTTP/2.0\r\n\r\n", "400 Bad Request", "this is not HTTP\n"),
        (b"\x16\x03\x01\xff\xfe\r\n\r\n", "400 Bad Request", "this is not HTTP\n"),
        (
            b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n",
            "431 Request Header Fields Too Large",
            "the request is too long\n",
        ),
    ],
    ids=lambda each: str(each)[:24],
)
async def test_every_other_request_gets_the_status_that_fits(
    short_dir: Path, request_: bytes, status: str, text: str
) -> None:
    head, _, body = (await answered(short_dir, request_)).partition("\r\n\r\n")
    assert (head.splitlines()[0], body) == (f"HTTP/1.1 {status}", text)
    assert ("Allow: GET, HEAD" in head) == status.startswith("405")


async def test_a_client_of_the_standard_library_understands_it(short_dir: Path) -> None:
    def scrape() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("x")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(short_dir / "m"))
        try:
            connection.request("GET", "/metrics")
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    async with exporting(short_dir / "m"):
        answer = await asyncio.to_thread(scrape)

    assert answer == (200, b"a 1\n")


async def test_a_client_that_sends_single_bytes_has_the_same_time_limit(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "PATIENCE_S", 0.05)

    async with exporting(short_dir / "m"), connected(short_dir / "m") as client:
        client.writer.write(b"GET /met")
        rest = await client.rest()

    assert rest.startswith(b"HTTP/1.1 408 Request Timeout\r\n")


async def test_one_that_hangs_up_early_is_no_trouble(
    short_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with exporting(short_dir / "m") as exports:
        async with connected(short_dir / "m") as client:
            client.writer.write(b"GET /metrics HT")
            await until(lambda: exports.listener._asking)
        await until(lambda: not exports.listener._asking)
        assert b" 200 " in await answer_to(short_dir / "m", b"GET /metrics HTTP/1.1\r\n\r\n")
    assert not caplog.records


async def test_a_crowd_is_served_up_to_the_limit_and_leaves_nothing_behind(
    short_dir: Path,
) -> None:
    async with exporting(short_dir / "m") as exports:
        request = b"GET /metrics HTTP/1.1\r\n\r\n"
        answers = await asyncio.gather(
            *(answer_to(short_dir / "m", request) for _ in range(200)), return_exceptions=True
        )
        served = [each for each in answers if isinstance(each, bytes) and each.endswith(b"a 1\n")]
        assert served
        await until(lambda: not exports.listener._asking)
        assert (await answer_to(short_dir / "m", request)).endswith(b"a 1\n")


@pytest.mark.parametrize("before", [0, 40])
async def test_whoever_asks_at_once_is_answered_however_many_connect_at_that_moment(
    short_dir: Path, before: int
) -> None:
    """A crowd of another user must not make a probe fail: the kubelet would restart the pod."""
    async with exporting(short_dir / "m"):
        with ExitStack() as stack:
            # None of them is accepted before all of them are there.
            crowd = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(90)]
            for client in crowd:
                client.setblocking(False)
                client.connect(str(short_dir / "m"))
                if client is crowd[before]:
                    client.send(b"GET /metrics HTTP/1.1\r\n\r\n")
            answer = await asyncio.get_running_loop().sock_recv(crowd[before], 4096)
    assert answer.endswith(b"a 1\n")


async def test_connections_that_say_nothing_keep_no_probe_away(short_dir: Path) -> None:
    path = short_dir / "m"

    async with exporting(path), AsyncExitStack() as stack:
        silent = [await stack.enter_async_context(connected(path)) for _ in range(3 * CROWD)]
        answer = await answer_to(path, b"GET /metrics HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 OK")
        # The oldest were hung up on, one for each that came after the room was full.
        for client in silent[: 2 * CROWD]:
            assert await client.rest() == b""
