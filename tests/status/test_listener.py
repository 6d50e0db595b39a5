"""A socket on which others ask: who may, what it replaces, whom it hangs up on."""

import asyncio
import gc
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from genericdp.errors import GenericdpError
from genericdp.status import listener
from genericdp.status.listener import LINE_LIMIT, Answer, Listener, send
from tests.scenes.asking import Client, answer_to, connected
from tests.scenes.waiting import idle, until


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await send(writer, await reader.readline(), 5.0)


@asynccontextmanager
async def listening(
    address: str, answer: Answer = echo, *, most: int = 16, oldest_goes: bool = False
) -> AsyncIterator[Listener]:
    listens = Listener(address, answer, most=most, oldest_goes=oldest_goes)
    await listens.open()
    try:
        yield listens
    finally:
        await listens.close()


LONG = b"x" * 50_000


async def long_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    await send(writer, LONG, 5.0)


def port_of(listens: Listener) -> tuple[str, int]:
    assert listens._server is not None
    host, port, *_ = listens._server.sockets[0].getsockname()
    return host, port


def a_dead_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


@pytest.fixture
def path(short_dir: Path) -> Path:
    return short_dir / "s"


async def test_only_the_owner_and_the_group_may_ask_whatever_the_umask(short_dir: Path) -> None:
    path = short_dir / "run" / "s"

    umask = os.umask(0o077)
    try:
        async with listening(f"unix:{path}"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
            assert await answer_to(path, b"hello\n") == b"hello\n"
        assert not path.exists()
    finally:
        os.umask(umask)


async def test_the_mode_of_a_directory_that_is_there_is_left_alone(short_dir: Path) -> None:
    async with listening(f"unix:{short_dir}/s"):
        mode = stat.S_IMODE(os.stat(short_dir).st_mode)

    assert mode == 0o700


async def test_a_socket_that_a_killed_process_left_is_replaced(short_dir: Path) -> None:
    a_dead_socket(short_dir / "s")
    async with listening(f"unix:{short_dir}/s"):
        assert await answer_to(short_dir / "s", b"hello\n") == b"hello\n"


async def test_a_socket_on_which_somebody_listens_is_left_alone(path: Path) -> None:
    async with listening(f"unix:{path}"):
        second = Listener(f"unix:{path}", echo)
        with pytest.raises(GenericdpError) as refused:
            await second.open()
        assert str(refused.value) == (f"cannot listen on 'unix:{path}': another process listens on it")
        await second.close()
        assert await answer_to(path, b"hello\n") == b"hello\n"


async def test_a_socket_to_which_it_may_not_connect_is_left_alone(short_dir: Path) -> None:
    path = short_dir / "s"
    short_dir.chmod(0o777)
    async with listening(f"unix:{path}"):
        path.chmod(0o600)
        os.seteuid(65534)
        try:
            with pytest.raises(GenericdpError) as refused:
                await Listener(f"unix:{path}", echo).open()
        finally:
            os.seteuid(0)
        assert str(refused.value) == f"cannot listen on 'unix:{path}': Permission denied"
        assert refused.value.hint == (
            "the directory, or the socket that is there, belongs to another user: choose another path"
        )
        assert await answer_to(path, b"hello\n") == b"hello\n"


async def test_what_is_no_socket_is_left_alone(path: Path) -> None:
    path.write_text("mine")
    listener = Listener(f"unix:{path}", echo)
    with pytest.raises(GenericdpError) as refused:
        await listener.open()
    assert str(refused.value) == f"cannot listen on 'unix:{path}': Address already in use"
    assert refused.value.hint == f"something else is at '{path}': remove it, or choose another path"
    assert path.read_text() == "mine"


async def test_a_file_in_the_place_of_its_directory_is_left_alone(short_dir: Path) -> None:
    (short_dir / "run").write_text("mine")
    for address in (f"unix:{short_dir}/run/s", f"unix:{short_dir}/run/deeper/s"):
        with pytest.raises(GenericdpError) as refused:
            await Listener(address, echo).open()
        assert refused.value.hint == (
            f"something else is at '{short_dir}/run': remove it, or choose another path"
        )


async def test_a_directory_that_cannot_be_created_is_reported(short_dir: Path) -> None:
    (short_dir / "file").write_text("")
    with pytest.raises(GenericdpError) as refused:
        await Listener(f"unix:{short_dir}/file/s", echo).open()
    assert str(refused.value) == f"cannot listen on 'unix:{short_dir}/file/s': File exists"


async def test_a_path_that_is_too_long_is_reported(short_dir: Path) -> None:
    with pytest.raises(GenericdpError) as refused:
        await Listener(f"unix:{short_dir}/{'x' * 108}", echo).open()
    assert str(refused.value).endswith("x': AF_UNIX path too long")


async def test_the_socket_of_a_successor_is_not_removed(path: Path) -> None:
    async with listening(f"unix:{path}") as first:
        path.unlink()
        assert not first.listens
        async with listening(f"unix:{path}"):
            await first.close()
            assert await answer_to(path, b"hello\n") == b"hello\n"


async def test_opening_again_restores_a_removed_socket_and_leaves_an_existing_one(
    path: Path,
) -> None:
    async with listening(f"unix:{path}") as listener:
        before = path.stat().st_ino
        await listener.open()
        assert path.stat().st_ino == before
        path.unlink()
        await listener.open()
        assert await answer_to(path, b"hello\n") == b"hello\n"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_a_port_of_an_address_is_listened_on(host: str) -> None:
    async with listening(f"{host}:0") as listens:
        _, port = port_of(listens)
        with pytest.raises(GenericdpError) as refused:
            await Listener(f"{host}:{port}", echo).open()
        assert str(refused.value) == f"cannot listen on '{host}:{port}': Address already in use"
        assert await answer_to((host.strip("[]"), port), b"hello\n") == b"hello\n"


async def test_excess_clients_are_disconnected_and_the_others_are_served(path: Path) -> None:
    async with (
        listening(f"unix:{path}", most=2) as listener,
        connected(path) as first,
        connected(path) as second,
    ):
        await until(lambda: len(listener._asking) == 2)
        async with connected(path) as third:
            assert await third.rest() == b""
        for client in (first, second):
            client.writer.write(b"x\n")
            assert await client.rest() == b"x\n"
        await until(lambda: not listener._asking)
        assert await answer_to(path, b"hello\n") == b"hello\n"


async def test_in_one_turn_of_the_event_loop_one_connection_is_accepted(path: Path) -> None:
    """A crowd makes no turn long: whoever else waits, such as a kubelet, waits for turns."""
    async with listening(f"unix:{path}") as listener:
        with ExitStack() as stack:
            for _ in range(8):
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(str(path))
            counts = [0]
            while counts[-1] < 8:
                await asyncio.sleep(0)
                counts.append(len(listener._asking))
            assert max(after - before for before, after in pairwise(counts)) == 1


async def test_a_client_that_sends_an_endless_line_is_disconnected(path: Path) -> None:
    async with listening(f"unix:{path}"):
        assert await answer_to(path, b"x" * (LINE_LIMIT * 3)) == b""


async def test_a_client_that_does_not_read_is_disconnected(path: Path) -> None:
    outcomes: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        try:
            await send(writer, b"x" * (8 << 20), 0.05)
        except TimeoutError:
            outcomes.append("too slow")
            raise

    async with listening(f"unix:{path}", answer) as listener, connected(path) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a read transport, too
        await until(lambda: outcomes)
        await until(lambda: not listener._asking)
    assert outcomes == ["too slow"]


@pytest.mark.parametrize("ends", [False, True], ids=["silent", "which sends no more"])
async def test_a_client_that_does_not_receive_its_answer_counts_and_then_loses_it(
    monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    """Of 400 such clients, the kernel kept 260 MiB for as long as they liked."""
    monkeypatch.setattr(listener, "PATIENCE_S", 0.2)
    answer = b"x" * 50_000

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        await send(writer, answer, 5.0)
        answered.set()

    answered, loop = asyncio.Event(), asyncio.get_running_loop()
    async with listening("127.0.0.1:0", reply) as listens:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(port_of(listens))
            client.setblocking(False)
            client.send(b"hello\n")
            if ends:
                client.shutdown(socket.SHUT_WR)
            await answered.wait()
            (writer,) = listens._asking.values()
            kept = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
            assert kept == 2 * listener.SEND_BUFFER
            await until(lambda: not listens._asking)
            await idle()  # its socket is closed in the next turn
            assert len(await loop.sock_recv(client, 65536)) < len(answer)
            with pytest.raises(ConnectionResetError):
                await loop.sock_recv(client, 65536)


async def test_those_of_a_unix_socket_that_do_not_read_do_not_count(path: Path) -> None:
    """Only root and the group can connect, and others of them must get their answer."""
    answered = asyncio.Event()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await echo(reader, writer)
        answered.set()

    async with listening(f"unix:{path}", reply, most=1) as listens, connected(path) as slow:
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a read transport, too
        slow.writer.write(b"hello\n")
        await answered.wait()
        await idle()
        assert not listens._asking
        assert await answer_to(path, b"hello\n") == b"hello\n"
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await slow.rest() == b"hello\n"


def there(listens: Listener, name: tuple[str, int]) -> list[asyncio.StreamWriter]:
    """The connection of the client with this address, if it is there."""
    return [each for each in listens._asking.values() if each.get_extra_info("peername") == name]


@asynccontextmanager
async def receiving(listens: Listener) -> AsyncIterator[Client]:
    """A client that is sent an answer and does not read it yet."""
    async with connected(port_of(listens)) as client:
        client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is a read transport, too
        client.writer.write(b"hello\n")
        name = client.writer.get_extra_info("sockname")
        await until(lambda: any(map(listener._not_received, there(listens, name))))
        yield client


async def test_a_crowd_that_says_nothing_ends_no_connection_that_receives_its_answer() -> None:
    async with (
        listening("127.0.0.1:0", long_answer, most=4, oldest_goes=True) as listens,
        AsyncExitStack() as stack,
    ):
        slow = await stack.enter_async_context(receiving(listens))
        silent = [await stack.enter_async_context(connected(port_of(listens))) for _ in range(8)]
        for client in silent[:5]:
            assert await client.rest() == b""
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await slow.rest() == LONG


async def test_nor_do_those_that_do_not_read_keep_others_away() -> None:
    async with (
        listening("127.0.0.1:0", long_answer, most=8, oldest_goes=True) as listens,
        AsyncExitStack() as stack,
    ):
        for _ in range(9):
            await stack.enter_async_context(receiving(listens))
        late = await stack.enter_async_context(connected(port_of(listens)))
        name = late.writer.get_extra_info("sockname")
        await until(lambda: there(listens, name))
        for _ in range(2):
            await stack.enter_async_context(connected(port_of(listens)))
        late.writer.write(b"hello\n")
        assert await late.rest() == LONG


@pytest.mark.parametrize("family", ["unix", "port"])
async def test_a_client_gets_a_long_answer_whole_though_it_reads_late_and_sends_no_more(
    path: Path, family: str
) -> None:
    answer = bytes(range(256)) * (1 << 14)

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        await send(writer, answer, 5.0)

    address = f"unix:{path}" if family == "unix" else "127.0.0.1:0"
    async with listening(address, reply) as listens:
        async with connected(path if family == "unix" else port_of(listens)) as client:
            client.writer.write(b"hello\n")
            client.writer.write_eof()
            await until(lambda: listens._asking)
            assert await client.rest() == answer
        await until(lambda: not listens._asking)


async def test_closing_hangs_up_on_those_who_still_ask(path: Path) -> None:
    async with listening(f"unix:{path}") as listener, connected(path) as client:
        await until(lambda: listener._asking)
        await listener.close()
        assert await client.rest() == b""


async def test_a_bug_in_an_answer_is_logged_and_ends_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readline() == b"bug\n":
            raise RuntimeError("impossible")
        await send(writer, b"fine\n", 5.0)

    async with listening(f"unix:{path}", answer):
        assert await answer_to(path, b"bug\n") == b""
        assert await answer_to(path, b"hello\n") == b"fine\n"
    assert [record.getMessage() for record in caplog.records] == ["a question could not be answered"]


@pytest.mark.parametrize("rounds", range(6))
async def test_a_client_that_is_just_being_accepted_when_it_closes_is_disconnected(
    short_dir: Path, rounds: int
) -> None:
    """Closed between accept(2) and our first call, a server of asyncio leaves the socket open."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    listener = Listener(f"unix:{short_dir}/s.sock", answer)
    await listener.open()
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(f"{short_dir}/s.sock")
        for _ in range(rounds):
            await asyncio.sleep(0)
        await listener.close()
        gc.collect()
        caller.setblocking(False)
        with suppress(ConnectionResetError):
            assert await asyncio.get_running_loop().sock_recv(caller, 1) == b""


async def test_only_an_open_socket_counts_as_removed(short_dir: Path) -> None:
    path = short_dir / "s"
    listener = Listener(f"unix:{path}", echo)
    removed = [listener.was_removed]
    await listener.open()
    removed.append(listener.was_removed)
    path.unlink()
    removed.append(listener.was_removed)
    await listener.close()
    removed.append(listener.was_removed)
    assert removed == [False, False, True, False]
