"""Attacks by kubelets: broken ones that listen on kubelet.sock before a working one."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from hypothesis import strategies as st

from genericdp.kubelet.api import deviceplugin as api
from genericdp.simulator import Generation
from tests.fuzz.grammar import odd_texts
from tests.fuzz.target import Target
from tests.scenes.answering import a_grpc_server
from tests.scenes.builders import a_usb_serial
from tests.scenes.kubelets import Context, FakeKubelet, Then
from tests.scenes.rules import FTDI
from tests.scenes.running import run
from tests.scenes.scene import a_scene
from tests.scenes.service import SHORT_PAUSES
from tests.scenes.waiting import until

#: What a server of HTTP/2 begins with, and frames that end a connection (RFC 9113): GOAWAY, a broken one.
SETTINGS = bytes.fromhex("000000 04 00 00000000")
GOAWAY = bytes.fromhex("000008 07 00 00000000 00000000 00000000")
BROKEN = bytes.fromhex("ffffff 00 ff ffffffff") + b"x" * 1000

#: How long a broken kubelet waits for the daemon, in seconds: it may be in the middle of a pause.
_PATIENCE_S = 0.3

#: So often a daemon may try during one of them, at the most.
MOST_TRIES = 300


class Fake:
    """Counts what the daemon does to a broken kubelet."""

    def __init__(self, directory: Path, text: str) -> None:
        self.socket = directory / "kubelet.sock"
        self.text = text
        self.calls = 0

    async def until_called(self) -> None:
        """Return when the daemon called, or had its time to."""
        with suppress(TimeoutError):
            await until(lambda: self.calls >= 2, timeout_s=_PATIENCE_S)


@asynccontextmanager
async def _bytes(fake: Fake, data: bytes, *, hold: bool) -> AsyncIterator[None]:
    held: list[asyncio.StreamWriter] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        fake.calls += 1
        writer.write(data)
        if hold:
            held.append(writer)
        else:
            writer.close()

    server = await asyncio.start_unix_server(answer, path=str(fake.socket))
    try:
        yield
    finally:
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.sleep(0)


async def _nothing(request: api.RegisterRequest, plugin: api.DevicePluginStub) -> None:
    """Open no stream."""


async def _many_streams(request: api.RegisterRequest, plugin: api.DevicePluginStub) -> None:
    del request
    streams = [plugin.ListAndWatch(api.Empty()) for _ in range(50)]
    await asyncio.gather(*(stream.read() for stream in streams))
    for stream in streams:
        stream.cancel()


async def _read_nothing(request: api.RegisterRequest, plugin: api.DevicePluginStub) -> None:
    del request
    plugin.ListAndWatch(api.Empty())
    await asyncio.sleep(_PATIENCE_S)


async def _read_once(request: api.RegisterRequest, plugin: api.DevicePluginStub) -> None:
    del request
    await plugin.ListAndWatch(api.Empty()).read()


@asynccontextmanager
async def _service(
    fake: Fake, then: Then = _nothing, code: grpc.StatusCode | None = None
) -> AsyncIterator[None]:
    async def answer(request: api.RegisterRequest, context: Context) -> None:
        del request
        fake.calls += 1
        if code is not None:
            await context.abort(code, fake.text)

    async with FakeKubelet(fake.socket.parent, then, answer).serving():
        yield


@asynccontextmanager
async def _without_services(fake: Fake) -> AsyncIterator[None]:
    async with a_grpc_server(fake.socket):
        fake.calls += 1
        yield


@asynccontextmanager
async def _in_its_place(fake: Fake, make: Callable[[Path], object]) -> AsyncIterator[None]:
    make(fake.socket)
    try:
        yield
    finally:
        fake.socket.rmdir() if fake.socket.is_dir() else fake.socket.unlink()


Broken = Callable[[Fake], AbstractAsyncContextManager[None]]

#: What may be there instead of a kubelet.
BROKEN_KUBELETS: Mapping[str, Broken] = {
    "closes at once": lambda fake: _bytes(fake, b"", hold=False),
    "never answers": lambda fake: _bytes(fake, b"", hold=True),
    "greets and closes": lambda fake: _bytes(fake, SETTINGS, hold=False),
    "greets and is silent": lambda fake: _bytes(fake, SETTINGS, hold=True),
    "greets and goes": lambda fake: _bytes(fake, SETTINGS + GOAWAY, hold=True),
    "sends a broken frame": lambda fake: _bytes(fake, SETTINGS + BROKEN, hold=True),
    "sends text": lambda fake: _bytes(fake, fake.text.encode() * 1000, hold=True),
    "is a web server": lambda fake: _bytes(fake, b"HTTP/1.1 400 Bad Request\r\n\r\n", hold=False),
    "has other services": _without_services,
    "opens no stream": lambda fake: _service(fake, _nothing),
    "opens many streams": lambda fake: _service(fake, _many_streams),
    "reads nothing": lambda fake: _service(fake, _read_nothing),
    "dies in a stream": lambda fake: _service(fake, _read_once),
    "is a file": lambda fake: _in_its_place(fake, Path.touch),
    "is a directory": lambda fake: _in_its_place(fake, Path.mkdir),
    "is a pipe": lambda fake: _in_its_place(fake, os.mkfifo),
    "is a dangling link": lambda fake: _in_its_place(fake, lambda path: path.symlink_to("nowhere")),
    "is a link to itself": lambda fake: _in_its_place(fake, lambda path: path.symlink_to(path.name)),
    **{
        f"answers {code.name}": lambda fake, code=code: _service(fake, code=code)  # type: ignore[misc]
        for code in grpc.StatusCode
        if code is not grpc.StatusCode.OK
    },
}


def broken_kubelets(attack: tuple[Generation, Sequence[tuple[str, str]]]) -> None:
    """Kubelets that hang, refuse or break off, one after the other, and then a working one."""
    generation, broken = attack
    directory = Path(tempfile.mkdtemp(prefix="gdp-", dir="/tmp"))
    try:
        run(_meet(directory, generation, broken))
    finally:
        shutil.rmtree(directory)


async def _meet(root: Path, generation: Generation, broken: Sequence[tuple[str, str]]) -> None:
    scenery: dict[str, Any] = {"kubelet_runs": False, "generation": generation, "pauses": SHORT_PAUSES}
    async with a_scene(root, a_usb_serial(0), **scenery) as scene:
        directory = Path(scene.settings.kubelet_dir)
        directory.mkdir(exist_ok=True)
        registration = scene.daemon.plugins.registrations[FTDI]
        for name, text in broken:
            fake, tries = Fake(directory, text), registration.tries
            async with BROKEN_KUBELETS[name](fake):
                await fake.until_called()
            assert registration.tries - tries <= MOST_TRIES
            fake.socket.unlink(missing_ok=True)
        assert len([each for each in directory.iterdir() if each.name.startswith("gdp-")]) <= 1
        async with scene.kubelet:
            await scene.until_allocatable(1)
            status = await scene.admit()
            assert status.containers["main"].created is not None
            scene.plug(a_usb_serial(1, serial="B", port="3"))
            await scene.until_allocatable(2)
            await scene.service.stop()


TARGETS = (
    Target(
        broken_kubelets,
        st.tuples(
            st.sampled_from(list(Generation)),
            st.lists(st.tuples(st.sampled_from(sorted(BROKEN_KUBELETS)), odd_texts), max_size=4),
        ),
        few=6,
    ),
)
